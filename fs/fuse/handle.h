#pragma once
/*
 * Open files. A handle is found by a number, so that nothing the kernel (or a test) says can be a wild
 * pointer.
 *
 * What is being written belongs to the FUSE thread, and while `busy` to the edit that commits it (edit.h): the kernel
 * sends no second change of a file before the first is answered, and one that comes all the same gets EBUSY.
 */
#include <pthread.h>
#include "fs/fuse/inode.h"
#include "fs/settle.h"

struct fuse_pollhandle;

struct handle {
    uint64_t fh;
    atomic_uint refs;
    struct inode *inode; /* a reference, and counted as open */
    int flags;           /* of open(2) */
    bool created;        /* by this handle's open(2) */
    atomic_bool busy;

    /* ---- reading ---- */
    pthread_mutex_t lock;      /* protects the members of this section: answers come from other threads */
    struct bytes *value;       /* what is read: the value at the first read, or at the latest from offset 0 */
    gen_t bound;               /* `settled`: what it waits for */
    uint64_t offset, position; /* a journal: the next byte of the file is at this position */

    /* ---- writing ---- */
    struct staging *staging; /* NULL: nothing has been written since the open or the last truncation */
    bool fresh;              /* starts from nothing: truncated, or new */
    bool dirty;              /* something is staged that has not been taken */
    bool complete;           /* the staged JSON has been taken; white space may follow */
    bool taken;              /* raw: a value has been taken since the open or the last truncation */
    bool said;               /* `.state/errors` has the reason why the staged value is none */
    bool abandoned;          /* the writer was killed */
    bool spoiled;            /* a line was refused: all or nothing, so none of them will be applied */
    bool appending;          /* lines of a FORMAT_CONFIG node, one by one */
    bool last_taken;         /* appending: what is staged has been applied by a close, but has no newline yet */
    bool unsettled;          /* counted in inode->unsettled */
    size_t checked;          /* lines: those before this offset are good */
    pid_t flushed_by;        /* raw: who closed the untouched handle last */
};

struct handle_table;

struct handle_table *handle_table_new(struct inode_table *inodes);
void handle_table_free(struct handle_table *t);
/* Opens an inode (a reference of its own is taken). NULL: too many (ENFILE). */
struct handle *handle_new(struct handle_table *t, struct inode *i, int flags);
/* A new reference, or NULL. */
struct handle *handle_get(struct handle_table *t, uint64_t fh);
struct handle *handle_ref(struct handle *h);
struct handle *handle_unref(struct handle *h);
/* The file is closed: out of the table, and the inode no longer open. References stay good. */
void handle_close(struct handle_table *t, struct handle *h);
