/*
 * A stream of requests from a seed, right and wrong ones: each is answered exactly once (the harness insists), nothing
 * crashes, and afterwards the mount still works. Argument: rounds, and a seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include "tests/fuse/kernel.h"

static unsigned rounds = 40;
static uint64_t seed = 1;

static GRand *chance;

static unsigned below(unsigned n)
{
    return (unsigned)g_rand_int_range(chance, 0, (gint32)n);
}

static const char *const names[] = {"a", "b", "c.json", "d.num", "e.cfg", "f.dir", "g.cmd", ".data", ".state", "seq",
        "n-", "fixed", "%2Edata", "\xff", "tmp", "events", "settled", "errors", "dir", "set", "link", "parked", "file"};
static const char *const texts[] = {
        "", "x", "{\"a\":", "1}", "{}", "{\"a\":1}\n", "k=v\n", "bad\n", "42", "\n", "[", "\"wrong\""};

static uint64_t inodes[64], handles[64];
static unsigned n_inodes, n_handles;

static void learn(uint64_t *known, unsigned *n, uint64_t number)
{
    if (number == 0)
        return;
    known[*n < 64 ? (*n)++ : below(64)] = number;
}

static uint64_t some_inode(void)
{
    unsigned dice = below(20);
    return dice == 0                   ? (uint64_t)g_rand_int(chance) << below(32)
           : dice < 4 || n_inodes == 0 ? 1
                                       : inodes[below(n_inodes)];
}

static uint64_t some_handle(void)
{
    return below(20) == 0 || n_handles == 0 ? g_rand_int(chance) : handles[below(n_handles)];
}

/* The answer tells of new inodes and handles. */
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

struct sent {
    uint64_t unique;
    uint32_t opcode;
};
static GArray *sent;

static void send_request(
        struct kernel *k, uint32_t opcode, uint64_t ino, const void *a, size_t a_len, const void *b, size_t b_len)
{
    struct sent s = {
            .unique = kernel_send_as(k, (pid_t)(1 + below(3)), opcode, ino, a, a_len, b, b_len), .opcode = opcode};
    g_array_append_val(sent, s);
}

static void send_name(struct kernel *k, uint32_t opcode, const void *a, size_t a_len)
{
    const char *name = names[below(G_N_ELEMENTS(names))];
    send_request(k, opcode, some_inode(), a, a_len, name, strlen(name) + 1);
}

static int some_flags(void)
{
    static const int flags[] = {O_RDONLY, O_WRONLY, O_RDWR, O_WRONLY | O_TRUNC, O_WRONLY | O_APPEND, O_RDWR | O_EXCL,
            O_WRONLY | O_EXCL, O_WRONLY | O_APPEND | O_TRUNC};
    return flags[below(G_N_ELEMENTS(flags))];
}

static void send_change(struct kernel *k)
{
    const struct fuse_mkdir_in mkdir = {.mode = 0755};
    const struct fuse_mknod_in mknod = {.mode = below(2) ? S_IFREG | 0644 : S_IFIFO};
    const struct fuse_create_in create = {
            .flags = (uint32_t)(some_flags() | O_CREAT), .mode = S_IFREG | (below(2) ? 0600 : 0644)};
    const struct fuse_rename2_in rename = {.newdir = some_inode(), .flags = below(3)};
    const char *name = names[below(G_N_ELEMENTS(names))], *other = names[below(G_N_ELEMENTS(names))];
    g_autofree char *two = g_strdup_printf("%s\n%s", name, other);
    size_t two_len = strlen(two) + 1;
    two[strlen(name)] = '\0';
    switch (below(7)) {
    case 0:
        send_name(k, FUSE_MKDIR, &mkdir, sizeof mkdir);
        break;
    case 1:
        send_name(k, FUSE_MKNOD, &mknod, sizeof mknod);
        break;
    case 2:
        send_name(k, FUSE_UNLINK, NULL, 0);
        break;
    case 3:
        send_name(k, FUSE_RMDIR, NULL, 0);
        break;
    case 4:
        send_request(k, FUSE_RENAME2, some_inode(), &rename, sizeof rename, two, two_len);
        break;
    default:
        send_name(k, FUSE_CREATE, &create, sizeof create);
        break;
    }
}

static void send_file(struct kernel *k)
{
    uint64_t ino = some_inode(), fh = some_handle();
    const char *text = texts[below(G_N_ELEMENTS(texts))];
    const uint64_t offset = below(10) == 0 ? (uint64_t)g_rand_int(chance) << below(32) : below(12);
    const struct fuse_open_in open = {.flags = (uint32_t)some_flags()};
    const struct fuse_read_in read = {.fh = fh, .offset = offset, .size = below(2000)};
    const struct fuse_write_in write = {.fh = fh, .offset = offset, .size = (uint32_t)strlen(text)};
    const struct fuse_flush_in flush = {.fh = fh};
    const struct fuse_release_in release = {.fh = fh};
    const struct fuse_setattr_in setattr = {.valid = below(1 << 9), .fh = fh, .size = offset, .mode = S_IFREG | 0640};
    const struct fuse_poll_in poll = {.fh = fh, .kh = below(5), .flags = below(2)};
    switch (below(9)) {
    case 0:
    case 1:
        send_request(k, FUSE_OPEN, ino, &open, sizeof open, NULL, 0);
        break;
    case 2:
        send_request(k, FUSE_READ, ino, &read, sizeof read, NULL, 0);
        break;
    case 3:
    case 4:
        send_request(k, FUSE_WRITE, ino, &write, sizeof write, text, strlen(text));
        break;
    case 5:
        send_request(k, FUSE_FLUSH, ino, &flush, sizeof flush, NULL, 0);
        break;
    case 6:
        send_request(k, FUSE_RELEASE, ino, &release, sizeof release, NULL, 0);
        break;
    case 7:
        send_request(k, FUSE_SETATTR, ino, &setattr, sizeof setattr, NULL, 0);
        break;
    default:
        send_request(k, FUSE_POLL, ino, &poll, sizeof poll, NULL, 0);
        break;
    }
}

static void send_look(struct kernel *k)
{
    uint64_t ino = some_inode();
    const struct fuse_getattr_in getattr = {0};
    const struct fuse_open_in open = {0};
    const struct fuse_read_in read = {
            .fh = some_handle(), .offset = below(4) ? 0 : g_rand_int(chance), .size = below(3000)};
    const struct fuse_getxattr_in xattr = {.size = below(40)};
    const struct fuse_forget_in forget = {.nlookup = below(3)};
    const struct fuse_interrupt_in interrupt = {.unique = k->unique - 2 * below(10)};
    switch (below(10)) {
    case 0:
    case 1:
    case 2:
        send_name(k, FUSE_LOOKUP, NULL, 0);
        break;
    case 3:
        send_request(k, FUSE_GETATTR, ino, &getattr, sizeof getattr, NULL, 0);
        break;
    case 4:
        send_request(k, FUSE_OPENDIR, ino, &open, sizeof open, NULL, 0);
        break;
    case 5:
        send_request(k, below(2) ? FUSE_READDIR : FUSE_READDIRPLUS, ino, &read, sizeof read, NULL, 0);
        break;
    case 6:
        send_request(k, FUSE_GETXATTR, ino, &xattr, sizeof xattr, "user.zk.path", 13);
        break;
    case 7:
        send_request(k, below(2) ? FUSE_READLINK : FUSE_STATFS, ino, NULL, 0, NULL, 0);
        break;
    case 8:
        kernel_send(k, FUSE_FORGET, ino, &forget, sizeof forget, NULL, 0);
        break;
    default:
        kernel_send(k, FUSE_INTERRUPT, 0, &interrupt, sizeof interrupt, NULL, 0);
        break;
    }
}

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
        int patience = 20000;
        while (!kernel_has(k, s.unique)) {
            assert_true(patience-- > 0);
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

static void stream(struct kernel *k)
{
    n_inodes = n_handles = 0;
    other_create(k, "/seq", NULL);
    for (int i = 0; i < 400; i++) {
        unsigned dice = below(10);
        if (dice < 3)
            send_change(k);
        else if (dice < 7)
            send_file(k);
        else
            send_look(k);
        if (below(4) == 0) {
            k->hold = false;
            collect(k);
            k->hold = below(4) == 0; /* now and then a few changes pile up before the store works */
        }
    }
    k->hold = false;
    collect(k);
}

static void test_stream(void **state)
{
    sent = g_array_new(FALSE, FALSE, sizeof(struct sent));
    for (unsigned round = 0; round < rounds; round++) {
        chance = g_rand_new_with_seed((guint32)(seed + round));
        struct kernel *k = kernel_new(round % 3 == 0);
        print_message("seed %lu\n", (unsigned long)(seed + round));
        stream(k);
        struct fuse_entry_out e;
        assert_int_equal(k_mkdir(k, 1, "afterwards", &e), 0);
        assert_int_equal(k_rmdir(k, 1, "afterwards"), 0);
        kernel_settle(k); /* every cause has been let go */
        kernel_free(k);
        g_rand_free(chance);
    }
    g_array_unref(sent);
}

/* Bytes that are no right requests: short, long, with a wrong length. libfuse and we must stand it. */
static void test_bodies_of_noise(void **state)
{
    for (unsigned round = 0; round < rounds / 4 + 1; round++) {
        chance = g_rand_new_with_seed((guint32)(seed + 1000000 + round));
        struct kernel *k = kernel_new(false);
        static const uint32_t opcodes[] = {FUSE_LOOKUP, FUSE_GETATTR, FUSE_SETATTR, FUSE_MKDIR, FUSE_UNLINK,
                FUSE_RENAME2, FUSE_OPEN, FUSE_READ, FUSE_WRITE, FUSE_FLUSH, FUSE_RELEASE, FUSE_OPENDIR, FUSE_READDIR,
                FUSE_READDIRPLUS, FUSE_CREATE, FUSE_POLL, FUSE_GETXATTR, FUSE_SETXATTR, FUSE_LISTXATTR, FUSE_FALLOCATE,
                FUSE_LSEEK, FUSE_IOCTL, FUSE_ACCESS, FUSE_STATFS, FUSE_FSYNC, FUSE_FSYNCDIR};
        for (int i = 0; i < 200; i++) {
            char body[256]; /* large enough for every fixed part: what libfuse reads unchecked */
            for (size_t j = 0; j < sizeof body; j++)
                body[j] = (char)(below(3) ? below(256) : 0);
            body[sizeof body - 1] = body[sizeof body - 2] = '\0';
            uint32_t opcode = opcodes[below(G_N_ELEMENTS(opcodes))];
            if (opcode == FUSE_WRITE) /* as long as it says it is */
                ((struct fuse_write_in *)body)->size = below((unsigned)(sizeof body - sizeof(struct fuse_write_in)));
            if (opcode == FUSE_READ || opcode == FUSE_READDIR || opcode == FUSE_READDIRPLUS)
                ((struct fuse_read_in *)body)->size %= 65536;
            if (opcode == FUSE_GETXATTR || opcode == FUSE_LISTXATTR)
                ((struct fuse_getxattr_in *)body)->size %= 65536;
            uint64_t unique = kernel_send(k, opcode, below(4), body, sizeof body, NULL, 0);
            g_free(kernel_wait(k, unique));
        }
        kernel_free(k);
        g_rand_free(chance);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1)
        rounds = (unsigned)strtoul(argv[1], NULL, 10);
    if (argc > 2)
        seed = strtoull(argv[2], NULL, 10);
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_stream),
            cmocka_unit_test(test_bodies_of_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
