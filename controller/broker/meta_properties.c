#include "controller/broker/meta_properties.h"
#include "controller/broker/properties.h"
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int meta_properties_read(struct log_dir *d, GHashTable **ret, char **ret_why)
{
    g_autoptr(GHashTable) set = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_autofree char *why = NULL;
    GString *text;
    int r;

    (void)unlinkat(d->fd, "meta.properties.tmp", 0); /* of a write that did not come to its end */
    r = log_dir_read_file(d->fd, "meta.properties", &text);
    if (r == -ENOENT) {
        *ret = NULL;
        return 0;
    }
    if (r < 0) {
        *ret_why = g_strdup_printf("%s/meta.properties: cannot be read: %s", d->path, g_strerror(-r));
        return r;
    }
    r = properties_parse(text->str, text->len, set, &why);
    g_string_free(text, TRUE);
    if (r < 0) {
        *ret_why = g_strdup_printf("%s/meta.properties: %s", d->path, why);
        return r;
    }
    *ret = g_steal_pointer(&set);
    return 0;
}

int meta_properties_write(struct log_dir *d, int32_t broker_id, const char *cluster_id)
{
    time_t now = time(NULL);
    struct tm tm;
    char date[64] = "";

    if (gmtime_r(&now, &tm))
        strftime(date, sizeof date, "%a %b %d %H:%M:%S UTC %Y", &tm);
    g_autofree char *text =
            g_strdup_printf("#\n#%s\ncluster.id=%s\nbroker.id=%d\nversion=0\n", date, cluster_id, broker_id);
    return log_dir_write_file(d, "meta.properties", text, strlen(text));
}

static int refuse(char **ret_why, char *why)
{
    *ret_why = why;
    return -EINVAL;
}

static bool sets_equal(GHashTable *a, GHashTable *b)
{
    GHashTableIter it;
    gpointer k, v;

    if (g_hash_table_size(a) != g_hash_table_size(b))
        return false;
    g_hash_table_iter_init(&it, a);
    while (g_hash_table_iter_next(&it, &k, &v))
        if (g_strcmp0(g_hash_table_lookup(b, k), v) != 0)
            return false;
    return true;
}

static int check_set(GHashTable *set, const char *path, const char *cluster_id, int32_t *broker_id, char **ret_why)
{
    const char *version = g_hash_table_lookup(set, "version");
    const char *cluster = g_hash_table_lookup(set, "cluster.id");
    const char *id = g_hash_table_lookup(set, "broker.id");
    gint64 stored = -1;

    if (version && strcmp(version, "0") != 0)
        return refuse(ret_why, g_strdup_printf("%s/meta.properties: version %s is not 0", path, version));
    if (cluster && strcmp(cluster, cluster_id) != 0)
        return refuse(ret_why,
                g_strdup_printf("%s/meta.properties: belongs to cluster %s, this is %s", path, cluster, cluster_id));
    if (id && (!g_ascii_string_to_signed(id, 10, 0, INT32_MAX, &stored, NULL)))
        return refuse(ret_why, g_strdup_printf("%s/meta.properties: broker.id '%s' is no broker id", path, id));
    if (id && *broker_id >= 0 && stored != *broker_id)
        return refuse(ret_why,
                g_strdup_printf("%s/meta.properties: belongs to broker %s, configured is %d", path, id, *broker_id));
    if (id)
        *broker_id = (int32_t)stored;
    return 0;
}

int meta_properties_check(
        const GPtrArray *sets, char *const *paths, const char *cluster_id, int32_t *broker_id, char **ret_why)
{
    GHashTable *first = NULL;
    guint first_at = 0;

    for (guint i = 0; i < sets->len; i++) {
        GHashTable *set = g_ptr_array_index(sets, i);
        if (!set)
            continue;
        if (first && !sets_equal(first, set))
            return refuse(ret_why,
                    g_strdup_printf("%s/meta.properties and %s/meta.properties differ", paths[first_at], paths[i]));
        if (!first) {
            first = set;
            first_at = i;
        }
    }
    return first ? check_set(first, paths[first_at], cluster_id, broker_id, ret_why) : 0;
}
