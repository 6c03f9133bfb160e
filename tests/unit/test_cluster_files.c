/* The broker files of a cluster directory: found in name order, written with defaults, and what a broken one tells. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>
#include "controller/broker/properties.h"
#include "controller/broker/cluster_files.h"

static char *dir;

static int setup(void **state)
{
    dir = g_dir_make_tmp("kafkafs.XXXXXX", NULL);
    return dir ? 0 : -1;
}

static int teardown(void **state)
{
    GDir *d = g_dir_open(dir, 0, NULL);
    const char *name;
    while ((name = g_dir_read_name(d))) {
        g_autofree char *path = g_build_filename(dir, name, NULL);
        g_unlink(path);
    }
    g_dir_close(d);
    g_rmdir(dir);
    g_clear_pointer(&dir, g_free);
    return 0;
}

static char *put(const char *name, const char *text)
{
    char *path = g_build_filename(dir, name, NULL);
    assert_true(g_file_set_contents(path, text, -1, NULL));
    return path;
}

static void test_list(void **state)
{
    g_autofree char *b = put("b.properties", ""), *a = put("a.properties", ""), *other = put("a.properties.off", "");
    GPtrArray *files;
    char *why;
    assert_int_equal(cluster_files_list(dir, &files, &why), 0);
    assert_int_equal(files->len, 2);
    assert_string_equal(files->pdata[0], a);
    assert_string_equal(files->pdata[1], b);
    g_ptr_array_unref(files);

    g_autofree char *none = g_build_filename(dir, "none", NULL);
    assert_int_equal(cluster_files_list(none, &files, &why), -ENOENT);
    assert_non_null(strstr(why, none));
    g_free(why);
}

static void test_write(void **state)
{
    GPtrArray *files;
    char *why;
    assert_int_equal(cluster_files_write(dir, 2, &why), 0);
    assert_int_equal(cluster_files_list(dir, &files, &why), 0);
    assert_int_equal(files->len, 2);
    for (guint i = 0; i < 2; i++) {
        struct broker_config *config;
        g_autofree char *log_dir = g_strdup_printf("%s/broker-%u", dir, i + 1);
        assert_int_equal(broker_config_load(files->pdata[i], &config, &why), 0);
        assert_int_equal(config->broker_id, i + 1);
        assert_int_equal(config->endpoints[0].port, 9092 + i);
        assert_string_equal(config->log_dirs->pdata[0], log_dir);
        broker_config_free(config);
    }
    g_ptr_array_unref(files);
    static const int impossible[] = {-1, 0, 1001};
    for (size_t i = 0; i < G_N_ELEMENTS(impossible); i++) {
        why = NULL;
        assert_int_equal(cluster_files_write(dir, impossible[i], &why), -EINVAL);
        assert_non_null(strstr(why, "--brokers"));
        g_free(why);
    }
}

static bool cut_short(int n)
{
    GPtrArray *files;
    char *why;
    assert_int_equal(cluster_files_list(dir, &files, &why), 0);
    bool yes = cluster_files_cut_short(dir, n, files);
    g_ptr_array_unref(files);
    return yes;
}

/* Whatever is left when writing dies is told from files that somebody has written, or that are complete. */
static void test_cut_short(void **state)
{
    char *why;
    g_autofree char *first = g_build_filename(dir, "server-1.properties", NULL);
    assert_true(cut_short(3));
    assert_int_equal(cluster_files_write(dir, 3, &why), 0);
    assert_false(cut_short(3));
    assert_false(cut_short(5));
    g_unlink(first);
    assert_true(cut_short(3));
    assert_false(cut_short(2));
    assert_false(cut_short(4));
    g_autofree char *second = put("server-2.properties", "broker.id=2\nlog.dirs=/mine\n");
    assert_false(cut_short(3));
    g_unlink(second);
    assert_true(cut_short(3));
    g_autofree char *other = put("a.properties", "");
    assert_false(cut_short(3));
}

static void test_guess(void **state)
{
    g_autofree char *good = put("1", "broker.id=7\nlog.dirs=\n"), *half = put("2", "log.dirs=/x\nbroker.i"),
                    *bad = put("3", "broker.id=x\n");
    assert_int_equal(cluster_files_guess_id(good), 7);
    assert_int_equal(cluster_files_guess_id(half), -1);
    assert_int_equal(cluster_files_guess_id(bad), -1);
    assert_int_equal(cluster_files_guess_id("/nonexistent"), -1);
}

static void test_find(void **state)
{
    g_autofree char *other = put("a.properties", "broker.id=70\n"),
                    *second = put("c.properties", "broker.id=7\nlog.dirs=\n"),
                    *first = put("b.properties", "broker.id=7\n"), *hidden = put("0.txt", "broker.id=7\n"),
                    *found = cluster_files_find(dir, 7);
    assert_string_equal(found, first);
    assert_null(cluster_files_find(dir, 8));
    assert_null(cluster_files_find("/nonexistent", 7));
}

/* Never over a file that is somebody's. */
static void test_make(void **state)
{
    g_autofree char *taken = put("server-3.properties", "broker.id=4\n"), *text = NULL, *made = NULL;
    char *why, *file = NULL;
    assert_int_equal(cluster_files_make(dir, 3, &file, &why), -EINVAL);
    assert_non_null(strstr(why, taken));
    g_free(why);
    assert_true(g_file_get_contents(taken, &text, NULL, NULL));
    assert_string_equal(text, "broker.id=4\n");
    assert_int_equal(cluster_files_make(dir, 0, &made, &why), 0); /* an id like others, with a port of its own */
    struct broker_config *config;
    assert_int_equal(broker_config_load(made, &config, &why), 0);
    assert_int_equal(config->broker_id, 0);
    assert_int_not_equal(config->endpoints[0].port, 9092);
    broker_config_free(config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(test_list, setup, teardown),
            cmocka_unit_test_setup_teardown(test_write, setup, teardown),
            cmocka_unit_test_setup_teardown(test_cut_short, setup, teardown),
            cmocka_unit_test_setup_teardown(test_guess, setup, teardown),
            cmocka_unit_test_setup_teardown(test_find, setup, teardown),
            cmocka_unit_test_setup_teardown(test_make, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
