/* Finding the properties file of one broker, when it is started by its id. */
#include "controller/broker/engine_internal.h"
#include <errno.h>
#include <string.h>

#define FIRST_PORT 9092

static int load_if_it_is(const char *file, int32_t id, struct broker_config **ret, char **ret_why)
{
    struct broker_config *config;
    int r = broker_config_load(file, &config, ret_why);

    if (r < 0)
        return r;
    if (config->broker_id != id && config->broker_id >= 0) {
        *ret_why = g_strdup_printf("%s: is for broker %d, not %d", file, config->broker_id, id);
        broker_config_free(config);
        return -EINVAL;
    }
    *ret = config;
    return 0;
}

/* The broker id that a file, good or not, says; -1: none. */
static int32_t id_in_file(const char *file)
{
    g_autoptr(GHashTable) values = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_autofree char *text = NULL;
    gsize len;
    gint64 id;

    if (!g_file_get_contents(file, &text, &len, NULL) || properties_parse(text, len, values, NULL) < 0)
        return -1;
    const char *value = g_hash_table_lookup(values, "broker.id");
    return value && g_ascii_string_to_signed(value, 10, 0, INT32_MAX, &id, NULL) ? (int32_t)id : -1;
}

/* The file of the cluster directory that defines this id; NULL: none. */
static char *find_in_directory(const char *dir, int32_t id)
{
    g_autoptr(GDir) d = g_dir_open(dir, 0, NULL);
    const char *name;
    char *found = NULL;

    while (d && (name = g_dir_read_name(d))) {
        g_autofree char *file = g_build_filename(dir, name, NULL);
        if (!g_str_has_suffix(name, ".properties") || id_in_file(file) != id)
            continue;
        if (found && strcmp(found, file) < 0)
            continue;
        g_free(found);
        found = g_steal_pointer(&file);
    }
    return found;
}

static int make_default(const char *dir, int32_t id, char **ret_file, char **ret_why)
{
    g_autofree char *file = g_strdup_printf("%s/server-%d.properties", dir, id);
    g_autofree char *text = g_strdup_printf("broker.id=%d\nlisteners=PLAINTEXT://localhost:%d\nlog.dirs=%s/broker-%d\n",
            id, FIRST_PORT + (id > 0 ? (id - 1) % 50000 : 50000), dir, id);
    g_autoptr(GError) error = NULL;

    if (g_file_test(file, G_FILE_TEST_EXISTS)) {
        *ret_why = g_strdup_printf("%s: does not say broker.id=%d", file, id);
        return -EINVAL;
    }
    errno = 0;
    if (!g_file_set_contents_full(file, text, -1, G_FILE_SET_CONTENTS_CONSISTENT, 0644, &error)) {
        *ret_why = g_strdup_printf("%s", error->message);
        return errno ? -errno : -EIO;
    }
    *ret_file = g_steal_pointer(&file);
    return 0;
}

int broker_file_find(struct engine *e, int32_t id, const char *known_file, struct broker_config **ret, char **ret_why)
{
    g_autofree char *file = NULL;
    int r;

    if (known_file && g_file_test(known_file, G_FILE_TEST_EXISTS) &&
            (!e->cluster_dir || id_in_file(known_file) == id || id_in_file(known_file) < 0))
        return load_if_it_is(known_file, id, ret, ret_why);
    if (!e->cluster_dir) {
        *ret_why = known_file ? g_strdup_printf("%s: is gone", known_file)
                              : g_strdup_printf("broker %d is none of this daemon's (option -b)", id);
        return -ENOENT;
    }
    file = find_in_directory(e->cluster_dir, id);
    if (!file) {
        r = make_default(e->cluster_dir, id, &file, ret_why);
        if (r < 0)
            return r;
    }
    return load_if_it_is(file, id, ret, ret_why);
}
