#pragma once
/*
 * What an active controller holds in memory (kafka.controller.ControllerContext): live brokers, topics, partitions with
 * their assignment and leadership, the state of every replica, and which topics are queued for deletion. Filled by the
 * failover from the tree, emptied by the resignation. Only data and its bookkeeping; no decisions, no environment.
 *
 * Sized for hundreds of thousands of partitions: names and ids are shared (topic_ref), equal replica lists are one
 * object (context_intern), the partitions of a topic that come together are one allocation, readiness for deletion is
 * kept as counters per topic.
 */
#include <string.h>
#include "controller/json/codec.h"
#include "controller/requests.h"

enum replica_state { /* kafka.controller.ReplicaState */
    REPLICA_NON_EXISTENT,
    REPLICA_NEW,
    REPLICA_ONLINE,
    REPLICA_OFFLINE,
    REPLICA_DELETION_STARTED,
    REPLICA_DELETION_SUCCESSFUL,
    REPLICA_DELETION_INELIGIBLE,
    REPLICA_STATES,
};
const char *replica_state_name(enum replica_state state); /* "OnlineReplica" */

enum partition_status { /* kafka.controller.PartitionState; `struct partition_state` is the one in requests */
    PARTITION_NON_EXISTENT,
    PARTITION_NEW,
    PARTITION_ONLINE,
    PARTITION_OFFLINE,
    PARTITION_STATUSES,
};
const char *partition_status_name(enum partition_status status); /* "OnlinePartition" */

struct replica {
    int32_t broker;
    enum replica_state state;
};

#define REPLICAS_INLINE 3

struct partition {
    struct topic *topic;
    int32_t id;
    uint8_t status; /* enum partition_status */
    bool has_leadership;
    bool reassigning;       /* in Kafka's partitionsBeingReassigned */
    int32_t batch_slot;     /* channel.c: its entry in the batch that is being built, -1 outside */
    int32_t scratch;        /* of one function at a time, -1 outside */
    int32_t shown_epoch;    /* the highest leader epoch that a broker has shown when this one was not above it */
    uint32_t n_states;      /* replicas that have a state: the assigned ones, and those on their way out */
    struct replica *states; /* in the order in which they came: `few`, or allocated */
    struct replica few[REPLICAS_INLINE];
    struct broker_ids *replicas, *adding, *removing; /* interned, never NULL */
    struct leader_and_isr leadership;                /* as last read or written, if has_leadership; isr interned */
};

struct deletion { /* a topic in Kafka's topicsToBeDeleted; the topic itself may be gone already */
    char *name;
    bool started;    /* topicsWithDeletionStarted */
    bool ineligible; /* topicsIneligibleForDeletion */
    bool pending;    /* something changed: resumeDeletions has to look at it */
    int64_t since;   /* correlation id of the last request before its replicas were told to go (again) */
    char *failure;   /* what a broker answered last, in words; NULL: nothing failed */
};

enum topic_unsaved {
    TOPIC_SAVED,
    TOPIC_LACKS_ID,   /* the node lacks the id that memory has; its partitions stay as somebody wrote them */
    TOPIC_REASSIGNED, /* the node lacks assignments that memory has */
};

struct topic {
    struct topic_ref *ref;   /* name and id */
    int64_t czxid;           /* of its node: the same name made again is another topic */
    GPtrArray *partitions;   /* struct partition, sorted by id */
    GPtrArray *blocks;       /* what they lie in */
    struct partition *spare; /* the rest of the last block */
    guint n_spare;
    struct deletion *deletion; /* NULL: not queued for deletion */
    uint32_t n_reassigning;
    uint32_t n_replicas[REPLICA_STATES]; /* by state */
    enum topic_unsaved unsaved;          /* what its node lacks */
};

struct broker { /* a live one */
    int32_t id;
    int64_t epoch; /* czxid of its registration */
    struct broker_registration *registration;
    bool shutting_down;
    GHashTable *offline; /* set of struct partition *: replicas in a failed log dir */
};

struct context {
    GPtrArray *brokers;    /* struct broker, live or shutting down, sorted by id */
    GHashTable *topics;    /* name -> struct topic */
    GHashTable *topic_ids; /* id -> struct topic */
    GHashTable *deletions; /* name -> struct deletion */
    GHashTable *interned;  /* set of struct broker_ids */
    guint interned_limit;
    struct broker_ids *none; /* the empty list */
    size_t n_partitions, n_waiting /* NewPartition or OfflinePartition */;
};

void context_init(struct context *x);
void context_clear(struct context *x); /* everything; may be initialised again */

/* ---- brokers ---- */
struct broker *context_broker(const struct context *x, int32_t id);
int context_broker_index(const struct context *x, int32_t id); /* in `brokers`, -1: not live */
/* Takes the registration over. */
struct broker *context_broker_add(
        struct context *x, int32_t id, int64_t epoch, struct broker_registration *registration);
void context_broker_remove(struct context *x, int32_t id);

/* ---- topics ---- */
struct topic *context_topic(const struct context *x, const char *name);
struct topic *context_topic_add(struct context *x, const char *name, const char *id, int64_t czxid);
void topic_set_id(struct context *x, struct topic *t, const char *id);
/* Frees it with its partitions; they must not be in a batch. Its deletion, if any, stays. */
void context_topic_remove(struct context *x, struct topic *t);
uint32_t topic_replica_count(const struct topic *t); /* replicas that have a state */

/* ---- partitions ---- */
struct partition *topic_partition(const struct topic *t, int32_t id);
struct partition *context_partition(const struct context *x, const char *topic, int32_t id);
/* All of them; none may come or go meanwhile. The order is the same on every machine, and no more. */
struct partition_iter {
    GHashTableIter topics;
    const struct topic *topic;
    guint next;
};
struct partition_iter partition_iter(const struct context *x);
struct partition *partition_iter_next(struct partition_iter *it); /* NULL: that was the last */
/* So many are about to be added. */
void topic_partitions_reserve(struct topic *t, guint n);
/* References to the lists are taken over. */
struct partition *topic_partition_add(struct context *x, struct topic *t, int32_t id, struct broker_ids *replicas,
        struct broker_ids *adding, struct broker_ids *removing);
void partition_assign(struct context *x, struct partition *p, struct broker_ids *replicas, struct broker_ids *adding,
        struct broker_ids *removing);
/* ReplicaAssignment: being reassigned = something to add or remove; target = replicas without the removing ones,
 * origin = without the adding ones. New references. */
bool partition_is_being_reassigned(const struct partition *p);
struct broker_ids *partition_target(struct context *x, const struct partition *p);
struct broker_ids *partition_origin(struct context *x, const struct partition *p);
void partition_set_status(struct context *x, struct partition *p, enum partition_status status);
void partition_set_reassigning(struct partition *p, bool reassigning);
/* Takes the reference to the ISR over. */
void partition_set_leadership(struct context *x, struct partition *p, const struct leader_and_isr *l);
int partition_compare(const void *a, const void *b); /* of two struct partition **: by topic name, id */

/* ---- replicas ---- */
enum replica_state replica_get_state(const struct partition *p, int32_t broker);
void replica_set_state(struct partition *p, int32_t broker, enum replica_state state);
/* Its broker is live, not shutting down, and the replica is not in a failed log dir (isReplicaOnline). */
bool replica_is_online(const struct context *x, const struct partition *p, int32_t broker);

/* ---- lists ---- */
/* The one object for this content; takes the reference over, returns another. */
struct broker_ids *context_intern(struct context *x, struct broker_ids *ids);
/* `a` without the members of `b`, order kept. New reference. */
struct broker_ids *context_without(struct context *x, const struct broker_ids *a, const struct broker_ids *b);
/* "1,2" */
void append_broker_ids(GString *s, const struct broker_ids *ids);
char *broker_ids_text(const struct broker_ids *ids);
/* The keys of a set of names, ascending, so that the same happens in the same order each time; owned by the caller. */
GPtrArray *names_sorted(GHashTable *names);
