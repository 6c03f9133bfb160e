#include "tests/unit/config_fixture.h"
#include <limits.h>
#include <string.h>
#include "controller/json/codec.h"

struct fake_node {
    struct bytes *data;
    struct zstat stat;
};

static void free_node(void *arg)
{
    struct fake_node *n = arg;
    bytes_unref(n->data);
    g_free(n);
}

static void unref_names(void *arg)
{
    g_ptr_array_unref(arg);
}

struct fake_tree *fake_tree_new(void)
{
    struct fake_tree *t = g_new0(struct fake_tree, 1);
    t->nodes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_node);
    t->children = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, unref_names);
    t->now_ms = 1000000;
    t->events = g_ptr_array_new_with_free_func(g_free);
    t->errors = g_ptr_array_new_with_free_func(g_free);
    t->unclean = g_ptr_array_new_with_free_func(g_free);
    t->batches = g_ptr_array_new_with_free_func(g_free);
    return t;
}

void fake_tree_free(struct fake_tree *t)
{
    g_hash_table_unref(t->nodes);
    g_hash_table_unref(t->children);
    g_ptr_array_unref(t->events);
    g_ptr_array_unref(t->errors);
    g_ptr_array_unref(t->unclean);
    g_ptr_array_unref(t->batches);
    g_free(t);
}

void fake_clear(struct fake_tree *t)
{
    g_ptr_array_set_size(t->events, 0);
    g_ptr_array_set_size(t->errors, 0);
    g_ptr_array_set_size(t->unclean, 0);
    g_ptr_array_set_size(t->batches, 0);
    t->broker_changed = t->gets = 0;
}

bool fake_said(GPtrArray *lines, const char *text)
{
    for (guint i = 0; i < lines->len; i++)
        if (strstr(lines->pdata[i], text))
            return true;
    return false;
}

void fake_put(struct fake_tree *t, const char *path, const char *text)
{
    struct fake_node *n = g_hash_table_lookup(t->nodes, path);
    t->zxid++;
    if (!n) {
        n = g_new0(struct fake_node, 1);
        n->stat = (struct zstat){.czxid = t->zxid, .ctime = t->now_ms};
        g_hash_table_insert(t->nodes, g_strdup(path), n);
        g_autofree char *parent = g_path_get_dirname(path);
        GPtrArray *names = g_hash_table_lookup(t->children, parent);
        if (!names) {
            names = g_ptr_array_new_with_free_func(g_free);
            g_hash_table_insert(t->children, g_strdup(parent), names);
        }
        g_ptr_array_add(names, g_path_get_basename(path));
    } else {
        n->stat.version++;
    }
    n->stat.mzxid = t->zxid;
    bytes_unref(n->data);
    n->data = text ? bytes_from_string(text) : NULL;
}

void fake_config(struct fake_tree *t, const char *path, ...)
{
    g_autoptr(GHashTable) config = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GPtrArray) kept = g_ptr_array_new_with_free_func((GDestroyNotify)g_strfreev);
    g_autofree char *znode = g_strconcat("/config/", path, NULL);
    va_list ap;
    va_start(ap, path);
    for (const char *pair; (pair = va_arg(ap, const char *));) {
        char **parts = g_strsplit(pair, "=", 2);
        g_ptr_array_add(kept, parts);
        g_hash_table_insert(config, parts[0], parts[1]);
    }
    va_end(ap);
    struct bytes *data = config_entity_encode(config);
    fake_put(t, znode, data->data);
    bytes_unref(data);
}

void fake_delete(struct fake_tree *t, const char *path)
{
    g_autofree char *parent = g_path_get_dirname(path), *name = g_path_get_basename(path);
    if (!g_hash_table_remove(t->nodes, path))
        return;
    GPtrArray *names = g_hash_table_lookup(t->children, parent);
    for (guint i = 0; i < names->len; i++)
        if (strcmp(names->pdata[i], name) == 0) {
            g_ptr_array_remove_index(names, i);
            return;
        }
}

const char *fake_note(struct fake_tree *t, const char *text)
{
    static char path[64];
    g_snprintf(path, sizeof(path), "/config/changes/config_change_%010d", t->sequence++);
    fake_put(t, path, text);
    return path + strlen("/config/changes/");
}

const char *fake_notify(struct fake_tree *t, const char *entity)
{
    g_autofree char *text = g_strdup_printf("{\"version\":2,\"entity_path\":\"%s\"}", entity);
    return fake_note(t, text);
}

static int get(void *ctx, const char *path, struct bytes **ret_data, struct zstat *ret_stat)
{
    struct fake_tree *t = ctx;
    struct fake_node *n = g_hash_table_lookup(t->nodes, path);
    t->gets++;
    if (!n)
        return ZNONODE;
    if (ret_data)
        *ret_data = bytes_ref(n->data);
    if (ret_stat)
        *ret_stat = n->stat;
    return ZOK;
}

static GPtrArray *children(void *ctx, const char *path)
{
    struct fake_tree *t = ctx;
    GPtrArray *names = g_hash_table_lookup(t->children, path);
    if (!names)
        return NULL;
    GPtrArray *copy = g_ptr_array_new_full(names->len, g_free);
    for (guint i = 0; i < names->len; i++)
        g_ptr_array_add(copy, g_strdup(names->pdata[i]));
    return copy;
}

static int64_t now_ms(void *ctx)
{
    return ((struct fake_tree *)ctx)->now_ms;
}

static void remove_nodes(void *ctx, GPtrArray *paths)
{
    struct fake_tree *t = ctx;
    g_ptr_array_add(t->batches, g_strdup_printf("%u", paths->len));
    for (guint i = 0; i < paths->len && !t->removes_nothing; i++)
        fake_delete(t, paths->pdata[i]);
    g_ptr_array_unref(paths);
}

static void event(void *ctx, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    g_ptr_array_add(((struct fake_tree *)ctx)->events, g_strdup_vprintf(fmt, ap));
    va_end(ap);
}

static void error(void *ctx, int err, const char *path, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    g_autofree char *text = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    g_ptr_array_add(((struct fake_tree *)ctx)->errors, g_strdup_printf("%d %s %s", err, path, text));
}

static void unclean_enabled(void *ctx, const char *topic)
{
    g_ptr_array_add(((struct fake_tree *)ctx)->unclean, g_strdup(topic ? topic : ""));
}

static void broker_changed(void *ctx)
{
    ((struct fake_tree *)ctx)->broker_changed++;
}

struct config_manager_env fake_env(struct fake_tree *t)
{
    return (struct config_manager_env){.ctx = t,
            .get = get,
            .children = children,
            .now_ms = now_ms,
            .remove = remove_nodes,
            .event = event,
            .error = error,
            .unclean_enabled = unclean_enabled,
            .broker_changed = broker_changed};
}

struct broker_config *fake_broker(int32_t id, ...)
{
    struct broker_config *c = g_new0(struct broker_config, 1);
    c->broker_id = id;
    c->ibp_major = 3;
    c->ibp_minor = 9;
    c->ibp_iv = INT_MAX;
    c->values = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    va_list ap;
    va_start(ap, id);
    for (const char *pair; (pair = va_arg(ap, const char *));) {
        g_auto(GStrv) parts = g_strsplit(pair, "=", 2);
        g_hash_table_insert(c->values, g_strdup(parts[0]), g_strdup(parts[1]));
    }
    va_end(ap);
    return c;
}

void fake_broker_free(struct broker_config *c)
{
    g_hash_table_unref(c->values);
    g_free(c);
}

char *config_line(char *lines, const char *key)
{
    g_autofree char *owned = lines;
    g_auto(GStrv) all = g_strsplit(lines ? lines : "", "\n", -1);
    size_t n = strlen(key);
    for (size_t i = 0; all[i]; i++)
        if (strncmp(all[i], key, n) == 0 && all[i][n] == '=')
            return g_strdup(all[i] + n + 1);
    return NULL;
}

void assert_config(struct config_manager *m, const char *kind, const char *entity, const char *key, const char *value,
        const char *source)
{
    g_autofree char *v = config_line(config_manager_effective(m, kind, entity), key);
    g_autofree char *s = config_line(config_manager_source(m, kind, entity), key);
    if (g_strcmp0(v, value) != 0 || g_strcmp0(s, source) != 0)
        fail_msg("%s/%s %s: %s (%s), expected %s (%s)", kind, entity, key, v, s, value, source);
}
