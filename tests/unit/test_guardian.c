/*
 * The guardian, beside a daemon that is as short as can be: a mount whose requests nobody answers. A daemon that is
 * stuck is one whose main thread is dead while another thread lives, and keeps /dev/fuse open.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "fs/fuse/guardian.h"

#define PATIENCE_MS 20000 /* no measure of speed: a test that hangs says where, before `meson test` ends it */

static char *dir;   /* the mount point */
static int reports; /* what the daemon's process writes comes here */

static int setup(void **state)
{
    dir = g_dir_make_tmp("guardian.XXXXXX", NULL);
    return dir ? 0 : -1;
}

static int teardown(void **state)
{
    while (umount2(dir, MNT_DETACH) == 0)
        ;
    g_rmdir(dir);
    g_clear_pointer(&dir, g_free);
    return 0;
}

/* Mounts, in the daemon; the mount lives as long as the descriptor. False: it cannot be done here. */
static bool mount_here(void)
{
    int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    g_autofree char *options = g_strdup_printf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
    return fd >= 0 && mount("source", dir, "fuse.kafkafs", MS_NOSUID | MS_NODEV, options) == 0;
}

static void *wait_for_ever(void *unused)
{
    for (;;)
        pause();
    return NULL;
}

/* Runs `live` as a daemon in a process of its own, which reports through the pipe that it is given. */
static pid_t start_daemon(void (*live)(int report))
{
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        signal(SIGPIPE, SIG_IGN);
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nothing behind */
        live(fds[1]);
        _exit(0);
    }
    close(fds[1]);
    reports = fds[0];
    return pid;
}

/* The number that the daemon reports next. */
static int heard(void)
{
    int number;
    struct pollfd p = {.fd = reports, .events = POLLIN};
    assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
    assert_int_equal(read(reports, &number, sizeof number), sizeof number);
    return number;
}

static void say(int report, int number)
{
    if (write(report, &number, sizeof number) != sizeof number)
        _exit(2);
}

static void expect_end(int pidfd)
{
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
    close(pidfd);
}

/* The only child of a process. */
static pid_t child_of(pid_t pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/task/%d/children", pid, pid), *text = NULL;
    assert_true(g_file_get_contents(path, &text, NULL, NULL));
    return atoi(text);
}

static void end_daemon(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(reports);
}

/* ---- a daemon that is stuck ---- */

static void live_until_stuck(int report)
{
    pthread_t other;
    int rc = guardian_begin();
    if (rc == 0 && !mount_here())
        rc = 1; /* not to be tested here */
    else if (rc == 0)
        rc = guardian_watch(dir);
    if (rc == 0)
        rc = -pthread_create(&other, NULL, wait_for_ever, NULL);
    say(report, rc);
    wait_for_ever(NULL);
}

static void test_stuck(void **state)
{
    pid_t daemon = start_daemon(live_until_stuck);
    int rc = heard();
    if (rc == 1) {
        end_daemon(daemon);
        skip();
    }
    assert_int_equal(rc, 0);
    int guardian = pidfd_open(child_of(daemon), 0);
    pid_t client = fork();
    if (client == 0) {
        struct stat st;
        _exit(stat(dir, &st) < 0 ? errno : 0);
    }
    int client_fd = pidfd_open(client, 0);
    struct pollfd p = {.fd = client_fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 100), 0); /* it waits for the daemon */

    /* The end of a thread is its own affair: only a debugger can bring it from outside. So it is asked to. */
    kill(daemon, SIGUSR1);
    expect_end(client_fd);
    int status;
    assert_int_equal(waitpid(client, &status, 0), client);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), ENOTCONN);
    expect_end(guardian);
    end_daemon(daemon);
}

/* SIGUSR1, on the main thread: it dies, the others live on. */
static void main_thread_dies(int unused)
{
    syscall(SYS_exit, 0);
}

/* ---- other ends ---- */

static void live_in_order(int report)
{
    if (guardian_begin() == 0) {
        guardian_end();
        guardian_end(); /* nothing */
    }
    say(report, waitpid(-1, NULL, 0) < 0 ? errno : 0);
}

static void test_orderly_end(void **state)
{
    pid_t daemon = start_daemon(live_in_order);
    assert_int_equal(heard(), ECHILD); /* it has left no child, dead or alive */
    end_daemon(daemon);
}

static void live_with_a_lock(int report)
{
    g_autofree char *path = g_strconcat(dir, ".lock", NULL);
    int fd = open(path, O_RDWR | O_CREAT, 0600); /* without O_CLOEXEC */
    int rc = flock(fd, LOCK_EX) < 0 ? -errno : guardian_begin();
    say(report, rc);
    wait_for_ever(NULL);
}

static void test_keeps_nothing_open(void **state)
{
    pid_t daemon = start_daemon(live_with_a_lock);
    assert_int_equal(heard(), 0);
    pid_t guardian = child_of(daemon);
    int guardian_fd = pidfd_open(guardian, 0);
    assert_true(guardian_fd >= 0);
    g_autofree char *fds = g_strdup_printf("/proc/%d/fd", guardian), *path = g_strconcat(dir, ".lock", NULL);
    static const char *const targets[] = {"/dev/null", "/dev/null", "/dev/null", "pipe:", "anon_inode:[pidfd]"};
    gint64 limit = g_get_monotonic_time() + PATIENCE_MS * 1000;
    for (guint n = 0; n != G_N_ELEMENTS(targets);) { /* it is still closing and opening */
        assert_true(g_get_monotonic_time() < limit);
        g_autoptr(GDir) d = g_dir_open(fds, 0, NULL);
        for (n = 0; g_dir_read_name(d);)
            n++;
    }
    for (guint i = 0; i < G_N_ELEMENTS(targets); i++) {
        g_autofree char *link = g_strdup_printf("%s/%u", fds, i), *target = g_file_read_link(link, NULL);
        assert_non_null(target);
        assert_true(g_str_has_prefix(target, targets[i]));
    }
    /* stopped, so that the lock is seen while it lives */
    assert_int_equal(kill(guardian, SIGSTOP), 0);
    end_daemon(daemon);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    close(fd);
    g_unlink(path);
    kill(guardian, SIGCONT);
    expect_end(guardian_fd); /* a daemon that never mounted: there is nothing to do */
}

static void live_without_guardian(int report)
{
    siginfo_t info;
    int rc = guardian_begin();
    g_autofree char *children = g_strdup_printf("/proc/%d/task/%d/children", getpid(), getpid()), *text = NULL;
    if (rc == 0 && !mount_here())
        rc = 1;
    else if (rc == 0 && g_file_get_contents(children, &text, NULL, NULL) && kill(atoi(text), SIGKILL) == 0 &&
             waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) == 0)
        rc = guardian_watch(dir);
    say(report, rc);
    guardian_end();
    say(report, waitpid(-1, NULL, 0) < 0 ? errno : 0);
}

static void test_killed_alone(void **state)
{
    pid_t daemon = start_daemon(live_without_guardian);
    int rc = heard(), left = heard();
    end_daemon(daemon);
    if (rc == 1)
        skip();
    assert_int_equal(rc, -EPIPE);
    assert_int_equal(left, ECHILD);
}

static void live_without_mount(int report)
{
    int rc = guardian_begin();
    say(report, rc == 0 ? guardian_watch(dir) : rc);
    guardian_end();
}

static void test_no_mount(void **state)
{
    pid_t daemon = start_daemon(live_without_mount);
    assert_int_equal(heard(), -ENOENT);
    end_daemon(daemon);
}

/* A SIGTERM that is not the kernel's news of the daemon's death (an administrator's pkill) changes nothing. */
static void test_sigterm_from_others(void **state)
{
    pid_t daemon = start_daemon(live_until_stuck);
    int rc = heard();
    if (rc == 1) {
        end_daemon(daemon);
        skip();
    }
    int guardian = pidfd_open(child_of(daemon), 0);
    struct pollfd p = {.fd = guardian, .events = POLLIN};
    assert_int_equal(kill(child_of(daemon), SIGTERM), 0);
    assert_int_equal(poll(&p, 1, 200), 0);
    end_daemon(daemon);
    expect_end(guardian);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
            TEST(test_stuck),
            TEST(test_orderly_end),
            TEST(test_keeps_nothing_open),
            TEST(test_killed_alone),
            TEST(test_no_mount),
            TEST(test_sigterm_from_others),
    };
    signal(SIGUSR1, main_thread_dies); /* the daemons inherit it */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
