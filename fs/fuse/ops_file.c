/* Operations on open files: open, create, read, write, close. What a write means: write.c. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include "fs/fuse/notify.h"
#include "fs/fuse/virtual.h"
#include "fs/fuse/write.h"

/* ---- open ---- */

static bool wants_truncation(int flags)
{
    return (flags & O_TRUNC) && (flags & O_ACCMODE) != O_RDONLY;
}

/* Answers with a new handle of an inode that exists: an open, or a create that found it. */
static void answer_open(fuse_req_t req, struct inode *i, struct handle *h, bool create)
{
    if (create)
        reply_created(req, i, LONG_TIMEOUT, h);
    else
        reply_opened(req, h);
}

/* The truncation of a node without a format has been made. */
static void truncated(struct edit *e, int err)
{
    struct mount *m = e->mount;
    struct handle *h = e->handle;
    bool create = e->count;
    struct inode *i = inode_ref(h->inode);
    atomic_store_explicit(&h->busy, false, memory_order_release);
    if (err == 0) {
        answer_open(e->req, i, h, create);
    } else {
        handle_close(m->handles, h);
        if (create)
            inode_forget(m->inodes, i->ino, 1);
        fuse_reply_err(e->req, err);
    }
    inode_unref(i);
    edit_free(e);
}

static void truncate_at_open(fuse_req_t req, struct handle *h, bool create)
{
    struct mount *m = mount_of(req);
    g_autofree char *path = path_of(m, h);
    struct edit *e = edit_new(req, REQ_SET, path, truncated);
    e->node = inode_node(m->inodes, h->inode);
    e->value = bytes_new("", 0);
    e->handle = handle_ref(h);
    e->count = create;
    atomic_store_explicit(&h->busy, true, memory_order_relaxed);
    edit_submit(e);
}

/* A new handle; NULL: there are too many, which has been answered. `create`: with the lookup that a create counts. */
static struct handle *open_handle(fuse_req_t req, struct inode *i, int flags, bool create)
{
    struct mount *m = mount_of(req);
    struct handle *h = handle_new(m->handles, i, flags);
    if (h)
        return h;
    if (create)
        inode_forget(m->inodes, i->ino, 1);
    fuse_reply_err(req, ENFILE);
    return NULL;
}

/* Opens the file of a znode, or a staged one. */
static void open_node(fuse_req_t req, struct inode *i, int flags, bool create)
{
    struct mount *m = mount_of(req);
    struct handle *h = open_handle(req, i, flags, create);
    if (!h)
        return;
    bool truncate = wants_truncation(flags);
    if (truncate && !m->raw && i->format == FORMAT_OPAQUE) {
        truncate_at_open(req, h, create);
    } else {
        h->fresh = truncate;
        if (truncate && m->raw) {
            h->unsettled = true;
            inode_unsettled(m->inodes, i, 1);
        }
        answer_open(req, i, h, create);
    }
    handle_unref(h);
}

static void open_temp(fuse_req_t req, struct inode *i, int flags, bool create)
{
    struct handle *h = open_handle(req, i, flags, create);
    if (!h)
        return;
    if (wants_truncation(flags))
        staging_truncate(i->temp->content, 0);
    answer_open(req, i, h, create);
    handle_unref(h);
}

static bool is_dead(struct mount *m, struct inode *i)
{
    if (i->type == INODE_TEMP)
        return inode_temp_is_replaced(m->inodes, i);
    if (i->type != INODE_NODE && i->type != INODE_DATA)
        return false;
    mirror_rdlock(m->mirror);
    bool alive = inode_alive(i);
    mirror_unlock(m->mirror);
    return !alive;
}

void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct mount *m = mount_of(req);
    struct inode *i = inode_get(m->inodes, ino);
    if (!i || is_dead(m, i))
        fuse_reply_err(req, ESTALE);
    else if (i->type == INODE_VIRTUAL)
        virtual_open(req, i, fi->flags);
    else if (i->type == INODE_TEMP)
        open_temp(req, i, fi->flags, false);
    else
        open_node(req, i, fi->flags, false);
    inode_unref(i);
}

/* ---- create ---- */

/* What editors and mkstemp(3) do. */
static bool is_private(mode_t mode, int flags)
{
    return (flags & O_ACCMODE) == O_RDWR && (flags & O_EXCL) && (mode & 0777) == 0600;
}

/* Enters it, unless its directory has been removed, with all that was in it. NULL then. */
static struct inode *enter_temp(struct mount *m, struct temp *t)
{
    struct inode *directory = inode_get(m->inodes, t->parent);
    mirror_rdlock(m->mirror);
    struct inode *i = directory && inode_alive(directory) ? inode_new_temp(m->inodes, t) : NULL;
    mirror_unlock(m->mirror);
    inode_unref(directory);
    return i;
}

static void create_temp(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, int flags)
{
    struct mount *m = mount_of(req);
    struct temp *t = g_new0(struct temp, 1);
    t->parent = parent;
    t->name = g_strdup(name);
    t->content = staging_new(&m->budget, MAX_TEMP);
    t->mode = mode & 07777 & ~fuse_req_ctx(req)->umask;
    t->uid = fuse_req_ctx(req)->uid;
    t->gid = fuse_req_ctx(req)->gid;
    clock_gettime(CLOCK_REALTIME, &t->mtime);
    t->atime = t->ctime = t->mtime;
    struct inode *i = enter_temp(m, t);
    if (i) {
        open_temp(req, i, flags, true);
        inode_unref(i);
    } else {
        temp_free(t);
        fuse_reply_err(req, ESTALE);
    }
}

static void reply_new(fuse_req_t req, struct inode *i, int flags, double timeout, bool made)
{
    struct handle *h = open_handle(req, i, flags, true);
    if (!h)
        return;
    h->created = true;
    h->fresh = true;
    h->taken = made; /* its empty value is there */
    atomic_store(&i->creator, fuse_req_ctx(req)->pid);
    reply_created(req, i, timeout, h);
    handle_unref(h);
}

static bool is_action(struct mount *m, const struct place *p)
{
    return p->type == PLACE_NODE && m->policy->created_empty(m->policy->ctx, p->path);
}

/* A shell's redirection, or a copy; touch(1) opens otherwise. */
static bool value_may_come(int flags)
{
    return flags & (O_TRUNC | O_APPEND | O_EXCL);
}

static void create_staged(fuse_req_t req, const struct place *p, int flags)
{
    struct mount *m = mount_of(req);
    struct staged *s = g_new0(struct staged, 1);
    s->path = g_strdup(p->path);
    s->data = p->type == PLACE_DATA;
    s->action = is_action(m, p);
    s->exclusive = flags & O_EXCL;
    struct inode *i = inode_new_staged(m->inodes, s);
    reply_new(req, i, flags, 0, false);
    inode_unref(i);
}

/* The inode of a directory's own data that has just been made, or a staged one if it is gone again. */
static struct inode *enter_data(struct mount *m, const char *path)
{
    struct inode *i = NULL;
    mirror_rdlock(m->mirror);
    struct znode *n = mirror_find(m->mirror, path);
    if (n && znode_data(n))
        i = inode_lookup_node(m->inodes, n, INODE_DATA, path);
    mirror_unlock(m->mirror);
    if (i)
        return i;
    struct staged *s = g_new0(struct staged, 1);
    s->path = g_strdup(path);
    s->data = true;
    return inode_new_staged(m->inodes, s);
}

static void created(struct edit *e, int err)
{
    struct mount *m = e->mount;
    if (err == 0) {
        bool data = e->type == REQ_SET;
        struct inode *i = data ? enter_data(m, e->result_path) : enter_made(m, e->result_path, e->path, false);
        reply_new(e->req, i, GPOINTER_TO_INT(e->arg), strcmp(e->result_path, e->path) == 0 ? LONG_TIMEOUT : 0, true);
        inode_unref(i);
    } else {
        fuse_reply_err(e->req, err);
    }
    edit_free(e);
}

/* A node without a format, or whose creation is an action: it is made at once, and empty. */
static void create_empty(fuse_req_t req, const struct place *p, int flags)
{
    struct edit *e = edit_new(req, p->type == PLACE_DATA ? REQ_SET : REQ_CREATE, p->path, created);
    e->value = bytes_new("", 0);
    e->arg = GINT_TO_POINTER(flags);
    e->kernel_knows = true;
    edit_submit(e);
}

static void open_existing(fuse_req_t req, const struct place *p, int flags)
{
    struct mount *m = mount_of(req);
    struct inode *i = NULL;
    mirror_rdlock(m->mirror);
    if (!znode_removed(p->node))
        i = inode_lookup_node(m->inodes, p->node, p->type == PLACE_DATA ? INODE_DATA : INODE_NODE, p->path);
    mirror_unlock(m->mirror);
    if (i)
        open_node(req, i, flags, true);
    else
        fuse_reply_err(req, ESTALE);
    inode_unref(i);
}

static void create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, int flags, struct place *p)
{
    struct mount *m = mount_of(req);
    if (p->exists && (flags & O_EXCL)) {
        fuse_reply_err(req, EEXIST);
    } else if (p->type == PLACE_VIRTUAL) {
        fuse_reply_err(req, EPERM);
    } else if (p->directory) {
        fuse_reply_err(req, EISDIR);
    } else if (p->type == PLACE_TEMP) {
        inode_lookup_again(m->inodes, p->temp);
        open_temp(req, p->temp, flags, true);
    } else if (p->exists) {
        open_existing(req, p, flags);
    } else if (p->type == PLACE_NODE && is_private(mode, flags)) {
        create_temp(req, parent, name, mode, flags);
    } else if (is_action(m, p) ? value_may_come(flags) : must_be_staged(m, p->path)) {
        create_staged(req, p, flags);
    } else {
        create_empty(req, p, flags);
    }
}

void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi)
{
    struct place p;
    const char *why;
    int err = place_find(mount_of(req), parent, name, &p, &why);
    if (err == 0) {
        create(req, parent, name, mode, fi->flags, &p);
        place_clear(&p);
    } else {
        refuse_name(req, err, parent, name, why);
    }
}

/* ---- read and write ---- */

/* The value as it is shown, taken anew if the read begins at its start. */
static struct bytes *value_for(struct mount *m, struct handle *h, off_t off)
{
    struct znode *n = inode_node(m->inodes, h->inode);
    pthread_mutex_lock(&h->lock);
    if (n && (off == 0 || !h->value)) {
        bytes_unref(h->value);
        mirror_rdlock(m->mirror);
        h->value = shown_value(h->inode, n);
        mirror_unlock(m->mirror);
    }
    struct bytes *value = bytes_ref(h->value);
    pthread_mutex_unlock(&h->lock);
    znode_unref(n);
    return value;
}

static void read_node(fuse_req_t req, struct handle *h, size_t size, off_t off)
{
    bool busy = atomic_load_explicit(&h->busy, memory_order_acquire);
    if (!busy && h->staging && h->dirty && !h->appending) { /* the writer reads what he has written */
        reply_slice(req, staging_data(h->staging), staging_len(h->staging), size, off);
        return;
    }
    struct bytes *value = value_for(mount_of(req), h, off);
    reply_slice(req, value ? value->data : "", value ? value->len : 0, size, off);
    bytes_unref(value);
}

void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
    struct handle *h = handle_get(mount_of(req)->handles, fi->fh);
    size = MIN(size, 1u << 20);
    if (!h || (h->flags & O_ACCMODE) == O_WRONLY)
        fuse_reply_err(req, EBADF);
    else if (off < 0)
        fuse_reply_err(req, EINVAL);
    else if (h->inode->type == INODE_VIRTUAL)
        virtual_read(req, h, size, off);
    else if (h->inode->type == INODE_TEMP)
        reply_slice(req, staging_data(h->inode->temp->content), staging_len(h->inode->temp->content), size, off);
    else
        read_node(req, h, size, off);
    handle_unref(h);
}

static void write_temp(fuse_req_t req, struct handle *h, const char *data, size_t len, off_t off)
{
    struct temp *t = h->inode->temp;
    if (inode_temp_is_taken(mount_of(req)->inodes, h->inode)) {
        fuse_reply_err(req, ESTALE);
        return;
    }
    size_t at = h->flags & O_APPEND ? staging_len(t->content) : (size_t)MAX(off, 0);
    int rc = staging_write(t->content, at, data, len);
    clock_gettime(CLOCK_REALTIME, &t->mtime);
    t->ctime = t->mtime;
    if (rc < 0)
        fuse_reply_err(req, -rc);
    else
        fuse_reply_write(req, len);
}

void op_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t len, off_t off, struct fuse_file_info *fi)
{
    struct handle *h = handle_get(mount_of(req)->handles, fi->fh);
    if (!h || (h->flags & O_ACCMODE) == O_RDONLY)
        fuse_reply_err(req, EBADF);
    else if (h->inode->type == INODE_VIRTUAL)
        virtual_write(req, h, data, len);
    else if (h->inode->type == INODE_TEMP)
        write_temp(req, h, data, len, off);
    else
        write_data(req, h, data, len, off);
    handle_unref(h);
}

static bool writes_node(const struct handle *h)
{
    return (h->flags & O_ACCMODE) != O_RDONLY && h->inode->type != INODE_VIRTUAL && h->inode->type != INODE_TEMP;
}

void op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct handle *h = handle_get(mount_of(req)->handles, fi->fh);
    if (h && h->inode->type == INODE_VIRTUAL)
        virtual_flush(req, h);
    else if (h && writes_node(h))
        write_flush(req, h);
    else
        fuse_reply_err(req, 0);
    handle_unref(h);
}

void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct mount *m = mount_of(req);
    struct handle *h = handle_get(m->handles, fi->fh);
    if (h) {
        if (writes_node(h) && !atomic_load_explicit(&h->busy, memory_order_acquire))
            write_release(req, h);
        if (h->created)
            atomic_store(&h->inode->creator, 0);
        notify_poll_end(m->notifier, h);
        handle_close(m->handles, h);
    }
    handle_unref(h);
    fuse_reply_err(req, 0);
}

void op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
    fuse_reply_err(req, 0); /* what has been acknowledged is durable */
}
