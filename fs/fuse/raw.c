#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "fs/fuse/write.h"

/*
 * `-o raw`: bytes as they are, taken whole at each close of a handle that has written. The kernel says of a close no
 * more than FLUSH, which comes for each close of a duplicate too. So, with nothing written: a new file that was opened
 * exclusively, or neither with truncation nor to append, is made at the first FLUSH (nothing can be meant to follow
 * that could not be seen then); one opened as a shell does it (`: > f`: FLUSH by its dup2, FLUSH by its end) at the
 * second by the same process, or at the last close.
 *
 * In every mount it is so for a node whose creation is an action, if it is opened in a way that a value may follow.
 */

/* Fields of /proc/PID/stat, counted behind the name (proc(5): 9 and 52). */
enum { STAT_FLAGS = 9 - 3, STAT_EXIT_CODE = 52 - 3 };

bool process_killed(pid_t pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%d/stat", pid), *text = NULL;
    if (pid <= 0 || !g_file_get_contents(path, &text, NULL, NULL))
        return false;
    const char *name_end = strrchr(text, ')'); /* the name may hold anything */
    if (!name_end || name_end[1] == '\0')
        return false;
    g_auto(GStrv) fields = g_strsplit(name_end + 2, " ", -1);
    if (g_strv_length(fields) <= STAT_EXIT_CODE)
        return false;
    /* PF_SIGNALED is set in the other threads of a process that exits by itself too; its exit code is no signal. */
    return (strtoul(fields[STAT_FLAGS], NULL, 10) & 0x400) && (strtoul(fields[STAT_EXIT_CODE], NULL, 10) & 0x7f);
}

static void touched(struct handle *h)
{
    h->dirty = true;
    h->said = false;
    h->abandoned = false;
    h->flushed_by = 0;
}

static bool unmade(struct mount *m, const struct handle *h)
{
    struct znode *n = inode_node(m->inodes, h->inode);
    znode_unref(n);
    return !n;
}

/* No value is checked here, so what will be refused at the close can be told now, where every shell sees it. Answers if
 * it is. */
static bool refused_at_once(fuse_req_t req, struct handle *h, const char *data, size_t len)
{
    struct mount *m = mount_of(req);
    g_autofree char *path = path_of(m, h);
    struct bytes *value = bytes_new(data, len);
    const struct request request = {
            .type = unmade(m, h) ? REQ_CREATE : REQ_SET,
            .path = path,
            .value = value,
            .raw = m->raw,
            .pid = fuse_req_ctx(req)->pid,
    };
    struct plan plan = {0};
    m->policy->plan(m->policy->ctx, &request, &plan);
    bool refused = plan.type == PLAN_REFUSE;
    if (refused && plan.reason)
        refuse(req, plan.err, path, "%s", plan.reason);
    else if (refused)
        fuse_reply_err(req, plan.err);
    plan_clear(&plan);
    bytes_unref(value);
    return refused;
}

void raw_write(fuse_req_t req, struct handle *h, const char *data, size_t len, off_t off)
{
    struct mount *m = mount_of(req);
    if (!h->dirty && refused_at_once(req, h, data, len)) {
        h->said = true; /* nor is an empty value what was meant */
        return;
    }
    int rc = stage(m, h);
    if (rc == 0)
        rc = staging_write(h->staging, h->flags & O_APPEND ? staging_len(h->staging) : (size_t)off, data, len);
    if (rc < 0) {
        fuse_reply_err(req, -rc);
        return;
    }
    touched(h);
    if (h->inode->type == INODE_STAGED)
        inode_staged_size(m->inodes, h->inode, staging_len(h->staging));
    fuse_reply_write(req, len);
}

void raw_truncate(fuse_req_t req, struct handle *h, size_t len)
{
    struct mount *m = mount_of(req);
    int rc = stage(m, h);
    if (rc == 0)
        rc = staging_truncate(h->staging, len);
    if (rc < 0) {
        fuse_reply_err(req, -rc);
        return;
    }
    touched(h);
    if (h->inode->type == INODE_STAGED)
        inode_staged_size(m->inodes, h->inode, len);
    reply_attr(req, h->inode);
}

/* Is there an empty value that has not been taken: of a truncation, or of a new file? */
static bool empty_is_due(struct mount *m, const struct handle *h)
{
    return !h->taken && !h->said && (h->fresh || unmade(m, h));
}

static void commit(fuse_req_t req, struct handle *h, enum answer answer)
{
    struct mount *m = mount_of(req);
    int rc = stage(m, h);
    if (rc == 0) {
        commit_staged(req, h, answer, 0);
        return;
    }
    g_autofree char *path = path_of(m, h);
    journal_error(m->errors, -rc, path, "the value cannot be taken: too much is being written");
    if (answer == ANSWER_FLUSH)
        fuse_reply_err(req, -rc);
}

void raw_flush(fuse_req_t req, struct handle *h)
{
    struct mount *m = mount_of(req);
    pid_t pid = fuse_req_ctx(req)->pid;
    if (h->abandoned || (!h->dirty && !empty_is_due(m, h))) {
        fuse_reply_err(req, 0);
    } else if (process_killed(pid)) {
        h->abandoned = true;
        fuse_reply_err(req, 0);
    } else if (h->dirty || h->flushed_by == pid) {
        commit(req, h, ANSWER_FLUSH);
    } else if (unmade(m, h) && ((h->flags & O_EXCL) || !(h->flags & (O_TRUNC | O_APPEND)))) {
        commit(req, h, ANSWER_FLUSH);
    } else {
        h->flushed_by = pid;
        fuse_reply_err(req, 0);
    }
}

/* Requests that come later must see the value, and the kernel does not wait for this one: the only place where the FUSE
 * thread waits, for one commit. An action may take longer: it is not waited for. */
void raw_release(fuse_req_t req, struct handle *h)
{
    struct mount *m = mount_of(req);
    if (h->dirty || h->abandoned || !empty_is_due(m, h))
        return;
    commit(req, h, ANSWER_NONE);
    if (h->inode->type != INODE_STAGED || !h->inode->staged->action)
        edit_wait(m, h);
}
