#include "controller/broker/cluster_files.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "controller/broker/properties.h"

/* Ports that brokers without a listener of their own get: from FIRST_PORT on. */
#define FIRST_PORT 9092
#define PORTS 50000
#define BROKERS_MAX 1000

static gint compare_paths(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int fail(int err, char **ret_why, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static int fail(int err, char **ret_why, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    *ret_why = g_strdup_vprintf(fmt, args);
    va_end(args);
    return -err;
}

int cluster_files_list(const char *dir, GPtrArray **ret, char **ret_why)
{
    errno = 0;
    g_autoptr(GError) error = NULL;
    g_autoptr(GDir) d = g_dir_open(dir, 0, &error);
    if (!d)
        return fail(errno ? errno : EIO, ret_why, "%s", error->message);
    GPtrArray *files = g_ptr_array_new_with_free_func(g_free);
    const char *name;
    while ((name = g_dir_read_name(d)))
        if (g_str_has_suffix(name, ".properties"))
            g_ptr_array_add(files, g_build_filename(dir, name, NULL));
    g_ptr_array_sort(files, compare_paths);
    *ret = files;
    return 0;
}

static char *default_name(const char *dir, int32_t id)
{
    return g_strdup_printf("%s/server-%d.properties", dir, id);
}

static char *default_text(const char *dir, int32_t id)
{
    /* A comma would separate two log dirs, a backslash escape what follows; a relative one starts at the file's. */
    bool plain = !strpbrk(dir, ",\\\n\r");
    return g_strdup_printf("broker.id=%d\nlisteners=PLAINTEXT://localhost:%d\nlog.dirs=%s%sbroker-%d\n", id,
            FIRST_PORT + (id > 0 ? (id - 1) % PORTS : PORTS), plain ? dir : "", plain ? "/" : "", id);
}

int cluster_files_make(const char *dir, int32_t id, char **ret_file, char **ret_why)
{
    g_autofree char *file = default_name(dir, id), *text = default_text(dir, id);
    if (g_file_test(file, G_FILE_TEST_EXISTS))
        return fail(EINVAL, ret_why, "%s: does not say broker.id=%d", file, id);
    g_autoptr(GError) error = NULL;
    errno = 0;
    if (!g_file_set_contents_full(file, text, -1, G_FILE_SET_CONTENTS_CONSISTENT, 0644, &error))
        return fail(errno ? errno : EIO, ret_why, "%s", error->message);
    *ret_file = g_steal_pointer(&file);
    return 0;
}

int cluster_files_write(const char *dir, int n, char **ret_why)
{
    if (n < 1 || n > BROKERS_MAX)
        return fail(EINVAL, ret_why, "--brokers=%d: a number from 1 to %d is needed", n, BROKERS_MAX);
    int rc = 0;
    /* the first one last: so it is known whether this came to its end */
    for (int id = n; rc == 0 && id >= 1; id--) {
        g_autofree char *name = default_name(dir, id), *file = NULL;
        if (!g_file_test(name, G_FILE_TEST_EXISTS))
            rc = cluster_files_make(dir, id, &file, ret_why);
    }
    return rc;
}

static bool is_default(const char *dir, int32_t id, const char *file)
{
    g_autofree char *name = default_name(dir, id), *wanted = default_text(dir, id), *text = NULL;
    return strcmp(file, name) == 0 && g_file_get_contents(file, &text, NULL, NULL) && strcmp(text, wanted) == 0;
}

bool cluster_files_cut_short(const char *dir, int n, const GPtrArray *files)
{
    guint found = 0;
    for (int32_t id = n; id > 1 && found < files->len; id--, found++) {
        guint at = 0;
        while (at < files->len && !is_default(dir, id, files->pdata[at]))
            at++;
        if (at == files->len)
            return false;
    }
    return found == files->len;
}

int32_t cluster_files_guess_id(const char *file)
{
    g_autofree char *text = NULL;
    gsize len;
    g_autoptr(GHashTable) values = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    if (!g_file_get_contents(file, &text, &len, NULL) || properties_parse(text, len, values, NULL) != 0)
        return -1;
    const char *id = g_hash_table_lookup(values, "broker.id");
    gint64 value;
    return id && g_ascii_string_to_signed(id, 10, 0, INT32_MAX, &value, NULL) ? (int32_t)value : -1;
}

char *cluster_files_find(const char *dir, int32_t id)
{
    GPtrArray *files;
    g_autofree char *why = NULL;
    char *found = NULL;
    if (cluster_files_list(dir, &files, &why) < 0)
        return NULL;
    for (guint i = 0; !found && i < files->len; i++)
        if (cluster_files_guess_id(files->pdata[i]) == id)
            found = g_strdup(files->pdata[i]);
    g_ptr_array_unref(files);
    return found;
}
