/*
 * Every system call with which the embedded store changes the disk, in turn: the process dies before it, or the call
 * fails. Whatever was acknowledged is there afterwards, nothing is there by half, and the store opens.
 *
 * The calls are found by standing in for them: liblmdb and the store both come here.
 */
#include "store_fixture.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

static int calls;      /* made so far */
static int at;         /* the one to be hit; 0: none */
static int fault;      /* errno; 0: the process dies */
static bool cut_short; /* a write that writes a part */

static bool hit(void)
{
    if (++calls != at)
        return false;
    if (fault == 0)
        raise(SIGKILL);
    errno = fault;
    return true;
}

/* Under the names that the linker sees: liblmdb has the short ones, we those with 64. */
#define STAND_IN(type, name, parameters, arguments)                                                                    \
    type stand_in_##name parameters __asm__(#name);                                                                    \
    type stand_in_##name parameters                                                                                    \
    {                                                                                                                  \
        return hit() ? -1 : ((type(*) parameters)dlsym(RTLD_NEXT, #name))arguments;                                    \
    }

/* The one that may also write a part. */
#define STAND_IN_PWRITE(name)                                                                                          \
    ssize_t stand_in_##name(int fd, const void *buf, size_t n, int64_t offset) __asm__(#name);                         \
    ssize_t stand_in_##name(int fd, const void *buf, size_t n, int64_t offset)                                         \
    {                                                                                                                  \
        bool now = hit();                                                                                              \
        ssize_t (*real)(int, const void *, size_t, int64_t) = dlsym(RTLD_NEXT, #name);                                 \
        return !now ? real(fd, buf, n, offset) : cut_short ? real(fd, buf, n / 2, offset) : -1;                        \
    }

STAND_IN_PWRITE(pwrite)
STAND_IN_PWRITE(pwrite64)
STAND_IN(ssize_t, writev, (int fd, const struct iovec *iov, int n), (fd, iov, n))
STAND_IN(int, fdatasync, (int fd), (fd))
STAND_IN(int, fsync, (int fd), (fd))
STAND_IN(int, ftruncate, (int fd, int64_t len), (fd, len))
STAND_IN(int, ftruncate64, (int fd, int64_t len), (fd, len))
STAND_IN(int, fallocate, (int fd, int mode, int64_t offset, int64_t len), (fd, mode, offset, len))
STAND_IN(int, fallocate64, (int fd, int mode, int64_t offset, int64_t len), (fd, mode, offset, len))
STAND_IN(int, renameat, (int from_dir, const char *from, int to_dir, const char *to), (from_dir, from, to_dir, to))
STAND_IN(int, unlinkat, (int dir, const char *path, int flags), (dir, path, flags))
STAND_IN(int, mkdir, (const char *path, mode_t mode), (path, mode))

/* ---- the scenario: numbered transactions, each acknowledged by a bit ---- */

#define N_TXNS 6

static struct txn *transaction(int i, int64_t session)
{
    static char large[20000];
    struct txn *txn = txn_new(TXN_CLIENT);
    g_autofree char *a = g_strdup_printf("/t%d", i), *b = g_strdup_printf("/t%d/child", i),
                    *gone = g_strdup_printf("/t%d", i - 2), *below = g_strdup_printf("/t%d/child", i - 2);
    memset(large, 'x', sizeof large);
    txn->session = session;
    txn_create(txn, a, bytes_new(large, i % 2 ? 10 : sizeof large), 0);
    txn_create(txn, b, NULL, i % 3 == 0 ? CREATE_EPHEMERAL : 0);
    if (i == 4) {
        txn_delete(txn, below, -1);
        txn_delete(txn, gone, -1);
    }
    txn->done = fixture_keep;
    return txn;
}

/* Opens, makes all transactions that are not there yet, closes; acknowledges on `fd`. 0, or the error of the open. */
static int scenario(const char *dir, int fd, int *ret_failures)
{
    struct fixture f = {.now = 1, .feed = g_string_new(NULL)};
    struct store_config config = fixture_config(&f);
    char *why = NULL;
    int err = store_open_lmdb(dir, true, false, &config, &f.store, &why);
    f.mirror = mirror_new(NULL, NULL);
    if (err == 0 && store_load(f.store, (void *)mirror_load, f.mirror, &why) < 0)
        _exit(3);
    int64_t session = err == 0 ? store_session_open(f.store) : 0;
    for (int i = 1; i <= N_TXNS && err == 0; i++) {
        if (i == 2 && mirror_exists(f.mirror, "/t4"))
            continue; /* it is gone again already */
        struct txn *txn = transaction(i, session);
        store_submit(f.store, txn);
        store_step(f.store);
        char number = (char)i;
        bool stored = txn->rc == ZOK || txn->rc == ZNODEEXISTS;
        if (stored && write(fd, &number, 1) != 1)
            _exit(2);
        if (!stored && txn->rc != ZSTOREIO && txn->rc != ZSTORENOSPACE && txn->rc != ZNOTREADONLY &&
                !(i == 4 && txn->rc == ZNONODE)) /* /t2 itself was refused */
            _exit(4);
        txn_free(txn);
    }
    if (ret_failures)
        *ret_failures = (int)f.n_failures;
    if (err == 0)
        store_close(f.store);
    mirror_free(f.mirror);
    g_string_free(f.feed, TRUE);
    g_free(f.failure);
    g_free(why);
    return err;
}

/* What is there after a reopen: NULL, or what is wrong. */
static char *audit(const char *dir, const bool *acknowledged)
{
    struct fixture f;
    at = 0;
    fixture_open_lmdb(&f, dir);
    char *wrong = NULL;
    bool fourth = mirror_exists(f.mirror, "/t4");
    for (int i = 1; i <= N_TXNS && !wrong; i++) {
        g_autofree char *a = g_strdup_printf("/t%d", i), *b = g_strdup_printf("/t%d/child", i);
        bool has_a = mirror_exists(f.mirror, a), has_b = mirror_exists(f.mirror, b);
        bool expected = acknowledged[i] && !(i == 2 && fourth);
        if (expected && !has_a)
            wrong = g_strdup_printf("transaction %d was acknowledged and is lost", i);
        if (has_b != (has_a && i % 3 != 0)) /* the ephemeral ones are gone with the process */
            wrong = g_strdup_printf("transaction %d is there by half", i);
        if (i == 2 && fourth && has_a)
            wrong = g_strdup_printf("transaction 4 is there by half");
    }
    fixture_close(&f);
    return wrong;
}

struct outcome {
    int status; /* of the child */
    bool acknowledged[N_TXNS + 1];
};

static void run(const char *dir, int call, int with, bool in_part, struct outcome *o)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int failures = 0;
        calls = 0;
        at = call;
        fault = with;
        cut_short = in_part;
        int err = scenario(dir, fds[1], &failures);
        bool was_hit = calls >= call;
        _exit(!was_hit ? 10 : err < 0 ? 11 : failures ? 12 : 13);
    }
    close(fds[1]);
    char number;
    while (read(fds[0], &number, 1) == 1)
        o->acknowledged[(int)number] = true;
    close(fds[0]);
    assert_int_equal(waitpid(pid, &o->status, 0), pid);
}

/* ---- the tests ---- */

/* Dies before each call, twice in a row at the same one, so also while it opens what the first one left. */
static void test_death_at_every_call(void **state)
{
    int call = 1;
    for (;; call++) {
        char *parent = fixture_dir();
        g_autofree char *dir = g_build_filename(parent, "metadata", NULL);
        struct outcome o = {0};
        run(dir, call, 0, false, &o);
        bool finished = WIFEXITED(o.status);
        if (!finished)
            run(dir, call, 0, false, &o);
        g_autofree char *wrong = audit(dir, o.acknowledged);
        if (wrong)
            fail_msg("death at call %d: %s", call, wrong);
        fixture_remove(parent);
        if (finished) {
            assert_int_equal(WEXITSTATUS(o.status), 10);
            break;
        }
    }
    print_message("%d calls\n", call - 1);
    assert_true(call > 20);
}

static void fail_every_call(int with, bool in_part, int *ret_opened, int *ret_failed, int *ret_went_on)
{
    for (int call = 1;; call++) {
        char *parent = fixture_dir();
        g_autofree char *dir = g_build_filename(parent, "metadata", NULL);
        struct outcome o = {0};
        run(dir, call, with, in_part, &o);
        if (!WIFEXITED(o.status) || WEXITSTATUS(o.status) < 10)
            fail_msg("%s at call %d: status %x", strerror(with), call, o.status);
        g_autofree char *wrong = audit(dir, o.acknowledged);
        if (wrong)
            fail_msg("%s at call %d: %s", strerror(with), call, wrong);
        fixture_remove(parent);
        if (WEXITSTATUS(o.status) == 10)
            return;
        *ret_opened += WEXITSTATUS(o.status) != 11;
        *ret_failed += WEXITSTATUS(o.status) == 12;
        *ret_went_on += WEXITSTATUS(o.status) == 13;
    }
}

static void test_io_error_at_every_call(void **state)
{
    int opened = 0, failed = 0, went_on = 0;
    fail_every_call(EIO, false, &opened, &failed, &went_on);
    print_message("EIO: opened %d times, read-only %d times, went on %d times\n", opened, failed, went_on);
    assert_true(failed > 5);
}

static void test_no_space_at_every_call(void **state)
{
    int opened = 0, failed = 0, went_on = 0;
    fail_every_call(ENOSPC, false, &opened, &failed, &went_on);
    print_message("ENOSPC: opened %d times, read-only %d times, went on %d times\n", opened, failed, went_on);
    assert_true(went_on > 5);
}

static void test_short_write_at_every_call(void **state)
{
    int opened = 0, failed = 0, went_on = 0;
    fail_every_call(EIO, true, &opened, &failed, &went_on);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_death_at_every_call),
            cmocka_unit_test(test_io_error_at_every_call),
            cmocka_unit_test(test_no_space_at_every_call),
            cmocka_unit_test(test_short_write_at_every_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
