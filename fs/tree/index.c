/* The index of the mirror: which node has this parent and this name (linear hashing; see znode.h). */
#include "fs/tree/znode.h"

#include <string.h>

#define FIRST_BUCKETS 64
#define PREFETCH 8

void index_init(struct znode_index *index)
{
    index->capacity = index->base = index->n_buckets = FIRST_BUCKETS;
    index->buckets = g_new0(struct znode *, index->capacity);
    index->count = 0;
    index->seed = (uint64_t)g_random_int() << 32 | g_random_int();
}

void index_clear(struct znode_index *index)
{
    g_clear_pointer(&index->buckets, g_free);
}

/* Multiply and fold, eight bytes at a time; the factors are odd numbers without a pattern. */
static uint64_t mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0x9e3779b97f4a7c15;
    return h ^ h >> 29;
}

static size_t bucket_of(const struct znode_index *index, uint32_t hash)
{
    size_t i = hash & (2 * index->base - 1);
    return i < index->n_buckets ? i : hash & (index->base - 1);
}

uint32_t index_hash(const struct znode_index *index, const struct znode *parent, const char *name, size_t len)
{
    uint64_t h = mix(index->seed, (uintptr_t)parent);
    for (; len >= 8; name += 8, len -= 8) {
        uint64_t word;
        memcpy(&word, name, 8);
        h = mix(h, word);
    }
    uint64_t tail = (uint64_t)len << 56;
    memcpy(&tail, name, len);
    h = mix(h, tail) * 0xbf58476d1ce4e5b9;
    uint32_t hash = (uint32_t)(h >> 32);
    __builtin_prefetch(&index->buckets[bucket_of(index, hash)]);
    return hash;
}

/* Adds one bucket and moves to it what belongs there of the one it splits from. */
static void add_bucket(struct znode_index *index)
{
    if (index->n_buckets == index->capacity) {
        index->capacity *= 2;
        index->buckets = g_renew(struct znode *, index->buckets, index->capacity);
    }
    size_t added = index->n_buckets, from = added - index->base;
    struct znode *node = index->buckets[from];
    index->buckets[from] = index->buckets[added] = NULL;
    index->n_buckets++;
    __builtin_prefetch(index->buckets[(from + PREFETCH) & (index->base - 1)]); /* will be split soon */
    while (node) {
        struct znode *next = node->hash_next;
        size_t i = bucket_of(index, node->hash);
        node->hash_next = index->buckets[i];
        index->buckets[i] = node;
        node = next;
    }
    if (index->n_buckets == 2 * index->base)
        index->base *= 2;
}

void index_insert(struct znode_index *index, struct znode *node)
{
    size_t i = bucket_of(index, node->hash);
    node->hash_next = index->buckets[i];
    index->buckets[i] = node;
    if (++index->count > index->n_buckets)
        add_bucket(index);
}

void index_remove(struct znode_index *index, struct znode *node)
{
    struct znode **at = &index->buckets[bucket_of(index, node->hash)];
    while (*at != node)
        at = &(*at)->hash_next;
    *at = node->hash_next;
    node->hash_next = NULL;
    index->count--;
}

struct znode *index_find(const struct znode_index *index, const struct znode *parent, const char *name, size_t len)
{
    uint32_t hash = index_hash(index, parent, name, len);
    struct znode *node = index->buckets[bucket_of(index, hash)];
    for (; node; node = node->hash_next)
        if (node->hash == hash && node->parent == parent && strncmp(node->name, name, len) == 0 &&
                node->name[len] == '\0')
            return node;
    return NULL;
}
