/* The groups that share an fsync: who is waited for, and for how long. */
#include "fs/store/intake.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>
#include "store_fixture.h"

#define NEVER_US INT64_C(60000000)

static int64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000) + t.tv_nsec / 1000;
}

static void push(struct intake *in, enum txn_origin origin)
{
    struct store_item *item = g_new0(struct store_item, 1);
    item->type = ITEM_TXN;
    item->txn = txn_new(origin);
    txn_set(item->txn, "/a", bytes_new("1", 1), -1);
    assert_true(intake_push(in, item));
}

static size_t take(struct intake *in, size_t n_clients, int64_t linger_us)
{
    size_t n = 0;
    struct store_item *item = intake_take(in, NEVER_US, n_clients, linger_us);
    for (struct store_item *next; item; item = next, n++) {
        next = item->next;
        txn_free(item->txn);
        g_free(item);
    }
    return n;
}

static void test_enough_clients(void **state)
{
    struct intake *in = intake_new();
    push(in, TXN_CLIENT);
    assert_int_equal(intake_clients(in), 1);
    assert_int_equal(take(in, 1, NEVER_US), 1); /* nobody else is waited for */
    push(in, TXN_INTERNAL);
    push(in, TXN_CLIENT);
    push(in, TXN_CLIENT);
    assert_int_equal(intake_clients(in), 2);
    assert_int_equal(take(in, 2, NEVER_US), 3);
    push(in, TXN_INTERNAL);
    assert_int_equal(intake_clients(in), 0);
    assert_int_equal(take(in, 0, NEVER_US), 1);
    intake_free(in);
}

static void test_nobody_joins(void **state)
{
    struct intake *in = intake_new();
    push(in, TXN_CLIENT);
    int64_t start = now_us();
    assert_int_equal(take(in, 2, 30000), 1);
    assert_in_range(now_us() - start, 30000, NEVER_US);
    intake_free(in);
}

static void test_full_group_waits_for_nobody(void **state)
{
    struct intake *in = intake_new();
    for (int i = 0; i < 1000; i++)
        push(in, TXN_INTERNAL);
    assert_int_equal(take(in, 1, NEVER_US), 1000);
    intake_free(in);
}

static void *push_three(void *arg)
{
    for (int i = 0; i < 3; i++) {
        usleep(5000);
        push(arg, i == 1 ? TXN_INTERNAL : TXN_CLIENT);
    }
    return NULL;
}

static void test_others_join(void **state)
{
    struct intake *in = intake_new();
    pthread_t thread;
    push(in, TXN_CLIENT);
    assert_int_equal(pthread_create(&thread, NULL, push_three, in), 0);
    assert_int_equal(take(in, 3, NEVER_US), 4);
    pthread_join(thread, NULL);
    intake_free(in);
}

static void *close_soon(void *arg)
{
    usleep(5000);
    intake_close(arg);
    return NULL;
}

static void test_close_ends_the_wait(void **state)
{
    struct intake *in = intake_new();
    pthread_t thread;
    push(in, TXN_CLIENT);
    assert_int_equal(pthread_create(&thread, NULL, close_soon, in), 0);
    assert_int_equal(take(in, 2, NEVER_US), 1);
    pthread_join(thread, NULL);
    assert_null(intake_take(in, NEVER_US, 0, 0));
    intake_free(in);
}

/* ---- the store: a slow disk, and clients that make one change after the other ---- */

#define EACH 20
#define N_CLIENTS 4

static struct backend_ops slow_ops;
static const struct backend_ops *quick_ops;
static unsigned commit_us;
static int n_commits; /* of the store thread */
static atomic_int n_timed_waits;

int __real_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until);

int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
    atomic_fetch_add(&n_timed_waits, 1);
    return __real_pthread_cond_timedwait(cond, mutex, until);
}

static int slow_commit(struct backend *b, const struct record_write *writes, size_t n, const struct meta *meta)
{
    n_commits++;
    usleep(commit_us);
    return quick_ops->commit(b, writes, n, meta);
}

struct client {
    pthread_t thread;
    struct store *store;
    enum txn_origin origin;
    pthread_mutex_t lock;
    pthread_cond_t answered;
    bool done;
    int failed;
};

static void answer(struct txn *txn, void *arg)
{
    struct client *c = arg;
    pthread_mutex_lock(&c->lock);
    c->failed += txn->rc != ZOK;
    c->done = true;
    pthread_cond_signal(&c->answered);
    pthread_mutex_unlock(&c->lock);
    txn_free(txn);
}

static void *change_again_and_again(void *arg)
{
    struct client *c = arg;
    for (int i = 0; i < EACH; i++) {
        struct txn *txn = txn_new(c->origin);
        txn_set(txn, "/", bytes_new("value", 5), -1);
        txn->done = answer;
        txn->arg = c;
        c->done = false;
        store_submit(c->store, txn);
        pthread_mutex_lock(&c->lock);
        while (!c->done)
            pthread_cond_wait(&c->answered, &c->lock);
        pthread_mutex_unlock(&c->lock);
    }
    return NULL;
}

/* Commits that `n` clients needed, all but the first of them of this origin. The second half begins while the first's
 * commit is under way. */
static int commits_of(size_t n, enum txn_origin others)
{
    struct fixture f;
    struct backend *b = backend_new_memory();
    fixture_open(&f, b);
    int64_t zxid = mirror_zxid(f.mirror);
    quick_ops = b->ops;
    slow_ops = *b->ops;
    slow_ops.commit = slow_commit;
    b->ops = &slow_ops;
    n_commits = 0;
    assert_int_equal(store_start(f.store), 0);
    struct client clients[N_CLIENTS] = {0};
    for (size_t i = 0; i < n; i++) {
        struct client *c = &clients[i];
        c->store = f.store;
        c->origin = i == 0 ? TXN_CLIENT : others;
        pthread_mutex_init(&c->lock, NULL);
        pthread_cond_init(&c->answered, NULL);
        assert_int_equal(pthread_create(&c->thread, NULL, change_again_and_again, c), 0);
        usleep(i == n / 2 - 1 ? commit_us / 2 : 0);
    }
    for (size_t i = 0; i < n; i++) {
        pthread_join(clients[i].thread, NULL);
        assert_int_equal(clients[i].failed, 0);
        pthread_cond_destroy(&clients[i].answered);
        pthread_mutex_destroy(&clients[i].lock);
    }
    store_close(f.store);
    f.store = NULL;
    assert_int_equal(mirror_zxid(f.mirror), zxid + (int64_t)n * EACH);
    fixture_close(&f);
    return n_commits;
}

/* The store waits for half a commit. Where the machine is too busy for the clients to come back in that time, commits
 * that take longer show whether it does. */
static void share(size_t n, enum txn_origin others)
{
    int commits = 0;
    for (commit_us = 10000; commit_us < 1000000; commit_us *= 4) {
        commits = commits_of(n, others);
        print_message("%d commits of %u us for %zu x %d\n", commits, commit_us, n, EACH);
        if (commits <= EACH + EACH / 2)
            break;
    }
    assert_in_range(commits, EACH, EACH + EACH / 2);
}

/* Two halves that take turns would need 2 * EACH. */
static void test_clients_share_commits(void **state)
{
    share(N_CLIENTS, TXN_CLIENT);
}

/* One client and the controller in its wake: they would take turns, too. */
static void test_internal_waits_for_client(void **state)
{
    share(2, TXN_INTERNAL);
}

static void test_one_client_waits_for_nobody(void **state)
{
    commit_us = 1000;
    atomic_store(&n_timed_waits, 0);
    assert_int_equal(commits_of(1, TXN_CLIENT), EACH);
    assert_int_equal(n_timed_waits, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_enough_clients),
            cmocka_unit_test(test_nobody_joins),
            cmocka_unit_test(test_full_group_waits_for_nobody),
            cmocka_unit_test(test_others_join),
            cmocka_unit_test(test_close_ends_the_wait),
            cmocka_unit_test(test_clients_share_commits),
            cmocka_unit_test(test_internal_waits_for_client),
            cmocka_unit_test(test_one_client_waits_for_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
