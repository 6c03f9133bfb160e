#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <glib.h>
#include <string.h>
#include "fs/tree/path.h"
#include "fs/tree/text.h"

static void test_valid(void **state)
{
    static const char *const good[] = {"/", "/a", "/a/b", "/...", "/a b", "/.data", "/%41", "/\xc3\xbc",
            "/\xe2\x82\xac", "/-rf", "/a*?", "/\xef\xbf\xaf" /* U+FFEF */};
    static const char *const bad[] = {"", "a", "a/b", "//", "/a/", "/a//b", "/.", "/..", "/a/./b", "/a/../b", "/\x01",
            "/a\nb", "/\x1f", "/\x7f", "/\xc2\x80", "/\xc2\x9f", "/\xff", "/\xc3", "/\xed\xa0\x80", "/\xee\x80\x80",
            "/\xef\xbf\xbf", "/\xef\xbf\xb0", "/\xf0\x9f\x98\x80"};
    for (size_t i = 0; i < G_N_ELEMENTS(good); i++)
        if (!path_valid(good[i]))
            fail_msg("%s is valid", good[i]);
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++)
        if (path_valid(bad[i]))
            fail_msg("case %zu, %s, is not valid", i, bad[i]);
    assert_true(path_valid_name("a"));
    assert_false(path_valid_name(""));
    assert_false(path_valid_name("a/b"));
    assert_false(path_valid_name(".."));
}

static void expect_text(char *got, const char *expected)
{
    assert_string_equal(got, expected);
    g_free(got);
}

static void test_parts(void **state)
{
    assert_string_equal(path_name("/a/b"), "b");
    assert_string_equal(path_name("/a"), "a");
    assert_string_equal(path_name("/"), "");
    expect_text(path_parent("/a/b/c"), "/a/b");
    expect_text(path_parent("/a"), "/");
    expect_text(path_parent("/"), "/");
    expect_text(path_join("/", "a"), "/a");
    expect_text(path_join("/a", "b"), "/a/b");
    assert_int_equal(path_depth("/"), 0);
    assert_int_equal(path_depth("/a"), 1);
    assert_int_equal(path_depth("/a/b/c"), 3);
    expect_text(path_component("/a/bb/c", 0), "a");
    expect_text(path_component("/a/bb/c", 1), "bb");
    expect_text(path_component("/a/bb/c", 2), "c");
    assert_null(path_component("/a/bb/c", 3));
    assert_null(path_component("/", 0));
}

static void test_relations(void **state)
{
    assert_string_equal(path_child_of("/a/b", "/a"), "b");
    assert_string_equal(path_child_of("/a", "/"), "a");
    assert_null(path_child_of("/a/b/c", "/a"));
    assert_null(path_child_of("/ab", "/a"));
    assert_null(path_child_of("/a", "/a"));
    assert_null(path_child_of("/a/b", "/"));
    assert_null(path_child_of("/", "/"));
    assert_true(path_is_under("/a/b", "/a"));
    assert_true(path_is_under("/a", "/a"));
    assert_true(path_is_under("/a", "/"));
    assert_true(path_is_under("/", "/"));
    assert_false(path_is_under("/ab", "/a"));
    assert_false(path_is_under("/a", "/a/b"));
}

static void test_patterns(void **state)
{
    assert_true(path_matches("/brokers/topics/t", "/brokers/topics/"
                                                  "*"));
    assert_true(path_matches("/brokers/topics/t/partitions/0", "/brokers/topics/"
                                                               "*"
                                                               "/partitions/"
                                                               "*"));
    assert_false(path_matches("/brokers/topics", "/brokers/topics/"
                                                 "*"));
    assert_false(path_matches("/brokers/topics/t/partitions", "/brokers/topics/"
                                                              "*"));
    assert_false(path_matches("/brokers/ids/1", "/brokers/topics/"
                                                "*"));
    assert_true(path_matches("/a", "/a"));
    assert_false(path_matches("/ab", "/a"));
    assert_false(path_matches("/a", "/ab"));
    assert_true(path_matches("/", "/"));
    assert_false(path_matches("/", "/*"));
}

static void test_printable(void **state)
{
    GString *out = g_string_new(NULL);
    static const char text[] = "a\nb\x1b[0m\x7f\xc2\x9b\xff \xc3\xbc\\";
    text_append_printable(out, text, sizeof text - 1);
    assert_string_equal(out->str, "a\\x0ab\\x1b[0m\\x7f\\xc2\\x9b\\xff \xc3\xbc\\");
    g_string_truncate(out, 0);
    text_append_printable(out, "x\0y\xc3", 4); /* a zero byte; a character cut short */
    assert_string_equal(out->str, "x\\x00y\\xc3");
    g_string_free(out, TRUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_valid),
            cmocka_unit_test(test_parts),
            cmocka_unit_test(test_relations),
            cmocka_unit_test(test_patterns),
            cmocka_unit_test(test_printable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
