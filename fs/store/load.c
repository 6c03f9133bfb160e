#include "fs/store/load.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "fs/tree/path.h"
#include "fs/tree/text.h"

/* A node that must have children, met before them, since a child's id is above its parent's. */
struct parent {
    uint64_t id; /* the key */
    char *path;
    uint32_t expected;
};

struct child {
    gsize name; /* offset into `names` */
    struct node node;
};

struct load {
    void (*visit)(void *arg, const char *path, struct bytes *data, const struct zstat *stat);
    void *arg;
    const struct meta *meta;
    GHashTable *parents;   /* id -> struct parent, of those whose children have not come yet */
    uint64_t group;        /* parent id of the children at hand */
    struct parent *parent; /* NULL: the group is the root alone, or an orphan's */
    GArray *children;
    GString *names, *path; /* of the children, one after the other; of the one being visited */
    uint32_t ephemerals;
    char *why;
};

static void free_parent(void *p)
{
    struct parent *parent = p;
    g_free(parent->path);
    g_free(parent);
}

static void clear_child(void *p)
{
    node_clear(&((struct child *)p)->node);
}

char *load_describe(const struct record_view *view, const char *parent)
{
    GString *out = g_string_new(NULL);
    if (view->name && (parent || view->parent_id == 0)) {
        g_autofree char *path = view->parent_id == 0 ? g_strdup("/") : path_join(parent, view->name);
        text_append_printable(out, path, strlen(path));
    } else if (view->name) {
        g_string_append_printf(out, "(node %" PRIu64 ")/", view->parent_id);
        text_append_printable(out, view->name, strlen(view->name));
    } else if (view->key_len > 0) {
        g_string_append(out, "key ");
        for (size_t i = 0; i < view->key_len; i++)
            g_string_append_printf(out, "%02x", ((const uint8_t *)view->key)[i]);
    } else {
        g_string_append(out, "the file");
    }
    return g_string_free(out, FALSE);
}

static int compare_ids(const void *a, const void *b)
{
    const struct child *x = a, *y = b;
    return (x->node.id > y->node.id) - (x->node.id < y->node.id);
}

static int damaged(struct load *load, const struct record_view *view, const char *parent, const char *what)
{
    g_autofree char *name = load_describe(view, parent);
    load->why = g_strdup_printf("%s: %s", name, what);
    return -EUCLEAN;
}

static void visit_child(struct load *load, const struct parent *parent, struct child *child)
{
    g_string_assign(load->path, parent && parent->path[1] ? parent->path : "");
    g_string_append_c(load->path, '/');
    g_string_append(load->path, parent ? load->names->str + child->name : "");
    load->visit(load->arg, load->path->str, child->node.data, &child->node.stat);
    if (child->node.num_children == 0)
        return;
    struct parent *next = g_new(struct parent, 1);
    *next = (struct parent){
            .id = child->node.id, .path = g_strdup(load->path->str), .expected = child->node.num_children};
    g_hash_table_insert(load->parents, &next->id, next);
}

/* All children of one parent are at hand. */
static int end_group(struct load *load)
{
    struct parent *parent = load->parent;
    uint32_t expected = load->group == 0 ? 1 : parent ? parent->expected : 0;
    if (load->children->len != expected) {
        load->why = g_strdup_printf("%s: has %u children, but %u are stored", parent ? parent->path : "the root",
                expected, load->children->len);
        return -EUCLEAN;
    }
    g_array_sort(load->children, compare_ids);
    for (guint i = 0; i < load->children->len; i++)
        visit_child(load, parent, &g_array_index(load->children, struct child, i));
    g_array_set_size(load->children, 0);
    g_string_truncate(load->names, 0);
    g_hash_table_remove(load->parents, &load->group);
    return 0;
}

static int visit_record(void *arg, const struct record_view *view)
{
    struct load *load = arg;
    if (view->meta)
        return 0; /* known, as the backend is open */
    if (view->name && view->parent_id != load->group) {
        int err = end_group(load);
        if (err < 0)
            return err;
        load->group = view->parent_id;
        load->parent = g_hash_table_lookup(load->parents, &load->group);
    }
    struct parent *parent = load->parent;
    const char *parent_path = parent ? parent->path : NULL;
    if (view->err < 0)
        return damaged(load, view, parent_path, view->what);
    if (!parent && load->group != 0)
        return damaged(load, view, NULL, "has no parent");
    if (view->node.id <= view->parent_id || view->node.id >= load->meta->next_id)
        return damaged(load, view, parent_path, "impossible id");
    struct child child = {.name = load->names->len, .node = view->node};
    g_string_append_len(load->names, view->name, (gssize)strlen(view->name) + 1);
    bytes_ref(child.node.data);
    g_array_append_val(load->children, child);
    load->ephemerals += child.node.stat.ephemeral_owner != 0;
    return 0;
}

static int check_rest(struct load *load)
{
    GHashTableIter iter;
    void *value;
    g_hash_table_iter_init(&iter, load->parents);
    if (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct parent *parent = value;
        load->why = g_strdup_printf("%s: has %u children, but none is stored", parent->path, parent->expected);
        return -EUCLEAN;
    }
    if (load->ephemerals != load->meta->ephemerals) {
        load->why = g_strdup_printf("%u ephemeral nodes are stored, not %u", load->ephemerals, load->meta->ephemerals);
        return -EUCLEAN;
    }
    return 0;
}

int load_tree(struct backend *b,
        void (*visit)(void *arg, const char *path, struct bytes *data, const struct zstat *stat), void *arg,
        char **ret_why)
{
    struct load load = {.visit = visit, .arg = arg, .meta = &b->meta};
    load.parents = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, free_parent);
    load.names = g_string_new(NULL);
    load.path = g_string_new(NULL);
    load.children = g_array_new(FALSE, FALSE, sizeof(struct child));
    g_array_set_clear_func(load.children, clear_child);
    int err = b->ops->walk(b, visit_record, &load);
    if (err == 0)
        err = end_group(&load);
    if (err == 0)
        err = check_rest(&load);
    if (err < 0)
        *ret_why = load.why ? load.why : g_strdup_printf("cannot be read: %s", g_strerror(-err));
    g_array_unref(load.children);
    g_string_free(load.names, TRUE);
    g_string_free(load.path, TRUE);
    g_hash_table_unref(load.parents);
    return err;
}
