#pragma once
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

#pragma GCC diagnostic ignored "-Wunused-function" /* each test uses what it needs */

/* No measure of speed: a test that hangs says where, before `meson test` ends it. */
#define PATIENCE_S 100

/* For what the kernel tells the engine, so that nothing that was asked of it can be waited for. */
#define AWAIT(condition)                                                                                               \
    for (gint64 limit_ = g_get_monotonic_time() + PATIENCE_S * G_USEC_PER_SEC; !(condition); g_usleep(10000))          \
        if (g_get_monotonic_time() > limit_)                                                                           \
    fail_msg("it never came: %s", #condition)

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

/* The broker of server-ID.properties. */
static void add_broker(struct fixture *f, int id)
{
    g_autofree char *file = g_strdup_printf("%s/server-%d.properties", f->dir, id);
    struct broker_config *config;
    char *why = NULL;
    if (broker_config_load(file, &config, &why) < 0 || engine_add_broker(f->engine, config, &why) < 0)
        fail_msg("%s", why);
}

static void add_brokers(struct fixture *f, int n)
{
    for (int id = 1; id <= n; id++)
        add_broker(f, id);
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

static void run_txn(struct fixture *f, struct txn *txn)
{
    struct latch l;

    latch_init(&l);
    txn->gen = settle_hold_now(f->settle);
    gen_t gen = txn->gen;
    txn->done = txn_finished;
    txn->arg = &l;
    store_submit(f->store, txn);
    assert_int_equal(latch_wait(&l, PATIENCE_S), 0);
    settle_release(f->settle, gen);
    latch_clear(&l);
}

static void create(struct fixture *f, const char *path, const char *data)
{
    struct txn *txn = txn_new(TXN_CLIENT);

    txn_create(txn, path, data ? bytes_from_string(data) : NULL, 0);
    run_txn(f, txn);
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

static bool is_state(struct fixture *f, enum state_query query, const char *path, const char *want)
{
    g_autofree char *got = ask(f, query, path, NULL);

    return strcmp(got, want) == 0;
}

static void expect_error_line(struct fixture *f, const char *word)
{
    g_autofree char *errors = read_journal(f->errors);

    if (!strstr(errors, word))
        fail_msg("'%s' is not in: %s", word, errors);
}

static bool has_error_line(struct fixture *f, const char *word)
{
    g_autofree char *errors = read_journal(f->errors);

    return strstr(errors, word) != NULL;
}
