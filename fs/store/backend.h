#pragma once
/*
 * Where records lie: the seam between the store, which knows ZooKeeper's rules, and a file or memory, which knows
 * none. One thread at a time. A backend sees batches: reads of what is durable, then one commit.
 */
#include "fs/store/record.h"
#include "fs/store/store.h"

/* One record to be written. */
struct record_write {
    uint64_t parent_id;
    const char *name;
    const struct node *node; /* NULL: removed */
};

/* One record, or a damaged place, as walk() finds it. */
struct record_view {
    int err;          /* 0; -EUCLEAN, -EPROTO: see record_decode(); -EIO: records from about this key on are lost */
    const char *what; /* the error in words */
    const void *key;
    size_t key_len;
    uint64_t parent_id;      /* of the key, with `name` */
    const char *name;        /* NULL: no znode has such a key */
    struct node node;        /* valid if err is 0; borrowed */
    const struct meta *meta; /* not NULL: this is the meta record, and no node; valid if err is 0 */
};

struct backend;
struct backend_ops {
    const char *name; /* for messages */
    /* 0 with a reference to the data; -ENOENT; -EUCLEAN; any other error is one of the disk. */
    int (*get)(struct backend *b, uint64_t parent_id, const char *name, struct node *ret);
    /* Makes all writes and `meta` durable, or none of them. -ENOSPC: nothing happened, and it may be tried again. After
     * any other error nobody knows what the disk holds. Removals come first in the array. */
    int (*commit)(struct backend *b, const struct record_write *writes, size_t n, const struct meta *meta);
    /* The batch ends without a commit. */
    void (*reset)(struct backend *b);
    /* Visits every record in the order of keys until `visit` returns non-zero; returns that, or -errno. The meta
     * record, if it is among them, comes first. */
    int (*walk)(struct backend *b, int (*visit)(void *arg, const struct record_view *view), void *arg);
    void (*usage)(struct backend *b, struct store_usage *ret); /* any thread */
    void (*close)(struct backend *b);
};

struct backend {
    const struct backend_ops *ops;
    struct meta meta; /* as committed */
};

/* An empty tree: the root alone. */
struct backend *backend_new_memory(void);

/* Puts a store on top of a backend, which it then owns, also after an error. `read_only`: nothing is written, and the
 * ephemerals that are left in it are hidden. */
int store_open_backend(
        struct backend *b, bool read_only, const struct store_config *config, struct store **ret, char **ret_why);

/* The record of a new tree's root. */
void node_init_root(struct node *ret);
#define META_OF_NEW_TREE ((struct meta){.zxid = 0, .next_id = ROOT_ID + 1})
