/* Brokers and controller on a store in memory and real directories, without a mount. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "controller/broker/engine.h"
#include "controller/broker/log_dir.h"
#include "controller/json/codec.h"
#include "controller/thread.h"
#include "fs/policy.h"
#include "fs/tree/mirror.h"

#define PATIENCE_S 20

/* ---- the world ---- */

struct fixture {
    char *dir;
    struct settle *settle;
    struct journal *events, *errors;
    struct store *store;
    struct mirror *mirror;
    struct controller_thread *controller;
    struct engine *engine;
    bool running;
};

static int64_t wall_ms(void *ctx)
{
    return g_get_real_time() / 1000;
}

static void feed(void *ctx, struct commit *commit)
{
    struct fixture *f = ctx;

    mirror_apply(f->mirror, commit);
    controller_thread_feed(f->controller, commit);
    engine_feed(f->engine, commit);
}

static void store_failed(void *ctx, const char *why)
{
}

static bool never(void *arg, const char *path)
{
    return false;
}

static void load_one(void *arg, const char *path, struct bytes *data, const struct zstat *stat)
{
    mirror_load(arg, path, data, stat);
}

static void link_request(void *ctx, int32_t controller_id, int32_t broker_id, int64_t broker_epoch,
        struct control_request *request, gen_t gen)
{
    engine_request(((struct fixture *)ctx)->engine, controller_id, broker_id, broker_epoch, request, gen);
}

static void link_respond(void *ctx, struct broker_request *request, gen_t gen)
{
    engine_respond(((struct fixture *)ctx)->engine, request, gen);
}

/* A one-shot signal between threads. */
struct latch {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
    int value;
};

static void latch_init(struct latch *l)
{
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->changed, NULL);
    l->done = false;
}

static void latch_set(struct latch *l, int value)
{
    pthread_mutex_lock(&l->lock);
    l->done = true;
    l->value = value;
    pthread_cond_broadcast(&l->changed);
    pthread_mutex_unlock(&l->lock);
}

/* -1: it did not come. */
static int latch_wait(struct latch *l, int seconds)
{
    struct timespec until;
    int value;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    pthread_mutex_lock(&l->lock);
    while (!l->done && pthread_cond_timedwait(&l->changed, &l->lock, &until) == 0)
        ;
    value = l->done ? l->value : -1;
    pthread_mutex_unlock(&l->lock);
    return value;
}

static void latch_clear(struct latch *l)
{
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->changed);
}

static void on_settled(void *arg)
{
    latch_set(arg, 0);
}

static void on_answer(void *arg, int err)
{
    latch_set(arg, err);
}

static bool settles(struct fixture *f, int seconds)
{
    struct latch l;

    latch_init(&l);
    struct settle_waiter *w = settle_wait(f->settle, settle_begin(f->settle), on_settled, &l);
    bool done = latch_wait(&l, seconds) == 0;
    if (!settle_cancel(f->settle, w) && !done)
        latch_wait(&l, seconds);
    latch_clear(&l);
    return done;
}

static void settle(struct fixture *f)
{
    if (!settles(f, PATIENCE_S))
        fail_msg("does not settle");
}

static char *read_journal(struct journal *j)
{
    GString *text = g_string_new(NULL);
    uint64_t pos = 0;
    char buf[4096];
    size_t n;

    while ((n = journal_read(j, &pos, buf, sizeof buf)) > 0)
        g_string_append_len(text, buf, (gssize)n);
    return g_string_free(text, FALSE);
}

static void write_file(struct fixture *f, int id, const char *extra)
{
    g_autofree char *file = g_strdup_printf("%s/server-%d.properties", f->dir, id);
    g_autofree char *text =
            g_strdup_printf("broker.id=%d\nlog.dirs=%s/logs/%d\nlisteners=PLAINTEXT://localhost:%d\n"
                            "auto.leader.rebalance.enable=false\ncontrolled.shutdown.retry.backoff.ms=50\n%s",
                    id, f->dir, id, 9000 + id, extra);

    assert_true(g_file_set_contents(file, text, -1, NULL));
}

static void open_engine(struct fixture *f)
{
    f->controller = controller_thread_new(&(struct controller_thread_config){.store = f->store,
            .mirror = f->mirror,
            .settle = f->settle,
            .events = f->events,
            .errors = f->errors,
            .link = {.ctx = f, .request = link_request, .respond = link_respond}});
    f->engine = engine_new(&(struct engine_config){.store = f->store,
            .mirror = f->mirror,
            .settle = f->settle,
            .events = f->events,
            .errors = f->errors,
            .controller = f->controller,
            .cluster_dir = f->dir,
            .config_change_expiry_ms = 900000});
}

static void add_brokers(struct fixture *f, int n)
{
    for (int id = 1; id <= n; id++) {
        g_autofree char *file = g_strdup_printf("%s/server-%d.properties", f->dir, id);
        struct broker_config *config;
        char *why = NULL;
        if (broker_config_load(file, &config, &why) < 0 || engine_add_broker(f->engine, config, &why) < 0)
            fail_msg("%s", why);
    }
}

static void start(struct fixture *f)
{
    controller_thread_start(f->controller);
    gen_t gen = settle_hold_now(f->settle);
    engine_start(f->engine, gen);
    settle_release(f->settle, gen);
    f->running = true;
}

static void stop(struct fixture *f)
{
    controller_thread_stop(f->controller);
    engine_stop(f->engine);
    f->running = false;
}

/* Without threads and brokers. */
static struct fixture *make(void)
{
    struct fixture *f = g_new0(struct fixture, 1);
    char *why = NULL;

    f->dir = g_dir_make_tmp("engine.XXXXXX", NULL);
    f->settle = settle_new();
    f->events = journal_new(1 << 20);
    f->errors = journal_new(1 << 20);
    f->mirror = mirror_new(never, NULL);
    assert_int_equal(
            store_open_memory(&(struct store_config){.now_ms = wall_ms, .feed = feed, .failed = store_failed, .ctx = f},
                    &f->store),
            0);
    assert_int_equal(store_load(f->store, load_one, f->mirror, &why), 0);
    open_engine(f);
    store_start(f->store);
    for (int id = 1; id <= 3; id++)
        write_file(f, id, "");
    return f;
}

static void destroy(struct fixture *f)
{
    if (f->running)
        stop(f);
    engine_free(f->engine);
    controller_thread_free(f->controller);
    store_close(f->store);
    mirror_free(f->mirror);
    journal_free(f->events);
    journal_free(f->errors);
    settle_free(f->settle);
    g_autofree char *command = g_strdup_printf("rm -rf '%s'", f->dir);
    assert_int_equal(system(command), 0);
    g_free(f->dir);
    g_free(f);
}

static struct fixture *cluster(int n)
{
    struct fixture *f = make();

    add_brokers(f, n);
    start(f);
    settle(f);
    return f;
}

/* ---- acting and looking ---- */

static void txn_finished(struct txn *txn, void *arg)
{
    latch_set(arg, txn->rc == ZOK ? 0 : 1);
    txn_free(txn);
}

static void create(struct fixture *f, const char *path, const char *data)
{
    struct txn *txn = txn_new(TXN_CLIENT);
    struct latch l;

    latch_init(&l);
    txn_create(txn, path, data ? bytes_from_string(data) : NULL, 0);
    txn->gen = settle_hold_now(f->settle);
    gen_t gen = txn->gen;
    txn->done = txn_finished;
    txn->arg = &l;
    store_submit(f->store, txn);
    assert_int_equal(latch_wait(&l, PATIENCE_S), 0);
    settle_release(f->settle, gen);
    latch_clear(&l);
}

static void topic(struct fixture *f, const char *name, const char *partitions)
{
    g_autofree char *path = g_strdup_printf("/brokers/topics/%s", name);
    g_autofree char *data = g_strdup_printf("{\"version\":1,\"partitions\":%s}", partitions);

    create(f, path, data);
}

static void delete_topic(struct fixture *f, const char *name)
{
    g_autofree char *path = g_strdup_printf("/admin/delete_topics/%s", name);

    create(f, path, NULL);
}

static int command(struct fixture *f,
        void (*run)(struct engine *e, int32_t id, gen_t gen, void (*answer)(void *arg, int err), void *arg), int32_t id)
{
    struct latch l;

    latch_init(&l);
    gen_t gen = settle_hold_now(f->settle);
    run(f->engine, id, gen, on_answer, &l);
    int err = latch_wait(&l, PATIENCE_S);
    settle_release(f->settle, gen);
    latch_clear(&l);
    return err;
}

static int start_broker(struct fixture *f, int32_t id)
{
    return command(f, engine_start_broker, id);
}

static int kill_broker(struct fixture *f, int32_t id)
{
    return command(f, engine_kill_broker, id);
}

static bool registered(struct fixture *f, int id)
{
    g_autofree char *path = g_strdup_printf("/brokers/ids/%d", id);

    return mirror_exists(f->mirror, path);
}

static bool on_disk(struct fixture *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static bool on_disk(struct fixture *f, const char *fmt, ...)
{
    va_list ap;
    struct stat st;

    va_start(ap, fmt);
    g_autofree char *name = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    g_autofree char *path = g_strdup_printf("%s/logs/%s", f->dir, name);
    return lstat(path, &st) == 0;
}

static void shell(struct fixture *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void shell(struct fixture *f, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    g_autofree char *text = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    g_autofree char *whole = g_strdup_printf("cd '%s/logs' && %s", f->dir, text);
    if (system(whole) != 0)
        fail_msg("%s", whole);
}

static struct leader_and_isr state_of(struct fixture *f, const char *name, int partition)
{
    g_autofree char *path = g_strdup_printf("/brokers/topics/%s/partitions/%d/state", name, partition);
    struct leader_and_isr l = {.leader = -9};
    struct bytes *data = NULL;

    if (mirror_get(f->mirror, path, &data, NULL) == ZOK && data && leader_and_isr_decode(data, &l, NULL))
        l.partition_epoch = (int32_t)l.isr->n;
    bytes_unref(data);
    leader_and_isr_clear(&l);
    return l; /* partition_epoch: how many are in sync */
}

static int leader(struct fixture *f, const char *name, int partition)
{
    return state_of(f, name, partition).leader;
}

static int in_sync(struct fixture *f, const char *name, int partition)
{
    return state_of(f, name, partition).partition_epoch;
}

/* ---- `.state` ---- */

struct state_question {
    struct latch latch;
    char *text;
    int err;
};

void state_answer_error(struct state_question *q, int err)
{
    q->err = err;
    latch_set(&q->latch, 0);
}

void state_answer_kind(struct state_question *q, enum state_kind kind)
{
    q->text = g_strdup_printf("%d", kind);
    latch_set(&q->latch, 0);
}

void state_answer_bytes(struct state_question *q, const void *data, size_t len)
{
    q->text = g_strndup(data, len);
    latch_set(&q->latch, 0);
}

void state_answer_list(struct state_question *q, const struct state_entry *entries, size_t n)
{
    GString *text = g_string_new(NULL);

    for (size_t i = 0; i < n; i++)
        g_string_append_printf(text, "%s%s:%d", i ? " " : "", entries[i].name, entries[i].kind);
    q->text = g_string_free(text, FALSE);
    latch_set(&q->latch, 0);
}

void state_answer_done(struct state_question *q)
{
    latch_set(&q->latch, 0);
}

/* The answer, or "errno N". */
static char *ask(struct fixture *f, enum state_query query, const char *path, const char *value)
{
    struct state_question q = {0};
    struct bytes *bytes = value ? bytes_from_string(value) : NULL;
    g_autofree char *full = g_strdup_printf("/.state/brokers%s", path);

    latch_init(&q.latch);
    gen_t gen = settle_hold_now(f->settle);
    engine_state_ask(f->engine, (int)query, full, bytes, gen, &q);
    assert_int_equal(latch_wait(&q.latch, PATIENCE_S), 0);
    settle_release(f->settle, gen);
    bytes_unref(bytes);
    latch_clear(&q.latch);
    return q.err ? g_strdup_printf("errno %d", q.err) : q.text ? q.text : g_strdup("done");
}

static void expect_state(struct fixture *f, enum state_query query, const char *path, const char *want)
{
    g_autofree char *got = ask(f, query, path, NULL);

    if (strcmp(got, want) != 0)
        fail_msg("%s: '%s', not '%s'", path, got, want);
}

static void expect_error_line(struct fixture *f, const char *word)
{
    g_autofree char *errors = read_journal(f->errors);

    if (!strstr(errors, word))
        fail_msg("'%s' is not in: %s", word, errors);
}

/* ---- a disk that hangs, a clock that runs ---- */

static atomic_bool hang;
static struct latch hanging, unhang;
static _Atomic int64_t clock_offset;

int __real_log_create(struct log_dir *d, const struct log_task *task);
int __wrap_log_create(struct log_dir *d, const struct log_task *task);
int __wrap_log_create(struct log_dir *d, const struct log_task *task)
{
    if (atomic_load(&hang) && strstr(d->path, "/2")) {
        latch_set(&hanging, 0);
        latch_wait(&unhang, 600);
    }
    return __real_log_create(d, task);
}

int64_t __real_engine_now_ms(void);
int64_t __wrap_engine_now_ms(void);
int64_t __wrap_engine_now_ms(void)
{
    return __real_engine_now_ms() + atomic_load(&clock_offset);
}

/* ---- tests ---- */

static void a_cluster_comes_up(void **state)
{
    static const char *const roots[] = {"/consumers", "/brokers/ids", "/brokers/topics", "/brokers/seqid",
            "/config/changes", "/config/topics", "/config/clients", "/config/users", "/config/brokers", "/config/ips",
            "/admin/delete_topics", "/isr_change_notification", "/latest_producer_id_block",
            "/log_dir_event_notification", "/cluster/id", "/controller", "/controller_epoch"};
    struct fixture *f = cluster(3);

    for (size_t i = 0; i < G_N_ELEMENTS(roots); i++)
        if (!mirror_exists(f->mirror, roots[i]))
            fail_msg("%s is missing", roots[i]);
    struct zstat a, b;
    struct bytes *data;
    assert_int_equal(mirror_get(f->mirror, "/brokers/ids/1", &data, &a), ZOK);
    bytes_unref(data);
    assert_int_equal(mirror_get(f->mirror, "/brokers/ids/3", NULL, &b), ZOK);
    assert_int_equal(a.version, 1);
    assert_int_equal(a.czxid, b.czxid); /* all in one transaction */
    assert_true(a.ephemeral_owner != 0 && a.ephemeral_owner != b.ephemeral_owner);
    assert_int_equal(mirror_get(f->mirror, "/controller", &data, NULL), ZOK);
    int32_t id;
    assert_true(controller_znode_decode(data, &id, NULL));
    bytes_unref(data);
    assert_int_equal(id, 1);
    expect_state(f, STATE_READ, "/2/state", "running\n");
    topic(f, "t", "{\"0\":[2,1],\"1\":[3]}");
    settle(f);
    assert_true(on_disk(f, "2/t-0/partition.metadata") && on_disk(f, "1/t-0") && on_disk(f, "3/t-1"));
    assert_int_equal(leader(f, "t", 0), 2);
    delete_topic(f, "t");
    settle(f);
    assert_false(on_disk(f, "2/t-0") || on_disk(f, "1/t-0") || on_disk(f, "3/t-1"));
    assert_false(mirror_exists(f->mirror, "/brokers/topics/t"));
    assert_int_equal(engine_default_int(f->engine, "num.partitions", 7), 7);
    destroy(f);
}

static void the_end_touches_no_tree(void **state)
{
    struct fixture *f = cluster(2);
    g_autofree char *link = g_strdup_printf("%s/logs/1/t-0", f->dir);

    topic(f, "t", "{\"0\":[1,2]}");
    settle(f);
    expect_state(f, STATE_READLINK, "/1/logs/t-0", link);
    int64_t zxid = mirror_zxid(f->mirror);
    stop(f);
    assert_int_equal(mirror_zxid(f->mirror), zxid);
    assert_true(on_disk(f, "1/.kafka_cleanshutdown") && on_disk(f, "2/.kafka_cleanshutdown"));
    shell(f, "grep -qx 't 0 0' 1/recovery-point-offset-checkpoint");
    /* after the end nothing hangs */
    assert_int_equal(start_broker(f, 1), ESHUTDOWN);
    destroy(f);
}

static void nothing_without_brokers(void **state)
{
    struct fixture *f = make();

    start(f);
    settle(f);
    assert_int_equal(mirror_count(f->mirror), 0);
    assert_int_equal(start_broker(f, 2), 0);
    settle(f);
    assert_true(registered(f, 2));
    assert_true(mirror_exists(f->mirror, "/controller"));
    expect_state(f, STATE_LIST, "", "2:0");
    destroy(f);
}

static void dies_and_returns(void **state)
{
    struct fixture *f = cluster(3);

    topic(f, "t", "{\"0\":[2,1],\"1\":[1,2]}");
    settle(f);
    assert_int_equal(kill_broker(f, 2), 0);
    assert_false(registered(f, 2));
    assert_int_equal(kill_broker(f, 2), ENOENT);
    settle(f);
    expect_state(f, STATE_READ, "/2/state", "stopped\n");
    assert_int_equal(leader(f, "t", 0), 1);
    assert_int_equal(in_sync(f, "t", 1), 1);
    assert_false(on_disk(f, "2/.kafka_cleanshutdown"));
    assert_int_equal(start_broker(f, 2), 0);
    assert_int_equal(start_broker(f, 2), 0); /* running already */
    settle(f);
    assert_int_equal(in_sync(f, "t", 0), 2);
    assert_int_equal(in_sync(f, "t", 1), 2);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(kill_broker(f, 2), 0);
        assert_int_equal(start_broker(f, 2), 0);
    }
    settle(f);
    assert_int_equal(in_sync(f, "t", 0), 2);
    assert_int_equal(in_sync(f, "t", 1), 2);
    destroy(f);
}

static void stops_in_order(void **state)
{
    struct fixture *f = cluster(3);

    topic(f, "t", "{\"0\":[2,1]}");
    settle(f);
    g_autofree char *bad = ask(f, STATE_WRITE, "/2/state", "sleep\n");
    assert_string_equal(bad, "errno 22");
    g_autofree char *none = ask(f, STATE_WRITE, "/9/state", "stopped\n");
    assert_string_equal(none, "errno 2");
    g_autofree char *done = ask(f, STATE_WRITE, "/2/state", "stopped\n");
    assert_string_equal(done, "done");
    settle(f);
    expect_state(f, STATE_READ, "/2/state", "stopped\n");
    assert_false(registered(f, 2));
    assert_int_equal(leader(f, "t", 0), 1);
    assert_true(on_disk(f, "2/.kafka_cleanshutdown"));
    g_autofree char *again = ask(f, STATE_WRITE, "/2/state", "running\n");
    assert_string_equal(again, "done");
    settle(f);
    expect_state(f, STATE_READ, "/2/state", "running\n");
    assert_false(on_disk(f, "2/.kafka_cleanshutdown"));
    assert_int_equal(in_sync(f, "t", 0), 2);
    destroy(f);
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

static void ids_are_made(void **state)
{
    struct fixture *f = cluster(1);

    write_file(f, 2, "broker.id=-1\n");
    g_autofree char *file = g_strdup_printf("%s/server-2.properties", f->dir);
    struct broker_config *config;
    char *why;
    stop(f);
    engine_free(f->engine);
    controller_thread_free(f->controller);
    open_engine(f);
    assert_int_equal(broker_config_load(file, &config, &why), 0);
    assert_int_equal(engine_add_broker(f->engine, config, &why), 0);
    start(f);
    settle(f);
    assert_true(registered(f, 1001));
    shell(f, "grep -qx broker.id=1001 2/meta.properties");
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
    for (int i = 0; i < 200; i++) {
        settle(f);
        g_autofree char *offline = ask(f, STATE_LIST, "/2/offline_log_dirs", NULL);
        if (strcmp(offline, "1:3") == 0)
            break;
        g_usleep(10000);
    }
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
    for (int i = 0; i < 200 && registered(f, 2); i++)
        g_usleep(10000);
    settle(f);
    assert_false(registered(f, 2));
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
    for (int i = 0; i < 200; i++) {
        g_autofree char *errors = read_journal(f->errors);
        if (strstr(errors, "/2/t-0"))
            break;
        g_usleep(10000);
    }
    expect_error_line(f, "/2/t-0: somebody removed");
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

    latch_init(&hanging);
    latch_init(&unhang);
    atomic_store(&hang, true);
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
    atomic_store(&hang, false);
    latch_set(&unhang, 0);
    assert_int_equal(latch_wait(&l, PATIENCE_S), 0);
    settle(f);
    assert_true(on_disk(f, "2/t-0") && on_disk(f, "2/u-0"));
    assert_int_equal(in_sync(f, "t", 0), 2);
    assert_int_equal(in_sync(f, "u", 0), 2);
    latch_clear(&l);
    latch_clear(&hanging);
    latch_clear(&unhang);
    atomic_store(&clock_offset, 0);
    destroy(f);
}

static char *data_of(struct fixture *f, const char *path, struct zstat *stat)
{
    struct bytes *data = NULL;

    assert_int_equal(mirror_get(f->mirror, path, &data, stat), ZOK);
    char *text = g_strdup(data ? data->data : "");
    bytes_unref(data);
    return text;
}

static void listeners_change(void **state)
{
    struct fixture *f = cluster(2);
    struct zstat before, after;

    g_free(data_of(f, "/brokers/ids/2", &before));
    create(f, "/config/brokers/2", "{\"version\":1,\"config\":{\"advertised.listeners\":\"PLAINTEXT://elsewhere:7\"}}");
    create(f, "/config/changes/config_change_0000000000", "{\"version\":2,\"entity_path\":\"brokers/2\"}");
    settle(f);
    g_autofree char *text = data_of(f, "/brokers/ids/2", &after);
    assert_true(strstr(text, "PLAINTEXT://elsewhere:7") != NULL);
    assert_int_equal(after.czxid, before.czxid); /* the same life */
    assert_int_equal(after.version, before.version + 1);
    g_autofree char *other = data_of(f, "/brokers/ids/1", &after);
    assert_int_equal(after.version, 1);
    destroy(f);
}

static void the_old_protocol(void **state)
{
    struct fixture *f = make();
    struct zstat stat;

    for (int id = 1; id <= 3; id++)
        write_file(f, id, "inter.broker.protocol.version=2.6\n");
    add_brokers(f, 3);
    start(f);
    settle(f);
    g_autofree char *registration = data_of(f, "/brokers/ids/1", &stat);
    assert_true(strstr(registration, "\"version\":4") != NULL);
    g_autofree char *block = data_of(f, "/latest_producer_id_block", &stat);
    assert_true(strstr(block, "\"block_start\":\"2000\"") && strstr(block, "\"block_end\":\"2999\""));
    topic(f, "t", "{\"0\":[2,1]}");
    settle(f);
    assert_false(on_disk(f, "2/t-0/partition.metadata")); /* no topic ids */
    assert_true(on_disk(f, "2/t-0/00000000000000000000.log"));
    assert_int_equal(kill_broker(f, 1), 0);
    assert_int_equal(start_broker(f, 1), 0);
    settle(f);
    assert_int_equal(in_sync(f, "t", 0), 2); /* written by the leader itself */
    g_autoptr(GPtrArray) left = mirror_children(f->mirror, "/isr_change_notification");
    assert_int_equal(left->len, 0);
    destroy(f);
}

static void views(void **state)
{
    struct fixture *f = cluster(2);

    topic(f, "t", "{\"0\":[1,2],\"2\":[2]}");
    settle(f);
    expect_state(f, STATE_LOOKUP, "", "0");
    expect_state(f, STATE_LOOKUP, "/1", "0");
    expect_state(f, STATE_LOOKUP, "/3", "errno 2");
    expect_state(f, STATE_LOOKUP, "/01", "errno 2");
    expect_state(f, STATE_LOOKUP, "/1/state", "2");
    expect_state(f, STATE_LOOKUP, "/1/logs/t-0", "3");
    expect_state(f, STATE_LOOKUP, "/1/logs/t-2", "errno 2");
    expect_state(f, STATE_LIST, "/2/logs", "t-0:3 t-2:3");
    expect_state(f, STATE_LIST, "/1/metadata", "t:0");
    expect_state(f, STATE_LIST, "/1/metadata/t", "0:1 2:1");
    expect_state(f, STATE_LOOKUP, "/1/metadata/t/1", "errno 2");
    expect_state(f, STATE_LOOKUP, "/1/metadata/x", "errno 2");
    expect_state(f, STATE_READ, "/1/logs", "errno 21");
    expect_state(f, STATE_READLINK, "/1/state", "errno 22");
    expect_state(f, STATE_LIST, "/1/state", "errno 20");
    expect_state(f, STATE_LIST, "/1/throttled", "leader:0 follower:0");
    expect_state(f, STATE_LOOKUP, "/1/nonsense", "errno 2");
    g_autofree char *json = ask(f, STATE_READ, "/1/metadata/t/0", NULL);
    assert_true(g_str_has_prefix(json, "{\"topic\":\"t\"") && g_str_has_suffix(json, "}\n"));
    g_autofree char *config = ask(f, STATE_READ, "/1/config/brokers/1", NULL);
    assert_true(strstr(config, "controlled.shutdown.retry.backoff.ms=50\n") != NULL);
    /* of one that does not run nothing is left but its state */
    assert_int_equal(kill_broker(f, 2), 0);
    expect_state(f, STATE_LIST, "/2/logs", "");
    expect_state(f, STATE_LIST, "/2/log_dirs", "");
    expect_state(f, STATE_LOOKUP, "/2/metadata/t", "errno 2");
    expect_state(f, STATE_LIST, "/2/config/topics", "");
    destroy(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_cluster_comes_up),
            cmocka_unit_test(the_end_touches_no_tree),
            cmocka_unit_test(nothing_without_brokers),
            cmocka_unit_test(dies_and_returns),
            cmocka_unit_test(stops_in_order),
            cmocka_unit_test(a_start_that_is_refused),
            cmocka_unit_test(one_bad_broker_does_not_stop_the_others),
            cmocka_unit_test(ids_are_made),
            cmocka_unit_test(a_log_dir_fails),
            cmocka_unit_test(removed_by_hand),
            cmocka_unit_test(a_silent_disk_is_not_waited_for),
            cmocka_unit_test(listeners_change),
            cmocka_unit_test(the_old_protocol),
            cmocka_unit_test(views),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
