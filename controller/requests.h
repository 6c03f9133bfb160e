#pragma once
/*
 * The control requests between the controller and a broker, and a broker's requests to the controller: Kafka's names,
 * fields and error codes (org.apache.kafka.common.requests; the message schemas of 3.9). In one process they travel
 * through a queue; the wire protocol can stand behind the same structs.
 *
 * A request is built by one thread, then immutable and reference-counted: one UpdateMetadata is shared by all brokers
 * it goes to, and a broker's metadata cache may keep references to the partition states instead of copies.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <glib.h>

/* org.apache.kafka.common.protocol.Errors */
enum kafka_error {
    KERR_UNKNOWN_SERVER_ERROR = -1,
    KERR_NONE = 0,
    KERR_UNKNOWN_TOPIC_OR_PARTITION = 3,
    KERR_NOT_LEADER_OR_FOLLOWER = 6,
    KERR_BROKER_NOT_AVAILABLE = 8,
    KERR_STALE_CONTROLLER_EPOCH = 11,
    KERR_INVALID_TOPIC_EXCEPTION = 17,
    KERR_INVALID_REPLICA_ASSIGNMENT = 39,
    KERR_NOT_CONTROLLER = 41,
    KERR_INVALID_REQUEST = 42,
    KERR_KAFKA_STORAGE_ERROR = 56,
    KERR_FENCED_LEADER_EPOCH = 74,
    KERR_STALE_BROKER_EPOCH = 77,
    KERR_PREFERRED_LEADER_NOT_AVAILABLE = 80,
    KERR_ELIGIBLE_LEADERS_NOT_AVAILABLE = 83,
    KERR_ELECTION_NOT_NEEDED = 84,
    KERR_NO_REASSIGNMENT_IN_PROGRESS = 85,
    KERR_INVALID_UPDATE_VERSION = 95,
    KERR_UNKNOWN_TOPIC_ID = 100,
    KERR_BROKER_ID_NOT_REGISTERED = 102,
    KERR_INCONSISTENT_TOPIC_ID = 103,
    KERR_INELIGIBLE_REPLICA = 107,
    KERR_OPERATION_NOT_ATTEMPTED = 55,
};
const char *kafka_error_name(enum kafka_error e);

#define LEADER_NONE (-1)          /* LeaderAndIsr.NoLeader */
#define LEADER_DURING_DELETE (-2) /* LeaderAndIsr.LeaderDuringDelete */
#define EPOCH_DURING_DELETE (-2)  /* LeaderAndIsr.EpochDuringDelete: StopReplica's leader epoch, accepted by all */
#define LEADER_EPOCH_NONE (-1)    /* LeaderAndIsr.NoEpoch */

/* A list of broker ids, immutable and shared. Order matters: index 0 of an assignment is the preferred leader. */
struct broker_ids {
    atomic_uint refs;
    uint32_t n;
    int32_t id[];
};
struct broker_ids *broker_ids_new(const int32_t *ids, size_t n);
struct broker_ids *broker_ids_ref(struct broker_ids *b);
struct broker_ids *broker_ids_unref(struct broker_ids *b);       /* NULL in, NULL out */
bool broker_ids_contain(const struct broker_ids *b, int32_t id); /* false for NULL */
bool broker_ids_equal(const struct broker_ids *a, const struct broker_ids *b);

/* A topic's name and id, shared by all that speak of it. `id` is the 22 character text, "" if the topic has none. */
struct topic_ref {
    atomic_uint refs;
    char id[23];
    char name[];
};
struct topic_ref *topic_ref_new(const char *name, const char *id);
struct topic_ref *topic_ref_ref(struct topic_ref *t);
struct topic_ref *topic_ref_unref(struct topic_ref *t);

/* LeaderAndIsrPartitionState and UpdateMetadataPartitionState; fields that a request does not have are unset there. */
struct partition_state {
    atomic_uint refs;
    struct topic_ref *topic;
    int32_t partition;
    int32_t controller_epoch;
    int32_t leader;
    int32_t leader_epoch;
    int32_t partition_epoch; /* ZkVersion */
    struct broker_ids *isr, *replicas, *adding_replicas, *removing_replicas, *offline_replicas;
    bool is_new; /* LeaderAndIsr */
    int8_t leader_recovery_state;
};
struct partition_state *partition_state_new(struct topic_ref *topic, int32_t partition); /* refs the topic */
struct partition_state *partition_state_ref(struct partition_state *p);
struct partition_state *partition_state_unref(struct partition_state *p);

struct stop_replica_state {
    struct topic_ref *topic;
    int32_t partition;
    int32_t leader_epoch;
    bool delete_partition;
};

struct broker_endpoint {
    char *listener, *host, *security_protocol;
    int32_t port;
};
/* The array and what it owns; accepts NULL. */
void broker_endpoints_free(struct broker_endpoint *endpoints, size_t n);
struct live_broker {
    int32_t id;
    char *rack; /* NULL: none */
    struct broker_endpoint *endpoints;
    size_t n_endpoints;
};

enum control_api { API_LEADER_AND_ISR = 4, API_STOP_REPLICA = 5, API_UPDATE_METADATA = 6 };

struct control_request {
    atomic_uint refs;
    enum control_api api;
    int16_t version;        /* by inter.broker.protocol.version (ControllerChannelManager) */
    int64_t correlation_id; /* of the header: counts a controller's requests */
    int32_t controller_id, controller_epoch;
    bool full; /* UpdateMetadata: what it does not name is not there (Type FULL of version 8) */
    /* LeaderAndIsr, UpdateMetadata: owned references to partition states */
    GPtrArray *partition_states;
    /* StopReplica: struct stop_replica_state, each owning a reference to its topic */
    GArray *stop_states;
    /* UpdateMetadata: all live brokers (struct live_broker), sorted by id */
    GArray *live_brokers;
};
struct control_request *control_request_new(enum control_api api); /* with its arrays empty, refs 1 */
struct control_request *control_request_ref(struct control_request *r);
struct control_request *control_request_unref(struct control_request *r);

/* One answer: `error` is for the whole request; for LeaderAndIsr and StopReplica `partition_errors[i]` belongs to entry
 * i of the request (empty when the whole request failed).
 *
 * LeaderAndIsr knows three refusals by leader epoch, for which Kafka has one. STALE_CONTROLLER_EPOCH: it is known
 * already. FENCED_LEADER_EPOCH: the broker has a later state. NOT_LEADER_OR_FOLLOWER: it has another leader of the same
 * epoch. With the last two, what the controller says can never come true, and `leader_epochs[i]` is the epoch that the
 * broker has, as `CurrentLeader` is in the answers to Fetch and Produce (KIP-951). */
struct control_response {
    enum kafka_error error;
    GArray *partition_errors; /* of enum kafka_error */
    GArray *leader_epochs;    /* of int32_t, as many; NULL: nothing was fenced */
};
struct control_response *control_response_new(enum kafka_error error);
/* Entry `index`, which there is, is refused with one of the last two: the broker has `leader_epoch`. */
void control_response_fence(struct control_response *r, guint index, enum kafka_error error, int32_t leader_epoch);
void control_response_free(struct control_response *r);

/* ---- from a broker to the controller ---- */
enum broker_api { API_CONTROLLED_SHUTDOWN = 7, API_ALTER_PARTITION = 56, API_ALLOCATE_PRODUCER_IDS = 67 };

struct alter_partition {
    struct topic_ref *topic; /* owned reference */
    int32_t partition, leader_epoch, partition_epoch;
    struct broker_ids *new_isr; /* owned reference */
    int64_t *new_isr_epochs;    /* broker epochs of the members as the leader knows them, -1 unknown; owned */
    int8_t leader_recovery_state;
    /* response */
    enum kafka_error error;
    int32_t result_leader, result_leader_epoch, result_partition_epoch;
    struct broker_ids *result_isr; /* owned reference */
};

/* Made by the engine, answered by the controller thread through its environment (controller.h), then the engine's. */
struct broker_request {
    enum broker_api api;
    int32_t broker_id;
    int64_t broker_epoch;
    struct alter_partition *partitions; /* API_ALTER_PARTITION */
    size_t n_partitions;
    /* response */
    enum kafka_error error;
    GPtrArray *remaining; /* API_CONTROLLED_SHUTDOWN: char* "topic-partition" still led by the broker; may be NULL */
    int64_t producer_id_start;
    int32_t producer_id_len;
};
void broker_request_free(struct broker_request *r);
