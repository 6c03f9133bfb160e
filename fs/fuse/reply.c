/* The answers that more than one operation gives, and what goes with each: a lookup, a handle. */
#include "fs/fuse/fusefs.h"

#include <errno.h>

static int fill_entry(struct mount *m, struct inode *i, double entry_timeout, struct fuse_entry_param *e)
{
    *e = (struct fuse_entry_param){.ino = i->ino};
    int err = attr_get(m, i, &e->attr, &e->attr_timeout);
    e->entry_timeout = e->attr_timeout > 0 ? entry_timeout : 0;
    return err;
}

void reply_inode(fuse_req_t req, struct inode *i, double entry_timeout)
{
    struct mount *m = mount_of(req);
    struct fuse_entry_param e;
    int err = fill_entry(m, i, entry_timeout, &e);
    /* An answer that nobody takes any more counts for nothing. */
    if (err != 0 ? fuse_reply_err(req, err), true : fuse_reply_entry(req, &e) != 0)
        inode_forget(m->inodes, i->ino, 1);
}

static void set_open_flags(const struct handle *h, struct fuse_file_info *fi)
{
    fi->flags = h->flags;
    fi->fh = h->fh;
    fi->direct_io = 1;
    /* A close is of interest only after a write. */
    fi->noflush = (h->flags & O_ACCMODE) == O_RDONLY;
}

void reply_created(fuse_req_t req, struct inode *i, double entry_timeout, struct handle *h)
{
    struct mount *m = mount_of(req);
    struct fuse_entry_param e;
    struct fuse_file_info fi = {0};
    set_open_flags(h, &fi);
    int err = fill_entry(m, i, entry_timeout, &e);
    if (err != 0 ? fuse_reply_err(req, err), true : fuse_reply_create(req, &e, &fi) != 0) {
        handle_close(m->handles, h);
        inode_forget(m->inodes, i->ino, 1);
    }
}

void reply_opened(fuse_req_t req, struct handle *h)
{
    struct mount *m = mount_of(req);
    struct fuse_file_info fi = {0};
    set_open_flags(h, &fi);
    if (fuse_reply_open(req, &fi) != 0)
        handle_close(m->handles, h);
}

void reply_no_entry(fuse_req_t req, bool keep)
{
    const struct fuse_entry_param none = {.entry_timeout = LONG_TIMEOUT};
    if (keep)
        fuse_reply_entry(req, &none);
    else
        fuse_reply_err(req, ENOENT);
}

void reply_attr(fuse_req_t req, struct inode *i)
{
    struct stat st;
    double timeout;
    int err = attr_get(mount_of(req), i, &st, &timeout);
    if (err != 0)
        fuse_reply_err(req, err);
    else
        fuse_reply_attr(req, &st, timeout);
}

void reply_slice(fuse_req_t req, const void *data, size_t len, size_t size, off_t off)
{
    size_t start = MIN((size_t)MAX(off, 0), len);
    if (start == len)
        fuse_reply_buf(req, NULL, 0);
    else
        fuse_reply_buf(req, (const char *)data + start, MIN(size, len - start));
}

void refuse(fuse_req_t req, int err, const char *path, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    g_autofree char *what = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    journal_error(mount_of(req)->errors, err, path, "%s", what);
    fuse_reply_err(req, err);
}
