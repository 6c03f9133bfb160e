/* The broker core with a scripted environment: every request of it is kept until the test answers. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <glib.h>
#include <string.h>
#include "controller/broker/broker.h"
#include "controller/json/codec.h"

#define ME 1
#define EPOCH 100
#define ID_A "AAAAAAAAAAAAAAAAAAAAAQ"
#define ID_B "BBBBBBBBBBBBBBBBBBBBBQ"

struct fixture {
    struct broker *b;
    struct broker_config *config;
    struct broker_env env;
    GQueue batches;   /* struct disk_batch */
    GQueue responses; /* struct control_response */
    GQueue asked;     /* struct broker_request */
    GQueue fetches;   /* struct fetch_request */
    GQueue txns;      /* struct txn */
    GHashTable *tree; /* path -> struct bytes */
    int32_t tree_version;
    int64_t timers[BROKER_TIMER_N];
    int held, halted, shut_down;
    int32_t fetched_from;
    GString *errors, *topics;
    bool manual;  /* disk work waits for the test */
    int fail_err; /* the next tasks fail with this */
    const char *fail_dir;
};

/* ---- environment ---- */

static void finish_batch(struct fixture *f, struct disk_batch *batch)
{
    if (f->fail_dir)
        disk_batch_fail(batch, 0, -EIO, g_strdup(f->fail_dir));
    else
        for (guint i = 0; i < batch->tasks->len; i++)
            g_array_index(batch->tasks, struct log_task, i).err = f->fail_err;
    f->fail_dir = NULL;
    f->fail_err = 0;
    broker_disk_done(f->b, batch, 1);
}

static void env_disk(void *ctx, struct disk_batch *batch, gen_t gen)
{
    struct fixture *f = ctx;

    g_queue_push_tail(&f->batches, batch);
}

static void env_respond(void *ctx, int32_t controller_id, int64_t broker_epoch, struct control_request *request,
        struct control_response *response, gen_t gen)
{
    struct fixture *f = ctx;

    control_request_unref(request);
    g_queue_push_tail(&f->responses, response);
}

static void env_ask(void *ctx, int32_t controller_id, struct broker_request *request, gen_t gen)
{
    struct fixture *f = ctx;

    g_queue_push_tail(&f->asked, request);
}

static void env_fetch(void *ctx, int32_t leader, struct fetch_request *request, gen_t gen)
{
    struct fixture *f = ctx;

    f->fetched_from = leader;
    g_queue_push_tail(&f->fetches, request);
}

static int env_get(void *ctx, const char *path, struct bytes **ret_data, struct zstat *ret_stat)
{
    struct fixture *f = ctx;
    struct bytes *data = g_hash_table_lookup(f->tree, path);

    if (!data)
        return ZNONODE;
    if (ret_data)
        *ret_data = bytes_ref(data);
    if (ret_stat)
        *ret_stat = (struct zstat){.version = f->tree_version};
    return ZOK;
}

static void env_submit(void *ctx, struct txn *txn, gen_t gen)
{
    struct fixture *f = ctx;

    g_queue_push_tail(&f->txns, txn);
}

static void env_timer(void *ctx, enum broker_timer timer, int64_t delay_ms)
{
    ((struct fixture *)ctx)->timers[timer] = delay_ms;
}

static int64_t env_now(void *ctx)
{
    return 0;
}

static void env_hold(void *ctx, gen_t gen)
{
    ((struct fixture *)ctx)->held++;
}

static void env_release(void *ctx, gen_t gen)
{
    ((struct fixture *)ctx)->held--;
}

static void env_topic_created(void *ctx, const char *topic)
{
    g_string_append_printf(((struct fixture *)ctx)->topics, "+%s ", topic);
}

static void env_topic_removed(void *ctx, const char *topic)
{
    g_string_append_printf(((struct fixture *)ctx)->topics, "-%s ", topic);
}

static void env_halt(void *ctx, const char *why)
{
    ((struct fixture *)ctx)->halted++;
}

static void env_shutdown_done(void *ctx, gen_t gen)
{
    ((struct fixture *)ctx)->shut_down++;
}

static void env_event(void *ctx, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void env_event(void *ctx, const char *fmt, ...)
{
}

static void env_error(void *ctx, int err, const char *path, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
static void env_error(void *ctx, int err, const char *path, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    g_string_append_printf(((struct fixture *)ctx)->errors, "%s: ", path);
    g_string_append_vprintf(((struct fixture *)ctx)->errors, fmt, ap);
    g_string_append_c(((struct fixture *)ctx)->errors, '\n');
    va_end(ap);
}

static void unref_bytes(gpointer p)
{
    bytes_unref(p);
}

static struct fixture *make(const char *extra)
{
    struct fixture *f = g_new0(struct fixture, 1);
    g_autofree char *text =
            g_strdup_printf("broker.id=%d\nlog.dirs=/d/0,/d/1\nlisteners=PLAINTEXT://h:1\n%s", ME, extra);
    char *why;

    if (broker_config_parse("server.properties", text, strlen(text), &f->config, &why) < 0)
        fail_msg("%s", why);
    f->env = (struct broker_env){.ctx = f,
            .disk = env_disk,
            .respond = env_respond,
            .ask_controller = env_ask,
            .fetch = env_fetch,
            .get = env_get,
            .submit = env_submit,
            .timer = env_timer,
            .now_ms = env_now,
            .hold = env_hold,
            .release = env_release,
            .topic_created = env_topic_created,
            .topic_removed = env_topic_removed,
            .halt = env_halt,
            .shutdown_done = env_shutdown_done,
            .event = env_event,
            .error = env_error};
    f->tree = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, unref_bytes);
    f->errors = g_string_new(NULL);
    f->topics = g_string_new(NULL);
    f->b = broker_new(ME, EPOCH, f->config, (char *const *)f->config->log_dirs->pdata, 2, &f->env);
    return f;
}

static void destroy(struct fixture *f)
{
    gpointer p;

    broker_free(f->b);
    assert_int_equal(f->held, 0); /* everything that was held has been released */
    while ((p = g_queue_pop_head(&f->batches)))
        disk_batch_free(p);
    while ((p = g_queue_pop_head(&f->responses)))
        control_response_free(p);
    while ((p = g_queue_pop_head(&f->asked)))
        broker_request_free(p);
    while ((p = g_queue_pop_head(&f->fetches)))
        fetch_request_free(p);
    while ((p = g_queue_pop_head(&f->txns)))
        txn_free(p);
    g_hash_table_unref(f->tree);
    g_string_free(f->errors, TRUE);
    g_string_free(f->topics, TRUE);
    broker_config_free(f->config);
    g_free(f);
}

static struct fixture *ready(void)
{
    struct fixture *f = make("");

    broker_loaded(f->b, 1);
    return f;
}

/* ---- requests ---- */

static struct broker_ids *ids(const char *text)
{
    g_autoptr(GArray) a = g_array_new(FALSE, FALSE, sizeof(int32_t));

    for (const char *p = text; *p; p++) {
        int32_t id = *p - '0';
        if (g_ascii_isdigit(*p))
            g_array_append_val(a, id);
    }
    return broker_ids_new((const int32_t *)(const void *)a->data, a->len);
}

struct want {
    const char *topic, *id;
    int32_t partition, leader, leader_epoch;
    const char *isr, *replicas;
    bool is_new;
    int32_t partition_epoch;
};

static struct partition_state *state_of(struct want w)
{
    struct topic_ref *t = topic_ref_new(w.topic ? w.topic : "t", w.id ? w.id : ID_A);
    struct partition_state *s = partition_state_new(t, w.partition);

    topic_ref_unref(t);
    s->controller_epoch = 5;
    s->leader = w.leader;
    s->leader_epoch = w.leader_epoch;
    s->partition_epoch = w.partition_epoch;
    s->isr = ids(w.isr ? w.isr : "12");
    s->replicas = ids(w.replicas ? w.replicas : "12");
    s->is_new = w.is_new;
    return s;
}

static struct control_request *request(enum control_api api, int32_t controller_epoch)
{
    struct control_request *r = control_request_new(api);

    r->controller_id = 2;
    r->controller_epoch = controller_epoch;
    return r;
}

static void do_disk(struct fixture *f)
{
    while (!f->manual && !g_queue_is_empty(&f->batches))
        finish_batch(f, g_queue_pop_head(&f->batches));
}

static void send(struct fixture *f, struct control_request *r, int64_t broker_epoch)
{
    broker_control_request(f->b, r->controller_id, broker_epoch, r, 1);
    control_request_unref(r);
    do_disk(f);
}

static struct control_response *take_response(struct fixture *f)
{
    struct control_response *r = g_queue_pop_head(&f->responses);

    assert_non_null(r);
    return r;
}

static enum kafka_error whole_error(struct fixture *f)
{
    struct control_response *r = take_response(f);
    enum kafka_error e = r->error;

    control_response_free(r);
    return e;
}

static enum kafka_error first_error(struct fixture *f)
{
    struct control_response *r = take_response(f);

    assert_int_equal(r->error, KERR_NONE);
    enum kafka_error e = g_array_index(r->partition_errors, enum kafka_error, 0);
    control_response_free(r);
    return e;
}

static void live_at(struct fixture *f, const char *brokers, int32_t controller_epoch)
{
    struct control_request *r = request(API_UPDATE_METADATA, controller_epoch);

    for (const char *p = brokers; *p; p++) {
        struct live_broker l = {.id = *p - '0'};
        g_array_append_val(r->live_brokers, l);
    }
    send(f, r, EPOCH);
    assert_int_equal(whole_error(f), KERR_NONE);
}

static void live(struct fixture *f, const char *brokers)
{
    live_at(f, brokers, 5);
}

static enum kafka_error leader_and_isr(struct fixture *f, struct want w)
{
    struct control_request *r = request(API_LEADER_AND_ISR, 5);

    g_ptr_array_add(r->partition_states, state_of(w));
    send(f, r, EPOCH);
    return f->manual ? KERR_NONE : first_error(f);
}

static enum kafka_error stop_replica(struct fixture *f, const char *topic, int32_t epoch, bool delete)
{
    struct control_request *r = request(API_STOP_REPLICA, 5);
    struct stop_replica_state s = {
            .topic = topic_ref_new(topic, ID_A), .leader_epoch = epoch, .delete_partition = delete};

    g_array_append_val(r->stop_states, s);
    send(f, r, EPOCH);
    return f->manual ? KERR_NONE : first_error(f);
}

static struct replica_view view(struct fixture *f, const char *topic, int32_t partition)
{
    struct replica_view v = {0};

    if (!broker_replica(f->b, topic, partition, &v))
        v.dir = -2;
    return v;
}

/* ---- fencing ---- */

static void fencing(void **state)
{
    static const struct {
        enum control_api api;
        int32_t controller_epoch;
        int64_t broker_epoch;
        enum kafka_error error;
    } cases[] = {
            {API_LEADER_AND_ISR, 5, EPOCH, KERR_NONE},
            {API_LEADER_AND_ISR, 4, EPOCH, KERR_STALE_CONTROLLER_EPOCH},
            {API_STOP_REPLICA, 4, EPOCH, KERR_STALE_CONTROLLER_EPOCH},
            {API_UPDATE_METADATA, 4, EPOCH, KERR_STALE_CONTROLLER_EPOCH},
            {API_UPDATE_METADATA, 5, EPOCH - 1, KERR_STALE_BROKER_EPOCH},
            {API_LEADER_AND_ISR, 9, EPOCH - 1, KERR_STALE_BROKER_EPOCH}, /* its epoch is not learned either */
            {API_STOP_REPLICA, 5, EPOCH - 1, KERR_STALE_BROKER_EPOCH},
            {API_STOP_REPLICA, 5, -1, KERR_NONE},
            {API_LEADER_AND_ISR, 5, EPOCH + 7, KERR_NONE}, /* the controller may know it first */
            {API_UPDATE_METADATA, 6, EPOCH, KERR_NONE},
            {API_LEADER_AND_ISR, 5, EPOCH, KERR_STALE_CONTROLLER_EPOCH}, /* learned from UpdateMetadata */
            {API_STOP_REPLICA, 7, EPOCH, KERR_NONE},
            {API_UPDATE_METADATA, 6, EPOCH, KERR_STALE_CONTROLLER_EPOCH},
    };
    struct fixture *f = ready();

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        send(f, request(cases[i].api, cases[i].controller_epoch), cases[i].broker_epoch);
        enum kafka_error e = whole_error(f);
        if (e != cases[i].error)
            fail_msg("case %zu: %s", i, kafka_error_name(e));
    }
    assert_int_equal(broker_controller_epoch(f->b), 7);
    assert_int_equal(broker_controller_id(f->b), 2);
    destroy(f);
}

static void requests_wait_for_loading_and_each_other(void **state)
{
    struct fixture *f = make("");

    f->manual = true;
    leader_and_isr(f, (struct want){.leader = ME, .is_new = true});
    send(f, request(API_UPDATE_METADATA, 5), EPOCH);
    assert_int_equal(f->held, 2);
    assert_int_equal(g_queue_get_length(&f->batches), 0);
    broker_loaded(f->b, 1);
    assert_int_equal(g_queue_get_length(&f->batches), 1);
    assert_int_equal(g_queue_get_length(&f->responses), 0); /* nothing overtakes the disk */
    assert_false(broker_idle(f->b));
    f->manual = false;
    do_disk(f);
    assert_int_equal(first_error(f), KERR_NONE);
    assert_int_equal(whole_error(f), KERR_NONE);
    assert_true(broker_idle(f->b));
    destroy(f);
}

static void ends_in_the_middle(void **state)
{
    struct fixture *f = ready();

    f->manual = true;
    leader_and_isr(f, (struct want){.leader = ME, .is_new = true});
    leader_and_isr(f, (struct want){.leader = ME, .is_new = true, .partition = 1});
    destroy(f); /* with a batch outstanding and a request queued */
}

/* ---- LeaderAndIsr ---- */

static void roles(void **state)
{
    struct fixture *f = ready();

    live(f, "12");
    assert_int_equal(leader_and_isr(f, (struct want){.leader = ME, .is_new = true}), KERR_NONE);
    assert_int_equal(view(f, "t", 0).role, REPLICA_LEADER);
    assert_int_equal(view(f, "t", 0).dir, 0);
    assert_int_equal(view(f, "t", 0).isr->n, 2);
    assert_int_equal(leader_and_isr(f, (struct want){.leader = 2, .partition = 1, .is_new = true}), KERR_NONE);
    assert_int_equal(view(f, "t", 1).role, REPLICA_FOLLOWER);
    assert_int_equal(view(f, "t", 1).dir, 1); /* the emptier one */
    assert_string_equal(f->topics->str, "+t ");
    /* the leader is not alive: the log is made, the epoch is not taken */
    assert_int_equal(leader_and_isr(f, (struct want){.leader = 3, .leader_epoch = 4, .partition = 2, .is_new = true}),
            KERR_NONE);
    assert_int_equal(view(f, "t", 2).role, REPLICA_NONE);
    assert_int_equal(view(f, "t", 2).leader_epoch, LEADER_EPOCH_NONE);
    assert_int_equal(view(f, "t", 2).dir, 0);
    assert_int_equal(leader_and_isr(f, (struct want){.leader = -1, .leader_epoch = 1}), KERR_NONE);
    assert_int_equal(view(f, "t", 0).role, REPLICA_NONE);
    assert_int_equal(view(f, "t", 0).leader_epoch, 0);
    destroy(f);
}

static void leader_epochs(void **state)
{
    struct fixture *f = ready();

    live(f, "12");
    leader_and_isr(f, (struct want){.leader = ME, .leader_epoch = 3, .partition_epoch = 7, .is_new = true});
    assert_int_equal(leader_and_isr(f, (struct want){.leader = 2, .leader_epoch = 2}), KERR_STALE_CONTROLLER_EPOCH);
    assert_int_equal(leader_and_isr(f, (struct want){.leader = 2, .leader_epoch = 3}), KERR_STALE_CONTROLLER_EPOCH);
    assert_int_equal(view(f, "t", 0).role, REPLICA_LEADER);
    assert_int_equal(leader_and_isr(f, (struct want){.leader = 2, .leader_epoch = 4, .replicas = "23"}),
            KERR_UNKNOWN_TOPIC_OR_PARTITION);
    /* an older partition epoch is skipped in silence */
    assert_int_equal(leader_and_isr(f, (struct want){.leader = 2, .leader_epoch = 4, .partition_epoch = 6}), KERR_NONE);
    assert_int_equal(view(f, "t", 0).role, REPLICA_LEADER);
    assert_int_equal(leader_and_isr(f, (struct want){.leader = 2, .leader_epoch = 4, .partition_epoch = 8}), KERR_NONE);
    assert_int_equal(view(f, "t", 0).role, REPLICA_FOLLOWER);
    assert_int_equal(leader_and_isr(f, (struct want){.topic = "..", .leader = ME, .is_new = true}),
            KERR_INVALID_TOPIC_EXCEPTION);
    assert_int_equal(leader_and_isr(f, (struct want){.topic = "u", .leader = 2, .replicas = "23", .is_new = true}),
            KERR_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(view(f, "u", 0).dir, -2); /* nothing is left of it */
    destroy(f);
}

static void topic_ids(void **state)
{
    struct fixture *f = make("");
    int other;

    assert_int_equal(broker_log_found(f->b, 1, "old", 0, "", false, &other), 0);
    assert_int_equal(broker_log_found(f->b, 0, "t", 0, ID_A, false, &other), 0);
    assert_int_equal(broker_log_found(f->b, 1, "t", 0, ID_A, false, &other), -EEXIST);
    assert_int_equal(other, 0);
    broker_loaded(f->b, 1);
    live(f, "12");
    assert_int_equal(leader_and_isr(f, (struct want){.id = ID_B, .leader = ME}), KERR_INCONSISTENT_TOPIC_ID);
    /* known already: no disk work */
    f->manual = true;
    leader_and_isr(f, (struct want){.leader = ME, .leader_epoch = 5});
    assert_int_equal(g_queue_get_length(&f->batches), 0);
    assert_int_equal(first_error(f), KERR_NONE);
    f->manual = false;
    /* a new topic of that name: the old directory is set aside by the create task, epochs begin anew */
    assert_int_equal(leader_and_isr(f, (struct want){.id = ID_B, .leader = ME, .is_new = true}), KERR_NONE);
    assert_int_equal(view(f, "t", 0).leader_epoch, 0);
    assert_string_equal(view(f, "t", 0).topic->id, ID_B);
    /* a log without an id takes the request's */
    f->manual = true;
    leader_and_isr(f, (struct want){.topic = "old", .leader = ME});
    struct disk_batch *batch = g_queue_peek_head(&f->batches);
    assert_non_null(batch);
    assert_int_equal(batch->work, DISK_CREATE);
    assert_int_equal(batch->dir, 1);
    f->manual = false;
    do_disk(f);
    assert_int_equal(first_error(f), KERR_NONE);
    assert_string_equal(view(f, "old", 0).topic->id, ID_A);
    destroy(f);
}

static void a_topic_id_alone_is_news(void **state)
{
    struct fixture *f = ready();

    live(f, "12");
    assert_int_equal(
            leader_and_isr(f, (struct want){.id = "", .leader = ME, .leader_epoch = 2, .is_new = true}), KERR_NONE);
    assert_int_equal(
            leader_and_isr(f, (struct want){.id = "", .leader = ME, .leader_epoch = 2}), KERR_STALE_CONTROLLER_EPOCH);
    assert_int_equal(leader_and_isr(f, (struct want){.leader = ME, .leader_epoch = 2}), KERR_NONE);
    assert_string_equal(view(f, "t", 0).topic->id, ID_A);
    assert_int_equal(view(f, "t", 0).role, REPLICA_LEADER);
    assert_int_equal(leader_and_isr(f, (struct want){.leader = ME, .leader_epoch = 2}), KERR_STALE_CONTROLLER_EPOCH);
    destroy(f);
}

static void named_twice(void **state)
{
    struct fixture *f = ready();
    struct control_request *r = request(API_LEADER_AND_ISR, 5);

    for (int i = 0; i < 2; i++)
        g_ptr_array_add(r->partition_states, state_of((struct want){.leader = ME, .is_new = true}));
    f->fail_err = -EMFILE;
    send(f, r, EPOCH);
    assert_int_equal(first_error(f), KERR_KAFKA_STORAGE_ERROR);
    leader_and_isr(f, (struct want){.leader = ME, .is_new = true});
    r = request(API_STOP_REPLICA, 5);
    for (int i = 0; i < 2; i++) {
        struct stop_replica_state s = {
                .topic = topic_ref_new("t", ID_A), .leader_epoch = EPOCH_DURING_DELETE, .delete_partition = true};
        g_array_append_val(r->stop_states, s);
    }
    send(f, r, EPOCH);
    assert_int_equal(first_error(f), KERR_NONE);
    assert_int_equal(view(f, "t", 0).dir, -2);
    destroy(f);
}

/* ---- log dirs ---- */

static void the_next_dir_is_tried(void **state)
{
    struct fixture *f = ready();

    f->fail_dir = "disk on fire";
    assert_int_equal(leader_and_isr(f, (struct want){.leader = ME, .is_new = true}), KERR_NONE);
    assert_int_equal(view(f, "t", 0).dir, 1);
    assert_false(broker_dir_online(f->b, 0));
    assert_int_equal(f->halted, 0);
    struct txn *txn = g_queue_peek_head(&f->txns);
    assert_string_equal(txn->ops[0].path, "/log_dir_event_notification/log_dir_event_");
    assert_int_equal(txn->ops[0].flags, CREATE_SEQUENTIAL);
    /* and then there is none: no answer either */
    f->manual = true;
    leader_and_isr(f, (struct want){.leader = ME, .partition = 1, .is_new = true, .topic = "u"});
    f->fail_dir = "disk on fire";
    finish_batch(f, g_queue_pop_head(&f->batches));
    assert_true(g_queue_is_empty(&f->responses));
    assert_int_equal(f->halted, 1);
    destroy(f);
}

static void one_bad_task_is_no_bad_dir(void **state)
{
    struct fixture *f = ready();

    f->fail_err = -EMFILE;
    assert_int_equal(leader_and_isr(f, (struct want){.leader = ME, .is_new = true}), KERR_KAFKA_STORAGE_ERROR);
    assert_true(broker_dir_online(f->b, 0));
    assert_int_equal(view(f, "t", 0).dir, -2);
    assert_string_equal(f->topics->str, "+t -t ");
    assert_int_equal(leader_and_isr(f, (struct want){.leader = ME, .is_new = true}), KERR_NONE); /* tried again */
    destroy(f);
}

static void a_failed_dir(void **state)
{
    struct fixture *f = ready();

    live(f, "12");
    leader_and_isr(f, (struct want){.leader = ME, .is_new = true});
    leader_and_isr(f, (struct want){.leader = ME, .partition = 1, .is_new = true});
    broker_dir_failed(f->b, 0, "gone", 1);
    broker_dir_failed(f->b, 0, "gone", 1);
    assert_int_equal(g_queue_get_length(&f->txns), 1); /* once */
    assert_int_equal(view(f, "t", 0).role, REPLICA_OFFLINE);
    assert_int_equal(view(f, "t", 1).role, REPLICA_LEADER);
    assert_int_equal(leader_and_isr(f, (struct want){.leader = ME, .leader_epoch = 1}), KERR_KAFKA_STORAGE_ERROR);
    for (int i = 0; i < 2; i++) /* KAFKA-7313 */
        assert_int_equal(stop_replica(f, "t", EPOCH_DURING_DELETE, true), KERR_KAFKA_STORAGE_ERROR);
    /* what is not new may live in the dir that is away */
    assert_int_equal(leader_and_isr(f, (struct want){.topic = "u", .leader = ME}), KERR_KAFKA_STORAGE_ERROR);
    assert_int_equal(leader_and_isr(f, (struct want){.topic = "u", .leader = ME, .leader_epoch = 1, .is_new = true}),
            KERR_KAFKA_STORAGE_ERROR);
    assert_int_equal(stop_replica(f, "unknown", EPOCH_DURING_DELETE, true), KERR_KAFKA_STORAGE_ERROR);
    assert_int_equal(stop_replica(f, "unknown", EPOCH_DURING_DELETE, false), KERR_NONE);
    assert_int_equal(leader_and_isr(f, (struct want){.topic = "new", .leader = ME, .is_new = true}), KERR_NONE);
    assert_int_equal(view(f, "new", 0).dir, 1);
    broker_dir_failed(f->b, 1, "gone", 1);
    assert_int_equal(f->halted, 1);
    destroy(f);
}

static void before_1_0_one_dir_is_all(void **state)
{
    struct fixture *f = make("inter.broker.protocol.version=0.11.0");

    broker_loaded(f->b, 1);
    broker_dir_failed(f->b, 0, "gone", 1);
    assert_int_equal(f->halted, 1);
    destroy(f);
}

static void dirs_are_filled_evenly(void **state)
{
    struct fixture *f = make("");
    int other, n[2] = {0};

    for (int i = 0; i < 3; i++)
        assert_int_equal(broker_log_found(f->b, 0, "a", i, ID_A, false, &other), 0);
    broker_future_found(f->b, 1, "a", 0);
    broker_loaded(f->b, 1);
    for (int i = 0; i < 6; i++) {
        leader_and_isr(f, (struct want){.topic = "b", .partition = i, .leader = ME, .is_new = true});
        n[view(f, "b", i).dir]++;
    }
    assert_int_equal(n[0], 2);
    assert_int_equal(n[1], 4);
    /* the future log goes with its replica: one task in each dir */
    f->manual = true;
    stop_replica(f, "a", EPOCH_DURING_DELETE, true);
    assert_int_equal(g_queue_get_length(&f->batches), 2);
    f->manual = false;
    do_disk(f);
    assert_int_equal(first_error(f), KERR_NONE);
    assert_int_equal(view(f, "a", 0).dir, -2);
    destroy(f);
}

static void torn_ones_are_made_again(void **state)
{
    struct fixture *f = make("");
    int other;

    assert_int_equal(broker_log_found(f->b, 1, "t", 0, "", true, &other), 0);
    broker_loaded(f->b, 1);
    f->manual = true;
    leader_and_isr(f, (struct want){.leader = ME});
    struct disk_batch *batch = g_queue_peek_head(&f->batches);
    assert_int_equal(batch->dir, 1); /* in place */
    f->manual = false;
    do_disk(f);
    assert_int_equal(first_error(f), KERR_NONE);
    destroy(f);
}

static void put_topic(struct fixture *f, const char *topic, const char *id)
{
    g_autofree char *text = g_strdup_printf("{\"version\":3,\"topic_id\":\"%s\",\"partitions\":{\"0\":[1]},"
                                            "\"adding_replicas\":{},\"removing_replicas\":{}}",
            id);

    g_hash_table_replace(f->tree, g_strdup_printf("/brokers/topics/%s", topic), bytes_from_string(text));
}

static void a_torn_one_gives_way(void **state)
{
    struct fixture *f = make("");
    int other;

    assert_int_equal(broker_log_found(f->b, 0, "t", 0, "", true, &other), 0);
    assert_int_equal(broker_log_found(f->b, 1, "t", 0, ID_A, false, &other), 0);
    assert_int_equal(broker_log_found(f->b, 1, "t", 1, ID_A, false, &other), 0);
    assert_int_equal(broker_log_found(f->b, 0, "t", 1, "", true, &other), 0);
    assert_int_equal(broker_log_found(f->b, 0, "t", 1, ID_A, false, &other), -EEXIST);
    put_topic(f, "t", ID_B); /* and on top of it the topic is another one now */
    broker_loaded(f->b, 1);
    assert_int_equal(g_queue_get_length(&f->batches), 2);
    struct disk_batch *batch = g_queue_peek_head(&f->batches);
    assert_int_equal(batch->work, DISK_DELETE);
    assert_int_equal(batch->dir, 0);
    assert_int_equal(batch->tasks->len, 2);
    batch = g_queue_pop_tail(&f->batches);
    assert_int_equal(batch->work, DISK_STRAY);
    finish_batch(f, batch);
    do_disk(f);
    assert_int_equal(view(f, "t", 0).dir, -2);
    live(f, "12");
    assert_int_equal(leader_and_isr(f, (struct want){.id = ID_B, .leader = ME}), KERR_NONE);
    destroy(f);
}

static void strays_are_set_aside_at_start(void **state)
{
    struct fixture *f = make("");
    int other;

    put_topic(f, "same", ID_A);
    put_topic(f, "other", ID_B);
    assert_int_equal(broker_log_found(f->b, 0, "same", 0, ID_A, false, &other), 0);
    assert_int_equal(broker_log_found(f->b, 0, "other", 0, ID_A, false, &other), 0);
    assert_int_equal(broker_log_found(f->b, 0, "nowhere", 0, ID_A, false, &other), 0);
    broker_loaded(f->b, 1);
    struct disk_batch *batch = g_queue_peek_head(&f->batches);
    assert_int_equal(batch->work, DISK_STRAY);
    assert_int_equal(batch->tasks->len, 1);
    send(f, request(API_UPDATE_METADATA, 5), EPOCH);
    assert_int_equal(whole_error(f), KERR_NONE);
    assert_int_equal(view(f, "other", 0).dir, -2);
    assert_int_equal(view(f, "same", 0).dir, 0);
    assert_int_equal(view(f, "nowhere", 0).dir, 0);
    assert_true(strstr(f->errors->str, "other-0") != NULL);
    destroy(f);
}

static void removed_by_hand(void **state)
{
    struct fixture *f = ready();

    leader_and_isr(f, (struct want){.leader = ME, .is_new = true});
    broker_log_removed(f->b, 1, "t", 0); /* another dir: no news */
    assert_string_equal(f->errors->str, "");
    broker_log_removed(f->b, 0, "t", 0);
    broker_log_removed(f->b, 0, "t", 0);
    broker_log_removed(f->b, 0, "unknown", 0);
    assert_int_equal(view(f, "t", 0).role, REPLICA_LEADER); /* it goes on, as Kafka's */
    char *first = strchr(f->errors->str, '\n');
    assert_non_null(first);
    assert_string_equal(first, "\n"); /* said once */
    /* not made again before the next start */
    f->manual = true;
    leader_and_isr(f, (struct want){.leader = ME, .leader_epoch = 1});
    assert_int_equal(g_queue_get_length(&f->batches), 0);
    assert_int_equal(first_error(f), KERR_NONE);
    destroy(f);
}

/* ---- StopReplica ---- */

static void stop_epochs(void **state)
{
    struct fixture *f = ready();

    live(f, "12");
    leader_and_isr(f, (struct want){.leader = ME, .leader_epoch = 5, .is_new = true});
    assert_int_equal(stop_replica(f, "t", 4, true), KERR_FENCED_LEADER_EPOCH);
    assert_int_equal(view(f, "t", 0).role, REPLICA_LEADER);
    assert_int_equal(stop_replica(f, "t", 5, false), KERR_NONE); /* KAFKA-13972 */
    assert_int_equal(view(f, "t", 0).role, REPLICA_NONE);
    assert_int_equal(view(f, "t", 0).dir, 0);                                   /* the log stays */
    assert_int_equal(stop_replica(f, "t", 4, false), KERR_FENCED_LEADER_EPOCH); /* and so does the epoch */
    assert_int_equal(stop_replica(f, "t", LEADER_EPOCH_NONE, false), KERR_NONE);
    assert_int_equal(stop_replica(f, "t", 6, true), KERR_NONE);
    assert_int_equal(view(f, "t", 0).dir, -2);
    assert_string_equal(f->topics->str, "+t -t ");
    assert_int_equal(stop_replica(f, "t", EPOCH_DURING_DELETE, true), KERR_NONE); /* not hosted */
    destroy(f);
}

static void a_log_from_before_is_cleaned(void **state)
{
    struct fixture *f = make("");
    int other;

    assert_int_equal(broker_log_found(f->b, 0, "t", 0, ID_A, false, &other), 0);
    broker_loaded(f->b, 1);
    assert_int_equal(stop_replica(f, "t", 0, true), KERR_NONE);
    assert_int_equal(view(f, "t", 0).dir, -2);
    destroy(f);
}

static void a_deletion_that_fails(void **state)
{
    struct fixture *f = ready();

    leader_and_isr(f, (struct want){.leader = ME, .leader_epoch = 5, .is_new = true});
    f->fail_err = -EXDEV;
    assert_int_equal(stop_replica(f, "t", EPOCH_DURING_DELETE, true), KERR_KAFKA_STORAGE_ERROR);
    assert_true(broker_dir_online(f->b, 0));
    assert_true(strstr(f->errors->str, "/d/0/t-0") != NULL);
    assert_int_equal(stop_replica(f, "t", EPOCH_DURING_DELETE, true), KERR_NONE); /* asked again, it works */
    assert_int_equal(view(f, "t", 0).dir, -2);
    leader_and_isr(f, (struct want){.leader = ME, .leader_epoch = 5, .is_new = true});
    f->fail_dir = "busy";
    assert_int_equal(stop_replica(f, "t", EPOCH_DURING_DELETE, true), KERR_KAFKA_STORAGE_ERROR);
    assert_false(broker_dir_online(f->b, 0));
    assert_int_equal(view(f, "t", 0).role, REPLICA_OFFLINE);
    destroy(f);
}

/* ---- metadata ---- */

static void metadata(void **state)
{
    struct fixture *f = ready();
    struct control_request *r = request(API_UPDATE_METADATA, 5);

    for (int p = 4; p >= 0; p--)
        g_ptr_array_add(r->partition_states, state_of((struct want){.partition = p, .leader = 2, .leader_epoch = p}));
    g_ptr_array_add(r->partition_states, state_of((struct want){.topic = "u", .leader = 1}));
    send(f, r, EPOCH);
    const struct metadata_cache *c = broker_metadata(f->b);
    assert_int_equal(metadata_cache_count(c), 6);
    g_autoptr(GArray) parts = metadata_cache_partitions(c, "t");
    for (int p = 0; p < 5; p++)
        assert_int_equal(g_array_index(parts, int32_t, p), p);
    assert_int_equal(metadata_cache_partition(c, "t", 3)->leader_epoch, 3);
    g_autofree char *json = metadata_cache_json(c, "t", 3);
    assert_string_equal(json, "{\"topic\":\"t\",\"topic_id\":\"" ID_A "\",\"partition\":3,\"controller_epoch\":5,"
                              "\"leader\":2,\"leader_epoch\":3,\"isr\":[1,2],\"zk_version\":0,\"replicas\":[1,2],"
                              "\"offline_replicas\":[]}");
    /* merged, in any mixture */
    r = request(API_UPDATE_METADATA, 5);
    g_ptr_array_add(r->partition_states, state_of((struct want){.partition = 7, .leader = 1}));
    g_ptr_array_add(r->partition_states, state_of((struct want){.partition = 5, .leader = 1}));
    g_ptr_array_add(r->partition_states, state_of((struct want){.partition = 0, .leader = LEADER_DURING_DELETE}));
    g_ptr_array_add(r->partition_states, state_of((struct want){.partition = 3, .leader = 9}));
    g_ptr_array_add(r->partition_states, state_of((struct want){.partition = 6, .leader = LEADER_DURING_DELETE}));
    send(f, r, EPOCH);
    assert_null(metadata_cache_partition(c, "t", 0));
    assert_null(metadata_cache_partition(c, "t", 6));
    assert_int_equal(metadata_cache_partition(c, "t", 3)->leader, 9);
    assert_int_equal(metadata_cache_count(c), 7);
    /* the last partition takes the topic with it */
    r = request(API_UPDATE_METADATA, 5);
    for (int p = 0; p < 8; p++)
        g_ptr_array_add(r->partition_states, state_of((struct want){.partition = p, .leader = LEADER_DURING_DELETE}));
    send(f, r, EPOCH);
    g_autoptr(GPtrArray) topics = metadata_cache_topics(c);
    assert_int_equal(topics->len, 1);
    assert_string_equal(g_ptr_array_index(topics, 0), "u");
    assert_int_equal(metadata_cache_count(c), 1);
    assert_null(metadata_cache_partitions(c, "t"));
    assert_null(metadata_cache_json(c, "t", 3));
    /* live brokers are replaced */
    live(f, "13");
    assert_true(metadata_cache_has_broker(c, 3));
    live(f, "1");
    assert_false(metadata_cache_has_broker(c, 3));
    destroy(f);
}

static void metadata_against_a_model(void **state)
{
    struct metadata_cache *c = metadata_cache_new();
    g_autoptr(GRand) rand = g_rand_new_with_seed(4711);
    struct topic_ref *t = topic_ref_new("t", ID_A);
    int32_t model[64];

    memset(model, 0xff, sizeof model);
    for (int round = 0; round < 3000; round++) {
        struct control_request *r = request(API_UPDATE_METADATA, 1);
        int n = g_rand_int_range(rand, 0, 20), count = 0;
        for (int i = 0; i < n; i++) {
            int p = g_rand_int_range(rand, 0, 64);
            struct partition_state *s = partition_state_new(t, p);
            s->leader = g_rand_int_range(rand, 0, 3) == 0 ? LEADER_DURING_DELETE : round;
            model[p] = s->leader == LEADER_DURING_DELETE ? -1 : round;
            g_ptr_array_add(r->partition_states, s);
        }
        metadata_cache_update(c, r);
        control_request_unref(r);
        for (int p = 0; p < 64; p++) {
            const struct partition_state *s = metadata_cache_partition(c, "t", p);
            assert_int_equal(s ? s->leader : -1, model[p]);
            count += model[p] >= 0;
        }
        assert_int_equal(metadata_cache_count(c), count);
    }
    topic_ref_unref(t);
    metadata_cache_free(c);
}

/* ---- in-sync sets ---- */

static struct fetch_request *fetch_of(int32_t id, int64_t epoch, int32_t leader_epoch)
{
    struct fetch_request *r = g_new0(struct fetch_request, 1);
    struct fetch_partition p = {.topic = topic_ref_new("t", ID_A), .leader_epoch = leader_epoch};

    r->replica_id = id;
    r->replica_epoch = epoch;
    r->partitions = g_array_new(FALSE, FALSE, sizeof(struct fetch_partition));
    g_array_append_val(r->partitions, p);
    return r;
}

static void fetch(struct fixture *f, int32_t id, int64_t epoch, int32_t leader_epoch)
{
    struct fetch_request *r = fetch_of(id, epoch, leader_epoch);

    broker_fetch(f->b, r, 1);
    fetch_request_free(r);
}

static struct broker_request *take_asked(struct fixture *f)
{
    struct broker_request *r = g_queue_pop_head(&f->asked);

    assert_non_null(r);
    return r;
}

static void grant(struct fixture *f, struct broker_request *r)
{
    for (size_t i = 0; i < r->n_partitions; i++) {
        r->partitions[i].result_isr = broker_ids_ref(r->partitions[i].new_isr);
        r->partitions[i].result_partition_epoch = r->partitions[i].partition_epoch + 1;
    }
    broker_answered(f->b, r, 1);
}

static struct fixture *leading(const char *isr)
{
    struct fixture *f = ready();

    live(f, "123");
    assert_int_equal(leader_and_isr(f, (struct want){.leader = ME,
                                               .leader_epoch = 2,
                                               .isr = isr,
                                               .replicas = "123",
                                               .partition_epoch = 10,
                                               .is_new = true}),
            KERR_NONE);
    return f;
}

static void a_follower_comes_back(void **state)
{
    struct fixture *f = leading("1");

    fetch(f, 2, 55, 1); /* an old epoch: fenced */
    fetch(f, 4, 55, 2); /* no replica */
    assert_true(g_queue_is_empty(&f->asked));
    fetch(f, 2, 55, 2);
    struct broker_request *r = take_asked(f);
    assert_int_equal(r->api, API_ALTER_PARTITION);
    assert_int_equal(r->broker_epoch, EPOCH);
    assert_int_equal(r->n_partitions, 1);
    assert_int_equal(r->partitions[0].leader_epoch, 2);
    assert_int_equal(r->partitions[0].partition_epoch, 10);
    assert_int_equal(r->partitions[0].new_isr->n, 2);
    assert_int_equal(r->partitions[0].new_isr->id[1], 2);
    assert_int_equal(r->partitions[0].new_isr_epochs[0], EPOCH);
    assert_int_equal(r->partitions[0].new_isr_epochs[1], 55);
    fetch(f, 3, 66, 2); /* while one is in flight */
    assert_true(g_queue_is_empty(&f->asked));
    grant(f, r);
    assert_int_equal(view(f, "t", 0).partition_epoch, 11);
    r = take_asked(f);
    assert_int_equal(r->partitions[0].new_isr->n, 3);
    assert_int_equal(r->partitions[0].partition_epoch, 11);
    grant(f, r);
    assert_int_equal(view(f, "t", 0).isr->n, 3);
    fetch(f, 2, 55, 2); /* in it already */
    assert_true(g_queue_is_empty(&f->asked));
    assert_true(broker_idle(f->b));
    destroy(f);
}

static void a_fetch_may_come_early(void **state)
{
    struct fixture *f = ready();

    live(f, "12");
    fetch(f, 2, 55, 2);
    assert_int_equal(
            leader_and_isr(f, (struct want){.leader = ME, .leader_epoch = 2, .isr = "1", .is_new = true}), KERR_NONE);
    grant(f, take_asked(f));
    assert_int_equal(view(f, "t", 0).isr->n, 2);
    /* but not for the wrong epoch */
    fetch(f, 2, 55, 3);
    assert_int_equal(
            leader_and_isr(f, (struct want){.leader = ME, .leader_epoch = 4, .isr = "1", .partition_epoch = 20}),
            KERR_NONE);
    assert_true(g_queue_is_empty(&f->asked));
    destroy(f);
}

static void only_live_followers_are_proposed(void **state)
{
    struct fixture *f = leading("1");

    live(f, "13");
    fetch(f, 2, 55, 2);
    assert_true(g_queue_is_empty(&f->asked));
    live(f, "123");
    broker_answered(f->b, take_asked(f), 1); /* granted as asked: no result list */
    assert_int_equal(view(f, "t", 0).isr->n, 2);
    destroy(f);
    f = leading("1");
    live(f, "13");
    fetch(f, 2, 55, 2);
    live(f, "3");
    live(f, "13");
    fetch(f, 3, 66, 2);
    struct broker_request *r = take_asked(f);
    assert_int_equal(r->partitions[0].new_isr->n, 2);
    live(f, "1");
    live(f, "123"); /* 2 came back, but has not fetched again */
    r->partitions[0].error = KERR_INELIGIBLE_REPLICA;
    broker_answered(f->b, r, 1);
    live(f, "12");
    assert_int_equal(f->held, 0);
    destroy(f);
}

static void the_controller_changes(void **state)
{
    struct fixture *f = leading("1");

    fetch(f, 2, 55, 2);
    struct broker_request *r = take_asked(f);
    r->error = KERR_NOT_CONTROLLER;
    broker_answered(f->b, r, 1);
    assert_true(g_queue_is_empty(&f->asked));
    assert_int_equal(f->timers[BROKER_TIMER_ALTER_PARTITION], 50);
    assert_int_equal(f->held, 0); /* nobody waits for that */
    fetch(f, 3, 66, 2);
    assert_true(g_queue_is_empty(&f->asked));
    /* the timer */
    broker_timer(f->b, BROKER_TIMER_ALTER_PARTITION, 1);
    r = take_asked(f);
    assert_int_equal(r->partitions[0].new_isr->n, 2); /* the same proposal: it may have been done */
    /* its answer is lost, and another controller makes itself known */
    live_at(f, "123", 6);
    struct broker_request *again = take_asked(f);
    assert_int_equal(again->partitions[0].new_isr->n, 2);
    broker_answered(f->b, r, 1); /* late: of no use */
    assert_int_equal(view(f, "t", 0).isr->n, 1);
    grant(f, again);
    grant(f, take_asked(f));
    assert_int_equal(view(f, "t", 0).isr->n, 3);
    destroy(f);
}

static void refused_proposals(void **state)
{
    static const struct {
        enum kafka_error error;
        bool again;
    } cases[] = {{KERR_FENCED_LEADER_EPOCH, false}, {KERR_INVALID_UPDATE_VERSION, false},
            {KERR_UNKNOWN_TOPIC_OR_PARTITION, false}, {KERR_UNKNOWN_TOPIC_ID, false}, {KERR_INVALID_REQUEST, false},
            {KERR_INELIGIBLE_REPLICA, false}, {KERR_OPERATION_NOT_ATTEMPTED, false}, {KERR_NOT_CONTROLLER, true},
            {KERR_UNKNOWN_SERVER_ERROR, true}};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct fixture *f = leading("1");
        f->timers[BROKER_TIMER_ALTER_PARTITION] = -1;
        fetch(f, 2, 55, 2);
        struct broker_request *r = take_asked(f);
        r->partitions[0].error = cases[i].error;
        broker_answered(f->b, r, 1);
        assert_int_equal(view(f, "t", 0).isr->n, 1);
        assert_int_equal(f->timers[BROKER_TIMER_ALTER_PARTITION], cases[i].again ? 50 : -1);
        assert_int_equal(f->held, 0);
        /* it asks again with the follower's next fetch */
        if (!cases[i].again) {
            fetch(f, 2, 56, 2);
            r = take_asked(f);
            assert_int_equal(r->partitions[0].new_isr_epochs[1], 56);
            grant(f, r);
            assert_int_equal(view(f, "t", 0).isr->n, 2);
        }
        destroy(f);
    }
}

static void a_new_state_ends_a_proposal(void **state)
{
    struct fixture *f = leading("1");

    fetch(f, 2, 55, 2);
    struct broker_request *r = take_asked(f);
    assert_int_equal(
            leader_and_isr(f,
                    (struct want){
                            .leader = ME, .leader_epoch = 3, .isr = "1", .replicas = "123", .partition_epoch = 11}),
            KERR_NONE);
    grant(f, r);
    assert_int_equal(view(f, "t", 0).isr->n, 1);
    assert_int_equal(view(f, "t", 0).partition_epoch, 11);
    fetch(f, 2, 55, 3);
    r = take_asked(f);
    assert_int_equal(r->partitions[0].leader_epoch, 3);
    stop_replica(f, "t", EPOCH_DURING_DELETE, true);
    grant(f, r); /* the replica is gone */
    destroy(f);
}

static void followers_fetch(void **state)
{
    struct fixture *f = ready();

    live(f, "12");
    /* in the ISR: nothing to say */
    leader_and_isr(f, (struct want){.leader = 2, .leader_epoch = 1, .isr = "21", .is_new = true});
    assert_true(g_queue_is_empty(&f->fetches));
    leader_and_isr(f, (struct want){.leader = 2, .leader_epoch = 2, .isr = "2", .partition_epoch = 1});
    struct fetch_request *r = g_queue_pop_head(&f->fetches);
    assert_int_equal(f->fetched_from, 2);
    assert_int_equal(r->replica_id, ME);
    assert_int_equal(r->replica_epoch, EPOCH);
    assert_int_equal(g_array_index(r->partitions, struct fetch_partition, 0).leader_epoch, 2);
    fetch_request_free(r);
    assert_false(broker_idle(f->b));
    /* lost: the timer */
    assert_int_equal(f->timers[BROKER_TIMER_FETCH], 1000);
    broker_timer(f->b, BROKER_TIMER_FETCH, 1);
    fetch_request_free(g_queue_pop_head(&f->fetches));
    /* the leader was away and is back */
    live(f, "1");
    assert_true(g_queue_is_empty(&f->fetches));
    live(f, "12");
    fetch_request_free(g_queue_pop_head(&f->fetches));
    /* taken in */
    struct control_request *u = request(API_UPDATE_METADATA, 5);
    struct live_broker l[] = {{.id = 1}, {.id = 2}};
    g_array_append_vals(u->live_brokers, l, 2);
    g_ptr_array_add(u->partition_states, state_of((struct want){.leader = 2, .leader_epoch = 2, .isr = "21"}));
    send(f, u, EPOCH);
    assert_true(broker_idle(f->b));
    broker_timer(f->b, BROKER_TIMER_FETCH, 1);
    assert_true(g_queue_is_empty(&f->fetches));
    destroy(f);
}

/* ---- IBP < 2.7 ---- */

static struct fixture *leading_old(void)
{
    struct fixture *f = make("inter.broker.protocol.version=2.6");

    broker_loaded(f->b, 1);
    live(f, "123");
    assert_int_equal(leader_and_isr(f, (struct want){.leader = ME,
                                               .leader_epoch = 2,
                                               .isr = "1",
                                               .replicas = "123",
                                               .partition_epoch = 10,
                                               .is_new = true}),
            KERR_NONE);
    return f;
}

static void the_leader_writes_itself(void **state)
{
    struct fixture *f = leading_old();

    fetch(f, 2, 55, 2);
    assert_true(g_queue_is_empty(&f->asked));
    struct txn *txn = g_queue_pop_head(&f->txns);
    assert_int_equal(txn->ops[0].type, OP_SET);
    assert_string_equal(txn->ops[0].path, "/brokers/topics/t/partitions/0/state");
    assert_int_equal(txn->ops[0].version, 10);
    struct leader_and_isr l;
    assert_true(leader_and_isr_decode(txn->ops[0].data, &l, NULL));
    assert_int_equal(l.leader, ME);
    assert_int_equal(l.leader_epoch, 2);
    assert_int_equal(l.controller_epoch, 5);
    assert_int_equal(l.isr->n, 2);
    leader_and_isr_clear(&l);
    txn->rc = ZOK;
    txn->ops[0].stat.version = 11;
    broker_txn_done(f->b, txn, 1);
    assert_int_equal(view(f, "t", 0).isr->n, 2);
    assert_int_equal(view(f, "t", 0).partition_epoch, 11);
    txn = g_queue_pop_head(&f->txns);
    assert_string_equal(txn->ops[0].path, "/isr_change_notification/isr_change_");
    assert_string_equal(txn->ops[0].data->data, "{\"version\":1,\"partitions\":[{\"topic\":\"t\",\"partition\":0}]}");
    broker_txn_done(f->b, txn, 1);
    destroy(f);
}

static void a_lost_answer_is_recognized(void **state)
{
    struct fixture *f = leading_old();

    fetch(f, 2, 55, 2);
    struct txn *txn = g_queue_pop_head(&f->txns);
    g_hash_table_replace(f->tree, g_strdup(txn->ops[0].path), bytes_ref(txn->ops[0].data));
    f->tree_version = 17;
    txn->rc = ZBADVERSION;
    broker_txn_done(f->b, txn, 1);
    assert_int_equal(view(f, "t", 0).isr->n, 2);
    assert_int_equal(view(f, "t", 0).partition_epoch, 17);
    txn_free(g_queue_pop_head(&f->txns));
    /* a value of this leader and epoch by another hand is taken too, and the proposal follows it */
    fetch(f, 3, 66, 2);
    txn = g_queue_pop_head(&f->txns);
    f->tree_version = 19;
    txn->rc = ZBADVERSION;
    broker_txn_done(f->b, txn, 1);
    assert_int_equal(view(f, "t", 0).isr->n, 2);
    assert_int_equal(view(f, "t", 0).partition_epoch, 19);
    txn_free(g_queue_pop_head(&f->txns)); /* the controller is told */
    txn = g_queue_pop_head(&f->txns);
    assert_int_equal(txn->ops[0].version, 19);
    /* one of another epoch is not */
    g_hash_table_replace(f->tree, g_strdup(txn->ops[0].path),
            bytes_from_string("{\"controller_epoch\":1,\"leader\":1,\"version\":1,\"leader_epoch\":99,\"isr\":[1]}"));
    txn->rc = ZBADVERSION;
    broker_txn_done(f->b, txn, 1);
    assert_int_equal(view(f, "t", 0).partition_epoch, 19);
    destroy(f);
}

/* ---- controlled shutdown ---- */

static void shuts_down(void **state)
{
    struct fixture *f = ready();

    live(f, "12");
    broker_shutdown(f->b, 1);
    struct broker_request *r = take_asked(f);
    assert_int_equal(r->api, API_CONTROLLED_SHUTDOWN);
    r->remaining = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(r->remaining, g_strdup("t-0"));
    broker_answered(f->b, r, 1);
    assert_int_equal(f->shut_down, 0);
    assert_int_equal(f->timers[BROKER_TIMER_CONTROLLED_SHUTDOWN], 5000);
    broker_timer(f->b, BROKER_TIMER_CONTROLLED_SHUTDOWN, 1);
    broker_answered(f->b, take_asked(f), 1);
    assert_int_equal(f->shut_down, 1);
    broker_shutdown(f->b, 1);
    assert_int_equal(f->shut_down, 1);
    destroy(f);
}

static void one_that_stops_does_not_come_back(void **state)
{
    struct fixture *f = ready();

    live(f, "12");
    leader_and_isr(f, (struct want){.leader = ME, .is_new = true});
    broker_shutdown(f->b, 1);
    assert_int_equal(leader_and_isr(f, (struct want){.leader = 2, .leader_epoch = 1, .isr = "2", .partition_epoch = 1}),
            KERR_NONE);
    assert_int_equal(view(f, "t", 0).role, REPLICA_FOLLOWER);
    assert_true(g_queue_is_empty(&f->fetches));
    destroy(f);
}

static void gives_up_after_its_retries(void **state)
{
    struct fixture *f = make("controlled.shutdown.max.retries=2");

    broker_loaded(f->b, 1);
    broker_shutdown(f->b, 1); /* no controller is known: that counts */
    assert_int_equal(f->shut_down, 0);
    live(f, "12");
    broker_timer(f->b, BROKER_TIMER_CONTROLLED_SHUTDOWN, 1);
    struct broker_request *r = take_asked(f);
    r->error = KERR_NOT_CONTROLLER;
    broker_answered(f->b, r, 1);
    assert_int_equal(f->shut_down, 1);
    destroy(f);
    f = make("controlled.shutdown.enable=false");
    broker_loaded(f->b, 1);
    broker_shutdown(f->b, 1);
    assert_int_equal(f->shut_down, 1);
    destroy(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(fencing),
            cmocka_unit_test(requests_wait_for_loading_and_each_other),
            cmocka_unit_test(ends_in_the_middle),
            cmocka_unit_test(roles),
            cmocka_unit_test(leader_epochs),
            cmocka_unit_test(topic_ids),
            cmocka_unit_test(a_topic_id_alone_is_news),
            cmocka_unit_test(named_twice),
            cmocka_unit_test(the_next_dir_is_tried),
            cmocka_unit_test(one_bad_task_is_no_bad_dir),
            cmocka_unit_test(a_failed_dir),
            cmocka_unit_test(before_1_0_one_dir_is_all),
            cmocka_unit_test(dirs_are_filled_evenly),
            cmocka_unit_test(torn_ones_are_made_again),
            cmocka_unit_test(a_torn_one_gives_way),
            cmocka_unit_test(strays_are_set_aside_at_start),
            cmocka_unit_test(removed_by_hand),
            cmocka_unit_test(stop_epochs),
            cmocka_unit_test(a_log_from_before_is_cleaned),
            cmocka_unit_test(a_deletion_that_fails),
            cmocka_unit_test(metadata),
            cmocka_unit_test(metadata_against_a_model),
            cmocka_unit_test(a_follower_comes_back),
            cmocka_unit_test(a_fetch_may_come_early),
            cmocka_unit_test(only_live_followers_are_proposed),
            cmocka_unit_test(the_controller_changes),
            cmocka_unit_test(refused_proposals),
            cmocka_unit_test(a_new_state_ends_a_proposal),
            cmocka_unit_test(followers_fetch),
            cmocka_unit_test(the_leader_writes_itself),
            cmocka_unit_test(a_lost_answer_is_recognized),
            cmocka_unit_test(shuts_down),
            cmocka_unit_test(one_that_stops_does_not_come_back),
            cmocka_unit_test(gives_up_after_its_retries),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
