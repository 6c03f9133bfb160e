#include "fs/store/overlay.h"

#include <errno.h>
#include <string.h>
#include "fs/tree/path.h"

/* What is kept in memory between batches, as a whole: the hot nodes of a cluster, and not much more. */
#define KEEP_ENTRIES 8192
#define KEEP_BYTES (16u << 20)

struct saved {
    struct entry *entry;
    struct entry before; /* with a reference to the data, without the path */
};

/* A record to be removed; the path is that of an entry. */
struct removal {
    uint64_t parent_id;
    const char *name;
};

struct overlay {
    struct backend *backend;
    GHashTable *entries; /* path -> struct entry */
    size_t bytes;        /* of data that entries have taken up */
    GPtrArray *dirty;
    GArray *removals; /* struct removal */
    struct meta meta;
    /* since the mark */
    GArray *undo; /* struct saved */
    guint dirty_mark, removals_mark;
    struct meta meta_mark;
};

static void free_entry(void *p)
{
    struct entry *e = p;
    g_free(e->path);
    node_clear(&e->node);
    g_free(e);
}

static void clear_undo(struct overlay *o)
{
    for (guint i = 0; i < o->undo->len; i++)
        node_clear(&g_array_index(o->undo, struct saved, i).before.node);
    g_array_set_size(o->undo, 0);
}

struct overlay *overlay_new(struct backend *b)
{
    struct overlay *o = g_new0(struct overlay, 1);
    o->backend = b;
    o->entries = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, free_entry);
    o->dirty = g_ptr_array_new();
    o->removals = g_array_new(FALSE, FALSE, sizeof(struct removal));
    o->undo = g_array_new(FALSE, FALSE, sizeof(struct saved));
    o->meta = b->meta;
    return o;
}

void overlay_free(struct overlay *o)
{
    if (!o)
        return;
    clear_undo(o);
    g_array_unref(o->undo);
    g_array_unref(o->removals);
    g_ptr_array_unref(o->dirty);
    g_hash_table_unref(o->entries);
    g_free(o);
}

static struct entry *add_entry(struct overlay *o, const char *path, size_t len)
{
    struct entry *e = g_new0(struct entry, 1);
    e->path = g_strndup(path, len);
    g_hash_table_insert(o->entries, e->path, e);
    return e;
}

/* Reads a node that is not in memory. */
static int read_entry(struct overlay *o, const char *path, size_t len, uint64_t parent_id, struct entry **ret)
{
    struct node node;
    g_autofree char *own = g_strndup(path, len);
    const char *name = len == 1 ? ROOT_NAME : path_name(own);
    int err = -ENOENT;
    if (strlen(name) <= RECORD_NAME_MAX)
        err = o->backend->ops->get(o->backend, parent_id, name, &node);
    if (err < 0 && err != -ENOENT)
        return err;
    struct entry *e = add_entry(o, path, len);
    if (err == 0) {
        e->exists = e->stored = true;
        e->parent_id = parent_id;
        e->node = node;
        o->bytes += node.data ? node.data->len : 0;
    }
    *ret = e;
    return 0;
}

/* Length of the parent's path; that of "/a" is "/". */
static size_t parent_len(const char *path, size_t len)
{
    while (path[len - 1] != '/')
        len--;
    return len == 1 ? 1 : len - 1;
}

/* Not recursive, as the depth of a path is its author's choice. */
int overlay_find(struct overlay *o, const char *path, struct entry **ret)
{
    g_autofree char *prefix = g_strdup(path);
    size_t all = strlen(path), len = all;
    struct entry *e;
    while (!(e = g_hash_table_lookup(o->entries, prefix)) && len > 1) {
        len = parent_len(path, len);
        prefix[len] = '\0';
    }
    int err = 0;
    if (!e)
        err = read_entry(o, "/", 1, 0, &e);
    while (err == 0 && e->exists && len < all) {
        len += (len == 1 ? 0 : 1);
        len += strcspn(path + len, "/");
        err = read_entry(o, path, len, e->node.id, &e);
    }
    if (err == 0)
        *ret = len == all ? e : NULL;
    return err;
}

static void mark_dirty(struct overlay *o, struct entry *e)
{
    if (e->dirty)
        return;
    e->dirty = true;
    g_ptr_array_add(o->dirty, e);
}

void overlay_touch(struct overlay *o, struct entry *e)
{
    struct saved saved = {.entry = e, .before = *e};
    saved.before.path = NULL;
    bytes_ref(saved.before.node.data);
    g_array_append_val(o->undo, saved);
    mark_dirty(o, e);
}

void overlay_create(struct overlay *o, struct entry *e, uint64_t parent_id, const struct node *node)
{
    overlay_touch(o, e);
    node_clear(&e->node);
    e->node = *node;
    e->parent_id = parent_id;
    e->exists = true;
    o->bytes += node->data ? node->data->len : 0;
}

void overlay_delete(struct overlay *o, struct entry *e)
{
    overlay_touch(o, e);
    if (e->stored) {
        struct removal removal = {.parent_id = e->parent_id, .name = path_name(e->path)};
        g_array_append_val(o->removals, removal);
    }
    node_clear(&e->node);
    e->exists = e->stored = false;
}

struct meta *overlay_meta(struct overlay *o)
{
    return &o->meta;
}

void overlay_mark(struct overlay *o)
{
    clear_undo(o);
    o->dirty_mark = o->dirty->len;
    o->removals_mark = o->removals->len;
    o->meta_mark = o->meta;
}

void overlay_undo(struct overlay *o)
{
    for (guint i = o->undo->len; i-- > 0;) {
        struct saved *saved = &g_array_index(o->undo, struct saved, i);
        struct entry *e = saved->entry;
        node_clear(&e->node);
        saved->before.path = e->path;
        *e = saved->before;
    }
    g_array_set_size(o->undo, 0);
    for (guint i = o->dirty_mark; i < o->dirty->len; i++)
        ((struct entry *)g_ptr_array_index(o->dirty, i))->dirty = false;
    g_ptr_array_set_size(o->dirty, (gint)o->dirty_mark);
    g_array_set_size(o->removals, o->removals_mark);
    o->meta = o->meta_mark;
}

static GArray *collect_writes(struct overlay *o)
{
    GArray *writes = g_array_sized_new(FALSE, FALSE, sizeof(struct record_write), o->removals->len + o->dirty->len);
    for (guint i = 0; i < o->removals->len; i++) {
        struct removal *removal = &g_array_index(o->removals, struct removal, i);
        struct record_write write = {.parent_id = removal->parent_id, .name = removal->name};
        g_array_append_val(writes, write);
    }
    for (guint i = 0; i < o->dirty->len; i++) {
        struct entry *e = g_ptr_array_index(o->dirty, i);
        const char *name = strcmp(e->path, "/") == 0 ? ROOT_NAME : path_name(e->path);
        struct record_write write = {.parent_id = e->parent_id, .name = name, .node = &e->node};
        if (e->exists)
            g_array_append_val(writes, write);
    }
    return writes;
}

static void settle_entries(struct overlay *o)
{
    for (guint i = 0; i < o->dirty->len; i++) {
        struct entry *e = g_ptr_array_index(o->dirty, i);
        e->dirty = false;
        e->stored = e->exists;
    }
    g_ptr_array_set_size(o->dirty, 0);
    g_array_set_size(o->removals, 0);
    clear_undo(o);
}

static bool is_large(const struct overlay *o)
{
    return g_hash_table_size(o->entries) > KEEP_ENTRIES || o->bytes > KEEP_BYTES;
}

int overlay_commit(struct overlay *o)
{
    if (o->dirty->len == 0 && memcmp(&o->meta, &o->backend->meta, sizeof o->meta) == 0) {
        if (is_large(o)) /* what was refused has been looked for */
            overlay_forget(o);
        else
            o->backend->ops->reset(o->backend);
        return 0;
    }
    g_autoptr(GArray) writes = collect_writes(o);
    const struct record_write *first = (const struct record_write *)(void *)writes->data;
    int err = o->backend->ops->commit(o->backend, first, writes->len, &o->meta);
    if (err == 0) {
        settle_entries(o);
        if (is_large(o))
            overlay_forget(o);
    }
    return err;
}

void overlay_forget(struct overlay *o)
{
    clear_undo(o);
    g_ptr_array_set_size(o->dirty, 0);
    g_array_set_size(o->removals, 0);
    g_hash_table_remove_all(o->entries);
    o->bytes = 0;
    o->meta = o->backend->meta;
    o->backend->ops->reset(o->backend);
}
