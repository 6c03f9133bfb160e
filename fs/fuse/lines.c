/* Writing `key=value` lines (FORMAT_CONFIG): checked one by one, applied together, or one by one with O_APPEND. */
#include <string.h>
#include "fs/fuse/write.h"

bool lines_are_json(const struct handle *h)
{
    if (!h->staging || h->inode->format != FORMAT_CONFIG)
        return false;
    const char *p = staging_data(h->staging), *end = p + staging_len(h->staging);
    while (p < end && g_ascii_isspace(*p))
        p++;
    return p < end && *p == '{';
}

static int check_line(struct mount *m, struct handle *h, size_t before, const char *line, size_t len, char **ret_why)
{
    g_autofree char *path = path_of(m, h);
    return m->policy->check_line(m->policy->ctx, path, staging_data(h->staging), before, line, len, ret_why);
}

int lines_check(struct mount *m, struct handle *h, char **ret_why)
{
    const char *text = staging_data(h->staging);
    size_t len = staging_len(h->staging);
    while (h->checked < len) {
        const char *line = text + h->checked, *newline = memchr(line, '\n', len - h->checked);
        if (!newline)
            break;
        int err = check_line(m, h, h->checked, line, (size_t)(newline - line), ret_why);
        if (err != 0)
            return err;
        h->checked += (size_t)(newline + 1 - line);
    }
    return 0;
}

int lines_check_last(struct mount *m, struct handle *h, char **ret_why)
{
    size_t start = h->appending ? 0 : h->checked, len = staging_len(h->staging) - start;
    return len > 0 ? check_line(m, h, start, staging_data(h->staging) + start, len, ret_why) : 0;
}

/* ---- with O_APPEND: one line after the other ---- */

/* One write, or the close that ends the last line. Between two, what is staged is the line that is not finished yet. */
struct append {
    enum answer answer;
    size_t before; /* staged before the write */
    size_t len;    /* of the write */
    size_t taken;  /* bytes of it in lines that have been applied */
    size_t start;  /* of the line in work, in what is staged: those before it have been applied */
};

static void append_next(struct edit *e);

/* The length of the finished line that begins at `start`; 0: there is none. */
static size_t finished_line(const struct handle *h, size_t start)
{
    const char *line = staging_data(h->staging) + start;
    size_t len = staging_len(h->staging) - start;
    const char *newline = len > 0 ? memchr(line, '\n', len) : NULL;
    return newline ? (size_t)(newline + 1 - line) : 0;
}

static void keep_rest(struct handle *h, size_t start)
{
    size_t rest = staging_len(h->staging) - start;
    g_autofree char *text = g_memdup2(staging_data(h->staging) + start, rest);
    staging_set(h->staging, text, rest);
}

static void answer_append(struct edit *e, int err)
{
    struct append *a = e->arg;
    fuse_req_t req = e->req;
    enum answer answer = a->answer;
    size_t count = a->taken;
    e->handle->dirty = staging_len(e->handle->staging) > 0 && !e->handle->last_taken;
    atomic_store_explicit(&e->handle->busy, false, memory_order_release);
    if (err != 0 || answer == ANSWER_FLUSH)
        fuse_reply_err(req, err);
    else
        fuse_reply_write(req, count);
    g_free(a);
    edit_free(e);
}

/* The first line of a write that is refused fails it; a later one cuts it short, and its writer comes again with it. */
static void refused(struct edit *e, int err)
{
    struct append *a = e->arg;
    struct handle *h = e->handle;
    h->said = true;
    bool first = a->taken == 0;
    staging_truncate(h->staging, first && a->answer == ANSWER_WRITE ? a->before : 0);
    answer_append(e, first ? err : 0);
}

static void appended(struct edit *e, int err)
{
    struct append *a = e->arg;
    struct handle *h = e->handle;
    struct mount *m = e->mount;
    if (err != 0) {
        refused(e, err);
        return;
    }
    if (h->inode->type == INODE_STAGED) {
        mirror_rdlock(m->mirror);
        struct znode *n = mirror_find(m->mirror, e->result_path);
        if (n)
            inode_made(m->inodes, h->inode, n);
        mirror_unlock(m->mirror);
    }
    if (a->answer == ANSWER_FLUSH) {
        h->last_taken = true; /* it stays: what comes next may be the rest of this line */
        answer_append(e, 0);
        return;
    }
    a->start += e->value->len;
    a->taken += e->value->len - a->before;
    a->before = 0;
    append_next(e);
}

/* Applies the next finished line, if there is one. */
static void append_next(struct edit *e)
{
    struct append *a = e->arg;
    struct handle *h = e->handle;
    size_t line = finished_line(h, a->start);
    if (line == 0 && a->answer == ANSWER_FLUSH)
        line = staging_len(h->staging);
    if (line == 0) {
        keep_rest(h, a->start);
        a->taken = a->len;
        answer_append(e, 0);
        return;
    }
    bytes_unref(e->value);
    e->value = bytes_new(staging_data(h->staging) + a->start, line);
    edit_submit(e);
}

static void begin(fuse_req_t req, struct handle *h, enum answer answer, size_t before, size_t len, size_t taken)
{
    g_autofree char *path = path_of(mount_of(req), h);
    struct edit *e = edit_new(req, REQ_APPEND, path, appended);
    struct append *a = g_new0(struct append, 1);
    a->answer = answer;
    a->before = before;
    a->len = len;
    a->taken = taken;
    e->arg = a;
    e->handle = handle_ref(h);
    h->said = false;
    h->abandoned = false;
    atomic_store_explicit(&h->busy, true, memory_order_relaxed);
    append_next(e);
}

void lines_append(fuse_req_t req, struct handle *h, const char *data, size_t len)
{
    struct mount *m = mount_of(req);
    if (!h->staging)
        h->staging = staging_new(&m->budget, MAX_STAGED);
    size_t skip = 0;
    if (h->last_taken && len > 0 && data[0] == '\n') { /* the end of a line that a close has applied */
        staging_truncate(h->staging, 0);
        skip = 1;
    }
    h->last_taken &= len == 0;
    size_t before = staging_len(h->staging);
    int rc = staging_write(h->staging, before, data + skip, len - skip);
    if (rc < 0)
        fuse_reply_err(req, -rc);
    else
        begin(req, h, ANSWER_WRITE, before, len, skip);
}

void lines_append_rest(fuse_req_t req, struct handle *h)
{
    begin(req, h, ANSWER_FLUSH, 0, 0, 0);
}
