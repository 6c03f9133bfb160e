/* Listings of the virtual directories. A directory is read without a handle, so the listing that a reader has begun is
 * found by the cookie: its number, and a position in it. */
#include <pthread.h>
#include "fs/fuse/virtual.h"

#define POSITION_BITS 32
#define MAX_NUMBER (1u << 30)
#define MAX_LISTINGS 16 /* of one directory; a reader that comes last goes on in a new one, at the same position */

struct listings {
    pthread_mutex_t lock; /* protects all below: answers come from other threads */
    GQueue queue;         /* struct listing, the newest first */
    uint32_t last;
};

struct listing {
    uint32_t number;
    GPtrArray *entries; /* struct virtual_entry */
};

static void free_entry(void *p)
{
    struct virtual_entry *e = p;
    g_free(e->name);
    g_free(e);
}

GPtrArray *listing_entries_new(void)
{
    return g_ptr_array_new_with_free_func(free_entry);
}

void listing_entries_add(GPtrArray *entries, const char *name, enum virtual_kind kind)
{
    struct virtual_entry *e = g_new(struct virtual_entry, 1);
    *e = (struct virtual_entry){.name = g_strdup(name), .kind = kind};
    g_ptr_array_add(entries, e);
}

static void free_listing(void *p)
{
    struct listing *l = p;
    g_ptr_array_unref(l->entries);
    g_free(l);
}

struct listings *listings_new(void)
{
    struct listings *all = g_new0(struct listings, 1);
    pthread_mutex_init(&all->lock, NULL);
    return all;
}

void listings_free(struct listings *all)
{
    if (!all)
        return;
    g_queue_clear_full(&all->queue, free_listing);
    pthread_mutex_destroy(&all->lock);
    g_free(all);
}

uint32_t listings_add(struct listings *all, GPtrArray *entries)
{
    struct listing *l = g_new(struct listing, 1), *oldest = NULL;
    l->entries = g_ptr_array_ref(entries);
    pthread_mutex_lock(&all->lock);
    l->number = all->last = all->last % MAX_NUMBER + 1;
    g_queue_push_head(&all->queue, l);
    if (g_queue_get_length(&all->queue) > MAX_LISTINGS)
        oldest = g_queue_pop_tail(&all->queue);
    uint32_t number = l->number;
    pthread_mutex_unlock(&all->lock);
    if (oldest)
        free_listing(oldest);
    return number;
}

static GList *find(struct listings *all, uint32_t number)
{
    for (GList *l = all->queue.head; l; l = l->next)
        if (((struct listing *)l->data)->number == number)
            return l;
    return NULL;
}

uint32_t listing_number(off_t cookie)
{
    return (uint32_t)((uint64_t)cookie >> POSITION_BITS);
}

static guint position_of(off_t cookie)
{
    return (guint)((uint64_t)cookie & UINT32_MAX);
}

GPtrArray *listings_find(struct listings *all, off_t cookie)
{
    GPtrArray *entries = NULL;
    pthread_mutex_lock(&all->lock);
    GList *l = find(all, listing_number(cookie));
    if (l)
        entries = g_ptr_array_ref(((struct listing *)l->data)->entries);
    pthread_mutex_unlock(&all->lock);
    return entries;
}

static void drop(struct listings *all, uint32_t number)
{
    pthread_mutex_lock(&all->lock);
    GList *l = find(all, number);
    struct listing *listing = l ? l->data : NULL;
    if (l)
        g_queue_delete_link(&all->queue, l);
    pthread_mutex_unlock(&all->lock);
    if (listing)
        free_listing(listing);
}

static mode_t type_of(enum virtual_kind kind)
{
    return kind == VIRTUAL_DIRECTORY ? S_IFDIR : kind == VIRTUAL_LINK ? S_IFLNK : S_IFREG;
}

/* No entry brings an inode with it: what is below `.state` is asked for when it is looked up. */
void listings_reply(
        fuse_req_t req, struct listings *all, GPtrArray *entries, uint32_t number, off_t cookie, size_t size, bool plus)
{
    g_autofree char *buf = g_malloc(size);
    size_t used = 0;
    for (guint i = position_of(cookie); i < entries->len; i++) {
        const struct virtual_entry *v = g_ptr_array_index(entries, i);
        struct fuse_entry_param e = {.attr.st_ino = 1, .attr.st_mode = type_of(v->kind)};
        off_t next = (off_t)((uint64_t)number << POSITION_BITS | (i + 1));
        char *at = buf + used;
        size_t left = size - used;
        size_t n = plus ? fuse_add_direntry_plus(req, at, left, v->name, &e, next)
                        : fuse_add_direntry(req, at, left, v->name, &e.attr, next);
        if (n > left)
            break;
        used += n;
    }
    if (position_of(cookie) >= entries->len) /* its reader is at the end */
        drop(all, number);
    g_ptr_array_unref(entries);
    fuse_reply_buf(req, buf, used);
}
