/* One log dir, on a real directory. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "controller/broker/log_dir.h"
#include "controller/broker/log_names.h"

#define ID_A "AAAAAAAAAAAAAAAAAAAAAQ"
#define ID_B "BBBBBBBBBBBBBBBBBBBBBQ"

struct fixture {
    char *top;  /* holds the log dir and what must not be touched */
    char *path; /* the log dir */
    struct log_dir *d;
    GString *warnings;
};

static void warn(void *arg, const char *entry, const char *why)
{
    struct fixture *f = arg;

    g_string_append_printf(f->warnings, "%s: %s\n", entry, why);
}

static void run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void run(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    g_autofree char *command = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    if (system(command) != 0)
        fail_msg("%s", command);
}

static int set_up(void **state)
{
    struct fixture *f = g_new0(struct fixture, 1);
    char *why = NULL;

    f->top = g_dir_make_tmp("log_dir.XXXXXX", NULL);
    f->path = g_build_filename(f->top, "logs", NULL);
    f->warnings = g_string_new(NULL);
    if (log_dir_open(f->path, true, &f->d, &why) < 0)
        fail_msg("%s", why);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    log_dir_close(f->d);
    run("chmod -R u+rwx '%s'; rm -rf '%s'", f->top, f->top);
    g_free(f->top);
    g_free(f->path);
    g_string_free(f->warnings, TRUE);
    g_free(f);
    return 0;
}

static bool exists(const struct fixture *f, const char *name)
{
    g_autofree char *path = g_build_filename(f->path, name, NULL);
    struct stat st;

    return lstat(path, &st) == 0;
}

static char *content(const struct fixture *f, const char *name)
{
    g_autofree char *path = g_build_filename(f->path, name, NULL);
    char *text = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        fail_msg("%s is not there", path);
    return text;
}

/* How many entries have this suffix, and the last of them. */
static int count(const struct fixture *f, const char *suffix, char **ret)
{
    g_autoptr(GDir) d = g_dir_open(f->path, 0, NULL);
    const char *name;
    int n = 0;

    while ((name = g_dir_read_name(d))) {
        if (!g_str_has_suffix(name, suffix))
            continue;
        n++;
        if (ret) {
            g_free(*ret);
            *ret = g_strdup(name);
        }
    }
    return n;
}

static int create(struct fixture *f, const char *topic, int32_t partition, const char *id)
{
    struct log_task t = {.topic = topic_ref_new(topic, id), .partition = partition};
    int r = log_create(f->d, &t);

    topic_ref_unref(t.topic);
    return r;
}

static int delete_task(struct fixture *f, const char *topic, int32_t partition, const char *id, int64_t delay,
        bool future, bool *fatal)
{
    struct log_task t = {.topic = topic_ref_new(topic, id), .partition = partition, .future = future};
    int r = log_delete(f->d, &t, 1000, delay, fatal);

    topic_ref_unref(t.topic);
    return r;
}

static int delete (struct fixture *f, const char *topic, int32_t partition, const char *id)
{
    bool fatal;
    int r = delete_task(f, topic, partition, id, 0, false, &fatal);

    assert_false(fatal);
    return r;
}

/* ---- names ---- */

static void names(void **state)
{
    static const struct {
        const char *name;
        enum log_name_kind kind;
        const char *topic;
        int32_t partition;
    } cases[] = {
            {"t-0", LOG_CURRENT, "t", 0},
            {"a-1-0", LOG_CURRENT, "a-1", 0},
            {"a.b_c-12", LOG_CURRENT, "a.b_c", 12},
            {"t--5", LOG_CURRENT, "t-", 5},
            {"t-2147483647", LOG_CURRENT, "t", 2147483647},
            {"t-0.0123456789abcdef0123456789abcdef-delete", LOG_DELETED, "t", 0},
            {"my.topic-3.ff-delete", LOG_DELETED, "my.topic", 3},
            {"t-1.x-future", LOG_FUTURE, "t", 1},
            {"t-1.x-stray", LOG_STRAY, "t", 1},
            {"__cluster_metadata-0", LOG_SKIPPED, NULL, 0},
            {"lost+found", LOG_UNKNOWN, NULL, 0},
            {"t", LOG_UNKNOWN, NULL, 0},
            {"-0", LOG_UNKNOWN, NULL, 0},
            {"t-", LOG_UNKNOWN, NULL, 0},
            {"t-x", LOG_UNKNOWN, NULL, 0},
            {"t-07", LOG_UNKNOWN, NULL, 0},
            {"t-+7", LOG_UNKNOWN, NULL, 0},
            {"t-2147483648", LOG_UNKNOWN, NULL, 0},
            {"t-0-delete", LOG_UNKNOWN, NULL, 0},
            {"t-0.-delete", LOG_UNKNOWN, NULL, 0},
            {"t.x-delete", LOG_UNKNOWN, NULL, 0},
            {"t-0-future", LOG_UNKNOWN, NULL, 0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        char topic[NAME_MAX + 1];
        int32_t partition;
        enum log_name_kind kind = log_name_parse(cases[i].name, topic, &partition);
        if (kind != cases[i].kind)
            fail_msg("%s is kind %d", cases[i].name, kind);
        if (cases[i].topic) {
            assert_string_equal(topic, cases[i].topic);
            assert_int_equal(partition, cases[i].partition);
        }
    }
}

static void unique_names_fit(void **state)
{
    g_autofree char *topic = g_strnfill(249, 'x');
    char a[NAME_MAX + 1], b[NAME_MAX + 1], parsed[NAME_MAX + 1];
    int32_t partition;

    log_name_unique(topic, 12345, "delete", a);
    log_name_unique(topic, 12345, "delete", b);
    assert_int_equal(strlen(a), 255);
    assert_string_not_equal(a, b);
    assert_int_equal(log_name_parse(a, parsed, &partition), LOG_DELETED);
    assert_int_equal(partition, 12345);
    log_name_unique("t", 0, "stray", a);
    assert_int_equal(strlen(a), strlen("t-0.") + 32 + strlen("-stray"));
    assert_int_equal(log_name_current(topic, 99999, a), 0);
    assert_int_equal(log_name_current(topic, 100000, a), -ENAMETOOLONG);
}

/* ---- creation ---- */

static void makes_what_kafka_leaves(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(create(f, "t", 0, ID_A), 0);
    g_autofree char *log = content(f, "t-0/00000000000000000000.log");
    assert_string_equal(log, "");
    assert_true(exists(f, "t-0/00000000000000000000.index"));
    assert_true(exists(f, "t-0/00000000000000000000.timeindex"));
    g_autofree char *epochs = content(f, "t-0/leader-epoch-checkpoint");
    assert_string_equal(epochs, "0\n0\n");
    g_autofree char *metadata = content(f, "t-0/partition.metadata");
    assert_string_equal(metadata, "version: 0\ntopic_id: " ID_A);
    /* again: nothing changes */
    run("echo data > '%s/t-0/00000000000000000000.log'", f->path);
    assert_int_equal(create(f, "t", 0, ID_A), 0);
    g_autofree char *again = content(f, "t-0/00000000000000000000.log");
    assert_string_equal(again, "data\n");
}

static void longest_names(void **state)
{
    struct fixture *f = *state;
    g_autofree char *topic = g_strnfill(249, 'x');
    g_autofree char *name = g_strdup_printf("%s-0", topic);
    bool fatal;

    assert_int_equal(create(f, topic, 0, ID_A), 0);
    assert_int_equal(delete_task(f, topic, 0, ID_A, 5000, false, &fatal), 0);
    assert_false(exists(f, name));
    assert_int_equal(count(f, "-delete", NULL), 1);
    assert_int_equal(create(f, topic, 1000000, ID_A), -ENAMETOOLONG);
    assert_false(log_dir_error_is_fatal(-ENAMETOOLONG));
}

static void completes_a_torn_one(void **state)
{
    struct fixture *f = *state;

    run("mkdir '%s/t-0' && : > '%s/t-0/partition.metadata'", f->path, f->path);
    assert_int_equal(create(f, "t", 0, ID_A), 0);
    g_autofree char *metadata = content(f, "t-0/partition.metadata");
    assert_string_equal(metadata, "version: 0\ntopic_id: " ID_A);
    assert_true(exists(f, "t-0/00000000000000000000.log"));
}

static void sets_aside_another_topic(void **state)
{
    struct fixture *f = *state;
    g_autofree char *stray = NULL;

    assert_int_equal(create(f, "t", 0, ID_A), 0);
    run("echo keep > '%s/t-0/keep'", f->path);
    assert_int_equal(create(f, "t", 0, ID_B), 0);
    assert_int_equal(count(f, "-stray", &stray), 1);
    g_autofree char *kept = g_strdup_printf("%s/keep", stray);
    assert_true(exists(f, kept));
    assert_false(exists(f, "t-0/keep"));
    g_autofree char *metadata = content(f, "t-0/partition.metadata");
    assert_string_equal(metadata, "version: 0\ntopic_id: " ID_B);
}

static void creation_follows_no_link(void **state)
{
    struct fixture *f = *state;

    run("mkdir '%s/outside' && ln -s ../outside '%s/t-0' && : > '%s/u-0'", f->top, f->path, f->path);
    assert_int_equal(create(f, "t", 0, ID_A), -ELOOP);
    assert_int_equal(create(f, "u", 0, ID_A), -ENOTDIR);
    run("rmdir '%s/outside'", f->top); /* still empty */
    run("mkdir '%s/v-0' && ln -s ../../victim '%s/v-0/partition.metadata'", f->path, f->path);
    assert_int_equal(create(f, "v", 0, ID_A), -ELOOP);
    g_autofree char *victim = g_build_filename(f->top, "victim", NULL);
    assert_int_equal(access(victim, F_OK), -1);
}

/* ---- deletion ---- */

static void deletes_everything_inside(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(create(f, "t", 0, ID_A), 0);
    assert_int_equal(create(f, "t-0", 0, ID_A), 0); /* another topic, "t-0" */
    run("cd '%s/t-0' && mkdir -p a/b && touch keep a/b/c .hidden && mkfifo fifo && ln -s /etc/passwd link && "
        "ln keep hard",
            f->path);
    assert_int_equal(delete (f, "t", 0, ID_A), 0);
    assert_false(exists(f, "t-0"));
    assert_true(exists(f, "t-0-0"));
    assert_int_equal(count(f, "-delete", NULL), 0);
    assert_int_equal(delete (f, "t", 0, ID_A), 0); /* not there: deleted */
    assert_int_equal(access("/etc/passwd", F_OK), 0);
}

static void deletes_many_files(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(create(f, "t", 0, ID_A), 0);
    run("cd '%s/t-0' && seq 5000 | xargs touch", f->path);
    assert_int_equal(delete (f, "t", 0, ID_A), 0);
    assert_false(exists(f, "t-0"));
}

static void keeps_another_topic(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(create(f, "t", 0, ID_A), 0);
    assert_int_equal(delete (f, "t", 0, ID_B), 0);
    assert_false(exists(f, "t-0"));
    assert_int_equal(count(f, "-stray", NULL), 1);
    assert_int_equal(create(f, "t", 1, ID_A), 0);
    assert_int_equal(delete (f, "t", 1, ""), 0); /* asked for without an id */
    assert_int_equal(count(f, "-stray", NULL), 1);
    run("mkdir '%s/t-2'", f->path);
    assert_int_equal(delete (f, "t", 2, ID_A), 0); /* the directory has none */
    assert_false(exists(f, "t-2"));
    run("mkdir '%s/t-3' && touch '%s/t-3/precious'", f->path, f->path); /* not Kafka's at all */
    assert_int_equal(delete (f, "t", 3, ID_A), 0);
    g_autofree char *stray = NULL;
    assert_int_equal(count(f, "-stray", &stray), 2);
    run("test -f '%s'/t-3.*-stray/precious", f->path);
}

static void depth_is_limited(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(create(f, "t", 0, ID_A), 0);
    run("mkdir -p '%s/t-0/1/2/3/4/5/6/7/8'", f->path);
    assert_int_equal(delete (f, "t", 0, ID_A), 0);
    assert_int_equal(create(f, "t", 0, ID_A), 0);
    run("mkdir -p '%s/t-0/1/2/3/4/5/6/7/8/9' && touch '%s/t-0/file'", f->path, f->path);
    assert_int_equal(delete (f, "t", 0, ID_A), -ELOOP);
    assert_true(exists(f, "t-0/file")); /* nothing was touched */
}

static void a_link_goes_alone(void **state)
{
    struct fixture *f = *state;

    run("mkdir '%s/outside' && touch '%s/outside/x' && ln -s ../outside '%s/t-0'", f->top, f->top, f->path);
    assert_int_equal(delete (f, "t", 0, ID_A), 0);
    assert_false(exists(f, "t-0"));
    run("test -f '%s/outside/x'", f->top);
    run("touch '%s/u-0'", f->path);
    assert_int_equal(delete (f, "u", 0, ID_A), 0);
    assert_true(exists(f, "u-0")); /* a file is no replica */
}

static void delayed(void **state)
{
    struct fixture *f = *state;
    bool fatal;

    assert_int_equal(create(f, "t", 0, ID_A), 0);
    assert_int_equal(delete_task(f, "t", 0, ID_A, 5000, false, &fatal), 0);
    assert_false(exists(f, "t-0"));
    assert_int_equal(count(f, "-delete", NULL), 1);
    assert_int_equal(log_remove_doomed(f->d, 5999, warn, f), 6000);
    assert_int_equal(count(f, "-delete", NULL), 1);
    assert_int_equal(create(f, "t", 0, ID_B), 0); /* the same name lives again meanwhile */
    assert_int_equal(log_remove_doomed(f->d, 6000, warn, f), -1);
    assert_int_equal(count(f, "-delete", NULL), 0);
    assert_true(exists(f, "t-0"));
    assert_string_equal(f->warnings->str, "");
}

static bool can_mount(void)
{
    return geteuid() == 0;
}

static void a_mount_stops_it(void **state)
{
    struct fixture *f = *state;
    g_autofree char *inside = g_build_filename(f->path, "t-0", "deep", NULL);
    g_autofree char *on_top = g_build_filename(f->path, "u-0", NULL);
    bool fatal;

    if (!can_mount())
        skip();
    assert_int_equal(create(f, "t", 0, ID_A), 0);
    assert_int_equal(create(f, "u", 0, ID_A), 0);
    run("mkdir '%s'", inside);
    if (mount("none", inside, "tmpfs", 0, "size=1m") < 0)
        skip();
    run("touch '%s/precious'", inside);
    assert_int_equal(delete_task(f, "t", 0, ID_A, 0, false, &fatal), -EXDEV);
    assert_false(fatal); /* only this replica */
    assert_true(exists(f, "t-0/partition.metadata"));
    run("test -f '%s/precious'", inside);
    assert_int_equal(umount(inside), 0);
    assert_int_equal(delete (f, "t", 0, ID_A), 0);
    /* a bind mount of the same file system is a border too */
    assert_int_equal(create(f, "t", 0, ID_A), 0);
    run("mkdir '%s' '%s/outside' && touch '%s/outside/precious'", inside, f->top, f->top);
    g_autofree char *outside = g_build_filename(f->top, "outside", NULL);
    assert_int_equal(mount(outside, inside, NULL, MS_BIND, NULL), 0);
    assert_int_equal(delete_task(f, "t", 0, ID_A, 0, false, &fatal), -EXDEV);
    run("test -f '%s/precious'", outside);
    assert_int_equal(umount(inside), 0);
    /* on the directory itself: it cannot be renamed, which is a failed log dir to Kafka */
    assert_int_equal(mount("none", on_top, "tmpfs", 0, "size=1m"), 0);
    assert_int_equal(delete_task(f, "u", 0, ID_A, 0, false, &fatal), -EBUSY);
    assert_true(fatal);
    assert_int_equal(umount(on_top), 0);
    assert_true(exists(f, "u-0/partition.metadata"));
}

static void what_cannot_be_removed_keeps_its_name(void **state)
{
    struct fixture *f = *state;
    g_autofree char *file = g_build_filename(f->path, "t-0", "mounted", NULL);
    g_autofree char *source = g_build_filename(f->top, "source", NULL);
    bool fatal;

    if (!can_mount())
        skip();
    assert_int_equal(create(f, "t", 0, ID_A), 0);
    run("touch '%s' '%s'", file, source);
    if (mount(source, file, NULL, MS_BIND, NULL) < 0)
        skip();
    assert_int_equal(delete_task(f, "t", 0, ID_A, 0, false, &fatal), -EBUSY);
    assert_false(fatal);
    assert_true(exists(f, "t-0"));
    assert_int_equal(count(f, "-delete", NULL), 0);
    assert_int_equal(umount(file), 0);
    assert_int_equal(delete (f, "t", 0, ID_A), 0);
}

/* An attacker exchanges the replica with a link to a directory outside, over and over. */
struct attack {
    const char *path;
    atomic_bool stop;
};

static void *exchange(void *arg)
{
    struct attack *a = arg;
    g_autofree char *one = g_build_filename(a->path, "t-0", NULL);
    g_autofree char *two = g_build_filename(a->path, "evil", NULL);

    while (!atomic_load(&a->stop))
        (void)renameat2(AT_FDCWD, one, AT_FDCWD, two, RENAME_EXCHANGE);
    return NULL;
}

static void remove_by_path(const char *path) /* what must not be done: the control of this test */
{
    g_autoptr(GDir) d = g_dir_open(path, 0, NULL);
    const char *name;

    while (d && (name = g_dir_read_name(d))) {
        g_autofree char *file = g_build_filename(path, name, NULL);
        unlink(file);
    }
}

static int attack_rounds(struct fixture *f, bool by_path, int rounds)
{
    struct attack a = {.path = f->path};
    int hurt = 0;

    for (int i = 0; i < rounds && !(by_path && hurt); i++) {
        pthread_t thread;
        run("rm -rf '%s'/* '%s/outside'; mkdir '%s/outside' '%s/t-0'; touch '%s/outside/precious' '%s/t-0/x'; "
            "ln -s ../outside '%s/evil'",
                f->path, f->top, f->top, f->path, f->top, f->path, f->path);
        atomic_store(&a.stop, false);
        assert_int_equal(pthread_create(&thread, NULL, exchange, &a), 0);
        for (int k = 0; k < 20; k++) {
            bool fatal;
            if (by_path) {
                g_autofree char *path = g_build_filename(f->path, "t-0", NULL);
                struct stat st;
                if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode))
                    remove_by_path(path);
            } else {
                (void)delete_task(f, "t", 0, ID_A, 0, false, &fatal);
            }
        }
        atomic_store(&a.stop, true);
        pthread_join(thread, NULL);
        g_autofree char *precious = g_build_filename(f->top, "outside", "precious", NULL);
        hurt += access(precious, F_OK) != 0;
    }
    return hurt;
}

static void survives_the_race(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(attack_rounds(f, false, 60), 0);
    if (attack_rounds(f, true, 2000) == 0)
        print_message("the control did no harm here: the race was not met on this machine\n");
}

/* ---- loading ---- */

static GArray *load(struct fixture *f)
{
    GArray *found = g_array_new(FALSE, TRUE, sizeof(struct found_log));
    char *why = NULL;

    if (log_dir_load(f->d, 7000, found, warn, f, &why) < 0)
        fail_msg("%s", why);
    return found;
}

static const struct found_log *find(const GArray *found, const char *topic, int32_t partition)
{
    for (guint i = 0; i < found->len; i++) {
        const struct found_log *l = &g_array_index(found, struct found_log, i);
        if (strcmp(l->topic, topic) == 0 && l->partition == partition)
            return l;
    }
    return NULL;
}

static void finds_what_is_there(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(create(f, "t", 0, ID_A), 0);
    assert_int_equal(create(f, "a.b", 3, ID_B), 0);
    run("cd '%s' && mkdir t-1.x-delete t-2.x-future t-3.x-stray __cluster_metadata-0 torn-0 old-0 empty-0 && "
        ": > torn-0/partition.metadata && : > torn-0/00000000000000000000.log && "
        "echo data > old-0/00000000000000000000.log && touch plain-file .kafka_cleanshutdown",
            f->path);
    GArray *found = load(f);
    assert_int_equal(found->len, 6);
    assert_string_equal(find(found, "t", 0)->topic_id, ID_A);
    assert_false(find(found, "t", 0)->torn);
    assert_string_equal(find(found, "a.b", 3)->topic_id, ID_B);
    assert_true(find(found, "t", 2)->future);
    assert_true(find(found, "torn", 0)->torn);
    assert_true(find(found, "empty", 0)->torn);
    assert_false(find(found, "old", 0)->torn); /* from before topic ids */
    assert_string_equal(find(found, "old", 0)->topic_id, "");
    found_logs_free(found);
    assert_false(exists(f, ".kafka_cleanshutdown"));
    assert_true(exists(f, "recovery-point-offset-checkpoint"));
    /* what was half-deleted goes when it is due */
    assert_int_equal(log_remove_doomed(f->d, 6999, warn, f), 7000);
    assert_int_equal(log_remove_doomed(f->d, 7000, warn, f), -1);
    assert_false(exists(f, "t-1.x-delete"));
    assert_true(exists(f, "t-3.x-stray"));
    /* the future directory goes with its replica */
    bool fatal;
    assert_int_equal(delete_task(f, "t", 2, "", 0, true, &fatal), 0);
    assert_false(exists(f, "t-2.x-future"));
}

static void without_topic_ids(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(create(f, "t", 0, ID_A), 0);
    f->d->use_topic_ids = false;
    assert_int_equal(create(f, "u", 0, ID_A), 0);
    assert_false(exists(f, "u-0/partition.metadata"));
    GArray *found = load(f);
    assert_false(exists(f, "t-0/partition.metadata"));
    assert_false(find(found, "t", 0)->torn);
    assert_false(find(found, "u", 0)->torn);
    found_logs_free(found);
}

static void bad_metadata_is_the_disk(void **state)
{
    static const char *const bad[] = {"version: 1\ntopic_id: " ID_A, "version: 0\ntopic_id: short", "rubbish",
            "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", "version: 0\ntopic_id: " ID_A "\nmore"};
    struct fixture *f = *state;

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        GArray *found = g_array_new(FALSE, TRUE, sizeof(struct found_log));
        g_autofree char *file = g_build_filename(f->path, "t-0", "partition.metadata", NULL);
        char *why = NULL;
        run("mkdir -p '%s/t-0'", f->path);
        assert_true(g_file_set_contents(file, bad[i], -1, NULL));
        if (log_dir_load(f->d, 0, found, warn, f, &why) == 0)
            fail_msg("accepted: %s", bad[i]);
        assert_true(strstr(why, "t-0") != NULL);
        g_free(why);
        found_logs_free(found);
    }
}

static void foreign_names(void **state)
{
    struct fixture *f = *state;
    char *why = NULL;

    assert_int_equal(create(f, "t", 0, ID_A), 0);
    run("touch '%s/lost+found.txt' && mkdir '%s/t-1.x-delete' && ln -s /etc/passwd '%s/link'", f->path, f->path,
            f->path);
    assert_int_equal(log_dir_check_names(f->d, &why), 0);
    run("mkdir '%s/lost+found' && touch '%s/lost+found/f'", f->path, f->path);
    assert_int_equal(log_dir_check_names(f->d, &why), -EINVAL);
    assert_true(strstr(why, "lost+found") != NULL);
    g_clear_pointer(&why, g_free);
    assert_true(exists(f, "lost+found/f"));
    run("rm -r '%s/lost+found' && ln -s ../elsewhere '%s/u-0' && mkdir '%s/elsewhere'", f->path, f->path, f->top);
    assert_int_equal(log_dir_check_names(f->d, &why), -EINVAL);
    assert_true(strstr(why, "symbolic link") != NULL);
    g_free(why);
}

/* ---- lock, identity ---- */

static void lock(void **state)
{
    struct fixture *f = *state;
    struct log_dir *second;
    char *why = NULL;

    assert_int_equal(log_dir_lock(f->d, &why), 0);
    /* another broker of this process */
    assert_int_equal(log_dir_open(f->path, true, &second, &why), 0);
    assert_int_equal(log_dir_lock(second, &why), -EBUSY);
    assert_true(strstr(why, f->path) != NULL);
    g_clear_pointer(&why, g_free);
    /* another process, as Java locks */
    pid_t pid = fork();
    if (pid == 0) {
        g_autofree char *file = g_build_filename(f->path, ".lock", NULL);
        struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        int fd = open(file, O_RDWR);
        _exit(fd >= 0 && fcntl(fd, F_SETLK, &l) < 0 && (errno == EAGAIN || errno == EACCES) ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    /* released with the log dir; the file that is left does not count */
    log_dir_close(f->d);
    f->d = NULL;
    assert_int_equal(log_dir_lock(second, &why), 0);
    log_dir_close(second);
}

static void lock_of_another_process(void **state)
{
    struct fixture *f = *state;
    int ready[2], done[2];
    char *why = NULL, c = 'x';

    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(done), 0);
    pid_t pid = fork();
    if (pid == 0) {
        g_autofree char *file = g_build_filename(f->path, ".lock", NULL);
        struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        int fd = open(file, O_RDWR | O_CREAT, 0644);
        close(done[1]);
        if (fd < 0 || fcntl(fd, F_SETLK, &l) < 0 || write(ready[1], &c, 1) != 1)
            _exit(1);
        _exit(read(done[0], &c, 1) == 0 ? 0 : 1);
    }
    close(done[0]);
    assert_int_equal(read(ready[0], &c, 1), 1);
    assert_int_equal(log_dir_lock(f->d, &why), -EBUSY);
    g_free(why);
    close(done[1]);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(log_dir_lock(f->d, &why), 0);
    close(ready[0]);
    close(ready[1]);
}

static void a_locked_disk_can_be_made_read_only(void **state)
{
    struct fixture *f = *state;
    g_autofree char *path = g_build_filename(f->top, "disk", NULL);
    struct log_dir *d;
    char *why = NULL;

    if (!can_mount() || mkdir(path, 0755) < 0 || mount("none", path, "tmpfs", 0, "size=1m") < 0)
        skip();
    assert_int_equal(log_dir_open(path, true, &d, &why), 0);
    assert_int_equal(log_dir_lock(d, &why), 0);
    assert_int_equal(mount("none", path, "tmpfs", MS_REMOUNT | MS_RDONLY, NULL), 0);
    struct log_task t = {.topic = topic_ref_new("t", ID_A)};
    int r = log_create(d, &t);
    assert_int_equal(r, -EROFS);
    assert_true(log_dir_error_is_fatal(r));
    topic_ref_unref(t.topic);
    log_dir_close(d);
    assert_int_equal(umount(path), 0);
}

static void notices_another_directory(void **state)
{
    struct fixture *f = *state;
    char *why = NULL;

    assert_int_equal(log_dir_check(f->d, &why), 0);
    run("mv '%s' '%s.away'", f->path, f->path);
    assert_int_equal(log_dir_check(f->d, &why), -ENOENT);
    g_clear_pointer(&why, g_free);
    run("mkdir '%s/evil' && ln -s evil '%s'", f->top, f->path);
    assert_int_equal(log_dir_check(f->d, &why), -ESTALE);
    g_clear_pointer(&why, g_free);
    /* the descriptor still means the old one */
    assert_int_equal(create(f, "t", 0, ID_A), 0);
    run("test -d '%s.away/t-0' && test ! -e '%s/evil/t-0'", f->path, f->top);
}

static void makes_missing_parents(void **state)
{
    struct fixture *f = *state;
    g_autofree char *path = g_build_filename(f->top, "x", "y", "z", NULL);
    g_autofree char *bad = g_build_filename(f->top, "file", "z", NULL);
    struct log_dir *d;
    char *why = NULL;

    assert_int_equal(log_dir_open(path, true, &d, &why), 0);
    log_dir_close(d);
    run("touch '%s/file'", f->top);
    assert_true(log_dir_open(bad, true, &d, &why) < 0);
    assert_true(strstr(why, bad) != NULL);
    g_free(why);
    log_dir_close(NULL);
}

/* ---- checkpoints ---- */

static void checkpoints(void **state)
{
    struct fixture *f = *state;
    g_autoptr(GPtrArray) logs = g_ptr_array_new();

    run("cd '%s' && printf '0\\n2\\nt 0 15\\nt 1 0\\n' > replication-offset-checkpoint && "
        "printf '0\\n1\\nt 0 4\\n' > cleaner-offset-checkpoint && printf '0\\n5\\nt 0 4\\n' > "
        "recovery-point-offset-checkpoint && printf '1\\n0\\n' > log-start-offset-checkpoint",
            f->path);
    assert_int_equal(checkpoints_read(f->d, warn, f), 0);
    assert_true(strstr(f->warnings->str, "recovery-point-offset-checkpoint") != NULL);
    assert_true(strstr(f->warnings->str, "log-start-offset-checkpoint") != NULL);
    assert_null(strstr(f->warnings->str, "replication"));
    g_ptr_array_add(logs, (char *)"t 0");
    g_ptr_array_add(logs, (char *)"u 7");
    for (int i = 0; i < CHECKPOINT_N; i++)
        assert_int_equal(checkpoint_write(f->d, i, logs), 0);
    g_autofree char *hw = content(f, "replication-offset-checkpoint");
    assert_string_equal(hw, "0\n2\nt 0 15\nu 7 0\n");
    g_autofree char *cleaner = content(f, "cleaner-offset-checkpoint");
    assert_string_equal(cleaner, "0\n1\nt 0 4\n");
    g_autofree char *start = content(f, "log-start-offset-checkpoint");
    assert_string_equal(start, "0\n0\n");
    /* a deleted topic of the same name starts anew (KAFKA-1819) */
    assert_true(checkpoints_forget(f->d, "t", 0));
    assert_false(checkpoints_forget(f->d, "t", 0));
    assert_int_equal(checkpoint_write(f->d, CHECKPOINT_CLEANER, logs), 0);
    g_autofree char *after = content(f, "cleaner-offset-checkpoint");
    assert_string_equal(after, "0\n0\n");
    assert_int_equal(clean_shutdown_write(f->d), 0);
    assert_true(exists(f, ".kafka_cleanshutdown"));
    assert_int_equal(clean_shutdown_remove(f->d), 0);
    assert_false(exists(f, ".kafka_cleanshutdown"));
}

static void writes_through_no_link(void **state)
{
    struct fixture *f = *state;

    run("touch '%s/victim' && ln -s ../victim '%s/meta.properties.tmp' && ln -s ../victim '%s/meta.properties'", f->top,
            f->path, f->path);
    assert_int_equal(log_dir_write_file(f->d, "meta.properties", "x\n", 2), 0);
    g_autofree char *text = content(f, "meta.properties");
    assert_string_equal(text, "x\n");
    run("test ! -s '%s/victim'", f->top);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(names),
            cmocka_unit_test(unique_names_fit),
            cmocka_unit_test_setup_teardown(makes_what_kafka_leaves, set_up, tear_down),
            cmocka_unit_test_setup_teardown(longest_names, set_up, tear_down),
            cmocka_unit_test_setup_teardown(completes_a_torn_one, set_up, tear_down),
            cmocka_unit_test_setup_teardown(sets_aside_another_topic, set_up, tear_down),
            cmocka_unit_test_setup_teardown(creation_follows_no_link, set_up, tear_down),
            cmocka_unit_test_setup_teardown(deletes_everything_inside, set_up, tear_down),
            cmocka_unit_test_setup_teardown(deletes_many_files, set_up, tear_down),
            cmocka_unit_test_setup_teardown(keeps_another_topic, set_up, tear_down),
            cmocka_unit_test_setup_teardown(depth_is_limited, set_up, tear_down),
            cmocka_unit_test_setup_teardown(a_link_goes_alone, set_up, tear_down),
            cmocka_unit_test_setup_teardown(delayed, set_up, tear_down),
            cmocka_unit_test_setup_teardown(a_mount_stops_it, set_up, tear_down),
            cmocka_unit_test_setup_teardown(what_cannot_be_removed_keeps_its_name, set_up, tear_down),
            cmocka_unit_test_setup_teardown(survives_the_race, set_up, tear_down),
            cmocka_unit_test_setup_teardown(finds_what_is_there, set_up, tear_down),
            cmocka_unit_test_setup_teardown(without_topic_ids, set_up, tear_down),
            cmocka_unit_test_setup_teardown(bad_metadata_is_the_disk, set_up, tear_down),
            cmocka_unit_test_setup_teardown(foreign_names, set_up, tear_down),
            cmocka_unit_test_setup_teardown(lock, set_up, tear_down),
            cmocka_unit_test_setup_teardown(lock_of_another_process, set_up, tear_down),
            cmocka_unit_test_setup_teardown(a_locked_disk_can_be_made_read_only, set_up, tear_down),
            cmocka_unit_test_setup_teardown(notices_another_directory, set_up, tear_down),
            cmocka_unit_test_setup_teardown(makes_missing_parents, set_up, tear_down),
            cmocka_unit_test_setup_teardown(checkpoints, set_up, tear_down),
            cmocka_unit_test_setup_teardown(writes_through_no_link, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
