#pragma once
/*
 * The broker core: one incarnation of one broker, from its registration to its end. It handles control requests in
 * strict order, one at a time (KafkaApis, ReplicaManager), keeps the metadata cache (ZkMetadataCache), decides which
 * log dir a replica lives in (LogManager), and keeps up the in-sync sets it leads (Partition, AlterPartitionManager).
 *
 * Pure: it knows no thread, clock, disk or store, only a table of functions. The engine (engine.h) gives it the real
 * ones, a simulation gives it others. Every function is called on the one thread that owns the broker; an environment
 * function must not call back into the broker before it has returned. Whatever the environment is asked for is answered
 * by a call of broker_*() later, or never (a lost message, a dead peer): the broker copes with both.
 *
 * `gen` is the generation of the cause (fs/settle.h). It is held by the caller for the time of the call; what the
 * broker asks of the environment carries it on, and the environment holds it until it has answered. What the broker
 * keeps for later without anything outstanding it holds itself, through `hold` and `release`.
 *
 *   broker.c           fencing and order of requests; leader_and_isr.c, stop_replica.c, update_metadata.c: each of them
 *   loading.c          what the log dirs hold at the start, and what becomes of it
 *   replica_manager.c  partition -> role, log dir, leader epoch; choice of log dir; failed log dirs
 *   metadata_cache.c   what UpdateMetadata said
 *   isr.c              in-sync sets grow by AlterPartition, or by the leader's own write (isr_write.c); fetch.c: the
 *                      fetches of followers
 *   notes.c            what is said to the controller through the tree
 *   controlled_shutdown.c
 */
#include "controller/broker/metadata_cache.h"
#include "controller/broker/properties.h"
#include "controller/requests.h"
#include "fs/settle.h"
#include "fs/tree/txn.h"

struct broker;

/* ---- work for a log dir ---- */
enum disk_work {
    DISK_CREATE, /* make the replica's directory, or complete it (a torn one, a missing topic id); `-EEXIST` never:
                    a directory of another topic id is renamed to its `-stray` name first */
    DISK_DELETE, /* rename to `-delete` and remove (or remove after the delay), then fsync the log dir, once a batch; a
                    directory that is not there counts as deleted; one of another topic id is renamed to `-stray` */
    DISK_STRAY,  /* rename to the `-stray` name, never remove */
};
struct log_task {
    struct topic_ref *topic; /* owned reference; its id is "" if unknown */
    int32_t partition;
    bool future;    /* DISK_DELETE: the `-future` directory of that replica, not its current one */
    uint32_t index; /* the broker's own */
    /* result: 0 or -errno. An error of one task says nothing about the others unless the batch has `failed`. */
    int err;
    bool aside; /* result of DISK_CREATE, DISK_DELETE: what lay there was not this topic's and is a `-stray` now */
};
struct disk_batch {
    enum disk_work work;
    int dir;       /* index of the log dir */
    GArray *tasks; /* struct log_task */
    /* result: why the whole log dir has failed (an IOException in Kafka's words), or NULL; owned. Tasks that were not
     * done have an error. */
    char *failed;
};
struct disk_batch *disk_batch_new(enum disk_work work, int dir);
/* Takes a reference to the topic. The task is good until the next one is added. */
struct log_task *disk_batch_add(struct disk_batch *b, struct topic_ref *topic, int32_t partition);
/* The log dir has failed: the tasks from `from` on have `err`. Takes `why` over. */
void disk_batch_fail(struct disk_batch *b, guint from, int err, char *why);
void disk_batch_free(struct disk_batch *b);

/* ---- a follower's fetch: "I have applied this leader epoch and follow you". No data moves. ---- */
struct fetch_partition {
    struct topic_ref *topic; /* owned reference */
    int32_t partition, leader_epoch;
};
struct fetch_request {
    int32_t replica_id;
    int64_t replica_epoch; /* broker epoch of the follower */
    GArray *partitions;    /* struct fetch_partition */
};
void fetch_request_free(struct fetch_request *f);

enum broker_timer {
    BROKER_TIMER_ALTER_PARTITION,     /* retry after an error of the whole request */
    BROKER_TIMER_FETCH,               /* followers that are out of sync fetch again */
    BROKER_TIMER_CONTROLLED_SHUTDOWN, /* next attempt */
    BROKER_TIMER_NOTE,                /* what the store had no room for is written again */
    BROKER_TIMER_N,
};

struct broker_env {
    void *ctx;
    /* Starts a batch in its log dir and takes it over; the same batch comes back in broker_disk_done(). Batches of one
     * dir are done in order. */
    void (*disk)(void *ctx, struct disk_batch *batch, gen_t gen);
    /* Answers a control request; both ids as they came with it. Takes the response over, and one reference to the
     * request. */
    void (*respond)(void *ctx, int32_t controller_id, int64_t broker_epoch, struct control_request *request,
            struct control_response *response, gen_t gen);
    /* Asks the controller; takes the request over; it comes back, filled in, in broker_answered(). */
    void (*ask_controller)(void *ctx, int32_t controller_id, struct broker_request *request, gen_t gen);
    /* To the broker `leader`, if it runs: broker_fetch() there. Takes the request over. */
    void (*fetch)(void *ctx, int32_t leader, struct fetch_request *request, gen_t gen);
    /* The tree: reads what is durable (ZOK or ZNONODE); runs a transaction, taken over, that comes back in
     * broker_txn_done(). The environment sets session, origin, generation, `done` and `arg`. */
    int (*get)(void *ctx, const char *path, struct bytes **ret_data, struct zstat *ret_stat);
    void (*submit)(void *ctx, struct txn *txn, gen_t gen);
    void (*timer)(void *ctx, enum broker_timer timer, int64_t delay_ms); /* (re)arms -> broker_timer(); < 0 disarms */
    int64_t (*now_ms)(void *ctx);                                        /* monotonic */
    void (*hold)(void *ctx, gen_t gen);
    void (*release)(void *ctx, gen_t gen);
    /* The first replica of a topic is made here; the last one is gone. For the topic's configuration. */
    void (*topic_created)(void *ctx, const char *topic);
    void (*topic_removed)(void *ctx, const char *topic);
    /* The last log dir has failed: the broker cannot go on (Kafka halts). Once. */
    void (*halt)(void *ctx, const char *why);
    /* Controlled shutdown is over, with or without success. Once. */
    void (*shutdown_done)(void *ctx, gen_t gen);
    void (*event)(void *ctx, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
    void (*error)(void *ctx, int err, const char *path, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
};

/* `epoch`: the registration's czxid. `config`, and the array of log dirs and its strings, are borrowed. Requests are
 * queued until broker_loaded(). */
struct broker *broker_new(int32_t id, int64_t epoch, const struct broker_config *config, char *const *dirs,
        size_t n_dirs, const struct broker_env *env);
void broker_free(struct broker *b); /* drops everything; what is outstanding must not be answered any more */

/* ---- loading: what a log dir holds (LogManager.loadLogs) ---- */
/* `topic_id` "" if unknown; `torn`: made, but not completely: it is made again in place when it is asked for. -EEXIST:
 * another log dir has that replica too (then `*ret_other` is its index). */
int broker_log_found(struct broker *b, int dir, const char *topic, int32_t partition, const char *topic_id, bool torn,
        int *ret_other);
/* A `-future` directory (a replica that was being moved to this dir): it counts when a dir is chosen, and goes when its
 * replica is deleted. */
void broker_future_found(struct broker *b, int dir, const char *topic, int32_t partition);
/* All log dirs are loaded. Directories of a topic that the tree knows under another id are set aside; then requests are
 * handled. */
void broker_loaded(struct broker *b, gen_t gen);

/* ---- inputs ---- */
/* Takes a reference of its own. `broker_epoch`: as the controller knows it, -1 unknown. */
void broker_control_request(
        struct broker *b, int32_t controller_id, int64_t broker_epoch, struct control_request *request, gen_t gen);
void broker_disk_done(struct broker *b, struct disk_batch *batch, gen_t gen);      /* takes the batch over */
void broker_answered(struct broker *b, struct broker_request *request, gen_t gen); /* takes it over */
void broker_txn_done(struct broker *b, struct txn *txn, gen_t gen);                /* takes it over */
void broker_fetch(struct broker *b, const struct fetch_request *request, gen_t gen);
void broker_timer(struct broker *b, enum broker_timer timer, gen_t gen);
/* A log dir has failed (seen by its worker or the watcher): it goes offline with its replicas until the broker's next
 * start, and the controller is told through /log_dir_event_notification. A second failure of it is nothing. */
void broker_dir_failed(struct broker *b, int dir, const char *why, gen_t gen);
/* Somebody removed a replica's directory: said once; it counts as deleted when asked to be. */
void broker_log_removed(struct broker *b, int dir, const char *topic, int32_t partition);
/* Orderly stop: asks the controller to move leaderships away (controlled.shutdown.*), then env->shutdown_done(). */
void broker_shutdown(struct broker *b, gen_t gen);

/* ---- views ---- */
enum replica_role {
    REPLICA_NONE, /* a log without a partition: loaded, or stopped, or without a live leader so far */
    REPLICA_FOLLOWER,
    REPLICA_LEADER,
    REPLICA_OFFLINE, /* its log dir has failed */
};
struct replica_view {
    struct topic_ref *topic; /* borrowed */
    int32_t partition;
    enum replica_role role;
    int dir; /* index of the log dir, -1: none */
    int32_t leader_epoch, partition_epoch;
    const struct broker_ids *isr; /* a leader's; NULL otherwise */
};
int32_t broker_controller_id(const struct broker *b); /* as last heard, -1: none */
bool broker_dir_online(const struct broker *b, int dir);
bool broker_replica(const struct broker *b, const char *topic, int32_t partition, struct replica_view *ret);
/* Stops when `visit` returns false. */
void broker_each_replica(const struct broker *b, bool (*visit)(void *arg, const struct replica_view *view), void *arg);
const struct metadata_cache *broker_metadata(const struct broker *b);
/* Nothing queued, in work or to be sent (a simulation's end). */
bool broker_idle(const struct broker *b);
