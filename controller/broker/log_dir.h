#pragma once
/*
 * One log dir on the disk (kafka.log.LogManager). All work goes through descriptors opened at the start, never by path:
 * no symbolic link is followed and no mount point crossed, whatever somebody does to the names meanwhile.
 *
 * These functions block; a log dir belongs to its disk worker's thread (disk_worker.h). Errors are -errno; with
 * `ret_why` one line that names the entry (to be freed).
 */
#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>
#include "controller/broker/broker.h"

struct log_dir {
    char *path; /* as configured, absolute */
    int fd, lock_fd;
    dev_t dev;
    ino_t ino;
    bool use_topic_ids;        /* IBP >= 2.8 */
    GHashTable *futures;       /* "topic-partition" -> name of its `-future` directory */
    GArray *doomed;            /* struct doomed_log: renamed to `-delete`, to be removed later */
    _Atomic int64_t *alive_ms; /* set by long work whenever the disk has answered (monotonic); NULL: nobody asks */
    GHashTable *offsets[4]; /* per checkpoint file: "topic-partition" -> offset, those that are not 0; checkpoint.c */
};
struct doomed_log {
    char *name;     /* owned */
    int64_t due_ms; /* monotonic */
};

/* ---- log_dir.c ---- */
/* Makes the directory if it is missing (and fsyncs its parent), and opens it. */
int log_dir_open(const char *path, bool use_topic_ids, struct log_dir **ret, char **ret_why);
/* Kafka's `.lock`: -EBUSY if another process, or another broker of this one, has it. */
int log_dir_lock(struct log_dir *d, char **ret_why);
/* Is what lies at the path still the directory that was opened? -ESTALE, or what stat() said, but for ENOMEM: 0. */
int log_dir_check(const struct log_dir *d, char **ret_why);
/* -EINVAL names a directory that Kafka would refuse to start with; nothing is touched. */
int log_dir_check_names(const struct log_dir *d, char **ret_why);
/* Is the directory of this replica there? */
bool log_dir_has(const struct log_dir *d, const char *name);
/* Releases the lock; NULL is fine. */
void log_dir_close(struct log_dir *d);
/* A child directory, opened without following links or crossing mounts: -ELOOP, -EXDEV (a mount point), -EAGAIN (moved
 * away each time), -ENOTDIR, -ENOENT, ... */
int log_dir_open_child(int fd, const char *name);
/* Does this error mean that the disk is bad, or only that one entry could not be treated? */
bool log_dir_error_is_fatal(int err);
/* The disk has answered. */
void log_dir_alive(struct log_dir *d);

/* ---- log_load.c ---- */
struct found_log {
    char *topic; /* owned */
    int32_t partition;
    char topic_id[23];
    bool future, torn;
};
/* Everything in the log dir: clears the clean-shutdown mark first, reads checkpoints, dooms `-delete` directories (due
 * at `due_ms`) and appends the replicas to `found` (of struct found_log). `warn(arg, entry, why)` is told what was odd.
 * An error means that the log dir cannot be used. */
int log_dir_load(struct log_dir *d, int64_t due_ms, GArray *found,
        void (*warn)(void *arg, const char *entry, const char *why), void *arg, char **ret_why);
void found_logs_free(GArray *found);
/* The topic id in a replica's directory, "" if it has none. -EINVAL: the file is no partition.metadata. */
int log_read_topic_id(int fd, char ret[23]);
/* What the segments in a replica's directory say: is there one, and does one have records? Set on success only. */
int log_look_at_segments(int fd, bool *ret_any, bool *ret_data);

/* ---- log_create.c ---- */
/* The names of the files it makes; ends with NULL. */
extern const char *const log_file_names[];
/* DISK_CREATE of one task. */
int log_create(struct log_dir *d, struct log_task *task);
/* Renames a replica's directory to its `-stray` name. */
int log_set_aside(struct log_dir *d, const char *name, const char *topic, int32_t partition);

/* ---- log_delete.c ---- */
/* DISK_DELETE of one task, without the fsync: `delay_ms` 0 removes at once, else the directory is doomed. A failure
 * leaves it under its own name. `*ret_fatal`: the whole log dir is to be taken offline for this error. */
int log_delete(struct log_dir *d, struct log_task *task, int64_t now_ms, int64_t delay_ms, bool *ret_fatal);
/* When something that is doomed now is due. A delay may be as long as a number can be. */
int64_t log_due_ms(int64_t now_ms, int64_t delay_ms);
/* Removes the doomed directories that are due; returns when the next one is (monotonic ms), -1: none. What cannot be
 * removed is said, and left for the next start. */
int64_t log_remove_doomed(
        struct log_dir *d, int64_t now_ms, void (*warn)(void *arg, const char *entry, const char *why), void *arg);

/* ---- checkpoint.c ---- */
enum checkpoint {
    CHECKPOINT_RECOVERY_POINT, /* recovery-point-offset-checkpoint */
    CHECKPOINT_LOG_START,      /* log-start-offset-checkpoint */
    CHECKPOINT_HIGH_WATERMARK, /* replication-offset-checkpoint */
    CHECKPOINT_CLEANER,        /* cleaner-offset-checkpoint */
    CHECKPOINT_N,
};
/* Reads the four files, or makes them empty. A bad one is told to `warn` and read as empty, as Kafka does. */
int checkpoints_read(struct log_dir *d, void (*warn)(void *arg, const char *entry, const char *why), void *arg);
/* Writes one, for the logs named in `logs` (char* "topic partition"); replaces it atomically. */
int checkpoint_write(struct log_dir *d, enum checkpoint which, const GPtrArray *logs);
/* A log that is gone has no offsets any more. True if it had some. */
bool checkpoints_forget(struct log_dir *d, const char *topic, int32_t partition);
/* .kafka_cleanshutdown: the log dir was closed in order. */
int clean_shutdown_write(struct log_dir *d);
int clean_shutdown_remove(struct log_dir *d);

/* All of it, however often that takes. */
int log_dir_write_all(int fd, const char *text, size_t len);
/* Writes `<name>.tmp`, fsyncs, renames. */
int log_dir_write_file(struct log_dir *d, const char *name, const char *text, size_t len);
/* The whole of a small regular file below `fd`; -EFBIG above 64 MiB; -EINVAL if it is none. */
int log_dir_read_file(int fd, const char *name, GString **ret);
