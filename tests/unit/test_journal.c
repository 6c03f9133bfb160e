#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <glib.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "fs/journal.h"

/* All that is there from `*pos` on, read in pieces of `piece` bytes. */
static char *read_all(struct journal *j, uint64_t *pos, size_t piece)
{
    GString *out = g_string_new(NULL);
    char buf[256];
    size_t n;
    while ((n = journal_read(j, pos, buf, piece)) > 0)
        g_string_append_len(out, buf, (gssize)n);
    return g_string_free(out, FALSE);
}

static void expect_all(struct journal *j, uint64_t *pos, size_t piece, const char *expected)
{
    g_autofree char *got = read_all(j, pos, piece);
    assert_string_equal(got, expected);
}

static void test_lines(void **state)
{
    struct journal *j = journal_new(1000);
    uint64_t pos = 0;
    expect_all(j, &pos, 100, "");
    journal_line(j, "one %d", 1);
    journal_line(j, "%s", "two\nforged\x1b[31m");
    expect_all(j, &pos, 100, "one 1\ntwo\\x0aforged\\x1b[31m\n");
    assert_int_equal(pos, journal_end(j));
    journal_line(j, "three");
    expect_all(j, &pos, 100, "three\n");
    for (size_t piece = 1; piece < 8; piece++) {
        pos = 0;
        expect_all(j, &pos, piece, "one 1\ntwo\\x0aforged\\x1b[31m\nthree\n");
    }
    journal_free(j);
    journal_free(NULL);
}

static void test_lost(void **state)
{
    struct journal *j = journal_new(40);
    uint64_t pos = 0, torn = 0;
    char buf[8];
    for (int i = 0; i < 4; i++)
        journal_line(j, "line %02d", i); /* 8 bytes each */
    assert_int_equal(journal_read(j, &torn, buf, 3), 3);
    expect_all(j, &pos, 100, "line 00\nline 01\nline 02\nline 03\n");
    for (int i = 4; i < 12; i++)
        journal_line(j, "line %02d", i);
    expect_all(j, &pos, 100, "lost 3\nline 07\nline 08\nline 09\nline 10\nline 11\n");
    expect_all(j, &torn, 100, "\nlost 7\nline 07\nline 08\nline 09\nline 10\nline 11\n"); /* its first line was cut */
    pos = 0;
    expect_all(j, &pos, 100, "lost 7\nline 07\nline 08\nline 09\nline 10\nline 11\n");
    expect_all(j, &pos, 100, "");
    journal_free(j);
}

static void test_long_lines(void **state)
{
    struct journal *j = journal_new(1 << 20);
    g_autofree char *text = g_strnfill(100000, 'x');
    journal_line(j, "%s", text);
    journal_line(j, "short");
    uint64_t pos = 0;
    g_autofree char *got = read_all(j, &pos, 256);
    assert_true(strlen(got) < 70000);
    assert_non_null(strstr(got, "x...\nshort\n"));
    journal_free(j);
}

static void test_bounded(void **state)
{
    struct journal *j = journal_new(1 << 16);
    for (int i = 0; i < 200000; i++)
        journal_line(j, "line %d", i);
    uint64_t pos = 0;
    g_autofree char *got = read_all(j, &pos, 256);
    assert_true(strlen(got) <= (1 << 16) + 32);
    assert_true(g_str_has_prefix(got, "lost 19"));
    assert_true(g_str_has_suffix(got, "line 199999\n"));
    journal_free(j);
}

static void count(void *arg)
{
    ++*(int *)arg;
}

static void test_observer(void **state)
{
    struct journal *j = journal_new(100);
    int n = 0;
    journal_observe(j, count, &n);
    journal_line(j, "x");
    journal_line(j, "y");
    assert_int_equal(n, 2);
    journal_observe(j, NULL, NULL);
    journal_line(j, "z");
    assert_int_equal(n, 2);
    journal_free(j);
}

static void test_errors(void **state)
{
    struct journal *j = journal_new(1000);
    journal_error(j, EINVAL, "/brokers/topics/a\nb", "bad %s", "value");
    journal_error(j, 0, "/x", "only said");
    uint64_t pos = 0;
    g_autofree char *got = read_all(j, &pos, 100);
    GRegex *form = g_regex_new(
            "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z EINVAL /brokers/topics/a\\\\x0ab: bad value\n"
            "\\S+Z WARN /x: only said\n$",
            0, 0, NULL);
    assert_true(g_regex_match(form, got, 0, NULL));
    g_regex_unref(form);
    journal_free(j);
}

#define N_EACH 20000

static void *append(void *arg)
{
    for (int i = 0; i < N_EACH; i++)
        journal_line(arg, "%06d", i);
    return NULL;
}

/* A reader that cannot keep up misses lines, and is told exactly how many. */
static void test_threads(void **state)
{
    struct journal *j = journal_new(1000);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, append, j), 0);
    uint64_t pos = 0;
    long lines = 0;
    bool running = true;
    while (running) {
        if (lines >= 2 * N_EACH - 100)
            running = false;
        if (!running)
            for (int i = 0; i < 2; i++)
                pthread_join(threads[i], NULL);
        char buf[4096];
        size_t n;
        while ((n = journal_read(j, &pos, buf, sizeof buf - 1)) > 0) {
            buf[n] = '\0';
            for (char *line = buf; *line; line = strchr(line, '\n') + 1) {
                long lost;
                lines += sscanf(line, "lost %ld", &lost) == 1 ? lost : 1;
            }
        }
    }
    assert_int_equal(lines, 2 * N_EACH);
    journal_free(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_lines),
            cmocka_unit_test(test_lost),
            cmocka_unit_test(test_long_lines),
            cmocka_unit_test(test_bounded),
            cmocka_unit_test(test_observer),
            cmocka_unit_test(test_errors),
            cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
