/* Wires the parts together: store, mirror, cluster, mount. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "controller/cluster.h"
#include "fs/daemon.h"
#include "fs/fuse/guardian.h"
#include "fs/fuse/mount.h"
#include "fs/fuse/stale.h"
#include "fs/log.h"
#include "fs/options.h"
#include "fs/tree/mirror.h"
#include "fs/tree/path.h"

#define EVENTS_BYTES (1u << 20)
#define ERRORS_BYTES (256u << 10)
/* How long a predecessor, unmounted but not yet ended, is waited for. */
#define PREDECESSOR_MS 30000

struct app {
    const struct options *options;
    char *source, *mountpoint, *metadata; /* absolute */
    struct settle *settle;
    struct journal *events, *errors;
    struct mirror *mirror;
    struct store *store;
    struct cluster *cluster;
    struct mount *mount;
    pthread_t server, starter;
    pthread_mutex_t lock; /* protects the members below */
    pthread_cond_t changed;
    bool started, ended;
    int served, begun; /* 0 or -errno: what became of the two threads */
};

static int64_t now_ms(void *ctx)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void feed(void *ctx, struct commit *commit)
{
    struct app *a = ctx;
    mirror_apply(a->mirror, commit);
    cluster_feed(a->cluster, commit);
    mount_feed(a->mount, commit);
}

static void store_failed(void *ctx, const char *why)
{
    struct app *a = ctx;
    journal_error(a->errors, EROFS, "/", "the store can only be read from now on: %s", why);
    log_error("the store can only be read from now on: %s", why);
}

/* ---- arguments ---- */

/* The absolute path without links; the last component may be something that does not answer (a dead mount). */
static char *absolute_mountpoint(const char *path)
{
    char *real = realpath(path, NULL);
    if (!real && errno == ENOTCONN) {
        g_autofree char *dir = g_path_get_dirname(path), *base = g_path_get_basename(path);
        char *real_dir = realpath(dir, NULL);
        char *joined = real_dir ? g_build_filename(real_dir, base, NULL) : NULL;
        free(real_dir);
        return joined;
    }
    char *copy = g_strdup(real);
    free(real);
    return copy;
}

static bool is_zookeeper_data(const char *dir)
{
    g_autofree char *version = g_build_filename(dir, "version-2", NULL), *base = g_path_get_basename(dir);
    return strcmp(base, "version-2") == 0 || g_file_test(version, G_FILE_TEST_IS_DIR);
}

/* 0 or -errno: resolves the source, which must be a cluster directory. */
static int find_source(struct app *a, const char *source, char **why)
{
    struct stat st;
    if (g_str_has_prefix(source, "zk://")) {
        *why = g_strdup_printf("%s: a ZooKeeper ensemble cannot be mounted by this version", source);
        return -EOPNOTSUPP;
    }
    char *real = realpath(source, NULL);
    if (!real || stat(real, &st) < 0) {
        *why = g_strdup_printf("%s: %s", source, strerror(errno));
        free(real);
        return -ENOENT;
    }
    a->source = g_strdup(real);
    a->metadata = g_build_filename(real, "metadata", NULL);
    free(real);
    if (S_ISDIR(st.st_mode) && !is_zookeeper_data(a->source))
        return 0;
    *why = g_strdup_printf(S_ISDIR(st.st_mode)
                                   ? "%s: a ZooKeeper data directory cannot be mounted by this version"
                                   : "%s: not a directory (a ZooKeeper snapshot cannot be mounted by this version)",
            source);
    return -ENOTDIR;
}

static int find_mountpoint(struct app *a, const char *mountpoint, char **why)
{
    a->mountpoint = absolute_mountpoint(mountpoint);
    if (!a->mountpoint) {
        int err = errno;
        *why = g_strdup_printf("mount point %s: %s", mountpoint, strerror(err));
        return -err;
    }
    if (path_is_under(a->source, a->mountpoint)) {
        *why = g_strdup_printf("%s: the mount would hide its own source %s", a->mountpoint, a->source);
        return -EINVAL;
    }
    return 0;
}

/* ---- opening ---- */

/* The pid of who has the store ends the text. He is waited for if he is on his way out: unmounted already, or killed.
 */
static bool predecessor_ends(const char *source, const char *why)
{
    const char *number = strrchr(why, ' ');
    pid_t pid = number ? (pid_t)strtol(number + 1, NULL, 10) : 0;
    return pid > 0 && (!mounted_source(source) || process_dying(pid)) && process_wait_end(pid, PREDECESSOR_MS);
}

static int open_store(struct app *a, char **why)
{
    const struct store_config config = {.now_ms = now_ms, .feed = feed, .failed = store_failed, .ctx = a};
    bool read_only = a->options->read_only;
    int rc = store_open_lmdb(a->metadata, /* create= */ !read_only, read_only, &config, &a->store, why);
    if (rc != -EBUSY || !predecessor_ends(a->source, *why))
        return rc;
    g_clear_pointer(why, g_free);
    return store_open_lmdb(a->metadata, !read_only, read_only, &config, &a->store, why);
}

static void load_node(void *arg, const char *path, struct bytes *data, const struct zstat *stat)
{
    struct app *a = arg;
    mirror_load(a->mirror, path, data, stat);
}

static int open_cluster(struct app *a, char **why)
{
    const struct options *o = a->options;
    /* A read-only mount looks at the tree and starts nothing. */
    const struct cluster_config config = {
            .store = a->store,
            .mirror = a->mirror,
            .settle = a->settle,
            .events = a->events,
            .errors = a->errors,
            .cluster_dir = o->read_only ? NULL : a->source,
            .broker_files = o->read_only ? NULL : o->broker_files,
            .brokers = o->brokers,
            .config_change_expiry_ms = o->config_change_expiry_ms,
            .raw = o->raw,
    };
    return cluster_open(&config, &a->cluster, why);
}

static int open_mount(struct app *a, char **why)
{
    const struct options *o = a->options;
    const struct mount_config config = {
            .source = a->source,
            .mountpoint = a->mountpoint,
            .fuse_options = o->fuse_options,
            .read_only = o->read_only,
            .raw = o->raw,
            .store = a->store,
            .mirror = a->mirror,
            .settle = a->settle,
            .events = a->events,
            .errors = a->errors,
            .policy = cluster_policy(a->cluster),
    };
    return mount_open(&config, &a->mount, why);
}

static int open_all(struct app *a, char **why)
{
    a->settle = settle_new();
    a->events = journal_new(EVENTS_BYTES);
    a->errors = journal_new(ERRORS_BYTES);
    a->mirror = mirror_new(cluster_always_directory, NULL);
    int rc = open_store(a, why);
    if (rc == 0)
        rc = store_load(a->store, load_node, a, why);
    if (rc == 0)
        rc = open_cluster(a, why);
    if (rc == 0)
        rc = open_mount(a, why);
    if (rc == 0 && (rc = store_start(a->store)) < 0)
        *why = g_strdup_printf("cannot start a thread: %s", strerror(-rc));
    return rc;
}

static void close_all(struct app *a)
{
    if (a->store)
        store_close(a->store);
    cluster_free(a->cluster); /* its last answers go to the mount */
    mount_close(a->mount);
    mirror_free(a->mirror);
    journal_free(a->events);
    journal_free(a->errors);
    settle_free(a->settle);
    g_free(a->source);
    g_free(a->mountpoint);
    g_free(a->metadata);
}

/* ---- running ---- */

static void set(struct app *a, bool *flag)
{
    pthread_mutex_lock(&a->lock);
    *flag = true;
    pthread_cond_broadcast(&a->changed);
    pthread_mutex_unlock(&a->lock);
}

static void *serve(void *arg)
{
    struct app *a = arg;
    pthread_setname_np(pthread_self(), "fuse");
    a->served = mount_serve(a->mount);
    set(a, &a->ended);
    return NULL;
}

static void *start(void *arg)
{
    struct app *a = arg;
    pthread_setname_np(pthread_self(), "start");
    a->begun = cluster_start(a->cluster);
    if (a->begun == 0)
        set(a, &a->started);
    else
        mount_stop(a->mount);
    return NULL;
}

static void stop(void *arg)
{
    struct app *a = arg;
    mount_stop(a->mount);
}

/* Serves until the mount is gone, while the brokers start. 0, or -errno: there is a thread too few. */
static int serve_and_start(struct app *a)
{
    int rc = -pthread_create(&a->starter, NULL, start, a);
    if (rc < 0) {
        mount_stop(a->mount);
        pthread_join(a->server, NULL);
        cluster_stop(a->cluster);
        return rc;
    }
    pthread_mutex_lock(&a->lock);
    while (!a->started && !a->ended)
        pthread_cond_wait(&a->changed, &a->lock);
    bool started = a->started;
    pthread_mutex_unlock(&a->lock);
    if (started)
        daemon_ready();
    pthread_join(a->server, NULL);
    cluster_stop(a->cluster);
    pthread_join(a->starter, NULL);
    return a->begun;
}

/* Until the mount is gone. 0 or -errno. */
static int run(struct app *a, char **why)
{
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->changed, NULL);
    int rc = signals_start(stop, a);
    if (rc == 0) {
        rc = -pthread_create(&a->server, NULL, serve, a);
        if (rc == 0)
            rc = serve_and_start(a);
        signals_end();
    }
    if (rc == 0)
        return a->served;
    *why = g_strdup_printf("cannot start a thread: %s", strerror(-rc));
    return rc;
}

static int mount_source(const struct options *o)
{
    struct app a = {.options = o};
    char *why = NULL;
    int rc = find_source(&a, o->source, &why);
    if (rc == 0)
        rc = find_mountpoint(&a, o->mountpoint, &why);
    if (rc == 0 && !o->foreground)
        rc = daemon_begin();
    if (rc == 0) {
        log_init(!o->foreground);
        signals_block();
        rc = guardian_begin();
    }
    if (rc == 0)
        rc = open_all(&a, &why);
    if (rc == 0) {
        int unguarded = guardian_watch(a.mountpoint);
        if (unguarded < 0)
            log_warning("without its guardian, a kill -9 may leave callers waiting: %s", strerror(-unguarded));
        rc = run(&a, &why);
    }
    if (rc != 0)
        daemon_fail(why ? why : strerror(-rc));
    close_all(&a);
    guardian_end();
    g_free(why);
    return rc == 0 ? 0 : 1;
}

/* ---- offline ---- */

static int run_offline(enum command command, const char *metadata, char **why)
{
    return command == COMMAND_CHECK  ? store_check(metadata, stdout, why)
           : command == COMMAND_DUMP ? store_dump(metadata, stdout, why)
                                     : store_load_text(metadata, stdin, why);
}

static int work_offline(const struct options *o)
{
    g_autofree char *metadata = g_build_filename(o->source, "metadata", NULL), *why = NULL;
    int rc = run_offline(o->command, metadata, &why);
    if (rc == -EBUSY) {
        char *real = realpath(o->source, NULL);
        if (real && why && predecessor_ends(real, why)) {
            g_clear_pointer(&why, g_free);
            rc = run_offline(o->command, metadata, &why);
        }
        free(real);
    }
    if (rc < 0)
        daemon_fail(why ? why : strerror(-rc));
    return rc == 0 ? 0 : 1;
}

static int print(const char *text)
{
    return fputs(text, stdout) < 0;
}

int main(int argc, char **argv)
{
    struct options o;
    g_autofree char *why = NULL;
    int status = 1;
    if (daemon_fill_standard_files() < 0)
        return 1;
    if (options_parse(argc, argv, &o, &why) < 0)
        daemon_fail(why);
    else if (o.command == COMMAND_HELP)
        status = print(options_help);
    else if (o.command == COMMAND_VERSION)
        status = print("kafkafs " KAFKAFS_VERSION "\n");
    else if (o.command == COMMAND_MOUNT)
        status = mount_source(&o);
    else
        status = work_offline(&o);
    if (o.command != COMMAND_MOUNT && status == 0 && fflush(stdout) != 0) {
        daemon_fail(strerror(errno));
        status = 1;
    }
    options_clear(&o);
    return status;
}
