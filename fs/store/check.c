/* `--check`: every fault that an embedded store shows, a line each. */
#include "fs/store/store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <unistd.h>
#include "fs/store/lmdb_dir.h"
#include "fs/store/lmdb_walk.h"
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
    struct meta meta;
    bool meta_found, meta_known;
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
    if (!c->meta_known)
        return;
    int64_t newest = MAX(node->stat.pzxid, MAX(node->stat.czxid, node->stat.mzxid));
    if (newest > c->meta.zxid)
        report(c, view, "zxid %" PRId64 " is beyond the store's last, %" PRId64, newest, c->meta.zxid);
    if (node->id >= c->meta.next_id)
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

static void check_meta(struct check *c, const struct record_view *view)
{
    if (view->err < 0) {
        fprintf(c->out, "the meta record: %s\n", view->what);
        c->faults++;
    } else {
        c->meta = *view->meta;
        c->meta_known = true;
    }
}

static int check_record(void *arg, const struct record_view *view)
{
    struct check *c = arg;
    if (view->meta) {
        c->meta_found = true;
        check_meta(c, view);
        return 0;
    }
    struct known *parent = view->name ? g_hash_table_lookup(c->known, &view->parent_id) : NULL;
    if (parent && view->err != -EIO)
        parent->found++;
    if (view->err == -EIO)
        report(c, view, "%s: records from about here on cannot be read", view->what);
    else if (view->err < 0)
        report(c, view, "%s", view->what);
    if (view->err < 0)
        return 0;
    if (view->parent_id == 0)
        c->root_found = true;
    else if (!parent)
        report(c, view, "has no parent: its record is missing or damaged");
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
    if (!c->meta_found) {
        fprintf(c->out, "the meta record: missing\n");
        c->faults++;
    }
    if (c->meta_known && c->ephemerals != c->meta.ephemerals) {
        fprintf(c->out, "%u ephemeral nodes are stored, not %u\n", c->ephemerals, c->meta.ephemerals);
        c->faults++;
    }
}

int store_check(const char *dir, FILE *out, char **ret_why)
{
    struct lmdb_dir d;
    g_autofree char *why = NULL;
    int err = lmdb_dir_open(dir, false, true, &d, ret_why);
    if (err < 0)
        return err;
    int fd = lmdb_dir_open_file(&d, dir, &why);
    struct check c = {.out = out};
    if (fd == -EUCLEAN) { /* beyond reading: that is the fault */
        fprintf(out, "%s\n", why);
        c.faults = 1;
    } else if (fd < 0) {
        err = fd;
        *ret_why = g_steal_pointer(&why);
    } else {
        c.known = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, free_known);
        err = lmdb_walk(fd, check_record, &c);
        if (err < 0)
            *ret_why = g_strdup_printf("%s: %s", dir, g_strerror(-err));
        else
            check_counts(&c);
        g_hash_table_unref(c.known);
        close(fd);
    }
    lmdb_dir_close(&d);
    return err < 0 ? err : c.faults;
}
