#pragma once
/*
 * A small cluster in memory for tests of the controller: the real store in memory, a candidate for each broker, and
 * scripted brokers that answer requests as real ones do. Everything happens in world_settle(), in a fixed order.
 *
 * Faults: the n-th call of the environment that changes something can fail, or be the last thing a candidate does.
 */
#include "controller/controller.h"
#include "controller/broker/properties.h"
#include "fs/store/store.h"
#include "fs/tree/mirror.h"

#define MAX_BROKERS 6

struct world;

struct scripted_broker {
    struct world *world;
    int32_t id;
    bool running;
    int64_t session, epoch;
    struct broker_config *config;
    bool unclean_default;         /* in force */
    struct controller *candidate; /* NULL: none */
    GHashTable *replicas;         /* "t-0" -> struct hosted */
    GHashTable *metadata;         /* "t-0" -> leader (GINT_TO_POINTER) */
    GHashTable *broken;           /* set of "t-0": its log dir has failed */
    GHashTable *undeletable;      /* set of "t-0": StopReplica(delete) fails */
    bool silent;                  /* gets requests and does not answer */
    int64_t timer_ms;             /* of the candidate's, -1 not armed */
};

struct hosted {
    int32_t leader, leader_epoch, partition_epoch, controller_epoch;
    char topic_id[23];
    struct broker_ids *isr, *replicas;
    bool stopped; /* StopReplica without delete */
};

enum fault { FAULT_NONE, FAULT_FAIL, FAULT_FULL, FAULT_CRASH };

struct world {
    struct store *store;
    struct mirror *mirror;
    struct scripted_broker broker[MAX_BROKERS + 1]; /* by id */
    GQueue events;                                  /* struct queued */
    GQueue requests;                                /* struct sent */
    int64_t now_ms;
    bool quiet; /* no log of requests */
    uint64_t random;
    GString *event_log, *error_log, *request_log, *write_log;
    /* ---- faults ---- */
    enum fault fault;
    int fault_rc;        /* FAULT_FAIL: the result of that transaction; FAULT_FULL: and of later ones that need room */
    uint64_t fault_call; /* which one */
    uint64_t calls;      /* counted since world_arm() */
    uint64_t reads;      /* of nodes, by all candidates */
    struct broker_request *awaited;  /* of world_request() */
    struct scripted_broker *running; /* whose candidate handles an event now */
    /* called before each run of transactions: another client's chance */
    void (*before_run)(struct world *w, struct txn **txns, size_t n);
};

/* `properties`: added to every broker's file, may be NULL. The persistent roots are made; no broker runs. */
struct world *world_new(int brokers, const char *properties);
void world_free(struct world *w);

void world_start(struct world *w, int32_t broker);
void world_kill(struct world *w, int32_t broker); /* the session ends at once */
void world_stop(struct world *w, int32_t broker); /* controlled shutdown, then the end */
void world_start_all(struct world *w);
/* Until nothing happens any more: events, requests, answers, in-sync sets. */
void world_settle(struct world *w);
bool world_step(struct world *w); /* one event or request; false: none was there */
void world_drop_requests(struct world *w);
void world_fire_timer(struct world *w); /* of the active candidate */
void world_arm(struct world *w, enum fault fault, uint64_t call, int rc);

struct controller *world_active(struct world *w); /* NULL: none */

/* ---- a client ---- */
int world_run(struct world *w, struct txn *txn); /* takes it over; its rc */
int world_create(struct world *w, const char *path, const char *data);
int world_set(struct world *w, const char *path, const char *data);
int world_delete(struct world *w, const char *path);
void world_delete_tree(struct world *w, const char *path);
bool world_exists(struct world *w, const char *path);
char *world_get(struct world *w, const char *path);                           /* NULL: no node; "" for null data */
void world_topic(struct world *w, const char *topic, const char *partitions); /* {"0":[1,2]} */
void world_mark(struct world *w, const char *topic);
/* Writes REASSIGN: "t1 0 3,2; t2 1 1". An earlier request is replaced. */
#define REASSIGN "/admin/reassign_partitions"
void world_reassign(struct world *w, const char *entries);
/* Asks the active controller for a broker, and waits for what follows. Takes `r` over; its error, and its first
 * AlterPartition entry without what that owns. */
enum kafka_error world_request(struct world *w, struct broker_request *r, struct alter_partition *ret);
/* For the active candidate: an answer or request of a broker. */
void world_tell(struct world *w, struct controller_event *e);
/* Pushes an event as the thread would; ahead of all others. */
void world_push_first(struct world *w, struct controller_event *e);
/* Pushes an event as the thread would. */
void world_push(struct world *w, struct controller_event *e);

/* ---- what is there now ---- */
/* "leader 1 epoch 0 isr 1,2", or "none" */
char *world_state(struct world *w, const char *topic, int partition);
/* "1: t-0 t-1; 2: t-0", sorted; brokers without any replica are left out */
char *world_dirs(struct world *w);
/* All of .state that the controller serves for a path, or "ENOENT". */
char *world_ask(struct world *w, const char *path);
/* The tree as lines "path data", sorted, without what differs from run to run. */
char *world_tree(struct world *w);

/* ---- expectations: fail the test with what is there instead ---- */
void expect_state(struct world *w, const char *topic, int partition, const char *want);
void expect_asked(struct world *w, const char *path, const char *want);
void expect_dirs(struct world *w, const char *want);
void expect_data(struct world *w, const char *path, const char *pattern); /* a regular expression */
void expect_gone(struct world *w, const char *topic);
void expect_said(const GString *log, const char *text);
void expect_not_said(const GString *log, const char *text);
/* Brokers 1 to 3, all started. */
struct world *world_of_three(const char *properties);
