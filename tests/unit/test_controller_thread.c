/* The controller thread with a real store thread: what other threads may ask of it at any time, the barrier, and the
 * end of candidates. Worth most under the thread sanitizer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include "controller/broker/properties.h"
#include "controller/json/codec.h"
#include "controller/thread.h"
#include "fs/policy.h"
#include "fs/tree/mirror.h"

struct daemon {
    struct store *store;
    struct mirror *mirror;
    struct settle *settle;
    struct journal *events, *errors;
    struct controller_thread *thread;
    struct broker_config *config[3];
    atomic_bool unclean;
    int64_t session[3], epoch[3];
    int not_controller; /* answers NOT_CONTROLLER to broker requests; controller thread */
    int answered;
};

static int64_t wall_clock(void *ctx)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * INT64_C(1000);
}

static void feed(void *ctx, struct commit *commit)
{
    struct daemon *d = ctx;
    mirror_apply(d->mirror, commit);
    if (d->thread) {
        controller_thread_feed(d->thread, commit);
    }
}

static void store_failed(void *ctx, const char *why)
{
    g_error("%s", why);
}

static void load_node(void *arg, const char *path, struct bytes *data, const struct zstat *stat)
{
    mirror_load(arg, path, data, stat);
}

static bool never_directory(void *arg, const char *path)
{
    return false;
}

/* Every broker obeys at once. */
static void link_request(void *ctx, int32_t controller_id, int32_t broker_id, int64_t broker_epoch,
        struct control_request *request, gen_t gen)
{
    struct daemon *d = ctx;
    struct control_response *response = control_response_new(KERR_NONE);
    guint n = request->api == API_UPDATE_METADATA ? 0 : request->partition_states->len + request->stop_states->len;
    for (guint i = 0; i < n; i++) {
        enum kafka_error none = KERR_NONE;
        g_array_append_val(response->partition_errors, none);
    }
    controller_thread_response(
            d->thread, controller_id, broker_id, broker_epoch, control_request_ref(request), response, gen);
}

static void link_respond(void *ctx, struct broker_request *request, gen_t gen)
{
    struct daemon *d = ctx;
    d->answered++;
    d->not_controller += request->error == KERR_NOT_CONTROLLER;
    broker_request_free(request);
}

/* ---- a client ---- */

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool done;
    int rc;
};

static void wake(struct waiter *w)
{
    pthread_mutex_lock(&w->lock);
    w->done = true;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->lock);
}

static void wait_for(struct waiter *w)
{
    pthread_mutex_lock(&w->lock);
    while (!w->done) {
        pthread_cond_wait(&w->cond, &w->lock);
    }
    pthread_mutex_unlock(&w->lock);
}

#define WAITER                                                                                                         \
    {                                                                                                                  \
        .lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER                                            \
    }

static void txn_is_done(struct txn *txn, void *arg)
{
    struct waiter *w = arg;
    w->rc = txn->rc;
    wake(w);
}

static int submit(struct daemon *d, struct txn *txn)
{
    struct waiter w = WAITER;
    gen_t gen = settle_hold_now(d->settle);
    txn->gen = gen;
    txn->done = txn_is_done;
    txn->arg = &w;
    store_submit(d->store, txn);
    wait_for(&w);
    settle_release(d->settle, gen);
    return w.rc;
}

static void create(struct daemon *d, const char *path, const char *data)
{
    struct txn *txn = txn_new(TXN_CLIENT);
    txn_create(txn, path, data ? bytes_from_string(data) : NULL, 0);
    assert_int_equal(submit(d, txn), ZOK);
    txn_free(txn);
}

static void is_settled(void *arg)
{
    wake(arg);
}

static void settle(struct daemon *d)
{
    struct waiter w = WAITER;
    struct settle_waiter *s = settle_wait(d->settle, settle_begin(d->settle), is_settled, &w);
    wait_for(&w);
    settle_cancel(d->settle, s);
}

static void register_broker(struct daemon *d, int id)
{
    struct broker_endpoint endpoint = {
            (char *)(uintptr_t) "PLAINTEXT", (char *)(uintptr_t) "localhost", (char *)(uintptr_t) "PLAINTEXT", 9092};
    struct broker_registration registration = {.endpoints = &endpoint, .n_endpoints = 1, .jmx_port = -1, .version = 5};
    g_autofree char *path = g_strdup_printf("/brokers/ids/%d", id);
    struct txn *txn = txn_new(TXN_INTERNAL);
    d->session[id] = store_session_open(d->store);
    txn->session = d->session[id];
    txn_create(txn, path, NULL, CREATE_EPHEMERAL);
    txn_set(txn, path, broker_registration_encode(&registration), 0);
    assert_int_equal(submit(d, txn), ZOK);
    txn_free(txn);
    gen_t gen = settle_hold_now(d->settle);
    controller_thread_candidate(d->thread, id, d->session[id], d->config[id], &d->unclean, gen);
    settle_release(d->settle, gen);
}

/* ---- questions ---- */

struct state_question {
    struct waiter w;
    char *text;
};

void state_answer_error(struct state_question *q, int err)
{
    q->text = g_strdup_printf("error %d", err);
    wake(&q->w);
}

void state_answer_kind(struct state_question *q, enum state_kind kind)
{
    q->text = g_strdup("kind");
    wake(&q->w);
}

void state_answer_bytes(struct state_question *q, const void *data, size_t len)
{
    q->text = g_strndup(data, len);
    wake(&q->w);
}

void state_answer_list(struct state_question *q, const struct state_entry *entries, size_t n)
{
    q->text = g_strdup_printf("%zu entries", n);
    wake(&q->w);
}

static char *ask(struct daemon *d, const char *path)
{
    struct state_question q = {.w = WAITER};
    controller_thread_ask(d->thread, STATE_READ, path, &q);
    wait_for(&q.w);
    return q.text;
}

static void expect_answer(struct daemon *d, const char *path, const char *want)
{
    g_autofree char *got = ask(d, path);
    assert_string_equal(got, want);
}

/* ---- life ---- */

static struct daemon *begin(int brokers)
{
    static const char *const roots[] = {"/admin", "/admin/delete_topics", "/brokers", "/brokers/ids", "/brokers/topics",
            "/config", "/config/topics", "/isr_change_notification", "/log_dir_event_notification"};
    struct daemon *d = g_new0(struct daemon, 1);
    struct store_config config = {.now_ms = wall_clock, .feed = feed, .failed = store_failed, .ctx = d};
    char *why = NULL;
    d->mirror = mirror_new(never_directory, NULL);
    d->settle = settle_new();
    d->events = journal_new(1 << 20);
    d->errors = journal_new(1 << 20);
    assert_int_equal(store_open_memory(&config, &d->store), 0);
    assert_int_equal(store_load(d->store, load_node, d->mirror, &why), 0);
    struct controller_thread_config thread = {.store = d->store,
            .mirror = d->mirror,
            .settle = d->settle,
            .events = d->events,
            .errors = d->errors,
            .link = {d, link_request, link_respond}};
    d->thread = controller_thread_new(&thread);
    store_start(d->store);
    controller_thread_start(d->thread);
    for (size_t i = 0; i < G_N_ELEMENTS(roots); i++) {
        create(d, roots[i], NULL);
    }
    for (int i = 1; i <= brokers; i++) {
        g_autofree char *text = g_strdup_printf("broker.id=%d\nlog.dirs=/nowhere\n", i);
        assert_int_equal(broker_config_parse("x", text, strlen(text), &d->config[i], &why), 0);
        register_broker(d, i);
    }
    settle(d);
    return d;
}

static void end(struct daemon *d)
{
    controller_thread_stop(d->thread);
    store_close(d->store);
    controller_thread_free(d->thread);
    for (int i = 1; i <= 2; i++) {
        broker_config_free(d->config[i]);
    }
    mirror_free(d->mirror);
    settle_free(d->settle);
    journal_free(d->events);
    journal_free(d->errors);
    g_free(d);
}

static void creates_and_deletes(void **state)
{
    struct daemon *d = begin(2);
    expect_answer(d, "/.state/controller/broker", "1\n");
    for (int i = 0; i < 50; i++) {
        g_autofree char *path = g_strdup_printf("/brokers/topics/t%d", i);
        create(d, path, "{\"version\":1,\"partitions\":{\"0\":[1,2],\"1\":[2,1]}}");
    }
    settle(d);
    for (int i = 0; i < 50; i++) {
        g_autofree char *path = g_strdup_printf("/brokers/topics/t%d/partitions/1/state", i);
        g_autofree char *marker = g_strdup_printf("/admin/delete_topics/t%d", i);
        assert_true(mirror_exists(d->mirror, path));
        create(d, marker, NULL);
    }
    settle(d);
    expect_answer(d, "/.state/topics/t1/deletion", "error 2");
    g_autoptr(GPtrArray) left = mirror_children(d->mirror, "/brokers/topics");
    assert_int_equal(left->len, 0);
    end(d);
}

static void has_ended(void *arg)
{
    wake(arg);
}

static void a_candidate_ends(void **state)
{
    struct daemon *d = begin(2);
    struct waiter closed = WAITER, ended = WAITER;
    gen_t gen = settle_hold_now(d->settle);
    store_session_close(d->store, d->session[1], gen, has_ended, &closed);
    controller_thread_candidate_end(d->thread, 1, true, gen, has_ended, &ended);
    wait_for(&closed);
    settle_release(d->settle, gen);
    wait_for(&ended);
    settle(d);
    expect_answer(d, "/.state/controller/broker", "2\n");
    expect_answer(d, "/.state/controller/epoch", "2\n");
    /* what comes late for the one that is gone */
    struct broker_request *late = g_new0(struct broker_request, 1);
    late->api = API_CONTROLLED_SHUTDOWN;
    gen = settle_hold_now(d->settle);
    controller_thread_broker_request(d->thread, 1, late, gen);
    struct broker_request *in_time = g_new0(struct broker_request, 1);
    in_time->api = API_CONTROLLED_SHUTDOWN;
    in_time->broker_id = 7;
    controller_thread_broker_request(d->thread, 2, in_time, gen);
    settle_release(d->settle, gen);
    settle(d);
    controller_thread_stop(d->thread);
    struct waiter late_end = WAITER;
    gen = settle_hold_now(d->settle);
    controller_thread_candidate_end(d->thread, 2, false, gen, has_ended, &late_end);
    settle_release(d->settle, gen);
    wait_for(&late_end);
    assert_int_equal(d->answered, 2);
    assert_int_equal(d->not_controller, 1);
    end(d);
}

static void nobody_is_there(void **state)
{
    struct daemon *d = begin(0);
    expect_answer(d, "/.state/controller/broker", "-1\n");
    expect_answer(d, "/.state/controller/epoch", "0\n");
    expect_answer(d, "/.state/controller/queue", "");
    expect_answer(d, "/.state/topics/x/deletion", "error 2");
    create(d, "/brokers/topics/t", NULL);
    settle(d);
    end(d);
}

/* ---- many ask, write and wait at the same time ---- */

struct busy {
    struct daemon *d;
    int number;
};

static void *be_busy(void *arg)
{
    struct busy *b = arg;
    struct daemon *d = b->d;
    for (int i = 0; i < 40; i++) {
        g_autofree char *name = g_strdup_printf("busy-%d-%d", b->number, i);
        g_autofree char *path = g_strconcat("/brokers/topics/", name, NULL);
        g_autofree char *marker = g_strconcat("/admin/delete_topics/", name, NULL);
        g_autofree char *question = g_strdup_printf("/.state/topics/%s/0/state", name);
        create(d, path, "{\"version\":1,\"partitions\":{\"0\":[1,2]}}");
        g_free(ask(d, "/.state/controller/queue"));
        settle(d);
        g_autofree char *answer = ask(d, question);
        if (strcmp(answer, "OnlinePartition\n") != 0) {
            return g_strdup_printf("%s: %s", question, answer);
        }
        g_free(ask(d, "/.state/metrics"));
        create(d, marker, NULL);
        gen_t gen = settle_hold_now(d->settle);
        controller_thread_retry_deletion(d->thread, name, gen);
        controller_thread_unclean_enabled(d->thread, i % 2 ? name : NULL, gen);
        settle_release(d->settle, gen);
        settle(d);
        if (mirror_exists(d->mirror, path)) {
            return g_strdup_printf("%s is still there", path);
        }
    }
    return NULL;
}

static void many_at_once(void **state)
{
    struct daemon *d = begin(2);
    struct busy busy[3];
    pthread_t threads[G_N_ELEMENTS(busy)];
    for (size_t i = 0; i < G_N_ELEMENTS(busy); i++) {
        busy[i] = (struct busy){d, (int)i};
        assert_int_equal(pthread_create(&threads[i], NULL, be_busy, &busy[i]), 0);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(busy); i++) {
        void *trouble = NULL;
        pthread_join(threads[i], &trouble);
        if (trouble) {
            fail_msg("%s", (char *)trouble);
        }
    }
    end(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(creates_and_deletes),
            cmocka_unit_test(a_candidate_ends),
            cmocka_unit_test(nobody_is_there),
            cmocka_unit_test(many_at_once),
    };
    return cmocka_run_group_tests_name("controller thread", tests, NULL, NULL);
}
