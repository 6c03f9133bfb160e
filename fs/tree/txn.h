#pragma once
/*
 * A transaction: operations with ZooKeeper's meaning, all or nothing (ZooKeeper's multi). Built by any thread, then
 * handed to the store (store_submit), which fills in the results and calls `done`.
 */
#include "fs/tree/bytes.h"
#include "fs/tree/zerr.h"
#include "fs/tree/zstat.h"
#include "fs/settle.h"

enum op_type { OP_CREATE, OP_SET, OP_DELETE, OP_CHECK };

enum {                     /* flags of OP_CREATE */
    CREATE_EPHEMERAL = 1,  /* owned by the transaction's session, or by `op->owner` if that is set */
    CREATE_SEQUENTIAL = 2, /* ten digits, the count of children ever created in the parent, are appended */
};

struct op {
    enum op_type type;
    char *path;         /* owned */
    struct bytes *data; /* OP_CREATE, OP_SET: one reference is owned; NULL is null data */
    int32_t version;    /* OP_SET, OP_DELETE, OP_CHECK: expected version, -1 for any */
    /* OP_SET, OP_DELETE, OP_CHECK: expected czxid, 0 for any. ZooKeeper has no such check: there a node that is deleted
     * and made again has the versions of the one before, and takes its writes. */
    int64_t czxid;
    unsigned flags; /* OP_CREATE */
    int64_t owner;  /* OP_CREATE ephemeral: session; 0 = the transaction's */
    /* results, valid in `done` */
    int rc;            /* enum zerr */
    char *result_path; /* OP_CREATE: the path made (differs for sequential ones); owned */
    struct zstat stat; /* OP_CREATE, OP_SET: the node's afterwards; OP_CHECK: as found */
};

enum txn_origin {
    TXN_CLIENT,   /* somebody outside waits for it: flushed at once */
    TXN_INTERNAL, /* controller or broker: may wait half a commit time for a client's to share its fsync */
};

struct txn {
    struct op *ops; /* array of n_ops */
    size_t n_ops, cap_ops;
    int64_t session; /* the transaction fails with ZSESSIONEXPIRED if this session has ended; 0: none needed */
    enum txn_origin origin;
    gen_t gen; /* generation of its cause; the submitter holds it until `done` (settle.h) */
    /* results */
    int rc;       /* ZOK, the code of the first operation that failed, or the store's error */
    int64_t zxid; /* of the commit */
    /* Called once, on the store thread, after the change is durable and published (mirror, watchers, notices), or has
     * failed. Must not block. The transaction belongs to the callee from here on (txn_free). */
    void (*done)(struct txn *txn, void *arg);
    void *arg;
};

struct txn *txn_new(enum txn_origin origin);
/* Frees operations and results; accepts NULL. */
void txn_free(struct txn *txn);
/* Forgets results (and nothing else) so that the transaction can be submitted again. */
void txn_reset(struct txn *txn);

/* Each appends one operation and returns its index. `path` is copied; one reference to `data` is taken over. */
size_t txn_create(struct txn *txn, const char *path, struct bytes *data, unsigned flags);
size_t txn_set(struct txn *txn, const char *path, struct bytes *data, int32_t version);
size_t txn_delete(struct txn *txn, const char *path, int32_t version);
size_t txn_check(struct txn *txn, const char *path, int32_t version);
/* Operation `i` expects the very node, as it is, that `seen` was read of. */
void txn_expect(struct txn *txn, size_t i, const struct zstat *seen);
/* Paths and data in bytes: what ZooKeeper's packet limit counts. */
size_t txn_size(const struct txn *txn);
