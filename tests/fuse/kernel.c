#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/fuse/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include "fs/tree/path.h"

#define MAX_MESSAGE (1 << 18)
#define PATIENCE_MS 20000

/* ---- the policy ---- */

static bool ends(const char *path, const char *suffix)
{
    return g_str_has_suffix(path, suffix);
}

static bool always_directory(void *ctx, const char *path)
{
    return path[1] == '\0' || ends(path, ".dir");
}

static enum node_format format(void *ctx, const char *path)
{
    return ends(path, ".json") || ends(path, ".dir") || g_str_has_prefix(path, "/seq/") ? FORMAT_JSON
           : ends(path, ".num")                                                         ? FORMAT_NUMBER
           : ends(path, ".cfg")                                                         ? FORMAT_CONFIG
                                                                                        : FORMAT_OPAQUE;
}

static bool created_empty(void *ctx, const char *path)
{
    return ends(path, ".cmd");
}

static const char *sequential_prefix(void *ctx, const char *parent)
{
    return strcmp(parent, "/seq") == 0 ? "n-" : NULL;
}

static bool sensitive(void *ctx, const char *path)
{
    return path_is_under(path, "/secret");
}

static int may_write(void *ctx, const char *path, bool creates, char **ret_reason)
{
    if (strcmp(path, "/fixed") != 0)
        return 0;
    *ret_reason = g_strdup("it is fixed");
    return EPERM;
}

static int check_line(void *ctx, const char *path, const char *before, size_t before_len, const char *line, size_t len,
        char **ret_reason)
{
    if (len == 0 || memchr(line, '=', len))
        return 0;
    *ret_reason = g_strdup("no key=value");
    return EINVAL;
}

/* As the real one: the final newline of a format goes, bad JSON of a special kind is refused, lines become text. */
static void plan(void *ctx, const struct request *request, struct plan *ret)
{
    struct kernel *k = ctx;
    struct request r = *request;
    struct bytes *stripped = NULL;
    const char *path = r.path ? r.path : r.new_path;
    *ret = (struct plan){0};
    if (strcmp(path, "/fixed") == 0 && r.type != REQ_TOUCH) {
        plan_refuse(ret, EPERM, "it is fixed");
        return;
    }
    if (ends(path, ".cmd") && (r.type == REQ_CREATE || r.type == REQ_UNLINK)) {
        ret->type = PLAN_COMMAND;
        return;
    }
    if (r.value && strstr(r.value->data, "\"wrong\"")) {
        plan_refuse(ret, EINVAL, "a wrong field");
        return;
    }
    if (r.value && !r.raw && format(NULL, path) != FORMAT_OPAQUE && r.type != REQ_APPEND && r.value->len > 0 &&
            r.value->data[r.value->len - 1] == '\n')
        r.value = stripped = bytes_new(r.value->data, r.value->len - 1);
    if (strcmp(path, "/seq/n-") == 0 && r.type == REQ_CREATE) {
        ret->type = PLAN_TXN;
        ret->txn = txn_new(TXN_CLIENT);
        txn_create(ret->txn, path, bytes_ref((struct bytes *)r.value), CREATE_SEQUENTIAL);
    } else {
        plan_default(k->mirror, &r, ret);
    }
    bytes_unref(stripped);
}

static void command(void *ctx, const struct request *request, gen_t gen, void (*answer)(void *arg, int err), void *arg)
{
    struct kernel *k = ctx;
    pthread_mutex_lock(&k->lock);
    k->commands++;
    bool hold = k->hold_commands;
    int err = k->command_err;
    if (hold) {
        k->command_answer = answer;
        k->command_arg = arg;
    }
    pthread_mutex_unlock(&k->lock);
    if (!hold)
        answer(arg, err);
}

/* `/.state/dir` holds `file` (its content is its path), `set` (writable) and `link`; all else below `parked` waits. */
static void ask(void *ctx, enum state_query query, const char *path, const struct bytes *value, gen_t gen,
        struct state_question *q)
{
    struct kernel *k = ctx;
    const char *name = path_name(path);
    static const struct state_entry entries[] = {
            {"file", STATE_FILE}, {"set", STATE_WRITABLE_FILE}, {"link", STATE_LINK}};
    bool parked = strstr(path, "parked") && query != STATE_LOOKUP;
    if (parked || query == STATE_WRITE) {
        struct asked_question *a = g_new0(struct asked_question, 1);
        *a = (struct asked_question){.query = query, .path = g_strdup(path), .q = q};
        a->value = value ? g_strndup(value->data, value->len) : NULL;
        pthread_mutex_lock(&k->lock);
        g_queue_push_tail(&k->questions, a);
        pthread_mutex_unlock(&k->lock);
    } else if (query == STATE_READ) {
        g_autofree char *text = g_strconcat(path, "\n", NULL);
        state_answer_bytes(q, text, strlen(text));
    } else if (query == STATE_READLINK) {
        state_answer_bytes(q, "/target", 7);
    } else if (query == STATE_LIST) {
        state_answer_list(q, entries, G_N_ELEMENTS(entries));
    } else if (strcmp(name, "dir") == 0 || strcmp(path, "/.state") == 0) {
        state_answer_kind(q, STATE_DIRECTORY);
    } else if (strcmp(name, "set") == 0) {
        state_answer_kind(q, STATE_WRITABLE_FILE);
    } else if (strcmp(name, "link") == 0) {
        state_answer_kind(q, STATE_LINK);
    } else if (strcmp(name, "file") == 0 || strcmp(name, "parked") == 0) {
        state_answer_kind(q, STATE_FILE);
    } else {
        state_answer_error(q, ENOENT);
    }
}

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
    k->settle = settle_new();
    k->events = journal_new(4096);
    k->errors = journal_new(65536);
    k->mirror = mirror_new(always_directory, NULL);
    k->answers = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, g_free);
    k->asked = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    k->interrupts = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    k->policy = (struct policy){.ctx = k,
            .always_directory = always_directory,
            .format = format,
            .created_empty = created_empty,
            .sequential_prefix = sequential_prefix,
            .sensitive = sensitive,
            .may_write = may_write,
            .check_line = check_line,
            .plan = plan,
            .command = command,
            .ask = ask};
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

void kernel_free(struct kernel *k)
{
    k->hold = false;
    kernel_commit(k);
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

void kernel_forget_notices(struct kernel *k)
{
    kernel_pump(k, 0);
    g_queue_clear_full(&k->notices, g_free);
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
