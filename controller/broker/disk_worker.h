#pragma once
/*
 * One thread and one queue for each log dir, so that a disk that hangs stops only itself. Jobs are done in order; each
 * comes back through `done` on the worker's thread, exactly once, also those that were still queued when the worker was
 * ended (-ECANCELED).
 */
#include <stdatomic.h>
#include "controller/broker/log_dir.h"
#include "fs/queue.h"

struct disk_worker;
struct watcher;

enum disk_job_type {
    JOB_OPEN,       /* make, open, lock, watch, look at the names, read meta.properties */
    JOB_META,       /* write meta.properties */
    JOB_LOAD,       /* read all replicas */
    JOB_BATCH,      /* struct disk_batch */
    JOB_CHECKPOINT, /* write checkpoint files */
    JOB_LOOK,       /* is the log dir still the one that was opened, and which of these directories are gone? */
    JOB_CLOSE,      /* checkpoints and .kafka_cleanshutdown: closed in order */
};

struct disk_job {
    struct queue_item item; /* first */
    enum disk_job_type type;
    /* the engine's own */
    void *owner;
    int dir;
    gen_t gen;
    atomic_bool held; /* whoever takes this flag down releases the generation */
    int64_t submitted_ms;
    /* in */
    bool use_topic_ids;       /* OPEN */
    int32_t broker_id;        /* META */
    char *cluster_id;         /* META; owned */
    unsigned checkpoints;     /* CHECKPOINT, CLOSE: bits of enum checkpoint */
    GPtrArray *logs;          /* CHECKPOINT, CLOSE: char* "topic partition"; owned */
    struct disk_batch *batch; /* BATCH; owned */
    GPtrArray *names;         /* LOOK: char*; out: those that are gone; owned */
    /* out */
    int err;          /* 0, or -errno with `why` */
    bool failed;      /* the error is the disk's: the log dir goes offline; else it is the start that is refused */
    char *why;        /* owned */
    GHashTable *meta; /* OPEN: owned reference; NULL: no meta.properties */
    GArray *found;    /* LOAD: struct found_log; owned */
    bool rewrite;     /* BATCH: offsets of deleted logs are to leave the checkpoint files now */
};
struct disk_job *disk_job_new(enum disk_job_type type);
void disk_job_free(struct disk_job *job);

struct disk_worker_config {
    const char *path;
    struct watcher *watcher; /* NULL: none */
    uint64_t watch_key;      /* for the watcher's reports */
    int dir;                 /* the owner's number of it */
    int64_t delete_delay_ms;
    void *ctx;
    void (*done)(void *ctx, struct disk_job *job); /* the job is the callee's again */
    /* Something was odd on the disk, `entry` in the log dir; any time on the worker's thread. */
    void (*warn)(void *ctx, const char *path, const char *entry, const char *why);
    /* Last call: the thread ends, the lock is released. */
    void (*ended)(void *ctx, int dir, struct disk_worker *w);
};
/* 0 or -errno (no thread). `config` is copied. */
int disk_worker_new(const struct disk_worker_config *config, struct disk_worker **ret);
/* Any thread; takes the job over until `done`. Not after disk_worker_end(). */
void disk_worker_submit(struct disk_worker *w, struct disk_job *job);
void disk_worker_set_delay(struct disk_worker *w, int64_t delete_delay_ms);
/* When the disk last did something for a long job (monotonic), 0: never. */
int64_t disk_worker_alive_ms(struct disk_worker *w);
/* No more jobs. `abrupt`: what is queued is not done any more, as if the process had died. */
void disk_worker_end(struct disk_worker *w, bool abrupt);
/* After `ended`: joins the thread and frees. */
void disk_worker_free(struct disk_worker *w);
