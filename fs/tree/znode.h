#pragma once
/*
 * Inside of the mirror: a node, its ordered children, and the index that finds a child by name. Everything here is
 * under the mirror's lock, but for the reference count.
 */
#include "fs/tree/mirror.h"

struct slot {
    uint64_t ino;
    struct znode *node; /* NULL: a tombstone */
};

/* The children of a node in the order of their inode numbers, as a sorted array. A removed child leaves a tombstone;
 * when half are tombstones the array is compacted, so that removal in any order costs O(log n). */
struct directory {
    struct slot *slots;
    uint32_t first, end, capacity; /* slots[first] and slots[end - 1] are live, if there is any */
    uint32_t live, directories;    /* children; those of them that are directories */
};

struct znode {
    atomic_uint refs; /* the tree's, one of each child, and those of znode_ref() */
    uint32_t hash;    /* of parent and name */
    struct znode *hash_next;
    struct znode *parent; /* with a reference; kept after removal, so that the path stays known */
    struct bytes *data;
    struct directory *children; /* NULL: has none, and maybe never had */
    uint64_t ino;
    int64_t changed_ms;
    struct zstat stat;
    bool directory, removed;
    char name[];
};

/* One reference, the tree's. Takes over the reference to `data`. */
struct znode *znode_new(struct znode *parent, const char *name, size_t len, struct bytes *data);

/* `child->ino` must be above that of all present children. */
void directory_append(struct znode *parent, struct znode *child);
void directory_remove(struct znode *parent, struct znode *child);

/* All nodes but the root by (parent, name): a linear hash table, which grows bucket by bucket, so that no single
 * insertion is slow. */
struct znode_index {
    struct znode **buckets;
    size_t n_buckets, base, capacity; /* base: the power of two with base <= n_buckets < 2 * base */
    size_t count;
    uint64_t seed; /* names come from outside: their order in the table must not be predictable */
};

void index_init(struct znode_index *index);
void index_clear(struct znode_index *index);
/* To be computed early: it also asks for the memory that will be looked at. */
uint32_t index_hash(const struct znode_index *index, const struct znode *parent, const char *name, size_t len);
/* With `node->hash` set. */
void index_insert(struct znode_index *index, struct znode *node);
void index_remove(struct znode_index *index, struct znode *node);
struct znode *index_find(const struct znode_index *index, const struct znode *parent, const char *name, size_t len);
