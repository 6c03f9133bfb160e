#pragma once
/*
 * What the files of the engine share. All of it belongs to the engine thread, unless a comment says otherwise.
 *
 *   engine.c        the thread, its messages, its start and end
 *   commands.c      what other threads ask of it
 *   host.c          a broker of this daemon, and its lives (incarnations)
 *   startup.c       brokers that start together; registration.c: what they write to the tree
 *   environment.c   what a broker core sees of the world; jobs.c: what its disks have to do
 *   broker_files.c  the properties file of one broker; cluster_files.c: all of a directory
 *   state.c         `.state/brokers`
 */
#include <pthread.h>
#include "controller/broker/broker.h"
#include "controller/broker/disk_worker.h"
#include "controller/broker/engine.h"
#include "controller/broker/watcher.h"
#include "controller/config/manager.h"
#include "controller/thread.h"
#include "fs/tree/mirror.h"

#define DISK_SILENCE_MS 30000

struct incarnation;
struct start_group;

/* One message to the engine thread: `run` is called there. */
struct engine_msg {
    struct queue_item item; /* first */
    void (*run)(struct engine *e, struct engine_msg *m);
    struct incarnation *inc; /* counted in inc->refs */
    struct start_group *group;
    int32_t broker_id, controller_id;
    int64_t broker_epoch;
    struct control_request *request;       /* owned reference */
    struct broker_request *broker_request; /* owned */
    struct fetch_request *fetch;           /* owned */
    struct txn *txn;                       /* owned */
    struct disk_job *job;                  /* owned */
    struct disk_worker *worker;
    uint64_t key;
    int dir;
    bool flag;
    bool kept;        /* `run` has put it into inc->early */
    GPtrArray *names; /* owned */
    char *text;       /* owned */
    void (*answer)(void *arg, int err);
    void *arg;
};
struct engine_msg *engine_msg_new(void (*run)(struct engine *e, struct engine_msg *m));
void engine_msg_free(struct engine_msg *m);
/* One line of `.state/events`, with the time. */
void engine_event(struct engine *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Any thread. `gen` is held by the caller. False: the engine has ended; the message is freed. */
bool engine_post(struct engine *e, struct engine_msg *m, gen_t gen);

/* Who waits for a broker to start. */
struct start_waiter {
    void (*answer)(void *arg, int err);
    void *arg;
};

enum host_state { HOST_STOPPED, HOST_STARTING, HOST_RUNNING, HOST_STOPPING, HOST_FAILED };

/* A broker of this daemon, whether it runs or not. Lives as long as the engine. */
struct host {
    struct engine *engine;
    int32_t id; /* -1: not known yet */
    char *file;
    enum host_state state;
    char *why;                    /* HOST_FAILED */
    struct broker_config *config; /* as last read, for the next start; NULL: the incarnation has it, or it was bad */
    struct incarnation *now;      /* NULL: none */
    unsigned old_parts;           /* of former lives: threads and sessions that have not ended */
    unsigned sessions;            /* of those: sessions, so the registration may still be there */
    bool start_again;             /* asked to start while it is stopping */
    GArray *waiters;              /* struct start_waiter: of the start under way */
    GArray *mourners;             /* struct start_waiter: a kill that came while it was dying by itself */
    GHashTable *defaults;         /* values of the file as last read; protected by engine->lock */
};

/* One log dir of an incarnation. */
struct inc_dir {
    char *path;
    struct disk_worker *worker; /* NULL: none, or on its end */
    bool online;                /* opened, and not failed */
    GQueue outstanding;         /* struct disk_job, in the order of submission */
    int64_t last_answer_ms;
    bool silent;          /* for longer than DISK_SILENCE_MS: nobody waits for it */
    unsigned dirty;       /* bits of enum checkpoint: to be written */
    GHashTable *meta;     /* owned reference, while starting; NULL: none */
    atomic_bool end_held; /* the worker's end is waited for; whoever takes the flag down releases it */
    gen_t end_gen;
    int64_t end_ms;
};

/* One life of a broker: from the start of the start to its end. Freed when nothing refers to it any more. */
struct incarnation {
    struct engine *engine;
    struct host *host;
    uint64_t key;  /* unique; for the watcher */
    unsigned refs; /* one of the host, one of each thing under way */
    bool dead;
    struct broker_config *config;
    size_t n_dirs;
    struct inc_dir *dirs;
    char **paths; /* of dirs, for the core */
    int64_t session, epoch;
    struct broker_endpoint *endpoints; /* as registered */
    size_t n_endpoints;
    struct broker_env env;
    GQueue early;        /* struct engine_msg: for a core that is about to be made; their generations are held */
    struct broker *core; /* NULL before registration */
    struct config_manager *configs;
    atomic_bool unclean_default;                  /* in force; the candidate reads it */
    int64_t timers[BROKER_TIMER_N];               /* monotonic ms, -1: not armed */
    int64_t high_watermark_ms, recovery_point_ms; /* next checkpoints, -1: not yet */
    GHashTable *holds;                            /* gen_t -> count: generations that the core holds */
    gen_t gen_floor;                              /* generations below are not held any more: see inc_gen() */
    unsigned loading;                             /* JOB_LOAD outstanding */
    unsigned closing;                             /* JOB_CLOSE outstanding */
    /* while starting */
    struct start_group *group;
    bool ready;       /* all log dirs are open */
    unsigned opening; /* JOB_OPEN outstanding */
    int refused;      /* errno, 0: not */
    char *refused_why;
    bool candidate; /* a candidate stands for this broker */
};

struct engine {
    struct engine_config config;
    char *cluster_dir; /* NULL: none */
    char *cluster_id;  /* NULL: not known yet */
    struct queue *queue;
    pthread_t thread;
    bool thread_runs, stopping;
    bool hung; /* threads were left behind at the end: nothing may be freed */
    /* protects host->defaults and the list of hosts against engine_default_int(), and `watcher` against engine_look()
     */
    pthread_mutex_t lock;
    GPtrArray *hosts;  /* struct host */
    GPtrArray *incs;   /* struct incarnation, all that are not freed */
    GPtrArray *groups; /* struct start_group */
    struct watcher *watcher;
    uint64_t next_key;
    gen_t gen;            /* of the message or timer being handled; held */
    unsigned txns;        /* transactions and questions to the controller under way */
    GHashTable *removing; /* paths of config changes whose removal is one of them */
    int64_t stop_deadline_ms;
};

int64_t engine_now_ms(void); /* monotonic */

/* ---- commands.c ---- */
/* Starts a broker by its id; `answer` may be NULL. */
void engine_start_host(struct engine *e, int32_t id, void (*answer)(void *arg, int err), void *arg, gen_t gen);
/* Controlled shutdown. */
void engine_stop_host(struct engine *e, struct host *h, gen_t gen);

/* ---- host.c ---- */
void host_set_id(struct host *h, int32_t id);
struct host *host_new(struct engine *e, int32_t id, const char *file);
void host_free(struct host *h);
struct host *host_find(struct engine *e, int32_t id);
/* Says it in `.state/events`. */
void host_set_state(struct host *h, enum host_state state);
/* HOST_FAILED, said in `.state/errors` too; takes `why` over. */
void host_fail(struct host *h, int err, char *why);
const char *host_state_name(enum host_state state);
/* Takes a config over: as last read. */
void host_set_config(struct host *h, struct broker_config *config);
/* Answers all who wait for the start: 0, or a positive errno. */
void host_answer(struct host *h, int err);

struct incarnation *inc_new(struct host *h);
struct incarnation *inc_ref(struct incarnation *inc);
void inc_unref(struct incarnation *inc);
struct incarnation *inc_find(struct engine *e, uint64_t key); /* NULL: none, or dead */
/* The end of a life: workers, candidate, session. `abrupt`: nothing is tidied up. The host is left without one. */
void inc_end(struct incarnation *inc, bool abrupt, gen_t gen, void (*answer)(void *arg, int err), void *arg);
/* The core that takes this message now. While the broker is being registered others may know of it before the engine
 * does: then the message is kept until the core is there, and NULL returned. */
struct broker *host_core(struct host *h, struct engine_msg *m);
/* Orderly: logs closed, then inc_end(). */
void inc_close(struct incarnation *inc, gen_t gen);
/* For engine_stop(): logs closed, nothing told to anybody. */
void inc_stop(struct incarnation *inc, gen_t gen);
/* The broker cannot go on. */
void inc_fail(struct incarnation *inc, int err, char *why, gen_t gen);
/* All log dirs are open and the broker is registered: core, configuration, candidate, loading. */
void inc_registered(struct incarnation *inc, gen_t gen);
/* What came for the core before it was there. */
void inc_deliver_early(struct incarnation *inc);
void inc_loaded(struct incarnation *inc, gen_t gen);

/* ---- environment.c ---- */
void inc_init_env(struct incarnation *inc);
struct config_manager *inc_new_configs(struct incarnation *inc);
/* A generation that is held: `gen`, or the current one if it has been given up since (jobs.c). */
gen_t inc_gen(struct incarnation *inc, gen_t gen);
void inc_hold(struct incarnation *inc, gen_t gen);
void inc_release(struct incarnation *inc, gen_t gen);
void inc_drop_holds(struct incarnation *inc);
/* Submits a transaction of that session; its end is a message with `run`. */
void engine_submit(struct engine *e, struct txn *txn, int64_t session, gen_t gen, struct engine_msg *done);

/* ---- jobs.c ---- */
int inc_start_worker(struct incarnation *inc, int dir);
void inc_submit_job(struct incarnation *inc, int dir, struct disk_job *job, gen_t gen);
/* Ends the worker of a dir; its lock is released as soon as it has ended. */
void inc_end_worker(struct incarnation *inc, int dir, bool abrupt, gen_t gen);
/* Writes what is dirty among `which`. */
void inc_checkpoint(struct incarnation *inc, int dir, unsigned which, gen_t gen);
/* JOB_CHECKPOINT or JOB_CLOSE with the names of the dir's logs. */
struct disk_job *inc_checkpoint_job(struct incarnation *inc, int dir, enum disk_job_type type, unsigned which);
/* Looks at a dir: `names` NULL: all replicas that should be there. Takes the names over. */
void inc_look(struct incarnation *inc, int dir, GPtrArray *names, gen_t gen);
/* Says which disks are silent, and lets nobody wait for them. Returns the next time to look, -1: no need. */
int64_t engine_watch_disks(struct engine *e, int64_t now);

/* ---- startup.c ---- */
/* Starts hosts together. The group holds `gen` until all of them have registered or failed. */
void startup_begin(struct engine *e, GPtrArray *hosts, gen_t gen);
void startup_opened(struct incarnation *inc, struct disk_job *job);
/* A part of a former life of the host has ended. */
void startup_part_ended(struct host *h);
/* The incarnation takes no part any more (killed while it was starting). */
void startup_leave(struct incarnation *inc);
/* Goes on without log dirs that do not answer. Returns the next time to look, -1: no need. */
int64_t startup_tick(struct engine *e, int64_t now);
void startup_free_groups(struct engine *e);

/* ---- registration.c ---- */
/* Persistent roots and the cluster id that are missing, as one transaction; NULL: none is. */
struct txn *registration_roots(struct engine *e);
/* Reads the cluster id; NULL: none. */
char *registration_cluster_id(struct engine *e);
struct bytes *registration_encode(
        const struct broker_config *config, struct broker_endpoint *endpoints, size_t n_endpoints);
/* IBP < 3.0: a block of producer ids for a broker that starts. */
void registration_take_producer_ids(struct incarnation *inc, gen_t gen);
/* Registers the listeners in force, if they are others than those registered. */
void registration_update_listeners(struct incarnation *inc, gen_t gen);
/* Another broker that is registered at one of these endpoints: its id, or -1. */
int32_t registration_find_clash(struct engine *e, int32_t id, const struct broker_config *config);
/* Do two configurations share an endpoint? */
bool registration_clash(const struct broker_config *a, const struct broker_config *b);

/* ---- broker_files.c ---- */
/* Reads the file of that broker anew, wherever in the cluster directory it is; makes one with defaults if there is
 * none. 0, or -errno with the reason. */
int broker_file_find(struct engine *e, int32_t id, const char *known_file, struct broker_config **ret, char **ret_why);
