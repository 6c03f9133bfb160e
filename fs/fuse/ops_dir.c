/* Operations on directories: lookup, forget, readdir. */
#include <errno.h>
#include "fs/fuse/fusefs.h"
#include "fs/fuse/name.h"
#include "fs/fuse/notify.h"
#include "fs/fuse/virtual.h"

/* Cookies of a znode's directory: these three, then the children's inode numbers. A number is never used twice and
 * children come in the order of their numbers, so a listing goes on rightly whatever is created or removed meanwhile.
 */
enum { COOKIE_SELF = 1, COOKIE_PARENT, COOKIE_DATA };

static void lookup_virtual(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct mount *m = mount_of(req);
    struct inode *dir = inode_get(m->inodes, parent);
    if (dir && dir->type == INODE_VIRTUAL)
        virtual_lookup(req, dir, name);
    else
        virtual_lookup_root(req);
    inode_unref(dir);
}

/* Looks up the inode of what has been found, if it is still there. */
static struct inode *enter(struct mount *m, const struct place *p)
{
    struct inode *i = NULL;
    mirror_rdlock(m->mirror);
    if (!znode_removed(p->node) && (p->type == PLACE_NODE || znode_data(p->node)))
        i = inode_lookup_node(m->inodes, p->node, p->type == PLACE_DATA ? INODE_DATA : INODE_NODE, p->path);
    mirror_unlock(m->mirror);
    return i;
}

static void lookup_node(fuse_req_t req, const struct place *p)
{
    struct inode *i = p->exists ? enter(mount_of(req), p) : NULL;
    if (i)
        reply_inode(req, i, LONG_TIMEOUT);
    else
        reply_no_entry(req, true);
    inode_unref(i);
}

/* Answers with an inode that is dead to all others. */
static void reply_dying(fuse_req_t req, struct inode *i)
{
    struct mount *m = mount_of(req);
    struct fuse_entry_param e = {.ino = i->ino, .entry_timeout = LONG_TIMEOUT};
    mirror_rdlock(m->mirror);
    attr_of_node(m, i, i->node, &e.attr);
    mirror_unlock(m->mirror);
    if (fuse_reply_entry(req, &e) != 0)
        inode_forget(m->inodes, i->ino, 1);
}

void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct mount *m = mount_of(req);
    struct inode *dying = notify_find_dying(m->notifier, fuse_req_ctx(req)->pid, parent, name);
    if (dying) {
        reply_dying(req, dying);
        inode_unref(dying);
        return;
    }
    struct place p;
    const char *why;
    int err = place_find(m, parent, name, &p, &why);
    if (err != 0) {
        /* The name of nothing: what makes it is told why it cannot. */
        fuse_reply_err(req, err == EINVAL ? ENOENT : err);
        return;
    }
    if (p.type == PLACE_VIRTUAL) {
        lookup_virtual(req, parent, name);
    } else if (p.type == PLACE_TEMP) {
        inode_lookup_again(m->inodes, p.temp);
        reply_inode(req, p.temp, 0);
    } else {
        lookup_node(req, &p);
    }
    place_clear(&p);
}

void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t n)
{
    inode_forget(mount_of(req)->inodes, ino, n);
    fuse_reply_none(req);
}

void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
    for (size_t i = 0; i < count; i++)
        inode_forget(mount_of(req)->inodes, forgets[i].ino, forgets[i].nlookup);
    fuse_reply_none(req);
}

/* Directories are read without a handle. The kernel is told so once and opens them by itself from then on, with its
 * cache of the listing: FUSE_NO_OPENDIR_SUPPORT, Linux 5.1 (so `find` asks nothing where nothing has changed). */
void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    fuse_reply_err(req, ENOSYS);
}

void op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
    fuse_reply_err(req, 0); /* what has been acknowledged is durable */
}

/* ---- listing ---- */

struct listing {
    fuse_req_t req;
    struct mount *m;
    bool plus;
    char *buf;
    size_t size, used;
    GArray *entered; /* uint64_t: numbers that have been given one lookup more */
};

static size_t entry_size(const struct listing *l, const char *name)
{
    return l->plus ? fuse_add_direntry_plus(l->req, NULL, 0, name, NULL, 0)
                   : fuse_add_direntry(l->req, NULL, 0, name, NULL, 0);
}

/* Adds an entry for which there is room. */
static void add(struct listing *l, const char *name, const struct fuse_entry_param *e, uint64_t cookie)
{
    char *at = l->buf + l->used;
    size_t left = l->size - l->used;
    l->used += l->plus ? fuse_add_direntry_plus(l->req, at, left, name, e, (off_t)cookie)
                       : fuse_add_direntry(l->req, at, left, name, &e->attr, (off_t)cookie);
}

/* `.` and `..`: the kernel takes no inode from them. */
static bool add_dots(struct listing *l, const char *name, uint64_t ino, uint64_t cookie)
{
    if (entry_size(l, name) > l->size - l->used)
        return false;
    struct fuse_entry_param e = {.attr.st_ino = ino, .attr.st_mode = S_IFDIR};
    add(l, name, &e, cookie);
    return true;
}

/* False: no room. */
static bool add_node(
        struct listing *l, struct znode *n, enum inode_type type, const char *name, const char *path, uint64_t cookie)
{
    if (entry_size(l, name) > l->size - l->used)
        return false;
    struct fuse_entry_param e = {.attr_timeout = LONG_TIMEOUT, .entry_timeout = LONG_TIMEOUT};
    if (l->plus) {
        struct inode *i = inode_lookup_node(l->m->inodes, n, type, path);
        e.ino = i->ino;
        attr_of_node(l->m, i, n, &e.attr);
        g_array_append_val(l->entered, i->ino);
        inode_unref(i);
    } else {
        e.attr.st_ino = znode_ino(n) + (type == INODE_DATA);
        e.attr.st_mode = type == INODE_NODE && znode_is_directory(n) ? S_IFDIR : S_IFREG;
    }
    add(l, name, &e, cookie);
    return true;
}

static void add_children(struct listing *l, struct znode *dir, const char *path, uint64_t after)
{
    char buf[NAME_MAX_BYTES + 1];
    g_autoptr(GString) child_path = g_string_new(path);
    if (child_path->len > 1)
        g_string_append_c(child_path, '/');
    size_t prefix = child_path->len;
    for (struct znode *n = znode_next_child(dir, after); n; n = znode_next_child(dir, znode_ino(n))) {
        const char *name = name_encode(znode_name(n), buf);
        if (!name)
            continue;
        g_string_truncate(child_path, prefix);
        g_string_append(child_path, znode_name(n));
        if (!add_node(l, n, INODE_NODE, name, child_path->str, znode_ino(n)))
            return;
    }
}

/* Under the mirror's read lock. */
static void fill(struct listing *l, struct znode *dir, uint64_t cookie)
{
    g_autofree char *path = znode_path(dir);
    struct znode *parent = znode_parent(dir);
    if (cookie < COOKIE_SELF && !add_dots(l, ".", znode_ino(dir), COOKIE_SELF))
        return;
    if (cookie < COOKIE_PARENT && !add_dots(l, "..", znode_ino(parent ? parent : dir), COOKIE_PARENT))
        return;
    if (cookie < COOKIE_DATA && znode_data(dir) && !add_node(l, dir, INODE_DATA, NAME_DATA, path, COOKIE_DATA))
        return;
    add_children(l, dir, path, cookie > COOKIE_DATA ? cookie : 0);
}

static void list_node(fuse_req_t req, struct inode *dir, size_t size, off_t off, bool plus)
{
    struct listing l = {.req = req, .m = mount_of(req), .plus = plus, .buf = g_malloc(size), .size = size};
    l.entered = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    mirror_rdlock(l.m->mirror);
    if (inode_alive(dir) && znode_is_directory(dir->node))
        fill(&l, dir->node, (uint64_t)MAX(off, 0));
    mirror_unlock(l.m->mirror);
    if (fuse_reply_buf(req, l.buf, l.used) != 0)
        for (guint i = 0; i < l.entered->len; i++)
            inode_forget(l.m->inodes, g_array_index(l.entered, uint64_t, i), 1);
    g_array_unref(l.entered);
    g_free(l.buf);
}

static void list(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, bool plus)
{
    struct inode *i = inode_get(mount_of(req)->inodes, ino);
    if (!i)
        fuse_reply_err(req, ESTALE);
    else if (i->type == INODE_NODE)
        list_node(req, i, MIN(size, 1u << 20), off, plus);
    else if (i->type == INODE_VIRTUAL)
        virtual_readdir(req, i, MIN(size, 1u << 20), MAX(off, 0), plus);
    else
        fuse_reply_buf(req, NULL, 0);
    inode_unref(i);
}

void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
    list(req, ino, size, off, false);
}

void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
    list(req, ino, size, off, true);
}
