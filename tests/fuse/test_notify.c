/* The notify queue: one notice for many changes of an inode, with the generation of the oldest cause. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fs/fuse/notify.h"

/* No thread takes the notices out: what is queued stays. */
static struct mount m;
static struct notifier *n;

static int setup(void **state)
{
    m = (struct mount){.settle = settle_new()};
    n = notifier_new(&m);
    return 0;
}

static int teardown(void **state)
{
    notifier_free(n);
    settle_free(m.settle);
    return 0;
}

static void on_settled(void *arg)
{
    *(bool *)arg = true;
}

static void expect_settled_by_the_end(struct settle_waiter *waiter, bool *settled)
{
    assert_false(*settled);
    notifier_stop(n); /* lets go of all that is queued */
    assert_true(*settled);
    settle_cancel(m.settle, waiter);
}

/* The barrier between the two causes must wait for the notice that the younger had queued already. */
static void test_an_older_cause_joins(void **state)
{
    bool settled = false;
    gen_t older = settle_hold_now(m.settle), bound = settle_begin(m.settle), younger = settle_hold_now(m.settle);
    assert_true(older < younger);
    notify_inode(n, 1, 6, younger);
    notify_inode(n, 1, 6, older);
    settle_release(m.settle, younger);
    settle_release(m.settle, older);
    expect_settled_by_the_end(settle_wait(m.settle, bound, on_settled, &settled), &settled);
}

/* The notice of the older cause does for the younger too, and the younger's barrier waits for it. */
static void test_a_younger_cause_joins(void **state)
{
    bool first = false, second = false;
    gen_t older = settle_hold_now(m.settle), bound = settle_begin(m.settle), younger = settle_hold_now(m.settle);
    notify_inode(n, 1, 6, older);
    notify_inode(n, 1, 6, younger);
    settle_release(m.settle, older);
    settle_release(m.settle, younger);
    gen_t later = settle_begin(m.settle);
    struct settle_waiter *waiter = settle_wait(m.settle, bound, on_settled, &first);
    expect_settled_by_the_end(settle_wait(m.settle, later, on_settled, &second), &second);
    assert_true(first);
    settle_cancel(m.settle, waiter);
}

/* Different inodes share nothing. */
static void test_each_inode_has_its_own(void **state)
{
    bool settled = false;
    gen_t older = settle_hold_now(m.settle), bound = settle_begin(m.settle), younger = settle_hold_now(m.settle);
    notify_inode(n, 1, 6, younger);
    notify_inode(n, 1, 8, younger);
    settle_release(m.settle, younger);
    settle_release(m.settle, older);
    struct settle_waiter *waiter = settle_wait(m.settle, bound, on_settled, &settled);
    assert_true(settled);
    settle_cancel(m.settle, waiter);
    notifier_stop(n);
}

static void *stop(void *arg)
{
    notifier_stop(n);
    return NULL;
}

/* The end: by SIGTERM and by umount at once, while the store goes on. */
static void test_stopped_twice_under_load(void **state)
{
    bool settled = false;
    pthread_t thread;
    assert_int_equal(notifier_start(n), 0);
    assert_int_equal(pthread_create(&thread, NULL, stop, NULL), 0);
    gen_t gen = settle_hold_now(m.settle), bound = settle_begin(m.settle);
    notifier_stop(n);
    for (uint64_t ino = 6; ino < 1000; ino++)
        notify_inode(n, 1, ino, gen);
    settle_release(m.settle, gen);
    struct settle_waiter *waiter = settle_wait(m.settle, bound, on_settled, &settled);
    assert_true(settled); /* nothing was queued any more */
    settle_cancel(m.settle, waiter);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
            TEST(test_an_older_cause_joins),
            TEST(test_a_younger_cause_joins),
            TEST(test_each_inode_has_its_own),
            TEST(test_stopped_twice_under_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
