#include "fs/fuse/stale.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define TYPE "fuse.kafkafs"
#define PROBE_MS 5000

extern char **environ;

/* One line of /proc/self/mountinfo (proc(5)): minor device number, mount point, type and source, unescaped. */
struct mount_line {
    char *minor, *mountpoint, *type, *source;
};

static void clear(struct mount_line *l)
{
    g_free(l->minor);
    g_free(l->mountpoint);
    g_free(l->type);
    g_free(l->source);
    *l = (struct mount_line){0};
}

static bool parse(const char *text, struct mount_line *l)
{
    const char *rest = strstr(text, " - ");
    if (!rest)
        return false;
    g_auto(GStrv) fields = g_strsplit(text, " ", 6);
    g_auto(GStrv) tail = g_strsplit(rest + 3, " ", 3);
    if (g_strv_length(fields) < 6 || g_strv_length(tail) < 2)
        return false;
    const char *colon = strchr(fields[2], ':');
    if (!colon)
        return false;
    l->minor = g_strdup(colon + 1);
    l->mountpoint = g_strcompress(fields[4]);
    l->type = g_strdup(tail[0]);
    l->source = g_strcompress(tail[1]);
    return true;
}

/* Calls `visit` for each mount, in order. */
static void each_mount(void (*visit)(void *arg, const struct mount_line *l), void *arg)
{
    g_autofree char *text = NULL;
    if (!g_file_get_contents("/proc/self/mountinfo", &text, NULL, NULL))
        return;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++) {
        struct mount_line l;
        if (!parse(*line, &l))
            continue;
        visit(arg, &l);
        clear(&l);
    }
}

struct top {
    const char *mountpoint;
    bool ours;
};

/* The last mount on a path is the one that is seen. */
static void see_top(void *arg, const struct mount_line *l)
{
    struct top *top = arg;
    if (strcmp(l->mountpoint, top->mountpoint) == 0)
        top->ours = strcmp(l->type, TYPE) == 0;
}

struct wanted {
    const char *source;
    bool found;
};

static void see_source(void *arg, const struct mount_line *l)
{
    struct wanted *w = arg;
    w->found |= strcmp(l->type, TYPE) == 0 && strcmp(l->source, w->source) == 0;
}

int mounted_source(const char *source)
{
    struct wanted w = {.source = source};
    each_mount(see_source, &w);
    return w.found;
}

struct wanted_minor {
    const char *mountpoint;
    char *minor;
};

static void see_minor(void *arg, const struct mount_line *l)
{
    struct wanted_minor *w = arg;
    if (strcmp(l->type, TYPE) != 0 || strcmp(l->mountpoint, w->mountpoint) != 0)
        return;
    g_free(w->minor);
    w->minor = g_strdup(l->minor);
}

char *mounted_minor(const char *mountpoint)
{
    struct wanted_minor w = {.mountpoint = mountpoint};
    each_mount(see_minor, &w);
    return w.minor;
}

/* Asks the mount itself, in a child, for it may never answer. Its errno, 0, or ETIMEDOUT. */
static int probe(const char *mountpoint)
{
    int fds[2];
    unsigned char err = ETIMEDOUT;
    if (pipe2(fds, O_CLOEXEC) < 0)
        return errno;
    pid_t pid = fork();
    if (pid == 0) {
        struct statfs st;
        err = statfs(mountpoint, &st) < 0 ? (unsigned char)errno : 0;
        _exit(write(fds[1], &err, 1) != 1);
    }
    close(fds[1]);
    struct pollfd p = {.fd = fds[0], .events = POLLIN};
    if (pid > 0 && poll(&p, 1, PROBE_MS) == 1 && read(fds[0], &err, 1) != 1)
        err = EIO;
    close(fds[0]);
    if (pid < 0)
        return EAGAIN;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return err;
}

static int detach(const char *mountpoint)
{
    if (umount2(mountpoint, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
        return 0;
    if (geteuid() == 0)
        return -errno;
    const char *const argv[] = {"fusermount3", "-u", "-q", "-z", "--", mountpoint, NULL};
    pid_t pid;
    int status, rc = posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, environ);
    if (rc != 0)
        return -rc;
    return waitpid(pid, &status, 0) == pid && status == 0 ? 0 : -EPERM;
}

static int detach_dead(const char *mountpoint, char **ret_why)
{
    for (;;) {
        struct top top = {.mountpoint = mountpoint};
        each_mount(see_top, &top);
        if (!top.ours)
            return 0;
        int err = probe(mountpoint);
        if (err != ENOTCONN && err != ECONNABORTED) {
            *ret_why = g_strdup_printf(err == ETIMEDOUT ? "%s: a kafkafs that does not answer is mounted there"
                                                        : "%s: a kafkafs is mounted there already",
                    mountpoint);
            return -EBUSY;
        }
        int rc = detach(mountpoint);
        if (rc < 0) {
            *ret_why = g_strdup_printf("%s: cannot detach the dead mount: %s", mountpoint, strerror(-rc));
            return rc;
        }
    }
}

static int check_directory(const char *mountpoint, char **ret_why)
{
    DIR *dir = opendir(mountpoint);
    if (!dir) {
        int rc = -errno;
        *ret_why = g_strdup_printf("mount point %s: %s", mountpoint, strerror(-rc));
        return rc;
    }
    const struct dirent *e;
    bool empty = true;
    while (empty && (e = readdir(dir)))
        empty = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
    closedir(dir);
    if (empty)
        return 0;
    *ret_why = g_strdup_printf("mount point %s is not empty", mountpoint);
    return -ENOTEMPTY;
}

int mountpoint_prepare(const char *mountpoint, char **ret_why)
{
    int rc = detach_dead(mountpoint, ret_why);
    return rc < 0 ? rc : check_directory(mountpoint, ret_why);
}
