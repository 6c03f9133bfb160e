/* `.state`: parked questions, the barrier, and the journals as files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include "tests/fuse/kernel_fixture.h"

static void test_not_listed(void **state)
{
    struct fuse_entry_out e;
    g_autofree char *names = k_list(k, 1);
    assert_string_equal(names, "");
    assert_int_equal(k_lookup(k, 1, ".state", &e), 0);
    assert_true(S_ISDIR(e.attr.mode));
    g_autofree char *in_state = k_list(k, e.nodeid);
    assert_string_equal(in_state, "errors events file link set settled");
    assert_int_equal(k_lookup(k, e.nodeid, "none", NULL), ENOENT);
    assert_int_equal(k_mkdir(k, e.nodeid, "x", &e), EPERM);
    assert_int_equal(k_mkdir(k, 1, ".state", &e), EPERM);
    assert_int_equal(k_unlink(k, 1, ".state"), EPERM);
}

static void test_files(void **state)
{
    struct fuse_entry_out e;
    uint64_t fh;
    g_autofree char *text = sh_cat(k, "/.state/dir/file");
    assert_string_equal(text, "/.state/dir/file\n");
    uint64_t dir = k_walk(k, "/.state/dir");
    assert_int_equal(k_lookup(k, dir, "file", &e), 0);
    assert_int_equal(e.attr.mode, S_IFREG | 0444);
    assert_int_equal(e.entry_valid, 0);
    assert_int_equal(k_open(k, e.nodeid, O_WRONLY, &fh), EACCES);
    assert_int_equal(k_lookup(k, dir, "link", &e), 0);
    assert_true(S_ISLNK(e.attr.mode));
    g_autofree struct answer *a = kernel_wait(k, kernel_send(k, FUSE_READLINK, e.nodeid, NULL, 0, NULL, 0));
    assert_int_equal(a->len, 7);
    assert_memory_equal(a->body, "/target", 7);
    /* the same thing has the same number while it is known */
    assert_int_equal(k_walk(k, "/.state/dir/file"), k_walk(k, "/.state/dir/file"));
}

static struct asked_question *next_question(void)
{
    struct asked_question *q = NULL;
    while (!q) {
        kernel_pump(k, 1);
        pthread_mutex_lock(&k->lock);
        q = g_queue_pop_head(&k->questions);
        pthread_mutex_unlock(&k->lock);
    }
    return q;
}

static void free_question(struct asked_question *q)
{
    g_free(q->path);
    g_free(q->value);
    g_free(q);
}

static void test_write(void **state)
{
    uint64_t ino = k_walk(k, "/.state/set"), fh;
    assert_int_equal(k_open(k, ino, O_WRONLY | O_TRUNC, &fh), 0);
    assert_int_equal(k_write(k, ino, fh, "stop", 0), 4);
    const struct fuse_write_in in = {.fh = fh, .offset = 4, .size = 4};
    uint64_t unique = kernel_send(k, FUSE_WRITE, ino, &in, sizeof in, "ped\n", 4);
    struct asked_question *q = next_question();
    assert_int_equal(q->query, STATE_WRITE);
    assert_string_equal(q->value, "stopped\n");
    assert_false(kernel_has(k, unique));
    state_answer_done(q->q);
    free_question(q);
    g_autofree struct answer *a = kernel_wait(k, unique);
    assert_int_equal(a->err, 0);
    assert_int_equal(((struct fuse_write_out *)a->body)->size, 4);
    /* without a newline: at the close, where the error shows */
    assert_int_equal(k_write(k, ino, fh, "x", 0), 1);
    const struct fuse_flush_in flush = {.fh = fh};
    unique = kernel_send(k, FUSE_FLUSH, ino, &flush, sizeof flush, NULL, 0);
    q = next_question();
    assert_string_equal(q->value, "x");
    state_answer_error(q->q, EINVAL);
    free_question(q);
    g_autofree struct answer *b = kernel_wait(k, unique);
    assert_int_equal(b->err, EINVAL);
    assert_int_equal(k_flush(k, ino, fh), 0);
    k_release(k, ino, fh);
}

static uint64_t send_read(uint64_t ino, uint64_t fh)
{
    const struct fuse_read_in in = {.fh = fh, .size = 100};
    return kernel_send(k, FUSE_READ, ino, &in, sizeof in, NULL, 0);
}

static void send_interrupt(uint64_t unique)
{
    const struct fuse_interrupt_in in = {.unique = unique};
    kernel_send(k, FUSE_INTERRUPT, 0, &in, sizeof in, NULL, 0);
}

/* Interrupted: EINTR at once. The late answer goes to nobody; others are not concerned. */
static void test_interrupted(void **state)
{
    uint64_t ino = k_walk(k, "/.state/parked"), fh;
    assert_int_equal(k_open(k, ino, O_RDONLY, &fh), 0);
    uint64_t first = send_read(ino, fh), second = send_read(ino, fh);
    struct asked_question *a = next_question(), *b = next_question();
    send_interrupt(first);
    g_autofree struct answer *interrupted = kernel_wait(k, first);
    assert_int_equal(interrupted->err, EINTR);
    k_release(k, ino, fh);
    state_answer_bytes(a->q, "late", 4);
    state_answer_bytes(b->q, "right", 5);
    g_autofree struct answer *right = kernel_wait(k, second);
    assert_int_equal(right->err, 0);
    assert_memory_equal(right->body, "right", 5);
    free_question(a);
    free_question(b);
}

/* The end of the mount answers what is parked; the policy's answer comes later still (teardown). */
static void test_parked_at_the_end(void **state)
{
    uint64_t ino = k_walk(k, "/.state/parked"), fh;
    assert_int_equal(k_open(k, ino, O_RDONLY, &fh), 0);
    send_read(ino, fh);
    kernel_sync(k);
}

/* ---- settled ---- */

static void test_settled(void **state)
{
    uint64_t ino = k_walk(k, "/.state/settled"), fh;
    struct fuse_entry_out e;
    g_autofree char *now = sh_cat(k, "/.state/settled");
    assert_string_equal(now, "0\n");
    assert_int_equal(k_mkdir(k, 1, "d", &e), 0);
    gen_t before = settle_hold_now(k->settle);
    assert_int_equal(k_open(k, ino, O_RDONLY, &fh), 0);
    gen_t after = settle_hold_now(k->settle); /* not waited for */
    uint64_t unique = send_read(ino, fh);
    kernel_sync(k);
    kernel_pump(k, 20);
    assert_false(kernel_has(k, unique));
    settle_release(k->settle, before);
    g_autofree struct answer *a = kernel_wait(k, unique);
    assert_int_equal(a->err, 0);
    assert_int_equal(a->len, 2);
    assert_memory_equal(a->body, "1\n", 2);
    char buf[10];
    assert_int_equal(k_read(k, ino, fh, buf, sizeof buf, 2), 0);
    k_release(k, ino, fh);
    settle_release(k->settle, after);
}

static void test_settled_interrupted(void **state)
{
    uint64_t ino = k_walk(k, "/.state/settled"), fh;
    gen_t before = settle_hold_now(k->settle);
    assert_int_equal(k_open(k, ino, O_RDONLY, &fh), 0);
    uint64_t first = send_read(ino, fh), second = send_read(ino, fh);
    send_interrupt(first);
    g_autofree struct answer *a = kernel_wait(k, first);
    assert_int_equal(a->err, EINTR);
    assert_false(kernel_has(k, second));
    settle_release(k->settle, before);
    g_autofree struct answer *b = kernel_wait(k, second);
    assert_int_equal(b->err, 0);
    k_release(k, ino, fh);
}

/* It waits for a change that is on its way to the store. */
static void test_settled_waits_for_changes(void **state)
{
    uint64_t ino = k_walk(k, "/.state/settled"), fh;
    k->hold = true;
    const struct fuse_mkdir_in in = {.mode = 0755};
    uint64_t change = kernel_send(k, FUSE_MKDIR, 1, &in, sizeof in, "d", 2);
    kernel_sync(k);
    assert_int_equal(k_open(k, ino, O_RDONLY, &fh), 0);
    uint64_t read = send_read(ino, fh);
    kernel_sync(k);
    kernel_pump(k, 20);
    assert_false(kernel_has(k, read) || kernel_has(k, change));
    k->hold = false;
    g_free(kernel_wait(k, change));
    g_autofree struct answer *a = kernel_wait(k, read);
    assert_memory_equal(a->body, "1\n", 2);
    k_release(k, ino, fh);
}

static void test_settled_at_the_end(void **state)
{
    uint64_t ino = k_walk(k, "/.state/settled"), fh;
    gen_t gen = settle_hold_now(k->settle);
    assert_int_equal(k_open(k, ino, O_RDONLY, &fh), 0);
    uint64_t unique = send_read(ino, fh);
    kernel_sync(k);
    assert_false(kernel_has(k, unique));
    mount_stop(k->mount); /* the end comes first, the barrier later */
    g_autofree struct answer *a = kernel_wait(k, unique);
    assert_int_equal(a->err, ESHUTDOWN);
    settle_release(k->settle, gen);
}

/* ---- journals ---- */

static void lines(int from, int to)
{
    for (int i = from; i < to; i++)
        journal_line(k->events, "line %04d", i); /* 10 bytes */
}

static void test_journal(void **state)
{
    struct fuse_attr_out a, b;
    char buf[5000];
    uint64_t fh;
    lines(0, 10);
    uint64_t ino = k_walk(k, "/.state/events");
    assert_int_equal(k_getattr(k, ino, &a), 0);
    assert_int_equal(a.attr.size, 100);
    assert_int_equal(a.attr_valid, 0);
    assert_int_equal(k_open(k, ino, O_RDONLY, &fh), 0);
    assert_int_equal(k_read(k, ino, fh, buf, sizeof buf, 0), 100);
    assert_memory_equal(buf, "line 0000\nline 0001\n", 20);
    assert_int_equal(k_read(k, ino, fh, buf, sizeof buf, 100), 0);
    lines(10, 12);
    assert_int_equal(k_getattr(k, ino, &b), 0);
    assert_int_equal(b.attr.size, 120);
    assert_int_equal(k_read(k, ino, fh, buf, sizeof buf, 100), 20); /* tail -f */
    assert_memory_equal(buf, "line 0010\nline 0011\n", 20);
    assert_int_equal(k_read(k, ino, fh, buf, 10, 50), 10); /* tail -n, from the end */
    assert_memory_equal(buf, "line 0005\n", 10);
    assert_int_equal(k_read(k, ino, fh, buf, 4, 115), 4);
    assert_memory_equal(buf, "0011", 4);
    assert_int_equal(k_read(k, ino, fh, buf, sizeof buf, 1000), 0);
    assert_int_equal(k_read(k, ino, fh, buf, 10, 0), 10);
    assert_memory_equal(buf, "line 0000\n", 10);
    k_release(k, ino, fh);
}

/* The journal holds 4,096 bytes here: older lines go, and readers are told. */
static void test_journal_overrun(void **state)
{
    struct fuse_attr_out a;
    char buf[5000];
    uint64_t fh, late_fh;
    lines(0, 100);
    uint64_t ino = k_walk(k, "/.state/events");
    assert_int_equal(k_open(k, ino, O_RDONLY, &fh), 0);
    assert_int_equal(k_read(k, ino, fh, buf, 100, 0), 100);
    lines(100, 1000);
    ssize_t n = k_read(k, ino, fh, buf, sizeof buf, 100);
    assert_memory_equal(buf, "lost 581\nline 0591\n", 19); /* 409 are kept, 10 had been read */
    assert_int_equal(n, 9 + 4090);
    assert_int_equal(k_read(k, ino, fh, buf, sizeof buf, 100 + (uint64_t)n), 0);
    /* to whom has it open it only grows; a later opener sees what there is */
    assert_int_equal(k_getattr(k, ino, &a), 0);
    assert_int_equal(a.attr.size, 10000);
    uint64_t late = k_walk(k, "/.state/events");
    assert_int_not_equal(late, ino);
    uint64_t shown = a.attr.ino;
    assert_int_equal(k_getattr(k, late, &a), 0);
    assert_int_equal(a.attr.ino, shown); /* tail -F does not take it for another file */
    assert_int_equal(a.attr.size, 9 + 4090);
    assert_int_equal(k_open(k, late, O_RDONLY, &late_fh), 0);
    assert_int_equal(k_read(k, late, late_fh, buf, sizeof buf, 0), 9 + 4090);
    assert_memory_equal(buf, "lost 591\nline 0591\n", 19);
    assert_int_equal(k_read(k, late, late_fh, buf, 10, 9 + 4080), 10);
    assert_memory_equal(buf, "line 0999\n", 10);
    k_release(k, ino, fh);
    k_release(k, late, late_fh);
}

static unsigned send_poll(uint64_t ino, uint64_t fh, uint64_t kh)
{
    const struct fuse_poll_in in = {.fh = fh, .kh = kh, .flags = FUSE_POLL_SCHEDULE_NOTIFY, .events = POLLIN};
    g_autofree struct answer *a = kernel_wait(k, kernel_send(k, FUSE_POLL, ino, &in, sizeof in, NULL, 0));
    assert_int_equal(a->err, 0);
    return ((struct fuse_poll_out *)a->body)->revents;
}

static void test_poll(void **state)
{
    char buf[100];
    uint64_t ino = k_walk(k, "/.state/events"), fh, other;
    lines(0, 1);
    assert_int_equal(k_open(k, ino, O_RDONLY, &fh), 0);
    assert_true(send_poll(ino, fh, 7) & POLLIN);
    assert_int_equal(k_read(k, ino, fh, buf, sizeof buf, 0), 10);
    assert_int_equal(send_poll(ino, fh, 8), 0);
    kernel_forget_notices(k);
    lines(1, 2);
    struct notice_seen n = kernel_notice(k);
    assert_int_equal(n.code, FUSE_NOTIFY_POLL);
    assert_int_equal(n.ino, 8);
    assert_true(send_poll(ino, fh, 9) & POLLIN);
    k_release(k, ino, fh);
    /* who has closed it, ready or not, is woken no more */
    assert_int_equal(k_open(k, ino, O_RDONLY, &fh), 0);
    assert_true(k_read(k, ino, fh, buf, sizeof buf, 0) > 0);
    assert_int_equal(send_poll(ino, fh, 10), 0);
    assert_int_equal(k_open(k, ino, O_RDONLY, &other), 0);
    assert_true(k_read(k, ino, other, buf, sizeof buf, 0) > 0);
    assert_int_equal(send_poll(ino, other, 11), 0);
    k_release(k, ino, fh);
    kernel_forget_notices(k);
    lines(2, 3);
    n = kernel_notice(k);
    assert_int_equal(n.code, FUSE_NOTIFY_POLL);
    assert_int_equal(n.ino, 11);
    k_release(k, ino, other);
    /* anything else is ready as it is */
    other_create(k, "/f", "x");
    ino = k_walk(k, "/f");
    assert_int_equal(k_open(k, ino, O_RDONLY, &fh), 0);
    assert_true(send_poll(ino, fh, 12) & POLLIN);
    k_release(k, ino, fh);
}

static void test_errors_name_no_lines(void **state)
{
    struct fuse_entry_out e;
    uint64_t fh;
    assert_int_equal(k_mkdir(k, 1, "two\nlines \033[31m", &e), EINVAL);
    assert_last_error(k, "EINVAL /two\\x0alines \\x1b[31m: ");
    uint64_t ino = k_walk(k, "/.state/errors");
    assert_int_equal(k_open(k, ino, O_RDONLY, &fh), 0);
    char buf[1000];
    ssize_t n = k_read(k, ino, fh, buf, sizeof buf, 0);
    assert_true(n > 0 && buf[n - 1] == '\n' && memchr(buf, '\n', (size_t)n) == buf + n - 1);
    k_release(k, ino, fh);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kernel_setup, kernel_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
            TEST(test_not_listed),
            TEST(test_files),
            TEST(test_write),
            TEST(test_interrupted),
            TEST(test_parked_at_the_end),
            TEST(test_settled),
            TEST(test_settled_interrupted),
            TEST(test_settled_waits_for_changes),
            TEST(test_settled_at_the_end),
            TEST(test_journal),
            TEST(test_journal_overrun),
            TEST(test_poll),
            TEST(test_errors_name_no_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
