#include "fs/fuse/handle.h"

#define MAX_HANDLES (1u << 20)

struct handle_table {
    struct inode_table *inodes;
    pthread_mutex_t lock;
    GHashTable *by_fh; /* &handle->fh -> struct handle; holds a reference */
    uint64_t next;
};

static void unref(void *h)
{
    handle_unref(h);
}

struct handle_table *handle_table_new(struct inode_table *inodes)
{
    struct handle_table *t = g_new0(struct handle_table, 1);
    t->inodes = inodes;
    pthread_mutex_init(&t->lock, NULL);
    t->by_fh = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, unref);
    t->next = 1;
    return t;
}

void handle_table_free(struct handle_table *t)
{
    if (!t)
        return;
    g_hash_table_unref(t->by_fh);
    pthread_mutex_destroy(&t->lock);
    g_free(t);
}

struct handle *handle_new(struct handle_table *t, struct inode *i, int flags)
{
    struct handle *h = g_new0(struct handle, 1);
    atomic_init(&h->refs, 2); /* the table's and the caller's */
    h->inode = inode_ref(i);
    h->flags = flags;
    pthread_mutex_init(&h->lock, NULL);
    pthread_mutex_lock(&t->lock);
    bool room = g_hash_table_size(t->by_fh) < MAX_HANDLES;
    if (room) {
        h->fh = t->next++;
        g_hash_table_insert(t->by_fh, &h->fh, h);
    }
    pthread_mutex_unlock(&t->lock);
    if (!room) {
        handle_unref(h);
        return handle_unref(h);
    }
    inode_opened(t->inodes, i);
    return h;
}

struct handle *handle_get(struct handle_table *t, uint64_t fh)
{
    pthread_mutex_lock(&t->lock);
    struct handle *h = g_hash_table_lookup(t->by_fh, &fh);
    if (h)
        handle_ref(h);
    pthread_mutex_unlock(&t->lock);
    return h;
}

struct handle *handle_ref(struct handle *h)
{
    atomic_fetch_add_explicit(&h->refs, 1, memory_order_relaxed);
    return h;
}

struct handle *handle_unref(struct handle *h)
{
    if (!h || atomic_fetch_sub_explicit(&h->refs, 1, memory_order_acq_rel) != 1)
        return NULL;
    inode_unref(h->inode);
    bytes_unref(h->value);
    staging_free(h->staging);
    pthread_mutex_destroy(&h->lock);
    g_free(h);
    return NULL;
}

void handle_close(struct handle_table *t, struct handle *h)
{
    pthread_mutex_lock(&t->lock);
    bool open = g_hash_table_lookup(t->by_fh, &h->fh) == h;
    if (open)
        g_hash_table_remove(t->by_fh, &h->fh);
    pthread_mutex_unlock(&t->lock);
    if (!open)
        return;
    if (h->unsettled)
        inode_unsettled(t->inodes, h->inode, -1);
    h->unsettled = false;
    inode_closed(t->inodes, h->inode);
}
