#pragma once
/*
 * The codecs of every znode Kafka writes, on cJSON, in one place (kafka.zk.ZkData and its neighbours).
 *
 * Decoders are lenient as Kafka's are: unknown keys are ignored, `version` is checked only where Kafka checks it. Each
 * returns true, or false with a reason in words in `*ret_why` (may be NULL if not wanted; to be freed). Outputs are
 * untouched on failure. Null or empty data is "false" with a reason. Encoders return one new reference, compact UTF-8
 * in Kafka's own key order. Pure, any thread.
 *
 * Strictness beyond Kafka's (duplicate keys, trailing bytes, control characters, UTF-8, depth, numbers that are none)
 * is checked once, by json_parse(), for all of them; policy/schema.c adds what only a writer must keep.
 */
#include <cjson/cJSON.h>
#include <glib.h>
#include "controller/requests.h"
#include "fs/tree/bytes.h"

/* RFC 8259 strictly: valid UTF-8, no duplicate keys, nothing after the value but white space, depth at most 64, numbers
 * finite. The reason names line and column, or the key. NULL on error. Free with cJSON_Delete(). */
cJSON *json_parse(const char *text, size_t len, char **ret_why);
/* The integer of an item if it is a number without fraction in [min, max]. */
bool json_integer(const cJSON *item, int64_t min, int64_t max, int64_t *ret);

/* /brokers/topics/<t> (TopicZNode) */
struct topic_assignment {
    int version;
    char topic_id[23];  /* "" if the node has none */
    GArray *partitions; /* struct partition_assignment, sorted by partition */
    char *unknown;      /* fields that are not Kafka's, kept when the node is rewritten; owned, NULL: none */
};
struct partition_assignment {
    int32_t partition;
    struct broker_ids *replicas, *adding, *removing; /* owned; adding and removing may be empty, never NULL */
};
bool topic_assignment_decode(const struct bytes *data, struct topic_assignment **ret, char **ret_why);
/* Version 3 with a topic id, or what `version` says (1, 2, 3). */
struct bytes *topic_assignment_encode(const struct topic_assignment *a);
struct topic_assignment *topic_assignment_new(void);
struct topic_assignment *topic_assignment_free(struct topic_assignment *a);
struct partition_assignment *topic_assignment_find(const struct topic_assignment *a, int32_t partition);
/* Adds a partition (references to the lists are taken over; NULL: empty) and keeps the order. */
void topic_assignment_add(struct topic_assignment *a, int32_t partition, struct broker_ids *replicas,
        struct broker_ids *adding, struct broker_ids *removing);

/* .../partitions/<p>/state (TopicPartitionStateZNode) */
struct leader_and_isr {
    int32_t leader, leader_epoch, controller_epoch;
    struct broker_ids *isr; /* owned */
    int8_t leader_recovery_state;
    int32_t partition_epoch; /* not in the data: the znode's version */
};
bool leader_and_isr_decode(const struct bytes *data, struct leader_and_isr *ret, char **ret_why);
struct bytes *leader_and_isr_encode(const struct leader_and_isr *l);
void leader_and_isr_clear(struct leader_and_isr *l);

/* /controller */
bool controller_znode_decode(const struct bytes *data, int32_t *ret_broker_id, char **ret_why);
struct bytes *controller_znode_encode(int32_t broker_id, int64_t timestamp_ms);
/* /controller_epoch: decimal digits */
bool controller_epoch_decode(const struct bytes *data, int32_t *ret_epoch, char **ret_why);
struct bytes *controller_epoch_encode(int32_t epoch);

/* /brokers/ids/<id> (BrokerIdZNode) */
struct broker_registration {
    struct broker_endpoint *endpoints;
    size_t n_endpoints;
    char *rack;       /* NULL: none */
    int32_t jmx_port; /* -1 */
    int64_t timestamp_ms;
    int version; /* 5, or 4 or 2 by the protocol version */
};
bool broker_registration_decode(const struct bytes *data, struct broker_registration **ret, char **ret_why);
struct bytes *broker_registration_encode(const struct broker_registration *b);
struct broker_registration *broker_registration_free(struct broker_registration *b);

/* /cluster/id */
bool cluster_id_decode(const struct bytes *data, char **ret_id, char **ret_why);
struct bytes *cluster_id_encode(const char *id);
/* org.apache.kafka.common.Uuid.randomUuid(): 22 characters into `ret[23]`; `random(arg)` gives 32 bits. */
void uuid_generate(uint32_t (*random)(void *arg), void *arg, char ret[23]);
bool uuid_valid(const char *text);

/* /config/<type>/<name>: `*ret` maps key -> value (char* -> char*). Kafka: no object "config" reads as empty; a value
 * that is no string is an error. */
bool config_entity_decode(const struct bytes *data, GHashTable **ret, char **ret_why);
struct bytes *config_entity_encode(GHashTable *config); /* keys sorted */
/* /config/changes/config_change_<n>: `*ret_path` is "<type>/<rest>" (version 1: "<entity_type>/<entity_name>"). */
bool config_change_decode(const struct bytes *data, char **ret_path, char **ret_why);

/* /admin/reassign_partitions: entries in order; one that is wrong by itself has `why` set and the rest usable. */
struct reassignment_entry {
    char *topic;
    int32_t partition;
    struct broker_ids *replicas; /* owned */
    char *why;                   /* owned; NULL: nothing is wrong with it */
    char *unknown;               /* fields that are not Kafka's, kept when the file is rewritten; owned, NULL: none */
};
/* `*ret`: of struct reassignment_entry; `*ret_unknown` (if wanted): such fields beside "partitions", or NULL; owned. */
bool reassignment_decode(const struct bytes *data, GArray **ret, char **ret_unknown, char **ret_why);
struct bytes *reassignment_encode(const GArray *entries, const char *unknown);
/* /admin/preferred_replica_election, /isr_change_notification/...: "topic", "partition" pairs; replicas are NULL. */
bool partition_list_decode(const struct bytes *data, GArray **ret, char **ret_why);
struct bytes *partition_list_encode(const GArray *entries);
/* /log_dir_event_notification/... */
bool log_dir_event_decode(const struct bytes *data, int32_t *ret_broker_id, char **ret_why);
struct bytes *log_dir_event_encode(int32_t broker_id);
/* /latest_producer_id_block */
bool producer_id_block_decode(const struct bytes *data, int64_t *ret_start, int64_t *ret_end, char **ret_why);
/* Where the next block of `len` ids starts; no data: at 0. False also if there are no more. */
bool producer_id_block_next(const struct bytes *data, int64_t len, int64_t *ret_start, char **ret_why);
struct bytes *producer_id_block_encode(int32_t broker_id, int64_t start, int64_t end);
/* /feature: `features` is always empty here */
bool feature_decode(const struct bytes *data, int *ret_version, int *ret_status, char **ret_why);
struct bytes *feature_encode(int version, int status);

/* Topic names (org.apache.kafka.common.internals.Topic): NULL, or why the name is none. */
const char *topic_name_why_bad(const char *name);
