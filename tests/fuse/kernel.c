#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/fuse/kernel.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define MAX_MESSAGE (1 << 18)
/* No measure of speed: a test that hangs says where, before `meson test` ends it. */
#define PATIENCE_MS 100000

/* ---- the socket ---- */

static ssize_t io_read(int fd, void *buf, size_t len, void *userdata)
{
    return recv(fd, buf, len, 0);
}

static ssize_t io_writev(int fd, struct iovec *iov, int count, void *userdata)
{
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = (size_t)count};
    return sendmsg(fd, &msg, MSG_NOSIGNAL);
}

static int64_t now_ms(void *ctx)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int64_t clock_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void feed(void *ctx, struct commit *commit)
{
    struct kernel *k = ctx;
    mirror_apply(k->mirror, commit);
    if (k->mount)
        mount_feed(k->mount, commit);
}

static void *serve(void *arg)
{
    struct kernel *k = arg;
    assert_int_equal(mount_serve(k->mount), 0);
    return NULL;
}

static void init(struct kernel *k)
{
    struct fuse_init_in in = {.major = 7, .minor = 38, .max_readahead = 131072, .flags = 0xffffffff & ~FUSE_INIT_EXT};
    g_autofree struct answer *a = kernel_wait(k, kernel_send(k, FUSE_INIT, 0, &in, sizeof in, NULL, 0));
    assert_int_equal(a->err, 0);
    const struct fuse_init_out *out = (const void *)a->body;
    assert_true(out->flags & FUSE_DO_READDIRPLUS);
    assert_false(out->flags & FUSE_READDIRPLUS_AUTO);
    assert_true(out->flags & FUSE_ATOMIC_O_TRUNC);
}

struct kernel *kernel_new(bool raw)
{
    struct kernel *k = g_new0(struct kernel, 1);
    pthread_mutex_init(&k->lock, NULL);
    k->policy = kernel_policy(k);
    k->settle = settle_new();
    k->events = journal_new(4096);
    k->errors = journal_new(65536);
    k->mirror = mirror_new(k->policy.always_directory, NULL);
    k->answers = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, g_free);
    k->asked = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    k->interrupts = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    const struct store_config store_config = {.now_ms = now_ms, .feed = feed, .ctx = k};
    assert_int_equal(store_open_memory(&store_config, &k->store), 0);
    const struct mount_config config = {.source = "test",
            .mountpoint = "/nowhere",
            .raw = raw,
            .store = k->store,
            .mirror = k->mirror,
            .settle = k->settle,
            .events = k->events,
            .errors = k->errors,
            .policy = &k->policy};
    const char *options[] = {"default_permissions"};
    char *why = NULL;
    if (mount_new(&config, options, 1, &k->mount, &why) != 0)
        fail_msg("%s", why);
    int fds[2], size = 4 << 20;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    for (int i = 0; i < 2; i++)
        setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    k->fd = fds[0];
    const struct fuse_custom_io io = {.read = io_read, .writev = io_writev};
    assert_int_equal(fuse_session_custom_io(k->mount->session, &io, fds[1]), 0);
    assert_int_equal(pthread_create(&k->loop, NULL, serve, k), 0);
    init(k);
    return k;
}

static void free_question(void *p)
{
    struct asked_question *a = p;
    g_free(a->path);
    g_free(a->value);
    g_free(a);
}

/* libfuse keeps an interrupt that finds no request until one comes after it, and frees none at its end. */
static void end_interrupts(struct kernel *k)
{
    struct fuse_attr_out attr;
    for (guint n = g_hash_table_size(k->interrupts); n > 0; n--)
        k_getattr(k, 1, &attr);
}

void kernel_free(struct kernel *k)
{
    k->hold = false;
    kernel_commit(k);
    end_interrupts(k);
    kernel_pump(k, 0);
    mount_stop(k->mount);
    pthread_join(k->loop, NULL);
    kernel_pump(k, 0);
    assert_int_equal(g_hash_table_size(k->asked), 0); /* what was parked has been answered too */
    struct asked_question *a;
    while ((a = g_queue_pop_head(&k->questions))) {
        state_answer_error(a->q, EIO); /* late, to nobody */
        free_question(a);
    }
    store_close(k->store);
    mount_close(k->mount);
    close(k->fd);
    g_hash_table_unref(k->answers);
    g_hash_table_unref(k->asked);
    g_hash_table_unref(k->interrupts);
    g_queue_clear_full(&k->notices, g_free);
    mirror_free(k->mirror);
    journal_free(k->events);
    journal_free(k->errors);
    settle_free(k->settle);
    pthread_mutex_destroy(&k->lock);
    g_free(k);
}

/* ---- sending ---- */

static bool wants_answer(uint32_t opcode)
{
    return opcode != FUSE_FORGET && opcode != FUSE_BATCH_FORGET && opcode != FUSE_INTERRUPT;
}

void kernel_send_raw(struct kernel *k, const void *message, size_t len)
{
    struct fuse_in_header h;
    memcpy(&h, message, sizeof h);
    uint64_t *unique = g_memdup2(&h.unique, sizeof h.unique);
    if (wants_answer(h.opcode))
        assert_true(g_hash_table_add(k->asked, unique));
    else
        g_hash_table_add(k->interrupts, unique);
    assert_int_equal(send(k->fd, message, len, MSG_NOSIGNAL), len);
}

uint64_t kernel_send_as(struct kernel *k, pid_t pid, uint32_t opcode, uint64_t ino, const void *a, size_t a_len,
        const void *b, size_t b_len)
{
    g_autofree char *message = g_malloc(sizeof(struct fuse_in_header) + a_len + b_len);
    struct fuse_in_header h = {
            .len = (uint32_t)(sizeof h + a_len + b_len),
            .opcode = opcode,
            .unique = k->unique += 2,
            .nodeid = ino,
            .uid = getuid(),
            .gid = getgid(),
            .pid = (uint32_t)pid,
    };
    memcpy(message, &h, sizeof h);
    if (a_len > 0)
        memcpy(message + sizeof h, a, a_len);
    if (b_len > 0)
        memcpy(message + sizeof h + a_len, b, b_len);
    kernel_send_raw(k, message, h.len);
    return h.unique;
}

uint64_t kernel_send(
        struct kernel *k, uint32_t opcode, uint64_t ino, const void *a, size_t a_len, const void *b, size_t b_len)
{
    return kernel_send_as(k, getpid(), opcode, ino, a, a_len, b, b_len);
}

/* ---- receiving ---- */

static void take_notice(struct kernel *k, int code, const char *body, size_t len)
{
    struct notice_seen *n = g_new0(struct notice_seen, 1);
    n->code = code;
    if (code == FUSE_NOTIFY_INVAL_INODE) {
        const struct fuse_notify_inval_inode_out *out = (const void *)body;
        n->ino = out->ino;
        n->off = out->off;
    } else if (code == FUSE_NOTIFY_INVAL_ENTRY) {
        const struct fuse_notify_inval_entry_out *out = (const void *)body;
        assert_true(out->namelen < sizeof n->name && sizeof *out + out->namelen + 1 == len);
        n->parent = out->parent;
        memcpy(n->name, body + sizeof *out, out->namelen);
    } else if (code == FUSE_NOTIFY_DELETE) {
        const struct fuse_notify_delete_out *out = (const void *)body;
        assert_true(out->namelen < sizeof n->name && sizeof *out + out->namelen + 1 == len);
        n->parent = out->parent;
        n->ino = out->child;
        memcpy(n->name, body + sizeof *out, out->namelen);
    } else if (code == FUSE_NOTIFY_POLL) {
        n->ino = ((const struct fuse_notify_poll_wakeup_out *)body)->kh;
    } else {
        fail_msg("notice %d", code);
    }
    g_queue_push_tail(&k->notices, n);
}

static void take_message(struct kernel *k, const char *message, size_t len)
{
    struct fuse_out_header h;
    assert_true(len >= sizeof h);
    memcpy(&h, message, sizeof h);
    assert_int_equal(h.len, len);
    if (h.unique == 0) {
        take_notice(k, h.error, message + sizeof h, len - sizeof h);
        return;
    }
    if (h.error == -EAGAIN && g_hash_table_remove(k->interrupts, &h.unique))
        return;
    assert_true(g_hash_table_remove(k->asked, &h.unique)); /* asked for, and not answered before */
    assert_true(h.error <= 0 && h.error > -4096);
    assert_true(h.error == 0 || len == sizeof h);
    struct answer *a = g_malloc(sizeof *a + len);
    a->unique = h.unique;
    a->err = -h.error;
    a->len = len - sizeof h;
    memcpy(a->body, message + sizeof h, a->len);
    g_hash_table_insert(k->answers, &a->unique, a);
}

void kernel_pump(struct kernel *k, int ms)
{
    static char message[MAX_MESSAGE];
    struct pollfd p = {.fd = k->fd, .events = POLLIN};
    while (poll(&p, 1, ms) == 1) {
        ssize_t n = recv(k->fd, message, sizeof message, MSG_DONTWAIT);
        if (n <= 0)
            return;
        take_message(k, message, (size_t)n);
        ms = 0;
    }
}

void kernel_commit(struct kernel *k)
{
    if (!k->hold)
        store_step(k->store);
}

bool kernel_has(struct kernel *k, uint64_t unique)
{
    kernel_pump(k, 0);
    return g_hash_table_contains(k->answers, &unique);
}

struct answer *kernel_wait(struct kernel *k, uint64_t unique)
{
    int64_t end = clock_ms() + PATIENCE_MS;
    struct answer *a;
    while (!(a = g_hash_table_lookup(k->answers, &unique))) {
        if (clock_ms() > end)
            fail_msg("no answer to %lu", (unsigned long)unique);
        kernel_commit(k);
        kernel_pump(k, 1);
    }
    g_hash_table_steal(k->answers, &unique);
    return a;
}

static struct answer *request(
        struct kernel *k, uint32_t opcode, uint64_t ino, const void *a, size_t a_len, const void *b, size_t b_len)
{
    return kernel_wait(k, kernel_send(k, opcode, ino, a, a_len, b, b_len));
}

void kernel_sync(struct kernel *k)
{
    const struct fuse_getattr_in in = {0};
    g_free(request(k, FUSE_GETATTR, 1, &in, sizeof in, NULL, 0));
}

struct notice_seen kernel_notice(struct kernel *k)
{
    int64_t end = clock_ms() + PATIENCE_MS;
    while (g_queue_is_empty(&k->notices)) {
        if (clock_ms() > end)
            fail_msg("no notice");
        kernel_commit(k);
        kernel_pump(k, 1);
    }
    struct notice_seen *first = g_queue_pop_head(&k->notices), n = *first;
    g_free(first);
    return n;
}

static void on_settled(void *arg)
{
    atomic_store((atomic_bool *)arg, true);
}

void kernel_settle(struct kernel *k)
{
    atomic_bool settled = false;
    kernel_sync(k);
    struct settle_waiter *w = settle_wait(k->settle, settle_begin(k->settle), on_settled, &settled);
    int64_t end = clock_ms() + PATIENCE_MS;
    while (!atomic_load(&settled)) {
        if (clock_ms() > end)
            fail_msg("never settled");
        kernel_commit(k);
        kernel_pump(k, 1);
    }
    settle_cancel(k->settle, w);
    kernel_pump(k, 0);
}

void kernel_forget_notices(struct kernel *k)
{
    kernel_settle(k); /* those that are on their way, too */
    g_queue_clear_full(&k->notices, g_free);
}

bool kernel_told(struct kernel *k, int code, uint64_t parent_or_ino, const char *name)
{
    bool told = false;
    kernel_settle(k);
    for (GList *l = k->notices.head; l; l = l->next) {
        const struct notice_seen *n = l->data;
        uint64_t number = code == FUSE_NOTIFY_INVAL_INODE ? n->ino : n->parent;
        told |= n->code == code && number == parent_or_ino && (!name || strcmp(n->name, name) == 0);
    }
    return told;
}
