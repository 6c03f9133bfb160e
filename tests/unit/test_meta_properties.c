#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <glib.h>
#include <string.h>
#include <unistd.h>
#include "controller/broker/meta_properties.h"
#include "controller/broker/properties.h"

#define CLUSTER "AAAAAAAAAAAAAAAAAAAAAQ"

static GHashTable *set(const char *text)
{
    GHashTable *ret = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);

    if (!text) {
        g_hash_table_unref(ret);
        return NULL;
    }
    assert_int_equal(properties_parse(text, strlen(text), ret, NULL), 0);
    return ret;
}

static void rules(void **state)
{
    static const struct {
        const char *first, *second; /* NULL: no file */
        int32_t configured;
        int32_t id;      /* -2: refused */
        const char *why; /* a word of the reason */
    } cases[] = {
            {NULL, NULL, 3, 3, NULL},
            {NULL, NULL, -1, -1, NULL},
            {"version=0\nbroker.id=3\ncluster.id=" CLUSTER, NULL, 3, 3, NULL},
            {NULL, "version=0\nbroker.id=3\ncluster.id=" CLUSTER, 3, 3, NULL},
            {"broker.id=3\ncluster.id=" CLUSTER, NULL, 3, 3, NULL},                   /* without a version */
            {"version=0\nbroker.id=3", NULL, 3, 3, NULL},                             /* from before cluster ids */
            {"version=0\nbroker.id=1001\ncluster.id=" CLUSTER, NULL, -1, 1001, NULL}, /* the stored one wins */
            {"version=0\ncluster.id=" CLUSTER, NULL, 3, 3, NULL},
            {"version=0\nbroker.id=4\ncluster.id=" CLUSTER, NULL, 3, -2, "broker 4"},
            {"version=0\nbroker.id=3\ncluster.id=other", NULL, 3, -2, "cluster other"},
            {"version=1\nbroker.id=3\ncluster.id=" CLUSTER, NULL, 3, -2, "version 1"},
            {"version=0\nbroker.id=x\ncluster.id=" CLUSTER, NULL, 3, -2, "'x'"},
            {"version=0\nbroker.id=-1\ncluster.id=" CLUSTER, NULL, 3, -2, "'-1'"},
            {"version=0\nbroker.id=3\ncluster.id=" CLUSTER, "version=0\nbroker.id=3\ncluster.id=" CLUSTER, 3, 3, NULL},
            {"version=0\nbroker.id=3\ncluster.id=" CLUSTER, "version=0\nbroker.id=4\ncluster.id=" CLUSTER, 3, -2,
                    "differ"},
            {"version=0\nbroker.id=3\ncluster.id=" CLUSTER, "version=0\nbroker.id=3", 3, -2, "differ"},
    };
    char one[] = "/d/0", two[] = "/d/1";
    char *paths[] = {one, two};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GPtrArray) sets = g_ptr_array_new();
        GHashTable *a = set(cases[i].first), *b = set(cases[i].second);
        int32_t id = cases[i].configured;
        char *why = NULL;
        g_ptr_array_add(sets, a);
        g_ptr_array_add(sets, b);
        int r = meta_properties_check(sets, paths, CLUSTER, &id, &why);
        if ((r < 0) != (cases[i].id == -2))
            fail_msg("case %zu: %d, %s", i, r, why ? why : "");
        if (r < 0 && !strstr(why, cases[i].why))
            fail_msg("case %zu: %s", i, why);
        if (r == 0)
            assert_int_equal(id, cases[i].id);
        g_free(why);
        if (a)
            g_hash_table_unref(a);
        if (b)
            g_hash_table_unref(b);
    }
}

static void on_disk(void **state)
{
    g_autofree char *path = g_dir_make_tmp("meta.XXXXXX", NULL);
    struct log_dir *d;
    GHashTable *read = NULL;
    char *why = NULL;

    assert_int_equal(log_dir_open(path, true, &d, &why), 0);
    assert_int_equal(meta_properties_read(d, &read, &why), 0);
    assert_null(read);
    assert_int_equal(meta_properties_write(d, 7, CLUSTER), 0);
    g_autofree char *file = g_build_filename(path, "meta.properties", NULL);
    g_autofree char *text = NULL;
    assert_true(g_file_get_contents(file, &text, NULL, NULL));
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    assert_string_equal(lines[0], "#"); /* as java.util.Properties stores it: comment, date, entries */
    assert_int_equal(lines[1][0], '#');
    assert_true(strstr(text, "\nbroker.id=7\n") && strstr(text, "\ncluster.id=" CLUSTER "\n"));
    /* what a write left half done does not count */
    g_autofree char *tmp = g_build_filename(path, "meta.properties.tmp", NULL);
    assert_true(g_file_set_contents(tmp, "broker.id=9", -1, NULL));
    assert_int_equal(meta_properties_read(d, &read, &why), 0);
    assert_string_equal(g_hash_table_lookup(read, "broker.id"), "7");
    g_hash_table_unref(read);
    assert_int_equal(access(tmp, F_OK), -1);
    assert_true(g_file_set_contents(file, "broker.id=\\uX", -1, NULL));
    assert_int_equal(meta_properties_read(d, &read, &why), -EINVAL);
    assert_true(strstr(why, "meta.properties") != NULL);
    g_free(why);
    log_dir_close(d);
    unlink(file);
    rmdir(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(rules),
            cmocka_unit_test(on_disk),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
