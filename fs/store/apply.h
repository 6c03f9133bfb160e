#pragma once
/*
 * ZooKeeper's rules: what a transaction does to the tree (PrepRequestProcessor, DataTree). Pure over a backend.
 *
 * Transactions of a batch are applied one after the other to an overlay, in memory, over what the backend holds; one
 * that fails leaves no trace in it. apply_commit() then hands the whole overlay to the backend. What has been read
 * stays in memory for the next batches, within limits. One thread.
 */
#include "fs/store/backend.h"
#include "fs/tree/txn.h"

/* No system call could name a longer path. */
#define STORE_PATH_MAX 4095

struct applier;

struct applier *applier_new(struct backend *b);
void applier_free(struct applier *a);

struct apply_env {
    int64_t time_ms;
    bool (*session_open)(void *ctx, int64_t session);
    void *ctx;
};

/* Applies all of `txn` or nothing; fills in its results and those of its operations. If it changed anything it takes
 * the next zxid, and `changes` (of struct change, without inode numbers) gets what it did; their paths and data are the
 * transaction's. Returns 0, or -errno if the backend failed (the transaction's result is then ZSTOREIO). */
int apply_txn(struct applier *a, struct txn *txn, const struct apply_env *env, GArray *changes);

/* Counts the incarnation up, which is never without effect, and commits. */
int apply_begin_incarnation(struct applier *a);
/* Makes all that was applied since the last commit durable; errors as backend commit(). */
int apply_commit(struct applier *a);
/* Forgets it instead. */
void apply_rollback(struct applier *a);

/* Sets the result of a transaction, and of each operation, that failed as a whole. */
void txn_fail(struct txn *txn, int rc);
