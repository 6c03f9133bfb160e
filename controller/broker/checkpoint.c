/* Kafka's offset checkpoint files (CheckpointFile, OffsetCheckpointFile): version, count, `topic partition offset`. No
 * data is written here, so offsets stay what they were found as: 0 for all but the logs of a real Kafka. */
#include "controller/broker/log_dir.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static const char *const file_names[CHECKPOINT_N] = {
        [CHECKPOINT_RECOVERY_POINT] = "recovery-point-offset-checkpoint",
        [CHECKPOINT_LOG_START] = "log-start-offset-checkpoint",
        [CHECKPOINT_HIGH_WATERMARK] = "replication-offset-checkpoint",
        [CHECKPOINT_CLEANER] = "cleaner-offset-checkpoint",
};

static bool parse_number(const char *text, int64_t *ret)
{
    char *end;

    errno = 0;
    *ret = g_ascii_strtoll(text, &end, 10);
    return *text != '\0' && *end == '\0' && errno == 0;
}

static bool parse_entry(const char *line, GHashTable *ret)
{
    g_auto(GStrv) words = g_strsplit(line, " ", -1);
    int64_t partition, offset;

    if (g_strv_length(words) != 3 || !parse_number(words[1], &partition) || !parse_number(words[2], &offset))
        return false;
    if (offset != 0)
        g_hash_table_replace(ret, g_strdup_printf("%s %" G_GINT64_FORMAT, words[0], partition), g_strdup(words[2]));
    return true;
}

/* NULL, or what is wrong. */
static const char *parse(char *text, GHashTable *ret)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    guint n = g_strv_length(lines);
    int64_t version, count;

    if (n > 0 && *lines[n - 1] == '\0') /* the end of the last line */
        n--;
    if (n == 0)
        return NULL;
    if (!parse_number(lines[0], &version) || version != 0)
        return "unknown version";
    if (n == 1)
        return NULL;
    if (!parse_number(lines[1], &count) || count != (int64_t)n - 2)
        return "the number of entries is not what it says";
    for (guint i = 2; i < n; i++)
        if (!parse_entry(lines[i], ret))
            return "an entry is no `topic partition offset`";
    return NULL;
}

static int read_one(
        struct log_dir *d, int which, void (*warn)(void *arg, const char *entry, const char *why), void *arg)
{
    GString *text;
    int r = log_dir_read_file(d->fd, file_names[which], &text);

    if (r == -ENOENT) {
        int fd = TEMP_FAILURE_RETRY(
                openat(d->fd, file_names[which], O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
        if (fd < 0)
            return -errno;
        close(fd);
        return 0;
    }
    if (r < 0 && log_dir_error_is_fatal(r))
        return r;
    const char *why = r < 0 ? g_strerror(-r) : parse(text->str, d->offsets[which]);
    if (why) {
        warn(arg, file_names[which], why);
        g_hash_table_remove_all(d->offsets[which]);
    }
    if (r == 0)
        g_string_free(text, TRUE);
    return 0;
}

int checkpoints_read(struct log_dir *d, void (*warn)(void *arg, const char *entry, const char *why), void *arg)
{
    int r = 0;

    for (int i = 0; i < CHECKPOINT_N && r == 0; i++)
        r = read_one(d, i, warn, arg);
    return r;
}

/* Recovery points and high watermarks of all logs; of the others only what is not 0. */
static bool lists_all(enum checkpoint which)
{
    return which == CHECKPOINT_RECOVERY_POINT || which == CHECKPOINT_HIGH_WATERMARK;
}

int checkpoint_write(struct log_dir *d, enum checkpoint which, const GPtrArray *logs)
{
    g_autoptr(GString) entries = g_string_new(NULL);
    g_autoptr(GString) text = g_string_new(NULL);
    guint n = 0;

    for (guint i = 0; i < logs->len; i++) {
        const char *name = g_ptr_array_index(logs, i);
        const char *offset = g_hash_table_lookup(d->offsets[which], name);
        if (!offset && !lists_all(which))
            continue;
        g_string_append(entries, name);
        g_string_append_c(entries, ' ');
        g_string_append(entries, offset ? offset : "0");
        g_string_append_c(entries, '\n');
        n++;
    }
    g_string_append_printf(text, "0\n%u\n", n);
    g_string_append_len(text, entries->str, (gssize)entries->len);
    return log_dir_write_file(d, file_names[which], text->str, text->len);
}

bool checkpoints_forget(struct log_dir *d, const char *topic, int32_t partition)
{
    g_autofree char *name = g_strdup_printf("%s %d", topic, partition);
    bool any = false;

    for (int i = 0; i < CHECKPOINT_N; i++)
        any = g_hash_table_remove(d->offsets[i], name) || any;
    return any;
}

int clean_shutdown_write(struct log_dir *d)
{
    int fd = TEMP_FAILURE_RETRY(
            openat(d->fd, ".kafka_cleanshutdown", O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644));

    if (fd < 0)
        return -errno;
    close(fd);
    return TEMP_FAILURE_RETRY(fsync(d->fd)) < 0 ? -errno : 0;
}

int clean_shutdown_remove(struct log_dir *d)
{
    return unlinkat(d->fd, ".kafka_cleanshutdown", 0) < 0 && errno != ENOENT ? -errno : 0;
}
