#pragma once
/*
 * The ordered change feed: what a committed transaction did, published zxid by zxid by the store thread. In this order
 * for each commit: the mirror applies it (and fills in the inode numbers), the watchers are told, the kernel notices
 * are queued, the transaction's `done` is called.
 */
#include "fs/tree/txn.h"

enum change_type { NODE_CREATED, NODE_DELETED, NODE_DATA_CHANGED };

struct change {
    enum change_type type;
    const char *path;
    struct bytes *data; /* NODE_CREATED, NODE_DATA_CHANGED: the node's new data */
    struct zstat stat;  /* the node's, after the change (before it for NODE_DELETED) */
    int64_t parent_pzxid;
    int32_t parent_cversion; /* NODE_CREATED, NODE_DELETED: the parent's, after the change */
    /* filled in by mirror_apply(), for the kernel notices; 0 where there is none */
    uint64_t ino;            /* the node's inode number after the change (before it for NODE_DELETED) */
    uint64_t old_ino;        /* the number it had, if a file became a directory by this change, else 0 */
    uint64_t parent_ino;     /* of the parent, after the change */
    uint64_t parent_old_ino; /* of the parent, if it became a directory by this change, else 0 */
    bool was_null;           /* NODE_DATA_CHANGED: the data was null before (`.data` appears) */
};

struct commit {
    int64_t zxid;
    int64_t time_ms;
    gen_t gen;             /* of the transaction; held by the store while the feed runs */
    const struct txn *txn; /* NULL for changes of the store's own (a session's end) */
    struct change *changes;
    size_t n_changes;
};
