/* json_parse(): RFC 8259 to the letter, with a reason that says where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <time.h>
#include "controller/json/codec.h"

static cJSON *parse(const char *text, char **ret_why)
{
    return json_parse(text, strlen(text), ret_why);
}

static void assert_refused(const char *text, size_t len, const char *reason)
{
    char *why = NULL;
    cJSON *value = json_parse(text, len, &why);
    if (value != NULL)
        fail_msg("accepted: %s", text);
    assert_non_null(why);
    if (strcmp(why, reason) != 0)
        fail_msg("%s\n    gave  %s\n    not   %s", text, why, reason);
    g_free(why);
    assert_null(json_parse(text, len, NULL));
}

static void assert_accepted(const char *text)
{
    char *why = NULL;
    cJSON *value = parse(text, &why);
    if (value == NULL)
        fail_msg("%s: %s", text, why);
    cJSON_Delete(value);
}

static void test_accepts_every_kind(void **state)
{
    static const char *const good[] = {"{}", "[]", "0", "-0", "-1.5e-3", "1E+2", "\"\"", "true", "false", "null",
            " \t\r\n[1 , 2]\n", "{\"a\":{\"b\":[{},[],null]},\"A\":1}",
            "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83D\\uDE00\"", "\"\x7f\"", "\"\xc3\xa9\xf0\x9f\x98\x80\"",
            "123456789012345678901234567890", "1e308"};
    for (size_t i = 0; i < G_N_ELEMENTS(good); i++)
        assert_accepted(good[i]);
}

static void test_refuses_with_place(void **state)
{
    static const struct {
        const char *text, *reason;
    } bad[] = {
            {"", "line 1, column 1: the text ends where a value is expected"},
            {"{", "line 1, column 2: the text ends where a key in quotes is expected"},
            {"{\"a\":1", "line 1, column 7: the text ends where ',' or '}' is expected"},
            {"{\"a\" 1}", "line 1, column 6: ':' is expected, not '1'"},
            {"{a:1}", "line 1, column 2: a key in quotes is expected, not 'a'"},
            {"{\"a\":1,}", "line 1, column 8: a key in quotes is expected, not '}'"},
            {"[1,]", "line 1, column 4: a value is expected, not ']'"},
            {"[1 2]", "line 1, column 4: ',' or ']' is expected, not '2'"},
            {"{}\n {}", "line 2, column 2: something follows the value"},
            {"{\n\"a\":1,\n\"b\":2,\n  \"a\":3}", "line 4, column 3: duplicate key \"a\""},
            {"{\"\\u0061\":1,\"a\":2}", "line 1, column 13: duplicate key \"a\""},
            {"01", "line 1, column 1: a number with a leading zero"},
            {"-", "line 1, column 2: the text ends where a digit is expected"},
            {"+1", "line 1, column 1: a value is expected, not '+'"},
            {"1.", "line 1, column 3: the text ends where a digit after the decimal point is expected"},
            {".5", "line 1, column 1: a value is expected, not '.'"},
            {"1e", "line 1, column 3: the text ends where a digit of the exponent is expected"},
            {"[1e999]", "line 1, column 2: a number that is too large"},
            {"0x10", "line 1, column 2: something follows the value"},
            {"NaN", "line 1, column 1: a value is expected, not 'N'"},
            {"Infinity", "line 1, column 1: a value is expected, not 'I'"},
            {"tru", "line 1, column 1: a value is expected, not 't'"},
            {"nullx", "line 1, column 5: something follows the value"},
            {"'a'", "line 1, column 1: a value is expected, not '''"},
            {"\"a", "line 1, column 1: a string without its closing quote"},
            {"\"a\\", "line 1, column 4: the text ends where an escape (one of \"\\/bfnrtu) is expected"},
            {"\"\\x\"", "line 1, column 3: an escape (one of \"\\/bfnrtu) is expected, not 'x'"},
            {"\"\\u12\"", "line 1, column 6: a hexadecimal digit is expected, not '\"'"},
            {"\"\\u0000\"", "line 1, column 2: the character U+0000"},
            {"\"\\uD800\"", "line 1, column 2: half a surrogate pair"},
            {"\"\\uD800\\u0041\"", "line 1, column 2: half a surrogate pair"},
            {"\"\\uDC00\"", "line 1, column 2: half a surrogate pair"},
            {"\"a\tb\"", "line 1, column 3: control character 0x09 in a string (write \\u0009)"},
            {"\"a\nb\"", "line 1, column 3: control character 0x0A in a string (write \\u000A)"},
            {"[1,\v2]", "line 1, column 4: a value is expected, not byte 0x0B"},
            {"\xef\xbb\xbf{}", "line 1, column 1: a value is expected, not byte 0xEF"},
            {"\"\xff\"", "line 1, column 2: not UTF-8"},
            {"\"\xc0\x80\"", "line 1, column 2: not UTF-8"},
            {"\"\xed\xa0\x80\"", "line 1, column 2: not UTF-8"},
            {"\"\xf4\x90\x80\x80\"", "line 1, column 2: not UTF-8"},
            {"\"\xc3\xa9\xc3\"", "line 1, column 3: not UTF-8"},
            {"\"\xc3\xa9\"x", "line 1, column 4: something follows the value"},
            {"// c\n1", "line 1, column 1: a value is expected, not '/'"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++)
        assert_refused(bad[i].text, strlen(bad[i].text), bad[i].reason);
    assert_refused("\"a\0b\"", 5, "line 1, column 3: a NUL byte");
    assert_refused("{}\0", 3, "line 1, column 3: a NUL byte");
}

static void test_depth(void **state)
{
    char text[200] = "";
    memset(text, '[', 64);
    memset(text + 64, ']', 64);
    assert_accepted(text);
    memset(text, '[', 65);
    memset(text + 65, ']', 65);
    assert_refused(text, 130, "line 1, column 65: nested deeper than 64");
    g_autofree char *bomb = g_malloc(100000);
    memset(bomb, '{', 100000);
    for (size_t i = 1; i + 5 <= 100000; i += 5)
        memcpy(bomb + i, "\"a\":{", 5);
    assert_null(json_parse(bomb, 100000, NULL));
}

static void assert_integer(const char *text, int64_t expected)
{
    int64_t value;
    cJSON *item = parse(text, NULL);
    assert_true(json_integer(item, INT64_MIN, INT64_MAX, &value));
    assert_true(value == expected);
    cJSON_Delete(item);
}

static void test_integers_are_exact(void **state)
{
    int64_t value = 77;
    assert_integer("0", 0);
    assert_integer("-0", 0);
    assert_integer("-2147483648", INT32_MIN);
    assert_integer("999999999999999", 999999999999999);
    assert_integer("9007199254740993", 9007199254740993);
    assert_integer("9223372036854775807", INT64_MAX);
    assert_integer("-9223372036854775808", INT64_MIN);

    static const char *const others[] = {"1.0", "1e0", "9223372036854775808", "-9223372036854775809", "\"1\"", "true",
            "null", "1000000000000000000000000"};
    for (size_t i = 0; i < G_N_ELEMENTS(others); i++) {
        cJSON *item = parse(others[i], NULL);
        assert_non_null(item);
        assert_false(json_integer(item, INT64_MIN, INT64_MAX, &value));
        cJSON_Delete(item);
    }
    cJSON *item = parse("5", NULL);
    assert_false(json_integer(item, 6, 10, &value));
    assert_false(json_integer(item, 0, 4, &value));
    cJSON_Delete(item);
    item = cJSON_CreateNumber(1e300);
    assert_false(json_integer(item, INT64_MIN, INT64_MAX, &value));
    cJSON_Delete(item);
    assert_false(json_integer(NULL, 0, 10, &value));
    assert_true(value == 77);
}

static void test_strings_are_decoded(void **state)
{
    cJSON *item = parse("\"\\u00e9\\uD83D\\uDE00\\\\\\n\\/\"", NULL);
    assert_string_equal(item->valuestring, "\xc3\xa9\xf0\x9f\x98\x80\\\n/");
    cJSON_Delete(item);
    item = parse("{\"\\u0041\":{\"b\":[1,\"x\"]}}", NULL);
    const cJSON *b = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(item, "A"), "b");
    assert_int_equal(cJSON_GetArraySize(b), 2);
    assert_string_equal(cJSON_GetArrayItem(b, 1)->valuestring, "x");
    g_autofree char *printed = cJSON_PrintUnformatted(item);
    assert_string_equal(printed, "{\"A\":{\"b\":[1,\"x\"]}}");
    cJSON_Delete(item);
}

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Of processor time, best of three, since the machine may be busy. 50 ms are usual for the slowest; what is quadratic
 * takes many seconds. */
static void assert_quick(const char *what, GString *text, bool valid)
{
    double best = 1e9;
    for (int i = 0; i < 3; i++) {
        double start = cpu_ms();
        cJSON *value = json_parse(text->str, text->len, NULL);
        best = MIN(best, cpu_ms() - start);
        assert_true((value != NULL) == valid);
        cJSON_Delete(value);
    }
    print_message("%s, %zu bytes: %.1f ms\n", what, (size_t)text->len, best);
    assert_true(best < 1000);
    g_string_free(text, TRUE);
}

static void test_large_documents_are_quick(void **state)
{
    GString *text = g_string_new("{");
    for (int i = 0; i < 100000; i++)
        g_string_append_printf(text, "\"k%d\":1,", i);
    g_string_append(text, "\"k\":1}");
    assert_quick("100,001 keys", text, true);

    text = g_string_new("{\"k\":1");
    for (int i = 0; i < 100000; i++)
        g_string_append_printf(text, ",\"k%d\":1", i);
    g_string_append(text, ",\"k99999\":1}");
    assert_quick("a duplicate among 100,000 keys", text, false);

    text = g_string_new("[1");
    while (text->len < 1000000)
        g_string_append(text, ",1");
    g_string_append_c(text, ']');
    assert_quick("a flat list", text, true);

    text = g_string_new("\"");
    while (text->len < 1000000)
        g_string_append(text, "\\u00e9");
    g_string_append_c(text, '"');
    assert_quick("one string of escapes", text, true);

    text = g_string_new(NULL);
    while (text->len < 1000000)
        g_string_append_c(text, '[');
    assert_quick("a million brackets", text, false);

    text = g_string_new("[");
    while (text->len < 1000000)
        g_string_append(text, "\"\\\",");
    assert_quick("quotes that never close", text, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_accepts_every_kind),
            cmocka_unit_test(test_refuses_with_place),
            cmocka_unit_test(test_depth),
            cmocka_unit_test(test_integers_are_exact),
            cmocka_unit_test(test_strings_are_decoded),
            cmocka_unit_test(test_large_documents_are_quick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
