/* kill -9 and power cuts under a writer: whatever it was told is stored is there, and nothing is there by half. */
#include "store_fixture.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#define FS_SHUTDOWN _IOR('X', 125, uint32_t) /* ext4, xfs: as if the power went */
#define SHUTDOWN_NO_LOG_FLUSH 2

static bool no_sync; /* the control: a disk cache that lies */

int stand_in_fdatasync(int fd) __asm__("fdatasync");
int stand_in_fdatasync(int fd)
{
    return no_sync ? 0 : ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(fd);
}

/* ---- writer and audit ---- */

/* Makes two nodes and rewrites a counter in each transaction, and says so on the pipe when it is acknowledged. */
static void writer(const char *dir, int fd)
{
    struct fixture f;
    fixture_open_lmdb(&f, dir);
    struct bytes *data = NULL;
    int n = mirror_get(f.mirror, "/counter", &data, NULL) == ZOK ? atoi(data->data) : 0;
    if (n == 0 && fixture_create(&f, "/counter", "0") != ZOK)
        _exit(1);
    for (;;) {
        n++;
        char text[32], a[32], b[32];
        snprintf(text, sizeof text, "%d", n);
        snprintf(a, sizeof a, "/a%d", n);
        snprintf(b, sizeof b, "/b%d", n);
        struct txn *txn = txn_new(TXN_CLIENT);
        txn_create(txn, a, NULL, 0);
        txn_set(txn, "/counter", bytes_from_string(text), -1);
        txn_create(txn, b, NULL, 0);
        if (fixture_run(&f, txn) != ZOK || write(fd, &n, sizeof n) != sizeof n)
            _exit(1);
    }
}

static void visit(void *arg, const char *path, struct bytes *data, const struct zstat *stat)
{
    mirror_load(arg, path, data, stat);
}

static char *audit_tree(struct mirror *m, int acknowledged)
{
    struct bytes *data = NULL;
    int n = mirror_get(m, "/counter", &data, NULL) == ZOK ? atoi(data->data) : 0;
    bytes_unref(data);
    if (n < acknowledged)
        return g_strdup_printf("lost: %d acknowledged, %d there", acknowledged, n);
    for (int i = 1; i <= n + 1; i++) {
        g_autofree char *a = g_strdup_printf("/a%d", i), *b = g_strdup_printf("/b%d", i);
        bool has_a = mirror_exists(m, a), has_b = mirror_exists(m, b);
        if (has_a != (i <= n) || has_b != has_a)
            return g_strdup_printf("half of %d: %d %d", i, has_a, has_b);
    }
    return NULL;
}

/* NULL, or what is wrong. */
static char *audit(const char *dir, int acknowledged)
{
    struct fixture f = {.now = 1};
    struct store_config config = fixture_config(&f);
    char *why = NULL;
    if (store_open_lmdb(dir, true, false, &config, &f.store, &why) < 0)
        return why;
    f.mirror = mirror_new(NULL, NULL);
    char *fault = store_load(f.store, visit, f.mirror, &why) < 0 ? why : audit_tree(f.mirror, acknowledged);
    store_close(f.store);
    mirror_free(f.mirror);
    return fault;
}

/* Starts a writer and lets it work until it has acknowledged some. Returns its pid. */
static pid_t start_writer(const char *dir, int until, int *ret_fd, int *acknowledged)
{
    int fds[2], n;
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(fds[0]);
        writer(dir, fds[1]);
    }
    close(fds[1]);
    while (until-- > 0 && read(fds[0], &n, sizeof n) == sizeof n)
        *acknowledged = n;
    *ret_fd = fds[0];
    return pid;
}

static void end_writer(pid_t pid, int fd, int *acknowledged)
{
    int n, status;
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    while (read(fd, &n, sizeof n) == sizeof n)
        *acknowledged = n;
    close(fd);
}

/* ---- kill -9 ---- */

static void test_kill(void **state)
{
    char *dir = fixture_dir();
    int acknowledged = 0, rounds = getenv("KILLS") ? atoi(getenv("KILLS")) : 30;
    for (int round = 0; round < rounds; round++) {
        int fd;
        pid_t pid = start_writer(dir, g_random_int_range(0, 60), &fd, &acknowledged);
        end_writer(pid, fd, &acknowledged);
        g_autofree char *fault = audit(dir, acknowledged);
        if (fault)
            fail_msg("round %d: %s", round, fault);
    }
    print_message("%d transactions acknowledged in %d rounds\n", acknowledged, rounds);
    assert_true(acknowledged > 0);
    fixture_remove(dir);
}

static void test_audit_can_fail(void **state)
{
    char *dir = fixture_dir();
    int acknowledged = 0, fd;
    pid_t pid = start_writer(dir, 10, &fd, &acknowledged);
    end_writer(pid, fd, &acknowledged);
    g_autofree char *good = audit(dir, acknowledged), *forged = audit(dir, acknowledged + 1000);
    assert_null(good);
    assert_non_null(forged);
    struct fixture f;
    fixture_open_lmdb(&f, dir);
    struct txn *txn = txn_new(TXN_CLIENT);
    g_autofree char *b = g_strdup_printf("/b%d", acknowledged);
    txn_delete(txn, b, -1);
    assert_int_equal(fixture_run(&f, txn), ZOK);
    fixture_close(&f);
    g_autofree char *half = audit(dir, acknowledged);
    assert_non_null(half);
    fixture_remove(dir);
}

/* ---- power ---- */

struct disk {
    char *dir, *image, *device; /* device: NULL if there can be none here */
};

static struct disk disk_new(void)
{
    struct disk d = {.dir = fixture_dir()};
    d.image = g_strconcat(d.dir, ".img", NULL);
    g_autofree char *make = g_strdup_printf(
            "truncate -s 64M %s && mkfs.ext4 -qF %s && losetup -f --show %s", d.image, d.image, d.image);
    char *argv[] = {(char *)"/bin/sh", (char *)"-c", make, NULL};
    int status = -1;
    char *device = NULL;
    if (geteuid() == 0)
        g_spawn_sync(NULL, argv, NULL, G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL, &device, NULL, &status, NULL);
    if (status == 0)
        d.device = g_strchomp(device);
    return d;
}

static void disk_free(struct disk *d)
{
    g_autofree char *undo = d->device ? g_strdup_printf("losetup -d %s", d->device) : NULL;
    if (undo)
        assert_int_equal(system(undo), 0);
    unlink(d->image);
    fixture_remove(d->dir);
    g_free(d->image);
    g_free(d->device);
}

/* One power cut: the writer is stopped first, so that nothing is acknowledged after it. NULL, or what the audit says.
 */
static char *cut_power(struct disk *d, int *acknowledged)
{
    g_autofree char *store = g_build_filename(d->dir, "metadata", NULL);
    assert_int_equal(mount(d->device, d->dir, "ext4", 0, ""), 0);
    int fd, status;
    pid_t pid = start_writer(store, g_random_int_range(1, 40), &fd, acknowledged);
    kill(pid, SIGSTOP);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    int top = open(d->dir, O_RDONLY | O_DIRECTORY);
    uint32_t flags = SHUTDOWN_NO_LOG_FLUSH;
    assert_int_equal(ioctl(top, FS_SHUTDOWN, &flags), 0);
    close(top);
    end_writer(pid, fd, acknowledged);
    assert_int_equal(umount(d->dir), 0);
    assert_int_equal(mount(d->device, d->dir, "ext4", 0, ""), 0);
    char *fault = audit(store, *acknowledged);
    assert_int_equal(umount(d->dir), 0);
    return fault;
}

static void test_power_cut(void **state)
{
    struct disk d = disk_new();
    bool here = d.device != NULL;
    int acknowledged = 0, rounds = getenv("KILLS") ? atoi(getenv("KILLS")) : 10;
    for (int round = 0; here && round < rounds; round++) {
        g_autofree char *fault = cut_power(&d, &acknowledged);
        if (fault)
            fail_msg("round %d: %s", round, fault);
    }
    disk_free(&d);
    if (!here)
        skip();
    print_message("%d transactions acknowledged in %d rounds\n", acknowledged, rounds);
}

/* The same with a disk that does not keep its promise must be seen to lose. */
static void test_power_cut_without_sync(void **state)
{
    struct disk d = disk_new();
    bool here = d.device != NULL;
    int faults = 0;
    no_sync = true;
    for (int round = 0; here && faults == 0 && round < 10; round++) {
        int acknowledged = 0;
        g_autofree char *fault = cut_power(&d, &acknowledged);
        faults += fault != NULL;
        if (fault)
            print_message("round %d: %s\n", round, fault);
    }
    no_sync = false;
    disk_free(&d);
    if (!here)
        skip();
    assert_true(faults > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_kill),
            cmocka_unit_test(test_audit_can_fail),
            cmocka_unit_test(test_power_cut),
            cmocka_unit_test(test_power_cut_without_sync),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
