/* What a name in a directory means: a znode, its data, a private file, something of `.state`. */
#include <errno.h>
#include <string.h>
#include "fs/fuse/fusefs.h"
#include "fs/fuse/name.h"
#include "fs/fuse/virtual.h"
#include "fs/tree/path.h"

void place_clear(struct place *p)
{
    g_free(p->path);
    znode_unref(p->node);
    inode_unref(p->temp);
    *p = (struct place){0};
}

/* A name in a znode's directory, under the mirror's read lock. */
static int find_in_node(
        struct mount *m, const struct inode *dir, const char *name, struct place *p, const char **ret_why)
{
    char buf[NAME_MAX_BYTES + 1];
    if (!inode_alive(dir) || !znode_is_directory(dir->node))
        return ESTALE;
    if (strcmp(name, NAME_DATA) == 0) {
        p->type = PLACE_DATA;
        p->node = znode_ref(dir->node);
        p->path = znode_path(dir->node);
        p->exists = znode_data(dir->node);
        return 0;
    }
    const char *znode_name = name_decode(name, buf);
    if (!znode_name) {
        *ret_why = ".state has a meaning of its own: the znode of that name is %2Estate";
        return EINVAL;
    }
    if (!path_valid_name(znode_name)) {
        *ret_why = "no znode can have that name";
        return EINVAL;
    }
    struct znode *n = znode_child(m->mirror, dir->node, znode_name);
    g_autofree char *parent = znode_path(dir->node);
    p->type = PLACE_NODE;
    p->path = path_join(parent, znode_name);
    p->exists = n;
    p->directory = n && znode_is_directory(n);
    p->node = n ? znode_ref(n) : NULL;
    return 0;
}

int place_find(struct mount *m, fuse_ino_t parent, const char *name, struct place *ret, const char **ret_why)
{
    struct place p = {0};
    int err;
    *ret_why = NULL;
    if (strlen(name) > NAME_MAX_BYTES)
        return ENAMETOOLONG;
    struct inode *dir = inode_get(m->inodes, parent);
    if (!dir) {
        err = ESTALE;
    } else if (dir->type == INODE_VIRTUAL) {
        p.type = PLACE_VIRTUAL;
        p.path = path_join(dir->virtual_file->path, name);
        err = dir->virtual_file->kind == VIRTUAL_DIRECTORY ? 0 : ENOTDIR;
    } else if (dir->type != INODE_NODE) {
        err = dir->type == INODE_STAGED && dir->staged->directory ? ESTALE : ENOTDIR;
    } else if (parent == FUSE_ROOT_ID && strcmp(name, NAME_STATE) == 0) {
        p.type = PLACE_VIRTUAL;
        p.path = g_strdup(STATE_ROOT);
        err = 0;
    } else if ((p.temp = inode_find_temp(m->inodes, parent, name))) {
        char buf[NAME_MAX_BYTES + 1];
        g_autofree char *path = znode_path(dir->node);
        p.type = PLACE_TEMP;
        p.exists = true;
        p.path = path_join(path, name_decode(name, buf));
        err = 0;
    } else {
        mirror_rdlock(m->mirror);
        err = find_in_node(m, dir, name, &p, ret_why);
        mirror_unlock(m->mirror);
    }
    inode_unref(dir);
    if (err == 0)
        *ret = p;
    else
        place_clear(&p);
    return err;
}

void refuse_name(fuse_req_t req, int err, fuse_ino_t parent, const char *name, const char *why)
{
    if (!why) {
        fuse_reply_err(req, err);
        return;
    }
    struct inode *dir = inode_get(mount_of(req)->inodes, parent);
    g_autofree char *dir_path = dir && dir->type == INODE_NODE ? znode_path(dir->node) : g_strdup("");
    g_autofree char *path = path_join(dir_path, name);
    inode_unref(dir);
    refuse(req, err, path, "%s", why);
}
