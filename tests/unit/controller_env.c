/* The environment of the candidates: the store, requests to scripted brokers, a clock that stands, and faults. */
#include "tests/unit/controller_world.h"

#include <stdarg.h>
#include "controller/json/codec.h"

static struct world *world_of(void *ctx)
{
    return ((struct scripted_broker *)ctx)->world;
}

static bool is_dead(const struct world *w)
{
    return w->running && !w->running->candidate;
}

/* Counts a call that changes something. True: the fault strikes here. */
static bool strikes(struct world *w)
{
    return w->fault != FAULT_NONE &&
           (++w->calls == w->fault_call || (w->fault == FAULT_FULL && w->calls > w->fault_call));
}

/* A full store has room for removals. */
static bool needs_room(const struct txn *txn)
{
    bool found = false;
    for (size_t i = 0; i < txn->n_ops; i++) {
        found = found || txn->ops[i].type == OP_SET || txn->ops[i].type == OP_CREATE;
    }
    return found;
}

static void refuse(struct txn *txn, int rc)
{
    txn->rc = rc;
    for (size_t i = 0; i < txn->n_ops; i++) {
        txn->ops[i].rc = ZRUNTIMEINCONSISTENCY;
    }
}

static void log_write(struct world *w, const struct txn *txn)
{
    static const char *const names[] = {"create", "set", "delete", "check"};
    for (size_t i = 0; i < txn->n_ops; i++) {
        if (txn->ops[i].type != OP_CHECK) {
            g_string_append_printf(
                    w->write_log, "%s %s%s", names[txn->ops[i].type], txn->ops[i].path, i + 1 < txn->n_ops ? "; " : "");
        }
    }
    g_string_append_c(w->write_log, '\n');
}

static int env_get(void *ctx, const char *path, struct bytes **ret_data, struct zstat *ret_stat)
{
    world_of(ctx)->reads++;
    return mirror_get(world_of(ctx)->mirror, path, ret_data, ret_stat);
}

static GPtrArray *env_children(void *ctx, const char *path)
{
    return mirror_children(world_of(ctx)->mirror, path);
}

static GArray *env_below(void *ctx, const char *path, const char *name)
{
    return mirror_below(world_of(ctx)->mirror, path, name);
}

static void crash(struct world *w)
{
    w->running->candidate = NULL; /* whoever runs it frees it */
}

/* Every write but those of an election begins with the check of /controller_epoch (KAFKA-6082). */
static void check_fence(const struct txn *txn)
{
    if (txn->ops[0].type == OP_CHECK) {
        g_assert_cmpstr(txn->ops[0].path, ==, "/controller_epoch");
        return;
    }
    for (size_t i = 0; i < txn->n_ops; i++) {
        g_assert_true(g_str_has_prefix(txn->ops[i].path, "/controller"));
    }
}

static void env_run(void *ctx, struct txn **txns, size_t n)
{
    struct world *w = world_of(ctx);
    struct scripted_broker *me = ctx;
    if (w->before_run) {
        w->before_run(w, txns, n);
    }
    for (size_t i = 0; i < n; i++) {
        bool strike = strikes(w);
        check_fence(txns[i]);
        if (is_dead(w)) {
            refuse(txns[i], ZSESSIONEXPIRED);
            continue;
        }
        if (strike && (w->fault == FAULT_FAIL || (w->fault == FAULT_FULL && needs_room(txns[i])))) {
            refuse(txns[i], w->fault_rc);
            continue;
        }
        txns[i]->session = me->session;
        txns[i]->done = world_txn_done;
        store_submit(w->store, txns[i]);
        store_step(w->store);
        if (txns[i]->rc == ZOK) {
            log_write(w, txns[i]);
        }
        if (strike && w->fault == FAULT_CRASH) {
            crash(w);
        }
    }
}

static void log_request(struct world *w, int32_t broker, const struct control_request *r)
{
    static const char *const names[] = {[API_LEADER_AND_ISR] = "LeaderAndIsr",
            [API_STOP_REPLICA] = "StopReplica",
            [API_UPDATE_METADATA] = "UpdateMetadata"};
    g_string_append_printf(w->request_log, "%s to %d:", names[r->api], broker);
    for (guint i = 0; i < r->partition_states->len; i++) {
        const struct partition_state *s = r->partition_states->pdata[i];
        g_string_append_printf(w->request_log, " %s-%d leader %d%s", s->topic->name, s->partition, s->leader,
                r->api == API_LEADER_AND_ISR && s->is_new ? " new" : "");
    }
    for (guint i = 0; i < r->stop_states->len; i++) {
        const struct stop_replica_state *s = &g_array_index(r->stop_states, struct stop_replica_state, i);
        g_string_append_printf(w->request_log, " %s-%d epoch %d%s", s->topic->name, s->partition, s->leader_epoch,
                s->delete_partition ? " delete" : "");
    }
    g_string_append_c(w->request_log, '\n');
}

static void env_send(void *ctx, int32_t broker_id, int64_t broker_epoch, struct control_request *request)
{
    struct world *w = world_of(ctx);
    struct scripted_broker *me = ctx;
    bool strike = strikes(w);
    if (is_dead(w)) {
        return;
    }
    struct sent *s = g_new(struct sent, 1);
    *s = (struct sent){me->id, broker_id, broker_epoch, control_request_ref(request)};
    if (!w->quiet) {
        log_request(w, broker_id, request);
    }
    g_queue_push_tail(&w->requests, s);
    if (strike && w->fault == FAULT_CRASH) {
        crash(w);
    }
}

static void env_channel(void *ctx, int32_t broker_id)
{
}

static void env_respond(void *ctx, struct broker_request *request)
{
    broker_take_answer(world_of(ctx), request);
}

static int64_t env_now_ms(void *ctx)
{
    return world_of(ctx)->now_ms;
}

static int64_t env_monotonic_us(void *ctx)
{
    return world_of(ctx)->now_ms * 1000;
}

static uint32_t env_random(void *ctx)
{
    struct world *w = world_of(ctx);
    w->random = w->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(w->random >> 32);
}

static void env_timer(void *ctx, enum controller_timer timer, int64_t delay_ms)
{
    ((struct scripted_broker *)ctx)->timer_ms = delay_ms;
}

static void env_event(void *ctx, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    g_string_append_vprintf(world_of(ctx)->event_log, fmt, args);
    va_end(args);
    g_string_append_c(world_of(ctx)->event_log, '\n');
}

static void env_error(void *ctx, int err, const char *path, const char *fmt, ...)
{
    struct world *w = world_of(ctx);
    va_list args;
    g_string_append_printf(w->error_log, "%d %s: ", err, path);
    va_start(args, fmt);
    g_string_append_vprintf(w->error_log, fmt, args);
    va_end(args);
    g_string_append_c(w->error_log, '\n');
}

static bool env_unclean_default(void *ctx)
{
    return ((struct scripted_broker *)ctx)->unclean_default;
}

void candidate_post(struct scripted_broker *b, struct controller_event *event)
{
    struct queued *q = g_new(struct queued, 1);
    *q = (struct queued){event, b->id};
    g_queue_push_tail(&b->world->events, q);
}

void candidate_start(struct scripted_broker *b)
{
    struct controller_env env = {
            .ctx = b,
            .get = env_get,
            .children = env_children,
            .below = env_below,
            .run = env_run,
            .send = env_send,
            .channel_open = env_channel,
            .channel_close = env_channel,
            .respond = env_respond,
            .unclean_default = env_unclean_default,
            .now_ms = env_now_ms,
            .monotonic_us = env_monotonic_us,
            .random = env_random,
            .timer = env_timer,
            .event = env_event,
            .error = env_error,
    };
    b->unclean_default = b->config->unclean_leader_election_enable;
    b->candidate = controller_new(b->id, b->config, &env);
    candidate_post(b, controller_event_new(EVENT_STARTUP));
}
