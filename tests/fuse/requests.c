#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/fuse/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "fs/tree/path.h"

static struct answer *request(
        struct kernel *k, uint32_t opcode, uint64_t ino, const void *a, size_t a_len, const void *b, size_t b_len)
{
    return kernel_wait(k, kernel_send(k, opcode, ino, a, a_len, b, b_len));
}

/* ---- requests ---- */

static int finish(struct answer *a, void *ret, size_t len)
{
    int err = a->err;
    if (err == 0 && ret) {
        assert_true(a->len >= len);
        memcpy(ret, a->body, len);
    }
    g_free(a);
    return err;
}

static size_t text_len(const char *name)
{
    return strlen(name) + 1;
}

int k_lookup(struct kernel *k, uint64_t parent, const char *name, struct fuse_entry_out *ret)
{
    struct fuse_entry_out out = {0};
    int err = finish(request(k, FUSE_LOOKUP, parent, name, text_len(name), NULL, 0), &out, sizeof out);
    if (err == 0 && out.nodeid == 0)
        err = ENOENT;
    if (ret)
        *ret = out;
    return err;
}

uint64_t k_walk(struct kernel *k, const char *path)
{
    uint64_t ino = 1;
    g_auto(GStrv) names = g_strsplit(path, "/", -1);
    for (char **name = names; *name; name++) {
        struct fuse_entry_out e;
        if (!**name)
            continue;
        if (k_lookup(k, ino, *name, &e) != 0)
            fail_msg("%s is not there", path);
        ino = e.nodeid;
    }
    return ino;
}

void k_forget(struct kernel *k, uint64_t ino, uint64_t n)
{
    const struct fuse_forget_in in = {.nlookup = n};
    kernel_send(k, FUSE_FORGET, ino, &in, sizeof in, NULL, 0);
}

int k_getattr(struct kernel *k, uint64_t ino, struct fuse_attr_out *ret)
{
    const struct fuse_getattr_in in = {0};
    return finish(request(k, FUSE_GETATTR, ino, &in, sizeof in, NULL, 0), ret, sizeof *ret);
}

int k_mkdir(struct kernel *k, uint64_t parent, const char *name, struct fuse_entry_out *ret)
{
    const struct fuse_mkdir_in in = {.mode = 0755};
    return finish(request(k, FUSE_MKDIR, parent, &in, sizeof in, name, text_len(name)), ret, sizeof *ret);
}

int k_unlink(struct kernel *k, uint64_t parent, const char *name)
{
    return finish(request(k, FUSE_UNLINK, parent, name, text_len(name), NULL, 0), NULL, 0);
}

int k_rmdir(struct kernel *k, uint64_t parent, const char *name)
{
    return finish(request(k, FUSE_RMDIR, parent, name, text_len(name), NULL, 0), NULL, 0);
}

int k_rename(
        struct kernel *k, uint64_t parent, const char *name, uint64_t new_parent, const char *new_name, unsigned flags)
{
    const struct fuse_rename2_in in = {.newdir = new_parent, .flags = flags};
    g_autofree char *names = g_malloc(text_len(name) + text_len(new_name));
    memcpy(names, name, text_len(name));
    memcpy(names + text_len(name), new_name, text_len(new_name));
    return finish(
            request(k, FUSE_RENAME2, parent, &in, sizeof in, names, text_len(name) + text_len(new_name)), NULL, 0);
}

int k_create(struct kernel *k, uint64_t parent, const char *name, int flags, unsigned mode, struct fuse_entry_out *ret,
        uint64_t *ret_fh)
{
    const struct fuse_create_in in = {.flags = (uint32_t)(flags | O_CREAT), .mode = S_IFREG | mode};
    struct {
        struct fuse_entry_out entry;
        struct fuse_open_out open;
    } out;
    int err = finish(request(k, FUSE_CREATE, parent, &in, sizeof in, name, text_len(name)), &out, sizeof out);
    if (err == 0) {
        assert_true(out.open.open_flags & FOPEN_DIRECT_IO);
        *ret = out.entry;
        *ret_fh = out.open.fh;
    }
    return err;
}

static int open_with(struct kernel *k, uint32_t opcode, uint64_t ino, int flags, uint64_t *ret_fh)
{
    const struct fuse_open_in in = {.flags = (uint32_t)flags};
    struct fuse_open_out out = {0};
    int err = finish(request(k, opcode, ino, &in, sizeof in, NULL, 0), &out, sizeof out);
    *ret_fh = out.fh;
    return err;
}

int k_open(struct kernel *k, uint64_t ino, int flags, uint64_t *ret_fh)
{
    return open_with(k, FUSE_OPEN, ino, flags, ret_fh);
}

int k_opendir(struct kernel *k, uint64_t ino, uint64_t *ret_fh)
{
    /* "Not needed": the kernel opens directories by itself from then on. */
    int err = open_with(k, FUSE_OPENDIR, ino, O_RDONLY | O_DIRECTORY, ret_fh);
    return err == ENOSYS ? 0 : err;
}

ssize_t k_read(struct kernel *k, uint64_t ino, uint64_t fh, char *buf, size_t size, uint64_t off)
{
    const struct fuse_read_in in = {.fh = fh, .offset = off, .size = (uint32_t)size};
    g_autofree struct answer *a = request(k, FUSE_READ, ino, &in, sizeof in, NULL, 0);
    if (a->err != 0)
        return -a->err;
    assert_true(a->len <= size);
    memcpy(buf, a->body, a->len);
    return (ssize_t)a->len;
}

ssize_t k_write(struct kernel *k, uint64_t ino, uint64_t fh, const char *text, uint64_t off)
{
    const struct fuse_write_in in = {.fh = fh, .offset = off, .size = (uint32_t)strlen(text)};
    struct fuse_write_out out = {0};
    int err = finish(request(k, FUSE_WRITE, ino, &in, sizeof in, text, strlen(text)), &out, sizeof out);
    return err != 0 ? -err : (ssize_t)out.size;
}

int k_flush_as(struct kernel *k, pid_t pid, uint64_t ino, uint64_t fh)
{
    const struct fuse_flush_in in = {.fh = fh};
    return finish(kernel_wait(k, kernel_send_as(k, pid, FUSE_FLUSH, ino, &in, sizeof in, NULL, 0)), NULL, 0);
}

int k_flush(struct kernel *k, uint64_t ino, uint64_t fh)
{
    return k_flush_as(k, getpid(), ino, fh);
}

int k_release(struct kernel *k, uint64_t ino, uint64_t fh)
{
    const struct fuse_release_in in = {.fh = fh};
    return finish(request(k, FUSE_RELEASE, ino, &in, sizeof in, NULL, 0), NULL, 0);
}

int k_truncate(struct kernel *k, uint64_t ino, uint64_t fh, uint64_t size)
{
    const struct fuse_setattr_in in = {.valid = FATTR_SIZE | (fh ? FATTR_FH : 0), .fh = fh, .size = size};
    return finish(request(k, FUSE_SETATTR, ino, &in, sizeof in, NULL, 0), NULL, 0);
}

int k_touch(struct kernel *k, uint64_t ino)
{
    const struct fuse_setattr_in in = {.valid = FATTR_ATIME | FATTR_MTIME | FATTR_ATIME_NOW | FATTR_MTIME_NOW};
    return finish(request(k, FUSE_SETATTR, ino, &in, sizeof in, NULL, 0), NULL, 0);
}

static int by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

char *k_list(struct kernel *k, uint64_t ino)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    uint64_t fh, off = 0;
    assert_int_equal(k_opendir(k, ino, &fh), 0);
    for (;;) {
        /* small pieces, so that the cookies are put to use */
        const struct fuse_read_in in = {.fh = fh, .offset = off, .size = 512};
        g_autofree struct answer *a = request(k, FUSE_READDIRPLUS, ino, &in, sizeof in, NULL, 0);
        assert_int_equal(a->err, 0);
        if (a->len == 0)
            break;
        for (size_t at = 0; at < a->len;) {
            const struct fuse_direntplus *d = (const void *)(a->body + at);
            g_autofree char *name = g_strndup(d->dirent.name, d->dirent.namelen);
            if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
                g_ptr_array_add(names, g_steal_pointer(&name));
            off = d->dirent.off;
            at += FUSE_DIRENTPLUS_SIZE(d);
        }
    }
    const struct fuse_release_in in = {.fh = fh};
    assert_int_equal(finish(request(k, FUSE_RELEASEDIR, ino, &in, sizeof in, NULL, 0), NULL, 0), 0);
    g_ptr_array_sort(names, by_name);
    g_ptr_array_add(names, NULL);
    return g_strjoinv(" ", (char **)names->pdata);
}

char *k_xattr(struct kernel *k, uint64_t ino, const char *name)
{
    const struct fuse_getxattr_in in = {.size = 1000};
    g_autofree struct answer *a = request(k, FUSE_GETXATTR, ino, &in, sizeof in, name, text_len(name));
    return a->err != 0 ? NULL : g_strndup(a->body, a->len);
}

/* ---- helpers ---- */

static uint64_t walk_parent(struct kernel *k, const char *path)
{
    g_autofree char *parent = path_parent(path);
    return k_walk(k, parent);
}

static int open_for(struct kernel *k, const char *path, int flags, uint64_t *ret_ino, uint64_t *ret_fh)
{
    uint64_t parent = walk_parent(k, path);
    struct fuse_entry_out e;
    int err = k_lookup(k, parent, path_name(path), &e);
    if (err == ENOENT)
        err = k_create(k, parent, path_name(path), flags, 0644, &e, ret_fh);
    else if (err == 0)
        err = k_open(k, e.nodeid, flags, ret_fh);
    *ret_ino = e.nodeid;
    return err;
}

static int sh_open_write(struct kernel *k, const char *path, int flags, const char *text)
{
    uint64_t ino, fh;
    int err = open_for(k, path, O_WRONLY | flags, &ino, &fh);
    if (err != 0)
        return err;
    k_flush(k, ino, fh);
    ssize_t n = *text ? k_write(k, ino, fh, text, 0) : 0;
    err = n < 0 ? (int)-n : 0;
    int close_err = k_flush(k, ino, fh);
    k_release(k, ino, fh);
    return err ? err : close_err;
}

int sh_write(struct kernel *k, const char *path, const char *text)
{
    return sh_open_write(k, path, O_TRUNC, text);
}

int sh_append(struct kernel *k, const char *path, const char *text)
{
    return sh_open_write(k, path, O_APPEND, text);
}

char *sh_cat(struct kernel *k, const char *path)
{
    uint64_t parent = walk_parent(k, path), fh;
    struct fuse_entry_out e;
    if (k_lookup(k, parent, path_name(path), &e) != 0 || k_open(k, e.nodeid, O_RDONLY, &fh) != 0)
        return NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    char buf[100];
    ssize_t n;
    while ((n = k_read(k, e.nodeid, fh, buf, sizeof buf, text->len)) > 0)
        g_string_append_len(text, buf, n);
    assert_int_equal(n, 0);
    k_release(k, e.nodeid, fh);
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static void other_done(struct txn *txn, void *arg)
{
    struct kernel *k = arg;
    assert_int_equal(txn->rc, ZOK);
    settle_release(k->settle, txn->gen);
    txn_free(txn);
}

static void other_submit(struct kernel *k, struct txn *txn)
{
    txn->done = other_done;
    txn->arg = k;
    txn->gen = settle_hold_now(k->settle);
    store_submit(k->store, txn);
    kernel_commit(k);
}

void other_create(struct kernel *k, const char *path, const char *data)
{
    struct txn *txn = txn_new(TXN_INTERNAL);
    txn_create(txn, path, data ? bytes_from_string(data) : NULL, 0);
    other_submit(k, txn);
}

void other_set(struct kernel *k, const char *path, const char *data)
{
    struct txn *txn = txn_new(TXN_INTERNAL);
    txn_set(txn, path, data ? bytes_from_string(data) : NULL, -1);
    other_submit(k, txn);
}

void other_delete(struct kernel *k, const char *path)
{
    struct txn *txn = txn_new(TXN_INTERNAL);
    txn_delete(txn, path, -1);
    other_submit(k, txn);
}

char *stored(struct kernel *k, const char *path)
{
    struct bytes *data = NULL;
    if (mirror_get(k->mirror, path, &data, NULL) != ZOK)
        return NULL;
    char *text = data ? g_strndup(data->data, data->len) : g_strdup("");
    bytes_unref(data);
    return text;
}

int32_t stored_version(struct kernel *k, const char *path)
{
    struct zstat stat = {0};
    assert_int_equal(mirror_get(k->mirror, path, NULL, &stat), ZOK);
    return stat.version;
}

char *last_error(struct kernel *k)
{
    char buf[65536];
    uint64_t pos = 0;
    size_t n = journal_read(k->errors, &pos, buf, sizeof buf - 1);
    buf[n] = '\0';
    g_strchomp(buf);
    const char *newline = strrchr(buf, '\n');
    return g_strdup(newline ? newline + 1 : buf);
}

void assert_last_error(struct kernel *k, const char *text)
{
    g_autofree char *line = last_error(k);
    if (!strstr(line, text))
        fail_msg("the last error is '%s', want '%s'", line, text);
}

void assert_cat(struct kernel *k, const char *path, const char *text)
{
    g_autofree char *got = sh_cat(k, path);
    assert_non_null(got);
    assert_string_equal(got, text);
}
