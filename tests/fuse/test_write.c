/* Writing by format: what is applied when, and which error stands where a shell sees it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include "tests/fuse/kernel_fixture.h"

/* ---- no format ---- */

static void test_opaque(void **state)
{
    struct fuse_entry_out e;
    uint64_t fh;
    assert_int_equal(sh_write(k, "/f", "abcdef"), 0);
    assert_cat(k, "/f", "abcdef");
    assert_int_equal(sh_write(k, "/f", "{}"), 0);
    assert_cat(k, "/f", "{}");
    assert_int_equal(sh_append(k, "/f", "b"), 0);
    assert_cat(k, "/f", "{}b");
    assert_int_equal(k_lookup(k, 1, "f", &e), 0);
    assert_int_equal(e.attr.size, 3);
    assert_int_equal(k_open(k, e.nodeid, O_RDWR, &fh), 0);
    assert_int_equal(k_write(k, e.nodeid, fh, "ZZ", 1), 2);
    assert_stored(k, "/f", "{ZZ"); /* at once */
    assert_int_equal(k_truncate(k, e.nodeid, fh, 1), 0);
    assert_stored(k, "/f", "{");
    assert_int_equal(k_truncate(k, e.nodeid, 0, 3), 0);
    struct bytes *data = NULL;
    mirror_get(k->mirror, "/f", &data, NULL);
    assert_int_equal(data->len, 3);
    assert_memory_equal(data->data, "{\0\0", 3);
    bytes_unref(data);
    assert_int_equal(k_write(k, e.nodeid, fh, "x", 5), 1); /* a gap */
    mirror_get(k->mirror, "/f", &data, NULL);
    assert_int_equal(data->len, 6);
    bytes_unref(data);
    assert_int_equal(k_write(k, e.nodeid, fh, "x", ZNODE_MAX_DATA), -EFBIG);
    assert_int_equal(k_write(k, e.nodeid, fh, "x", UINT64_C(1) << 62), -EFBIG);
    assert_int_equal(k_truncate(k, e.nodeid, fh, UINT64_C(1) << 40), EFBIG);
    assert_int_equal(k_release(k, e.nodeid, fh), 0);
}

/* The kernel's idea of the end is not asked for. */
static void test_append_at_the_end(void **state)
{
    uint64_t fh;
    other_create(k, "/f", "abc");
    uint64_t ino = k_walk(k, "/f");
    assert_int_equal(k_open(k, ino, O_WRONLY | O_APPEND, &fh), 0);
    other_set(k, "/f", "abcdef");
    assert_int_equal(k_write(k, ino, fh, "X", 0), 1);
    assert_stored(k, "/f", "abcdefX");
    k_release(k, ino, fh);
}

static void test_truncation_is_a_change(void **state)
{
    uint64_t fh;
    other_create(k, "/f", "abc");
    uint64_t ino = k_walk(k, "/f");
    assert_int_equal(k_open(k, ino, O_WRONLY | O_TRUNC, &fh), 0);
    assert_stored(k, "/f", ""); /* when the open returns */
    k_release(k, ino, fh);
    other_create(k, "/fixed", "abc");
    ino = k_walk(k, "/fixed");
    assert_int_equal(k_open(k, ino, O_WRONLY | O_TRUNC, &fh), EPERM);
    assert_stored(k, "/fixed", "abc");
    assert_int_equal(k_open(k, ino, O_WRONLY, &fh), 0);
    assert_int_equal(k_write(k, ino, fh, "x", 0), -EPERM);
    assert_last_error(k, "EPERM /fixed: it is fixed");
    k_release(k, ino, fh);
}

/* Somebody else's change between judgement and commit: judged again, nobody sees the conflict, nothing is lost. */
static void test_judged_again(void **state)
{
    uint64_t fh;
    other_create(k, "/f", "abc");
    uint64_t ino = k_walk(k, "/f");
    assert_int_equal(k_open(k, ino, O_WRONLY | O_APPEND, &fh), 0);
    k->hold = true;
    other_set(k, "/f", "new");
    const struct fuse_write_in in = {.fh = fh, .size = 1};
    uint64_t unique = kernel_send(k, FUSE_WRITE, ino, &in, sizeof in, "X", 1);
    kernel_sync(k);
    k->hold = false;
    g_autofree struct answer *a = kernel_wait(k, unique);
    assert_int_equal(a->err, 0);
    assert_stored(k, "/f", "newX");
    assert_int_equal(stored_version(k, "/f"), 2);
    k_release(k, ino, fh);
}

static void test_reader_keeps_one_value(void **state)
{
    uint64_t fh;
    char buf[4];
    other_create(k, "/f", "abcdef");
    uint64_t ino = k_walk(k, "/f");
    assert_int_equal(k_open(k, ino, O_RDONLY, &fh), 0);
    other_set(k, "/f", "first.");
    assert_int_equal(k_read(k, ino, fh, buf, 3, 0), 3); /* the value at the first read */
    assert_memory_equal(buf, "fir", 3);
    other_set(k, "/f", "second");
    assert_int_equal(k_read(k, ino, fh, buf, 3, 3), 3);
    assert_memory_equal(buf, "st.", 3);
    assert_int_equal(k_read(k, ino, fh, buf, 3, 6), 0);
    assert_int_equal(k_read(k, ino, fh, buf, 3, 0), 3); /* from the start again: as it is now */
    assert_memory_equal(buf, "sec", 3);
    assert_int_equal(k_write(k, ino, fh, "x", 0), -EBADF);
    k_release(k, ino, fh);
}

/* ---- JSON ---- */

static void test_json(void **state)
{
    assert_int_equal(sh_write(k, "/f.json", "{\"a\":1}"), 0);
    assert_stored(k, "/f.json", "{\"a\":1}");
    assert_cat(k, "/f.json", "{\"a\":1}\n"); /* with one newline, with which it may be written too */
    assert_int_equal(sh_write(k, "/f.json", "{\"a\":2}\n"), 0);
    assert_stored(k, "/f.json", "{\"a\":2}");
    assert_int_equal(sh_write(k, "/f.json", "{\"a\":}"), EINVAL);
    assert_last_error(k, "EINVAL /f.json: line 1, column");
    assert_stored(k, "/f.json", "{\"a\":2}");
    assert_int_equal(sh_write(k, "/f.json", "{\"wrong\":1}"), EINVAL);
    assert_last_error(k, "EINVAL /f.json: a wrong field");
    assert_stored(k, "/f.json", "{\"a\":2}");
    assert_int_equal(sh_append(k, "/f.json", "{}"), EINVAL);
    assert_int_equal(stored_version(k, "/f.json"), 1);
    /* an empty value is none */
    assert_int_equal(sh_write(k, "/f.json", ""), 0);
    assert_stored(k, "/f.json", "{\"a\":2}");
}

static void test_json_new(void **state)
{
    struct fuse_entry_out e;
    uint64_t fh;
    char buf[20];
    assert_int_equal(k_create(k, 1, "f.json", O_WRONLY | O_TRUNC, 0644, &e, &fh), 0);
    assert_int_equal(e.entry_valid, 0);
    assert_int_equal(k_lookup(k, 1, "f.json", NULL), ENOENT); /* it exists once its first value is whole */
    assert_int_equal(k_flush(k, e.nodeid, fh), 0);
    assert_int_equal(k_write(k, e.nodeid, fh, "{\"a\":", 0), 5);
    struct fuse_attr_out a;
    assert_int_equal(k_getattr(k, e.nodeid, &a), 0);
    assert_int_equal(a.attr.size, 5);
    assert_int_equal(k_flush(k, e.nodeid, fh), 0);
    assert_false(mirror_exists(k->mirror, "/f.json"));
    assert_int_equal(k_write(k, e.nodeid, fh, "1}", 5), 2);
    assert_stored(k, "/f.json", "{\"a\":1}"); /* by that write */
    assert_true(kernel_told(k, FUSE_NOTIFY_INVAL_ENTRY, 1, "f.json"));
    assert_int_equal(k_write(k, e.nodeid, fh, " \n", 7), 2); /* white space is no second change */
    assert_int_equal(k_write(k, e.nodeid, fh, "x", 9), -EINVAL);
    assert_int_equal(stored_version(k, "/f.json"), 0);
    /* the handle goes on: a second document after a truncation */
    assert_int_equal(k_truncate(k, e.nodeid, fh, 0), 0);
    assert_stored(k, "/f.json", "{\"a\":1}");
    assert_int_equal(k_write(k, e.nodeid, fh, "{\"b\":2}", 0), 7);
    assert_stored(k, "/f.json", "{\"b\":2}");
    g_autofree char *path = k_xattr(k, e.nodeid, "user.zk.path");
    assert_string_equal(path, "/f.json");
    assert_int_equal(k_release(k, e.nodeid, fh), 0);
    assert_int_equal(k_open(k, k_walk(k, "/f.json"), O_RDONLY, &fh), 0);
    assert_int_equal(k_read(k, k_walk(k, "/f.json"), fh, buf, sizeof buf, 0), 8);
}

static void test_json_never_completed(void **state)
{
    struct fuse_entry_out e;
    uint64_t fh;
    other_create(k, "/f.json", "{}");
    assert_int_equal(sh_write(k, "/f.json", "{\"a\":"), 0);
    assert_last_error(k, "EINVAL /f.json: a value that was not completed is dropped (5 bytes)");
    assert_stored(k, "/f.json", "{}");
    assert_int_equal(sh_write(k, "/g.json", "{"), 0);
    assert_false(mirror_exists(k->mirror, "/g.json"));
    assert_last_error(k, "/g.json");
    /* what has been said is not said again */
    assert_int_equal(sh_write(k, "/f.json", "{\"a\"x"), EINVAL);
    assert_last_error(k, "line 1");
    /* a truncation alone starts a value, and nothing comes of it */
    assert_int_equal(k_create(k, 1, "h.json", O_WRONLY | O_TRUNC, 0644, &e, &fh), 0);
    assert_int_equal(k_release(k, e.nodeid, fh), 0);
    assert_last_error(k, "line 1");
}

static void test_json_exclusive(void **state)
{
    struct fuse_entry_out a, b;
    uint64_t fh_a, fh_b;
    assert_int_equal(k_create(k, 1, "f.json", O_WRONLY | O_EXCL, 0644, &a, &fh_a), 0);
    assert_int_equal(k_create(k, 1, "f.json", O_WRONLY | O_TRUNC, 0644, &b, &fh_b), 0);
    assert_int_not_equal(a.nodeid, b.nodeid);
    assert_int_equal(k_write(k, b.nodeid, fh_b, "{\"b\":1}", 0), 7);
    assert_int_equal(k_write(k, a.nodeid, fh_a, "{\"a\":1}", 0), -EEXIST);
    assert_stored(k, "/f.json", "{\"b\":1}");
    k_release(k, a.nodeid, fh_a);
    k_release(k, b.nodeid, fh_b);
    assert_int_equal(k_create(k, 1, "f.json", O_WRONLY | O_EXCL, 0644, &a, &fh_a), EEXIST);
}

/* The node goes while its new value is being written: `>` means that it shall be there. */
static void test_json_removed_meanwhile(void **state)
{
    uint64_t fh;
    other_create(k, "/f.json", "{}");
    uint64_t ino = k_walk(k, "/f.json");
    assert_int_equal(k_open(k, ino, O_WRONLY | O_TRUNC, &fh), 0);
    other_delete(k, "/f.json");
    assert_int_equal(k_write(k, ino, fh, "{\"a\":1}", 0), 7);
    assert_stored(k, "/f.json", "{\"a\":1}");
    k_release(k, ino, fh);
}

/* Another file has the name: what is made from the one that was opened must not go there. */
static void test_name_taken_by_another(void **state)
{
    uint64_t fh;
    struct fuse_entry_out e;
    const char *const paths[] = {"/f", "/f.json"};
    for (int i = 0; i < 2; i++) {
        other_create(k, paths[i], "[1]");
        uint64_t ino = k_walk(k, paths[i]);
        assert_int_equal(k_open(k, ino, O_RDWR, &fh), 0);
        other_delete(k, paths[i]);
        assert_int_equal(k_write(k, ino, fh, "2", 1), -ESTALE);
        assert_false(mirror_exists(k->mirror, paths[i]));
        other_create(k, paths[i], "[3,4]");
        assert_int_equal(k_write(k, ino, fh, "2", 1), -ESTALE);
        assert_stored(k, paths[i], "[3,4]");
        k_release(k, ino, fh);
    }
    /* without a handle, and at an open with truncation, the kernel looks the name up again */
    uint64_t ino = k_walk(k, "/f");
    other_delete(k, "/f");
    assert_int_equal(k_truncate(k, ino, 0, 0), ESTALE);
    other_create(k, "/f", "new");
    assert_int_equal(k_truncate(k, ino, 0, 0), ESTALE);
    assert_int_equal(k_open(k, ino, O_WRONLY | O_TRUNC, &fh), ESTALE);
    assert_stored(k, "/f", "new");
    /* one that has been made by this handle */
    assert_int_equal(k_create(k, 1, "g", O_WRONLY | O_EXCL, 0644, &e, &fh), 0);
    other_delete(k, "/g");
    other_create(k, "/g", "other");
    assert_int_equal(k_write(k, e.nodeid, fh, "mine", 0), -ESTALE);
    assert_stored(k, "/g", "other");
    k_release(k, e.nodeid, fh);
}

static void test_json_in_the_middle(void **state)
{
    uint64_t fh;
    char buf[40];
    other_create(k, "/f.json", "{\"a\":\"one\"}");
    uint64_t ino = k_walk(k, "/f.json");
    assert_int_equal(k_open(k, ino, O_RDWR, &fh), 0);
    assert_int_equal(k_write(k, ino, fh, "tw", 6), 2); /* dd conv=notrunc */
    assert_stored(k, "/f.json", "{\"a\":\"twe\"}");
    assert_int_equal(k_write(k, ino, fh, "[", 5), 1);
    assert_stored(k, "/f.json", "{\"a\":\"twe\"}");
    assert_int_equal(k_read(k, ino, fh, buf, sizeof buf, 0), 12); /* the writer reads what he wrote */
    assert_memory_equal(buf, "{\"a\":[twe\"}\n", 12);
    assert_int_equal(k_write(k, ino, fh, "123]", 6), 4);
    assert_stored(k, "/f.json", "{\"a\":[123]}");
    /* vi: truncate and write the whole again */
    assert_int_equal(k_truncate(k, ino, fh, 0), 0);
    assert_stored(k, "/f.json", "{\"a\":[123]}");
    assert_int_equal(k_write(k, ino, fh, "{\"v\":1}\n", 0), 8);
    assert_stored(k, "/f.json", "{\"v\":1}");
    k_release(k, ino, fh);
    /* truncate(2) by path can be followed by nothing */
    assert_int_equal(k_truncate(k, ino, 0, 0), 0);
    assert_int_equal(k_truncate(k, ino, 0, 7), 0);
    assert_int_equal(k_truncate(k, ino, 0, 3), EINVAL);
    assert_stored(k, "/f.json", "{\"v\":1}");
}

/* What the writer wrote is not lost when a value is refused: the next write goes on from there. */
static void test_json_refused_in_the_middle(void **state)
{
    uint64_t fh;
    other_create(k, "/f.json", "{}");
    uint64_t ino = k_walk(k, "/f.json");
    assert_int_equal(k_open(k, ino, O_WRONLY | O_TRUNC, &fh), 0);
    assert_int_equal(k_write(k, ino, fh, "{\"a\":", 0), 5);
    assert_int_equal(k_write(k, ino, fh, "x}", 5), -EINVAL);
    assert_int_equal(k_write(k, ino, fh, "\"wrong\"}", 5), -EINVAL);
    assert_int_equal(k_write(k, ino, fh, "7}", 5), 2);
    assert_stored(k, "/f.json", "{\"a\":7}");
    k_release(k, ino, fh);
}

static void test_json_makes_a_directory(void **state)
{
    struct fuse_entry_out e;
    struct fuse_attr_out a;
    uint64_t fh;
    assert_int_equal(k_create(k, 1, "t.dir", O_RDWR | O_TRUNC, 0644, &e, &fh), 0);
    assert_int_equal(k_write(k, e.nodeid, fh, "{\"a\":1}", 0), 7);
    assert_int_equal(k_getattr(k, e.nodeid, &a), 0);
    assert_true(S_ISREG(a.attr.mode)); /* to whom has it open */
    char buf[20];
    assert_int_equal(k_read(k, e.nodeid, fh, buf, sizeof buf, 0), 8);
    assert_int_equal(k_truncate(k, e.nodeid, fh, 0), 0);
    assert_int_equal(k_write(k, e.nodeid, fh, "{\"a\":2}", 0), 7);
    assert_stored(k, "/t.dir", "{\"a\":2}");
    k_release(k, e.nodeid, fh);
    struct fuse_entry_out d;
    assert_int_equal(k_lookup(k, 1, "t.dir", &d), 0);
    assert_true(S_ISDIR(d.attr.mode));
    assert_cat(k, "/t.dir/.data", "{\"a\":2}\n");
    assert_int_equal(sh_write(k, "/t.dir/.data", "{\"a\":3}"), 0);
    assert_stored(k, "/t.dir", "{\"a\":3}");
    assert_int_equal(k_unlink(k, d.nodeid, ".data"), 0);
    assert_int_equal(sh_write(k, "/t.dir/.data", "{\"a\":"), 0);
    assert_int_equal(k_lookup(k, d.nodeid, ".data", NULL), ENOENT);
    assert_int_equal(sh_write(k, "/t.dir/.data", "{\"a\":4}"), 0);
    assert_stored(k, "/t.dir", "{\"a\":4}");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kernel_setup, kernel_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
            TEST(test_opaque),
            TEST(test_append_at_the_end),
            TEST(test_truncation_is_a_change),
            TEST(test_judged_again),
            TEST(test_reader_keeps_one_value),
            TEST(test_json),
            TEST(test_json_new),
            TEST(test_json_never_completed),
            TEST(test_json_exclusive),
            TEST(test_json_removed_meanwhile),
            TEST(test_name_taken_by_another),
            TEST(test_json_in_the_middle),
            TEST(test_json_refused_in_the_middle),
            TEST(test_json_makes_a_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
