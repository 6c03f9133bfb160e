/* One broker: what comes in, in order. The rules of each request are in files of their own. */
#include "controller/broker/broker_core.h"
#include "controller/json/codec.h"

#define RETRY_BACKOFF_MS 50
#define RETRY_BACKOFF_MAX_MS 3200 /* a store that takes no writes any more is not asked all the time */

static void pending_free(struct pending_request *p)
{
    control_request_unref(p->request);
    g_free(p);
}

static void work_free(struct broker *b, struct request_work *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < b->rm.n_dirs * DISK_WORKS; i++)
        disk_batch_free(w->building[i]);
    g_free(w->building);
    g_array_unref(w->items);
    control_response_free(w->response);
    if (w->cause)
        pending_free(w->cause);
    g_free(w);
}

/* A broker that starts begins with the controller epoch of the tree: in Kafka it takes requests of any controller until
 * one of a later one has reached it, also of one that was deposed long ago. 0: the tree says nothing. */
static int32_t epoch_in_tree(const struct broker *b)
{
    struct bytes *data = NULL;
    int32_t epoch = 0;

    if (b->env->get(b->env->ctx, "/controller_epoch", &data, NULL) != ZOK || !data ||
            !controller_epoch_decode(data, &epoch, NULL))
        epoch = 0;
    bytes_unref(data);
    return epoch;
}

struct broker *broker_new(int32_t id, int64_t epoch, const struct broker_config *config, char *const *dirs,
        size_t n_dirs, const struct broker_env *env)
{
    struct broker *b = g_new0(struct broker, 1);

    b->id = id;
    b->epoch = epoch;
    b->config = config;
    b->dirs = dirs;
    b->env = env;
    b->controller_id = -1;
    b->controller_epoch = epoch_in_tree(b);
    replica_manager_init(&b->rm, n_dirs);
    b->leftovers = g_array_new(FALSE, FALSE, sizeof(struct leftover));
    b->metadata = metadata_cache_new();
    g_queue_init(&b->requests);
    g_queue_init(&b->notes.refused);
    isr_init(b);
    b->fetches = fetch_list_new();
    return b;
}

void broker_free(struct broker *b)
{
    struct pending_request *p;

    if (!b)
        return;
    while ((p = g_queue_pop_head(&b->requests))) {
        b->env->release(b->env->ctx, p->gen);
        pending_free(p);
    }
    if (b->work && b->work->cause)
        b->env->release(b->env->ctx, b->work->gen);
    work_free(b, b->work);
    isr_clear(b);
    notes_clear(b);
    fetch_list_free(b->fetches);
    g_array_unref(b->leftovers);
    metadata_cache_free(b->metadata);
    replica_manager_clear(&b->rm);
    g_free(b);
}

int broker_backoff_ms(int last_ms)
{
    return last_ms ? MIN(2 * last_ms, RETRY_BACKOFF_MAX_MS) : RETRY_BACKOFF_MS;
}

char *broker_log_name(const struct replica *r)
{
    return g_strdup_printf("%s-%d", r->topic->name, r->partition);
}

bool broker_topic_ids_differ(const char *a, const char *b)
{
    return *a && *b && strcmp(a, b) != 0;
}

void broker_clear_role(struct broker *b, struct replica *r, enum replica_role role)
{
    isr_drop(b, r);
    fetch_set_out_of_sync(b, r, false);
    r->role = role;
}

void broker_forget_replica(struct broker *b, struct replica *r)
{
    struct topic_ref *topic = topic_ref_ref(r->topic);

    broker_clear_role(b, r, REPLICA_NONE);
    if (replica_manager_remove(&b->rm, r))
        b->env->topic_removed(b->env->ctx, topic->name);
    topic_ref_unref(topic);
}

/* ---- the request in work ---- */

struct request_work *broker_work_new(struct broker *b, struct pending_request *cause, gen_t gen)
{
    struct request_work *w = g_new0(struct request_work, 1);

    w->cause = cause;
    w->gen = gen;
    w->items = g_array_new(FALSE, TRUE, sizeof(struct work_item));
    w->building = g_new0(struct disk_batch *, b->rm.n_dirs * DISK_WORKS);
    w->response = control_response_new(KERR_NONE);
    return w;
}

struct work_item *broker_work_add(struct request_work *w, uint32_t index, struct replica *r, enum item_action action)
{
    struct work_item item = {.index = index, .replica = r, .action = action};

    g_array_append_val(w->items, item);
    return &g_array_index(w->items, struct work_item, w->items->len - 1);
}

struct log_task *broker_work_task(struct request_work *w, enum disk_work work, int dir, guint item)
{
    struct replica *r = g_array_index(w->items, struct work_item, item).replica;

    struct disk_batch **batch = &w->building[dir * DISK_WORKS + (int)work];
    if (!*batch)
        *batch = disk_batch_new(work, dir);
    struct log_task *t = disk_batch_add(*batch, r->topic, r->partition);
    t->index = item;
    return t;
}

void broker_set_error(struct request_work *w, uint32_t index, enum kafka_error error)
{
    g_array_index(w->response->partition_errors, enum kafka_error, index) = error;
}

void broker_submit_work(struct broker *b, struct request_work *w)
{
    for (size_t i = 0; i < b->rm.n_dirs * DISK_WORKS; i++) {
        struct disk_batch *batch = w->building[i];
        if (!batch)
            continue;
        w->building[i] = NULL;
        w->batches++;
        b->env->disk(b->env->ctx, batch, w->gen);
    }
}

static void respond(struct broker *b, struct pending_request *p, struct control_response *response)
{
    b->env->respond(b->env->ctx, p->controller_id, p->broker_epoch, control_request_ref(p->request), response, p->gen);
}

/* All disk work of the request is done. */
static void finish_work(struct broker *b)
{
    struct request_work *w = b->work;

    b->work = NULL;
    w->finish(b, w);
    if (w->cause) {
        respond(b, w->cause, w->response);
        w->response = NULL;
    } else {
        b->loaded = true;
    }
    isr_flush(b, w->gen);
    fetch_flush(b, w->gen);
    if (w->cause) /* only now: all that follows is held elsewhere */
        b->env->release(b->env->ctx, w->gen);
    work_free(b, w);
}

/* ---- fencing (KafkaApis, ReplicaManager) ---- */

/* KERR_NONE, or why the whole request is refused. Accepting it makes its controller the one that is known. */
static enum kafka_error accept_request(struct broker *b, const struct pending_request *p)
{
    if (p->broker_epoch != -1 && p->broker_epoch < b->epoch)
        return KERR_STALE_BROKER_EPOCH;
    if (p->request->controller_epoch < b->controller_epoch)
        return KERR_STALE_CONTROLLER_EPOCH;
    b->controller_epoch = p->request->controller_epoch;
    b->controller_id = p->request->controller_id;
    return KERR_NONE;
}

static void start_request(struct broker *b, struct pending_request *p)
{
    enum kafka_error error = accept_request(b, p);
    guint n = p->request->api == API_LEADER_AND_ISR ? p->request->partition_states->len
              : p->request->api == API_STOP_REPLICA ? p->request->stop_states->len
                                                    : 0;

    if (error != KERR_NONE) {
        b->env->event(b->env->ctx, "broker %d refused a request of controller %d: %s", b->id, p->controller_id,
                kafka_error_name(error));
        respond(b, p, control_response_new(error));
        b->env->release(b->env->ctx, p->gen);
        pending_free(p);
        return;
    }
    isr_controller_heard(b, p->gen);
    b->work = broker_work_new(b, p, p->gen);
    g_array_set_size(b->work->response->partition_errors, n);
    for (guint i = 0; i < n; i++)
        broker_set_error(b->work, i, KERR_NONE);
    switch (p->request->api) {
    case API_LEADER_AND_ISR:
        leader_and_isr_start(b, b->work);
        break;
    case API_STOP_REPLICA:
        stop_replica_start(b, b->work);
        break;
    case API_UPDATE_METADATA:
        b->work->finish = update_metadata_apply;
        break;
    }
    broker_submit_work(b, b->work);
}

void broker_run_requests(struct broker *b)
{
    while (!b->halted) {
        if (b->work && b->work->batches > 0)
            return;
        if (b->work)
            finish_work(b);
        else if (b->loaded && !g_queue_is_empty(&b->requests))
            start_request(b, g_queue_pop_head(&b->requests));
        else
            return;
    }
}

/* A StopReplica under which the last log dir fails is answered before the end, with what is gone and what is not: the
 * failure's handler waits for ReplicaManager.stopReplicas, whose lock it needs. */
static bool is_answered_at_end(const struct request_work *w)
{
    return w->cause && w->cause->request->api == API_STOP_REPLICA;
}

/* ---- inputs ---- */

void broker_control_request(
        struct broker *b, int32_t controller_id, int64_t epoch, struct control_request *request, gen_t gen)
{
    struct pending_request *p = g_new0(struct pending_request, 1);

    p->controller_id = controller_id;
    p->broker_epoch = epoch;
    p->request = control_request_ref(request);
    p->gen = gen;
    b->env->hold(b->env->ctx, gen);
    g_queue_push_tail(&b->requests, p);
    broker_run_requests(b);
}

void broker_disk_done(struct broker *b, struct disk_batch *batch, gen_t gen)
{
    struct request_work *w = b->work;

    w->batches--;
    if (batch->failed)
        broker_dir_failed(b, batch->dir, batch->failed, gen);
    for (guint i = 0; i < batch->tasks->len && (!b->halted || is_answered_at_end(w)); i++) {
        const struct log_task *t = &g_array_index(batch->tasks, struct log_task, i);
        w->task_done(b, w, &g_array_index(w->items, struct work_item, t->index), t, batch);
    }
    disk_batch_free(batch);
    if (b->halted && w->batches == 0 && is_answered_at_end(w)) {
        respond(b, w->cause, w->response);
        w->response = NULL;
    }
    if (b->halted)
        return;
    broker_submit_work(b, w);
    broker_run_requests(b);
}

void broker_answered(struct broker *b, struct broker_request *request, gen_t gen)
{
    if (request == b->shutdown.in_flight)
        controlled_shutdown_answered(b, request, gen);
    else if (request->api == API_ALTER_PARTITION)
        isr_answered(b, request, gen);
    broker_request_free(request);
}

void broker_timer(struct broker *b, enum broker_timer timer, gen_t gen)
{
    switch (timer) {
    case BROKER_TIMER_ALTER_PARTITION:
        isr_retry(b, gen);
        break;
    case BROKER_TIMER_FETCH:
        fetch_again(b, -1);
        fetch_flush(b, gen);
        break;
    case BROKER_TIMER_CONTROLLED_SHUTDOWN:
        controlled_shutdown_attempt(b, gen);
        break;
    case BROKER_TIMER_NOTE:
        notes_retry(b, gen);
        break;
    case BROKER_TIMER_N:
        break;
    }
}

void broker_txn_done(struct broker *b, struct txn *txn, gen_t gen)
{
    if (txn->n_ops == 1 && txn->ops[0].type == OP_SET) {
        isr_written(b, txn, gen);
        isr_flush(b, gen);
        txn_free(txn);
    } else {
        note_written(b, txn);
    }
}

/* ---- views ---- */

int32_t broker_controller_id(const struct broker *b)
{
    return b->controller_id;
}

bool broker_dir_online(const struct broker *b, int dir)
{
    return b->rm.dirs[dir].online;
}

const struct metadata_cache *broker_metadata(const struct broker *b)
{
    return b->metadata;
}

static void fill_view(const struct replica *r, struct replica_view *ret)
{
    *ret = (struct replica_view){.topic = r->topic,
            .partition = r->partition,
            .role = r->role,
            .dir = r->dir,
            .leader_epoch = r->leader_epoch,
            .partition_epoch = r->partition_epoch,
            .isr = r->isr};
}

bool broker_replica(const struct broker *b, const char *topic, int32_t partition, struct replica_view *ret)
{
    const struct replica *r = replica_manager_find(&b->rm, topic, partition);

    if (!r)
        return false;
    fill_view(r, ret);
    return true;
}

void broker_each_replica(const struct broker *b, bool (*visit)(void *arg, const struct replica_view *view), void *arg)
{
    GHashTableIter it;
    gpointer p;

    g_hash_table_iter_init(&it, b->rm.replicas);
    while (g_hash_table_iter_next(&it, &p, NULL)) {
        struct replica_view view;
        fill_view(p, &view);
        if (!visit(arg, &view))
            return;
    }
}

bool broker_idle(const struct broker *b)
{
    return b->loaded && !b->work && b->requests.length == 0 && b->isr.queued.length == 0 &&
           b->isr.proposed.length == 0 && b->notes.refused.length == 0 && b->n_out_of_sync == 0;
}
