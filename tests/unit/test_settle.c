#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <glib.h>
#include <pthread.h>
#include <stdatomic.h>
#include "fs/settle.h"

static void count(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
}

static void test_idle(void **state)
{
    struct settle *s = settle_new();
    atomic_int n = 0;
    struct settle_waiter *w = settle_wait(s, settle_begin(s), count, &n);
    assert_int_equal(n, 1); /* at once */
    assert_false(settle_cancel(s, w));
    settle_free(s);
    settle_free(NULL);
}

/* Waits for what was before, with all its consequences, and for nothing that came later. */
static void test_generations(void **state)
{
    struct settle *s = settle_new();
    atomic_int n = 0;
    gen_t old = settle_hold_now(s);
    gen_t bound = settle_begin(s);
    gen_t later = settle_hold_now(s);
    assert_true(old < bound && later == bound);
    struct settle_waiter *w = settle_wait(s, bound, count, &n);
    settle_hold(s, old); /* a consequence */
    settle_release(s, old);
    assert_int_equal(n, 0);
    settle_release(s, old);
    assert_int_equal(n, 1);
    assert_false(settle_cancel(s, w));
    settle_release(s, later);
    settle_free(s);
}

static void test_several_waiters(void **state)
{
    struct settle *s = settle_new();
    atomic_int n[3] = {0};
    struct settle_waiter *w[3];
    gen_t held[3];
    for (int i = 0; i < 3; i++) {
        held[i] = settle_hold_now(s);
        w[i] = settle_wait(s, settle_begin(s), count, &n[i]);
    }
    settle_release(s, held[1]);
    assert_int_equal(n[0] + n[1] + n[2], 0); /* held[0] is older than all bounds */
    settle_release(s, held[0]);
    assert_int_equal(n[0], 1);
    assert_int_equal(n[1], 1);
    assert_int_equal(n[2], 0);
    settle_release(s, held[2]);
    assert_int_equal(n[2], 1);
    for (int i = 0; i < 3; i++)
        settle_cancel(s, w[i]);
    settle_free(s);
}

static void test_cancel(void **state)
{
    struct settle *s = settle_new();
    atomic_int n = 0;
    gen_t old = settle_hold_now(s);
    struct settle_waiter *w = settle_wait(s, settle_begin(s), count, &n);
    assert_true(settle_cancel(s, w));
    settle_release(s, old);
    assert_int_equal(n, 0);
    settle_free(s);
}

static void test_many_generations(void **state)
{
    struct settle *s = settle_new();
    atomic_int n = 0;
    for (int i = 0; i < 100000; i++) {
        gen_t g = settle_hold_now(s);
        struct settle_waiter *w = settle_wait(s, settle_begin(s), count, &n);
        settle_release(s, g);
        settle_cancel(s, w);
    }
    assert_int_equal(n, 100000);
    settle_free(s);
}

#define N_THREADS 4
#define N_EACH 20000

static void *work(void *arg)
{
    struct settle *s = arg;
    for (int i = 0; i < N_EACH; i++) {
        gen_t g = settle_hold_now(s);
        settle_hold(s, g);
        settle_release(s, g);
        settle_release(s, g);
    }
    return NULL;
}

/* Under steady load every barrier ends. */
static void test_threads(void **state)
{
    struct settle *s = settle_new();
    pthread_t threads[N_THREADS];
    static atomic_int n;
    static struct settle_waiter *waiters[500];
    for (int i = 0; i < N_THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, s), 0);
    for (int i = 0; i < 500; i++)
        waiters[i] = settle_wait(s, settle_begin(s), count, &n);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(n, 500);
    for (int i = 0; i < 500; i++)
        assert_false(settle_cancel(s, waiters[i]));
    settle_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_idle),
            cmocka_unit_test(test_generations),
            cmocka_unit_test(test_several_waiters),
            cmocka_unit_test(test_cancel),
            cmocka_unit_test(test_many_generations),
            cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
