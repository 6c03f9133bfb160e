/* The embedded file: who may open it, what is found of damage, full disks. */
#include "store_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <lmdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "fs/store/crc32c.h"
#include "fs/store/lmdb_space.h"

static char *file_of(const char *dir)
{
    return g_build_filename(dir, "data.mdb", NULL);
}

/* Opens and loads; the tree as text in `*ret_tree` after success. */
static int try_open(const char *dir, bool read_only, char **ret_tree, char **ret_why)
{
    struct fixture f = {.now = 1};
    struct store_config config = fixture_config(&f);
    int err = store_open_lmdb(dir, false, read_only, &config, &f.store, ret_why);
    if (err < 0)
        return err;
    f.mirror = mirror_new(NULL, NULL);
    err = store_load(f.store, (void *)mirror_load, f.mirror, ret_why);
    if (err == 0 && ret_tree)
        *ret_tree = fixture_tree(&f, true);
    store_close(f.store);
    mirror_free(f.mirror);
    return err;
}

static void expect_refused(const char *dir, int expected, const char *words)
{
    char *why = NULL;
    int err = try_open(dir, false, NULL, &why);
    if (err != expected)
        fail_msg("expected %d (%s), got %d: %s", expected, words, err, why ? why : "");
    assert_non_null(strstr(why, words));
    assert_null(strchr(why, '\n'));
    g_free(why);
}

static void make_store(const char *dir, int n)
{
    struct fixture f;
    fixture_open_lmdb(&f, dir);
    for (int i = 0; i < n; i++) {
        g_autofree char *path = g_strdup_printf(i % 10 == 0 ? "/d%d" : "/d%d/n%d", i - i % 10, i);
        g_autofree char *data = g_strdup_printf("data of node %d, %0*d", i, i % 90, i);
        assert_int_equal(fixture_create(&f, path, i % 7 ? data : NULL), ZOK);
    }
    fixture_close(&f);
}

/* ---- who may open it ---- */

static void test_modes_and_links(void **state)
{
    char *dir = fixture_dir();
    make_store(dir, 1);
    g_autofree char *file = file_of(dir), *moved = g_strconcat(dir, "/elsewhere", NULL);
    struct stat st;
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(chmod(file, 0644), 0);
    expect_refused(dir, -EACCES, "open to other users");
    assert_int_equal(chmod(file, 0600), 0);
    assert_int_equal(chmod(dir, 0755), 0);
    expect_refused(dir, -EACCES, "open to other users");
    assert_int_equal(chmod(dir, 0700), 0);
    assert_int_equal(rename(file, moved), 0);
    assert_int_equal(symlink("elsewhere", file), 0);
    expect_refused(dir, -ELOOP, "cannot be opened");
    assert_int_equal(unlink(file), 0);
    assert_int_equal(mkdir(file, 0700), 0);
    expect_refused(dir, -EACCES, "is not what it should be");
    assert_int_equal(rmdir(file), 0);
    expect_refused(dir, -ENOENT, "data.mdb");
    assert_int_equal(rename(moved, file), 0);

    g_autofree char *link = g_strconcat(dir, "-link", NULL);
    assert_int_equal(symlink(dir, link), 0);
    expect_refused(link, -ENOTDIR, "cannot be opened");
    unlink(link);
    if (geteuid() == 0) {
        assert_int_equal(chown(file, 1, -1), 0);
        expect_refused(dir, -EACCES, "belongs to user 1");
        assert_int_equal(chown(file, 0, -1), 0);
        assert_int_equal(chown(dir, 1, -1), 0);
        expect_refused(dir, -EACCES, "belongs to user 1");
        assert_int_equal(chown(dir, 0, -1), 0);
    }
    char *why = NULL;
    assert_int_equal(try_open(dir, false, NULL, &why), 0);
    fixture_remove(dir);
}

/* Runs `body` in a child; returns how it ended. */
static int in_child(void (*body)(const char *dir, int fd), const char *dir, int fd)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}; /* cmocka would go on in the child */
        for (size_t i = 0; i < G_N_ELEMENTS(signals); i++)
            signal(signals[i], SIG_DFL);
        body(dir, fd);
        _exit(0);
    }
    return pid;
}

static int wait_for(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void hold_open(const char *dir, int fd)
{
    struct fixture f;
    fixture_open_lmdb(&f, dir);
    (void)!write(fd, "x", 1);
    pause();
}

static void test_second_process(void **state)
{
    char *dir = fixture_dir(), c;
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    pid_t pid = in_child(hold_open, dir, fds[1]);
    assert_int_equal(read(fds[0], &c, 1), 1);
    g_autofree char *words = g_strdup_printf("in use by process %d", pid);
    expect_refused(dir, -EBUSY, words);
    kill(pid, SIGKILL);
    wait_for(pid);
    char *why = NULL;
    assert_int_equal(try_open(dir, false, NULL, &why), 0);
    close(fds[0]);
    close(fds[1]);
    fixture_remove(dir);
}

static void test_read_only(void **state)
{
    char *dir = fixture_dir(), *why = NULL;
    struct fixture f, other;
    fixture_open_lmdb(&f, dir);
    int64_t session = store_session_open(f.store);
    struct txn *txn = txn_new(TXN_CLIENT);
    txn_create(txn, "/ephemeral", NULL, CREATE_EPHEMERAL);
    txn_create(txn, "/node", NULL, 0);
    txn->session = session;
    assert_int_equal(fixture_run(&f, txn), ZOK);
    fixture_close(&f);

    struct store_config config = fixture_config(&f);
    f = other = (struct fixture){.now = 1};
    assert_int_equal(store_open_lmdb(dir, false, true, &config, &f.store, &why), 0);
    assert_int_equal(store_open_lmdb(dir, false, true, &config, &other.store, &why), 0);
    expect_refused(dir, -EBUSY, "in use by process");
    f.mirror = mirror_new(NULL, NULL);
    f.feed = g_string_new(NULL);
    assert_int_equal(store_load(f.store, (void *)mirror_load, f.mirror, &why), 0);
    assert_true(mirror_exists(f.mirror, "/node"));
    assert_false(mirror_exists(f.mirror, "/ephemeral"));
    assert_int_equal(fixture_create(&f, "/new", NULL), ZNOTREADONLY);
    store_close(other.store);
    fixture_close(&f);
    fixture_remove(dir);
}

/* What a process that was killed while making a store leaves behind. */
static void test_half_made(void **state)
{
    char *dir = fixture_dir();
    g_autofree char *file = g_build_filename(dir, "data.mdb.new", NULL), *lock = g_build_filename(dir, "lock", NULL);
    assert_true(g_file_set_contents(file, "half", 4, NULL));
    assert_true(g_file_set_contents(lock, "1\n", 2, NULL));
    assert_int_equal(chmod(lock, 0600), 0);
    make_store(dir, 10);
    char *why = NULL, *tree = NULL;
    assert_int_equal(try_open(dir, false, &tree, &why), 0);
    g_free(tree);
    assert_int_not_equal(access(file, F_OK), 0);
    fixture_remove(dir);
}

/* ---- what a crash leaves ---- */

static void test_ephemerals_of_a_former_life(void **state)
{
    char *dir = fixture_dir();
    struct fixture f;
    fixture_open_lmdb(&f, dir);
    int64_t session = store_session_open(f.store);
    struct txn *txn = txn_new(TXN_CLIENT);
    txn->session = session;
    txn_create(txn, "/ids", NULL, 0);
    txn_create(txn, "/ids/1", bytes_from_string("one"), CREATE_EPHEMERAL);
    txn_create(txn, "/ids/2", bytes_from_string("two"), CREATE_EPHEMERAL);
    assert_int_equal(fixture_run(&f, txn), ZOK);
    fixture_close(&f);

    fixture_open_lmdb(&f, dir);
    struct zstat stat;
    assert_int_equal(mirror_get(f.mirror, "/ids", NULL, &stat), ZOK);
    assert_int_equal(stat.cversion, 4);
    assert_int_equal(stat.pzxid, 2);
    assert_int_equal(mirror_zxid(f.mirror), 2);
    assert_int_equal(mirror_count(f.mirror), 1);
    assert_int_not_equal(store_session_open(f.store), session);
    assert_int_equal(fixture_create(&f, "/next", NULL), ZOK);
    assert_int_equal(mirror_zxid(f.mirror), 3);
    fixture_close(&f);
    fixture_remove(dir);
}

static void test_creation_order_is_kept(void **state)
{
    static const char *const names[] = {"z", "a", "m", "b", "y"};
    char *dir = fixture_dir();
    struct fixture f;
    fixture_open_lmdb(&f, dir);
    for (int i = 0; i < 5; i++) {
        g_autofree char *path = g_strconcat("/", names[i], NULL);
        assert_int_equal(fixture_create(&f, path, ""), ZOK);
    }
    fixture_close(&f);
    fixture_open_lmdb(&f, dir);
    g_autoptr(GPtrArray) children = mirror_children(f.mirror, "/");
    assert_int_equal(children->len, 5);
    for (guint i = 0; i < 5; i++)
        assert_string_equal(g_ptr_array_index(children, i), names[i]);
    fixture_close(&f);
    fixture_remove(dir);
}

/* ---- growth ---- */

static void test_map_grows(void **state)
{
    char *dir = fixture_dir(), *why = NULL;
    struct backend *b;
    struct lmdb_options options = {.create = true, .map_size = 1 << 20};
    struct fixture f;
    g_autofree char *data = g_strnfill(900000, 'x');
    assert_int_equal(backend_open_lmdb(dir, &options, &b, &why), 0);
    fixture_open(&f, b);
    for (int i = 0; i < 20; i++) {
        g_autofree char *path = g_strdup_printf("/n%d", i);
        assert_int_equal(fixture_create(&f, path, data), ZOK);
    }
    assert_int_equal(f.n_failures, 0);
    g_autofree char *before = fixture_tree(&f, true), *after = NULL;
    fixture_close(&f);
    assert_int_equal(try_open(dir, false, &after, &why), 0);
    assert_string_equal(before, after);
    fixture_remove(dir);
}

/* ---- full disks ---- */

/* Creates nodes until there is no space; then everything still works, and again when there is space. */
static void fill(struct fixture *f, size_t size)
{
    g_autofree char *data = g_strnfill(size, 'x');
    int n = 0, rc;
    for (;; n++) {
        g_autofree char *path = g_strdup_printf("/n%d", n);
        rc = fixture_create(f, path, data);
        if (rc != ZOK)
            break;
    }
    assert_int_equal(rc, ZSTORENOSPACE);
    assert_true(n > 0);
    assert_int_equal(f->n_failures, 0);
    assert_int_equal(mirror_count(f->mirror), n);
    for (int i = 0; i < n; i++) { /* removal needs no space that it has not reserved */
        struct txn *txn = txn_new(TXN_CLIENT);
        g_autofree char *path = g_strdup_printf("/n%d", i);
        txn_delete(txn, path, -1);
        rc = fixture_run(f, txn);
        if (rc != ZOK)
            fail_msg("removing %d of %d: %s", i, n, zerr_name(rc));
    }
    assert_int_equal(fixture_create(f, "/again", data), ZOK);
    assert_int_equal(f->n_failures, 0);
}

static void test_file_size_limit(void **state)
{
    char *dir = fixture_dir(), *why = NULL, *before = NULL, *after = NULL;
    struct fixture f;
    struct rlimit old, limit;
    fixture_open_lmdb(&f, dir);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    limit = (struct rlimit){.rlim_cur = 5000000, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    fill(&f, 100000);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    before = fixture_tree(&f, true);
    fixture_close(&f);
    assert_int_equal(try_open(dir, false, &after, &why), 0);
    assert_string_equal(before, after);
    g_free(before);
    g_free(after);
    fixture_remove(dir);
}

static void run_on_filesystem(const char *dir, const char *type, const char *source, const char *options)
{
    if (mount(source, dir, type, 0, options) < 0) {
        print_message("no %s here: %s\n", type, g_strerror(errno));
        return;
    }
    struct fixture f;
    g_autofree char *store = g_build_filename(dir, "metadata", NULL);
    fixture_open_lmdb(&f, store);
    fill(&f, 3000);
    struct txn *txn = txn_new(TXN_CLIENT);
    txn_delete(txn, "/again", -1);
    assert_int_equal(fixture_run(&f, txn), ZOK);
    fill(&f, 300000);
    g_autofree char *before = fixture_tree(&f, true), *after = NULL, *why = NULL;
    fixture_close(&f);
    int err = try_open(store, false, &after, &why);
    assert_int_equal(err, 0);
    assert_string_equal(before, after);
    assert_int_equal(umount(dir), 0);
}

static void test_full_tmpfs(void **state)
{
    if (geteuid() != 0)
        skip();
    char *dir = fixture_dir();
    run_on_filesystem(dir, "tmpfs", "tmpfs", "size=8m,mode=700");
    fixture_remove(dir);
}

static void test_full_ext4(void **state)
{
    char *dir = fixture_dir();
    g_autofree char *image = g_strconcat(dir, ".img", NULL);
    g_autofree char *make =
            g_strdup_printf("truncate -s 16M %s && mkfs.ext4 -qF %s && losetup -f --show %s", image, image, image);
    g_autofree char *device = NULL, *undo = NULL;
    int status = -1;
    char *argv[] = {(char *)"/bin/sh", (char *)"-c", make, NULL};
    if (geteuid() == 0)
        g_spawn_sync(NULL, argv, NULL, G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL, &device, NULL, &status, NULL);
    if (status == 0) {
        g_strchomp(device);
        run_on_filesystem(dir, "ext4", device, "");
        undo = g_strdup_printf("losetup -d %s", device);
        assert_int_equal(system(undo), 0);
    }
    unlink(image);
    fixture_remove(dir);
    if (status != 0)
        skip();
}

/* ---- damage ---- */

static void test_truncated(void **state)
{
    char *dir = fixture_dir(), *why = NULL, *tree = NULL;
    g_autofree char *file = file_of(dir), *whole = NULL;
    make_store(dir, 500);
    assert_int_equal(try_open(dir, false, &tree, &why), 0);
    gsize len;
    assert_true(g_file_get_contents(file, &whole, &len, NULL));
    int refused = 0;
    for (gsize keep = 0; keep < len; keep += len / 150 + 1) {
        int fd = open(file, O_WRONLY | O_TRUNC);
        assert_int_equal(write(fd, whole, keep), keep);
        close(fd);
        char *got = NULL;
        int err = try_open(dir, true, &got, &why);
        if (err == 0) /* only space that was reserved ahead is gone */
            assert_string_equal(got, tree);
        else
            assert_int_equal(err, -EUCLEAN);
        refused += err != 0;
        g_clear_pointer(&why, g_free);
        g_free(got);
    }
    print_message("%d truncations refused\n", refused);
    assert_true(refused > 0);
    g_free(tree);
    fixture_remove(dir);
}

struct flip_outcome {
    int same, refused, wrong, died;
};

/* In a child, as LMDB may die of it: exit status 0 same tree, 1 refused, 2 wrong. */
static void read_flipped(const char *dir, int fd)
{
    char *tree = NULL, *why = NULL;
    g_autofree char *good = NULL;
    g_autofree char *name = g_strconcat(dir, ".tree", NULL);
    int err = try_open(dir, true, &tree, &why);
    g_file_get_contents(name, &good, NULL, NULL);
    _exit(err < 0 ? 1 : strcmp(tree, good) == 0 ? 0 : 2);
}

static void test_flipped_bits(void **state)
{
    char *dir = fixture_dir(), *why = NULL, *tree = NULL;
    g_autofree char *file = file_of(dir), *name = g_strconcat(dir, ".tree", NULL), *whole = NULL;
    make_store(dir, 300);
    assert_int_equal(try_open(dir, false, &tree, &why), 0);
    assert_true(g_file_set_contents(name, tree, -1, NULL));
    gsize len;
    assert_true(g_file_get_contents(file, &whole, &len, NULL));
    while (len > 0 && whole[len - 1] == 0) /* reserved space */
        len--;
    unsigned seed = getenv("SEED") ? (unsigned)strtoul(getenv("SEED"), NULL, 10) : g_random_int();
    int n = getenv("FLIPS") ? atoi(getenv("FLIPS")) : 300;
    GRand *chance = g_rand_new_with_seed(seed);
    struct flip_outcome outcome = {0};
    print_message("seed %u, %zu bytes\n", seed, len);
    for (int i = 0; i < n; i++) {
        gsize at = (gsize)g_rand_int_range(chance, 0, (gint32)len);
        int bit = g_rand_int_range(chance, 0, 8);
        int fd = open(file, O_WRONLY);
        char flipped = (char)(whole[at] ^ 1 << bit);
        assert_int_equal(pwrite(fd, &flipped, 1, (off_t)at), 1);
        int status = wait_for(in_child(read_flipped, dir, -1));
        if (WIFSIGNALED(status))
            outcome.died++;
        else if (WEXITSTATUS(status) == 0)
            outcome.same++;
        else if (WEXITSTATUS(status) == 1)
            outcome.refused++;
        else
            outcome.wrong++;
        if (WIFSIGNALED(status) || WEXITSTATUS(status) > 1)
            print_message("byte %zu bit %d: status %x\n", at, bit, status);
        assert_int_equal(pwrite(fd, whole + at, 1, (off_t)at), 1);
        close(fd);
    }
    print_message(
            "%d same, %d refused, %d wrong, %d died\n", outcome.same, outcome.refused, outcome.wrong, outcome.died);
    assert_int_equal(outcome.wrong, 0);
    assert_int_equal(outcome.died, 0);
    assert_true(outcome.refused > 0);
    g_rand_free(chance);
    g_free(tree);
    unlink(name);
    fixture_remove(dir);
}

static void test_newer_layout(void **state)
{
    char *dir = fixture_dir();
    make_store(dir, 1);
    g_autofree char *file = file_of(dir);
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    MDB_val key = {.mv_size = 8, .mv_data = (char[8]){0}}, value;
    assert_int_equal(mdb_env_create(&env), 0);
    assert_int_equal(mdb_env_open(env, file, MDB_NOSUBDIR | MDB_NOLOCK, 0600), 0);
    assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
    assert_int_equal(mdb_dbi_open(txn, NULL, 0, &dbi), 0);
    assert_int_equal(mdb_get(txn, dbi, &key, &value), 0);
    g_autofree uint8_t *meta = g_memdup2(value.mv_data, value.mv_size);
    meta[4] = LAYOUT_VERSION + 1;
    uint32_t sum = crc32c(crc32c(0, key.mv_data, 8), meta + 4, value.mv_size - 4);
    memcpy(meta, &sum, 4);
    value.mv_data = meta;
    assert_int_equal(mdb_put(txn, dbi, &key, &value, 0), 0);
    assert_int_equal(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
    expect_refused(dir, -EPROTO, "made by a newer version");
    fixture_remove(dir);
}

/* What is reserved is written with zeros, so that no later fsync pays for it; what is in use is spared, even if more
 * was used than had been reserved. */
static void test_reserve(void **state)
{
    char *dir = fixture_dir(), *before, *after, *why;
    make_store(dir, 400);
    assert_int_equal(try_open(dir, true, &before, &why), 0);
    g_autofree char *file = file_of(dir);
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    MDB_envinfo info;
    assert_int_equal(mdb_env_create(&env), 0);
    assert_int_equal(mdb_env_open(env, file, MDB_NOSUBDIR | MDB_NOLOCK, 0600), 0);
    assert_int_equal(mdb_env_info(env, &info), 0);
    struct lmdb_space space = {.env = env, .page_size = 4096, .reserved_end = 0};
    assert_int_equal(mdb_env_get_fd(env, &space.fd), 0);
    assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
    assert_int_equal(mdb_dbi_open(txn, NULL, 0, &dbi), 0);
    bool is_short = true;
    assert_int_equal(lmdb_space_ensure(&space, txn, dbi, NULL, 0, &is_short), 0);
    assert_false(is_short);
    assert_true(space.reserved_end > (info.me_last_pgno + 1) * space.page_size);
    struct stat st;
    assert_int_equal(fstat(space.fd, &st), 0);
    assert_true(st.st_size >= (off_t)space.reserved_end);
    assert_int_equal(lseek(space.fd, 0, SEEK_HOLE), st.st_size);
    mdb_txn_abort(txn);
    mdb_env_close(env);
    assert_int_equal(try_open(dir, true, &after, &why), 0);
    assert_string_equal(after, before);
    g_free(before);
    g_free(after);
    fixture_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_reserve),
            cmocka_unit_test(test_modes_and_links),
            cmocka_unit_test(test_second_process),
            cmocka_unit_test(test_read_only),
            cmocka_unit_test(test_half_made),
            cmocka_unit_test(test_ephemerals_of_a_former_life),
            cmocka_unit_test(test_creation_order_is_kept),
            cmocka_unit_test(test_map_grows),
            cmocka_unit_test(test_file_size_limit),
            cmocka_unit_test(test_full_tmpfs),
            cmocka_unit_test(test_full_ext4),
            cmocka_unit_test(test_truncated),
            cmocka_unit_test(test_flipped_bits),
            cmocka_unit_test(test_newer_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
