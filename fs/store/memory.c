/* Records in memory: an empty tree that ends with the process, for tests. */
#include "fs/store/backend.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

/* A tree of records in the order that LMDB would keep them. */
struct memory_backend {
    struct backend base;
    GTree *records; /* struct record_key -> struct node */
    atomic_size_t bytes;
};

static int compare_keys(const void *a, const void *b, void *arg)
{
    const struct record_key *x = a, *y = b;
    int order = memcmp(x->bytes, y->bytes, MIN(x->len, y->len));
    return order != 0 ? order : (x->len > y->len) - (x->len < y->len);
}

static void free_node(void *p)
{
    node_clear(p);
    g_free(p);
}

static struct node *lookup(struct memory_backend *m, uint64_t parent_id, const char *name)
{
    struct record_key key;
    record_key_make(&key, parent_id, name);
    return g_tree_lookup(m->records, &key);
}

static int memory_get(struct backend *b, uint64_t parent_id, const char *name, struct node *ret)
{
    const struct node *node = lookup((struct memory_backend *)b, parent_id, name);
    if (!node)
        return -ENOENT;
    *ret = *node;
    bytes_ref(ret->data);
    return 0;
}

static void put(struct memory_backend *m, uint64_t parent_id, const char *name, const struct node *node)
{
    struct record_key key;
    record_key_make(&key, parent_id, name);
    struct node *copy = g_memdup2(node, sizeof *node);
    bytes_ref(copy->data);
    g_tree_insert(m->records, g_memdup2(&key, offsetof(struct record_key, bytes) + key.len), copy);
    m->bytes += record_size(node);
}

static void drop(struct memory_backend *m, uint64_t parent_id, const char *name)
{
    struct node *node = lookup(m, parent_id, name);
    if (!node)
        return;
    m->bytes -= record_size(node);
    struct record_key key;
    record_key_make(&key, parent_id, name);
    g_tree_remove(m->records, &key);
}

static int memory_commit(struct backend *b, const struct record_write *writes, size_t n, const struct meta *meta)
{
    struct memory_backend *m = (struct memory_backend *)b;
    for (size_t i = 0; i < n; i++) {
        drop(m, writes[i].parent_id, writes[i].name);
        if (writes[i].node)
            put(m, writes[i].parent_id, writes[i].name, writes[i].node);
    }
    b->meta = *meta;
    return 0;
}

static void memory_reset(struct backend *b)
{
}

struct walk {
    int (*visit)(void *arg, const struct record_view *view);
    void *arg;
    int result;
};

static gboolean walk_one(void *key, void *value, void *arg)
{
    struct walk *walk = arg;
    const struct record_key *k = key;
    struct record_view view = {.key = k->bytes, .key_len = k->len, .node = *(struct node *)value};
    char name[RECORD_NAME_MAX + 1];
    view.err = record_key_parse(k->bytes, k->len, &view.parent_id, name);
    view.name = name;
    walk->result = walk->visit(walk->arg, &view);
    return walk->result != 0;
}

static int memory_walk(struct backend *b, int (*visit)(void *arg, const struct record_view *view), void *arg)
{
    struct walk walk = {.visit = visit, .arg = arg};
    g_tree_foreach(((struct memory_backend *)b)->records, walk_one, &walk);
    return walk.result;
}

static void memory_usage(struct backend *b, struct store_usage *ret)
{
    ret->bytes_used = ((struct memory_backend *)b)->bytes;
    ret->bytes_free = (uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    ret->bytes_total = ret->bytes_used + ret->bytes_free;
}

static void memory_close(struct backend *b)
{
    struct memory_backend *m = (struct memory_backend *)b;
    g_tree_destroy(m->records);
    g_free(m);
}

static const struct backend_ops memory_ops = {
        .name = "memory store",
        .get = memory_get,
        .commit = memory_commit,
        .reset = memory_reset,
        .walk = memory_walk,
        .usage = memory_usage,
        .close = memory_close,
};

void node_init_root(struct node *ret)
{
    *ret = (struct node){.id = ROOT_ID};
}

struct backend *backend_new_memory(void)
{
    struct memory_backend *m = g_new0(struct memory_backend, 1);
    m->base = (struct backend){.ops = &memory_ops, .meta = META_OF_NEW_TREE};
    m->records = g_tree_new_full(compare_keys, NULL, g_free, free_node);
    struct node root;
    node_init_root(&root);
    put(m, 0, ROOT_NAME, &root);
    return &m->base;
}

int store_open_memory(const struct store_config *config, struct store **ret)
{
    char *why = NULL;
    int err = store_open_backend(backend_new_memory(), false, config, ret, &why);
    g_free(why);
    return err;
}
