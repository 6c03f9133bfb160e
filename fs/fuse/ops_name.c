/* Operations on names: mkdir, mknod, unlink, rmdir, rename. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "fs/fuse/edit.h"
#include "fs/fuse/write.h"

/* Finds the place, or answers with what is wrong. */
static bool find(fuse_req_t req, fuse_ino_t parent, const char *name, struct place *p)
{
    const char *why;
    int err = place_find(mount_of(req), parent, name, p, &why);
    if (err == 0)
        return true;
    refuse_name(req, err, parent, name, why);
    return false;
}

/* ---- making ---- */

static void reply_made(struct edit *e, int err)
{
    struct mount *m = e->mount;
    struct inode *i = NULL;
    if (err == 0)
        i = enter_made(m, e->result_path, e->path, e->type == REQ_MKDIR);
    if (i)
        reply_inode(e->req, i, strcmp(e->result_path, e->path) == 0 ? LONG_TIMEOUT : 0);
    else
        fuse_reply_err(e->req, err);
    inode_unref(i);
    edit_free(e);
}

void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    struct place p;
    if (!find(req, parent, name, &p))
        return;
    if (p.exists) {
        fuse_reply_err(req, EEXIST);
    } else if (p.type == PLACE_VIRTUAL) {
        fuse_reply_err(req, EPERM);
    } else if (p.type == PLACE_DATA) {
        refuse(req, EINVAL, p.path, ".data is the file with the directory's own data");
    } else {
        struct edit *e = edit_new(req, REQ_MKDIR, p.path, reply_made);
        e->kernel_knows = true;
        edit_submit(e);
    }
    place_clear(&p);
}

void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device)
{
    struct mount *m = mount_of(req);
    struct place p;
    if (!S_ISREG(mode)) {
        fuse_reply_err(req, EPERM);
        return;
    }
    if (!find(req, parent, name, &p))
        return;
    if (p.exists) {
        fuse_reply_err(req, EEXIST);
    } else if (p.type != PLACE_NODE) {
        fuse_reply_err(req, EPERM);
    } else if (!m->raw && must_be_staged(m, p.path)) {
        refuse(req, EINVAL, p.path, "it cannot be created without a value");
    } else {
        struct edit *e = edit_new(req, REQ_CREATE, p.path, reply_made);
        e->value = bytes_new("", 0);
        e->kernel_knows = true;
        edit_submit(e);
    }
    place_clear(&p);
}

void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
    fuse_reply_err(req, EPERM);
}

void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
    fuse_reply_err(req, EPERM);
}

/* ---- removing ---- */

void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct place p;
    if (!find(req, parent, name, &p))
        return;
    if (p.type == PLACE_VIRTUAL) {
        fuse_reply_err(req, EPERM);
    } else if (!p.exists) {
        fuse_reply_err(req, ENOENT);
    } else if (p.type == PLACE_TEMP) {
        inode_unlink_temp(mount_of(req)->inodes, p.temp);
        fuse_reply_err(req, 0);
    } else if (p.directory) {
        fuse_reply_err(req, EISDIR);
    } else {
        /* Without its `.data` a node has null data. */
        struct edit *e = edit_new(req, p.type == PLACE_DATA ? REQ_SET : REQ_UNLINK, p.path, edit_reply_err);
        e->kernel_knows = true;
        edit_submit(e);
    }
    place_clear(&p);
}

void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct place p;
    if (!find(req, parent, name, &p))
        return;
    if (p.type == PLACE_VIRTUAL) {
        fuse_reply_err(req, EPERM);
    } else if (!p.exists) {
        fuse_reply_err(req, ENOENT);
    } else if (!p.directory) {
        fuse_reply_err(req, ENOTDIR);
    } else {
        struct edit *e = edit_new(req, REQ_RMDIR, p.path, edit_reply_err);
        e->kernel_knows = true;
        edit_submit(e);
    }
    place_clear(&p);
}

/* ---- renaming ---- */

/* The private file has become a node's value, and its name is gone with it. */
static void temp_renamed(struct edit *e, int err)
{
    if (err == 0)
        inode_unlink_temp(e->mount->inodes, e->inode);
    else
        inode_take_temp(e->mount->inodes, e->inode, false);
    edit_reply_err(e, err);
}

/* A private file over a name: one change of that node, which shows the errors of its value. */
static void rename_temp(fuse_req_t req, const struct place *from, const struct place *to, bool replace)
{
    const struct temp *t = from->temp->temp;
    struct edit *e;
    if (to->type == PLACE_DATA) {
        e = edit_new(req, REQ_SET, to->path, temp_renamed);
    } else {
        e = edit_new(req, REQ_RENAME, NULL, temp_renamed);
        e->new_path = g_strdup(to->path);
        e->replace = replace;
    }
    e->value = bytes_new(staging_data(t->content), staging_len(t->content));
    e->inode = inode_ref(from->temp);
    inode_take_temp(e->mount->inodes, e->inode, true);
    e->kernel_knows = to->type != PLACE_DATA;
    edit_submit(e);
}

static void rename_node(fuse_req_t req, const struct place *from, const struct place *to, bool replace)
{
    struct edit *e = edit_new(req, REQ_RENAME, from->path, edit_reply_err);
    e->new_path = g_strdup(to->path);
    e->replace = replace;
    e->kernel_knows = true;
    edit_submit(e);
}

static void rename_found(fuse_req_t req, struct place *from, struct place *to, bool replace)
{
    struct mount *m = mount_of(req);
    if (from->type == PLACE_VIRTUAL || to->type == PLACE_VIRTUAL) {
        fuse_reply_err(req, EPERM);
    } else if (!from->exists) {
        fuse_reply_err(req, ENOENT);
    } else if (from->directory) {
        refuse(req, EPERM, from->path, "a directory cannot be renamed: ZooKeeper has no such operation");
    } else if (to->exists && !replace) {
        fuse_reply_err(req, EEXIST);
    } else if (to->directory) {
        fuse_reply_err(req, EISDIR);
    } else if (from->type == PLACE_DATA || (from->type == PLACE_NODE && to->type == PLACE_DATA)) {
        refuse(req, EPERM, from->path, "a directory's own data does not move: copy it");
    } else {
        if (to->type == PLACE_TEMP)
            inode_unlink_temp(m->inodes, to->temp);
        if (from->type == PLACE_TEMP)
            rename_temp(req, from, to, replace);
        else
            rename_node(req, from, to, replace);
    }
}

void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent, const char *new_name,
        unsigned flags)
{
    struct place from, to;
    if (flags & ~RENAME_NOREPLACE) {
        fuse_reply_err(req, EINVAL);
        return;
    }
    if (!find(req, parent, name, &from))
        return;
    if (find(req, new_parent, new_name, &to)) {
        rename_found(req, &from, &to, !(flags & RENAME_NOREPLACE));
        place_clear(&to);
    }
    place_clear(&from);
}
