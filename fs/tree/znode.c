#include "fs/tree/znode.h"

#include <string.h>

struct znode *znode_new(struct znode *parent, const char *name, size_t len, struct bytes *data)
{
    struct znode *n = g_malloc0(sizeof *n + len + 1);
    atomic_init(&n->refs, 1);
    n->parent = parent ? znode_ref(parent) : NULL;
    n->data = data;
    memcpy(n->name, name, len);
    return n;
}

struct znode *znode_ref(struct znode *n)
{
    atomic_fetch_add_explicit(&n->refs, 1, memory_order_relaxed);
    return n;
}

struct znode *znode_unref(struct znode *n)
{
    /* A loop, as the last child of a removed parent takes it along. */
    while (n && atomic_fetch_sub_explicit(&n->refs, 1, memory_order_acq_rel) == 1) {
        struct znode *parent = n->parent;
        bytes_unref(n->data);
        if (n->children)
            g_free(n->children->slots);
        g_free(n->children);
        g_free(n);
        n = parent;
    }
    return NULL;
}

/* Makes room for one more slot at the end, at O(1) amortised. */
static void reserve(struct directory *d)
{
    if (d->end < d->capacity)
        return;
    uint32_t used = d->end - d->first;
    if (d->first >= d->capacity / 2 && d->first > 0) {
        memmove(d->slots, d->slots + d->first, used * sizeof *d->slots);
        d->first = 0;
        d->end = used;
        return;
    }
    d->capacity = d->capacity == 0 ? 1 : d->capacity * 2;
    d->slots = g_renew(struct slot, d->slots, d->capacity);
}

static void compact(struct directory *d)
{
    uint32_t n = 0;
    for (uint32_t i = d->first; i < d->end; i++)
        if (d->slots[i].node)
            d->slots[n++] = d->slots[i];
    d->first = 0;
    d->end = n;
    d->capacity = MAX(n, 1);
    d->slots = g_renew(struct slot, d->slots, d->capacity);
}

/* Position of the first slot, tombstone or not, with a number above `ino`. */
static uint32_t upper_bound(const struct directory *d, uint64_t ino)
{
    uint32_t low = d->first, high = d->end;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (d->slots[middle].ino > ino)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void directory_append(struct znode *parent, struct znode *child)
{
    if (!parent->children)
        parent->children = g_new0(struct directory, 1);
    struct directory *d = parent->children;
    g_assert(d->end == d->first || d->slots[d->end - 1].ino < child->ino);
    reserve(d);
    d->slots[d->end++] = (struct slot){.ino = child->ino, .node = child};
    d->live++;
    d->directories += child->directory;
}

void directory_remove(struct znode *parent, struct znode *child)
{
    struct directory *d = parent->children;
    uint32_t i = upper_bound(d, child->ino - 1);
    g_assert(i < d->end && d->slots[i].node == child);
    d->slots[i].node = NULL;
    d->live--;
    d->directories -= child->directory;
    while (d->first < d->end && !d->slots[d->first].node)
        d->first++;
    while (d->end > d->first && !d->slots[d->end - 1].node)
        d->end--;
    if (d->live == 0) {
        g_free(d->slots);
        *d = (struct directory){0};
    } else if (d->end - d->first > 16 && d->live < (d->end - d->first) / 2) {
        compact(d);
    }
}

struct znode *znode_next_child(struct znode *n, uint64_t after)
{
    const struct directory *d = n->children;
    if (!d)
        return NULL;
    for (uint32_t i = upper_bound(d, after); i < d->end; i++)
        if (d->slots[i].node)
            return d->slots[i].node;
    return NULL;
}

const char *znode_name(const struct znode *n)
{
    return n->name;
}

struct znode *znode_parent(const struct znode *n)
{
    return n->removed ? NULL : n->parent;
}

char *znode_path(const struct znode *n)
{
    size_t len = 0;
    for (const struct znode *p = n; p->parent; p = p->parent)
        len += 1 + strlen(p->name);
    if (len == 0)
        return g_strdup("/");
    char *path = g_malloc(len + 1);
    path[len] = '\0';
    for (const struct znode *p = n; p->parent; p = p->parent) {
        size_t name_len = strlen(p->name);
        len -= name_len;
        memcpy(path + len, p->name, name_len);
        path[--len] = '/';
    }
    return path;
}

struct bytes *znode_data(const struct znode *n)
{
    return n->data;
}

const struct zstat *znode_stat(const struct znode *n)
{
    return &n->stat;
}

int64_t znode_changed_ms(const struct znode *n)
{
    return n->changed_ms;
}

uint64_t znode_ino(const struct znode *n)
{
    return n->ino;
}

uint32_t znode_num_children(const struct znode *n)
{
    return n->children ? n->children->live : 0;
}

uint32_t znode_num_directories(const struct znode *n)
{
    return n->children ? n->children->directories : 0;
}

bool znode_is_directory(const struct znode *n)
{
    return n->directory;
}

bool znode_removed(const struct znode *n)
{
    return n->removed;
}
