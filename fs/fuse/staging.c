#include "fs/fuse/staging.h"

#include <errno.h>
#include <string.h>

struct staging {
    struct staging_budget *budget;
    size_t max;
    GByteArray *content;
    size_t reserved;    /* what the budget has been charged */
    size_t write_end;   /* end of the last write */
    bool uncut;         /* a document ends there, and something follows */
    struct judge *json; /* has been fed a prefix of the content; NULL: to be made anew */
    /* to take the last change back */
    GByteArray *undo_bytes; /* what stood at undo_offset */
    size_t undo_offset, undo_len;
};

struct staging *staging_new(struct staging_budget *budget, size_t max)
{
    struct staging *s = g_new0(struct staging, 1);
    s->budget = budget;
    s->max = max;
    s->content = g_byte_array_new();
    s->undo_bytes = g_byte_array_new();
    return s;
}

void staging_free(struct staging *s)
{
    if (!s)
        return;
    atomic_fetch_sub(&s->budget->used, s->reserved);
    g_byte_array_unref(s->content);
    g_byte_array_unref(s->undo_bytes);
    judge_free(s->json);
    g_free(s);
}

/* Charges the budget for a content of `len` bytes. */
static int reserve(struct staging *s, size_t len)
{
    if (len > s->max)
        return -EFBIG;
    if (len <= s->reserved)
        return 0;
    size_t more = len - s->reserved;
    if (atomic_fetch_add(&s->budget->used, more) + more > s->budget->max) {
        atomic_fetch_sub(&s->budget->used, more);
        return -ENOSPC;
    }
    s->reserved = len;
    return 0;
}

/* The parser cannot go back: what it has been fed must not change. */
static void changed_from(struct staging *s, size_t offset)
{
    if (s->json && offset < judge_fed(s->json)) {
        judge_free(s->json);
        s->json = NULL;
    }
}

static void remember(struct staging *s, size_t offset, size_t len)
{
    s->undo_len = s->content->len;
    s->undo_offset = MIN(offset, s->content->len);
    g_byte_array_set_size(s->undo_bytes, 0);
    size_t rest = s->content->len - s->undo_offset;
    if (rest > 0)
        g_byte_array_append(s->undo_bytes, s->content->data + s->undo_offset, (guint)MIN(len, rest));
}

static void resize(struct staging *s, size_t len)
{
    size_t old = s->content->len;
    g_byte_array_set_size(s->content, (guint)len);
    if (len > old)
        memset(s->content->data + old, 0, len - old);
}

int staging_set(struct staging *s, const void *data, size_t len)
{
    int rc = reserve(s, len);
    if (rc < 0)
        return rc;
    changed_from(s, 0);
    g_byte_array_set_size(s->content, 0);
    g_byte_array_append(s->content, data, (guint)len);
    s->write_end = len;
    remember(s, len, 0);
    return 0;
}

int staging_write(struct staging *s, size_t offset, const void *data, size_t len)
{
    if (offset > s->max || len > s->max - offset)
        return -EFBIG;
    int rc = reserve(s, MAX(offset + len, s->content->len));
    if (rc < 0)
        return rc;
    remember(s, offset, len);
    changed_from(s, s->undo_offset);
    if (offset + len > s->content->len)
        resize(s, offset + len);
    if (len > 0)
        memcpy(s->content->data + offset, data, len);
    s->write_end = offset + len;
    return 0;
}

int staging_truncate(struct staging *s, size_t len)
{
    int rc = reserve(s, len);
    if (rc < 0)
        return rc;
    remember(s, len, s->max);
    changed_from(s, s->undo_offset);
    resize(s, len);
    s->write_end = len;
    return 0;
}

void staging_undo(struct staging *s)
{
    changed_from(s, s->undo_offset);
    resize(s, s->undo_len);
    if (s->undo_bytes->len > 0)
        memcpy(s->content->data + s->undo_offset, s->undo_bytes->data, s->undo_bytes->len);
    g_byte_array_set_size(s->undo_bytes, 0);
    s->undo_offset = s->undo_len;
}

const char *staging_data(const struct staging *s)
{
    return s->content->data ? (const char *)s->content->data : "";
}

size_t staging_len(const struct staging *s)
{
    return s->content->len;
}

static char *describe(const struct staging *s)
{
    size_t line = 1, column = 1, at = MIN(judge_error_at(s->json), s->content->len);
    for (size_t i = 0; i < at; i++) {
        column++;
        if (s->content->data[i] == '\n')
            line++, column = 1;
    }
    return g_strdup_printf("line %zu, column %zu: %s", line, column, judge_why(s->json));
}

enum verdict staging_judge_json(struct staging *s, char **ret_why)
{
    if (!s->json)
        s->json = judge_new();
    s->uncut = false;
    size_t fed = judge_fed(s->json);
    enum verdict v = judge_feed(s->json, staging_data(s) + fed, s->content->len - fed);
    if (v != VERDICT_IMPOSSIBLE)
        return v;
    if (s->write_end < s->content->len) {
        struct judge *before = judge_new();
        enum verdict going_on = judge_feed(before, staging_data(s), s->write_end);
        judge_free(before);
        s->uncut = going_on == VERDICT_COMPLETE;
        if (going_on != VERDICT_IMPOSSIBLE)
            return VERDICT_PREFIX;
    }
    *ret_why = describe(s);
    return v;
}

bool staging_uncut(const struct staging *s)
{
    return s->uncut;
}

enum verdict staging_judge_number(const struct staging *s, char **ret_why)
{
    const char *p = staging_data(s), *end = p + s->content->len;
    if (p == end)
        return VERDICT_EMPTY;
    if (*p == '-')
        p++;
    const char *digits = p;
    while (p < end && g_ascii_isdigit(*p))
        p++;
    if (p == end)
        return VERDICT_PREFIX;
    if (p > digits && *p == '\n' && p + 1 == end)
        return VERDICT_COMPLETE;
    *ret_why = g_strdup("a number is wanted: digits, and a newline at most");
    return VERDICT_IMPOSSIBLE;
}
