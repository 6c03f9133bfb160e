#include "fs/fuse/inode.h"

#include <pthread.h>
#include "fs/fuse/virtual.h"

#define ROOT_INO 1
#define OWN_NUMBERS (UINT64_C(1) << 63)

struct inode_table {
    struct mirror *mirror;
    const struct policy *policy;
    bool raw;
    pthread_mutex_t lock;
    GHashTable *by_ino;     /* &inode->ino -> struct inode; holds a reference */
    GHashTable *virtuals;   /* path -> struct inode, the latest; no reference */
    GHashTable *shown_inos; /* path of a journal -> its st_ino */
    uint64_t next_own;
    GHashTable *temps; /* number of a directory -> its private files: name -> struct inode, with a reference */
};

static void staged_free(struct staged *s)
{
    g_free(s->path);
    g_free(s);
}

void temp_free(struct temp *t)
{
    g_free(t->name);
    staging_free(t->content);
    g_free(t);
}

static void virtual_file_free(struct virtual_file *v)
{
    listings_free(v->listings);
    g_free(v->path);
    g_free(v);
}

struct inode *inode_ref(struct inode *i)
{
    atomic_fetch_add_explicit(&i->refs, 1, memory_order_relaxed);
    return i;
}

struct inode *inode_unref(struct inode *i)
{
    if (!i || atomic_fetch_sub_explicit(&i->refs, 1, memory_order_acq_rel) != 1)
        return NULL;
    znode_unref(i->node);
    if (i->type == INODE_STAGED)
        staged_free(i->staged);
    else if (i->type == INODE_TEMP)
        temp_free(i->temp);
    else if (i->type == INODE_VIRTUAL)
        virtual_file_free(i->virtual_file);
    g_free(i);
    return NULL;
}

static void unref(void *i)
{
    inode_unref(i);
}

static void unref_table(void *table)
{
    g_hash_table_unref(table);
}

struct inode_table *inode_table_new(struct mirror *mirror, const struct policy *policy, bool raw)
{
    struct inode_table *t = g_new0(struct inode_table, 1);
    t->mirror = mirror;
    t->policy = policy;
    t->raw = raw;
    pthread_mutex_init(&t->lock, NULL);
    t->by_ino = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, unref);
    t->virtuals = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    t->shown_inos = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    t->temps = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, unref_table);
    t->next_own = OWN_NUMBERS;
    mirror_rdlock(mirror);
    inode_unref(inode_lookup_node(t, mirror_root(mirror), INODE_NODE, "/"));
    mirror_unlock(mirror);
    return t;
}

void inode_table_free(struct inode_table *t)
{
    if (!t)
        return;
    g_hash_table_unref(t->temps);
    g_hash_table_unref(t->virtuals);
    g_hash_table_unref(t->shown_inos);
    g_hash_table_unref(t->by_ino);
    pthread_mutex_destroy(&t->lock);
    g_free(t);
}

static struct inode *find(struct inode_table *t, uint64_t ino)
{
    return g_hash_table_lookup(t->by_ino, &ino);
}

/* Enters an inode with one lookup; the caller's reference is a second one. */
static struct inode *enter(struct inode_table *t, enum inode_type type, uint64_t ino)
{
    struct inode *i = g_new0(struct inode, 1);
    i->ino = ino;
    i->type = type;
    i->nlookup = 1;
    atomic_init(&i->refs, 2);
    g_hash_table_insert(t->by_ino, &i->ino, i);
    return i;
}

static void set_shape(struct inode_table *t, struct inode *i, const char *path)
{
    i->format = t->raw ? FORMAT_OPAQUE : t->policy->format(t->policy->ctx, path);
    i->sensitive = t->policy->sensitive(t->policy->ctx, path);
}

/* Drops an inode that nobody has any more. */
static void drop_unused(struct inode_table *t, struct inode *i)
{
    if (i->nlookup > 0 || i->opens > 0 || i->ino == ROOT_INO)
        return;
    if (i->type == INODE_VIRTUAL && g_hash_table_lookup(t->virtuals, i->virtual_file->path) == i)
        g_hash_table_remove(t->virtuals, i->virtual_file->path);
    g_hash_table_remove(t->by_ino, &i->ino);
}

struct inode *inode_get(struct inode_table *t, uint64_t ino)
{
    pthread_mutex_lock(&t->lock);
    struct inode *i = find(t, ino);
    if (i)
        inode_ref(i);
    pthread_mutex_unlock(&t->lock);
    return i;
}

struct inode *inode_lookup_node(struct inode_table *t, struct znode *n, enum inode_type type, const char *path)
{
    uint64_t ino = znode_ino(n) + (type == INODE_DATA);
    pthread_mutex_lock(&t->lock);
    struct inode *i = find(t, ino);
    if (i) {
        i->nlookup++;
        inode_ref(i);
    } else {
        g_autofree char *found = path ? NULL : znode_path(n);
        i = enter(t, type, ino);
        i->node = znode_ref(n);
        set_shape(t, i, path ? path : found);
    }
    pthread_mutex_unlock(&t->lock);
    return i;
}

struct inode *inode_new_staged(struct inode_table *t, struct staged *staged)
{
    pthread_mutex_lock(&t->lock);
    struct inode *i = enter(t, INODE_STAGED, t->next_own++);
    i->staged = staged;
    set_shape(t, i, staged->path);
    pthread_mutex_unlock(&t->lock);
    return i;
}

struct inode *inode_new_temp(struct inode_table *t, struct temp *temp)
{
    pthread_mutex_lock(&t->lock);
    struct inode *i = enter(t, INODE_TEMP, t->next_own++);
    i->temp = temp;
    GHashTable *siblings = g_hash_table_lookup(t->temps, &temp->parent);
    if (!siblings) {
        siblings = g_hash_table_new_full(g_str_hash, g_str_equal, /* in the inode */ NULL, unref);
        g_hash_table_insert(t->temps, g_memdup2(&temp->parent, sizeof temp->parent), siblings);
    }
    g_hash_table_insert(siblings, temp->name, inode_ref(i));
    pthread_mutex_unlock(&t->lock);
    return i;
}

static bool same_virtual(const struct virtual_file *a, const struct virtual_file *b)
{
    return a->kind == b->kind && a->view.first == b->view.first;
}

/* A journal keeps its st_ino, whatever the view. */
static uint64_t shown_ino(struct inode_table *t, const char *path, uint64_t ino)
{
    uint64_t *shown = g_hash_table_lookup(t->shown_inos, path);
    if (shown)
        return *shown;
    shown = g_new(uint64_t, 1);
    *shown = ino;
    g_hash_table_insert(t->shown_inos, g_strdup(path), shown);
    return ino;
}

struct inode *inode_lookup_virtual(struct inode_table *t, struct virtual_file *v)
{
    pthread_mutex_lock(&t->lock);
    struct inode *i = g_hash_table_lookup(t->virtuals, v->path);
    if (i && same_virtual(i->virtual_file, v)) {
        i->nlookup++;
        inode_ref(i);
        virtual_file_free(v);
    } else {
        i = enter(t, INODE_VIRTUAL, t->next_own++);
        i->virtual_file = v;
        v->shown_ino = v->kind == VIRTUAL_JOURNAL ? shown_ino(t, v->path, i->ino) : i->ino;
        g_hash_table_replace(t->virtuals, g_strdup(v->path), i);
    }
    pthread_mutex_unlock(&t->lock);
    return i;
}

void inode_lookup_again(struct inode_table *t, struct inode *i)
{
    pthread_mutex_lock(&t->lock);
    if (find(t, i->ino) != i)
        g_hash_table_insert(t->by_ino, &i->ino, inode_ref(i));
    i->nlookup++;
    pthread_mutex_unlock(&t->lock);
}

void inode_forget(struct inode_table *t, uint64_t ino, uint64_t n)
{
    pthread_mutex_lock(&t->lock);
    struct inode *i = find(t, ino);
    if (i) {
        i->nlookup -= MIN(n, i->nlookup);
        drop_unused(t, i);
    }
    pthread_mutex_unlock(&t->lock);
}

void inode_opened(struct inode_table *t, struct inode *i)
{
    pthread_mutex_lock(&t->lock);
    i->opens++;
    pthread_mutex_unlock(&t->lock);
}

void inode_closed(struct inode_table *t, struct inode *i)
{
    pthread_mutex_lock(&t->lock);
    i->opens--;
    if (find(t, i->ino) == i)
        drop_unused(t, i);
    pthread_mutex_unlock(&t->lock);
}

bool inode_known(struct inode_table *t, uint64_t ino)
{
    pthread_mutex_lock(&t->lock);
    struct inode *i = find(t, ino);
    bool known = i && i->nlookup > 0;
    pthread_mutex_unlock(&t->lock);
    return known;
}

void inode_made(struct inode_table *t, struct inode *i, struct znode *n)
{
    pthread_mutex_lock(&t->lock);
    struct znode *old = i->node;
    i->node = znode_ref(n);
    pthread_mutex_unlock(&t->lock);
    znode_unref(old);
}

struct znode *inode_node(struct inode_table *t, struct inode *i)
{
    pthread_mutex_lock(&t->lock);
    struct znode *n = i->node ? znode_ref(i->node) : NULL;
    pthread_mutex_unlock(&t->lock);
    return n;
}

bool inode_is_open(struct inode_table *t, struct inode *i)
{
    pthread_mutex_lock(&t->lock);
    bool open = i->opens > 0;
    pthread_mutex_unlock(&t->lock);
    return open;
}

void inode_unsettled(struct inode_table *t, struct inode *i, int more)
{
    pthread_mutex_lock(&t->lock);
    i->unsettled += (uint32_t)more;
    pthread_mutex_unlock(&t->lock);
}

bool inode_is_unsettled(struct inode_table *t, struct inode *i)
{
    pthread_mutex_lock(&t->lock);
    bool unsettled = i->unsettled > 0;
    pthread_mutex_unlock(&t->lock);
    return unsettled;
}

void inode_staged_size(struct inode_table *t, struct inode *i, size_t size)
{
    pthread_mutex_lock(&t->lock);
    i->staged->size = size;
    pthread_mutex_unlock(&t->lock);
}

size_t inode_get_staged_size(struct inode_table *t, struct inode *i)
{
    pthread_mutex_lock(&t->lock);
    size_t size = i->staged->size;
    pthread_mutex_unlock(&t->lock);
    return size;
}

bool inode_alive(const struct inode *i)
{
    if (znode_removed(i->node))
        return false;
    if (i->type == INODE_DATA)
        return i->ino == znode_ino(i->node) + 1 && znode_data(i->node);
    return i->ino == znode_ino(i->node);
}

struct inode *inode_find_temp(struct inode_table *t, uint64_t parent, const char *name)
{
    pthread_mutex_lock(&t->lock);
    GHashTable *siblings = g_hash_table_lookup(t->temps, &parent);
    struct inode *i = siblings ? g_hash_table_lookup(siblings, name) : NULL;
    if (i)
        inode_ref(i);
    pthread_mutex_unlock(&t->lock);
    return i;
}

void inode_unlink_temp(struct inode_table *t, struct inode *i)
{
    pthread_mutex_lock(&t->lock);
    uint64_t parent = i->temp->parent;
    if (parent != 0) {
        GHashTable *siblings = g_hash_table_lookup(t->temps, &parent);
        i->temp->parent = 0;
        g_hash_table_remove(siblings, i->temp->name);
        if (g_hash_table_size(siblings) == 0)
            g_hash_table_remove(t->temps, &parent);
    }
    pthread_mutex_unlock(&t->lock);
}

void inode_unlink_temps(struct inode_table *t, uint64_t parent)
{
    GHashTableIter iter;
    void *i;
    pthread_mutex_lock(&t->lock);
    GHashTable *siblings = g_hash_table_lookup(t->temps, &parent);
    if (siblings) {
        g_hash_table_iter_init(&iter, siblings);
        while (g_hash_table_iter_next(&iter, NULL, &i))
            ((struct inode *)i)->temp->parent = 0;
        g_hash_table_remove(t->temps, &parent);
    }
    pthread_mutex_unlock(&t->lock);
}

bool inode_temp_is_linked(struct inode_table *t, struct inode *i)
{
    pthread_mutex_lock(&t->lock);
    bool linked = i->temp->parent != 0;
    pthread_mutex_unlock(&t->lock);
    return linked;
}

void inode_take_temp(struct inode_table *t, struct inode *i, bool taken)
{
    pthread_mutex_lock(&t->lock);
    i->temp->taken = taken;
    pthread_mutex_unlock(&t->lock);
}

bool inode_temp_is_taken(struct inode_table *t, struct inode *i)
{
    pthread_mutex_lock(&t->lock);
    bool taken = i->temp->taken;
    pthread_mutex_unlock(&t->lock);
    return taken;
}

bool inode_temp_is_replaced(struct inode_table *t, struct inode *i)
{
    pthread_mutex_lock(&t->lock);
    bool replaced = i->temp->taken && i->temp->parent == 0;
    pthread_mutex_unlock(&t->lock);
    return replaced;
}
