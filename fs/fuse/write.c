#include "fs/fuse/write.h"

#include <errno.h>
#include <fcntl.h>

char *path_of(struct mount *m, const struct handle *h)
{
    struct znode *n = inode_node(m->inodes, h->inode);
    char *path = n ? znode_path(n) : g_strdup(h->inode->staged->path);
    znode_unref(n);
    return path;
}

bool must_be_staged(struct mount *m, const char *path)
{
    const struct policy *policy = m->policy;
    return m->raw || (policy->format(policy->ctx, path) != FORMAT_OPAQUE && !policy->created_empty(policy->ctx, path));
}

struct inode *enter_made(struct mount *m, const char *path, const char *asked, bool directory)
{
    struct inode *i = NULL;
    mirror_rdlock(m->mirror);
    struct znode *n = mirror_find(m->mirror, path);
    /* The kernel takes nothing but what it asked for. */
    if (n && znode_is_directory(n) == directory)
        i = inode_lookup_node(m->inodes, n, INODE_NODE, path);
    mirror_unlock(m->mirror);
    if (i)
        return i;
    struct staged *s = g_new0(struct staged, 1);
    s->path = g_strdup(asked);
    s->directory = directory;
    return inode_new_staged(m->inodes, s);
}

static bool is_data(const struct inode *i)
{
    return i->type == INODE_DATA || (i->type == INODE_STAGED && i->staged->data);
}

static bool is_unmade(struct mount *m, const struct handle *h)
{
    struct znode *n = inode_node(m->inodes, h->inode);
    znode_unref(n);
    return !n;
}

/* Is the value taken whole at a close (raw.c)? */
static bool taken_at_close(struct mount *m, const struct handle *h)
{
    return m->raw || (h->inode->type == INODE_STAGED && h->inode->staged->action && is_unmade(m, h));
}

int stage(struct mount *m, struct handle *h)
{
    if (h->staging)
        return 0;
    struct staging *s = staging_new(&m->budget, MAX_STAGED);
    struct znode *n = h->fresh ? NULL : inode_node(m->inodes, h->inode);
    int rc = 0;
    if (n) {
        mirror_rdlock(m->mirror);
        struct bytes *value = shown_value(h->inode, n);
        mirror_unlock(m->mirror);
        rc = staging_set(s, value->data, value->len);
        bytes_unref(value);
        znode_unref(n);
    }
    if (rc == 0)
        h->staging = s;
    else
        staging_free(s);
    return rc;
}

static void staged_size(struct mount *m, struct handle *h)
{
    if (h->inode->type == INODE_STAGED)
        inode_staged_size(m->inodes, h->inode, staging_len(h->staging));
}

/* ---- applying ---- */

struct commit_answer {
    enum answer answer;
    bool json;
};

static void make(struct edit *e)
{
    struct mount *m = e->mount;
    mirror_rdlock(m->mirror);
    struct znode *n = mirror_find(m->mirror, e->result_path);
    if (n)
        inode_made(m->inodes, e->handle->inode, n);
    mirror_unlock(m->mirror);
}

static void forget_value(struct handle *h)
{
    pthread_mutex_lock(&h->lock);
    h->value = bytes_unref(h->value);
    pthread_mutex_unlock(&h->lock);
}

static void settle_raw(struct mount *m, struct handle *h)
{
    if (h->unsettled)
        inode_unsettled(m->inodes, h->inode, -1);
    h->unsettled = false;
}

static void committed(struct edit *e, int err)
{
    struct mount *m = e->mount;
    struct handle *h = e->handle;
    struct commit_answer *c = e->arg;
    h->dirty = false;
    h->said = err != 0;
    if (err == 0) {
        h->complete = c->json;
        h->taken = true;
        settle_raw(m, h);
        forget_value(h);
        if (h->inode->type == INODE_STAGED)
            make(e);
    } else if (c->answer == ANSWER_WRITE || c->answer == ANSWER_ATTR) {
        staging_undo(h->staging);
        staged_size(m, h);
    }
    fuse_req_t req = e->req;
    size_t count = e->count;
    enum answer answer = c->answer;
    struct inode *i = inode_ref(h->inode);
    atomic_store_explicit(&h->busy, false, memory_order_release);
    if (answer == ANSWER_NONE)
        ;
    else if (err != 0 || answer == ANSWER_FLUSH)
        fuse_reply_err(req, err);
    else if (answer == ANSWER_WRITE)
        fuse_reply_write(req, count);
    else
        reply_attr(req, i);
    inode_unref(i);
    g_free(c);
    edit_free(e);
}

void commit_staged(fuse_req_t req, struct handle *h, enum answer answer, size_t count)
{
    struct mount *m = mount_of(req);
    g_autofree char *path = path_of(m, h);
    struct edit *e = edit_new(req, REQ_SET, path, committed);
    bool unmade = is_unmade(m, h);
    e->set_or_create = !is_data(h->inode) && (unmade || h->fresh);
    e->node = h->fresh ? NULL : inode_node(m->inodes, h->inode);
    e->exclusive = unmade && h->inode->staged->exclusive;
    e->value = bytes_new(staging_data(h->staging), staging_len(h->staging));
    e->handle = handle_ref(h);
    e->count = count;
    struct commit_answer *c = g_new(struct commit_answer, 1);
    *c = (struct commit_answer){.answer = answer, .json = h->inode->format == FORMAT_JSON || lines_are_json(h)};
    e->arg = c;
    atomic_store_explicit(&h->busy, true, memory_order_relaxed);
    edit_submit(e);
}

/* ---- opaque ---- */

static void patched(struct edit *e, int err)
{
    struct handle *h = e->handle;
    if (err == 0) {
        forget_value(h);
        if (h->inode->type == INODE_STAGED)
            make(e);
    }
    fuse_req_t req = e->req;
    struct inode *i = inode_ref(h->inode);
    atomic_store_explicit(&h->busy, false, memory_order_release);
    if (err != 0)
        fuse_reply_err(req, err);
    else if (e->truncate)
        reply_attr(req, i);
    else
        fuse_reply_write(req, e->count);
    inode_unref(i);
    edit_free(e);
}

static struct edit *new_patch(fuse_req_t req, struct handle *h)
{
    struct mount *m = mount_of(req);
    g_autofree char *path = path_of(m, h);
    struct edit *e = edit_new(req, REQ_SET, path, patched);
    e->patch = true;
    e->node = inode_node(m->inodes, h->inode);
    e->set_or_create = !is_data(h->inode) && !e->node;
    e->handle = handle_ref(h);
    atomic_store_explicit(&h->busy, true, memory_order_relaxed);
    return e;
}

static void write_opaque(fuse_req_t req, struct handle *h, const char *data, size_t len, off_t off)
{
    if (off > ZNODE_MAX_DATA || len > ZNODE_MAX_DATA - (size_t)off) {
        fuse_reply_err(req, EFBIG);
        return;
    }
    struct edit *e = new_patch(req, h);
    e->value = bytes_new(data, len);
    e->offset = h->flags & O_APPEND ? -1 : off; /* the kernel's idea of the end may be old */
    e->count = len;
    edit_submit(e);
}

static void truncate_opaque(fuse_req_t req, struct handle *h, size_t len)
{
    struct edit *e = new_patch(req, h);
    e->truncate = true;
    e->offset = (int64_t)len;
    edit_submit(e);
}

/* ---- staged formats ---- */

/* Answers a change of what is staged that makes no value yet, or applies the value it makes. `*why` is taken over. */
static void act_on(fuse_req_t req, struct handle *h, enum verdict verdict, char *why, enum answer answer, size_t count)
{
    struct mount *m = mount_of(req);
    if (verdict == VERDICT_IMPOSSIBLE) {
        g_autofree char *path = path_of(m, h);
        staging_undo(h->staging);
        h->said = true;
        h->spoiled = h->inode->format == FORMAT_CONFIG && !lines_are_json(h);
        h->dirty &= !h->spoiled;
        refuse(req, EINVAL, path, "%s", why);
        g_free(why);
        return;
    }
    staged_size(m, h);
    h->said = false;
    h->abandoned = false;
    if (verdict == VERDICT_COMPLETE) {
        commit_staged(req, h, answer, count);
        return;
    }
    h->complete = false;
    h->dirty = verdict == VERDICT_PREFIX;
    if (answer == ANSWER_WRITE)
        fuse_reply_write(req, count);
    else
        reply_attr(req, h->inode);
}

static enum verdict judge_staged(struct mount *m, struct handle *h, char **ret_why)
{
    if (h->inode->format == FORMAT_NUMBER)
        return staging_judge_number(h->staging, ret_why);
    if (h->inode->format == FORMAT_JSON || lines_are_json(h))
        return staging_judge_json(h->staging, ret_why);
    int err = lines_check(m, h, ret_why);
    return err != 0 ? VERDICT_IMPOSSIBLE : staging_len(h->staging) > 0 ? VERDICT_PREFIX : VERDICT_EMPTY;
}

static bool all_space(const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!g_ascii_isspace(data[i]))
            return false;
    return true;
}

static void write_staged(fuse_req_t req, struct handle *h, const char *data, size_t len, off_t off)
{
    struct mount *m = mount_of(req);
    int rc = stage(m, h);
    size_t at = rc == 0 && h->flags & O_APPEND ? staging_len(h->staging) : (size_t)off;
    bool more_space = rc == 0 && h->complete && at == staging_len(h->staging) && all_space(data, len);
    if (rc == 0)
        rc = staging_write(h->staging, at, data, len);
    if (rc < 0) {
        fuse_reply_err(req, -rc);
        return;
    }
    h->checked = MIN(h->checked, at);
    if (more_space) { /* the newline after a document */
        fuse_reply_write(req, len);
        return;
    }
    char *why = NULL;
    enum verdict verdict = judge_staged(m, h, &why);
    act_on(req, h, verdict, why, ANSWER_WRITE, len);
}

static void truncate_staged(fuse_req_t req, struct handle *h, size_t len)
{
    struct mount *m = mount_of(req);
    if (len == 0 && !h->staging)
        h->fresh = true;
    h->spoiled &= len > 0;
    int rc = stage(m, h);
    bool same = rc == 0 && len == staging_len(h->staging);
    if (rc == 0 && !same)
        rc = staging_truncate(h->staging, len);
    if (rc < 0) {
        fuse_reply_err(req, -rc);
        return;
    }
    h->checked = MIN(h->checked, len);
    h->fresh |= len == 0;
    if (same) {
        reply_attr(req, h->inode);
        return;
    }
    char *why = NULL;
    enum verdict verdict = judge_staged(m, h, &why);
    act_on(req, h, verdict, why, ANSWER_ATTR, 0);
}

/* ---- by format ---- */

static bool appends_lines(struct mount *m, struct handle *h, const char *data, size_t len)
{
    if (h->inode->format != FORMAT_CONFIG || !(h->flags & O_APPEND))
        return false;
    if (h->appending || h->staging)
        return h->appending;
    /* The first write decides: lines, or JSON for a node that has nothing. */
    struct znode *n = inode_node(m->inodes, h->inode);
    bool has_value = false;
    if (n) {
        mirror_rdlock(m->mirror);
        has_value = znode_data(n) && znode_data(n)->len > 0;
        mirror_unlock(m->mirror);
        znode_unref(n);
    }
    h->appending = has_value || (len > 0 && data[0] != '{');
    return h->appending;
}

/* What can never be written is told at the first write, not at the close. Answers then. */
static bool refused_at_once(fuse_req_t req, struct handle *h)
{
    struct mount *m = mount_of(req);
    g_autofree char *path = path_of(m, h), *why = NULL;
    int err = m->policy->may_write(m->policy->ctx, path, is_unmade(m, h), &why);
    if (err != 0)
        refuse(req, err, path, "%s", why);
    return err != 0;
}

void write_data(fuse_req_t req, struct handle *h, const char *data, size_t len, off_t off)
{
    struct mount *m = mount_of(req);
    if (atomic_load_explicit(&h->busy, memory_order_acquire))
        fuse_reply_err(req, EBUSY);
    else if (off < 0)
        fuse_reply_err(req, EINVAL);
    else if (taken_at_close(m, h))
        raw_write(req, h, data, len, off);
    else if (h->inode->format == FORMAT_OPAQUE)
        write_opaque(req, h, data, len, off);
    else if (h->spoiled)
        fuse_reply_err(req, EINVAL);
    else if (!h->staging && refused_at_once(req, h))
        return;
    else if (appends_lines(m, h, data, len))
        lines_append(req, h, data, len);
    else
        write_staged(req, h, data, len, off);
}

void write_truncate(fuse_req_t req, struct handle *h, size_t len)
{
    struct mount *m = mount_of(req);
    if (atomic_load_explicit(&h->busy, memory_order_acquire))
        fuse_reply_err(req, EBUSY);
    else if (len > MAX_STAGED)
        fuse_reply_err(req, EFBIG);
    else if (taken_at_close(m, h))
        raw_truncate(req, h, len);
    else if (h->inode->format == FORMAT_OPAQUE)
        truncate_opaque(req, h, len);
    else
        truncate_staged(req, h, len);
}

/* The close of a duplicate looks like any other. So a last line that is none is not the end of it: the close fails, for
 * those who look, but the rest of the line may come. */
static void flush_lines(fuse_req_t req, struct handle *h)
{
    g_autofree char *why = NULL;
    int err = lines_check_last(mount_of(req), h, &why);
    if (err != 0)
        fuse_reply_err(req, err);
    else if (h->appending)
        lines_append_rest(req, h);
    else
        commit_staged(req, h, ANSWER_FLUSH, 0);
}

/* A close: nothing to JSON, which is applied by its own end; the end to lines and numbers. */
void write_flush(fuse_req_t req, struct handle *h)
{
    struct mount *m = mount_of(req);
    bool json = h->inode->format == FORMAT_JSON || lines_are_json(h);
    if (atomic_load_explicit(&h->busy, memory_order_acquire)) {
        fuse_reply_err(req, 0);
    } else if (taken_at_close(m, h)) {
        raw_flush(req, h);
    } else if (!h->dirty || (json && !h->appending)) {
        /* a shorter document over a longer one, and no truncation: `dd conv=notrunc` looks at its close */
        fuse_reply_err(req, h->dirty && staging_uncut(h->staging) ? EINVAL : 0);
    } else if (h->abandoned || process_killed(fuse_req_ctx(req)->pid)) {
        h->abandoned = true;
        fuse_reply_err(req, 0);
    } else if (h->inode->format == FORMAT_CONFIG) {
        flush_lines(req, h);
    } else {
        commit_staged(req, h, ANSWER_FLUSH, 0);
    }
}

void write_release(fuse_req_t req, struct handle *h)
{
    struct mount *m = mount_of(req);
    if (taken_at_close(m, h))
        raw_release(req, h);
    if (!h->dirty || h->said)
        return;
    g_autofree char *path = path_of(m, h), *why = NULL;
    bool lines = !m->raw && h->inode->format == FORMAT_CONFIG && (h->appending || !lines_are_json(h));
    if (lines && !h->abandoned)
        lines_check_last(m, h, &why);
    if (why)
        journal_error(m->errors, EINVAL, path, "%s", why);
    else if (h->staging && staging_uncut(h->staging))
        journal_error(
                m->errors, EINVAL, path, "a document is dropped, since the end of a longer one was left behind it");
    else
        journal_error(m->errors, EINVAL, path, "a value that was not completed is dropped (%zu bytes%s)",
                staging_len(h->staging), h->abandoned ? ", the writer was killed" : "");
}
