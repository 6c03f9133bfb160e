/* Log dirs that are refused, fail, are changed by others, or hang. */
#include "tests/unit/engine_fixture.h"

/* ---- a disk that hangs, a clock that runs ---- */

enum moment { NEVER, OPEN, LOAD, CREATE };
static _Atomic enum moment hang; /* of the log dir of broker 2 */
static struct latch hanging, unhang;
static _Atomic int64_t clock_offset;

static void come_to(const struct log_dir *d, enum moment moment)
{
    if (atomic_load(&hang) == moment && strstr(d->path, "/2")) {
        latch_set(&hanging, 0);
        latch_wait(&unhang, 600);
    }
}

static void hang_at(enum moment moment)
{
    latch_init(&hanging);
    latch_init(&unhang);
    atomic_store(&hang, moment);
}

static void go_on(void)
{
    atomic_store(&hang, NEVER);
    latch_set(&unhang, 0);
}

static void no_more_hanging(void)
{
    latch_clear(&hanging);
    latch_clear(&unhang);
}

int __real_log_create(struct log_dir *d, struct log_task *task);
int __wrap_log_create(struct log_dir *d, struct log_task *task);
int __wrap_log_create(struct log_dir *d, struct log_task *task)
{
    come_to(d, CREATE);
    return __real_log_create(d, task);
}

int __real_log_dir_check_names(const struct log_dir *d, char **ret_why);
int __wrap_log_dir_check_names(const struct log_dir *d, char **ret_why);
int __wrap_log_dir_check_names(const struct log_dir *d, char **ret_why)
{
    come_to(d, OPEN);
    return __real_log_dir_check_names(d, ret_why);
}

typedef void warning(void *arg, const char *entry, const char *why);
int __real_log_dir_load(struct log_dir *d, int64_t due_ms, GArray *found, warning *warn, void *arg, char **ret_why);
int __wrap_log_dir_load(struct log_dir *d, int64_t due_ms, GArray *found, warning *warn, void *arg, char **ret_why);
int __wrap_log_dir_load(struct log_dir *d, int64_t due_ms, GArray *found, warning *warn, void *arg, char **ret_why)
{
    come_to(d, LOAD);
    return __real_log_dir_load(d, due_ms, found, warn, arg, ret_why);
}

int64_t __real_engine_now_ms(void);
int64_t __wrap_engine_now_ms(void);
int64_t __wrap_engine_now_ms(void)
{
    return __real_engine_now_ms() + atomic_load(&clock_offset);
}

static void a_start_that_is_refused(void **state)
{
    struct fixture *f = cluster(3);

    topic(f, "t", "{\"0\":[2,1]}");
    settle(f);
    assert_int_equal(kill_broker(f, 2), 0);
    settle(f);
    shell(f, "mkdir 2/lost+found");
    assert_int_equal(start_broker(f, 2), EINVAL);
    expect_error_line(f, "lost+found");
    assert_false(registered(f, 2));
    shell(f, "rmdir 2/lost+found && sed -i s/^broker.id=.*/broker.id=3/ 2/meta.properties");
    assert_int_equal(start_broker(f, 2), EINVAL);
    shell(f, "sed -i -e s/^broker.id=.*/broker.id=2/ -e s/^cluster.id=.*/cluster.id=AAAAAAAAAAAAAAAAAAAAAA/ "
             "2/meta.properties");
    assert_int_equal(start_broker(f, 2), EINVAL);
    shell(f, "grep -q AAAAAAAA 2/meta.properties && rm 2/meta.properties");
    write_file(f, 2, "listeners=PLAINTEXT://localhost:9001\n");
    assert_int_equal(start_broker(f, 2), EADDRINUSE);
    write_file(f, 2, "num.partitions=x\n");
    assert_int_equal(start_broker(f, 2), EINVAL);
    expect_error_line(f, "num.partitions");
    /* another process, or another broker of this one, has its log dir */
    write_file(f, 2, "");
    g_autofree char *other = g_strdup_printf("log.dirs=%s/logs/3\n", f->dir);
    write_file(f, 2, other);
    assert_int_equal(start_broker(f, 2), EBUSY);
    g_autofree char *text = ask(f, STATE_READ, "/2/state", NULL);
    assert_true(g_str_has_prefix(text, "failed: "));
    write_file(f, 2, "");
    assert_int_equal(start_broker(f, 2), 0);
    settle(f);
    assert_int_equal(in_sync(f, "t", 0), 2);
    shell(f, "grep -qx broker.id=2 2/meta.properties");
    destroy(f);
}

static void one_bad_broker_does_not_stop_the_others(void **state)
{
    struct fixture *f = make();

    g_autofree char *dir = g_strdup_printf("mkdir -p '%s/logs/2/rubbish'", f->dir);
    assert_int_equal(system(dir), 0);
    add_brokers(f, 3);
    engine_add_failed_broker(f->engine, 5, "server-5.properties", "half-written");
    start(f);
    settle(f);
    assert_true(registered(f, 1) && registered(f, 3));
    assert_false(registered(f, 2));
    expect_state(f, STATE_LIST, "", "1:0 2:0 3:0 5:0");
    expect_state(f, STATE_READ, "/5/state", "failed: half-written\n");
    expect_error_line(f, "rubbish");
    destroy(f);
}

static void a_log_dir_fails(void **state)
{
    struct fixture *f = make();

    g_autofree char *two = g_strdup_printf("log.dirs=%s/logs/2/a,%s/logs/2/b\n", f->dir, f->dir);
    write_file(f, 2, two);
    add_brokers(f, 3);
    start(f);
    settle(f);
    topic(f, "t", "{\"0\":[2,1],\"1\":[2,3]}");
    settle(f);
    assert_true(on_disk(f, "2/a/t-0") != on_disk(f, "2/a/t-1"));
    bool first = on_disk(f, "2/b/t-0");
    shell(f, "mv 2/b 2/away");
    /* noticed by itself: inotify, then the dir's worker, then the controller */
    AWAIT(is_state(f, STATE_LIST, "/2/offline_log_dirs", "1:3"));
    settle(f);
    expect_state(f, STATE_LIST, "/2/log_dirs", "0:3");
    int gone = first ? 0 : 1, kept = 1 - gone;
    assert_int_equal(leader(f, "t", gone), first ? 1 : 3);
    assert_int_equal(leader(f, "t", kept), 2);
    expect_state(f, STATE_READ, "/2/state", "running\n");
    /* brought back, and started again: all is well */
    shell(f, "mv 2/away 2/b");
    assert_int_equal(kill_broker(f, 2), 0);
    assert_int_equal(start_broker(f, 2), 0);
    settle(f);
    assert_int_equal(in_sync(f, "t", 0), 2);
    assert_int_equal(in_sync(f, "t", 1), 2);
    /* the last one gone ends the broker */
    shell(f, "mv 2/b 2/away && mv 2/a 2/away2");
    AWAIT(!registered(f, 2));
    settle(f);
    g_autofree char *text = ask(f, STATE_READ, "/2/state", NULL);
    assert_true(g_str_has_prefix(text, "failed: log dir "));
    destroy(f);
}

static void removed_by_hand(void **state)
{
    struct fixture *f = cluster(3);

    topic(f, "t", "{\"0\":[2,1],\"1\":[2,1]}");
    settle(f);
    shell(f, "rm -r 2/t-0");
    AWAIT(has_error_line(f, "/2/t-0: somebody removed"));
    g_autofree char *errors = read_journal(f->errors);
    assert_null(strstr(errors, "/2/t-1"));
    delete_topic(f, "t");
    settle(f);
    assert_false(mirror_exists(f->mirror, "/brokers/topics/t"));
    destroy(f);
}

static void a_silent_disk_is_not_waited_for(void **state)
{
    struct fixture *f = cluster(3);

    hang_at(CREATE);
    topic(f, "t", "{\"0\":[2,1],\"1\":[3,1]}");
    assert_int_equal(latch_wait(&hanging, PATIENCE_S), 0);
    assert_false(settles(f, 1)); /* it may still answer */
    atomic_store(&clock_offset, 40000);
    topic(f, "u", "{\"0\":[2,3]}"); /* wakes the engine up; queued behind the hang */
    assert_true(settles(f, PATIENCE_S));
    expect_error_line(f, "/logs/2: broker 2: the disk has not answered for 30 s");
    /* the others go on */
    topic(f, "v", "{\"0\":[3,1]}");
    settle(f);
    assert_true(on_disk(f, "3/v-0") && on_disk(f, "1/v-0"));
    expect_state(f, STATE_READ, "/2/state", "running\n");
    /* a new life of the broker waits for what the former one left on the disk */
    assert_int_equal(kill_broker(f, 2), 0);
    struct latch l;
    latch_init(&l);
    gen_t gen = settle_hold_now(f->settle);
    engine_start_broker(f->engine, 2, gen, on_answer, &l);
    settle_release(f->settle, gen);
    assert_int_equal(latch_wait(&l, 1), -1);
    go_on();
    assert_int_equal(latch_wait(&l, PATIENCE_S), 0);
    settle(f);
    assert_true(on_disk(f, "2/t-0") && on_disk(f, "2/u-0"));
    assert_int_equal(in_sync(f, "t", 0), 2);
    assert_int_equal(in_sync(f, "u", 0), 2);
    latch_clear(&l);
    no_more_hanging();
    atomic_store(&clock_offset, 0);
    destroy(f);
}

/* ---- a start that is called off ---- */

static void start_later(struct fixture *f, int32_t id, struct latch *l)
{
    latch_init(l);
    gen_t gen = settle_hold_now(f->settle);
    engine_start_broker(f->engine, id, gen, on_answer, l);
    settle_release(f->settle, gen);
}

static void write_state(struct fixture *f, const char *path, const char *state)
{
    g_autofree char *answer = ask(f, STATE_WRITE, path, state);

    assert_string_equal(answer, "done");
}

/* Its log dirs are being opened: neither the barrier nor others wait for what is not to start any more. */
static void stopped_while_it_starts(void **state)
{
    struct fixture *f = cluster(3);
    struct latch l;

    assert_int_equal(kill_broker(f, 2), 0);
    settle(f);
    hang_at(OPEN);
    start_later(f, 2, &l);
    assert_int_equal(latch_wait(&hanging, PATIENCE_S), 0);
    write_state(f, "/2/state", "stopped\n");
    assert_int_equal(latch_wait(&l, PATIENCE_S), ECANCELED);
    go_on();
    assert_true(settles(f, 10)); /* not after DISK_SILENCE_MS */
    expect_state(f, STATE_READ, "/2/state", "stopped\n");
    assert_int_equal(start_broker(f, 2), 0);
    latch_clear(&l);
    no_more_hanging();
    destroy(f);
}

/* It has been asked to start again when it has stopped, and then to stay stopped. */
static void stopped_before_it_starts_again(void **state)
{
    struct fixture *f = cluster(3);
    struct latch l;

    hang_at(CREATE);
    topic(f, "t", "{\"0\":[2,1]}");
    assert_int_equal(latch_wait(&hanging, PATIENCE_S), 0);
    write_state(f, "/2/state", "stopped\n"); /* it cannot close its log dir yet */
    start_later(f, 2, &l);
    write_state(f, "/2/state", "stopped\n");
    assert_int_equal(latch_wait(&l, PATIENCE_S), ECANCELED);
    go_on();
    settle(f);
    expect_state(f, STATE_READ, "/2/state", "stopped\n");
    latch_clear(&l);
    no_more_hanging();
    destroy(f);
}

/* Offsets that a Kafka has left are those of logs that are not known yet. */
static void stopped_while_it_loads(void **state)
{
    static const char checkpoint[] = "grep -qx 't 0 42' 2/recovery-point-offset-checkpoint";
    struct fixture *f = cluster(3);

    topic(f, "t", "{\"0\":[2,1]}");
    settle(f);
    assert_int_equal(kill_broker(f, 2), 0);
    settle(f);
    shell(f, "printf '0\n1\nt 0 42\n' >2/recovery-point-offset-checkpoint");
    write_file(f, 2, "controlled.shutdown.enable=false\n");
    hang_at(LOAD);
    assert_int_equal(start_broker(f, 2), 0);
    assert_int_equal(latch_wait(&hanging, PATIENCE_S), 0);
    write_state(f, "/2/state", "stopped\n");
    go_on();
    settle(f);
    expect_state(f, STATE_READ, "/2/state", "stopped\n");
    shell(f, "%s", checkpoint);
    assert_false(on_disk(f, "2/.kafka_cleanshutdown"));
    /* loaded, it knows them */
    assert_int_equal(start_broker(f, 2), 0);
    settle(f);
    write_state(f, "/2/state", "stopped\n");
    settle(f);
    shell(f, "%s", checkpoint);
    assert_true(on_disk(f, "2/.kafka_cleanshutdown"));
    no_more_hanging();
    destroy(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_start_that_is_refused),
            cmocka_unit_test(one_bad_broker_does_not_stop_the_others),
            cmocka_unit_test(a_log_dir_fails),
            cmocka_unit_test(removed_by_hand),
            cmocka_unit_test(a_silent_disk_is_not_waited_for),
            cmocka_unit_test(stopped_while_it_starts),
            cmocka_unit_test(stopped_before_it_starts_again),
            cmocka_unit_test(stopped_while_it_loads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
