#pragma once
/* The broker core with a scripted environment: every request of it is kept until the test answers. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <glib.h>
#include <stdio.h>
#include <string.h>
#include "controller/broker/broker.h"
#include "controller/json/codec.h"

#pragma GCC diagnostic ignored "-Wunused-function" /* each test uses what it needs */

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
    int64_t tree_czxid;
    int64_t registered[10]; /* epochs; 0: there is no such registration */
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
    int id;

    if (sscanf(path, "/brokers/ids/%d", &id) == 1 && f->registered[id]) {
        *ret_stat = (struct zstat){.czxid = f->registered[id]};
        return ZOK;
    }
    if (!data)
        return ZNONODE;
    if (ret_data)
        *ret_data = bytes_ref(data);
    if (ret_stat)
        *ret_stat = (struct zstat){.version = f->tree_version, .czxid = f->tree_czxid};
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

/* The store's answer to the oldest transaction. */
static void answer_txn(struct fixture *f, int rc)
{
    struct txn *txn = g_queue_pop_head(&f->txns);

    assert_non_null(txn);
    txn->rc = rc;
    broker_txn_done(f->b, txn, 1);
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

static struct broker_request *take_asked(struct fixture *f)
{
    struct broker_request *r = g_queue_pop_head(&f->asked);

    assert_non_null(r);
    return r;
}

static struct replica_view view(struct fixture *f, const char *topic, int32_t partition)
{
    struct replica_view v = {0};

    if (!broker_replica(f->b, topic, partition, &v))
        v.dir = -2;
    return v;
}

/* ---- fetches, and what leaders propose then ---- */

static struct fetch_request *fetch_of(int32_t id, int64_t epoch, const char *topic_id, int32_t leader_epoch)
{
    struct fetch_request *r = g_new0(struct fetch_request, 1);
    struct fetch_partition p = {.topic = topic_ref_new("t", topic_id), .leader_epoch = leader_epoch};

    r->replica_id = id;
    r->replica_epoch = epoch;
    r->partitions = g_array_new(FALSE, FALSE, sizeof(struct fetch_partition));
    g_array_append_val(r->partitions, p);
    return r;
}

static void fetch_without_id(struct fixture *f, int32_t id, int32_t leader_epoch)
{
    struct fetch_request *r = fetch_of(id, 55, "", leader_epoch);

    broker_fetch(f->b, r, 1);
    fetch_request_free(r);
}

static void fetch(struct fixture *f, int32_t id, int64_t epoch, int32_t leader_epoch)
{
    struct fetch_request *r = fetch_of(id, epoch, ID_A, leader_epoch);

    broker_fetch(f->b, r, 1);
    fetch_request_free(r);
}

static void grant(struct fixture *f, struct broker_request *r)
{
    for (size_t i = 0; i < r->n_partitions; i++) {
        r->partitions[i].result_isr = broker_ids_ref(r->partitions[i].new_isr);
        r->partitions[i].result_partition_epoch = r->partitions[i].partition_epoch + 1;
    }
    broker_answered(f->b, r, 1);
}
