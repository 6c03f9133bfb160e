/* From the store's feed to notices for the kernel: what a commit means for what it has cached. */
#include <string.h>
#include "fs/fuse/edit.h"
#include "fs/fuse/name.h"
#include "fs/fuse/notify.h"
#include "fs/tree/path.h"

/* What one commit means for the kernel's caches. `edit` is the request of the kernel's own behind it, or NULL. */
struct feed {
    struct notifier *n;
    struct mount *m;
    const struct edit *edit;
    gen_t gen;
};

static bool known(const struct feed *f, uint64_t ino)
{
    return ino != 0 && inode_known(f->m->inodes, ino);
}

/* Has the kernel done this to the path by itself? */
static bool own(const struct feed *f, const char *path, enum request_type a, enum request_type b)
{
    const struct edit *e = f->edit;
    return e && e->kernel_knows && (e->type == a || e->type == b) && e->path && strcmp(e->path, path) == 0;
}

/* Whoever changed something sees it at once, whatever else it changed. */
static void attr(const struct feed *f, uint64_t ino)
{
    if (f->edit)
        notify_attr_now(f->n, ino);
}

static void tell_inode(const struct feed *f, uint64_t parent, uint64_t ino)
{
    attr(f, ino);
    notify_inode(f->n, parent, ino, f->gen);
}

static void tell_entry(const struct feed *f, uint64_t parent, const char *path)
{
    char buf[NAME_MAX_BYTES + 1];
    const char *name = name_encode(path_name(path), buf);
    if (name)
        notify_entry(f->n, parent, name, f->gen);
}

/* The number of a path's parent. */
static uint64_t parent_ino(const struct feed *f, const char *path)
{
    g_autofree char *parent = path_parent(path);
    mirror_rdlock(f->m->mirror);
    struct znode *n = mirror_find(f->m->mirror, parent);
    uint64_t ino = n ? znode_ino(n) : 0;
    mirror_unlock(f->m->mirror);
    return ino;
}

/* A file has become a directory: another number stands under its name. */
static void became_directory(const struct feed *f, const char *path, uint64_t old_ino)
{
    uint64_t parent = parent_ino(f, path);
    if (known(f, old_ino))
        tell_inode(f, parent, old_ino);
    if (known(f, parent)) {
        tell_entry(f, parent, path);
        tell_inode(f, 0, parent);
    }
}

static void created(const struct feed *f, const struct change *c)
{
    if (c->parent_old_ino != 0) {
        g_autofree char *parent = path_parent(c->path);
        became_directory(f, parent, c->parent_old_ino);
    }
    if (own(f, c->path, REQ_MKDIR, REQ_CREATE) || !known(f, c->parent_ino))
        return;
    tell_entry(f, c->parent_ino, c->path);
    tell_inode(f, 0, c->parent_ino);
}

static void deleted(const struct feed *f, const struct change *c)
{
    inode_unlink_temps(f->m->inodes, c->ino);
    if (own(f, c->path, REQ_UNLINK, REQ_RMDIR))
        return;
    if (own(f, c->path, REQ_RENAME, REQ_RENAME)) {
        /* The kernel has moved the name along with the inode, which is dead: see renamed(). */
        attr(f, c->ino);
        return;
    }
    if (known(f, c->ino + 1))
        notify_deleted(f->n, c->ino, c->ino + 1, NAME_DATA, f->gen);
    if (known(f, c->ino)) {
        char buf[NAME_MAX_BYTES + 1];
        const char *name = name_encode(path_name(c->path), buf);
        if (name)
            notify_deleted(f->n, c->parent_ino, c->ino, name, f->gen);
        attr(f, c->ino);
    }
    if (known(f, c->parent_ino))
        tell_inode(f, 0, c->parent_ino);
}

static void data_changed(const struct feed *f, const struct change *c)
{
    bool appears = c->was_null && c->data, disappears = !c->was_null && !c->data;
    if (c->old_ino != 0)
        became_directory(f, c->path, c->old_ino);
    if (known(f, c->ino))
        tell_inode(f, c->parent_ino, c->ino);
    if (appears && known(f, c->ino) && !own(f, c->path, REQ_SET, REQ_SET))
        notify_entry(f->n, c->ino, NAME_DATA, f->gen);
    if (!known(f, c->ino + 1))
        return;
    if (!disappears)
        tell_inode(f, c->ino, c->ino + 1);
    else if (!own(f, c->path, REQ_SET, REQ_SET))
        notify_deleted(f->n, c->ino, c->ino + 1, NAME_DATA, f->gen);
}

/* After a rename the kernel has the old inode under the new name; what stands there is another. */
static void renamed(const struct feed *f)
{
    uint64_t parent = parent_ino(f, f->edit->new_path);
    if (parent != 0)
        tell_entry(f, parent, f->edit->new_path);
}

void notify_commit(struct notifier *n, const struct commit *commit)
{
    struct mount *m = notifier_mount(n);
    struct feed f = {.n = n, .m = m, .edit = edit_of_commit(commit), .gen = commit->gen};
    if (f.edit && f.edit->mount != m)
        f.edit = NULL;
    for (size_t i = 0; i < commit->n_changes; i++) {
        const struct change *c = &commit->changes[i];
        if (c->type == NODE_CREATED)
            created(&f, c);
        else if (c->type == NODE_DELETED)
            deleted(&f, c);
        else
            data_changed(&f, c);
    }
    if (f.edit && f.edit->type == REQ_RENAME && f.edit->kernel_knows)
        renamed(&f);
}
