/* What a log dir holds at the start, its lock, its checkpoints. */
#include "tests/unit/log_dir_fixture.h"

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
