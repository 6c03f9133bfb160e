#include "fs/fuse/guardian.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "fs/fuse/stale.h"

/* How long a daemon that is ending may take to close its files before it counts as stuck. */
#define GRACE_MS 50

static pid_t guardian;
static int to_guardian = -1; /* a pipe; carries one line: minor number, blank, mount point */

static bool ended(int daemon, int timeout_ms)
{
    struct pollfd p = {.fd = daemon, .events = POLLIN};
    return poll(&p, 1, timeout_ms) != 0;
}

static bool abort_by_control(const char *minor)
{
    g_autofree char *path = g_strdup_printf("/sys/fs/fuse/connections/%s/abort", minor);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool done = fd >= 0 && write(fd, "1", 1) == 1;
    if (fd >= 0)
        close(fd);
    return done;
}

/* Where the control filesystem is not mounted. The descriptor keeps the dead mount where it is: busy, so only aborted.
 */
static void abort_by_force(const char *mountpoint)
{
    int fd = open(mountpoint, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)umount2(mountpoint, MNT_FORCE | UMOUNT_NOFOLLOW);
    close(fd);
}

static void abort_connection(int from_daemon)
{
    char line[PATH_MAX + 32];
    ssize_t n = read(from_daemon, line, sizeof line - 1);
    if (n <= 0)
        return; /* it never mounted */
    line[n] = '\0';
    char *blank = strchr(line, ' ');
    if (!blank)
        return;
    *blank = '\0';
    if (!abort_by_control(line))
        abort_by_force(blank + 1);
}

static void keep_nothing_open(int except)
{
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; null >= 0 && fd <= 2; fd++)
        dup2(null, fd);
    if (dup2(except, 3) < 0)
        _exit(1);
    close_range(4, ~0U, 0);
}

/* `death`: the signal that says so, blocked since before the fork. */
static void guard(pid_t daemon_pid, int from_daemon, const sigset_t *death)
{
    siginfo_t info;
    setsid(); /* not in the way of a kill of the daemon's process group */
    prctl(PR_SET_NAME, "kafkafs-guard");
    keep_nothing_open(from_daemon);
    int daemon = pidfd_open(daemon_pid, 0);
    if (daemon < 0 || prctl(PR_SET_PDEATHSIG, SIGTERM) < 0)
        _exit(1);
    /* Anybody may send this signal: the kernel's names the daemon. (A stuck thread stays our parent.) */
    while (getppid() == daemon_pid && (sigwaitinfo(death, &info) < 0 || info.si_pid != daemon_pid))
        ;
    if (!ended(daemon, GRACE_MS))
        abort_connection(3);
    _exit(0);
}

int guardian_begin(void)
{
    int fds[2];
    pid_t self = getpid();
    sigset_t death, before;
    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    sigemptyset(&death);
    sigaddset(&death, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &death, &before);
    pid_t pid = fork();
    if (pid == 0)
        guard(self, fds[0], &death);
    int rc = pid < 0 ? -errno : 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(fds[0]);
    if (rc < 0) {
        close(fds[1]);
        return rc;
    }
    guardian = pid;
    to_guardian = fds[1];
    return 0;
}

int guardian_watch(const char *mountpoint)
{
    g_autofree char *minor = mounted_minor(mountpoint);
    int rc = -ENOENT;
    if (minor) {
        g_autofree char *line = g_strdup_printf("%s %s", minor, mountpoint);
        rc = write(to_guardian, line, strlen(line)) < 0 ? -errno : 0; /* an empty pipe takes all of it */
    }
    close(to_guardian);
    to_guardian = -1;
    return rc;
}

void guardian_end(void)
{
    if (guardian <= 0)
        return;
    kill(guardian, SIGKILL);
    (void)waitpid(guardian, NULL, 0);
    guardian = 0;
}
