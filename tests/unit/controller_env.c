#include "tests/unit/controller_env.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "controller/json/codec.h"
#include "fs/policy.h"
#include "fs/tree/path.h"

struct queued {
    struct controller_event *event;
    int32_t broker; /* of the candidate; 0: a watch event, for whom it concerns */
};

struct sent {
    int32_t controller, broker;
    int64_t epoch;
    struct control_request *request;
};

/* ---- the candidates' environment ---- */

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
    return w->fault != FAULT_NONE && ++w->calls == w->fault_call;
}

static void refuse(struct txn *txn, int rc)
{
    txn->rc = rc;
    for (size_t i = 0; i < txn->n_ops; i++) {
        txn->ops[i].rc = ZRUNTIMEINCONSISTENCY;
    }
}

static void txn_is_done(struct txn *txn, void *arg)
{
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
    return mirror_get(world_of(ctx)->mirror, path, ret_data, ret_stat);
}

static GPtrArray *env_children(void *ctx, const char *path)
{
    return mirror_children(world_of(ctx)->mirror, path);
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
        if (strike && w->fault == FAULT_FAIL) {
            refuse(txns[i], w->fault_rc);
            continue;
        }
        txns[i]->session = me->session;
        txns[i]->done = txn_is_done;
        store_submit(w->store, txns[i]);
        store_step(w->store);
        if (txns[i]->rc == ZOK) {
            log_write(w, txns[i]);
        }
        if (strike) {
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

static void take_answer(struct world *w, struct broker_request *r);

static void env_respond(void *ctx, struct broker_request *request)
{
    take_answer(world_of(ctx), request);
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

static void post(struct scripted_broker *b, struct controller_event *event)
{
    struct queued *q = g_new(struct queued, 1);
    *q = (struct queued){event, b->id};
    g_queue_push_tail(&world_of(b)->events, q);
}

/* ---- events ---- */

void world_push_first(struct world *w, struct controller_event *e)
{
    struct queued *q = g_new(struct queued, 1);
    *q = (struct queued){e, 0};
    g_queue_push_head(&w->events, q);
}

void world_push(struct world *w, struct controller_event *e)
{
    for (GList *l = w->events.head; l; l = l->next) {
        struct queued *q = l->data;
        if (q->broker == 0 && controller_event_merge(q->event, e)) {
            return;
        }
    }
    struct queued *q = g_new(struct queued, 1);
    *q = (struct queued){e, 0};
    g_queue_push_tail(&w->events, q);
}

static void feed(void *ctx, struct commit *commit)
{
    struct world *w = ctx;
    mirror_apply(w->mirror, commit);
    for (size_t i = 0; i < commit->n_changes; i++) {
        struct controller_event *e = controller_event_of_change(&commit->changes[i]);
        if (e) {
            world_push(w, e);
        }
    }
}

static void start_candidate(struct world *w, struct scripted_broker *b);

/* One event for one candidate; if it dies meanwhile, another takes its place. */
static void give_event(struct world *w, struct scripted_broker *b, struct controller_event *e)
{
    struct controller *c = b->candidate;
    struct scripted_broker *outer = w->running;
    w->running = b;
    controller_handle(c, e);
    w->running = outer;
    if (!b->candidate) {
        w->fault = FAULT_NONE;
        controller_free(c);
        for (GList *l = w->events.head; l;) { /* its own queue dies with it */
            GList *next = l->next;
            struct queued *q = l->data;
            if (q->broker == b->id) {
                controller_event_free(q->event);
                g_free(q);
                g_queue_delete_link(&w->events, l);
            }
            l = next;
        }
        world_kill(w, b->id);
        world_start(w, b->id);
    }
}

static void handle_queued(struct world *w, struct queued *q)
{
    if (q->broker) {
        struct scripted_broker *b = &w->broker[q->broker];
        if (b->candidate) {
            give_event(w, b, g_steal_pointer(&q->event));
        }
        controller_event_free(q->event);
        return;
    }
    for (int i = 1; i <= MAX_BROKERS; i++) {
        struct scripted_broker *b = &w->broker[i];
        if (!b->candidate) {
            continue;
        }
        struct controller_event *copy = controller_event_new(q->event->type);
        copy->names = q->event->names ? g_hash_table_ref(q->event->names) : NULL;
        give_event(w, b, copy);
    }
    controller_event_free(q->event);
}

/* ---- scripted brokers ---- */

static void free_hosted(gpointer arg)
{
    struct hosted *h = arg;
    broker_ids_unref(h->isr);
    broker_ids_unref(h->replicas);
    g_free(h);
}

static char *replica_name(const struct topic_ref *topic, int32_t partition)
{
    return g_strdup_printf("%s-%d", topic->name, partition);
}

static enum kafka_error lead_or_follow(struct scripted_broker *b, const struct partition_state *s)
{
    char *name = replica_name(s->topic, s->partition);
    if (g_hash_table_contains(b->broken, name)) {
        g_free(name);
        return KERR_KAFKA_STORAGE_ERROR;
    }
    struct hosted *h = g_hash_table_lookup(b->replicas, name);
    if (h && strcmp(h->topic_id, s->topic->id) == 0 && !h->stopped && s->leader_epoch <= h->leader_epoch) {
        g_free(name);
        return KERR_STALE_CONTROLLER_EPOCH;
    }
    h = g_new0(struct hosted, 1);
    *h = (struct hosted){.leader = s->leader,
            .leader_epoch = s->leader_epoch,
            .partition_epoch = s->partition_epoch,
            .isr = broker_ids_ref(s->isr),
            .replicas = broker_ids_ref(s->replicas)};
    g_strlcpy(h->topic_id, s->topic->id, sizeof(h->topic_id));
    g_hash_table_replace(b->replicas, name, h);
    return KERR_NONE;
}

static enum kafka_error stop_replica(struct scripted_broker *b, const struct stop_replica_state *s)
{
    g_autofree char *name = replica_name(s->topic, s->partition);
    struct hosted *h = g_hash_table_lookup(b->replicas, name);
    if (g_hash_table_contains(b->broken, name) ||
            (s->delete_partition && g_hash_table_contains(b->undeletable, name))) {
        return KERR_KAFKA_STORAGE_ERROR;
    }
    if (h && !h->stopped && s->leader_epoch >= 0 && s->leader_epoch < h->leader_epoch) {
        return KERR_FENCED_LEADER_EPOCH;
    }
    if (h) {
        h->stopped = true;
    }
    if (s->delete_partition) {
        g_hash_table_remove(b->replicas, name);
    }
    return KERR_NONE;
}

static void update_metadata(struct scripted_broker *b, const struct partition_state *s)
{
    char *name = replica_name(s->topic, s->partition);
    if (s->leader == LEADER_DURING_DELETE) {
        g_hash_table_remove(b->metadata, name);
        g_free(name);
    } else {
        g_hash_table_replace(b->metadata, name, GINT_TO_POINTER(s->leader));
    }
}

static void handle_request(struct world *w, struct sent *sent)
{
    struct scripted_broker *b = &w->broker[sent->broker];
    struct control_request *r = sent->request;
    if (!b->running || sent->epoch != b->epoch || b->silent) {
        return;
    }
    struct control_response *response = control_response_new(KERR_NONE);
    if (r->full) {
        g_hash_table_remove_all(b->metadata);
    }
    for (guint i = 0; i < r->partition_states->len; i++) {
        if (r->api == API_UPDATE_METADATA) {
            update_metadata(b, r->partition_states->pdata[i]);
        } else {
            enum kafka_error e = lead_or_follow(b, r->partition_states->pdata[i]);
            g_array_append_val(response->partition_errors, e);
        }
    }
    for (guint i = 0; i < r->stop_states->len; i++) {
        enum kafka_error e = stop_replica(b, &g_array_index(r->stop_states, struct stop_replica_state, i));
        g_array_append_val(response->partition_errors, e);
    }
    struct queued *q = g_new(struct queued, 1);
    *q = (struct queued){controller_event_new(EVENT_CONTROL_RESPONSE), sent->controller};
    q->event->broker_id = b->id;
    q->event->broker_epoch = b->epoch;
    q->event->request = control_request_ref(r);
    q->event->response = response;
    g_queue_push_tail(&w->events, q);
}

static int32_t active_id(struct world *w)
{
    const struct controller *active = world_active(w);
    for (int i = 1; i <= MAX_BROKERS; i++) {
        if (active && w->broker[i].candidate == active) {
            return i;
        }
    }
    return 0;
}

/* ---- in-sync sets, as leaders of 2.7 and later keep them ---- */

static bool follows(struct world *w, int32_t broker, const char *name, const struct hosted *leader)
{
    const struct scripted_broker *b = broker <= MAX_BROKERS ? &w->broker[broker] : &w->broker[0];
    const struct hosted *h = b->running ? g_hash_table_lookup(b->replicas, name) : NULL;
    return h && !h->stopped && h->leader == leader->leader && !g_hash_table_contains(b->broken, name) &&
           strcmp(h->topic_id, leader->topic_id) == 0;
}

static struct broker_ids *grown_isr(struct world *w, const char *name, const struct hosted *h)
{
    int32_t ids[2 * MAX_BROKERS];
    size_t n = 0;
    for (uint32_t i = 0; i < h->isr->n; i++) {
        ids[n++] = h->isr->id[i];
    }
    for (uint32_t i = 0; i < h->replicas->n; i++) {
        if (!broker_ids_contain(h->isr, h->replicas->id[i]) && follows(w, h->replicas->id[i], name, h)) {
            ids[n++] = h->replicas->id[i];
        }
    }
    return broker_ids_new(ids, n);
}

static struct broker_request *proposal(
        struct scripted_broker *b, const char *name, const struct hosted *h, struct broker_ids *isr)
{
    struct broker_request *r = g_new0(struct broker_request, 1);
    const char *dash = strrchr(name, '-');
    g_autofree char *topic = g_strndup(name, (gsize)(dash - name));
    r->api = API_ALTER_PARTITION;
    r->broker_id = b->id;
    r->broker_epoch = b->epoch;
    r->partitions = g_new0(struct alter_partition, 1);
    r->n_partitions = 1;
    r->partitions[0] = (struct alter_partition){.topic = topic_ref_new(topic, h->topic_id),
            .partition = atoi(dash + 1),
            .leader_epoch = h->leader_epoch,
            .partition_epoch = h->partition_epoch,
            .new_isr = isr};
    return r;
}

/* Returns whether somebody had something to propose. */
static bool propose(struct world *w)
{
    for (int i = 1; world_active(w) && i <= MAX_BROKERS; i++) {
        struct scripted_broker *b = &w->broker[i];
        g_autoptr(GList) names =
                b->running ? g_list_sort(g_hash_table_get_keys(b->replicas), (GCompareFunc)strcmp) : NULL;
        for (GList *l = names; l; l = l->next) {
            struct hosted *h = g_hash_table_lookup(b->replicas, l->data);
            struct broker_ids *isr = h->leader == b->id && !h->stopped ? grown_isr(w, l->data, h) : NULL;
            if (!isr || isr->n == h->isr->n) {
                broker_ids_unref(isr);
                continue;
            }
            struct controller_event *e = controller_event_new(EVENT_BROKER_REQUEST);
            e->broker_request = proposal(b, l->data, h, isr);
            world_tell(w, e);
            return true;
        }
    }
    return false;
}

static void take_answer(struct world *w, struct broker_request *r)
{
    struct scripted_broker *b = &w->broker[r->broker_id];
    if (r == w->awaited) {
        return; /* world_request() takes it */
    }
    if (r->api == API_ALTER_PARTITION && b->running && b->epoch == r->broker_epoch) {
        const struct alter_partition *a = &r->partitions[0];
        g_autofree char *name = replica_name(a->topic, a->partition);
        struct hosted *h = g_hash_table_lookup(b->replicas, name);
        if (h && r->error == KERR_NONE && a->error == KERR_NONE && h->leader_epoch == a->result_leader_epoch) {
            broker_ids_unref(h->isr);
            h->isr = broker_ids_ref(a->result_isr);
            h->partition_epoch = a->result_partition_epoch;
        } else if (h && h->leader_epoch == a->leader_epoch) {
            h->leader = LEADER_NONE; /* refused: the next LeaderAndIsr tells */
            h->stopped = true;
        }
    }
    broker_request_free(r);
}

/* ---- life ---- */

static int64_t wall_clock(void *ctx)
{
    return ((struct world *)ctx)->now_ms;
}

static void store_failed(void *ctx, const char *why)
{
    g_error("store: %s", why);
}

static void load_node(void *arg, const char *path, struct bytes *data, const struct zstat *stat)
{
    mirror_load(arg, path, data, stat);
}

static bool never_directory(void *arg, const char *path)
{
    return false;
}

static struct txn *new_txn(void)
{
    struct txn *txn = txn_new(TXN_CLIENT);
    txn->done = txn_is_done;
    return txn;
}

int world_run(struct world *w, struct txn *txn)
{
    txn->done = txn_is_done;
    store_submit(w->store, txn);
    store_step(w->store);
    int rc = txn->rc;
    txn_free(txn);
    return rc;
}

static void make_roots(struct world *w)
{
    static const char *const roots[] = {"/admin", "/admin/delete_topics", "/brokers", "/brokers/ids", "/brokers/topics",
            "/brokers/seqid", "/config", "/config/topics", "/config/brokers", "/config/changes",
            "/isr_change_notification", "/latest_producer_id_block", "/log_dir_event_notification"};
    for (size_t i = 0; i < G_N_ELEMENTS(roots); i++) {
        struct txn *txn = new_txn();
        txn_create(txn, roots[i], NULL, 0);
        g_assert_cmpint(world_run(w, txn), ==, ZOK);
    }
}

struct world *world_new(int brokers, const char *properties)
{
    struct world *w = g_new0(struct world, 1);
    struct store_config config = {.now_ms = wall_clock, .feed = feed, .failed = store_failed, .ctx = w};
    w->now_ms = 1700000000000;
    w->random = 1;
    w->event_log = g_string_new(NULL);
    w->error_log = g_string_new(NULL);
    w->request_log = g_string_new(NULL);
    w->write_log = g_string_new(NULL);
    w->mirror = mirror_new(never_directory, NULL);
    char *why = NULL;
    g_assert_cmpint(store_open_memory(&config, &w->store), ==, 0);
    g_assert_cmpint(store_load(w->store, load_node, w->mirror, &why), ==, 0);
    make_roots(w);
    for (int i = 1; i <= brokers; i++) {
        struct scripted_broker *b = &w->broker[i];
        g_autofree char *text =
                g_strdup_printf("broker.id=%d\nlog.dirs=/nowhere/%d\n%s\n", i, i, properties ? properties : "");
        b->id = i;
        b->world = w;
        g_assert_cmpint(broker_config_parse("server.properties", text, strlen(text), &b->config, &why), ==, 0);
        b->replicas = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_hosted);
        b->metadata = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        b->broken = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        b->undeletable = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        b->timer_ms = -1;
    }
    return w;
}

static void start_candidate(struct world *w, struct scripted_broker *b)
{
    struct controller_env env = {
            .ctx = b,
            .get = env_get,
            .children = env_children,
            .run = env_run,
            .send = env_send,
            .channel_open = env_channel,
            .channel_close = env_channel,
            .respond = env_respond,
            .now_ms = env_now_ms,
            .monotonic_us = env_monotonic_us,
            .random = env_random,
            .timer = env_timer,
            .event = env_event,
            .error = env_error,
    };
    b->candidate = controller_new(b->id, b->config, &env);
    post(b, controller_event_new(EVENT_STARTUP));
}

static bool is_assigned(struct world *w, const char *name, int32_t broker)
{
    const char *dash = strrchr(name, '-');
    g_autofree char *topic = g_strndup(name, (gsize)(dash - name));
    g_autofree char *path = g_strconcat("/brokers/topics/", topic, NULL);
    struct bytes *data = NULL;
    struct topic_assignment *a = NULL;
    bool assigned = false;
    if (mirror_get(w->mirror, path, &data, NULL) == ZOK && topic_assignment_decode(data, &a, NULL)) {
        const struct partition_assignment *p = topic_assignment_find(a, atoi(dash + 1));
        assigned = p && broker_ids_contain(p->replicas, broker);
    }
    bytes_unref(data);
    topic_assignment_free(a);
    return assigned;
}

/* A broker that starts sets aside what the tree does not assign to it. */
static void set_aside_strays(struct world *w, struct scripted_broker *b)
{
    GHashTableIter it;
    gpointer name;
    g_hash_table_iter_init(&it, b->replicas);
    while (g_hash_table_iter_next(&it, &name, NULL)) {
        if (!is_assigned(w, name, b->id)) {
            g_hash_table_iter_remove(&it);
        }
    }
}

void world_start(struct world *w, int32_t broker)
{
    struct scripted_broker *b = &w->broker[broker];
    if (b->running) {
        return;
    }
    b->running = true;
    set_aside_strays(w, b);
    b->session = store_session_open(w->store);
    struct broker_endpoint endpoint = {(char *)(uintptr_t) "PLAINTEXT", (char *)(uintptr_t) "localhost",
            (char *)(uintptr_t) "PLAINTEXT", 9090 + broker};
    struct broker_registration registration = {.endpoints = &endpoint, .n_endpoints = 1, .jmx_port = -1, .version = 5};
    g_autofree char *path = g_strdup_printf("/brokers/ids/%d", broker);
    struct txn *txn = new_txn();
    txn->session = b->session;
    txn_create(txn, path, NULL, CREATE_EPHEMERAL);
    txn_set(txn, path, broker_registration_encode(&registration), 0);
    store_submit(w->store, txn);
    store_step(w->store);
    g_assert_cmpint(txn->rc, ==, ZOK);
    b->epoch = txn->ops[1].stat.czxid;
    txn_free(txn);
    start_candidate(w, b);
}

void world_start_all(struct world *w)
{
    for (int i = 1; i <= MAX_BROKERS; i++) {
        if (w->broker[i].id) {
            world_start(w, i);
        }
    }
    world_settle(w);
}

void world_kill(struct world *w, int32_t broker)
{
    struct scripted_broker *b = &w->broker[broker];
    if (!b->running) {
        return;
    }
    b->running = false;
    store_session_close(w->store, b->session, 0, NULL, NULL);
    store_step(w->store);
    g_clear_pointer(&b->candidate, controller_free);
    g_hash_table_remove_all(b->metadata);
    GHashTableIter it;
    gpointer h;
    g_hash_table_iter_init(&it, b->replicas);
    while (g_hash_table_iter_next(&it, NULL, &h)) { /* what it knew; the directories stay */
        ((struct hosted *)h)->stopped = true;
    }
}

void world_stop(struct world *w, int32_t broker)
{
    struct scripted_broker *b = &w->broker[broker];
    struct broker_request *r = g_new0(struct broker_request, 1);
    r->api = API_CONTROLLED_SHUTDOWN;
    r->broker_id = broker;
    r->broker_epoch = b->epoch;
    world_request(w, r, NULL);
    world_kill(w, broker);
}

static void free_sent(struct sent *s)
{
    control_request_unref(s->request);
    g_free(s);
}

bool world_step(struct world *w)
{
    struct sent *s = g_queue_pop_head(&w->requests);
    struct queued *q = s ? NULL : g_queue_pop_head(&w->events);
    if (s) {
        handle_request(w, s);
        free_sent(s);
    } else if (q) {
        handle_queued(w, q);
        g_free(q);
    }
    return s || q;
}

void world_drop_requests(struct world *w)
{
    for (struct sent *s; (s = g_queue_pop_head(&w->requests));) {
        free_sent(s);
    }
}

void world_settle(struct world *w)
{
    for (int i = 0; i < 100000; i++) {
        if (!world_step(w) && !propose(w)) {
            return;
        }
    }
    g_error("the cluster does not come to rest");
}

void world_tell(struct world *w, struct controller_event *e)
{
    struct queued *q = g_new(struct queued, 1);
    *q = (struct queued){e, active_id(w)};
    g_queue_push_tail(&w->events, q);
}

enum kafka_error world_request(struct world *w, struct broker_request *r, struct alter_partition *ret)
{
    struct controller_event *e = controller_event_new(EVENT_BROKER_REQUEST);
    e->broker_request = r;
    w->awaited = r;
    world_tell(w, e);
    world_settle(w);
    w->awaited = NULL;
    enum kafka_error error = r->error;
    if (ret && r->n_partitions) {
        *ret = r->partitions[0];
        ret->topic = NULL;
        ret->new_isr = ret->result_isr = NULL;
        ret->new_isr_epochs = NULL;
    }
    broker_request_free(r);
    return error;
}

void world_fire_timer(struct world *w)
{
    for (int i = 1; i <= MAX_BROKERS; i++) {
        struct scripted_broker *b = &w->broker[i];
        if (b->candidate && b->timer_ms >= 0) {
            b->timer_ms = -1;
            post(b, controller_event_new(EVENT_TIMER));
        }
    }
    world_settle(w);
}

void world_arm(struct world *w, enum fault fault, uint64_t call, int rc)
{
    w->fault = fault;
    w->fault_call = call;
    w->fault_rc = rc;
    w->calls = 0;
}

struct controller *world_active(struct world *w)
{
    for (int i = 1; i <= MAX_BROKERS; i++) {
        if (w->broker[i].candidate && controller_is_active(w->broker[i].candidate)) {
            return w->broker[i].candidate;
        }
    }
    return NULL;
}

void world_free(struct world *w)
{
    world_arm(w, FAULT_NONE, 0, 0);
    w->before_run = NULL;
    for (int i = 1; i <= MAX_BROKERS; i++) {
        struct scripted_broker *b = &w->broker[i];
        if (b->id) {
            world_kill(w, i);
            broker_config_free(b->config);
            g_hash_table_unref(b->replicas);
            g_hash_table_unref(b->metadata);
            g_hash_table_unref(b->broken);
            g_hash_table_unref(b->undeletable);
        }
    }
    for (struct queued *q; (q = g_queue_pop_head(&w->events)); g_free(q)) {
        controller_event_free(q->event);
    }
    world_drop_requests(w);
    store_close(w->store);
    mirror_free(w->mirror);
    g_string_free(w->event_log, TRUE);
    g_string_free(w->error_log, TRUE);
    g_string_free(w->request_log, TRUE);
    g_string_free(w->write_log, TRUE);
    g_free(w);
}

/* ---- a client ---- */

int world_create(struct world *w, const char *path, const char *data)
{
    struct txn *txn = new_txn();
    txn_create(txn, path, data ? bytes_from_string(data) : NULL, 0);
    return world_run(w, txn);
}

int world_set(struct world *w, const char *path, const char *data)
{
    struct txn *txn = new_txn();
    txn_set(txn, path, data ? bytes_from_string(data) : NULL, -1);
    return world_run(w, txn);
}

int world_delete(struct world *w, const char *path)
{
    struct txn *txn = new_txn();
    txn_delete(txn, path, -1);
    return world_run(w, txn);
}

void world_delete_tree(struct world *w, const char *path)
{
    g_autoptr(GPtrArray) children = mirror_children(w->mirror, path);
    for (guint i = 0; children && i < children->len; i++) {
        g_autofree char *child = path_join(path, children->pdata[i]);
        world_delete_tree(w, child);
    }
    world_delete(w, path);
}

bool world_exists(struct world *w, const char *path)
{
    return mirror_exists(w->mirror, path);
}

char *world_get(struct world *w, const char *path)
{
    struct bytes *data = NULL;
    if (mirror_get(w->mirror, path, &data, NULL) != ZOK) {
        return NULL;
    }
    char *text = data ? g_strndup(data->data, data->len) : g_strdup("");
    bytes_unref(data);
    return text;
}

void world_topic(struct world *w, const char *topic, const char *partitions)
{
    g_autofree char *path = g_strconcat("/brokers/topics/", topic, NULL);
    g_autofree char *data = g_strdup_printf("{\"version\":1,\"partitions\":%s}", partitions);
    world_create(w, path, data);
}

void world_mark(struct world *w, const char *topic)
{
    g_autofree char *path = g_strconcat("/admin/delete_topics/", topic, NULL);
    world_create(w, path, NULL);
}

/* ---- what is there ---- */

char *world_state(struct world *w, const char *topic, int partition)
{
    g_autofree char *path = g_strdup_printf("/brokers/topics/%s/partitions/%d/state", topic, partition);
    struct bytes *data = NULL;
    struct leader_and_isr l;
    if (mirror_get(w->mirror, path, &data, NULL) != ZOK) {
        return g_strdup("none");
    }
    bool good = leader_and_isr_decode(data, &l, NULL);
    bytes_unref(data);
    if (!good) {
        return g_strdup("bad");
    }
    GString *s = g_string_new(NULL);
    g_string_append_printf(s, "leader %d epoch %d isr ", l.leader, l.leader_epoch);
    for (uint32_t i = 0; i < l.isr->n; i++) {
        g_string_append_printf(s, "%s%d", i ? "," : "", l.isr->id[i]);
    }
    leader_and_isr_clear(&l);
    return g_string_free(s, FALSE);
}

char *world_dirs(struct world *w)
{
    GString *s = g_string_new(NULL);
    for (int i = 1; i <= MAX_BROKERS; i++) {
        g_autoptr(GList) names =
                w->broker[i].id ? g_list_sort(g_hash_table_get_keys(w->broker[i].replicas), (GCompareFunc)strcmp)
                                : NULL;
        if (names) {
            g_string_append_printf(s, "%s%d:", s->len ? "; " : "", i);
        }
        for (GList *l = names; l; l = l->next) {
            g_string_append_printf(s, " %s", (char *)l->data);
        }
    }
    return g_string_free(s, FALSE);
}

struct state_question {
    char *answer;
};

void state_answer_error(struct state_question *q, int err)
{
    q->answer = g_strdup(g_strerror(err));
}

void state_answer_kind(struct state_question *q, enum state_kind kind)
{
    q->answer = g_strdup(kind == STATE_DIRECTORY ? "directory" : "file");
}

void state_answer_bytes(struct state_question *q, const void *data, size_t len)
{
    q->answer = g_strndup(data, len);
}

void state_answer_list(struct state_question *q, const struct state_entry *entries, size_t n)
{
    GString *s = g_string_new(NULL);
    for (size_t i = 0; i < n; i++) {
        g_string_append_printf(s, "%s%s", i ? " " : "", entries[i].name);
    }
    q->answer = g_string_free(s, FALSE);
}

char *world_ask(struct world *w, const char *path)
{
    struct state_question kind = {0}, q = {0};
    controller_state_ask(world_active(w), STATE_LOOKUP, path, &kind);
    bool directory = strcmp(kind.answer, "directory") == 0, file = strcmp(kind.answer, "file") == 0;
    if (!directory && !file) {
        return kind.answer;
    }
    g_free(kind.answer);
    controller_state_ask(world_active(w), directory ? STATE_LIST : STATE_READ, path, &q);
    return q.answer;
}

static void append_tree(struct world *w, const char *path, GString *out)
{
    g_autofree char *data = world_get(w, path);
    g_autoptr(GPtrArray) children = mirror_children(w->mirror, path);
    if (strcmp(path, "/controller") == 0 || strcmp(path, "/controller_epoch") == 0 ||
            strcmp(path, "/brokers/ids") == 0) {
        return;
    }
    g_string_append_printf(out, "%s %s\n", path, data);
    g_autoptr(GHashTable) set = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < children->len; i++) {
        g_hash_table_add(set, children->pdata[i]);
    }
    g_autoptr(GList) names = g_list_sort(g_hash_table_get_keys(set), (GCompareFunc)strcmp);
    for (GList *l = names; l; l = l->next) {
        g_autofree char *child = path_join(path, l->data);
        append_tree(w, child, out);
    }
}

char *world_tree(struct world *w)
{
    GString *out = g_string_new(NULL);
    append_tree(w, "/", out);
    g_autoptr(GRegex) id = g_regex_new("\"topic_id\":\"[^\"]*\"", 0, 0, NULL);
    g_autoptr(GRegex) epochs = g_regex_new("\"(controller_epoch|leader_epoch)\":-?[0-9]+", 0, 0, NULL);
    g_autofree char *text = g_string_free(out, FALSE);
    g_autofree char *no_ids = g_regex_replace(id, text, -1, 0, "\"topic_id\":\"*\"", 0, NULL);
    return g_regex_replace(epochs, no_ids, -1, 0, "\"\\1\":*", 0, NULL);
}

/* ---- expectations ---- */

void expect_state(struct world *w, const char *topic, int partition, const char *want)
{
    g_autofree char *got = world_state(w, topic, partition);
    assert_string_equal(got, want);
}

void expect_asked(struct world *w, const char *path, const char *want)
{
    g_autofree char *got = world_ask(w, path);
    assert_string_equal(got, want);
}

void expect_dirs(struct world *w, const char *want)
{
    g_autofree char *got = world_dirs(w);
    assert_string_equal(got, want);
}

void expect_said(const GString *log, const char *text)
{
    if (!strstr(log->str, text)) {
        fail_msg("no \"%s\" in:\n%s", text, log->str);
    }
}

void expect_not_said(const GString *log, const char *text)
{
    if (strstr(log->str, text)) {
        fail_msg("\"%s\" in:\n%s", text, log->str);
    }
}

void expect_gone(struct world *w, const char *topic)
{
    g_autofree char *t = g_strconcat("/brokers/topics/", topic, NULL);
    g_autofree char *c = g_strconcat("/config/topics/", topic, NULL);
    g_autofree char *m = g_strconcat("/admin/delete_topics/", topic, NULL);
    assert_false(world_exists(w, t));
    assert_false(world_exists(w, c));
    assert_false(world_exists(w, m));
}

void expect_data(struct world *w, const char *path, const char *pattern)
{
    g_autofree char *got = world_get(w, path);
    if (!got || !g_regex_match_simple(pattern, got, 0, 0)) {
        fail_msg("%s is %s, not %s", path, got ? got : "absent", pattern);
    }
}

struct world *world_of_three(const char *properties)
{
    struct world *w = world_new(3, properties);
    world_start_all(w);
    return w;
}
