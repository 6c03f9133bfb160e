/* Making a replica's directory: what a broker of Kafka 3.x leaves of an empty replica that was closed in order. */
#include "controller/broker/log_dir.h"
#include "controller/broker/log_names.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STRAY_ATTEMPTS 3

int log_set_aside(struct log_dir *d, const char *name, const char *topic, int32_t partition)
{
    char stray[NAME_MAX + 1];

    log_name_unique(topic, partition, "stray", stray);
    return renameat2(d->fd, name, d->fd, stray, RENAME_NOREPLACE) < 0 ? -errno : 0;
}

/* A file that is there already stays as it is, whatever it is. */
static int make_file(int fd, const char *name, const char *text)
{
    int file = TEMP_FAILURE_RETRY(openat(fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
    int r;

    if (file < 0)
        return errno == EEXIST ? 0 : -errno;
    r = log_dir_write_all(file, text, strlen(text));
    if (close(file) < 0 && errno != EINTR && r == 0)
        r = -errno;
    return r;
}

/* Last of all, so that a directory without it is known as torn. */
static int make_metadata(int fd, const char *topic_id)
{
    char text[64];
    struct stat st;

    if (*topic_id == '\0')
        return 0;
    if (fstatat(fd, "partition.metadata", &st, AT_SYMLINK_NOFOLLOW) == 0 && (!S_ISREG(st.st_mode) || st.st_size == 0) &&
            unlinkat(fd, "partition.metadata", 0) < 0)
        return -errno;
    g_snprintf(text, sizeof text, "version: 0\ntopic_id: %s", topic_id);
    return make_file(fd, "partition.metadata", text);
}

static const struct {
    const char *name, *text;
} files[] = {
        {"00000000000000000000.log", ""},
        {"00000000000000000000.index", ""}, /* Kafka extends both to their full size when it opens them */
        {"00000000000000000000.timeindex", ""},
        {"leader-epoch-checkpoint", "0\n0\n"},
};

const char *const log_file_names[] = {"00000000000000000000.log", "00000000000000000000.index",
        "00000000000000000000.timeindex", "leader-epoch-checkpoint", "partition.metadata", NULL};

static int fill(int fd, const char *topic_id)
{
    int r = 0;

    for (size_t i = 0; i < G_N_ELEMENTS(files) && r == 0; i++)
        r = make_file(fd, files[i].name, files[i].text);
    return r < 0 ? r : make_metadata(fd, topic_id);
}

/* The directory exists: it is completed if it may be this replica's. -ESTALE: it was another topic's and has been set
 * aside. */
static int complete(struct log_dir *d, struct log_task *task, const char *name, const char *topic_id)
{
    char id[23];
    int fd = log_dir_open_child(d->fd, name);
    int r;

    if (fd < 0)
        return fd;
    r = log_read_topic_id(fd, id);
    if (r == 0 && *id && *topic_id && strcmp(id, topic_id) != 0) {
        r = log_set_aside(d, name, task->topic->name, task->partition);
        close(fd);
        task->aside = r == 0;
        return r < 0 ? r : -ESTALE;
    }
    if (r == 0)
        r = fill(fd, topic_id);
    close(fd);
    return r;
}

/* Takes back a directory that could not be filled, or another dir that is tried next would be the second to have it. */
static void take_back(struct log_dir *d, const char *name, int fd)
{
    for (int i = 0; fd >= 0 && log_file_names[i]; i++)
        (void)unlinkat(fd, log_file_names[i], 0);
    (void)unlinkat(d->fd, name, AT_REMOVEDIR);
}

static int create(struct log_dir *d, const char *name, const char *topic_id)
{
    int fd, r;

    if (mkdirat(d->fd, name, 0755) < 0)
        return -errno;
    fd = log_dir_open_child(d->fd, name);
    r = fd < 0 ? fd : fill(fd, topic_id);
    if (r < 0)
        take_back(d, name, fd);
    if (fd >= 0)
        close(fd);
    return r;
}

int log_create(struct log_dir *d, struct log_task *task)
{
    const char *topic_id = d->use_topic_ids ? task->topic->id : "";
    char name[NAME_MAX + 1];
    int r = log_name_current(task->topic->name, task->partition, name);

    for (int i = 0; r == 0 && i < STRAY_ATTEMPTS; i++) {
        r = create(d, name, topic_id);
        if (r != -EEXIST)
            return r;
        r = complete(d, task, name, topic_id);
        if (r != -ESTALE)
            return r;
        r = 0;
    }
    return r < 0 ? r : -EEXIST;
}
