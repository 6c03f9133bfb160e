/* Names, creation and deletion of replicas in a log dir. */
#include "tests/unit/log_dir_fixture.h"
#include <sys/resource.h>

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

/* The request fails, and whoever has another dir tries that one next. */
static void no_descriptor_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    struct rlimit before, none;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int r = create(f, "t", 0, ID_A);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(r, -EMFILE);
    run("test -z \"$(ls '%s')\"", f->path);
    assert_int_equal(create(f, "t", 0, ID_A), 0);
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

/* Those that are due go, the others keep their turn; and the disk shows that it works, however many there are. */
static void delayed_each_by_its_own(void **state)
{
    struct fixture *f = *state;
    _Atomic int64_t alive = 0;
    bool fatal;

    for (int i = 0; i < 5; i++) {
        assert_int_equal(create(f, "t", i, ID_A), 0);
        assert_int_equal(delete_task(f, "t", i, ID_A, i % 2 ? 5000 : INT64_MAX, false, &fatal), 0);
    }
    assert_int_equal(log_remove_doomed(f->d, 5999, warn, f), 6000);
    assert_int_equal(count(f, "-delete", NULL), 5);
    f->d->alive_ms = &alive;
    assert_int_equal(log_remove_doomed(f->d, INT64_MAX - 1, warn, f), INT64_MAX); /* kept for ever */
    assert_true(alive > 0);
    assert_int_equal(count(f, "-delete", NULL), 3);
    assert_int_equal(f->d->doomed->len, 3);
    for (int i = 0; i < 3; i++) {
        g_autofree char *start = g_strdup_printf("t-%d.", 2 * i);
        assert_true(g_str_has_prefix(g_array_index(f->d->doomed, struct doomed_log, i).name, start));
    }
    assert_string_equal(f->warnings->str, "");
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
    const char *path, *link_dir;
    atomic_bool stop;
};

static void *exchange(void *arg)
{
    struct attack *a = arg;
    g_autofree char *one = g_build_filename(a->path, "t-0", NULL);
    g_autofree char *two = g_build_filename(a->link_dir, "evil", NULL);

    while (!atomic_load(&a->stop))
        (void)renameat2(AT_FDCWD, one, AT_FDCWD, two, RENAME_EXCHANGE);
    return NULL;
}

/* What must not be done: the control of this test. The attacker gets its turn between the look and the removal, with
 * one core, too. */
static void remove_by_path(const char *path)
{
    struct stat st;
    const char *name;

    if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
        return;
    g_usleep(1000);
    g_autoptr(GDir) d = g_dir_open(path, 0, NULL);

    while (d && (name = g_dir_read_name(d))) {
        g_autofree char *file = g_build_filename(path, name, NULL);
        unlink(file);
    }
}

static int attack_rounds(struct fixture *f, bool by_path, int rounds)
{
    struct attack a = {.path = f->path, .link_dir = f->path};
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
    /* every second of up to 100 rounds does harm, with one core, too */
    assert_int_equal(attack_rounds(f, true, 100), 1);
}

/* What is moved out of the log dir while it is opened gives EXDEV from openat2(), as a mount point does: that would be
 * a failed disk. */
static void moved_away_is_no_mount_point(void **state)
{
    struct fixture *f = *state;
    struct attack a = {.path = f->path, .link_dir = f->top};
    int mounts = 0, opened = 0, links = 0;
    pthread_t thread;

    run("mkdir '%s/t-0' '%s/outside' && ln -s outside '%s/evil'", f->path, f->top, f->top);
    assert_int_equal(pthread_create(&thread, NULL, exchange, &a), 0);
    for (int i = 0; i < 300000; i++) {
        int fd = log_dir_open_child(f->d->fd, "t-0");
        mounts += fd == -EXDEV;
        links += fd == -ELOOP || fd == -ENOTDIR;
        opened += fd >= 0;
        if (fd >= 0)
            close(fd);
    }
    atomic_store(&a.stop, true);
    pthread_join(thread, NULL);
    assert_int_equal(mounts, 0);
    assert_true(opened > 0 && links > 0); /* they did meet */
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
            cmocka_unit_test_setup_teardown(no_descriptor_leaves_nothing, set_up, tear_down),
            cmocka_unit_test_setup_teardown(creation_follows_no_link, set_up, tear_down),
            cmocka_unit_test_setup_teardown(deletes_everything_inside, set_up, tear_down),
            cmocka_unit_test_setup_teardown(deletes_many_files, set_up, tear_down),
            cmocka_unit_test_setup_teardown(keeps_another_topic, set_up, tear_down),
            cmocka_unit_test_setup_teardown(depth_is_limited, set_up, tear_down),
            cmocka_unit_test_setup_teardown(a_link_goes_alone, set_up, tear_down),
            cmocka_unit_test_setup_teardown(delayed, set_up, tear_down),
            cmocka_unit_test_setup_teardown(delayed_each_by_its_own, set_up, tear_down),
            cmocka_unit_test_setup_teardown(a_mount_stops_it, set_up, tear_down),
            cmocka_unit_test_setup_teardown(what_cannot_be_removed_keeps_its_name, set_up, tear_down),
            cmocka_unit_test_setup_teardown(survives_the_race, set_up, tear_down),
            cmocka_unit_test_setup_teardown(moved_away_is_no_mount_point, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
