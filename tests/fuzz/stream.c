/*
 * The stream of requests that the kernel sends: the harness of tests/fuse, where the input says which requests come, on
 * what, with which names, flags, offsets and bytes, and when the store works. Each request is answered exactly once
 * (the harness insists), and afterwards the mount still works.
 *
 * What the kernel guarantees is kept: the fixed parts have their size, a name is one component that ends with a NUL.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include "tests/fuse/kernel.h"
#include "tests/fuzz/fuzz.h"

#define REQUESTS_MAX 80
#define KNOWN 16

static const char *const names[] = {"a", "b", "c.json", "d.num", "e.cfg", "f.dir", "g.cmd", ".data", ".state", "seq",
        "n-", "fixed", "%2Edata", "secret", "events", "settled", "errors", "dir", "set", "link", "parked", "file"};
static const char *const texts[] = {"{\"a\":", "1}", "{\"a\":1}\n", "k=v\n", "bad\n", "42\n"};
static const char *const attributes[] = {
        "user.zk.path", "user.zk.version", "user.zk.ephemeralOwner", "security.capability", "system.posix_acl_access"};

/* ---- the input ---- */

static const uint8_t *rest;
static size_t left;

static unsigned next(void)
{
    return left > 0 ? (left--, *rest++) : 0;
}

static unsigned below(unsigned n)
{
    return next() % n;
}

/* Mostly small, now and then anything. */
static uint64_t number(void)
{
    unsigned first = next();

    if (first < 240)
        return first % 40;
    return (uint64_t)next() << 56 | (uint64_t)next() << (8 * below(7)) | next();
}

/* One of `table`, or bytes of the input; returns the length without the NUL. */
static size_t text(const char *const *table, size_t n, char buf[260])
{
    size_t len = below(40);

    if (len < 24)
        return g_strlcpy(buf, table[below((unsigned)n)], 260);
    len = len == 39 ? 255 : len - 24;
    for (size_t i = 0; i < len; i++)
        buf[i] = (char)next();
    buf[len] = '\0';
    return len;
}

/* A file's name, as the kernel sends them. */
static size_t name(char buf[260])
{
    size_t len = text(names, G_N_ELEMENTS(names), buf);

    for (size_t i = 0; i < len; i++)
        if (buf[i] == '\0' || buf[i] == '/')
            buf[i] = '_';
    if (len == 0 || strcmp(buf, ".") == 0 || strcmp(buf, "..") == 0)
        len = g_strlcpy(buf, "x", 260);
    return len + 1;
}

/* ---- what is known of the answers ---- */

static uint64_t inodes[KNOWN], handles[KNOWN];
static unsigned n_inodes, n_handles;
static GArray *sent; /* struct sent */

struct sent {
    uint64_t unique;
    uint32_t opcode;
};

static uint64_t inode(void)
{
    unsigned i = below(KNOWN + 4);

    return i < n_inodes ? inodes[i] : i == KNOWN + 3 ? number() : 1;
}

static uint64_t handle(void)
{
    unsigned i = below(KNOWN + 1);

    return i < n_handles ? handles[i] : n_handles > 0 && i < KNOWN ? handles[n_handles - 1] : number();
}

static void learn(uint64_t *known, unsigned *n, uint64_t value)
{
    if (value == 0)
        return;
    if (*n == KNOWN)
        memmove(known, known + 1, (--*n) * sizeof *known);
    known[(*n)++] = value;
}

static void look_at(const struct answer *a, uint32_t opcode)
{
    const void *body = a->body;

    if (a->err != 0)
        return;
    if (opcode == FUSE_LOOKUP || opcode == FUSE_MKDIR || opcode == FUSE_CREATE || opcode == FUSE_MKNOD)
        learn(inodes, &n_inodes, ((const struct fuse_entry_out *)body)->nodeid);
    if (opcode == FUSE_OPEN || opcode == FUSE_OPENDIR)
        learn(handles, &n_handles, ((const struct fuse_open_out *)body)->fh);
    if (opcode == FUSE_CREATE)
        learn(handles, &n_handles, ((const struct fuse_open_out *)((const struct fuse_entry_out *)body + 1))->fh);
}

/* ---- requests ---- */

static void request(
        struct kernel *k, uint32_t opcode, uint64_t ino, const void *a, size_t a_len, const void *b, size_t b_len)
{
    struct sent s = {
            .unique = kernel_send_as(k, (pid_t)(1 + below(2)), opcode, ino, a, a_len, b, b_len), .opcode = opcode};

    g_array_append_val(sent, s);
}

static uint32_t open_flags(void)
{
    static const int extra[] = {0, O_TRUNC, O_APPEND, O_EXCL, O_APPEND | O_TRUNC, O_TRUNC | O_EXCL, O_NONBLOCK, O_SYNC};

    return (uint32_t)((int)below(3) | extra[below(G_N_ELEMENTS(extra))]);
}

static void on_a_name(struct kernel *k)
{
    const struct fuse_mkdir_in mkdir = {.mode = 0755};
    const struct fuse_mknod_in mknod = {.mode = below(4) ? S_IFREG | 0644 : (uint32_t)number()};
    const struct fuse_create_in create = {.flags = open_flags() | O_CREAT, .mode = S_IFREG | (below(2) ? 0600 : 0644)};
    const struct fuse_rename2_in rename = {.newdir = inode(), .flags = below(4)};
    char one[520], two[260];
    size_t len = name(one), more;

    switch (below(8)) {
    case 0:
        request(k, FUSE_MKDIR, inode(), &mkdir, sizeof mkdir, one, len);
        break;
    case 1:
        request(k, FUSE_MKNOD, inode(), &mknod, sizeof mknod, one, len);
        break;
    case 2:
        request(k, FUSE_UNLINK, inode(), one, len, NULL, 0);
        break;
    case 3:
        request(k, FUSE_RMDIR, inode(), one, len, NULL, 0);
        break;
    case 4:
        more = name(two);
        memcpy(one + len, two, more);
        request(k, FUSE_RENAME2, inode(), &rename, sizeof rename, one, len + more);
        break;
    case 5:
        request(k, FUSE_LOOKUP, inode(), one, len, NULL, 0);
        break;
    default:
        request(k, FUSE_CREATE, inode(), &create, sizeof create, one, len);
        break;
    }
}

static void on_a_file(struct kernel *k)
{
    char bytes[260];
    size_t len = text(texts, G_N_ELEMENTS(texts), bytes);
    uint64_t ino = inode(), fh = handle();
    const struct fuse_open_in open = {.flags = open_flags()};
    const struct fuse_read_in read = {.fh = fh, .offset = number(), .size = below(16) * 300};
    const struct fuse_write_in write = {.fh = fh, .offset = number(), .size = (uint32_t)len};
    const struct fuse_flush_in flush = {.fh = fh};
    const struct fuse_release_in release = {.fh = fh};
    const struct fuse_setattr_in setattr = {
            .valid = (uint32_t)(next() | next() << 8), .fh = fh, .size = number(), .mode = S_IFREG | 0640};
    const struct fuse_poll_in poll = {.fh = fh, .kh = below(5), .flags = below(2)};
    const struct fuse_lseek_in lseek = {.fh = fh, .offset = number(), .whence = below(5)};
    const struct fuse_fallocate_in fallocate = {.fh = fh, .length = number(), .mode = below(4)};

    switch (below(12)) {
    case 0:
    case 1:
        request(k, FUSE_OPEN, ino, &open, sizeof open, NULL, 0);
        break;
    case 2:
        request(k, FUSE_READ, ino, &read, sizeof read, NULL, 0);
        break;
    case 3:
    case 4:
    case 5:
        request(k, FUSE_WRITE, ino, &write, sizeof write, bytes, len);
        break;
    case 6:
        request(k, FUSE_FLUSH, ino, &flush, sizeof flush, NULL, 0);
        break;
    case 7:
        request(k, FUSE_RELEASE, ino, &release, sizeof release, NULL, 0);
        break;
    case 8:
        request(k, FUSE_SETATTR, ino, &setattr, sizeof setattr, NULL, 0);
        break;
    case 9:
        request(k, FUSE_POLL, ino, &poll, sizeof poll, NULL, 0);
        break;
    case 10:
        request(k, FUSE_LSEEK, ino, &lseek, sizeof lseek, NULL, 0);
        break;
    default:
        request(k, FUSE_FALLOCATE, ino, &fallocate, sizeof fallocate, NULL, 0);
        break;
    }
}

static void set_attribute(struct kernel *k, const char *attribute, size_t len)
{
    char message[520];
    size_t size = below(200);
    const struct fuse_setxattr_in setxattr = {.size = (uint32_t)size, .flags = below(3)};

    memcpy(message, attribute, len);
    memset(message + len, (int)next(), size);
    /* the short form, without FUSE_SETXATTR_EXT */
    request(k, FUSE_SETXATTR, inode(), &setxattr, FUSE_COMPAT_SETXATTR_IN_SIZE, message, len + size);
}

static void on_a_directory(struct kernel *k)
{
    char attribute[260];
    size_t len = text(attributes, G_N_ELEMENTS(attributes), attribute);
    uint64_t ino = inode();
    const struct fuse_getattr_in getattr = {0};
    const struct fuse_open_in open = {0};
    const struct fuse_read_in read = {.fh = below(2) ? handle() : 0, .offset = number(), .size = below(16) * 300};
    const struct fuse_getxattr_in xattr = {.size = below(40)};
    const struct fuse_forget_in forget = {.nlookup = below(3)};
    const struct fuse_interrupt_in interrupt = {.unique = k->unique - 2 * below(10)};

    len = strnlen(attribute, len) + 1;
    switch (below(11)) {
    case 0:
        request(k, FUSE_GETATTR, ino, &getattr, sizeof getattr, NULL, 0);
        break;
    case 1:
        request(k, FUSE_OPENDIR, ino, &open, sizeof open, NULL, 0);
        break;
    case 2:
    case 3:
        request(k, below(2) ? FUSE_READDIR : FUSE_READDIRPLUS, ino, &read, sizeof read, NULL, 0);
        break;
    case 4:
        request(k, FUSE_GETXATTR, ino, &xattr, sizeof xattr, attribute, len);
        break;
    case 5:
        set_attribute(k, attribute, len);
        break;
    case 6:
        request(k, FUSE_LISTXATTR, ino, &xattr, sizeof xattr, NULL, 0);
        break;
    case 7:
        request(k, FUSE_REMOVEXATTR, ino, attribute, len, NULL, 0);
        break;
    case 8:
        request(k, below(2) ? FUSE_READLINK : FUSE_STATFS, ino, NULL, 0, NULL, 0);
        break;
    case 9:
        kernel_send(k, FUSE_FORGET, ino, &forget, sizeof forget, NULL, 0);
        break;
    default:
        kernel_send(k, FUSE_INTERRUPT, 0, &interrupt, sizeof interrupt, NULL, 0);
        break;
    }
}

/* ---- answers ---- */

/* Whatever waits for the policy is answered, in one way or another. */
static void answer_questions(struct kernel *k)
{
    for (;;) {
        pthread_mutex_lock(&k->lock);
        struct asked_question *q = g_queue_pop_head(&k->questions);
        pthread_mutex_unlock(&k->lock);
        if (!q)
            return;
        if (q->query == STATE_WRITE)
            below(2) ? state_answer_done(q->q) : state_answer_error(q->q, EINVAL);
        else
            state_answer_bytes(q->q, "text", 4);
        g_free(q->path);
        g_free(q->value);
        g_free(q);
    }
}

static void collect(struct kernel *k)
{
    for (guint i = 0; i < sent->len; i++) {
        const struct sent s = g_array_index(sent, struct sent, i);

        for (int patience = 20000; !kernel_has(k, s.unique); patience--) {
            FUZZ_CHECK(patience > 0);
            kernel_commit(k);
            answer_questions(k);
            kernel_pump(k, 1);
        }
        g_autofree struct answer *a = kernel_wait(k, s.unique);
        look_at(a, s.opcode);
    }
    g_array_set_size(sent, 0);
    kernel_forget_notices(k);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    struct kernel *k;
    struct fuse_entry_out e;

    if (size == 0)
        return 0;
    rest = input;
    left = size;
    n_inodes = n_handles = 0;
    sent = g_array_new(FALSE, FALSE, sizeof(struct sent));
    k = kernel_new(below(4) == 0);
    other_create(k, "/seq", NULL);
    for (int i = 0; i < REQUESTS_MAX && left > 0; i++) {
        static void (*const kinds[])(struct kernel *) = {on_a_name, on_a_file, on_a_file, on_a_directory};
        unsigned kind = next();

        kinds[kind % G_N_ELEMENTS(kinds)](k);
        if (kind < 200) {
            k->hold = false;
            collect(k);
            k->hold = kind < 30; /* now and then a few changes pile up before the store works */
        }
    }
    k->hold = false;
    collect(k);
    FUZZ_CHECK(k_mkdir(k, 1, "afterwards", &e) == 0 && k_rmdir(k, 1, "afterwards") == 0);
    kernel_settle(k); /* every cause has been let go */
    kernel_free(k);
    g_array_unref(sent);
    return 0;
}
