#pragma once
/*
 * The store behind the tree: one interface, the words of ZooKeeper, for an embedded file (LMDB) and for memory (tests).
 *
 * The store validates, orders, makes durable and publishes. One store thread takes queued transactions, validates each
 * against what is stored plus what the batch has done so far, commits the batch with one fsync, and then, for each
 * transaction in order, calls `feed` (unless it failed) and `txn->done`. Nothing is published before it is durable.
 *
 * Sessions own ephemeral nodes. In the embedded stores all sessions end with the daemon: ephemerals left by a crash
 * are removed at open, before store_load().
 */
#include <stdio.h>
#include "fs/tree/change.h"

struct store;

struct store_config {
    /* Wall clock, ms since the epoch. */
    int64_t (*now_ms)(void *ctx);
    /* Each commit, in zxid order, on the store thread; see change.h. May fill in the changes' inode numbers. */
    void (*feed)(void *ctx, struct commit *commit);
    /* The store became read-only for good (EIO of a commit); `why` is one line. On the store thread, once. */
    void (*failed)(void *ctx, const char *why);
    void *ctx;
};

/* Each returns 0, or -errno with one clear line in `*ret_why` (to be freed).
 * lmdb: `dir` is created if absent (`create`); -EBUSY if another process has it open (its pid is in the text);
 * -EUCLEAN damaged; -EPROTO made by a newer version; -EROFS, -EACCES, -ENOSPC. `read_only`: changes get ZNOTREADONLY.
 */
int store_open_lmdb(const char *dir, bool create, bool read_only, const struct store_config *config, struct store **ret,
        char **ret_why);
int store_open_memory(const struct store_config *config, struct store **ret);

/* Walks everything once, parents before children, the root first (path "/"). Before store_start(). */
int store_load(struct store *s,
        void (*visit)(void *arg, const char *path, struct bytes *data, const struct zstat *stat), void *arg,
        char **ret_why);
/* Starts the store thread; 0 or -errno. Without it (unit tests, simulation) store_step() does the work of the moment
 * inline. */
int store_start(struct store *s);
/* Processes all that is queued, and what the callbacks add meanwhile, on the caller's thread; returns the number of
 * transactions. Not after store_start(). */
size_t store_step(struct store *s);

/* Queues a transaction; never blocks. Any thread. From here it belongs to the store until `done`. */
void store_submit(struct store *s, struct txn *txn);

/* A new session. Any thread. */
int64_t store_session_open(struct store *s);
/* Ends it: its ephemerals go in one commit, queued transactions of it that come later fail. `done(arg)` (may be NULL)
 * is called on the store thread after the commit. `gen` is held by the caller until then. Unknown sessions are fine. */
void store_session_close(struct store *s, int64_t session, gen_t gen, void (*done)(void *arg), void *arg);

/* Commits what is queued, stops the thread, closes the files. */
void store_close(struct store *s);

/* Bytes for statfs. Any thread. */
struct store_usage {
    uint64_t bytes_used, bytes_free, bytes_total;
};
void store_usage(struct store *s, struct store_usage *ret);

/* ---- offline tools (`kafkafs --check`, `--dump`, `--load`); `dir` is the metadata directory ---- */
/* Prints one line per fault on `out`; returns the number of faults, or -errno with `*ret_why`. */
int store_check(const char *dir, FILE *out, char **ret_why);
/*
 * The tree as text, one line a znode, parents first, siblings sorted by name:
 *
 *   PATH czxid=N mzxid=N pzxid=N ctime=N mtime=N version=N cversion=N [ephemeralOwner=N] [data=DATA]
 *
 * No `data=` is null data; DATA goes on to the end of the line. A backslash is written `\\`, a newline `\n`, any other
 * control character or byte that is not UTF-8 `\xNN`, and so is a space in PATH. When a line is read, a number that is
 * left out is 0. Every line ends with a newline, so that a text that was cut is noticed.
 *
 * Of a damaged store it prints what can be read and then returns -EUCLEAN.
 */
int store_dump(const char *dir, FILE *out, char **ret_why);
/* A new store from such text, with the same stat fields. -EEXIST if a store is there; -EINVAL for a bad line, which is
 * named by its number. All or nothing. Ephemeral nodes are left out, as if their sessions had ended. */
int store_load_text(const char *dir, FILE *in, char **ret_why);
