#include "fs/store/lmdb.h"

#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "fs/store/lmdb_dir.h"
#include "fs/store/lmdb_space.h"
#include "fs/store/lmdb_walk.h"

#define MAP_SIZE (UINT64_C(64) << 30) /* address space alone */
#define MAP_SIZE_MIN (UINT64_C(1) << 30)
#define RETRY_LARGER (-EXFULL) /* the map is full; no system call of ours says so */

struct lmdb_backend {
    struct backend base;
    struct lmdb_dir dir;
    char *path; /* of the directory, for messages */
    bool read_only;
    bool building; /* the file still has its temporary name */
    MDB_env *env;
    MDB_dbi dbi;
    MDB_txn *txn; /* the batch's: begun by its first read or by the commit */
    size_t map_size;
    int fd; /* LMDB's own */
    struct lmdb_space space;
};

/* A failed read of the mapped file: an I/O error, or somebody truncated it. Nothing that was acknowledged is lost. */
static void on_bus_error(int sig)
{
    static const char text[] = "kafkafs: error: the embedded store's file cannot be read (SIGBUS): disk error, or "
                               "truncated while in use; giving up\n";
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    _exit(1);
}

/* The signals that a file can raise; whoever has taken one for himself keeps it. */
static void prepare_signals(void)
{
    static const struct {
        int sig;
        void (*handler)(int sig);
    } wanted[] = {{SIGBUS, on_bus_error}, {SIGXFSZ, SIG_IGN /* an error of the call will do */}};
    for (size_t i = 0; i < G_N_ELEMENTS(wanted); i++) {
        struct sigaction now;
        if (sigaction(wanted[i].sig, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
            sigaction(wanted[i].sig, &(struct sigaction){.sa_handler = wanted[i].handler}, NULL);
    }
}

static int error_of(int rc)
{
    switch (rc) {
    case MDB_SUCCESS:
        return 0;
    case MDB_NOTFOUND:
        return -ENOENT;
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INVALID:
    case MDB_CURSOR_FULL:
    case MDB_PAGE_FULL:
    case MDB_INCOMPATIBLE:
        return -EUCLEAN;
    case MDB_VERSION_MISMATCH:
        return -EPROTO;
    case EDQUOT:
    case EFBIG:
    case MDB_TXN_FULL:
        return -ENOSPC;
    default:
        return rc > 0 ? -rc : -EIO;
    }
}

static int begin(struct lmdb_backend *l)
{
    return l->txn ? 0 : error_of(mdb_txn_begin(l->env, NULL, l->read_only ? MDB_RDONLY : 0, &l->txn));
}

static void lmdb_reset(struct backend *b)
{
    struct lmdb_backend *l = (struct lmdb_backend *)b;
    if (l->txn)
        mdb_txn_abort(l->txn);
    l->txn = NULL;
}

static MDB_val key_val(const struct record_key *key)
{
    return (MDB_val){.mv_size = key->len, .mv_data = (void *)key->bytes};
}

static int lmdb_get(struct backend *b, uint64_t parent_id, const char *name, struct node *ret)
{
    struct lmdb_backend *l = (struct lmdb_backend *)b;
    struct record_key key;
    record_key_make(&key, parent_id, name);
    MDB_val k = key_val(&key), v;
    int err = begin(l);
    if (err == 0)
        err = error_of(mdb_get(l->txn, l->dbi, &k, &v));
    return err == 0 ? record_decode(key.bytes, key.len, v.mv_data, v.mv_size, ret) : err;
}

/* ---- commit ---- */

static int write_meta(struct lmdb_backend *l, const struct meta *meta)
{
    struct record_key key;
    record_key_make(&key, 0, "");
    uint8_t bytes[META_SIZE];
    meta_encode(&key, meta, bytes);
    MDB_val k = key_val(&key), v = {.mv_size = sizeof bytes, .mv_data = bytes};
    return mdb_put(l->txn, l->dbi, &k, &v, 0);
}

static int write_record(struct lmdb_backend *l, const struct record_write *w)
{
    struct record_key key;
    record_key_make(&key, w->parent_id, w->name);
    MDB_val k = key_val(&key);
    if (!w->node)
        return mdb_del(l->txn, l->dbi, &k, NULL);
    MDB_val v = {.mv_size = record_size(w->node)};
    int rc = mdb_put(l->txn, l->dbi, &k, &v, MDB_RESERVE);
    if (rc == 0)
        record_encode(&key, w->node, v.mv_data);
    return rc;
}

static int write_all(struct lmdb_backend *l, const struct record_write *writes, size_t n, const struct meta *meta)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = write_record(l, &writes[i]);
    if (rc == 0)
        rc = write_meta(l, meta);
    if (rc == 0) {
        rc = mdb_txn_commit(l->txn);
        l->txn = NULL;
    }
    return rc;
}

static int commit_once(struct lmdb_backend *l, const struct record_write *writes, size_t n, const struct meta *meta)
{
    bool is_short = false;
    int err = begin(l);
    if (err == 0)
        err = lmdb_space_ensure(&l->space, l->txn, l->dbi, writes, n, &is_short);
    int rc = err == 0 ? write_all(l, writes, n, meta) : 0;
    lmdb_reset(&l->base);
    if (rc == MDB_MAP_FULL)
        return RETRY_LARGER;
    if (rc == EIO && is_short) /* LMDB's word for a write that was cut short; nothing refers to such pages */
        return -ENOSPC;
    if (err == 0)
        err = error_of(rc);
    return err == 0 && is_short ? lmdb_space_cover(&l->space) : err;
}

static int lmdb_commit(struct backend *b, const struct record_write *writes, size_t n, const struct meta *meta)
{
    struct lmdb_backend *l = (struct lmdb_backend *)b;
    int err;
    /* An interrupted sync says nothing about the disk: the same once more, LMDB has taken it back. */
    while ((err = commit_once(l, writes, n, meta)) == RETRY_LARGER || err == -EINTR) {
        if (err == -EINTR)
            continue;
        err = error_of(mdb_env_set_mapsize(l->env, l->map_size * 2));
        if (err < 0)
            break;
        l->map_size *= 2;
    }
    if (err == -ENOENT) /* a record to be removed is not there */
        err = -EUCLEAN;
    if (err == 0)
        b->meta = *meta;
    return err;
}

static int lmdb_backend_walk(struct backend *b, int (*visit)(void *arg, const struct record_view *view), void *arg)
{
    return lmdb_walk(((struct lmdb_backend *)b)->fd, visit, arg);
}

static void lmdb_usage(struct backend *b, struct store_usage *ret)
{
    struct lmdb_backend *l = (struct lmdb_backend *)b;
    struct statvfs fs = {0};
    struct stat st = {0};
    if (fstatvfs(l->dir.fd, &fs) == 0 && fstat(l->fd, &st) == 0)
        *ret = (struct store_usage){
                .bytes_used = (uint64_t)st.st_size,
                .bytes_free = (uint64_t)fs.f_bavail * fs.f_frsize,
                .bytes_total = (uint64_t)fs.f_blocks * fs.f_frsize,
        };
}

static void lmdb_close(struct backend *b)
{
    struct lmdb_backend *l = (struct lmdb_backend *)b;
    lmdb_reset(b);
    if (l->env)
        mdb_env_close(l->env);
    if (l->building)
        unlinkat(l->dir.fd, STORE_FILE_NEW, 0);
    lmdb_dir_close(&l->dir);
    g_free(l->path);
    g_free(l);
}

static const struct backend_ops lmdb_ops = {
        .name = "embedded store",
        .get = lmdb_get,
        .commit = lmdb_commit,
        .reset = lmdb_reset,
        .walk = lmdb_backend_walk,
        .usage = lmdb_usage,
        .close = lmdb_close,
};

/* ---- opening ---- */

/* Opens the environment on a file of the directory; the locks are ours, not LMDB's. */
static int open_env_of_size(struct lmdb_backend *l, const char *file, size_t map_size)
{
    g_autofree char *path = g_strdup_printf("/proc/self/fd/%d/%s", l->dir.fd, file);
    unsigned flags = MDB_NOSUBDIR | MDB_NOLOCK | MDB_NOTLS | (l->read_only ? MDB_RDONLY : 0);
    int rc = mdb_env_create(&l->env);
    if (rc != 0)
        return error_of(rc);
    rc = mdb_env_set_mapsize(l->env, map_size);
    if (rc == 0)
        rc = mdb_env_open(l->env, path, flags, 0600);
    if (rc == 0)
        rc = mdb_env_get_fd(l->env, &l->fd);
    if (rc != 0) {
        mdb_env_close(l->env);
        l->env = NULL;
    }
    return error_of(rc);
}

static int open_env(struct lmdb_backend *l, const char *file, size_t map_size)
{
    l->map_size = map_size ? map_size : MAP_SIZE;
    int err;
    while ((err = open_env_of_size(l, file, l->map_size)) == -ENOMEM && l->map_size > MAP_SIZE_MIN)
        l->map_size /= 2; /* address space is limited here */
    if (err < 0)
        return err;
    fcntl(l->fd, F_SETFD, FD_CLOEXEC);
    MDB_envinfo info;
    MDB_stat stat;
    err = error_of(mdb_env_info(l->env, &info));
    if (err == 0)
        err = error_of(mdb_env_stat(l->env, &stat));
    if (err < 0)
        return err;
    l->map_size = info.me_mapsize;
    l->space = (struct lmdb_space){.env = l->env, .fd = l->fd, .page_size = stat.ms_psize};
    l->space.reserved_end = (info.me_last_pgno + 1) * stat.ms_psize;
    err = begin(l);
    if (err == 0)
        err = error_of(mdb_dbi_open(l->txn, NULL, 0, &l->dbi));
    lmdb_reset(&l->base);
    return err;
}

static int read_meta_record(struct lmdb_backend *l)
{
    struct record_key key;
    record_key_make(&key, 0, "");
    MDB_val k = key_val(&key), v;
    int err = begin(l);
    if (err == 0)
        err = error_of(mdb_get(l->txn, l->dbi, &k, &v));
    if (err == 0)
        err = meta_decode(key.bytes, key.len, v.mv_data, v.mv_size, &l->base.meta);
    lmdb_reset(&l->base);
    return err == -ENOENT ? -EUCLEAN : err;
}

static int new_backend(const char *dir, bool create, bool read_only, struct lmdb_backend **ret, char **ret_why)
{
    struct lmdb_dir d;
    int err = lmdb_dir_open(dir, create, read_only, &d, ret_why);
    if (err < 0)
        return err;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare_signals);
    struct lmdb_backend *l = g_new0(struct lmdb_backend, 1);
    l->base.ops = &lmdb_ops;
    l->dir = d;
    l->path = g_strdup(dir);
    l->read_only = read_only;
    *ret = l;
    return 0;
}

static int build(struct lmdb_backend *l)
{
    unlinkat(l->dir.fd, STORE_FILE_NEW, 0); /* of a process that was killed */
    l->building = true;
    int err = open_env(l, STORE_FILE_NEW, 0);
    l->base.meta = META_OF_NEW_TREE;
    return err;
}

/* What was built gets its name. The environment is closed. */
static int publish(struct lmdb_backend *l)
{
    mdb_env_close(l->env);
    l->env = NULL;
    int err = lmdb_dir_publish(&l->dir);
    l->building = err < 0;
    return err;
}

static int make_empty_tree(struct lmdb_backend *l)
{
    struct node root;
    node_init_root(&root);
    struct record_write write = {.parent_id = 0, .name = ROOT_NAME, .node = &root};
    int err = build(l);
    if (err == 0)
        err = lmdb_commit(&l->base, &write, 1, &META_OF_NEW_TREE);
    return err == 0 ? publish(l) : err;
}

static int refuse(struct lmdb_backend *l, int err, char **ret_why)
{
    const char *what = err == -EUCLEAN  ? "damaged: the meta record"
                       : err == -EPROTO ? "made by a newer version"
                                        : g_strerror(-err);
    if (!*ret_why)
        *ret_why = g_strdup_printf("%s: %s", l->path, what);
    lmdb_close(&l->base);
    return err;
}

static int check_file(struct lmdb_backend *l, char **ret_why)
{
    int fd = lmdb_dir_open_file(&l->dir, l->path, ret_why);
    if (fd < 0)
        return fd;
    int err = lmdb_dir_check_pages(fd, l->path, ret_why);
    close(fd);
    return err;
}

int backend_open_lmdb(const char *dir, const struct lmdb_options *options, struct backend **ret, char **ret_why)
{
    struct lmdb_backend *l;
    char *why = NULL;
    int err = new_backend(dir, options->create, options->read_only, &l, ret_why);
    if (err < 0)
        return err;
    err = check_file(l, &why);
    if (err == -ENOENT && options->create && !options->read_only) {
        g_clear_pointer(&why, g_free);
        err = make_empty_tree(l);
    }
    if (err == 0)
        err = open_env(l, STORE_FILE, options->map_size);
    if (err == 0)
        err = read_meta_record(l);
    if (err < 0) {
        *ret_why = why;
        return refuse(l, err, ret_why);
    }
    *ret = &l->base;
    return 0;
}

int backend_build_lmdb(const char *dir, struct backend **ret, char **ret_why)
{
    struct lmdb_backend *l;
    int err = new_backend(dir, true, false, &l, ret_why);
    if (err < 0)
        return err;
    *ret_why = NULL;
    if (faccessat(l->dir.fd, STORE_FILE, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        *ret_why = g_strdup_printf("%s: there is a store already", dir);
        err = -EEXIST;
    } else {
        err = build(l);
    }
    if (err < 0)
        return refuse(l, err, ret_why);
    *ret = &l->base;
    return 0;
}

int backend_finish_lmdb(struct backend *b, char **ret_why)
{
    struct lmdb_backend *l = (struct lmdb_backend *)b;
    int err = publish(l);
    if (err < 0)
        *ret_why = g_strdup_printf("%s: %s", l->path, g_strerror(-err));
    lmdb_close(b);
    return err;
}

int store_open_lmdb(const char *dir, bool create, bool read_only, const struct store_config *config, struct store **ret,
        char **ret_why)
{
    struct backend *b;
    struct lmdb_options options = {.create = create, .read_only = read_only};
    int err = backend_open_lmdb(dir, &options, &b, ret_why);
    if (err < 0)
        return err;
    g_autofree char *why = NULL;
    err = store_open_backend(b, read_only, config, ret, &why);
    if (err < 0)
        *ret_why = g_strdup_printf("%s: %s%s", dir, err == -EUCLEAN ? "damaged: " : "", why);
    return err;
}
