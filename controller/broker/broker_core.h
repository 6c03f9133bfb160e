#pragma once
/* What the files of the broker core share. Not for others. */
#include "controller/broker/broker.h"
#include "controller/broker/replica_manager.h"

struct pending_request {
    int32_t controller_id;
    int64_t broker_epoch;
    struct control_request *request; /* owned reference */
    gen_t gen;                       /* held */
};

#define DISK_WORKS (DISK_STRAY + 1)

enum item_action {
    MAKE_LEADER,
    MAKE_FOLLOWER,
    MAKE_LOG_ONLY, /* the leader is not alive: the log is made, the state is not applied (KAFKA-1647) */
    RECORD_ID,     /* the only news is the topic id */
    DELETE_LOG,
    SET_ASIDE, /* at start: the directory of another topic of that name */
    CLEAR_UP,  /* at start: a torn directory of a replica that lives in another dir */
};

/* One replica that the request in work asks disk work or a state change for. */
struct work_item {
    uint32_t index; /* entry of the request */
    enum item_action action;
    struct replica *replica;
    bool existing; /* the log was there before: another dir must not take its place */
};

/* The request in work (or the start): waits for its disk batches. */
struct request_work {
    struct pending_request *cause; /* NULL: the start */
    gen_t gen;
    struct control_response *response;
    GArray *items; /* struct work_item */
    unsigned batches;
    struct disk_batch **building; /* per dir and kind of work; not submitted yet */
    void (*task_done)(struct broker *b, struct request_work *w, struct work_item *item, const struct log_task *task,
            const struct disk_batch *batch);
    void (*finish)(struct broker *b, struct request_work *w);
};

/* A torn directory of a replica that is complete in another dir. */
struct leftover {
    struct replica *replica;
    int dir;
};

struct isr_manager {
    GQueue waiting;    /* struct replica: followers have fetched, none is alive or all are refused for now */
    GQueue queued;     /* struct replica: to be proposed */
    GQueue proposed;   /* struct replica: in flight */
    GHashTable *early; /* fetches for a leader epoch that is still to come */
    struct broker_request *in_flight; /* AlterPartition; the environment's, compared only */
    int32_t in_flight_controller_epoch;
    unsigned writes; /* IBP < 2.7: own writes in flight */
    GArray *changed; /* IBP < 2.7: struct fetch_partition, written and not yet notified */
    bool parked;     /* after an error, until the timer or news of another controller */
    int parked_ms;   /* how long, the last time; 0: the last answer was good */
};

struct broker {
    int32_t id;
    int64_t epoch;
    const struct broker_config *config;
    char *const *dirs;
    const struct broker_env *env;
    bool loaded, halted;
    int32_t controller_id, controller_epoch; /* the highest seen */
    struct replica_manager rm;
    GArray *leftovers; /* struct leftover, while loading */
    struct metadata_cache *metadata;
    GQueue requests; /* struct pending_request */
    struct request_work *work;
    struct isr_manager isr;
    size_t n_out_of_sync;
    GArray *fetches; /* struct outgoing_fetch, to be sent at the end of this input */
    struct {
        GQueue refused; /* struct txn: the store had no room for it; written again by the timer */
        int wait_ms;    /* how long, the last time; 0: the last one was taken */
    } notes;
    struct {
        bool started, done;
        int attempts_left;
        struct broker_request *in_flight;
    } shutdown;
};

/* ---- broker.c ---- */
void broker_run_requests(struct broker *b);
/* Submits what is in `building`. */
void broker_submit_work(struct broker *b, struct request_work *w);
struct request_work *broker_work_new(struct broker *b, struct pending_request *cause, gen_t gen);
struct work_item *broker_work_add(struct request_work *w, uint32_t index, struct replica *r, enum item_action action);
/* Adds a task for item `item` (its position in `items`) to the batch that is being built for `dir`. */
struct log_task *broker_work_task(struct request_work *w, enum disk_work work, int dir, guint item);
void broker_set_error(struct request_work *w, uint32_t index, enum kafka_error error);
/* "topic-partition", newly allocated */
char *broker_log_name(const struct replica *r);
void broker_forget_replica(struct broker *b, struct replica *r); /* with everything that hangs on it */
/* Without a role any more: neither led nor followed. */
void broker_clear_role(struct broker *b, struct replica *r, enum replica_role role);

/* How long to wait before the next attempt; `last_ms`: before the last one, 0 if that was the first. */
int broker_backoff_ms(int last_ms);

/* Are they of two topics of one name? Not known if one of them is "". */
bool broker_topic_ids_differ(const char *a, const char *b);
/* The id of the topic in the tree, newly allocated; "" if it has none, or is not there. */
char *broker_topic_id_in_tree(const struct broker *b, const char *topic);

/* ---- one file each ---- */
void leader_and_isr_start(struct broker *b, struct request_work *w);
void stop_replica_start(struct broker *b, struct request_work *w);
void update_metadata_apply(struct broker *b, struct request_work *w);
void controlled_shutdown_answered(struct broker *b, struct broker_request *r, gen_t gen);
void controlled_shutdown_attempt(struct broker *b, gen_t gen);

/* ---- isr.c ---- */
void isr_init(struct broker *b);
void isr_clear(struct broker *b);
void isr_became_leader(struct broker *b, struct replica *r, gen_t gen);
/* Forgets what the replica knew as a leader. */
void isr_drop(struct broker *b, struct replica *r);
/* A live broker is none any more: what it fetched is forgotten. */
void isr_broker_left(struct broker *b, int32_t id);
/* Live brokers have changed. */
void isr_brokers_changed(struct broker *b, gen_t gen);
/* Fetches that came too early, for this leader epoch or one before it, are out of date. */
void isr_forget_early(struct broker *b, const char *topic, int32_t partition, int32_t last_epoch);
/* A control request of a controller was accepted. */
void isr_controller_heard(struct broker *b, gen_t gen);
/* Sends what is queued, if nothing is in flight. */
void isr_flush(struct broker *b, gen_t gen);
void isr_answered(struct broker *b, struct broker_request *r, gen_t gen);
void isr_written(struct broker *b, struct txn *txn, gen_t gen);
void isr_retry(struct broker *b, gen_t gen); /* the timer */

/* ---- notes.c ---- */
/* A sequential node below `path`, for the controller. One reference to `data` is taken over. */
void note_write(struct broker *b, const char *path, struct bytes *data, gen_t gen);
void note_written(struct broker *b, struct txn *txn); /* the answer; takes it over */
void notes_retry(struct broker *b, gen_t gen);        /* the timer */
void notes_clear(struct broker *b);

/* ---- fetch.c ---- */
GArray *fetch_list_new(void);
void fetch_list_free(GArray *list);
/* Queues a fetch of a follower that is out of sync. */
void fetch_add(struct broker *b, struct replica *r);
void fetch_flush(struct broker *b, gen_t gen);
void fetch_set_out_of_sync(struct broker *b, struct replica *r, bool out);
/* All followers that are out of sync; `leader` -1: of any. */
void fetch_again(struct broker *b, int32_t leader);
