/* When is what has been written a value? The judge byte by byte and whole, and the buffer with its undo. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include "fs/fuse/staging.h"

static enum verdict judge(const char *text, size_t len)
{
    struct judge *j = judge_new();
    enum verdict whole = judge_feed(j, text, len);
    judge_free(j);
    /* Cut anywhere, the verdict is the same. */
    enum verdict split = VERDICT_EMPTY;
    j = judge_new();
    for (size_t i = 0; i < len; i++)
        split = judge_feed(j, text + i, 1);
    assert_int_equal(judge_fed(j), len);
    assert_int_equal(split, whole);
    judge_free(j);
    return whole;
}

static void expect(enum verdict verdict, const char *text)
{
    enum verdict got = judge(text, strlen(text));
    if (got != verdict)
        fail_msg("verdict %d, not %d, on %s", got, verdict, text);
}

static void test_judge(void **state)
{
    static const char *const prefixes[] = {"{", "[", "{\"a\"", "{\"a\":", "{\"a\":tr", "{\"a\":-", "{\"a\":\"x",
            "{\"a\":1", "{\"a\":1.", "{\"a\":1,", "[1,", "\"s", "\"\\u12", "tru", " { ", "{\"\xc3", "[[[{"};
    static const char *const complete[] = {"{}", " {}", "{} \n\t\r", "[]", "\"s\"", "true", "null", "1", "-1.5e3",
            "{\"a\":[1,{\"b\":null}]}", "{\"\xc3\xa4\":1}", "{\"a\":1e999}", "{\"a\":1,\"a\":2}"};
    static const char *const impossible[] = {"}", "{]", "{\"a\":trx", "{\"a\":1,}", "{\"a\" 1}", "{a:1}", "{'a':1}",
            "{}x", "{} {}", "{},", "[01]", "[1 2]", "nul l", "[+1]", "[NaN]", "{\"a\":\"\n\"}", "/**/{}",
            "{\"\xff\":1}", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "\"\xf5\x80\x80\x80\"", "\xef\xbb\xbf{}", "\"\\x\"",
            "{\"a\":\"\x01\"}"};
    expect(VERDICT_EMPTY, "");
    expect(VERDICT_EMPTY, " \n\t");
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        expect(VERDICT_PREFIX, prefixes[i]);
    for (size_t i = 0; i < sizeof complete / sizeof *complete; i++)
        expect(VERDICT_COMPLETE, complete[i]);
    for (size_t i = 0; i < sizeof impossible / sizeof *impossible; i++)
        expect(VERDICT_IMPOSSIBLE, impossible[i]);
    assert_int_equal(judge("{\"a\0\":1}", 8), VERDICT_IMPOSSIBLE);
}

static void test_depth(void **state)
{
    char text[2 * JUDGE_MAX_DEPTH + 4];
    memset(text, '[', JUDGE_MAX_DEPTH);
    memset(text + JUDGE_MAX_DEPTH, ']', JUDGE_MAX_DEPTH);
    text[2 * JUDGE_MAX_DEPTH] = '\0';
    expect(VERDICT_COMPLETE, text);
    memset(text, '[', JUDGE_MAX_DEPTH + 1);
    text[JUDGE_MAX_DEPTH + 1] = '\0';
    expect(VERDICT_IMPOSSIBLE, text);
    struct judge *j = judge_new();
    for (int i = 0; i < 100000; i++) /* a bomb is told early, and cannot be made good */
        judge_feed(j, "[", 1);
    assert_int_equal(judge_feed(j, "]", 1), VERDICT_IMPOSSIBLE);
    assert_non_null(strstr(judge_why(j), "64"));
    judge_free(j);
}

/* Each prefix of a document is a prefix, and only the whole is complete. */
static void test_every_prefix(void **state)
{
    const char *text =
            "{\"version\":1,\"partitions\":[{\"topic\":\"t\\u00e4\xc3\xa4\",\"replicas\":[1,-2.5e1,true,null]}]}";
    for (size_t n = 1; n < strlen(text); n++)
        assert_int_equal(judge(text, n), VERDICT_PREFIX);
    assert_int_equal(judge(text, strlen(text)), VERDICT_COMPLETE);
}

static struct staging_budget budget = {.max = 1 << 20};

static void put(struct staging *s, size_t offset, const char *text)
{
    assert_int_equal(staging_write(s, offset, text, strlen(text)), 0);
}

static void is(const struct staging *s, const char *text)
{
    assert_int_equal(staging_len(s), strlen(text));
    assert_memory_equal(staging_data(s), text, strlen(text));
}

static enum verdict json(struct staging *s)
{
    char *why = NULL;
    enum verdict v = staging_judge_json(s, &why);
    assert_true((v == VERDICT_IMPOSSIBLE) == (why != NULL));
    g_free(why);
    return v;
}

static void test_writes(void **state)
{
    struct staging *s = staging_new(&budget, 100);
    put(s, 0, "abcdef");
    put(s, 2, "ZZ");
    is(s, "abZZef");
    staging_undo(s);
    is(s, "abcdef");
    put(s, 8, "x");
    assert_int_equal(staging_len(s), 9);
    assert_memory_equal(staging_data(s), "abcdef\0\0x", 9);
    staging_undo(s);
    is(s, "abcdef");
    assert_int_equal(staging_truncate(s, 2), 0);
    is(s, "ab");
    staging_undo(s);
    is(s, "abcdef");
    staging_undo(s); /* once only */
    is(s, "abcdef");
    assert_int_equal(staging_truncate(s, 8), 0);
    assert_memory_equal(staging_data(s), "abcdef\0\0", 8);
    staging_free(s);
    assert_int_equal(atomic_load(&budget.used), 0);
}

static void test_limits(void **state)
{
    struct staging_budget small = {.max = 150};
    struct staging *a = staging_new(&small, 100), *b = staging_new(&small, 100);
    char text[101] = {0};
    assert_int_equal(staging_write(a, 0, text, 101), -EFBIG);
    assert_int_equal(staging_write(a, 100, text, 1), -EFBIG);
    assert_int_equal(staging_write(a, SIZE_MAX, text, 1), -EFBIG);
    assert_int_equal(staging_write(a, SIZE_MAX / 2, text, SIZE_MAX / 2 + 2), -EFBIG);
    assert_int_equal(staging_truncate(a, 101), -EFBIG);
    assert_int_equal(staging_write(a, 0, text, 100), 0);
    assert_int_equal(staging_write(b, 0, text, 51), -ENOSPC);
    assert_int_equal(staging_len(b), 0);
    assert_int_equal(staging_write(b, 0, text, 50), 0);
    staging_free(a);
    assert_int_equal(staging_write(b, 0, text, 100), 0);
    staging_free(b);
    assert_int_equal(atomic_load(&small.used), 0);
}

static void test_json_in_pieces(void **state)
{
    struct staging *s = staging_new(&budget, 1000);
    put(s, 0, "{\"a\":");
    assert_int_equal(json(s), VERDICT_PREFIX);
    put(s, 5, "}");
    assert_int_equal(json(s), VERDICT_IMPOSSIBLE);
    staging_undo(s); /* what came before is as good as it was */
    put(s, 5, "1}");
    assert_int_equal(json(s), VERDICT_COMPLETE);
    put(s, 7, "\n");
    assert_int_equal(json(s), VERDICT_COMPLETE);
    put(s, 8, "{}");
    assert_int_equal(json(s), VERDICT_IMPOSSIBLE);
    assert_int_equal(staging_truncate(s, 0), 0);
    assert_int_equal(json(s), VERDICT_EMPTY);
    put(s, 0, "{}");
    assert_int_equal(json(s), VERDICT_COMPLETE);
    staging_free(s);
}

/* Writes into the middle, one byte each: what is impossible as a whole may be on its way. */
static void test_json_overwritten(void **state)
{
    struct staging *s = staging_new(&budget, 1000);
    put(s, 0, "{\"a\":\"x\",\"b\":2}\n");
    put(s, 5, "[");
    assert_int_equal(json(s), VERDICT_PREFIX);
    put(s, 6, "1");
    assert_int_equal(json(s), VERDICT_PREFIX);
    put(s, 7, "]");
    assert_int_equal(json(s), VERDICT_COMPLETE);
    put(s, 13, "3");
    assert_int_equal(json(s), VERDICT_COMPLETE);
    /* a shorter document, and then the cut */
    assert_false(staging_uncut(s));
    put(s, 0, "{\"a\":1}");
    assert_int_equal(json(s), VERDICT_PREFIX);
    assert_true(staging_uncut(s));
    assert_int_equal(staging_truncate(s, 7), 0);
    assert_int_equal(json(s), VERDICT_COMPLETE);
    assert_false(staging_uncut(s));
    /* no continuation makes this good */
    put(s, 0, "{bad");
    assert_int_equal(json(s), VERDICT_IMPOSSIBLE);
    staging_free(s);
}

static void test_why(void **state)
{
    struct staging *s = staging_new(&budget, 1000);
    char *why = NULL;
    put(s, 0, "{\n \"a\": x}");
    assert_int_equal(staging_judge_json(s, &why), VERDICT_IMPOSSIBLE);
    assert_non_null(strstr(why, "line 2, column "));
    g_free(why);
    staging_free(s);
}

static void number(enum verdict verdict, const char *text)
{
    struct staging *s = staging_new(&budget, 100);
    char *why = NULL;
    put(s, 0, text);
    assert_int_equal(staging_judge_number(s, &why), verdict);
    assert_true((verdict == VERDICT_IMPOSSIBLE) == (why != NULL));
    g_free(why);
    staging_free(s);
}

static void test_number(void **state)
{
    number(VERDICT_EMPTY, "");
    number(VERDICT_PREFIX, "12");
    number(VERDICT_PREFIX, "-");
    number(VERDICT_COMPLETE, "12\n");
    number(VERDICT_COMPLETE, "-12\n");
    number(VERDICT_IMPOSSIBLE, "\n");
    number(VERDICT_IMPOSSIBLE, "-\n");
    number(VERDICT_IMPOSSIBLE, "12\n\n");
    number(VERDICT_IMPOSSIBLE, "12 ");
    number(VERDICT_IMPOSSIBLE, "x");
    number(VERDICT_IMPOSSIBLE, "1x");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_judge),
            cmocka_unit_test(test_depth),
            cmocka_unit_test(test_every_prefix),
            cmocka_unit_test(test_writes),
            cmocka_unit_test(test_limits),
            cmocka_unit_test(test_json_in_pieces),
            cmocka_unit_test(test_json_overwritten),
            cmocka_unit_test(test_why),
            cmocka_unit_test(test_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
