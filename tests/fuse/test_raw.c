/* `-o raw`: bytes as they are, taken whole at each close of a handle that has written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include "tests/fuse/kernel_fixture.h"

static void test_bytes_as_they_are(void **state)
{
    assert_int_equal(sh_write(k, "/f.json", "no JSON\n"), 0);
    assert_stored(k, "/f.json", "no JSON\n");
    assert_int_equal(stored_version(k, "/f.json"), 0); /* made with its data */
    other_create(k, "/g.json", "{}");
    g_autofree char *text = sh_cat(k, "/g.json");
    assert_string_equal(text, "{}");
    assert_int_equal(sh_append(k, "/g.json", "x"), 0);
    assert_stored(k, "/g.json", "{}x");
}

static void test_taken_at_the_close(void **state)
{
    struct fuse_entry_out e;
    uint64_t fh;
    assert_int_equal(k_create(k, 1, "f", O_WRONLY | O_TRUNC, 0644, &e, &fh), 0);
    assert_int_equal(k_flush(k, e.nodeid, fh), 0); /* the shell's dup2 */
    assert_int_equal(k_write(k, e.nodeid, fh, "one", 0), 3);
    assert_int_equal(k_write(k, e.nodeid, fh, "two", 3), 3);
    assert_false(mirror_exists(k->mirror, "/f"));
    assert_int_equal(k_flush(k, e.nodeid, fh), 0);
    assert_stored(k, "/f", "onetwo");
    assert_int_equal(k_flush(k, e.nodeid, fh), 0); /* nothing new: nothing is done */
    assert_int_equal(k_write(k, e.nodeid, fh, "three", 6), 5);
    assert_int_equal(k_flush(k, e.nodeid, fh), 0);
    assert_stored(k, "/f", "onetwothree");
    assert_int_equal(stored_version(k, "/f"), 1);
    k_release(k, e.nodeid, fh);
}

/* What is made from a file that has gone does not go to another one by its name. */
static void test_name_taken_by_another(void **state)
{
    uint64_t fh;
    other_create(k, "/f", "old");
    uint64_t ino = k_walk(k, "/f");
    assert_int_equal(k_open(k, ino, O_WRONLY | O_APPEND, &fh), 0);
    other_delete(k, "/f");
    other_create(k, "/f", "new");
    assert_int_equal(k_write(k, ino, fh, "more", 3), 4);
    assert_int_equal(k_flush(k, ino, fh), ESTALE);
    assert_stored(k, "/f", "new");
    k_release(k, ino, fh);
}

/* An empty new file: at the first close if it was opened exclusively or without truncation. */
static void test_empty_at_the_first_close(void **state)
{
    static const int flags[] = {O_WRONLY, O_WRONLY | O_EXCL, O_WRONLY | O_EXCL | O_TRUNC};
    static const char *const names[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++) {
        struct fuse_entry_out e;
        uint64_t fh;
        assert_int_equal(k_create(k, 1, names[i], flags[i], 0644, &e, &fh), 0);
        assert_int_equal(mirror_count(k->mirror), i);
        assert_int_equal(k_flush(k, e.nodeid, fh), 0);
        assert_int_equal(mirror_count(k->mirror), i + 1);
        k_release(k, e.nodeid, fh);
    }
}

/* `: > f`: at the second close by the same process. */
static void test_empty_at_the_end_of_the_command(void **state)
{
    struct fuse_entry_out e;
    uint64_t fh;
    assert_int_equal(k_create(k, 1, "f", O_WRONLY | O_TRUNC, 0644, &e, &fh), 0);
    assert_int_equal(k_flush_as(k, 100, e.nodeid, fh), 0);
    assert_int_equal(k_flush_as(k, 101, e.nodeid, fh), 0); /* a child's */
    assert_false(mirror_exists(k->mirror, "/f"));
    assert_int_equal(k_flush_as(k, 101, e.nodeid, fh), 0);
    assert_stored(k, "/f", "");
    k_release(k, e.nodeid, fh);
    assert_int_equal(sh_write(k, "/f", "x"), 0);
    uint64_t ino = k_walk(k, "/f");
    assert_int_equal(k_open(k, ino, O_WRONLY | O_TRUNC, &fh), 0);
    assert_int_equal(k_flush(k, ino, fh), 0);
    assert_stored(k, "/f", "x");
    assert_int_equal(k_flush(k, ino, fh), 0);
    assert_stored(k, "/f", "");
    k_release(k, ino, fh);
}

/* With one close only, at the last; requests that come later see it. */
static void test_empty_at_release(void **state)
{
    uint64_t fh;
    other_create(k, "/f", "abc");
    uint64_t ino = k_walk(k, "/f");
    struct fuse_attr_out a;
    assert_int_equal(k_open(k, ino, O_WRONLY | O_TRUNC, &fh), 0);
    assert_int_equal(k_getattr(k, ino, &a), 0);
    assert_int_equal(a.attr_valid, 0); /* it is about to change without a word of the kernel's */
    assert_int_equal(k_flush(k, ino, fh), 0);
    k->hold = true;
    const struct fuse_release_in in = {.fh = fh};
    const struct fuse_getattr_in get = {0};
    uint64_t release = kernel_send(k, FUSE_RELEASE, ino, &in, sizeof in, NULL, 0);
    uint64_t later = kernel_send(k, FUSE_GETATTR, ino, &get, sizeof get, NULL, 0);
    kernel_pump(k, 50);
    assert_false(kernel_has(k, later));
    k->hold = false;
    g_free(kernel_wait(k, release));
    g_autofree struct answer *answer = kernel_wait(k, later);
    assert_int_equal(answer->err, 0);
    assert_int_equal(((struct fuse_attr_out *)answer->body)->attr.size, 0);
    assert_stored(k, "/f", "");
}

/* Nothing written, and nothing to be made: no change. */
static void test_untouched(void **state)
{
    uint64_t fh;
    other_create(k, "/f", "abc");
    uint64_t ino = k_walk(k, "/f");
    assert_int_equal(k_open(k, ino, O_WRONLY, &fh), 0);
    assert_int_equal(k_flush(k, ino, fh), 0);
    assert_int_equal(k_flush(k, ino, fh), 0);
    k_release(k, ino, fh);
    assert_int_equal(stored_version(k, "/f"), 0);
    assert_int_equal(k_open(k, ino, O_WRONLY, &fh), 0);
    assert_int_equal(k_truncate(k, ino, fh, 2), 0); /* ftruncate is writing */
    assert_stored(k, "/f", "abc");
    assert_int_equal(k_flush(k, ino, fh), 0);
    assert_stored(k, "/f", "ab");
    k_release(k, ino, fh);
    assert_int_equal(k_truncate(k, ino, 0, 1), 0);
    assert_stored(k, "/f", "a");
}

/* What will be refused is told at the write, and nothing is made at the close instead. */
static void test_refused(void **state)
{
    struct fuse_entry_out e;
    uint64_t fh;
    assert_int_equal(k_create(k, 1, "fixed", O_WRONLY | O_TRUNC, 0644, &e, &fh), 0);
    assert_int_equal(k_flush(k, e.nodeid, fh), 0);
    assert_int_equal(k_write(k, e.nodeid, fh, "x", 0), -EPERM);
    assert_int_equal(k_flush(k, e.nodeid, fh), 0);
    k_release(k, e.nodeid, fh);
    assert_false(mirror_exists(k->mirror, "/fixed"));
    assert_last_error(k, "EPERM /fixed: it is fixed");
}

static void test_command(void **state)
{
    struct fuse_entry_out e;
    uint64_t fh;
    assert_int_equal(k_create(k, 1, "t.cmd", O_WRONLY, 0644, &e, &fh), 0); /* touch */
    assert_int_equal(k->commands, 1);
    assert_int_equal(k_flush(k, e.nodeid, fh), 0);
    k_release(k, e.nodeid, fh);
    assert_int_equal(k->commands, 1); /* it is no empty value beside */
    k->commands = 0;
    assert_int_equal(k_create(k, 1, "x.cmd", O_WRONLY | O_EXCL, 0644, &e, &fh), 0);
    assert_int_equal(k->commands, 0); /* data may come */
    assert_int_equal(k_flush(k, e.nodeid, fh), 0);
    assert_int_equal(k->commands, 1);
    assert_int_equal(k_flush(k, e.nodeid, fh), 0);
    k_release(k, e.nodeid, fh);
    assert_int_equal(k->commands, 1);
    k->command_err = EBUSY;
    assert_int_equal(k_create(k, 1, "y.cmd", O_WRONLY | O_EXCL, 0644, &e, &fh), 0);
    assert_int_equal(k_flush(k, e.nodeid, fh), EBUSY);
    k_release(k, e.nodeid, fh);
}

static void test_sequential(void **state)
{
    other_create(k, "/seq", NULL);
    assert_int_equal(sh_write(k, "/seq/n-", "anything"), 0);
    assert_int_equal(sh_write(k, "/seq/n-", "anything"), 0);
    assert_stored(k, "/seq/n-0000000001", "anything");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kernel_setup_raw, kernel_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
            TEST(test_bytes_as_they_are),
            TEST(test_taken_at_the_close),
            TEST(test_name_taken_by_another),
            TEST(test_empty_at_the_first_close),
            TEST(test_empty_at_the_end_of_the_command),
            TEST(test_empty_at_release),
            TEST(test_untouched),
            TEST(test_refused),
            TEST(test_command),
            TEST(test_sequential),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
