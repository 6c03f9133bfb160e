#include "fs/store/lmdb_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "fs/store/lmdb_format.h"

#define RESERVE_CHUNK (UINT64_C(1) << 20)

static int fail(int err, const char *dir, const char *what, char **ret_why)
{
    *ret_why = g_strdup_printf("%s: %s: %s", dir, what, g_strerror(-err));
    return err;
}

/* Owner and mode of the directory or of a file in it. */
static int check_private(int fd, const char *dir, const char *what, mode_t type, char **ret_why)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return fail(-errno, dir, what, ret_why);
    if ((st.st_mode & S_IFMT) != type) {
        *ret_why = g_strdup_printf("%s: %s is not what it should be", dir, what);
        return -EACCES;
    }
    if (st.st_uid != geteuid()) {
        *ret_why = g_strdup_printf(
                "%s: %s belongs to user %u, not to user %u, who runs this", dir, what, st.st_uid, geteuid());
        return -EACCES;
    }
    if (st.st_mode & 077) {
        *ret_why = g_strdup_printf(
                "%s: %s is open to other users (mode %o); make it private (chmod go=)", dir, what, st.st_mode & 07777);
        return -EACCES;
    }
    return 0;
}

/* A new directory is durable when its parent is. */
static int sync_parent(const char *dir)
{
    g_autofree char *parent = g_path_get_dirname(dir);
    int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int err = fsync(fd) < 0 ? -errno : 0;
    close(fd);
    return err;
}

static int open_directory(const char *dir, bool create, char **ret_why)
{
    if (create) {
        int err = mkdir(dir, 0700) == 0 ? sync_parent(dir) : errno == EEXIST ? 0 : -errno;
        if (err < 0)
            return fail(err, dir, "cannot be made", ret_why);
    }
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return fail(-errno, dir, "cannot be opened", ret_why);
    return fd;
}

static int refuse_busy(int lock_fd, const char *dir, char **ret_why)
{
    char text[32] = "";
    ssize_t n = pread(lock_fd, text, sizeof text - 1, 0);
    long pid = n > 0 ? strtol(text, NULL, 10) : 0;
    if (pid > 0)
        *ret_why = g_strdup_printf("%s: in use by process %ld", dir, pid);
    else
        *ret_why = g_strdup_printf("%s: in use by another process", dir);
    return -EBUSY;
}

/* `*ret_fd`: the descriptor that holds the lock, or -1 if there can be none. */
static int take_lock(int dir_fd, const char *dir, bool read_only, int *ret_fd, char **ret_why)
{
    int fd = openat(dir_fd, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EROFS && read_only) {
        fd = openat(dir_fd, "lock", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT) {
            *ret_fd = -1;
            return 0;
        }
    }
    if (fd < 0)
        return fail(-errno, dir, "lock cannot be opened", ret_why);
    int err = check_private(fd, dir, "lock", S_IFREG, ret_why);
    if (err == 0 && flock(fd, (read_only ? LOCK_SH : LOCK_EX) | LOCK_NB) < 0)
        err = errno == EWOULDBLOCK ? refuse_busy(fd, dir, ret_why) : fail(-errno, dir, "lock", ret_why);
    if (err < 0) {
        close(fd);
        return err;
    }
    /* The pid only helps in a message: no matter if it cannot be written. */
    char text[32];
    int len = g_snprintf(text, sizeof text, "%d\n", getpid());
    if (ftruncate(fd, 0) == 0)
        (void)!pwrite(fd, text, (size_t)len, 0);
    *ret_fd = fd;
    return 0;
}

int lmdb_dir_open(const char *dir, bool create, bool read_only, struct lmdb_dir *ret, char **ret_why)
{
    int fd = open_directory(dir, create, ret_why);
    if (fd < 0)
        return fd;
    int err = check_private(fd, dir, "the directory", S_IFDIR, ret_why);
    int lock_fd = -1;
    if (err == 0)
        err = take_lock(fd, dir, read_only, &lock_fd, ret_why);
    if (err < 0) {
        close(fd);
        return err;
    }
    *ret = (struct lmdb_dir){.fd = fd, .lock_fd = lock_fd};
    return 0;
}

void lmdb_dir_close(struct lmdb_dir *d)
{
    if (d->lock_fd >= 0)
        close(d->lock_fd);
    close(d->fd);
}

int lmdb_dir_open_file(const struct lmdb_dir *d, const char *dir, char **ret_why)
{
    int fd = openat(d->fd, STORE_FILE, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return fail(-errno, dir, STORE_FILE " cannot be opened", ret_why);
    struct stat st;
    int err = check_private(fd, dir, STORE_FILE, S_IFREG, ret_why);
    if (err == 0 && fstat(fd, &st) < 0)
        err = fail(-errno, dir, STORE_FILE, ret_why);
    const char *fault = err == 0 ? lmdb_header_fault(fd, (uint64_t)st.st_size) : NULL;
    if (fault) {
        *ret_why = g_strdup_printf("%s: damaged: %s", dir, fault);
        err = -EUCLEAN;
    }
    if (err < 0) {
        close(fd);
        return err;
    }
    return fd;
}

static int stop_at_fault(void *arg, const void *key, size_t key_len, const char *what)
{
    *(char **)arg = g_strdup(what);
    return -EUCLEAN;
}

int lmdb_dir_check_pages(int fd, const char *dir, char **ret_why)
{
    g_autofree char *what = NULL;
    struct lmdb_scan scan = {.fault = stop_at_fault, .arg = &what};
    int err = lmdb_scan(fd, &scan);
    if (err == -EUCLEAN)
        *ret_why = g_strdup_printf("%s: damaged: %s", dir, what ? what : "the header");
    else if (err < 0)
        fail(err, dir, "cannot be read", ret_why);
    return err;
}

int lmdb_dir_publish(const struct lmdb_dir *d)
{
    if (renameat(d->fd, STORE_FILE_NEW, d->fd, STORE_FILE) < 0 || fsync(d->fd) < 0)
        return -errno;
    return 0;
}

static int allocate(int fd, uint64_t from, uint64_t to)
{
    int rc;
    do
        rc = fallocate(fd, 0, (off_t)from, (off_t)(to - from));
    while (rc < 0 && errno == EINTR);
    if (rc < 0 && (errno == EOPNOTSUPP || errno == ENOSYS)) { /* no promise of space then, but the length */
        struct stat st;
        if (fstat(fd, &st) < 0)
            return -errno;
        rc = (uint64_t)st.st_size < to ? ftruncate(fd, (off_t)to) : 0;
    }
    if (rc == 0)
        return 0;
    return errno == EDQUOT || errno == EFBIG ? -ENOSPC : -errno;
}

static int write_zeros(int fd, uint64_t from, uint64_t to)
{
    static char zeros[RESERVE_CHUNK]; /* never touched, so it is no memory */
    while (from < to) {
        ssize_t n = pwrite(fd, zeros, MIN(sizeof zeros, to - from), (off_t)from);
        if (n < 0 && errno != EINTR)
            return errno == EDQUOT || errno == EFBIG ? -ENOSPC : -errno;
        from += n > 0 ? (uint64_t)n : 0;
    }
    return 0;
}

static int extend(int fd, uint64_t from, uint64_t to)
{
    int err = allocate(fd, from, to);
    return err == 0 ? write_zeros(fd, from, to) : err;
}

int lmdb_dir_reserve(int fd, uint64_t *end, uint64_t need)
{
    if (need <= *end)
        return 0;
    uint64_t ample = (need / RESERVE_CHUNK + 1) * RESERVE_CHUNK;
    int err = extend(fd, *end, ample);
    if (err == 0) {
        *end = ample;
    } else if (err == -ENOSPC) {
        err = extend(fd, *end, need);
        if (err == 0)
            *end = need;
    }
    return err;
}
