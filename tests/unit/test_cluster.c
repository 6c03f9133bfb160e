/* A whole cluster begins and ends, on two threads as in main.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <glib.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include "controller/cluster.h"
#include "fs/tree/mirror.h"

/* ---- nobody asks for anything ---- */

void state_answer_error(struct state_question *q, int err)
{
    fail();
}

void state_answer_kind(struct state_question *q, enum state_kind kind)
{
    fail();
}

void state_answer_bytes(struct state_question *q, const void *data, size_t len)
{
    fail();
}

void state_answer_list(struct state_question *q, const struct state_entry *entries, size_t n)
{
    fail();
}

void state_answer_done(struct state_question *q)
{
    fail();
}

/* ---- the world ---- */

struct fixture {
    char *dir;
    struct settle *settle;
    struct journal *events, *errors;
    struct mirror *mirror;
    struct store *store;
    struct cluster *cluster;
};

static int64_t wall_ms(void *ctx)
{
    return g_get_real_time() / 1000;
}

static void feed(void *ctx, struct commit *commit)
{
    struct fixture *f = ctx;
    mirror_apply(f->mirror, commit);
    cluster_feed(f->cluster, commit);
}

static void store_failed(void *ctx, const char *why)
{
    fail_msg("%s", why);
}

static void load_one(void *arg, const char *path, struct bytes *data, const struct zstat *stat)
{
    mirror_load(arg, path, data, stat);
}

/* `brokers` 0: a cluster directory without a broker. */
static struct fixture *make(int brokers)
{
    struct fixture *f = g_new0(struct fixture, 1);
    char *why = NULL;
    f->dir = g_dir_make_tmp("cluster.XXXXXX", NULL);
    f->settle = settle_new();
    f->events = journal_new(1 << 16);
    f->errors = journal_new(1 << 16);
    f->mirror = mirror_new(cluster_always_directory, NULL);
    struct store_config store = {.now_ms = wall_ms, .feed = feed, .failed = store_failed, .ctx = f};
    assert_int_equal(store_open_memory(&store, &f->store), 0);
    assert_int_equal(store_load(f->store, load_one, f->mirror, &why), 0);
    struct cluster_config config = {
            .store = f->store,
            .mirror = f->mirror,
            .settle = f->settle,
            .events = f->events,
            .errors = f->errors,
            .cluster_dir = f->dir,
            .brokers = brokers,
            .config_change_expiry_ms = 900000,
    };
    assert_int_equal(cluster_open(&config, &f->cluster, &why), 0);
    assert_int_equal(store_start(f->store), 0);
    return f;
}

static void destroy(struct fixture *f)
{
    store_close(f->store);
    cluster_free(f->cluster);
    mirror_free(f->mirror);
    journal_free(f->events);
    journal_free(f->errors);
    settle_free(f->settle);
    g_autofree char *command = g_strdup_printf("rm -rf '%s'", f->dir);
    assert_int_equal(system(command), 0);
    g_free(f->dir);
    g_free(f);
}

static void on_settled(void *done)
{
    sem_post(done);
}

/* Nothing is under way any more. */
static void settle(struct fixture *f)
{
    sem_t done;
    sem_init(&done, 0, 0);
    struct settle_waiter *w = settle_wait(f->settle, settle_begin(f->settle), on_settled, &done);
    sem_wait(&done);
    settle_cancel(f->settle, w);
    sem_destroy(&done);
}

static void *start(void *cluster)
{
    return GINT_TO_POINTER(cluster_start(cluster));
}

/* ---- tests ---- */

static void begins_and_ends(void **state)
{
    struct fixture *f = make(1);
    assert_int_equal(cluster_start(f->cluster), 0);
    assert_true(mirror_exists(f->mirror, "/brokers/ids/1"));
    assert_true(mirror_exists(f->mirror, "/controller"));
    cluster_stop(f->cluster);
    destroy(f);
}

/* The mount has gone before the thread that starts the cluster came to it. */
static void nothing_starts_after_the_end(void **state)
{
    for (int brokers = 0; brokers <= 1; brokers++) {
        struct fixture *f = make(brokers);
        cluster_stop(f->cluster);
        assert_int_equal(cluster_start(f->cluster), 0);
        settle(f);
        assert_false(mirror_exists(f->mirror, "/brokers"));
        destroy(f);
    }
}

static void the_end_comes_at_any_time(void **state)
{
    for (int i = 0; i < 100; i++) {
        struct fixture *f = make(1);
        pthread_t starter;
        void *rc;
        assert_int_equal(pthread_create(&starter, NULL, start, f->cluster), 0);
        g_usleep((gulong)(i % 50) * 20);
        cluster_stop(f->cluster);
        pthread_join(starter, &rc);
        assert_int_equal(GPOINTER_TO_INT(rc), 0);
        destroy(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(begins_and_ends),
            cmocka_unit_test(nothing_starts_after_the_end),
            cmocka_unit_test(the_end_comes_at_any_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
