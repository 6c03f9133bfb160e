/* The small cluster's life: brokers that start and die, events and requests handled one by one, in a fixed order. */
#include "tests/unit/controller_world.h"

#include <string.h>
#include "controller/json/codec.h"

/* ---- transactions ---- */

void world_txn_done(struct txn *txn, void *arg)
{
}

struct txn *world_txn(void)
{
    struct txn *txn = txn_new(TXN_CLIENT);
    txn->done = world_txn_done;
    return txn;
}

int world_run(struct world *w, struct txn *txn)
{
    txn->done = world_txn_done;
    store_submit(w->store, txn);
    store_step(w->store);
    int rc = txn->rc;
    txn_free(txn);
    return rc;
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

static void make_roots(struct world *w)
{
    static const char *const roots[] = {"/admin", "/admin/delete_topics", "/brokers", "/brokers/ids", "/brokers/topics",
            "/brokers/seqid", "/config", "/config/topics", "/config/brokers", "/config/changes",
            "/isr_change_notification", "/latest_producer_id_block", "/log_dir_event_notification"};
    for (size_t i = 0; i < G_N_ELEMENTS(roots); i++) {
        struct txn *txn = world_txn();
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
        broker_init(b);
        b->timer_ms = -1;
    }
    return w;
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
    struct txn *txn = world_txn();
    txn->session = b->session;
    txn_create(txn, path, NULL, CREATE_EPHEMERAL);
    txn_set(txn, path, broker_registration_encode(&registration), 0);
    store_submit(w->store, txn);
    store_step(w->store);
    g_assert_cmpint(txn->rc, ==, ZOK);
    b->epoch = txn->ops[1].stat.czxid;
    txn_free(txn);
    candidate_start(b);
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
        broker_handle(w, s);
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
        if (!world_step(w) && !brokers_propose(w)) {
            return;
        }
    }
    g_error("the cluster does not come to rest");
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
            candidate_post(b, controller_event_new(EVENT_TIMER));
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
