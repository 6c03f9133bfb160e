#include "fs/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

static int ready_fd = -1; /* to the parent */

/* The parent: it has printed nothing, the child says what is wrong on the same stderr. */
static void wait_for_child(int fd)
{
    char c;
    ssize_t n;
    do
        n = read(fd, &c, 1);
    while (n < 0 && errno == EINTR);
    _exit(n == 1 ? 0 : 1);
}

int daemon_fill_standard_files(void)
{
    /* In the wrong mode: to use a closed one stays an error. */
    static const int modes[] = {O_WRONLY, O_RDONLY, O_RDONLY};
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", modes[fd]) < 0)
            return -errno;
    return 0;
}

int daemon_begin(void)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid < 0)
        return -errno;
    if (pid > 0) {
        close(fds[1]);
        wait_for_child(fds[0]);
    }
    close(fds[0]);
    ready_fd = fds[1];
    setsid();
    return 0;
}

void daemon_ready(void)
{
    if (ready_fd < 0)
        return;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; null >= 0 && fd <= 2; fd++)
        dup2(null, fd);
    if (null > 2)
        close(null);
    if (chdir("/") == 0 && write(ready_fd, "", 1) == 1)
        close(ready_fd);
    ready_fd = -1;
}

void daemon_fail(const char *why)
{
    fprintf(stderr, "kafkafs: %s\n", why);
}

/* ---- signals ---- */

static pthread_t thread;
static void (*on_stop)(void *arg);
static void *stop_arg;

static void ending_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGHUP);
    sigaddset(set, SIGQUIT);
    sigaddset(set, SIGUSR2); /* signals_end() */
}

void signals_block(void)
{
    sigset_t set;
    ending_signals(&set);
    sigaddset(&set, SIGUSR1); /* wakes the FUSE loop, and only that */
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static void *wait_for_signal(void *arg)
{
    sigset_t set;
    int got;
    pthread_setname_np(pthread_self(), "signals");
    ending_signals(&set);
    while (sigwait(&set, &got) == 0 && got != SIGUSR2)
        on_stop(stop_arg);
    return NULL;
}

int signals_start(void (*stop)(void *arg), void *arg)
{
    on_stop = stop;
    stop_arg = arg;
    return -pthread_create(&thread, NULL, wait_for_signal, NULL);
}

void signals_end(void)
{
    pthread_kill(thread, SIGUSR2);
    pthread_join(thread, NULL);
}

bool process_wait_end(pid_t pid, int timeout_ms)
{
    int fd = pidfd_open(pid, 0);
    if (fd < 0)
        return errno == ESRCH;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n = poll(&p, 1, timeout_ms);
    close(fd);
    return n == 1;
}

bool process_dying(pid_t pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/stat", (int)pid), *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, NULL))
        return true;
    const char *name_end = strrchr(text, ')');
    return name_end && name_end[1] == ' ' && (name_end[2] == 'Z' || name_end[2] == 'X');
}
