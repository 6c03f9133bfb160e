/* Writing numbers and lines; what is made otherwise than by a value; private files; limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/fuse/kernel_fixture.h"

/* ---- numbers and lines ---- */

static void test_number(void **state)
{
    struct fuse_entry_out e;
    uint64_t fh;
    assert_int_equal(sh_write(k, "/f.num", "12"), 0);
    assert_stored(k, "/f.num", "12");
    assert_cat(k, "/f.num", "12\n");
    assert_int_equal(sh_write(k, "/f.num", "13\n"), 0);
    assert_stored(k, "/f.num", "13");
    assert_int_equal(sh_write(k, "/f.num", "x"), EINVAL);
    assert_int_equal(sh_write(k, "/f.num", "1 2"), EINVAL);
    assert_int_equal(sh_write(k, "/f.num", ""), 0);
    assert_stored(k, "/f.num", "13");
    assert_int_equal(k_create(k, 1, "g.num", O_WRONLY | O_TRUNC, 0644, &e, &fh), 0);
    assert_int_equal(k_write(k, e.nodeid, fh, "4", 0), 1);
    assert_false(mirror_exists(k->mirror, "/g.num"));
    assert_int_equal(k_write(k, e.nodeid, fh, "2\n", 1), 2);
    assert_stored(k, "/g.num", "42"); /* by its newline, before the close */
    k_release(k, e.nodeid, fh);
}

static void test_lines(void **state)
{
    struct fuse_entry_out e;
    uint64_t fh;
    assert_int_equal(k_create(k, 1, "f.cfg", O_WRONLY | O_TRUNC, 0644, &e, &fh), 0);
    assert_int_equal(k_flush(k, e.nodeid, fh), 0);
    assert_int_equal(k_write(k, e.nodeid, fh, "a=1\n", 0), 4);
    assert_int_equal(k_write(k, e.nodeid, fh, "b=2\nc=3", 4), 7);
    assert_false(mirror_exists(k->mirror, "/f.cfg"));
    assert_int_equal(k_flush(k, e.nodeid, fh), 0);
    assert_stored(k, "/f.cfg", "a=1\nb=2\nc=3"); /* one change, at the close */
    assert_int_equal(stored_version(k, "/f.cfg"), 0);
    k_release(k, e.nodeid, fh);
    /* each line is checked at its write, and a bad one spoils all */
    uint64_t ino = k_walk(k, "/f.cfg");
    assert_int_equal(k_open(k, ino, O_WRONLY | O_TRUNC, &fh), 0);
    assert_int_equal(k_write(k, ino, fh, "x=1\n", 0), 4);
    assert_int_equal(k_write(k, ino, fh, "bad\n", 4), -EINVAL);
    assert_last_error(k, "EINVAL /f.cfg: no key=value");
    assert_int_equal(k_flush(k, ino, fh), 0);
    k_release(k, ino, fh);
    assert_stored(k, "/f.cfg", "a=1\nb=2\nc=3");
    /* the last line may lack its newline: then it is checked at the close */
    assert_int_equal(sh_write(k, "/f.cfg", "bad"), EINVAL);
    assert_last_error(k, "EINVAL /f.cfg: no key=value");
    assert_stored(k, "/f.cfg", "a=1\nb=2\nc=3");
    /* JSON is JSON here too */
    assert_int_equal(sh_write(k, "/f.cfg", "{\"a\":1}\n"), 0);
    assert_stored(k, "/f.cfg", "{\"a\":1}");
    assert_int_equal(sh_write(k, "/f.cfg", "{\"a\":]"), EINVAL);
}

/* `exec 7> f; printf a >&7; printf '=1\n' >&7`: a close comes after each, and means nothing. */
static void test_lines_in_pieces(void **state)
{
    struct fuse_entry_out e;
    uint64_t fh;
    assert_int_equal(k_create(k, 1, "f.cfg", O_WRONLY | O_TRUNC, 0644, &e, &fh), 0);
    assert_int_equal(k_write(k, e.nodeid, fh, "key", 0), 3);
    assert_int_equal(k_flush(k, e.nodeid, fh), EINVAL);
    assert_int_equal(k_write(k, e.nodeid, fh, "=1", 3), 2);
    assert_int_equal(k_flush(k, e.nodeid, fh), 0);
    assert_int_equal(k_write(k, e.nodeid, fh, "0\n", 5), 2);
    assert_int_equal(k_flush(k, e.nodeid, fh), 0);
    assert_stored(k, "/f.cfg", "key=10");
    k_release(k, e.nodeid, fh);
    g_autofree char *line = last_error(k);
    assert_string_equal(line, "");
    uint64_t ino = k_walk(k, "/f.cfg");
    assert_int_equal(k_open(k, ino, O_WRONLY | O_APPEND, &fh), 0);
    assert_int_equal(k_write(k, ino, fh, "other", 0), 5);
    assert_int_equal(k_flush(k, ino, fh), EINVAL);
    assert_int_equal(k_write(k, ino, fh, "=2", 0), 2);
    assert_int_equal(k_flush(k, ino, fh), 0);
    assert_stored(k, "/f.cfg", "key=10other=2");
    assert_int_equal(k_write(k, ino, fh, "\n", 0), 1); /* the end of what has been applied */
    assert_stored(k, "/f.cfg", "key=10other=2");
    assert_int_equal(k_write(k, ino, fh, "x=", 0), 2);
    assert_int_equal(k_flush(k, ino, fh), 0);
    assert_int_equal(k_write(k, ino, fh, "3\ny", 0), 3); /* the line as a whole, once more */
    assert_stored(k, "/f.cfg", "key=10other=2x=x=3\n");
    k_release(k, ino, fh);
    assert_last_error(k, "EINVAL /f.cfg: no key=value");
}

static void test_lines_appended(void **state)
{
    uint64_t fh;
    assert_int_equal(sh_append(k, "/f.cfg", "a=1\n"), 0);
    assert_stored(k, "/f.cfg", "a=1\n");
    assert_int_equal(sh_append(k, "/f.cfg", "b=2\nc=3\n"), 0);
    assert_stored(k, "/f.cfg", "a=1\nb=2\nc=3\n");
    assert_int_equal(stored_version(k, "/f.cfg"), 2); /* a change each */
    uint64_t ino = k_walk(k, "/f.cfg");
    assert_int_equal(k_open(k, ino, O_WRONLY | O_APPEND, &fh), 0);
    assert_int_equal(k_write(k, ino, fh, "d", 0), 1);
    assert_int_equal(k_write(k, ino, fh, "=4\ne=", 0), 5);
    assert_stored(k, "/f.cfg", "a=1\nb=2\nc=3\nd=4\n");
    assert_int_equal(k_write(k, ino, fh, "5", 0), 1);
    assert_int_equal(k_flush(k, ino, fh), 0);
    assert_stored(k, "/f.cfg", "a=1\nb=2\nc=3\nd=4\ne=5");
    /* the second line is refused: the write is cut short before it, and fails when it comes again */
    assert_int_equal(k_write(k, ino, fh, "\nf=6\n\"wrong\"\ng=7\n", 0), 5);
    assert_int_equal(k_write(k, ino, fh, "\"wrong\"\ng=7\n", 0), -EINVAL);
    assert_stored(k, "/f.cfg", "a=1\nb=2\nc=3\nd=4\ne=5f=6\n");
    k_release(k, ino, fh);
}

/* Lines with nothing to do are as many as a write holds; the rest of the write is not lost behind them. */
static void test_empty_lines_appended(void **state)
{
    enum { LINES = 200000 };
    uint64_t fh;
    g_autofree char *text = g_malloc(LINES + 6);
    memset(text, '\n', LINES);
    memcpy(text + LINES, "a=1\nb", 6);
    other_create(k, "/f.cfg", "x=1\n");
    uint64_t ino = k_walk(k, "/f.cfg");
    assert_int_equal(k_open(k, ino, O_WRONLY | O_APPEND, &fh), 0);
    assert_int_equal(k_write(k, ino, fh, text, 0), LINES + 5);
    assert_stored(k, "/f.cfg", "x=1\na=1\n");
    assert_int_equal(stored_version(k, "/f.cfg"), 1);
    assert_int_equal(k_write(k, ino, fh, "=2\n", 0), 3);
    assert_stored(k, "/f.cfg", "x=1\na=1\nb=2\n");
    k_release(k, ino, fh);
}

/* A writer that is killed closes its files too. */
static void test_killed_writer(void **state)
{
    uint64_t fh;
    other_create(k, "/f.cfg", "old");
    uint64_t ino = k_walk(k, "/f.cfg");
    pid_t pid = fork();
    if (pid == 0) {
        raise(SIGKILL);
        _exit(0);
    }
    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0); /* dead, and still to be seen in /proc */
    assert_int_equal(k_open(k, ino, O_WRONLY | O_TRUNC, &fh), 0);
    assert_int_equal(k_write(k, ino, fh, "a=1\n", 0), 4);
    assert_int_equal(k_flush_as(k, pid, ino, fh), 0);
    assert_stored(k, "/f.cfg", "old");
    k_release(k, ino, fh);
    assert_last_error(k, "the writer was killed");
    waitpid(pid, NULL, 0);
    /* and one that ends by itself is no killed one */
    pid = fork();
    if (pid == 0)
        _exit(1);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(k_open(k, ino, O_WRONLY | O_TRUNC, &fh), 0);
    assert_int_equal(k_write(k, ino, fh, "a=1\n", 0), 4);
    assert_int_equal(k_flush_as(k, pid, ino, fh), 0);
    assert_stored(k, "/f.cfg", "a=1");
    k_release(k, ino, fh);
    waitpid(pid, NULL, 0);
}

/* ---- made otherwise ---- */

static void test_sequential(void **state)
{
    struct fuse_entry_out e;
    uint64_t fh;
    other_create(k, "/seq", NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sh_write(k, "/seq/n-", "{\"a\":1}"), 0);
        assert_int_equal(k_lookup(k, k_walk(k, "/seq"), "n-", NULL), ENOENT);
    }
    g_autofree char *names = k_list(k, k_walk(k, "/seq"));
    assert_string_equal(names, "n-0000000000 n-0000000001");
    assert_int_equal(k_create(k, k_walk(k, "/seq"), "n-", O_WRONLY, 0644, &e, &fh), 0);
    assert_int_equal(k_write(k, e.nodeid, fh, "{\"a\":1}", 0), 7);
    g_autofree char *path = k_xattr(k, e.nodeid, "user.zk.path");
    assert_string_equal(path, "/seq/n-0000000002");
    /* the handle stands for the node that was made */
    assert_int_equal(k_truncate(k, e.nodeid, fh, 0), 0);
    assert_int_equal(k_write(k, e.nodeid, fh, "{\"b\":2}", 0), 7);
    assert_stored(k, "/seq/n-0000000002", "{\"b\":2}");
    k_release(k, e.nodeid, fh);
    assert_int_equal(sh_write(k, "/seq/n-0000000042", "{}"), 0);
    assert_stored(k, "/seq/n-0000000042", "{}");
}

static void test_command(void **state)
{
    struct fuse_entry_out e;
    uint64_t fh;
    assert_int_equal(k_create(k, 1, "x.cmd", O_WRONLY, 0644, &e, &fh), 0);
    assert_int_equal(k->commands, 1);
    assert_int_equal(e.entry_valid, 0); /* the node is yet to come */
    assert_int_equal(k_touch(k, e.nodeid), 0);
    assert_int_equal(k_release(k, e.nodeid, fh), 0);
    k->command_err = EBUSY;
    assert_int_equal(k_create(k, 1, "y.cmd", O_WRONLY, 0644, &e, &fh), EBUSY);
    /* an interrupt makes no error of it, nor an answer */
    k->command_err = 0;
    k->hold_commands = true;
    const struct fuse_create_in in = {.flags = O_WRONLY | O_CREAT, .mode = S_IFREG | 0644};
    uint64_t unique = kernel_send(k, FUSE_CREATE, 1, &in, sizeof in, "z.cmd", 6);
    const struct fuse_interrupt_in interrupt = {.unique = unique};
    kernel_send(k, FUSE_INTERRUPT, 0, &interrupt, sizeof interrupt, NULL, 0);
    kernel_sync(k);
    assert_false(kernel_has(k, unique));
    other_create(k, "/z.cmd", "made");
    k->command_answer(k->command_arg, 0);
    g_autofree struct answer *a = kernel_wait(k, unique);
    assert_int_equal(a->err, 0);
    assert_int_equal(((struct fuse_entry_out *)a->body)->nodeid, k_walk(k, "/z.cmd"));
}

/* A redirection, or a copy, may go on with a value, which is refused: the action waits for the close. */
static void test_command_with_a_value(void **state)
{
    struct fuse_entry_out e;
    uint64_t fh;
    assert_int_equal(sh_write(k, "/x.cmd", "value"), EPERM);
    assert_last_error(k, "EPERM /x.cmd: a command has no value");
    assert_int_equal(sh_append(k, "/x.cmd", "value"), EPERM);
    assert_int_equal(k_create(k, 1, "x.cmd", O_WRONLY | O_EXCL, 0644, &e, &fh), 0); /* cp */
    assert_int_equal(k_write(k, e.nodeid, fh, "value", 0), -EPERM);
    assert_int_equal(k_flush(k, e.nodeid, fh), 0);
    k_release(k, e.nodeid, fh);
    assert_int_equal(k->commands, 0);
    /* `: > f`: the end of the shell's command shows the error */
    k->command_err = EBUSY;
    assert_int_equal(sh_write(k, "/x.cmd", ""), EBUSY);
    assert_int_equal(k->commands, 1);
    k->command_err = 0;
    assert_int_equal(sh_append(k, "/x.cmd", ""), 0);
    assert_int_equal(k->commands, 2);
    /* nobody is kept waiting at the last close */
    k->hold_commands = true;
    assert_int_equal(k_create(k, 1, "y.cmd", O_WRONLY | O_TRUNC, 0644, &e, &fh), 0);
    assert_int_equal(k_release(k, e.nodeid, fh), 0);
    kernel_sync(k);
    assert_int_equal(k->commands, 3);
    k->command_answer(k->command_arg, 0);
}

/* ---- private temporary files ---- */

static void test_private(void **state)
{
    struct fuse_entry_out e;
    uint64_t fh;
    char buf[20];
    assert_int_equal(k_create(k, 1, "tmp1", O_RDWR | O_EXCL, 0600, &e, &fh), 0);
    assert_int_equal(k_write(k, e.nodeid, fh, "no JSON", 0), 7);
    assert_int_equal(k_read(k, e.nodeid, fh, buf, sizeof buf, 3), 4);
    k_release(k, e.nodeid, fh);
    assert_cat(k, "/tmp1", "no JSON"); /* found by its name */
    g_autofree char *names = k_list(k, 1);
    assert_string_equal(names, ""); /* not listed */
    assert_int_equal(mirror_count(k->mirror), 0);
    assert_int_equal(k_mkdir(k, 1, "tmp1", &e), EEXIST);
    /* over a name: checked there, and one change */
    other_create(k, "/f.json", "{}");
    assert_int_equal(sh_write(k, "/tmp1", "{\"wrong\":1}"), 0);
    assert_int_equal(k_rename(k, 1, "tmp1", 1, "f.json", 0), EINVAL);
    assert_stored(k, "/f.json", "{}");
    assert_int_equal(sh_write(k, "/tmp1", "{\"a\":1}\n"), 0);
    assert_int_equal(k_rename(k, 1, "tmp1", 1, "f.json", RENAME_NOREPLACE), EEXIST);
    assert_int_equal(k_rename(k, 1, "tmp1", 1, "f.json", 0), 0);
    assert_stored(k, "/f.json", "{\"a\":1}");
    assert_int_equal(stored_version(k, "/f.json"), 1);
    assert_int_equal(k_lookup(k, 1, "tmp1", NULL), ENOENT);
    /* over `.data` */
    assert_int_equal(k_mkdir(k, 1, "d", &e), 0);
    uint64_t d = e.nodeid;
    assert_int_equal(k_create(k, d, "tmp2", O_RDWR | O_EXCL, 0600, &e, &fh), 0);
    assert_int_equal(k_write(k, e.nodeid, fh, "own", 0), 3);
    k_release(k, e.nodeid, fh);
    assert_int_equal(k_rename(k, d, "tmp2", d, ".data", 0), 0);
    assert_stored(k, "/d", "own");
    /* to a new name; and gone at unlink */
    assert_int_equal(k_create(k, d, "tmp3", O_RDWR | O_EXCL, 0600, &e, &fh), 0);
    assert_int_equal(k_rename(k, d, "tmp3", d, "g", 0), 0);
    assert_stored(k, "/d/g", "");
    assert_int_equal(k_create(k, d, "tmp4", O_RDWR | O_EXCL, 0600, &e, &fh), 0);
    assert_int_equal(k_unlink(k, d, "tmp4"), 0);
    assert_int_equal(k_lookup(k, d, "tmp4", NULL), ENOENT);
    assert_int_equal(k_write(k, e.nodeid, fh, "x", 0), 1); /* to whom has it open it is still there */
    k_release(k, e.nodeid, fh);
    /* other modes and flags are no private files */
    assert_int_equal(k_create(k, d, "open", O_RDWR | O_EXCL, 0644, &e, &fh), 0);
    assert_true(mirror_exists(k->mirror, "/d/open"));
    assert_int_equal(k_create(k, d, "wronly", O_WRONLY | O_EXCL, 0600, &e, &fh), 0);
    assert_true(mirror_exists(k->mirror, "/d/wronly"));
}

/* It cannot be listed, so it is nobody's business to remove it before its directory; but who has it open keeps it. */
static void test_private_in_a_removed_directory(void **state)
{
    for (int by_another = 0; by_another < 2; by_another++) {
        struct fuse_entry_out e;
        struct fuse_attr_out a;
        uint64_t fh;
        assert_int_equal(k_mkdir(k, 1, "d", &e), 0);
        uint64_t d = e.nodeid;
        assert_int_equal(k_create(k, d, "open", O_RDWR | O_EXCL, 0600, &e, &fh), 0);
        uint64_t open = e.nodeid, open_fh = fh;
        assert_int_equal(k_create(k, d, "closed", O_RDWR | O_EXCL, 0600, &e, &fh), 0);
        assert_int_equal(k_write(k, e.nodeid, fh, "abc", 0), 3);
        k_release(k, e.nodeid, fh);
        k_forget(k, e.nodeid, 1);
        assert_int_equal(k_getattr(k, d, &a), 0); /* a forget has no answer */
        if (by_another)
            other_delete(k, "/d");
        else
            assert_int_equal(k_rmdir(k, 1, "d"), 0);
        assert_int_equal(atomic_load(&k->mount->budget.used), 0);
        assert_int_equal(k_create(k, d, "late", O_RDWR | O_EXCL, 0600, &e, &fh), ESTALE);
        assert_int_equal(k_write(k, open, open_fh, "defg", 0), 4);
        assert_int_equal(k_getattr(k, open, &a), 0);
        assert_int_equal(a.attr.nlink, 0);
        k_release(k, open, open_fh);
        k_forget(k, open, 1);
        assert_int_equal(k_getattr(k, open, &a), ESTALE);
        assert_int_equal(atomic_load(&k->mount->budget.used), 0);
    }
}

/* What has become a node's value is that node's: nothing written here would reach it. */
static void test_private_kept_open(void **state)
{
    struct fuse_entry_out e;
    struct fuse_attr_out a;
    uint64_t fh, other;
    char buf[20];
    other_create(k, "/f.json", "{}");
    assert_int_equal(k_create(k, 1, "tmp", O_RDWR | O_EXCL, 0600, &e, &fh), 0);
    assert_int_equal(k_write(k, e.nodeid, fh, "{\"wrong\":1}", 0), 11);
    assert_int_equal(k_rename(k, 1, "tmp", 1, "f.json", 0), EINVAL);
    assert_int_equal(k_write(k, e.nodeid, fh, "{\"right\":1}", 0), 11); /* it is private still */
    assert_int_equal(k_rename(k, 1, "tmp", 1, "f.json", 0), 0);
    assert_int_equal(k_write(k, e.nodeid, fh, "{\"later\":1}", 0), -ESTALE);
    assert_int_equal(k_truncate(k, e.nodeid, fh, 0), ESTALE);
    assert_int_equal(k_read(k, e.nodeid, fh, buf, sizeof buf, 0), 11);
    assert_memory_equal(buf, "{\"right\":1}", 11);
    assert_int_equal(k_getattr(k, e.nodeid, &a), 0);
    assert_int_equal(a.attr.nlink, 0);
    assert_int_equal(k_open(k, e.nodeid, O_WRONLY, &other), ESTALE); /* the kernel looks the name up again */
    k_release(k, e.nodeid, fh);
    assert_int_equal(k_getattr(k, e.nodeid, &a), ESTALE);
    assert_stored(k, "/f.json", "{\"right\":1}");
    assert_int_equal(stored_version(k, "/f.json"), 1);
}

static void test_too_much(void **state)
{
    g_autofree char *big = g_malloc(100001);
    memset(big, ' ', 100000);
    big[100000] = '\0';
    struct fuse_entry_out e;
    uint64_t fh;
    assert_int_equal(k_create(k, 1, "f.json", O_WRONLY | O_TRUNC, 0644, &e, &fh), 0);
    for (int i = 0; i < 10; i++)
        assert_int_equal(k_write(k, e.nodeid, fh, big, (uint64_t)i * 100000), 100000);
    assert_int_equal(k_write(k, e.nodeid, fh, "{}", 1000000), -EFBIG);
    k_release(k, e.nodeid, fh);
    /* all that is being written, together */
    atomic_store(&k->mount->budget.used, k->mount->budget.max - 10);
    assert_int_equal(sh_write(k, "/g.json", "{\"a\":\"0123456789\"}"), ENOSPC);
    atomic_store(&k->mount->budget.used, 0);
    assert_int_equal(sh_write(k, "/g.json", "{\"a\":\"0123456789\"}"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kernel_setup, kernel_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
            TEST(test_number),
            TEST(test_lines),
            TEST(test_lines_in_pieces),
            TEST(test_lines_appended),
            TEST(test_empty_lines_appended),
            TEST(test_killed_writer),
            TEST(test_sequential),
            TEST(test_command),
            TEST(test_command_with_a_value),
            TEST(test_private),
            TEST(test_private_in_a_removed_directory),
            TEST(test_private_kept_open),
            TEST(test_too_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
