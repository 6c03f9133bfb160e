#pragma once
/*
 * The tree as the transactions of a batch see it: nodes by path, over a backend. Changes can be undone back to a mark,
 * and are written out in one commit. For apply.c. One thread.
 */
#include "fs/store/backend.h"

struct entry {
    char *path;         /* owned */
    uint64_t parent_id; /* valid if it exists */
    struct node node;   /* valid if it exists */
    bool exists;
    bool stored; /* the backend has a record for it, under (parent_id, name) */
    bool dirty;  /* to be written at the commit */
};

struct overlay;

struct overlay *overlay_new(struct backend *b);
void overlay_free(struct overlay *o);

/* The entry of a path, whether the node exists or not; NULL for an ancestor that does not exist. Owned by the overlay,
 * good until commit or forget. Returns 0, or -errno of the backend. */
int overlay_find(struct overlay *o, const char *path, struct entry **ret);
/* To be called before an entry is changed. */
void overlay_touch(struct overlay *o, struct entry *e);
/* Makes a node that does not exist; takes the reference to data. `path` must have been looked up. */
void overlay_create(struct overlay *o, struct entry *e, uint64_t parent_id, const struct node *node);
void overlay_delete(struct overlay *o, struct entry *e);

/* The next zxid and so on, as the batch sees them; undone with the rest. */
struct meta *overlay_meta(struct overlay *o);

/* Everything done after the mark can be undone. */
void overlay_mark(struct overlay *o);
void overlay_undo(struct overlay *o);
/* Writes all out; errors as backend commit(). Without changes nothing is written. After an error: overlay_forget(). */
int overlay_commit(struct overlay *o);
/* Back to what the backend holds. */
void overlay_forget(struct overlay *o);
