/* Extended attributes: the znode's path and Stat, read-only. */
#include <errno.h>
#include <string.h>
#include <sys/xattr.h>
#include "fs/fuse/write.h"

/* A znode's stat as read-only extended attributes, in decimal; all other namespaces are not supported, which spares the
 * kernel and ls(1) from asking again. */

#define PREFIX "user.zk."

static int64_t data_length(const struct znode *n)
{
    return znode_data(n) ? znode_data(n)->len : 0;
}

/* False: there is no such attribute. */
static bool get_number(const struct znode *n, const char *name, int64_t *ret)
{
    const struct zstat *z = znode_stat(n);
    const struct {
        const char *name;
        int64_t value;
    } attributes[] = {
            {"version", z->version},
            {"cversion", z->cversion},
            {"czxid", z->czxid},
            {"mzxid", z->mzxid},
            {"pzxid", z->pzxid},
            {"ctime", z->ctime},
            {"mtime", z->mtime},
            {"ephemeralOwner", z->ephemeral_owner},
            {"dataLength", data_length(n)},
            {"numChildren", znode_num_children(n)},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(attributes); i++) {
        if (strcmp(attributes[i].name, name) == 0) {
            *ret = attributes[i].value;
            return true;
        }
    }
    return false;
}

static const char names[] = PREFIX "version\0" PREFIX "cversion\0" PREFIX "czxid\0" PREFIX "mzxid\0" PREFIX
                                   "pzxid\0" PREFIX "ctime\0" PREFIX "mtime\0" PREFIX "ephemeralOwner\0" PREFIX
                                   "dataLength\0" PREFIX "numChildren\0" PREFIX "path";

static void reply_value(fuse_req_t req, const char *value, size_t len, size_t size)
{
    if (size == 0)
        fuse_reply_xattr(req, len);
    else if (size < len)
        fuse_reply_err(req, ERANGE);
    else
        fuse_reply_buf(req, value, len);
}

/* The value of `user.zk.<name>`, to be freed, or NULL. */
static char *get_value(struct mount *m, struct inode *i, const char *name)
{
    if (i->type == INODE_TEMP || i->type == INODE_VIRTUAL)
        return NULL;
    struct znode *n = inode_node(m->inodes, i);
    char *value = NULL;
    int64_t number;
    if (strcmp(name, "path") == 0) {
        value = n ? znode_path(n) : g_strdup(i->staged->path);
    } else if (n) {
        mirror_rdlock(m->mirror);
        if (get_number(n, name, &number))
            value = g_strdup_printf("%" G_GINT64_FORMAT, number);
        mirror_unlock(m->mirror);
    }
    znode_unref(n);
    return value;
}

void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
    if (!g_str_has_prefix(name, "user.")) {
        fuse_reply_err(req, EOPNOTSUPP);
        return;
    }
    struct mount *m = mount_of(req);
    struct inode *i = inode_get(m->inodes, ino);
    g_autofree char *value = i && g_str_has_prefix(name, PREFIX) ? get_value(m, i, name + strlen(PREFIX)) : NULL;
    if (value)
        reply_value(req, value, strlen(value), size);
    else
        fuse_reply_err(req, i ? ENODATA : ESTALE);
    inode_unref(i);
}

void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
    struct mount *m = mount_of(req);
    struct inode *i = inode_get(m->inodes, ino);
    struct znode *n = i && i->type != INODE_TEMP && i->type != INODE_VIRTUAL ? inode_node(m->inodes, i) : NULL;
    if (!i)
        fuse_reply_err(req, ESTALE);
    else
        reply_value(req, names, n ? sizeof names : 0, size);
    znode_unref(n);
    inode_unref(i);
}

void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size, int flags)
{
    fuse_reply_err(req, g_str_has_prefix(name, PREFIX) ? EPERM : EOPNOTSUPP);
}

void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
    fuse_reply_err(req, g_str_has_prefix(name, PREFIX) ? EPERM : EOPNOTSUPP);
}
