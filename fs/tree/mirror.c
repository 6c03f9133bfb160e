#include "fs/tree/mirror.h"

#include <pthread.h>
#include <string.h>
#include "fs/tree/path.h"
#include "fs/tree/znode.h"

#define ROOT_INO 1
#define FIRST_INO 4 /* even, and 2 is the root's `.data` */

struct mirror {
    bool (*always_directory)(void *arg, const char *path);
    void *arg;
    pthread_rwlock_t lock; /* protects all below and every node; writers first; a leaf */
    struct znode *root;
    struct znode_index index;
    uint64_t next_ino;
    atomic_int_fast64_t zxid;
    atomic_uint_fast64_t count;
    /* mirror_load(): siblings come one after the other */
    char *load_parent_path;
    struct znode *load_parent;
};

struct mirror *mirror_new(bool (*always_directory)(void *arg, const char *path), void *arg)
{
    struct mirror *m = g_new0(struct mirror, 1);
    m->always_directory = always_directory;
    m->arg = arg;
    pthread_rwlockattr_t attr;
    pthread_rwlockattr_init(&attr);
    pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&m->lock, &attr);
    pthread_rwlockattr_destroy(&attr);
    index_init(&m->index);
    m->root = znode_new(NULL, "", 0, NULL);
    m->root->ino = ROOT_INO;
    m->root->directory = true;
    m->next_ino = FIRST_INO;
    return m;
}

void mirror_free(struct mirror *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->index.n_buckets; i++) {
        for (struct znode *n = m->index.buckets[i]; n;) {
            struct znode *next = n->hash_next;
            n->removed = true;
            znode_unref(n);
            n = next;
        }
    }
    index_clear(&m->index);
    znode_unref(m->root);
    pthread_rwlock_destroy(&m->lock);
    g_free(m->load_parent_path);
    g_free(m);
}

static struct znode *find(struct mirror *m, const char *path, size_t path_len)
{
    struct znode *n = m->root;
    const char *p = path, *end = path + path_len;
    while (n && p < end && p[1] != '\0') {
        const char *name = ++p;
        while (p < end && *p != '/')
            p++;
        n = index_find(&m->index, n, name, (size_t)(p - name));
    }
    return n;
}

static struct znode *find_parent(struct mirror *m, const char *path)
{
    return find(m, path, (size_t)(path_name(path) - 1 - path));
}

static uint64_t take_ino(struct mirror *m)
{
    uint64_t ino = m->next_ino;
    m->next_ino += 2;
    return ino;
}

/* Adds a node; the reference to `data` is taken over. */
static struct znode *add(struct mirror *m, struct znode *parent, const char *path, struct bytes *data)
{
    const char *name = path_name(path);
    size_t len = strlen(name);
    uint32_t hash = index_hash(&m->index, parent, name, len);
    struct znode *n = znode_new(parent, name, len, data);
    n->hash = hash;
    n->ino = take_ino(m);
    n->directory = !data || (m->always_directory && m->always_directory(m->arg, path));
    index_insert(&m->index, n);
    directory_append(parent, n);
    atomic_fetch_add_explicit(&m->count, 1, memory_order_relaxed);
    return n;
}

static void raise_zxid(struct mirror *m, int64_t zxid)
{
    if (zxid > atomic_load(&m->zxid))
        atomic_store(&m->zxid, zxid);
}

static struct znode *load_parent_of(struct mirror *m, const char *path)
{
    size_t len = (size_t)(path_name(path) - 1 - path);
    if (!m->load_parent || strncmp(m->load_parent_path, path, len) != 0 || m->load_parent_path[len] != '\0') {
        g_free(m->load_parent_path);
        m->load_parent_path = g_strndup(path, len);
        m->load_parent = find_parent(m, path);
    }
    return m->load_parent;
}

void mirror_load(struct mirror *m, const char *path, struct bytes *data, const struct zstat *stat)
{
    pthread_rwlock_wrlock(&m->lock);
    struct znode *n = m->root;
    if (strcmp(path, "/") == 0) {
        bytes_unref(n->data);
        n->data = bytes_ref(data);
    } else {
        struct znode *parent = load_parent_of(m, path);
        g_assert(parent);
        if (!parent->directory) { /* nobody has seen it as a file: it keeps its number and its place */
            parent->directory = true;
            parent->parent->children->directories++;
        }
        n = add(m, parent, path, bytes_ref(data));
        parent->changed_ms = MAX(parent->changed_ms, stat->ctime);
    }
    n->stat = *stat;
    n->changed_ms = MAX(n->changed_ms, stat->mtime);
    raise_zxid(m, MAX(stat->pzxid, MAX(stat->czxid, stat->mzxid)));
    pthread_rwlock_unlock(&m->lock);
}

/* Makes a file a directory, with a new number and so at the end of its parent's order. Returns the number it had, or 0
 * if it is one already. */
static uint64_t become_directory(struct mirror *m, struct znode *n)
{
    if (n->directory)
        return 0;
    uint64_t old = n->ino;
    directory_remove(n->parent, n);
    n->ino = take_ino(m);
    n->directory = true;
    directory_append(n->parent, n);
    return old;
}

static void apply_to_parent(struct znode *parent, const struct commit *c, struct change *ch)
{
    parent->stat.pzxid = ch->parent_pzxid;
    parent->stat.cversion = ch->parent_cversion;
    parent->changed_ms = c->time_ms;
    ch->parent_ino = parent->ino;
}

static void apply_created(struct mirror *m, const struct commit *c, struct change *ch)
{
    struct znode *parent = find_parent(m, ch->path);
    g_assert(parent);
    ch->parent_old_ino = become_directory(m, parent);
    struct znode *n = add(m, parent, ch->path, bytes_ref(ch->data));
    n->stat = ch->stat;
    n->changed_ms = ch->stat.mtime;
    ch->ino = n->ino;
    apply_to_parent(parent, c, ch);
}

static void apply_deleted(struct mirror *m, const struct commit *c, struct change *ch)
{
    struct znode *n = find(m, ch->path, strlen(ch->path));
    g_assert(n && n->parent && znode_num_children(n) == 0);
    ch->ino = n->ino;
    apply_to_parent(n->parent, c, ch);
    index_remove(&m->index, n);
    directory_remove(n->parent, n);
    n->removed = true;
    atomic_fetch_sub_explicit(&m->count, 1, memory_order_relaxed);
    znode_unref(n);
}

/* A node that was made with null data and got its value in the same commit, as a broker's registration, was never shown
 * as a directory. */
static void become_file_again(struct mirror *m, struct znode *n, const char *path)
{
    if (!n->directory || znode_num_children(n) > 0 || (m->always_directory && m->always_directory(m->arg, path)))
        return;
    n->directory = false;
    n->parent->children->directories--;
}

static void apply_data(struct mirror *m, const struct commit *c, struct change *ch)
{
    struct znode *n = find(m, ch->path, strlen(ch->path));
    g_assert(n);
    ch->was_null = !n->data;
    if (!n->data && ch->data && n->stat.czxid == c->zxid)
        become_file_again(m, n, ch->path);
    bytes_unref(n->data);
    n->data = bytes_ref(ch->data);
    n->stat = ch->stat;
    n->changed_ms = ch->stat.mtime;
    if (!n->data)
        ch->old_ino = become_directory(m, n);
    ch->ino = n->ino;
    ch->parent_ino = n->parent ? n->parent->ino : 0;
}

void mirror_apply(struct mirror *m, struct commit *c)
{
    pthread_rwlock_wrlock(&m->lock);
    m->load_parent = NULL;
    for (size_t i = 0; i < c->n_changes; i++) {
        struct change *ch = &c->changes[i];
        if (ch->type == NODE_CREATED)
            apply_created(m, c, ch);
        else if (ch->type == NODE_DELETED)
            apply_deleted(m, c, ch);
        else
            apply_data(m, c, ch);
    }
    atomic_store(&m->zxid, c->zxid);
    pthread_rwlock_unlock(&m->lock);
}

int64_t mirror_zxid(struct mirror *m)
{
    return atomic_load(&m->zxid);
}

uint64_t mirror_count(struct mirror *m)
{
    return atomic_load(&m->count);
}

int mirror_get(struct mirror *m, const char *path, struct bytes **ret_data, struct zstat *ret_stat)
{
    mirror_rdlock(m);
    struct znode *n = mirror_find(m, path);
    if (n && ret_data)
        *ret_data = bytes_ref(n->data);
    if (n && ret_stat)
        *ret_stat = n->stat;
    mirror_unlock(m);
    return n ? ZOK : ZNONODE;
}

bool mirror_exists(struct mirror *m, const char *path)
{
    return mirror_get(m, path, NULL, NULL) == ZOK;
}

GPtrArray *mirror_children(struct mirror *m, const char *path)
{
    GPtrArray *names = NULL;
    mirror_rdlock(m);
    struct znode *n = mirror_find(m, path);
    if (n) {
        names = g_ptr_array_new_full(znode_num_children(n), g_free);
        for (struct znode *child = znode_next_child(n, 0); child; child = znode_next_child(n, child->ino))
            g_ptr_array_add(names, g_strdup(child->name));
    }
    mirror_unlock(m);
    return names;
}

static void clear_node_below(gpointer arg)
{
    struct node_below *b = arg;
    g_free(b->child);
    bytes_unref(b->data);
}

GArray *mirror_below(struct mirror *m, const char *path, const char *name)
{
    mirror_rdlock(m);
    struct znode *n = mirror_find(m, path);
    GArray *all = g_array_sized_new(FALSE, FALSE, sizeof(struct node_below), n ? znode_num_children(n) : 0);
    g_array_set_clear_func(all, clear_node_below);
    for (struct znode *child = n ? znode_next_child(n, 0) : NULL; child; child = znode_next_child(n, child->ino)) {
        const struct znode *found = znode_next_child(child, 0);
        while (found && strcmp(found->name, name) != 0)
            found = znode_next_child(child, found->ino);
        if (found) {
            struct node_below b = {g_strdup(child->name), bytes_ref(found->data), found->stat.version};
            g_array_append_val(all, b);
        }
    }
    mirror_unlock(m);
    return all;
}

void mirror_rdlock(struct mirror *m)
{
    pthread_rwlock_rdlock(&m->lock);
}

void mirror_unlock(struct mirror *m)
{
    pthread_rwlock_unlock(&m->lock);
}

struct znode *mirror_root(struct mirror *m)
{
    return m->root;
}

struct znode *mirror_find(struct mirror *m, const char *path)
{
    return find(m, path, strlen(path));
}

struct znode *znode_child(struct mirror *m, struct znode *n, const char *name)
{
    return index_find(&m->index, n, name, strlen(name));
}
