#pragma once
/*
 * A change on its way: from a request of the kernel through the policy's judgement and the store to its one answer.
 *
 * The caller fills in what is asked for and submits; `finish` is called once with the outcome, on the FUSE thread
 * (refused, nothing to do), the store thread (committed, failed), or the thread that answers a command. It answers the
 * request and frees the edit, or submits it again. If the tree has changed since the judgement, the request is judged
 * anew, on the store thread: `finish` never sees that.
 */
#include "fs/fuse/fusefs.h"

struct edit;

struct edit {
    struct mount *mount;
    fuse_req_t req;
    enum request_type type;
    char *path, *new_path; /* owned */
    struct bytes *value;   /* a reference */
    bool replace;
    /* Set if the node is there, else create (`type` follows). With `exclusive` it must not be there. */
    bool set_or_create, exclusive;
    /* A reference: `path` must still be this node, or else it is ESTALE; another one by that name is another file. */
    struct znode *node;
    /* The value is made from the node's present one, for each judgement: the bytes `value` (NULL: none) at `offset`
     * (-1: at the end), or a cut at `offset` if `truncate`. */
    bool patch, truncate;
    int64_t offset;
    /* The kernel does to `path` (and `new_path`) what the request asks for by itself, once it has succeeded. */
    bool kernel_knows;

    void (*finish)(struct edit *e, int err);
    /* ---- for `finish`; references are dropped by edit_free() ---- */
    char *result_path; /* the node that was made or set */
    struct inode *inode;
    struct handle *handle;
    size_t count;
    void *arg;

    /* ---- edit.c's own ---- */
    gen_t gen;
    struct bytes *patched;
    int32_t version; /* of the node that was looked at, -1: there was none */
    int64_t czxid;
    bool judge_again;
    bool *again; /* while `finish` runs: set if that submits it again */
    unsigned rounds;
    size_t result_op;
    pid_t pid;
};

/* Holds the present generation until it is freed. `path` is copied. */
struct edit *edit_new(
        fuse_req_t req, enum request_type type, const char *path, void (*finish)(struct edit *e, int err));
void edit_free(struct edit *e);
void edit_submit(struct edit *e);

/* The edit behind a commit, or NULL if it is not one of this mount's. Store thread. */
const struct edit *edit_of_commit(const struct commit *c);
/* Waits until the handle's edit has been answered. */
void edit_wait(struct mount *m, struct handle *h);
/* Waits until no edit is on its way. */
void edits_drain(struct mount *m);

/* `finish` for those who want no more than the errno. */
void edit_reply_err(struct edit *e, int err);
