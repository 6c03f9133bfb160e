/* What lies in a log dir at the start (LogManager.loadLogs, PartitionMetadataFile). */
#include "controller/broker/log_dir.h"
#include "controller/broker/log_names.h"
#include "controller/json/codec.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Two lines, "version: 0" and "topic_id: <22 characters>". An empty file is a torn one: no id. */
static int parse_topic_id(const char *text, char ret[23])
{
    static const char head[] = "version: 0\ntopic_id: ";
    const char *id = text + sizeof head - 1;

    if (*text == '\0') {
        ret[0] = '\0';
        return 0;
    }
    if (strncmp(text, head, sizeof head - 1) != 0)
        return -EINVAL;
    size_t len = strcspn(id, "\r\n");
    g_autofree char *copy = g_strndup(id, len);
    if (len != 22 || !uuid_valid(copy) || strcmp(copy, "AAAAAAAAAAAAAAAAAAAAAA") == 0 ||
            strspn(id + len, "\r\n") != strlen(id + len))
        return -EINVAL;
    strcpy(ret, copy);
    return 0;
}

int log_read_topic_id(int fd, char ret[23])
{
    static const char name[] = "partition.metadata";
    char text[128];
    struct stat st;

    bool absent = fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0;

    if (absent && errno != ENOENT)
        return -errno;
    if (absent || (S_ISREG(st.st_mode) && st.st_size == 0)) {
        ret[0] = '\0';
        return 0;
    }
    if (!S_ISREG(st.st_mode) || (size_t)st.st_size >= sizeof text) /* a pipe or a device is not even opened */
        return S_ISLNK(st.st_mode) ? -ELOOP : -EINVAL;
    int file = TEMP_FAILURE_RETRY(openat(fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (file < 0)
        return -errno;
    ssize_t n = TEMP_FAILURE_RETRY(read(file, text, sizeof text - 1));
    int err = errno;
    close(file);
    if (n < 0)
        return -err;
    text[n] = '\0';
    return strlen(text) == (size_t)n ? parse_topic_id(text, ret) : -EINVAL;
}

int log_look_at_segments(int fd, bool *ret_any, bool *ret_data)
{
    int copy = TEMP_FAILURE_RETRY(openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    struct dirent *e;
    struct stat st;

    if (!dir)
        return -errno;
    for (errno = 0; (e = readdir(dir)); errno = 0) {
        if (!g_str_has_suffix(e->d_name, ".log") || fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        *ret_any = true;
        *ret_data = *ret_data || st.st_size > 0;
    }
    int err = errno;
    closedir(dir);
    return -err;
}

/* A power cut may leave a directory without its files, or with empty ones: the replica has to be made again. */
static int load_current(struct log_dir *d, const char *name, struct found_log *log)
{
    int fd = log_dir_open_child(d->fd, name);
    bool any = false, data = false;
    int r;

    if (fd < 0)
        return fd;
    if (!d->use_topic_ids) {
        /* as Kafka does it: without topic ids the file is removed */
        r = unlinkat(fd, "partition.metadata", 0) < 0 && errno != ENOENT ? -errno : 0;
    } else {
        r = log_read_topic_id(fd, log->topic_id);
    }
    if (r == 0 && *log->topic_id == '\0') {
        r = log_look_at_segments(fd, &any, &data);
        log->torn = r == 0 && (!any || (d->use_topic_ids && !data));
    }
    close(fd);
    return r;
}

static int load_entry(struct log_dir *d, const char *name, int64_t due_ms, GArray *found)
{
    struct doomed_log doomed = {.due_ms = due_ms};
    struct found_log log = {0};
    char topic[NAME_MAX + 1];
    int r = 0;

    switch (log_name_parse(name, topic, &log.partition)) {
    case LOG_DELETED:
        doomed.name = g_strdup(name);
        g_array_append_val(d->doomed, doomed);
        return 0;
    case LOG_FUTURE:
        g_hash_table_replace(d->futures, g_strdup_printf("%s-%d", topic, log.partition), g_strdup(name));
        log.future = true;
        break;
    case LOG_CURRENT:
        r = load_current(d, name, &log);
        break;
    case LOG_STRAY:
    case LOG_SKIPPED:
        return 0;
    case LOG_UNKNOWN:
        return -EINVAL;
    }
    if (r < 0)
        return r;
    log.topic = g_strdup(topic);
    g_array_append_val(found, log);
    return 0;
}

static bool is_directory(const struct log_dir *d, const struct dirent *e)
{
    struct stat st;

    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
        return false;
    if (e->d_type != DT_UNKNOWN)
        return e->d_type == DT_DIR;
    return fstatat(d->fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static int load_entries(struct log_dir *d, int64_t due_ms, GArray *found, char **ret_why)
{
    int fd = TEMP_FAILURE_RETRY(openat(d->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *e;
    int r = 0;

    if (!dir) {
        r = -errno;
        *ret_why = g_strdup_printf("%s: cannot be read: %s", d->path, g_strerror(-r));
        return r;
    }
    for (errno = 0; r == 0 && (e = readdir(dir)); errno = 0) {
        if (!is_directory(d, e))
            continue;
        r = load_entry(d, e->d_name, due_ms, found);
        log_dir_alive(d);
        if (r < 0)
            *ret_why = g_strdup_printf("%s/%s: cannot be loaded: %s", d->path, e->d_name, g_strerror(-r));
    }
    if (r == 0 && errno) {
        r = -errno;
        *ret_why = g_strdup_printf("%s: cannot be read: %s", d->path, g_strerror(-r));
    }
    closedir(dir);
    return r;
}

int log_dir_load(struct log_dir *d, int64_t due_ms, GArray *found,
        void (*warn)(void *arg, const char *entry, const char *why), void *arg, char **ret_why)
{
    /* before anything else, so that a crash while loading does not look clean (KAFKA-10471) */
    int r = clean_shutdown_remove(d);

    if (r == 0)
        r = checkpoints_read(d, warn, arg);
    if (r < 0) {
        *ret_why = g_strdup_printf("%s: its checkpoints cannot be read: %s", d->path, g_strerror(-r));
        return r;
    }
    return load_entries(d, due_ms, found, ret_why);
}

void found_logs_free(GArray *found)
{
    if (!found)
        return;
    for (guint i = 0; i < found->len; i++)
        g_free(g_array_index(found, struct found_log, i).topic);
    g_array_unref(found);
}
