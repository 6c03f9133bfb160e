#pragma once
/*
 * The controller: straight-line, single-threaded code over an interface, as Kafka's is (kafka.controller). One object
 * per candidate broker; at most one of them is active. It handles one event at a time, runs batches of transactions
 * and waits for their results, and sends requests whose answers come back as events. It knows no thread, clock, disk
 * or store: production gives it the real ones (controller/thread.c), tests a cluster in memory (tests/fixture).
 *
 * Every function here is called on the one thread that owns the object.
 */
#include <glib.h>
#include "controller/requests.h"
#include "fs/tree/change.h"

struct controller;
struct controller_event;
struct state_question;
struct broker_config; /* controller/broker/properties.h */

enum controller_timer { TIMER_AUTO_PREFERRED_ELECTION, TIMER_N };

struct controller_env {
    void *ctx;
    /* ---- reads, of what is durable ---- */
    /* ZOK or ZNONODE; either result may be NULL if not wanted. */
    int (*get)(void *ctx, const char *path, struct bytes **ret_data, struct zstat *ret_stat);
    GPtrArray *(*children)(void *ctx, const char *path); /* names, owned by the caller; NULL: no such node */
    /* Of struct node_below, as mirror_below() (fs/tree/mirror.h). */
    GArray *(*below)(void *ctx, const char *path, const char *name);
    /* ---- writes: runs the transactions as one pipeline, in order, each all or nothing; returns when every one has its
     * result (txn->rc). The environment sets session, origin and generation. If the candidate's session has ended they
     * get ZSESSIONEXPIRED. They still belong to the caller. ---- */
    void (*run)(void *ctx, struct txn **txns, size_t n);
    /* ---- requests ---- */
    /* Sends; takes a reference of its own. `broker_epoch` is the one of this registration. The answer comes as
     * EVENT_CONTROL_RESPONSE; if the broker's channel is closed before, there is none. */
    void (*send)(void *ctx, int32_t broker_id, int64_t broker_epoch, struct control_request *request);
    /* ControllerChannelManager.addBroker / removeBroker: a channel exists between the two; what is in flight or queued
     * on a removed one is dropped. */
    void (*channel_open)(void *ctx, int32_t broker_id);
    void (*channel_close)(void *ctx, int32_t broker_id);
    /* Answers a broker's request (results are filled in); it is no longer the controller's afterwards. */
    void (*respond)(void *ctx, struct broker_request *request);
    /* unclean.leader.election.enable of the candidate's broker, in force now: what topics without an override have. */
    bool (*unclean_default)(void *ctx);
    /* ---- time and chance ---- */
    int64_t (*now_ms)(void *ctx);       /* wall clock, ms since the epoch */
    int64_t (*monotonic_us)(void *ctx); /* for the metrics */
    uint32_t (*random)(void *ctx);
    void (*timer)(void *ctx, enum controller_timer timer, int64_t delay_ms); /* (re)arms; < 0 disarms; -> EVENT_TIMER */
    /* ---- telling people ---- */
    void (*event)(void *ctx, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
    void (*error)(void *ctx, int err, const char *path, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
};

/* Names: kafka.controller.*Event. What carries no name here reads the tree when handled, as Kafka's handlers do. */
enum controller_event_type {
    EVENT_STARTUP,                    /* watch /controller, elect */
    EVENT_CONTROLLER_CHANGE,          /* /controller created or changed */
    EVENT_REELECT,                    /* /controller deleted */
    EVENT_EXPIRE,                     /* this candidate's session ended */
    EVENT_BROKER_CHANGE,              /* children of /brokers/ids */
    EVENT_BROKER_MODIFICATIONS,       /* data of /brokers/ids/<id>: names */
    EVENT_TOPIC_CHANGE,               /* children of /brokers/topics: names */
    EVENT_PARTITION_MODIFICATIONS,    /* data of /brokers/topics/<t>: names */
    EVENT_TOPIC_DELETION,             /* children of /admin/delete_topics: names */
    EVENT_TOPIC_DELETION_RETRY,       /* touch of a marker: names */
    EVENT_PARTITION_REASSIGNMENT,     /* /admin/reassign_partitions created or changed */
    EVENT_REPLICA_LEADER_ELECTION,    /* /admin/preferred_replica_election created or changed */
    EVENT_ISR_CHANGE_NOTIFICATION,    /* children of /isr_change_notification */
    EVENT_LOG_DIR_EVENT_NOTIFICATION, /* children of /log_dir_event_notification */
    EVENT_PARTITION_STATE_CHANGE,     /* data of .../partitions/<p>/state, by another hand: names "t/p" */
    EVENT_EPOCH_CHANGE,               /* /controller_epoch changed or deleted by another hand */
    EVENT_UNCLEAN_ELECTION_ENABLE,    /* a broker default or topic override (names) allows it now */
    EVENT_TIMER,                      /* timer */
    EVENT_CONTROL_RESPONSE,           /* broker_id, broker_epoch, request, response */
    EVENT_BROKER_REQUEST,             /* broker_request */
    EVENT_SHUTDOWN,                   /* orderly end of the candidate */
};

struct controller_event {
    enum controller_event_type type;
    /* Names of the children or nodes that changed since the event was enqueued: a set of char*, or NULL. At most one
     * event of such a type is queued at a time; later changes add their names to it (a one-shot watch, re-armed by the
     * handler). */
    GHashTable *names;
    enum controller_timer timer;
    int32_t broker_id;
    int64_t broker_epoch;
    struct control_request *request;   /* owned reference */
    struct control_response *response; /* owned */
    struct broker_request *broker_request;
    int64_t enqueued_us; /* for the queue time metric */
};
struct controller_event *controller_event_new(enum controller_event_type type);
void controller_event_free(struct controller_event *e);
/* Which event a change of the tree means, with its name in `names`; NULL if none. Pure. (The watches that
 * KafkaController sets.) */
struct controller_event *controller_event_of_change(const struct change *change);
/* Folds `from` into `into` if both are of the same type and carry only names (then true and `from` is freed). */
bool controller_event_merge(struct controller_event *into, struct controller_event *from);

/* `config`: of the broker that this candidate stands for; borrowed. */
struct controller *controller_new(
        int32_t broker_id, const struct broker_config *config, const struct controller_env *env);
void controller_free(struct controller *c);
/* Handles one event; takes it over. */
void controller_handle(struct controller *c, struct controller_event *event);

/* ---- what others may ask, between two events ---- */
bool controller_is_active(const struct controller *c);
int32_t controller_epoch(const struct controller *c);

/* Answers a question about `.state/controller/...`, `.state/topics/...` or `.state/metrics` (fs/policy.h) from the
 * state of the active candidate; `c` is NULL when no candidate is active (epoch 0, no topics). `path` is the whole
 * virtual path. controller/state.c. */
void controller_state_ask(struct controller *c, int query, const char *path, struct state_question *q);
