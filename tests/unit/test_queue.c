#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <glib.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include "fs/queue.h"

struct item {
    struct queue_item base;
    int number;
};

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void note(void *arg)
{
    GString *s = arg;
    g_string_append_c(s, 'q');
}

static void test_questions_go_first(void **state)
{
    struct queue *q = queue_new(NULL);
    struct item items[2] = {{.number = 0}, {.number = 1}};
    GString *s = g_string_new(NULL);
    assert_true(queue_push(q, &items[0].base, 0));
    assert_true(queue_push(q, &items[1].base, 0));
    assert_true(queue_ask(q, note, s));
    assert_true(queue_ask(q, note, s));
    assert_ptr_equal(queue_pop(q, -1), &items[0]);
    assert_string_equal(s->str, "qq");
    assert_true(queue_ask(q, note, s));
    assert_ptr_equal(queue_pop(q, -1), &items[1]);
    assert_string_equal(s->str, "qqq");
    assert_true(queue_ask(q, note, s));
    assert_null(queue_pop(q, 0)); /* the deadline is long over: questions are answered nevertheless */
    assert_string_equal(s->str, "qqqq");
    assert_false(queue_ended(q));
    queue_free(q);
    g_string_free(s, TRUE);
}

static void test_deadline(void **state)
{
    struct queue *q = queue_new(NULL);
    int64_t start = now_ms();
    assert_null(queue_pop(q, start + 30));
    assert_true(now_ms() >= start + 30);
    queue_free(q);
    queue_free(NULL);
}

static void test_close(void **state)
{
    struct queue *q = queue_new(NULL);
    struct item first = {0}, second = {0};
    GString *s = g_string_new(NULL);
    assert_true(queue_push(q, &first.base, 0));
    assert_true(queue_ask(q, note, s));
    queue_close(q);
    assert_false(queue_push(q, &second.base, 0));
    assert_false(queue_ask(q, note, s));
    assert_ptr_equal(queue_pop(q, -1), &first);
    assert_null(queue_pop(q, -1));
    assert_true(queue_ended(q));
    assert_string_equal(s->str, "q");
    queue_free(q);
    g_string_free(s, TRUE);
}

/* What comes after a deadline has passed, and before the end, is still delivered. */
static void test_deadline_before_the_end(void **state)
{
    struct queue *q = queue_new(NULL);
    struct item last = {0};
    GString *s = g_string_new(NULL);
    assert_null(queue_pop(q, 0));
    assert_true(queue_push(q, &last.base, 0));
    assert_true(queue_ask(q, note, s));
    queue_close(q);
    assert_false(queue_ended(q));
    assert_ptr_equal(queue_pop(q, 0), &last);
    assert_string_equal(s->str, "q");
    assert_true(queue_ended(q));
    queue_free(q);
    g_string_free(s, TRUE);
}

static void settled(void *arg)
{
    *(bool *)arg = true;
}

static void test_generation_is_held(void **state)
{
    struct settle *s = settle_new();
    struct queue *q = queue_new(s);
    struct item item = {0};
    bool done = false;
    gen_t gen = settle_hold_now(s);
    assert_true(queue_push(q, &item.base, gen));
    settle_release(s, gen);
    struct settle_waiter *w = settle_wait(s, settle_begin(s), settled, &done);
    assert_false(done);
    struct queue_item *got = queue_pop(q, -1);
    assert_int_equal(got->gen, gen);
    assert_false(done);
    queue_done(q, got->gen);
    assert_true(done);
    settle_cancel(s, w);
    queue_close(q);
    gen = settle_hold_now(s);
    assert_false(queue_push(q, &item.base, gen)); /* nothing is held for it */
    done = false;
    w = settle_wait(s, settle_begin(s), settled, &done);
    settle_release(s, gen);
    assert_true(done);
    settle_cancel(s, w);
    queue_free(q);
    settle_free(s);
}

#define N_THREADS 4
#define N_EACH 10000
static atomic_int asked;

static void count(void *arg)
{
    atomic_fetch_add(&asked, 1);
}

static void *send(void *arg)
{
    struct queue *q = arg;
    for (int i = 0; i < N_EACH; i++) {
        struct item *item = g_new0(struct item, 1);
        item->number = i;
        queue_push(q, &item->base, 0);
        if (i % 10 == 0)
            queue_ask(q, count, NULL);
    }
    return NULL;
}

static void *close_after(void *arg)
{
    pthread_t threads[N_THREADS];
    for (int i = 0; i < N_THREADS; i++)
        pthread_create(&threads[i], NULL, send, arg);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    queue_close(arg);
    return NULL;
}

static void test_threads(void **state)
{
    struct queue *q = queue_new(NULL);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, close_after, q), 0);
    int n = 0;
    struct queue_item *item;
    while ((item = queue_pop(q, -1))) {
        g_free(item);
        n++;
    }
    pthread_join(thread, NULL);
    assert_int_equal(n, N_THREADS * N_EACH);
    assert_int_equal(asked, N_THREADS * N_EACH / 10);
    queue_free(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_questions_go_first),
            cmocka_unit_test(test_deadline),
            cmocka_unit_test(test_close),
            cmocka_unit_test(test_deadline_before_the_end),
            cmocka_unit_test(test_generation_is_held),
            cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
