#include "fs/store/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include "fs/store/lmdb.h"
#include "fs/store/load.h"
#include "fs/tree/path.h"

/* A node whose children are awaited; a child's id is above its parent's, so the parent comes first. */
struct known {
    char *path;
    bool ephemeral;
    uint32_t expected, found;
};

struct check {
    FILE *out;
    const struct meta *meta;
    GHashTable *known; /* id -> struct known */
    uint32_t ephemerals;
    int faults;
    bool root_found;
};

static void free_known(void *p)
{
    struct known *known = p;
    g_free(known->path);
    g_free(known);
}

static void report(struct check *c, const struct record_view *view, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
static void report(struct check *c, const struct record_view *view, const char *fmt, ...)
{
    struct known *parent = view->name ? g_hash_table_lookup(c->known, &view->parent_id) : NULL;
    g_autofree char *where = load_describe(view, parent ? parent->path : NULL);
    va_list ap;
    va_start(ap, fmt);
    g_autofree char *what = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    fprintf(c->out, "%s: %s\n", where, what);
    c->faults++;
}

static void check_stat(struct check *c, const struct record_view *view)
{
    const struct node *node = &view->node;
    if (c->meta->zxid < 0)
        return;
    int64_t newest = MAX(node->stat.pzxid, MAX(node->stat.czxid, node->stat.mzxid));
    if (newest > c->meta->zxid)
        report(c, view, "zxid %" PRId64 " is beyond the store's last, %" PRId64, newest, c->meta->zxid);
    if (node->id >= c->meta->next_id)
        report(c, view, "id %" PRIu64 " has not been given out yet", node->id);
    if (node->id <= view->parent_id)
        report(c, view, "id %" PRIu64 " is not above its parent's, %" PRIu64, node->id, view->parent_id);
}

static void add_known(struct check *c, const struct record_view *view, const char *parent_path)
{
    const struct node *node = &view->node;
    if (g_hash_table_contains(c->known, &node->id)) {
        report(c, view, "id %" PRIu64 " is another node's, too", node->id);
        return;
    }
    struct known *known = g_new(struct known, 1);
    *known = (struct known){
            .path = parent_path ? path_join(parent_path, view->name) : g_strdup("/"),
            .ephemeral = node->stat.ephemeral_owner != 0,
            .expected = node->num_children,
    };
    g_hash_table_insert(c->known, g_memdup2(&node->id, sizeof node->id), known);
}

static int check_record(void *arg, const struct record_view *view)
{
    struct check *c = arg;
    struct known *parent = view->name ? g_hash_table_lookup(c->known, &view->parent_id) : NULL;
    if (parent)
        parent->found++;
    if (view->err == -EPROTO)
        report(c, view, "written by a newer version");
    else if (view->err == -ENODATA)
        report(c, view, "cannot be found by its name (index damaged)");
    else if (view->err < 0)
        report(c, view, "record damaged (checksum)");
    if (view->err < 0 && view->err != -ENODATA)
        return 0;
    if (view->parent_id == 0)
        c->root_found = true;
    else if (!parent)
        report(c, view, "has no parent (id %" PRIu64 "): the parent's record is missing or damaged", view->parent_id);
    else if (parent->ephemeral)
        report(c, view, "is the child of an ephemeral node");
    check_stat(c, view);
    if (parent || view->parent_id == 0)
        add_known(c, view, parent ? parent->path : NULL);
    c->ephemerals += view->node.stat.ephemeral_owner != 0;
    return 0;
}

static void check_counts(struct check *c)
{
    g_autoptr(GList) all = g_hash_table_get_values(c->known);
    for (GList *l = all; l; l = l->next) {
        struct known *known = l->data;
        if (known->expected == known->found)
            continue;
        fprintf(c->out, "%s: has %u children, but %u are stored\n", known->path, known->expected, known->found);
        c->faults++;
    }
    if (!c->root_found) {
        fprintf(c->out, "/: missing\n");
        c->faults++;
    }
    if (c->meta->zxid < 0) {
        fprintf(c->out, "the meta record is damaged\n");
        c->faults++;
    } else if (c->ephemerals != c->meta->ephemerals) {
        fprintf(c->out, "%u ephemeral nodes are stored, not %u\n", c->ephemerals, c->meta->ephemerals);
        c->faults++;
    }
}

int store_check(const char *dir, FILE *out, char **ret_why)
{
    struct backend *b;
    struct lmdb_options options = {.read_only = true, .salvage = true};
    g_autofree char *why = NULL;
    int err = backend_open_lmdb(dir, &options, &b, &why);
    if (err == -EUCLEAN) { /* beyond reading: that is the fault */
        fprintf(out, "%s\n", why);
        return 1;
    }
    if (err < 0) {
        *ret_why = g_steal_pointer(&why);
        return err;
    }
    struct check c = {.out = out, .meta = &b->meta};
    c.known = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, free_known);
    err = b->ops->walk(b, check_record, &c);
    if (err < 0) {
        fprintf(out, "%s: pages are damaged, some records cannot be read: %s\n", dir, g_strerror(-err));
        c.faults++;
    }
    check_counts(&c);
    g_hash_table_unref(c.known);
    b->ops->close(b);
    return c.faults;
}
