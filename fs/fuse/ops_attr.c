/* Operations on attributes, and what sets them: chmod, truncate, touch; links; statfs. */
#include <errno.h>
#include <sys/statvfs.h>
#include "fs/fuse/name.h"
#include "fs/fuse/virtual.h"
#include "fs/fuse/write.h"

/* Bytes in the store, by which the room for more znodes is estimated. */
#define SMALL_ZNODE 512

void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct inode *i = inode_get(mount_of(req)->inodes, ino);
    if (i)
        reply_attr(req, i);
    else
        fuse_reply_err(req, ESTALE);
    inode_unref(i);
}

static void set_temp(fuse_req_t req, struct inode *i, const struct stat *attr, int to_set)
{
    struct mount *m = mount_of(req);
    struct temp *t = i->temp;
    struct timespec now;
    if ((to_set & FUSE_SET_ATTR_SIZE) && inode_temp_is_taken(m->inodes, i)) {
        fuse_reply_err(req, ESTALE);
        return;
    }
    clock_gettime(CLOCK_REALTIME, &now);
    if (to_set & FUSE_SET_ATTR_SIZE) {
        int rc = attr->st_size > (off_t)MAX_TEMP ? -EFBIG : staging_truncate(t->content, (size_t)attr->st_size);
        if (rc < 0) {
            fuse_reply_err(req, -rc);
            return;
        }
        t->mtime = now;
    }
    if (to_set & FUSE_SET_ATTR_MODE)
        t->mode = attr->st_mode & 07777;
    if (to_set & FUSE_SET_ATTR_UID)
        t->uid = attr->st_uid;
    if (to_set & FUSE_SET_ATTR_GID)
        t->gid = attr->st_gid;
    if (to_set & FUSE_SET_ATTR_ATIME)
        t->atime = to_set & FUSE_SET_ATTR_ATIME_NOW ? now : attr->st_atim;
    if (to_set & FUSE_SET_ATTR_MTIME)
        t->mtime = to_set & FUSE_SET_ATTR_MTIME_NOW ? now : attr->st_mtim;
    t->ctime = now;
    reply_attr(req, i);
}

static void attr_changed(struct edit *e, int err)
{
    if (err != 0)
        fuse_reply_err(e->req, err);
    else
        reply_attr(e->req, e->inode);
    edit_free(e);
}

/* truncate(2), with no file open: nothing can follow that would complete a value. */
static void truncate_by_path(fuse_req_t req, struct inode *i, size_t len)
{
    struct mount *m = mount_of(req);
    struct znode *n = inode_node(m->inodes, i);
    if (!n) {
        fuse_reply_err(req, ESTALE);
        return;
    }
    g_autofree char *path = znode_path(n);
    mirror_rdlock(m->mirror);
    struct bytes *value = shown_value(i, n);
    mirror_unlock(m->mirror);
    size_t size = value->len;
    bytes_unref(value);
    if (i->format == FORMAT_OPAQUE) {
        struct edit *e = edit_new(req, REQ_SET, path, attr_changed);
        e->node = znode_ref(n);
        e->patch = e->truncate = true;
        e->offset = (int64_t)len;
        e->inode = inode_ref(i);
        edit_submit(e);
    } else if (len == 0 || len == size || len + 1 == size) {
        reply_attr(req, i); /* an empty value is none, and the newline does not count */
    } else {
        refuse(req, EINVAL, path, "a value of %zu bytes cut to %zu is none", size, len);
    }
    znode_unref(n);
}

static void set_size(fuse_req_t req, struct inode *i, off_t size, struct fuse_file_info *fi)
{
    struct mount *m = mount_of(req);
    struct handle *h = fi ? handle_get(m->handles, fi->fh) : NULL;
    if (i->type == INODE_VIRTUAL)
        i->virtual_file->kind == VIRTUAL_WRITABLE ? reply_attr(req, i) : (void)fuse_reply_err(req, EPERM);
    else if (size < 0 || size > MAX_STAGED)
        fuse_reply_err(req, size < 0 ? EINVAL : EFBIG);
    else if (h && h->inode == i && (h->flags & O_ACCMODE) != O_RDONLY)
        write_truncate(req, h, (size_t)size);
    else
        truncate_by_path(req, i, (size_t)size);
    handle_unref(h);
}

/* `touch`: no change of data, but to the policy it may mean something. */
static void touch(fuse_req_t req, struct inode *i)
{
    struct mount *m = mount_of(req);
    struct znode *n = i->type == INODE_DATA ? NULL : inode_node(m->inodes, i);
    if (!n || atomic_load(&i->creator) == fuse_req_ctx(req)->pid) {
        reply_attr(req, i);
    } else {
        g_autofree char *path = znode_path(n);
        struct edit *e = edit_new(req, REQ_TOUCH, path, attr_changed);
        e->inode = inode_ref(i);
        edit_submit(e);
    }
    znode_unref(n);
}

void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set, struct fuse_file_info *fi)
{
    struct inode *i = inode_get(mount_of(req)->inodes, ino);
    if (!i)
        fuse_reply_err(req, ESTALE);
    else if (i->type == INODE_TEMP)
        set_temp(req, i, attr, to_set);
    else if (to_set & FUSE_SET_ATTR_SIZE)
        set_size(req, i, attr->st_size, fi);
    else if (i->type != INODE_VIRTUAL && (to_set & FUSE_SET_ATTR_MTIME_NOW))
        touch(req, i);
    else
        reply_attr(req, i); /* owner, mode and times are the tree's: accepted, and without effect */
    inode_unref(i);
}

void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
    struct inode *i = inode_get(mount_of(req)->inodes, ino);
    if (i && i->type == INODE_VIRTUAL && i->virtual_file->kind == VIRTUAL_LINK)
        virtual_readlink(req, i);
    else
        fuse_reply_err(req, i ? EINVAL : ESTALE);
    inode_unref(i);
}

void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
    struct mount *m = mount_of(req);
    struct store_usage usage = {0};
    store_usage(m->config.store, &usage);
    struct statvfs st = {.f_bsize = 4096, .f_frsize = 4096, .f_namemax = NAME_MAX_BYTES};
    st.f_blocks = usage.bytes_total / 4096;
    st.f_bfree = st.f_bavail = usage.bytes_free / 4096;
    st.f_ffree = st.f_favail = usage.bytes_free / SMALL_ZNODE;
    st.f_files = mirror_count(m->mirror) + st.f_ffree;
    fuse_reply_statfs(req, &st);
}
