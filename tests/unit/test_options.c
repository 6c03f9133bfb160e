/* The command line: what is meant, and one line about what cannot be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include "fs/options.h"

#define PARSE(...) parse((const char *[]){"kafkafs", __VA_ARGS__, NULL})
#define WRONG(text, ...) wrong(text, (const char *[]){"kafkafs", __VA_ARGS__ NULL})

static struct options o;

static int try(const char *const *arguments, char **ret_why)
{
    g_auto(GStrv) argv = g_strdupv((char **)arguments); /* getopt moves them */
    GPtrArray *moved = g_ptr_array_new();
    for (int i = 0; argv[i]; i++)
        g_ptr_array_add(moved, argv[i]);
    g_ptr_array_add(moved, NULL);
    int rc = options_parse((int)moved->len - 1, (char **)moved->pdata, &o, ret_why);
    /* the strings of argv outlive this, for the tests to look at */
    static GPtrArray *kept;
    if (!kept)
        kept = g_ptr_array_new_with_free_func(g_free);
    for (int i = 0; argv[i]; i++)
        g_ptr_array_add(kept, argv[i]);
    argv[0] = NULL;
    g_ptr_array_unref(moved);
    return rc;
}

static void parse(const char *const *arguments)
{
    char *why = NULL;
    options_clear(&o);
    if (try(arguments, &why) != 0)
        fail_msg("%s", why);
    assert_null(why);
}

static void wrong(const char *text, const char *const *arguments)
{
    char *why = NULL;
    options_clear(&o);
    assert_int_equal(try(arguments, &why), -EINVAL);
    if (!strstr(why, text) || strchr(why, '\n'))
        fail_msg("got '%s', want '%s'", why, text);
    g_free(why);
}

static void test_mount(void **state)
{
    PARSE("c", "m");
    assert_int_equal(o.command, COMMAND_MOUNT);
    assert_string_equal(o.source, "c");
    assert_string_equal(o.mountpoint, "m");
    assert_false(o.foreground || o.read_only || o.raw);
    assert_int_equal(o.brokers, 0);
    assert_int_equal(o.config_change_expiry_ms, 900000);
    assert_int_equal(o.broker_files->len, 0);
    assert_int_equal(o.fuse_options->len, 0);
}

static void test_options_anywhere(void **state)
{
    PARSE("c", "-f", "m", "-b", "one", "--broker=two", "--broker", "three", "--brokers=7");
    assert_true(o.foreground);
    assert_string_equal(o.source, "c");
    assert_string_equal(o.mountpoint, "m");
    assert_int_equal(o.broker_files->len, 3);
    assert_string_equal(g_ptr_array_index(o.broker_files, 1), "two");
    assert_int_equal(o.brokers, 7);
    PARSE("--", "-c", "-m");
    assert_string_equal(o.source, "-c");
}

static void test_fuse_options(void **state)
{
    PARSE("c", "m", "-o", "ro,raw", "-o", "config_change_expiry=5,allow_other,noatime");
    assert_true(o.read_only && o.raw);
    assert_int_equal(o.config_change_expiry_ms, 5000);
    assert_int_equal(o.fuse_options->len, 1);
    assert_string_equal(g_ptr_array_index(o.fuse_options, 0), "allow_other");
    /* what mount(8) hands down */
    PARSE("c", "m", "-o",
            "rw,dev,suid,exec,noauto,user,_netdev,nofail,x-systemd.automount,X-mount.mkdir,defaults,relatime,");
    assert_int_equal(o.fuse_options->len, 0);
    assert_false(o.read_only);
}

static void test_other_commands(void **state)
{
    PARSE("-h");
    assert_int_equal(o.command, COMMAND_HELP);
    PARSE("--version");
    assert_int_equal(o.command, COMMAND_VERSION);
    PARSE("--check", "c");
    assert_int_equal(o.command, COMMAND_CHECK);
    PARSE("--dump", "c");
    assert_int_equal(o.command, COMMAND_DUMP);
    PARSE("c", "--load");
    assert_int_equal(o.command, COMMAND_LOAD);
    assert_string_equal(o.source, "c");
}

static void test_wrong(void **state)
{
    WRONG("usage", );
    WRONG("usage", "c", );
    WRONG("extra", "c", "m", "extra", );
    WRONG("extra", "--check", "c", "extra", );
    WRONG("usage", "--dump", );
    WRONG("one command", "--check", "--dump", "c", );
    WRONG("--no-such", "--no-such", "c", "m", );
    WRONG("--no-such", "c", "m", "--no-such", );
    WRONG("-x", "-x", "c", "m", );
    WRONG("-b", "c", "m", "-b", );
    WRONG("--broker", "c", "m", "--broker", );
    WRONG("nonsense", "c", "m", "-o", "ro,nonsense", );
    WRONG("nosymfollow", "c", "m", "-o", "nosymfollow", );
    WRONG("config_change_expiry", "c", "m", "-o", "config_change_expiry=soon", );
    WRONG("config_change_expiry", "c", "m", "-o", "config_change_expiry=-1", );
    WRONG("config_change_expiry", "c", "m", "-o", "config_change_expiry=", );
    WRONG("brokers", "c", "m", "--brokers=0", );
    WRONG("brokers", "c", "m", "--brokers=x", );
    WRONG("brokers", "c", "m", "--brokers=1001", );
    WRONG("brokers", "c", "m", "--brokers=99999999999999999999", );
}

static int clear(void **state)
{
    options_clear(&o);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_mount),
            cmocka_unit_test(test_options_anywhere),
            cmocka_unit_test(test_fuse_options),
            cmocka_unit_test(test_other_commands),
            cmocka_unit_test(test_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, clear);
}
