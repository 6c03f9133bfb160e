#include "fs/journal.h"

#include <errno.h>
#include <glib.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include "fs/tree/text.h"

/* A position is (number of a line, counted from the start) << OFFSET_BITS | bytes of it already read. */
#define OFFSET_BITS 16
#define MAX_LINE ((1u << OFFSET_BITS) - 1)

struct line {
    uint64_t start; /* bytes of all lines before it */
    uint32_t len;   /* with the newline */
    char text[];
};

struct journal {
    pthread_mutex_t mutex; /* protects all below; a leaf */
    size_t max_bytes, bytes;
    uint64_t written; /* bytes of all lines ever */
    int64_t newest_ms;
    uint64_t first_line; /* number of lines[head] */
    GPtrArray *lines;    /* struct line; elements before `head` have been dropped */
    guint head;
    void (*changed)(void *arg);
    void *changed_arg;
};

struct journal *journal_new(size_t max_bytes)
{
    struct journal *j = g_new0(struct journal, 1);
    pthread_mutex_init(&j->mutex, NULL);
    j->max_bytes = max_bytes;
    j->lines = g_ptr_array_new_with_free_func(g_free);
    return j;
}

void journal_free(struct journal *j)
{
    if (!j)
        return;
    g_ptr_array_unref(j->lines);
    pthread_mutex_destroy(&j->mutex);
    g_free(j);
}

static struct line *line_new(const char *text)
{
    g_autoptr(GString) out = g_string_new(NULL);
    text_append_printable(out, text, strlen(text));
    if (out->len >= MAX_LINE) {
        g_string_truncate(out, MAX_LINE - 4);
        g_string_append(out, "...");
    }
    g_string_append_c(out, '\n');
    struct line *line = g_malloc(sizeof *line + out->len);
    line->len = (uint32_t)out->len;
    memcpy(line->text, out->str, out->len);
    return line;
}

static void drop_oldest(struct journal *j)
{
    struct line *line = g_ptr_array_index(j->lines, j->head);
    j->bytes -= line->len;
    g_free(line);
    g_ptr_array_index(j->lines, j->head) = NULL;
    j->head++;
    j->first_line++;
    if (j->head > 1024 && j->head > j->lines->len / 2) {
        g_ptr_array_remove_range(j->lines, 0, j->head);
        j->head = 0;
    }
}

static void append_line(struct journal *j, const char *text)
{
    struct line *line = line_new(text);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    pthread_mutex_lock(&j->mutex);
    j->newest_ms = now.tv_sec * 1000 + now.tv_nsec / 1000000;
    line->start = j->written;
    g_ptr_array_add(j->lines, line);
    j->bytes += line->len;
    j->written += line->len;
    while (j->bytes > j->max_bytes && j->lines->len - j->head > 1)
        drop_oldest(j);
    void (*changed)(void *arg) = j->changed;
    void *arg = j->changed_arg;
    pthread_mutex_unlock(&j->mutex);
    if (changed)
        changed(arg);
}

void journal_line(struct journal *j, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    g_autofree char *text = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    append_line(j, text);
}

/* Tells a reader at `*pos` how many lines it has missed, and moves it to the oldest line kept. A line that was read in
 * part is ended, and counts as missed. */
static size_t read_lost(struct journal *j, uint64_t *pos, char *buf, size_t len)
{
    bool torn = (*pos & MAX_LINE) != 0;
    char text[64];
    g_snprintf(text, sizeof text, "%slost %" G_GUINT64_FORMAT "\n", torn ? "\n" : "",
            j->first_line - (*pos >> OFFSET_BITS));
    size_t n = MIN(len, strlen(text));
    memcpy(buf, text, n);
    buf[n - 1] = '\n'; /* cut short or not, it is a line */
    *pos = j->first_line << OFFSET_BITS;
    return n;
}

size_t journal_read(struct journal *j, uint64_t *pos, char *buf, size_t len)
{
    size_t done = 0;
    pthread_mutex_lock(&j->mutex);
    if (len > 0 && *pos >> OFFSET_BITS < j->first_line)
        done = read_lost(j, pos, buf, len);
    while (done < len) {
        uint64_t i = (*pos >> OFFSET_BITS) - j->first_line;
        if (i >= j->lines->len - j->head)
            break;
        struct line *line = g_ptr_array_index(j->lines, j->head + i);
        size_t offset = *pos & MAX_LINE, n = MIN(len - done, line->len - offset);
        memcpy(buf + done, line->text + offset, n);
        done += n;
        if (offset + n < line->len)
            *pos += n;
        else
            *pos = ((*pos >> OFFSET_BITS) + 1) << OFFSET_BITS;
    }
    pthread_mutex_unlock(&j->mutex);
    return done;
}

struct journal_extent journal_extent(struct journal *j)
{
    pthread_mutex_lock(&j->mutex);
    struct journal_extent e = {
            .first = j->written - j->bytes, .end = j->written, .lost = j->first_line, .newest_ms = j->newest_ms};
    pthread_mutex_unlock(&j->mutex);
    return e;
}

uint64_t journal_seek(struct journal *j, uint64_t byte)
{
    pthread_mutex_lock(&j->mutex);
    guint low = j->head, high = j->lines->len; /* the first line that ends behind `byte` */
    while (low < high) {
        guint middle = low + (high - low) / 2;
        const struct line *line = g_ptr_array_index(j->lines, middle);
        if (line->start + line->len > byte)
            high = middle;
        else
            low = middle + 1;
    }
    uint64_t pos = (j->first_line + low - j->head) << OFFSET_BITS;
    if (low < j->lines->len) {
        const struct line *line = g_ptr_array_index(j->lines, low);
        pos += byte > line->start ? byte - line->start : 0;
    }
    pthread_mutex_unlock(&j->mutex);
    return pos;
}

uint64_t journal_end(struct journal *j)
{
    pthread_mutex_lock(&j->mutex);
    uint64_t end = (j->first_line + j->lines->len - j->head) << OFFSET_BITS;
    pthread_mutex_unlock(&j->mutex);
    return end;
}

void journal_observe(struct journal *j, void (*changed)(void *arg), void *arg)
{
    pthread_mutex_lock(&j->mutex);
    j->changed = changed;
    j->changed_arg = arg;
    pthread_mutex_unlock(&j->mutex);
}

void journal_error(struct journal *errors, int err, const char *path, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    g_autofree char *what = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    struct timespec now;
    struct tm utc;
    char when[32];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &utc);
    const char *name = err == 0 ? "WARN" : strerrorname_np(err);
    journal_line(errors, "%s.%03ldZ %s %s: %s", when, now.tv_nsec / 1000000, name ? name : "EUNKNOWN", path, what);
}
