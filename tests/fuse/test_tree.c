/* Names, directories, attributes, and what the kernel is told of changes that are not its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include "tests/fuse/kernel_fixture.h"

static void test_lookup(void **state)
{
    struct fuse_entry_out e;
    other_create(k, "/d", NULL);
    other_create(k, "/d/f", "abc");
    assert_int_equal(k_lookup(k, 1, "none", &e), ENOENT);
    assert_int_equal(e.nodeid, 0); /* negative, and to be kept */
    assert_true(e.entry_valid >= 3600);
    assert_int_equal(k_lookup(k, 1, "d", &e), 0);
    assert_true(S_ISDIR(e.attr.mode));
    assert_int_equal(e.attr.nlink, 2);
    assert_true(e.entry_valid >= 3600 && e.attr_valid >= 3600);
    uint64_t d = e.nodeid;
    assert_int_equal(k_lookup(k, d, "f", &e), 0);
    assert_int_equal(e.attr.mode, S_IFREG | 0644);
    assert_int_equal(e.attr.size, 3);
    assert_int_equal(k_lookup(k, d, ".data", NULL), ENOENT); /* null data */
    assert_int_equal(k_lookup(k, 999, "f", NULL), ESTALE);
    char name[300];
    memset(name, 'x', sizeof name);
    name[256] = '\0';
    assert_int_equal(k_lookup(k, 1, name, NULL), ENAMETOOLONG);
    assert_int_equal(k_mkdir(k, 1, name, &e), ENAMETOOLONG);
    assert_int_equal(k_lookup(k, 1, "a\001b", &e), ENOENT);
    assert_int_equal(k_mkdir(k, 1, "a\001b", &e), EINVAL);
    assert_int_equal(k_mkdir(k, 1, "a\377b", &e), EINVAL);
    assert_int_equal(k_mkdir(k, d, ".state", &e), EINVAL);
    assert_int_equal(k_mkdir(k, d, ".data", &e), EINVAL);
}

static void test_sensitive(void **state)
{
    struct fuse_entry_out e;
    other_create(k, "/secret", NULL);
    other_create(k, "/secret/f", "x");
    assert_int_equal(k_lookup(k, 1, "secret", &e), 0);
    assert_int_equal(e.attr.mode, S_IFDIR | 0700);
    assert_int_equal(k_lookup(k, e.nodeid, "f", &e), 0);
    assert_int_equal(e.attr.mode, S_IFREG | 0600);
}

static void test_make_and_remove(void **state)
{
    struct fuse_entry_out e;
    struct fuse_attr_out a;
    assert_int_equal(k_mkdir(k, 1, "d", &e), 0);
    uint64_t d = e.nodeid;
    assert_int_equal(k_mkdir(k, 1, "d", &e), EEXIST);
    assert_int_equal(k_mkdir(k, d, "e", &e), 0);
    assert_int_equal(k_getattr(k, d, &a), 0);
    assert_int_equal(a.attr.nlink, 3);
    assert_int_equal(k_rmdir(k, 1, "d"), ENOTEMPTY);
    assert_int_equal(k_unlink(k, 1, "d"), EISDIR);
    assert_int_equal(k_rmdir(k, d, "e"), 0);
    assert_int_equal(k_rmdir(k, d, "e"), ENOENT);
    assert_int_equal(sh_write(k, "/d/f", "x"), 0);
    assert_int_equal(k_rmdir(k, d, "f"), ENOTDIR);
    assert_int_equal(k_unlink(k, d, "f"), 0);
    assert_int_equal(k_unlink(k, d, "f"), ENOENT);
    /* a directory with data of its own, but without children, can be removed */
    assert_int_equal(sh_write(k, "/d/.data", "own"), 0);
    assert_stored(k, "/d", "own");
    assert_int_equal(k_rmdir(k, 1, "d"), 0);
    assert_false(mirror_exists(k->mirror, "/d"));
    assert_int_equal(k_getattr(k, d, &a), 0); /* somebody may have it open */
    assert_int_equal(a.attr.nlink, 0);
    g_autofree char *names = k_list(k, d);
    assert_string_equal(names, "");
    assert_int_equal(k_mkdir(k, d, "x", &e), ESTALE);
}

static void test_data(void **state)
{
    struct fuse_entry_out e;
    assert_int_equal(k_mkdir(k, 1, "d", &e), 0);
    uint64_t d = e.nodeid;
    assert_int_equal(sh_write(k, "/d/.data", "own"), 0);
    g_autofree char *names = k_list(k, d), *text = sh_cat(k, "/d/.data");
    assert_string_equal(names, ".data");
    assert_string_equal(text, "own");
    assert_int_equal(k_lookup(k, d, ".data", &e), 0);
    assert_int_equal(e.nodeid, d + 1);
    assert_int_equal(k_unlink(k, d, ".data"), 0);
    struct bytes *data = NULL;
    mirror_get(k->mirror, "/d", &data, NULL);
    assert_null(data); /* null, not empty */
    assert_int_equal(k_lookup(k, d, ".data", NULL), ENOENT);
    assert_int_equal(sh_write(k, "/d/.data", ""), 0);
    mirror_get(k->mirror, "/d", &data, NULL);
    assert_non_null(data);
    assert_int_equal(data->len, 0);
    bytes_unref(data);
}

static void test_encoded_names(void **state)
{
    struct fuse_entry_out e;
    assert_int_equal(k_mkdir(k, 1, "d", &e), 0);
    assert_int_equal(sh_write(k, "/d/%2Edata", "1"), 0);
    assert_int_equal(sh_write(k, "/d/%2Estate", "2"), 0);
    assert_int_equal(sh_write(k, "/d/%252Edata", "3"), 0);
    assert_stored(k, "/d/.data", "1");
    assert_stored(k, "/d/.state", "2");
    assert_stored(k, "/d/%2Edata", "3");
    g_autofree char *names = k_list(k, e.nodeid), *path = k_xattr(k, k_walk(k, "/d/%2Edata"), "user.zk.path");
    assert_string_equal(names, "%252Edata %2Edata %2Estate");
    assert_string_equal(path, "/d/.data");
}

/* A listing in pieces, while entries come and go between them. */
static void test_listing(void **state)
{
    struct fuse_entry_out e;
    g_autoptr(GString) want = g_string_new(NULL);
    for (int i = 100; i < 300; i++) {
        g_autofree char *path = g_strdup_printf("/n%d", i);
        other_create(k, path, "");
        g_string_append_printf(want, "%s%s", i > 100 ? " " : "", path + 1);
    }
    g_autofree char *names = k_list(k, 1);
    assert_string_equal(names, want->str);
    uint64_t fh;
    assert_int_equal(k_opendir(k, 1, &fh), 0);
    unsigned seen[400] = {0};
    uint64_t off = 0;
    for (int round = 0;; round++) {
        const struct fuse_read_in in = {.fh = fh, .offset = off, .size = 600};
        g_autofree struct answer *a = kernel_wait(k, kernel_send(k, FUSE_READDIR, 1, &in, sizeof in, NULL, 0));
        if (a->len == 0)
            break;
        for (size_t at = 0; at < a->len;) {
            const struct fuse_dirent *d = (const void *)(a->body + at);
            unsigned n;
            if (sscanf(d->name, "n%u", &n) == 1)
                seen[n]++;
            off = d->off;
            at += FUSE_DIRENT_SIZE(d);
        }
        if (round < 50) { /* odd ones go, from the front; new ones come */
            g_autofree char *gone = g_strdup_printf("n%d", 101 + 2 * round),
                            *come = g_strdup_printf("n%d", 300 + round);
            assert_int_equal(k_unlink(k, 1, gone), 0);
            assert_int_equal(k_mkdir(k, 1, come, &e), 0);
        }
    }
    for (int i = 100; i < 300; i += 2)
        assert_int_equal(seen[i], 1); /* nothing that stayed is missed or doubled */
    for (int i = 0; i < 400; i++)
        assert_true(seen[i] <= 1);
}

static void test_forget(void **state)
{
    struct fuse_entry_out e;
    struct fuse_attr_out a;
    other_create(k, "/f", "x");
    assert_int_equal(k_lookup(k, 1, "f", &e), 0);
    assert_int_equal(k_lookup(k, 1, "f", &e), 0);
    k_forget(k, e.nodeid, 1);
    assert_int_equal(k_getattr(k, e.nodeid, &a), 0);
    k_forget(k, e.nodeid, 1);
    assert_int_equal(k_getattr(k, e.nodeid, &a), ESTALE);
    k_forget(k, e.nodeid, 1000); /* whatever the kernel says */
    k_forget(k, 1, 1);
    assert_int_equal(k_getattr(k, 1, &a), 0);
}

/* ---- notices ---- */

static void test_told_of_creation(void **state)
{
    struct fuse_entry_out e;
    assert_int_equal(k_mkdir(k, 1, "d", &e), 0);
    assert_int_equal(k_lookup(k, e.nodeid, "f", NULL), ENOENT);
    kernel_forget_notices(k);
    other_create(k, "/d/f", "x");
    assert_true(kernel_told(k, FUSE_NOTIFY_INVAL_ENTRY, e.nodeid, "f"));
    assert_true(kernel_told(k, FUSE_NOTIFY_INVAL_INODE, e.nodeid, NULL));
    /* below what the kernel does not know, nothing is said */
    kernel_forget_notices(k);
    other_create(k, "/d/f/g", "x"); /* but a file has become a directory */
    assert_true(kernel_told(k, FUSE_NOTIFY_INVAL_ENTRY, e.nodeid, "f"));
    kernel_forget_notices(k);
    other_create(k, "/d/f/g/h", "x");
    kernel_settle(k);
    assert_true(g_queue_is_empty(&k->notices));
}

static void test_not_told_of_ones_own(void **state)
{
    struct fuse_entry_out e;
    assert_int_equal(k_mkdir(k, 1, "d", &e), 0);
    uint64_t d = e.nodeid;
    assert_int_equal(sh_write(k, "/d/f", "x"), 0);
    kernel_settle(k);
    /* an invalidated name would make a shell that stands in it read as deleted */
    assert_false(kernel_told(k, FUSE_NOTIFY_INVAL_ENTRY, 1, "d"));
    assert_false(kernel_told(k, FUSE_NOTIFY_INVAL_ENTRY, d, "f"));
    assert_int_equal(k_unlink(k, d, "f"), 0);
    assert_int_equal(k_rmdir(k, 1, "d"), 0);
    kernel_settle(k);
    for (GList *l = k->notices.head; l; l = l->next)
        assert_int_not_equal(((struct notice_seen *)l->data)->code, FUSE_NOTIFY_DELETE);
}

static void test_told_of_deletion(void **state)
{
    struct fuse_entry_out d, f, data;
    other_create(k, "/d", "own");
    other_create(k, "/d/f", "x");
    other_create(k, "/d/unknown", "x");
    assert_int_equal(k_lookup(k, 1, "d", &d), 0);
    assert_int_equal(k_lookup(k, d.nodeid, "f", &f), 0);
    assert_int_equal(k_lookup(k, d.nodeid, ".data", &data), 0);
    kernel_forget_notices(k);
    k->hold = true;
    other_delete(k, "/d/f");
    other_delete(k, "/d/unknown");
    other_delete(k, "/d");
    k->hold = false;
    kernel_settle(k);
    static const char *const want[] = {"f", ".data", "d"};
    const uint64_t parents[] = {d.nodeid, d.nodeid, 1}, children[] = {f.nodeid, data.nodeid, d.nodeid};
    int deletions = 0;
    for (GList *l = k->notices.head; l; l = l->next) {
        const struct notice_seen *n = l->data;
        assert_int_not_equal(n->code, FUSE_NOTIFY_INVAL_ENTRY); /* it would spoil the deletion */
        if (n->code != FUSE_NOTIFY_DELETE)
            continue;
        assert_true(deletions < 3);
        assert_string_equal(n->name, want[deletions]);
        assert_int_equal(n->parent, parents[deletions]);
        assert_int_equal(n->ino, children[deletions]);
        deletions++;
    }
    assert_int_equal(deletions, 3);
    assert_int_equal(k_lookup(k, d.nodeid, "f", NULL), ESTALE);
}

static void test_told_of_data(void **state)
{
    struct fuse_entry_out f, d;
    other_create(k, "/f", "x");
    other_create(k, "/d", NULL);
    assert_int_equal(k_lookup(k, 1, "f", &f), 0);
    assert_int_equal(k_lookup(k, 1, "d", &d), 0);
    assert_int_equal(k_lookup(k, d.nodeid, ".data", NULL), ENOENT);
    kernel_forget_notices(k);
    other_set(k, "/f", "longer");
    assert_true(kernel_told(k, FUSE_NOTIFY_INVAL_INODE, f.nodeid, NULL));
    other_set(k, "/d", "own");
    assert_true(kernel_told(k, FUSE_NOTIFY_INVAL_ENTRY, d.nodeid, ".data"));
    assert_true(kernel_told(k, FUSE_NOTIFY_INVAL_INODE, d.nodeid, NULL));
    struct fuse_entry_out data;
    assert_int_equal(k_lookup(k, d.nodeid, ".data", &data), 0);
    kernel_forget_notices(k);
    other_set(k, "/d", "other");
    assert_true(kernel_told(k, FUSE_NOTIFY_INVAL_INODE, data.nodeid, NULL));
    other_set(k, "/d", NULL);
    assert_true(kernel_told(k, FUSE_NOTIFY_DELETE, d.nodeid, ".data"));
}

/* One's own change shows at once: the attributes are dropped before the answer. */
static void test_own_attributes_before_the_answer(void **state)
{
    uint64_t fh;
    other_create(k, "/f.num", "1");
    uint64_t ino = k_walk(k, "/f.num");
    assert_int_equal(k_open(k, ino, O_WRONLY | O_TRUNC, &fh), 0);
    assert_int_equal(k_write(k, ino, fh, "22", 0), 2);
    kernel_forget_notices(k);
    k->hold = true;
    const struct fuse_flush_in in = {.fh = fh};
    uint64_t unique = kernel_send(k, FUSE_FLUSH, ino, &in, sizeof in, NULL, 0);
    kernel_sync(k);
    k->hold = false;
    kernel_commit(k); /* the store's work, with the answer, is done when this returns */
    char message[256];
    bool told = false;
    for (;;) {
        struct fuse_out_header h;
        ssize_t n = recv(k->fd, message, sizeof message, 0);
        assert_true(n >= (ssize_t)sizeof h);
        memcpy(&h, message, sizeof h);
        if (h.unique == unique)
            break;
        const struct fuse_notify_inval_inode_out *out = (const void *)(message + sizeof h);
        told |= h.error == FUSE_NOTIFY_INVAL_INODE && out->ino == ino && out->off == -1;
    }
    g_hash_table_remove(k->asked, &unique);
    assert_true(told);
    k_release(k, ino, fh);
}

/* A file that gains a child becomes a directory under a new number; who has the old one open goes on. */
static void test_file_becomes_directory(void **state)
{
    struct fuse_entry_out e;
    struct fuse_attr_out a;
    uint64_t fh;
    char buf[10];
    other_create(k, "/f", "abc");
    uint64_t old = k_walk(k, "/f");
    assert_int_equal(k_open(k, old, O_RDONLY, &fh), 0);
    other_create(k, "/f/child", "");
    assert_int_equal(k_getattr(k, old, &a), 0);
    assert_true(S_ISREG(a.attr.mode));
    assert_int_equal(k_read(k, old, fh, buf, sizeof buf, 0), 3);
    uint64_t other;
    assert_int_equal(k_open(k, old, O_RDONLY, &other), ESTALE);
    k_release(k, old, fh);
    assert_int_equal(k_getattr(k, old, &a), ESTALE);
    assert_int_equal(k_lookup(k, 1, "f", &e), 0);
    assert_true(S_ISDIR(e.attr.mode) && e.nodeid != old);
    g_autofree char *names = k_list(k, e.nodeid);
    assert_string_equal(names, ".data child");
    /* and stays one */
    other_delete(k, "/f/child");
    assert_int_equal(k_lookup(k, 1, "f", &e), 0);
    assert_true(S_ISDIR(e.attr.mode));
}

static void test_removed_while_open(void **state)
{
    struct fuse_attr_out a;
    uint64_t fh;
    char buf[10];
    other_create(k, "/f", "abc");
    uint64_t ino = k_walk(k, "/f");
    assert_int_equal(k_open(k, ino, O_RDONLY, &fh), 0);
    other_delete(k, "/f");
    other_create(k, "/f", "new");
    assert_int_equal(k_getattr(k, ino, &a), 0); /* fstat works, and says that it is gone */
    assert_int_equal(a.attr.nlink, 0);
    assert_int_equal(a.attr_valid, 0);
    assert_int_equal(k_read(k, ino, fh, buf, sizeof buf, 0), 3);
    assert_memory_equal(buf, "abc", 3);
    k_release(k, ino, fh);
    assert_int_equal(k_getattr(k, ino, &a), ESTALE); /* so that the name is looked up again */
    assert_int_not_equal(k_walk(k, "/f"), ino);
}

static void test_directory_time(void **state)
{
    struct fuse_entry_out e;
    struct fuse_attr_out before, after;
    assert_int_equal(k_mkdir(k, 1, "d", &e), 0);
    for (int i = 0; i < 20; i++) { /* many within one millisecond */
        assert_int_equal(k_getattr(k, e.nodeid, &before), 0);
        if (i % 2 == 0)
            other_create(k, "/d/f", "");
        else
            other_delete(k, "/d/f");
        assert_int_equal(k_getattr(k, e.nodeid, &after), 0);
        assert_true(before.attr.mtime != after.attr.mtime || before.attr.mtimensec != after.attr.mtimensec);
    }
}

static void test_xattr(void **state)
{
    other_create(k, "/f", "abc");
    other_set(k, "/f", "abcd");
    uint64_t ino = k_walk(k, "/f");
    g_autofree char *version = k_xattr(k, ino, "user.zk.version"), *length = k_xattr(k, ino, "user.zk.dataLength"),
                    *owner = k_xattr(k, ino, "user.zk.ephemeralOwner"), *path = k_xattr(k, ino, "user.zk.path");
    assert_string_equal(version, "1");
    assert_string_equal(length, "4");
    assert_string_equal(owner, "0");
    assert_string_equal(path, "/f");
    assert_null(k_xattr(k, ino, "user.zk.none"));
    assert_null(k_xattr(k, ino, "user.other"));
    struct fuse_getxattr_in in = {.size = 3};
    g_autofree struct answer *a =
            kernel_wait(k, kernel_send(k, FUSE_GETXATTR, ino, &in, sizeof in, "security.capability", 20));
    assert_int_equal(a->err, EOPNOTSUPP);
    g_autofree struct answer *b =
            kernel_wait(k, kernel_send(k, FUSE_GETXATTR, ino, &in, sizeof in, "user.zk.dataLength", 19));
    assert_int_equal(b->err, 0);
    in.size = 2;
    g_autofree struct answer *c = kernel_wait(k, kernel_send(k, FUSE_LISTXATTR, ino, &in, sizeof in, NULL, 0));
    assert_int_equal(c->err, ERANGE);
}

static void test_rename(void **state)
{
    struct fuse_entry_out e;
    assert_int_equal(k_mkdir(k, 1, "d", &e), 0);
    uint64_t d = e.nodeid;
    assert_int_equal(sh_write(k, "/f", "one"), 0);
    assert_int_equal(sh_write(k, "/g", "two"), 0);
    assert_int_equal(k_rename(k, 1, "d", 1, "e", 0), EPERM);
    assert_int_equal(k_rename(k, 1, "no", 1, "e", 0), ENOENT);
    assert_int_equal(k_rename(k, 1, "f", 1, "g", RENAME_NOREPLACE), EEXIST);
    assert_int_equal(k_rename(k, 1, "f", 1, "g", RENAME_EXCHANGE), EINVAL);
    assert_int_equal(k_rename(k, 1, "f", d, "h", RENAME_NOREPLACE), 0);
    assert_stored(k, "/d/h", "one");
    assert_int_equal(k_lookup(k, 1, "f", NULL), ENOENT);
    /* the kernel thinks that the old inode stands there now */
    assert_true(kernel_told(k, FUSE_NOTIFY_INVAL_ENTRY, d, "h"));
    assert_int_equal(k_rename(k, d, "h", 1, "g", 0), 0);
    assert_stored(k, "/g", "one");
    assert_int_equal(k_rename(k, 1, "g", 1, ".state", 0), EPERM);
    assert_int_equal(sh_write(k, "/d/.data", "own"), 0);
    assert_int_equal(k_rename(k, d, ".data", 1, "x", 0), EPERM);
}

static void test_other_kinds_refused(void **state)
{
    const struct fuse_mknod_in fifo = {.mode = S_IFIFO | 0644}, file = {.mode = S_IFREG | 0644};
    const struct fuse_link_in link = {.oldnodeid = 1};
    g_autofree struct answer *a = kernel_wait(k, kernel_send(k, FUSE_MKNOD, 1, &fifo, sizeof fifo, "p", 2));
    assert_int_equal(a->err, EPERM);
    g_autofree struct answer *b = kernel_wait(k, kernel_send(k, FUSE_SYMLINK, 1, "n\0t", 4, NULL, 0));
    assert_int_equal(b->err, EPERM);
    g_autofree struct answer *c = kernel_wait(k, kernel_send(k, FUSE_LINK, 1, &link, sizeof link, "l", 2));
    assert_int_equal(c->err, EPERM);
    g_autofree struct answer *d = kernel_wait(k, kernel_send(k, FUSE_MKNOD, 1, &file, sizeof file, "f", 2));
    assert_int_equal(d->err, 0);
    assert_stored(k, "/f", "");
    g_autofree struct answer *e = kernel_wait(k, kernel_send(k, FUSE_MKNOD, 1, &file, sizeof file, "f.json", 7));
    assert_int_equal(e->err, EINVAL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kernel_setup, kernel_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
            TEST(test_lookup),
            TEST(test_sensitive),
            TEST(test_make_and_remove),
            TEST(test_data),
            TEST(test_encoded_names),
            TEST(test_listing),
            TEST(test_forget),
            TEST(test_told_of_creation),
            TEST(test_not_told_of_ones_own),
            TEST(test_told_of_deletion),
            TEST(test_told_of_data),
            TEST(test_own_attributes_before_the_answer),
            TEST(test_file_becomes_directory),
            TEST(test_removed_while_open),
            TEST(test_directory_time),
            TEST(test_xattr),
            TEST(test_rename),
            TEST(test_other_kinds_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
