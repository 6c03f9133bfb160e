#pragma once
/*
 * The tree in memory. It only follows the store's feed, so whatever is in it is durable. One writer, the store thread
 * (mirror_apply); readers on any thread, under the read lock. The lock is held for microseconds: no callback, store
 * call, reply or notice under it.
 */
#include <glib.h>
#include "fs/tree/change.h"

struct mirror;
struct znode;

/* `always_directory(arg, path)`: a node that is shown as a directory even with data and without children. Pure. */
struct mirror *mirror_new(bool (*always_directory)(void *arg, const char *path), void *arg);
void mirror_free(struct mirror *m);
/* Before the feed starts: adds a node as the store has it (parents first). Root's own stat: path "/". */
void mirror_load(struct mirror *m, const char *path, struct bytes *data, const struct zstat *stat);
/* Applies a commit and fills in the inode numbers of its changes. Store thread. */
void mirror_apply(struct mirror *m, struct commit *c);
/* zxid of the last commit applied; number of znodes without the root. Any thread, no lock needed. */
int64_t mirror_zxid(struct mirror *m);
uint64_t mirror_count(struct mirror *m);

/* ---- for those who want one value: these take the read lock themselves ---- */
/* ZOK with a reference to the data and the stat (each may be NULL if not wanted), or ZNONODE. */
int mirror_get(struct mirror *m, const char *path, struct bytes **ret_data, struct zstat *ret_stat);
bool mirror_exists(struct mirror *m, const char *path);
/* Names of the children in creation order, owned by the caller (g_ptr_array_unref frees all), or NULL if absent. */
GPtrArray *mirror_children(struct mirror *m, const char *path);

/* One walk instead of a search for each: `path`/<child>/`name`, of all children that have such a node, in the order of
 * their creation. Owned by the caller (g_array_unref frees all); empty if `path` is absent. */
struct node_below {
    char *child;
    struct bytes *data; /* a reference */
    int32_t version;
};
GArray *mirror_below(struct mirror *m, const char *path, const char *name);

/* ---- for FUSE: under mirror_rdlock(), pointers are good until mirror_unlock(), or longer with znode_ref() ---- */
void mirror_rdlock(struct mirror *m);
void mirror_unlock(struct mirror *m);
struct znode *mirror_root(struct mirror *m);
struct znode *mirror_find(struct mirror *m, const char *path);
struct znode *znode_child(struct mirror *m, struct znode *n, const char *name);
/* The first child whose inode number is above `after` (0: the first). Children are kept in the order of their inode
 * numbers, which is creation order, so the number is a stable readdir cookie. */
struct znode *znode_next_child(struct znode *n, uint64_t after);
const char *znode_name(const struct znode *n);
struct znode *znode_parent(const struct znode *n); /* NULL for the root and for a removed node */
char *znode_path(const struct znode *n);           /* newly allocated; also right for a removed node */
struct bytes *znode_data(const struct znode *n);   /* borrowed; NULL is null data */
const struct zstat *znode_stat(const struct znode *n);
/* Last change of its data or of its children, ms since the epoch (which child changes were before the mount is not
 * stored: then the youngest child's creation). */
int64_t znode_changed_ms(const struct znode *n);
/* Inode number: from a counter, even, never used twice in a mount (the root's is 1, as FUSE wants it). The number after
 * it belongs to the node's `.data`. A file that becomes a directory gets a new one. */
uint64_t znode_ino(const struct znode *n);
uint32_t znode_num_children(const struct znode *n);
uint32_t znode_num_directories(const struct znode *n); /* children that are directories */
/* Has children, or always a directory, or null data; and once so, until it is removed. */
bool znode_is_directory(const struct znode *n);
bool znode_removed(const struct znode *n);
/* Any thread, without the lock. A removed node stays readable. */
struct znode *znode_ref(struct znode *n);
struct znode *znode_unref(struct znode *n);
