/* What stat(2) shows, and what `cat` prints. */
#include "fs/fuse/fusefs.h"

#include <errno.h>
#include <string.h>

#define BLOCK_SIZE 131072 /* what cp and cat read and write at a time */

/* Within a millisecond the transaction's number tells two changes apart: make, tail and the kernel's own listing cache
 * go by this time. */
static struct timespec time_of(int64_t ms, int64_t zxid)
{
    return (struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 + zxid % 1000000};
}

static void set_times(struct stat *st, struct timespec time)
{
    st->st_atim = st->st_mtim = st->st_ctim = time;
}

static bool gets_newline(const struct inode *i, const struct bytes *data)
{
    return i->format != FORMAT_OPAQUE && data->len > 0 && data->data[data->len - 1] != '\n';
}

struct bytes *shown_value(const struct inode *i, const struct znode *n)
{
    struct bytes *data = znode_data(n);
    if (!data)
        return bytes_new("", 0);
    if (!gets_newline(i, data))
        return bytes_ref(data);
    g_autoptr(GString) text = g_string_new_len(data->data, data->len);
    g_string_append_c(text, '\n');
    return bytes_new(text->str, text->len);
}

static void set_size(struct stat *st, size_t size)
{
    st->st_size = (off_t)size;
    st->st_blocks = (blkcnt_t)((size + 511) / 512);
}

static void begin(const struct mount *m, const struct inode *i, mode_t mode, struct stat *st)
{
    memset(st, 0, sizeof *st);
    st->st_ino = i->ino;
    st->st_mode = mode;
    st->st_nlink = 1;
    st->st_uid = m->uid;
    st->st_gid = m->gid;
    st->st_blksize = BLOCK_SIZE;
}

static void file_of_node(const struct mount *m, const struct inode *i, const struct znode *n, struct stat *st)
{
    const struct zstat *z = znode_stat(n);
    const struct bytes *data = znode_data(n);
    begin(m, i, S_IFREG | (i->sensitive ? 0600 : 0644), st);
    set_size(st, data ? data->len + gets_newline(i, data) : 0);
    set_times(st, time_of(z->mtime, z->mzxid));
}

static void directory_of_node(const struct mount *m, const struct inode *i, const struct znode *n, struct stat *st)
{
    const struct zstat *z = znode_stat(n);
    begin(m, i, S_IFDIR | (i->sensitive ? 0700 : 0755), st);
    st->st_nlink = 2 + znode_num_directories(n);
    set_times(st, time_of(znode_changed_ms(n), z->mzxid + z->pzxid));
}

void attr_of_node(const struct mount *m, const struct inode *i, const struct znode *n, struct stat *ret)
{
    /* An inode that is no longer its znode's number stays the file it was. */
    if (i->type == INODE_NODE && znode_is_directory(n) && i->ino == znode_ino(n))
        directory_of_node(m, i, n, ret);
    else
        file_of_node(m, i, n, ret);
    if (znode_removed(n))
        ret->st_nlink = 0;
}

static void attr_of_staged(struct mount *m, struct inode *i, struct stat *st)
{
    struct znode *n = inode_node(m->inodes, i);
    if (n && !i->staged->directory) {
        mirror_rdlock(m->mirror);
        file_of_node(m, i, n, st);
        st->st_ino = znode_ino(n) + i->staged->data;
        st->st_nlink = !znode_removed(n);
        mirror_unlock(m->mirror);
    } else {
        begin(m, i, i->staged->directory ? S_IFDIR | 0755 : S_IFREG | (i->sensitive ? 0600 : 0644), st);
        set_size(st, inode_get_staged_size(m->inodes, i));
        clock_gettime(CLOCK_REALTIME, &st->st_mtim);
        set_times(st, st->st_mtim);
    }
    znode_unref(n);
}

static void attr_of_temp(const struct mount *m, struct inode *i, struct stat *st)
{
    const struct temp *t = i->temp;
    begin(m, i, S_IFREG | t->mode, st);
    st->st_uid = t->uid;
    st->st_gid = t->gid;
    st->st_nlink = inode_temp_is_linked(m->inodes, i);
    st->st_atim = t->atime;
    st->st_mtim = t->mtime;
    st->st_ctim = t->ctime;
    set_size(st, staging_len(t->content));
}

static void attr_of_virtual(const struct mount *m, const struct inode *i, struct stat *st)
{
    const struct virtual_file *v = i->virtual_file;
    mode_t mode = v->kind == VIRTUAL_DIRECTORY  ? S_IFDIR | 0555
                  : v->kind == VIRTUAL_LINK     ? S_IFLNK | 0777
                  : v->kind == VIRTUAL_WRITABLE ? S_IFREG | 0644
                                                : S_IFREG | 0444;
    begin(m, i, mode, st);
    st->st_ino = v->shown_ino;
    st->st_nlink = v->kind == VIRTUAL_DIRECTORY ? 2 : 1;
    set_times(st, m->started);
    if (v->kind == VIRTUAL_DIRECTORY) { /* never the time of the kernel's cached listing: it is always asked for anew */
        clock_gettime(CLOCK_REALTIME, &st->st_mtim);
        set_times(st, st->st_mtim);
    }
    if (v->kind == VIRTUAL_JOURNAL) {
        struct journal_extent now = journal_extent(v->journal);
        set_size(st, v->header_len + (size_t)(now.end - v->view.first));
        if (now.newest_ms > 0)
            set_times(st, time_of(now.newest_ms, 0));
    }
}

/* Nobody says who has a directory open, and one that is read while it goes is no error. */
static bool was_directory(const struct inode *i)
{
    return i->type == INODE_NODE && i->ino == znode_ino(i->node) && znode_is_directory(i->node);
}

int attr_get(struct mount *m, struct inode *i, struct stat *ret, double *ret_timeout)
{
    int err = 0;
    *ret_timeout = 0;
    switch (i->type) {
    case INODE_NODE:
    case INODE_DATA:
        mirror_rdlock(m->mirror);
        if (inode_alive(i))
            *ret_timeout = LONG_TIMEOUT;
        else if (!inode_is_open(m->inodes, i) && !was_directory(i))
            err = ESTALE;
        if (err == 0)
            attr_of_node(m, i, i->node, ret);
        mirror_unlock(m->mirror);
        if (m->raw && inode_is_unsettled(m->inodes, i))
            *ret_timeout = 0;
        break;
    case INODE_STAGED:
        attr_of_staged(m, i, ret);
        break;
    case INODE_TEMP:
        if (inode_temp_is_replaced(m->inodes, i) && !inode_is_open(m->inodes, i))
            err = ESTALE;
        else
            attr_of_temp(m, i, ret);
        break;
    case INODE_VIRTUAL:
        attr_of_virtual(m, i, ret);
        break;
    }
    return err;
}
