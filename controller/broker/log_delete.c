/*
 * Removing a replica's directory (LogManager.asyncDelete, LocalLog.deleteEmptyDir): it is renamed, so that no crash can
 * leave half of it under a live name, then removed through the descriptor that was checked.
 */
#include "controller/broker/log_dir.h"
#include "controller/broker/log_names.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 8 /* Kafka's own directories are one deep */

static bool is_dot(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static DIR *open_listing(int fd)
{
    int copy = TEMP_FAILURE_RETRY(openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);

    if (!dir && copy >= 0)
        close(copy);
    return dir;
}

static bool is_directory(int fd, const struct dirent *e)
{
    struct stat st;

    if (e->d_type != DT_UNKNOWN)
        return e->d_type == DT_DIR;
    return fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* Calls `visit` for every sub-directory, opened. */
static int each_directory(int fd, int depth, int (*visit)(int fd, const char *name, int child, int depth))
{
    DIR *dir = open_listing(fd);
    struct dirent *e;
    int r = 0;

    if (!dir)
        return -errno;
    for (errno = 0; r == 0 && (e = readdir(dir)); errno = 0) {
        if (is_dot(e->d_name) || !is_directory(fd, e))
            continue;
        int child = log_dir_open_child(fd, e->d_name);
        r = child < 0 ? child : visit(fd, e->d_name, child, depth);
        if (child >= 0)
            close(child);
    }
    if (r == 0)
        r = -errno;
    closedir(dir);
    return r;
}

/* Before anything is touched: no mount point below, and not too deep. -EXDEV, -ELOOP. */
static int check_tree(int fd, int depth);
static int check_child(int fd, const char *name, int child, int depth)
{
    return check_tree(child, depth + 1);
}
static int check_tree(int fd, int depth)
{
    struct stat st;

    if (depth > DEPTH_MAX)
        return -ELOOP;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (st.st_nlink == 2) /* no sub-directory, on file systems that count them */
        return 0;
    return each_directory(fd, depth, check_child);
}

static int remove_content(int fd, int depth);

static int remove_directory(int fd, const char *name, int child, int depth)
{
    int r = remove_content(child, depth + 1);

    if (r == 0 && unlinkat(fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        r = -errno;
    return r;
}

/* Everything that is no directory goes by its name and is never opened. */
static int remove_files(int fd, bool *ret_directories)
{
    DIR *dir = open_listing(fd);
    struct dirent *e;
    int r = 0;

    if (!dir)
        return -errno;
    *ret_directories = false;
    for (errno = 0; r == 0 && (e = readdir(dir)); errno = 0) {
        if (is_dot(e->d_name))
            continue;
        if (is_directory(fd, e))
            *ret_directories = true;
        else if (unlinkat(fd, e->d_name, 0) < 0 && errno != ENOENT)
            r = -errno;
    }
    if (r == 0)
        r = -errno;
    closedir(dir);
    return r;
}

static int remove_content(int fd, int depth)
{
    bool directories;
    int r = depth > DEPTH_MAX ? -ELOOP : remove_files(fd, &directories);

    return r == 0 && directories ? each_directory(fd, depth, remove_directory) : r;
}

/* Most replicas hold what log_create() made and no more: then no listing is needed. */
static bool remove_plain(struct log_dir *d, const char *name, int fd)
{
    for (int i = 0; log_file_names[i]; i++)
        (void)unlinkat(fd, log_file_names[i], 0);
    return unlinkat(d->fd, name, AT_REMOVEDIR) == 0;
}

/* `fd` is the directory that lies under `name` now. If somebody has put something else there, that stays. */
static int remove_renamed(struct log_dir *d, const char *name, int fd)
{
    if (remove_plain(d, name, fd))
        return 0;
    /* entries may be skipped while a big directory shrinks: again until nothing is left */
    for (int i = 0; i < 1000; i++) {
        int r = remove_content(fd, 0);
        if (r < 0)
            return r;
        if (unlinkat(d->fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
            return 0;
        if (errno != ENOTEMPTY && errno != EEXIST)
            return -errno;
    }
    return -ENOTEMPTY;
}

static bool is_same(struct log_dir *d, const char *name, int fd)
{
    struct stat a, b;

    return fstatat(d->fd, name, &a, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

int64_t log_due_ms(int64_t now_ms, int64_t delay_ms)
{
    return delay_ms > INT64_MAX - now_ms ? INT64_MAX : now_ms + delay_ms;
}

/* Renames and removes; after a failure the directory has its own name again. */
static int delete_checked(struct log_dir *d, const struct log_task *task, const char *name, int fd, int64_t now_ms,
        int64_t delay_ms, bool *ret_fatal)
{
    char deleted[NAME_MAX + 1];
    int r;

    log_name_unique(task->topic->name, task->partition, "delete", deleted);
    if (renameat2(d->fd, name, d->fd, deleted, RENAME_NOREPLACE) < 0) {
        /* Kafka takes the log dir offline when it cannot rename */
        r = errno == ENOENT ? 0 : -errno;
        *ret_fatal = r == -EBUSY || log_dir_error_is_fatal(r);
        return r;
    }
    if (!is_same(d, deleted, fd)) {
        (void)renameat2(d->fd, deleted, d->fd, name, RENAME_NOREPLACE);
        return -ESTALE;
    }
    if (delay_ms > 0) {
        struct doomed_log doomed = {.name = g_strdup(deleted), .due_ms = log_due_ms(now_ms, delay_ms)};
        g_array_append_val(d->doomed, doomed);
        return 0;
    }
    r = remove_renamed(d, deleted, fd);
    if (r < 0) {
        *ret_fatal = r == -EIO || r == -EROFS || r == -ENODEV || r == -ENXIO;
        (void)renameat2(d->fd, deleted, d->fd, name, RENAME_NOREPLACE);
    }
    return r;
}

/* Neither a topic id nor a segment, but other things: somebody else's directory under a replica's name. */
static bool is_foreign(int fd)
{
    bool any = false, data, empty = true;
    DIR *dir;
    struct dirent *e;

    if (log_look_at_segments(fd, &any, &data) < 0 || any || !(dir = open_listing(fd)))
        return false;
    while (empty && (e = readdir(dir)))
        empty = is_dot(e->d_name) || strcmp(e->d_name, "partition.metadata") == 0;
    closedir(dir);
    return !empty;
}

static int delete_directory(struct log_dir *d, struct log_task *task, const char *name, int fd, int64_t now_ms,
        int64_t delay_ms, bool *ret_fatal)
{
    char id[23] = "";
    int r = 0;

    if (!task->future)
        r = log_read_topic_id(fd, id);
    if (r == -EINVAL) /* not readable as an id: then it says nothing against this topic */
        r = 0;
    if (r < 0)
        return r;
    if ((*id && *task->topic->id && strcmp(id, task->topic->id) != 0) ||
            (*id == '\0' && !task->future && is_foreign(fd))) {
        r = log_set_aside(d, name, task->topic->name, task->partition);
        task->aside = r == 0;
        return r;
    }
    r = check_tree(fd, 0);
    if (r < 0)
        return r;
    return delete_checked(d, task, name, fd, now_ms, delay_ms, ret_fatal);
}

/* The name of the directory: the replica's own, or that of its `-future` one (NULL: none is known). */
static const char *name_of(struct log_dir *d, const struct log_task *task, char buf[NAME_MAX + 1])
{
    if (log_name_current(task->topic->name, task->partition, buf) < 0)
        return NULL;
    return task->future ? g_hash_table_lookup(d->futures, buf) : buf;
}

int log_delete(struct log_dir *d, struct log_task *task, int64_t now_ms, int64_t delay_ms, bool *ret_fatal)
{
    char buf[NAME_MAX + 1];
    const char *name = name_of(d, task, buf);
    int fd, r;

    *ret_fatal = false;
    if (!name)
        return 0;
    fd = log_dir_open_child(d->fd, name);
    if (fd == -ENOENT)
        return 0;
    if (fd == -ELOOP) /* a link: it goes, what it points to stays */
        return unlinkat(d->fd, name, 0) < 0 ? -errno : 0;
    if (fd == -ENOTDIR) /* a file of that name is not a replica */
        return 0;
    if (fd < 0) {
        /* a mount point cannot be renamed: to Kafka the log dir has failed */
        *ret_fatal = fd == -EXDEV || log_dir_error_is_fatal(fd);
        return fd == -EXDEV ? -EBUSY : fd;
    }
    r = delete_directory(d, task, name, fd, now_ms, delay_ms, ret_fatal);
    close(fd);
    if (r == 0 && task->future)
        g_hash_table_remove(d->futures, buf);
    return r;
}

/* Renamed before: what is left of it is said, and is the next start's. */
static void remove_doomed(struct log_dir *d, const struct doomed_log *doomed,
        void (*warn)(void *arg, const char *entry, const char *why), void *arg)
{
    int fd = log_dir_open_child(d->fd, doomed->name);
    int r = fd < 0 ? fd : check_tree(fd, 0);

    if (r == 0)
        r = remove_renamed(d, doomed->name, fd);
    if (fd >= 0)
        close(fd);
    if (r < 0 && r != -ENOENT)
        warn(arg, doomed->name, g_strerror(-r));
    log_dir_alive(d);
}

int64_t log_remove_doomed(
        struct log_dir *d, int64_t now_ms, void (*warn)(void *arg, const char *entry, const char *why), void *arg)
{
    struct doomed_log *all = (struct doomed_log *)(void *)d->doomed->data;
    int64_t next = -1;
    guint kept = 0;

    for (guint i = 0; i < d->doomed->len; i++) {
        if (all[i].due_ms > now_ms) {
            next = next < 0 ? all[i].due_ms : MIN(next, all[i].due_ms);
            all[kept++] = all[i];
            continue;
        }
        remove_doomed(d, &all[i], warn, arg);
        g_free(all[i].name);
    }
    if (kept < d->doomed->len)
        (void)fsync(d->fd); /* durability of the renames was promised, not of this */
    g_array_set_size(d->doomed, kept);
    return next;
}
