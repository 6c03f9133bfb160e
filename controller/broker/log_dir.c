#include "controller/broker/log_dir.h"
#include "controller/broker/log_names.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define READ_MAX (64 << 20)
#define OPEN_ATTEMPTS 100

static int fail(int err, char **ret_why, const char *path, const char *what)
{
    if (ret_why)
        *ret_why = g_strdup_printf("%s: %s: %s", path, what, g_strerror(err));
    return -err;
}

/* A directory that is moved out of `fd` while it is opened gives EXDEV as a mount point does. */
static bool is_mount_point(int fd, const char *name)
{
    struct statx x;

    if (statx(fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0, &x) < 0)
        return false;
    return !(x.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) || x.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

int log_dir_open_child(int fd, const char *name)
{
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK,
            .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV};
    struct stat parent, child;
    int r, attempts = 0;

    do {
        r = (int)TEMP_FAILURE_RETRY(syscall(SYS_openat2, fd, name, &how, sizeof how));
        if (r >= 0)
            return r;
    } while (errno == EXDEV && !is_mount_point(fd, name) && ++attempts < OPEN_ATTEMPTS);
    if (attempts == OPEN_ATTEMPTS)
        return -EAGAIN;
    if (errno == ENOTDIR) /* a link, or another kind of file? */
        return fstatat(fd, name, &child, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(child.st_mode) ? -ELOOP : -ENOTDIR;
    if (errno != ENOSYS && errno != EPERM)
        return -errno;
    /* a sandbox without openat2(): the same by hand, but for bind mounts of the same file system */
    r = TEMP_FAILURE_RETRY(openat(fd, name, (int)how.flags));
    if (r < 0)
        return -errno;
    if (fstat(fd, &parent) < 0 || fstat(r, &child) < 0 || parent.st_dev != child.st_dev) {
        close(r);
        return -EXDEV;
    }
    return r;
}

bool log_dir_error_is_fatal(int err)
{
    switch (-err) {
    case EMFILE: /* what this process is short of says nothing about a disk */
    case ENFILE:
    case ENOMEM:
    case EINTR:
    case EAGAIN: /* somebody moves it about */
    case ELOOP:  /* an entry that is not what it should be */
    case EXDEV:
    case ENOTDIR:
    case EISDIR:
    case EEXIST:
    case ENOTEMPTY:
    case ENAMETOOLONG:
    case EINVAL:
        return false;
    default:
        return true;
    }
}

static int fsync_parent(const char *path)
{
    g_autofree char *parent = g_path_get_dirname(path);
    int fd = TEMP_FAILURE_RETRY(open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    int r;

    if (fd < 0)
        return -errno;
    r = TEMP_FAILURE_RETRY(fsync(fd)) < 0 ? -errno : 0;
    close(fd);
    return r;
}

/* The directory with its parents; each new one is durable. */
static int make_directories(const char *path)
{
    struct stat st;
    int r;

    if (stat(path, &st) == 0)
        return 0;
    if (errno != ENOENT)
        return -errno;
    g_autofree char *parent = g_path_get_dirname(path);
    r = make_directories(parent);
    if (r < 0)
        return r;
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return -errno;
    return fsync_parent(path);
}

int log_dir_open(const char *path, bool use_topic_ids, struct log_dir **ret, char **ret_why)
{
    struct log_dir *d;
    struct stat st;
    int r = make_directories(path);

    if (r < 0)
        return fail(-r, ret_why, path, "cannot be made");
    int fd = TEMP_FAILURE_RETRY(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0)
        return fail(errno, ret_why, path, "cannot be opened");
    if (fstat(fd, &st) < 0) {
        r = fail(errno, ret_why, path, "cannot be looked at");
        close(fd);
        return r;
    }
    d = g_new0(struct log_dir, 1);
    d->path = g_strdup(path);
    d->fd = fd;
    d->lock_fd = -1;
    d->dev = st.st_dev;
    d->ino = st.st_ino;
    d->use_topic_ids = use_topic_ids;
    d->futures = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    d->doomed = g_array_new(FALSE, FALSE, sizeof(struct doomed_log));
    for (int i = 0; i < CHECKPOINT_N; i++)
        d->offsets[i] = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    *ret = d;
    return 0;
}

/*
 * Java's FileLock is fcntl(F_SETLK) for writing: a lock for reading keeps it out, and is kept out by it. Against other
 * brokers here, which lock for reading too, flock() does the same. So nothing is open for writing while the broker
 * runs, and its disk can be remounted read-only. Where flock() is made of fcntl() (NFS) that takes a descriptor for
 * writing.
 */
static int lock_file(int fd, short type, bool with_flock)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET};

    if (fcntl(fd, F_OFD_SETLK, &lock) < 0)
        return errno == EACCES ? -EAGAIN : -errno;
    return with_flock && TEMP_FAILURE_RETRY(flock(fd, LOCK_EX | LOCK_NB)) < 0 ? -errno : 0;
}

static int open_lock_file(const struct log_dir *d, int access)
{
    int fd = TEMP_FAILURE_RETRY(openat(d->fd, ".lock", access | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0644));

    return fd < 0 ? -errno : fd;
}

int log_dir_lock(struct log_dir *d, char **ret_why)
{
    int fd = open_lock_file(d, O_RDONLY);
    int r = fd < 0 ? fd : lock_file(fd, F_RDLCK, true);

    if (fd >= 0 && r == -EBADF) {
        close(fd);
        fd = open_lock_file(d, O_RDWR);
        r = fd < 0 ? fd : lock_file(fd, F_WRLCK, false);
    }
    if (r == 0) {
        d->lock_fd = fd;
        return 0;
    }
    if (fd >= 0)
        close(fd);
    if (r != -EAGAIN)
        return fail(-r, ret_why, d->path, "the lock file .lock cannot be locked");
    if (ret_why)
        *ret_why = g_strdup_printf("%s: its lock is held: a running broker uses this log dir", d->path);
    return -EBUSY;
}

int log_dir_check(const struct log_dir *d, char **ret_why)
{
    struct stat st;

    if (stat(d->path, &st) < 0) /* a failure that is not the disk's says nothing; the work itself will */
        return errno == ENOMEM ? 0 : fail(errno, ret_why, d->path, "is gone");
    if (st.st_dev == d->dev && st.st_ino == d->ino)
        return 0;
    if (ret_why)
        *ret_why = g_strdup_printf("%s: is another directory now than at the start (unmounted, or replaced)", d->path);
    return -ESTALE;
}

/* A symbolic link to a directory is a log to Kafka; here it cannot be one, since no link is followed. */
static bool is_directory(const struct log_dir *d, const struct dirent *e, bool *ret_link)
{
    struct stat st;

    *ret_link = false;
    if (e->d_type == DT_DIR)
        return true;
    if (e->d_type != DT_UNKNOWN && e->d_type != DT_LNK)
        return false;
    if (fstatat(d->fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return false;
    if (!S_ISLNK(st.st_mode))
        return S_ISDIR(st.st_mode);
    *ret_link = true;
    return fstatat(d->fd, e->d_name, &st, 0) == 0 && S_ISDIR(st.st_mode);
}

int log_dir_check_names(const struct log_dir *d, char **ret_why)
{
    int fd = TEMP_FAILURE_RETRY(openat(d->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const char *what = NULL;
    struct dirent *e;
    char topic[NAME_MAX + 1];
    int32_t partition;
    bool link;

    if (!dir)
        return fail(errno, ret_why, d->path, "cannot be read");
    for (errno = 0; !what && (e = readdir(dir)); errno = 0) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || !is_directory(d, e, &link))
            continue;
        if (link)
            what = "is a symbolic link to a directory; a replica must be a directory itself";
        else if (log_name_parse(e->d_name, topic, &partition) == LOG_UNKNOWN)
            what = "is no directory of Kafka's (<topic>-<partition>); it does not belong into a log dir";
        if (what && ret_why)
            *ret_why = g_strdup_printf("%s/%s %s", d->path, e->d_name, what);
    }
    int err = errno;
    closedir(dir);
    if (what)
        return -EINVAL;
    return err ? fail(err, ret_why, d->path, "cannot be read") : 0;
}

bool log_dir_has(const struct log_dir *d, const char *name)
{
    struct stat st;

    return fstatat(d->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT;
}

void log_dir_close(struct log_dir *d)
{
    if (!d)
        return;
    if (d->lock_fd >= 0)
        close(d->lock_fd);
    close(d->fd);
    g_hash_table_unref(d->futures);
    for (guint i = 0; i < d->doomed->len; i++)
        g_free(g_array_index(d->doomed, struct doomed_log, i).name);
    g_array_unref(d->doomed);
    for (int i = 0; i < CHECKPOINT_N; i++)
        g_hash_table_unref(d->offsets[i]);
    g_free(d->path);
    g_free(d);
}

int log_dir_write_all(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, text, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        text += n;
        len -= (size_t)n;
    }
    return 0;
}

int log_dir_write_file(struct log_dir *d, const char *name, const char *text, size_t len)
{
    g_autofree char *tmp = g_strdup_printf("%s.tmp", name);
    int fd, r;

    if (unlinkat(d->fd, tmp, 0) < 0 && errno != ENOENT) /* whatever it is, it is not written through */
        return -errno;
    fd = TEMP_FAILURE_RETRY(openat(d->fd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
    if (fd < 0)
        return -errno;
    r = log_dir_write_all(fd, text, len);
    if (r == 0 && TEMP_FAILURE_RETRY(fsync(fd)) < 0)
        r = -errno;
    if (close(fd) < 0 && errno != EINTR && r == 0)
        r = -errno;
    if (r == 0 && renameat(d->fd, tmp, d->fd, name) < 0)
        r = -errno;
    if (r < 0)
        (void)unlinkat(d->fd, tmp, 0);
    return r;
}

int log_dir_read_file(int dir_fd, const char *name, GString **ret)
{
    int fd = TEMP_FAILURE_RETRY(openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    struct stat st;
    int r = 0;

    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0)
        r = -errno;
    else if (!S_ISREG(st.st_mode))
        r = -EINVAL;
    else if (st.st_size > READ_MAX)
        r = -EFBIG;
    g_autoptr(GString) text = g_string_sized_new(r == 0 ? (gsize)st.st_size + 1 : 1);
    while (r == 0 && text->len <= READ_MAX) {
        char buf[8192];
        ssize_t n = read(fd, buf, sizeof buf);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            r = n < 0 ? -errno : 0;
            break;
        }
        g_string_append_len(text, buf, n);
    }
    close(fd);
    if (r < 0)
        return r;
    *ret = g_steal_pointer(&text);
    return 0;
}

void log_dir_alive(struct log_dir *d)
{
    if (d->alive_ms)
        atomic_store_explicit(d->alive_ms, g_get_monotonic_time() / 1000, memory_order_relaxed);
}
