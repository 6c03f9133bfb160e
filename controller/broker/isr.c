/*
 * In-sync sets, kept up by the leader (kafka.cluster.Partition.maybeExpandIsr, AlterPartitionManager).
 *
 * No data moves here, so a follower that has applied the leader's epoch has caught up. The leader proposes it to the
 * controller with AlterPartition; before inter.broker.protocol.version 2.7-IV2 it writes the state itself
 * (isr_write.c). Sets only grow here: what makes them smaller, a dead broker or a failed log dir, is seen by the
 * controller.
 */
#include "controller/broker/isr.h"

#define REQUEST_TIMEOUT_MS 30000

/* A fetch for a leader epoch that this broker does not have yet: its own LeaderAndIsr is on the way. */
struct early_fetch {
    struct isr_follower follower;
    int32_t leader_epoch;
    char topic_id[23];
    int64_t topic_czxid; /* of its node when the fetch came; -1: there was none */
};

static void early_free(gpointer p)
{
    g_array_unref(p);
}

void isr_init(struct broker *b)
{
    g_queue_init(&b->isr.waiting);
    g_queue_init(&b->isr.queued);
    g_queue_init(&b->isr.proposed);
    b->isr.early = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, early_free);
    b->isr.changed = isr_changed_new();
}

/* ---- one leader's upkeep ---- */

static GQueue *queue_of(struct broker *b, const struct isr_upkeep *u)
{
    switch (u->state) {
    case UPKEEP_WAITING:
        return &b->isr.waiting;
    case UPKEEP_QUEUED:
        return &b->isr.queued;
    default:
        return &b->isr.proposed;
    }
}

static void set_state(struct broker *b, struct isr_upkeep *u, enum upkeep_state state)
{
    g_queue_unlink(queue_of(b, u), &u->link);
    u->state = state;
    g_queue_push_tail_link(queue_of(b, u), &u->link);
}

static void release_cause(struct broker *b, struct isr_upkeep *u)
{
    if (u->held)
        b->env->release(b->env->ctx, u->gen);
    u->held = false;
}

static void drop_proposal(struct isr_upkeep *u)
{
    u->new_isr = broker_ids_unref(u->new_isr);
    g_clear_pointer(&u->new_isr_epochs, g_free);
}

static void free_upkeep(struct broker *b, struct replica *r)
{
    struct isr_upkeep *u = r->upkeep;

    if (!u)
        return;
    g_queue_unlink(queue_of(b, u), &u->link);
    release_cause(b, u);
    drop_proposal(u);
    g_array_unref(u->followers);
    g_free(u);
    r->upkeep = NULL;
}

void isr_drop(struct broker *b, struct replica *r)
{
    free_upkeep(b, r);
    r->isr = broker_ids_unref(r->isr);
    r->fenced = false;
}

void isr_clear(struct broker *b)
{
    GQueue *all[] = {&b->isr.waiting, &b->isr.queued, &b->isr.proposed};

    for (size_t i = 0; i < G_N_ELEMENTS(all); i++)
        while (!g_queue_is_empty(all[i]))
            free_upkeep(b, g_queue_peek_head(all[i]));
    g_hash_table_unref(b->isr.early);
    isr_changed_free(b->isr.changed);
}

static bool any_follower_alive(const struct broker *b, const struct isr_upkeep *u)
{
    for (guint i = 0; i < u->followers->len; i++)
        if (metadata_cache_has_broker(b->metadata, g_array_index(u->followers, struct isr_follower, i).id))
            return true;
    return false;
}

/* Queues the replica if there is somebody to propose. */
static void consider(struct broker *b, struct replica *r, gen_t gen)
{
    struct isr_upkeep *u = r->upkeep;

    if (u->state != UPKEEP_WAITING || !any_follower_alive(b, u))
        return;
    u->gen = gen;
    u->held = true;
    b->env->hold(b->env->ctx, gen);
    set_state(b, u, UPKEEP_QUEUED);
}

static void add_follower(struct broker *b, struct replica *r, const struct isr_follower *f, gen_t gen)
{
    struct isr_upkeep *u = r->upkeep;

    if (r->fenced || broker_ids_contain(r->isr, f->id) || !broker_ids_contain(r->replicas, f->id))
        return;
    if (!u) {
        u = r->upkeep = g_new0(struct isr_upkeep, 1);
        u->link.data = r;
        u->followers = g_array_new(FALSE, FALSE, sizeof(struct isr_follower));
        g_queue_push_tail_link(&b->isr.waiting, &u->link);
    }
    for (guint i = 0; i < u->followers->len; i++)
        if (g_array_index(u->followers, struct isr_follower, i).id == f->id)
            g_array_remove_index(u->followers, i--);
    g_array_append_val(u->followers, *f);
    consider(b, r, gen);
}

void isr_committed(struct broker *b, struct replica *r, struct broker_ids *isr, int32_t partition_epoch, gen_t gen)
{
    struct isr_upkeep *u = r->upkeep;
    g_autoptr(GString) text = g_string_new(NULL);

    broker_ids_ref(isr);
    broker_ids_unref(r->isr);
    r->isr = isr;
    r->partition_epoch = partition_epoch;
    for (uint32_t i = 0; i < isr->n; i++)
        g_string_append_printf(text, "%s%d", i ? "," : "", isr->id[i]);
    b->env->event(b->env->ctx, "broker %d %s-%d isr %s", b->id, r->topic->name, r->partition, text->str);
    for (guint i = 0; i < u->followers->len; i++)
        if (broker_ids_contain(isr, g_array_index(u->followers, struct isr_follower, i).id))
            g_array_remove_index(u->followers, i--);
    if (u->followers->len == 0) {
        free_upkeep(b, r);
        return;
    }
    isr_refused(b, r);
    consider(b, r, gen);
}

void isr_refused(struct broker *b, struct replica *r)
{
    release_cause(b, r->upkeep);
    drop_proposal(r->upkeep);
    set_state(b, r->upkeep, UPKEEP_WAITING);
}

/* ---- fetches ---- */

/* Those of a follower, but of its incarnation `but`. */
static void remove_early_of(GArray *list, int32_t follower, int64_t but)
{
    for (guint i = 0; i < list->len; i++) {
        const struct isr_follower *f = &g_array_index(list, struct early_fetch, i).follower;
        if (f->id == follower && f->epoch != but)
            g_array_remove_index(list, i--);
    }
}

static int64_t czxid_of(const struct broker *b, const char *topic)
{
    g_autofree char *path = g_strdup_printf("/brokers/topics/%s", topic);
    struct zstat stat;

    return b->env->get(b->env->ctx, path, NULL, &stat) == ZOK ? stat.czxid : -1;
}

static void remember_early(struct broker *b, const struct fetch_partition *p, const struct isr_follower *f)
{
    g_autofree char *key = g_strdup_printf("%s-%d", p->topic->name, p->partition);
    GArray *list = g_hash_table_lookup(b->isr.early, key);
    struct early_fetch e = {
            .follower = *f, .leader_epoch = p->leader_epoch, .topic_czxid = czxid_of(b, p->topic->name)};

    g_strlcpy(e.topic_id, p->topic->id, sizeof e.topic_id);
    if (!list) {
        list = g_array_new(FALSE, FALSE, sizeof(struct early_fetch));
        g_hash_table_insert(b->isr.early, g_steal_pointer(&key), list);
    }
    remove_early_of(list, f->id, -1);
    g_array_append_val(list, e);
}

static bool may_be_early(const struct replica *r, bool same_topic, const struct fetch_partition *p)
{
    return !same_topic || r->leader_epoch < p->leader_epoch;
}

/* A topic without an id is known by its name only, and the fetch may be a late one of a topic that is gone: its
 * deletion has waited for this follower, so its node was still there when the fetch came. */
static bool is_of_topic(const struct broker *b, const struct early_fetch *e, const struct replica *r)
{
    if (*e->topic_id && *r->topic->id)
        return strcmp(e->topic_id, r->topic->id) == 0;
    return e->topic_czxid >= 0 && e->topic_czxid == czxid_of(b, r->topic->name);
}

void broker_fetch(struct broker *b, const struct fetch_request *request, gen_t gen)
{
    struct isr_follower f = {.id = request->replica_id, .epoch = request->replica_epoch};

    for (guint i = 0; i < request->partitions->len; i++) {
        const struct fetch_partition *p = &g_array_index(request->partitions, struct fetch_partition, i);
        struct replica *r = replica_manager_find(&b->rm, p->topic->name, p->partition);
        bool same_topic = r && !broker_topic_ids_differ(r->topic->id, p->topic->id);
        if (same_topic && r->role == REPLICA_LEADER && r->leader_epoch == p->leader_epoch)
            add_follower(b, r, &f, gen);
        else if (may_be_early(r, same_topic, p))
            remember_early(b, p, &f);
    }
    isr_flush(b, gen);
}

void isr_became_leader(struct broker *b, struct replica *r, gen_t gen)
{
    if (g_hash_table_size(b->isr.early) == 0)
        return;
    g_autofree char *key = broker_log_name(r);
    GArray *list = g_hash_table_lookup(b->isr.early, key);
    if (!list)
        return;
    for (guint i = 0; i < list->len;) {
        const struct early_fetch *e = &g_array_index(list, struct early_fetch, i);
        bool same_topic = is_of_topic(b, e, r);
        if (same_topic && e->leader_epoch > r->leader_epoch) { /* one more LeaderAndIsr is on the way */
            i++;
            continue;
        }
        if (same_topic && e->leader_epoch == r->leader_epoch)
            add_follower(b, r, &e->follower, gen);
        g_array_remove_index(list, i);
    }
    if (list->len == 0)
        g_hash_table_remove(b->isr.early, key);
}

void isr_forget_early(struct broker *b, const char *topic, int32_t partition, int32_t last_epoch)
{
    if (g_hash_table_size(b->isr.early) == 0)
        return;
    g_autofree char *key = g_strdup_printf("%s-%d", topic, partition);
    GArray *list = g_hash_table_lookup(b->isr.early, key);
    if (!list)
        return;
    for (guint i = 0; i < list->len; i++)
        if (g_array_index(list, struct early_fetch, i).leader_epoch <= last_epoch)
            g_array_remove_index(list, i--);
    if (list->len == 0)
        g_hash_table_remove(b->isr.early, key);
}

/* ---- live brokers ---- */

/* The epoch of the broker that is registered under this id; -1: none is. */
static int64_t registered_epoch(const struct broker *b, int32_t id)
{
    g_autofree char *path = g_strdup_printf("/brokers/ids/%d", id);
    struct zstat stat;

    return b->env->get(b->env->ctx, path, NULL, &stat) == ZOK ? stat.czxid : -1;
}

static void forget_follower(struct broker *b, struct replica *r, int32_t id, int64_t now)
{
    struct isr_upkeep *u = r->upkeep;

    for (guint i = 0; i < u->followers->len; i++) {
        const struct isr_follower *f = &g_array_index(u->followers, struct isr_follower, i);
        if (f->id == id && f->epoch != now)
            g_array_remove_index(u->followers, i--);
    }
    if (u->followers->len == 0)
        free_upkeep(b, r);
}

static void forget_early_of(struct broker *b, int32_t id, int64_t now)
{
    GHashTableIter it;
    gpointer list;

    g_hash_table_iter_init(&it, b->isr.early);
    while (g_hash_table_iter_next(&it, NULL, &list)) {
        remove_early_of(list, id, now);
        if (((GArray *)list)->len == 0)
            g_hash_table_iter_remove(&it);
    }
}

/* When it comes back it may have lost what it had then. But news of its death may be older than the fetch: one of the
 * incarnation that is there now counts when that is heard of. */
void isr_broker_left(struct broker *b, int32_t id)
{
    GQueue *lists[] = {&b->isr.waiting, &b->isr.queued};
    int64_t now = registered_epoch(b, id);

    forget_early_of(b, id, now);
    for (size_t i = 0; i < G_N_ELEMENTS(lists); i++) {
        for (GList *l = lists[i]->head, *next; l; l = next) {
            next = l->next;
            forget_follower(b, l->data, id, now);
        }
    }
}

void isr_brokers_changed(struct broker *b, gen_t gen)
{
    for (GList *l = b->isr.waiting.head, *next; l; l = next) {
        next = l->next;
        consider(b, l->data, gen);
    }
}

/* ---- proposals ---- */

/* May it be proposed? The controller looks at its epoch; a leader that writes the state itself has to. */
static bool is_alive(const struct broker *b, const struct isr_follower *f)
{
    return metadata_cache_has_broker(b->metadata, f->id) &&
           (isr_by_request(b) || registered_epoch(b, f->id) == f->epoch);
}

/* The set that is asked for: the held one and every follower that is alive. One that was sent without an answer is
 * asked for again as it was, so that the controller can see that it has been done. False: nobody is alive any more. */
static bool make_proposal(const struct broker *b, const struct replica *r)
{
    struct isr_upkeep *u = r->upkeep;
    g_autofree int32_t *ids = NULL;
    uint32_t n = r->isr->n;

    if (u->new_isr)
        return true;
    ids = g_new(int32_t, n + u->followers->len);
    int64_t *epochs = g_new(int64_t, n + u->followers->len);
    for (uint32_t i = 0; i < n; i++) {
        ids[i] = r->isr->id[i];
        epochs[i] = ids[i] == b->id ? b->epoch : -1;
    }
    for (guint i = 0; i < u->followers->len; i++) {
        const struct isr_follower *f = &g_array_index(u->followers, struct isr_follower, i);
        if (!is_alive(b, f))
            continue;
        ids[n] = f->id;
        epochs[n++] = f->epoch;
    }
    if (n == r->isr->n) {
        g_free(epochs);
        return false;
    }
    u->new_isr = broker_ids_new(ids, n);
    u->new_isr_epochs = epochs;
    return true;
}

static void fill_alter_partition(struct alter_partition *p, const struct replica *r)
{
    const struct isr_upkeep *u = r->upkeep;

    p->topic = topic_ref_ref(r->topic);
    p->partition = r->partition;
    p->leader_epoch = r->leader_epoch;
    p->partition_epoch = r->partition_epoch;
    p->new_isr = broker_ids_ref(u->new_isr);
    p->new_isr_epochs = g_memdup2(u->new_isr_epochs, u->new_isr->n * sizeof *u->new_isr_epochs);
}

/* One request with all that is queued, of the oldest cause among them. */
static void send_alter_partition(struct broker *b, gen_t gen)
{
    struct broker_request *request = g_new0(struct broker_request, 1);
    struct replica *r;

    request->api = API_ALTER_PARTITION;
    request->broker_id = b->id;
    request->broker_epoch = b->epoch;
    request->partitions = g_new0(struct alter_partition, b->isr.queued.length);
    for (GList *l = b->isr.queued.head; l; l = l->next) {
        const struct isr_upkeep *u = ((struct replica *)l->data)->upkeep;
        if (u->held)
            gen = MIN(gen, u->gen);
    }
    b->isr.in_flight = request;
    b->isr.in_flight_controller_epoch = b->controller_epoch;
    while ((r = g_queue_peek_head(&b->isr.queued))) {
        fill_alter_partition(&request->partitions[request->n_partitions++], r);
        set_state(b, r->upkeep, UPKEEP_PROPOSED);
    }
    b->env->timer(b->env->ctx, BROKER_TIMER_ALTER_PARTITION, REQUEST_TIMEOUT_MS);
    b->env->ask_controller(b->env->ctx, b->controller_id, request, gen);
    for (GList *l = b->isr.proposed.head; l; l = l->next)
        release_cause(b, ((struct replica *)l->data)->upkeep);
}

void isr_flush(struct broker *b, gen_t gen)
{
    for (GList *l = b->isr.queued.head, *next; l; l = next) {
        next = l->next;
        if (!make_proposal(b, l->data))
            isr_refused(b, l->data);
    }
    if (g_queue_is_empty(&b->isr.queued))
        return;
    if (!isr_by_request(b))
        isr_write_queued(b, gen);
    else if (!b->isr.in_flight && !b->isr.parked && b->controller_id >= 0)
        send_alter_partition(b, gen);
}

struct replica *isr_next_queued(struct broker *b)
{
    struct replica *r = g_queue_peek_head(&b->isr.queued);

    if (r)
        set_state(b, r->upkeep, UPKEEP_PROPOSED);
    return r;
}

void isr_release_cause(struct broker *b, struct replica *r)
{
    release_cause(b, r->upkeep);
}

/* ---- answers ---- */

struct replica *isr_find_proposed(struct broker *b, const char *topic, int32_t partition, int32_t leader_epoch)
{
    struct replica *r = replica_manager_find(&b->rm, topic, partition);

    return r && r->role == REPLICA_LEADER && r->leader_epoch == leader_epoch && r->upkeep &&
                           r->upkeep->state == UPKEEP_PROPOSED
                   ? r
                   : NULL;
}

/* Nothing is known about the proposals in flight: they are sent again, by the timer or as soon as a controller is heard
 * of. Meanwhile nobody waits for them. */
static void propose_again(struct broker *b)
{
    struct replica *r;

    while ((r = g_queue_peek_head(&b->isr.proposed)))
        set_state(b, r->upkeep, UPKEEP_QUEUED);
    b->isr.in_flight = NULL;
}

static void park(struct broker *b)
{
    for (GList *l = b->isr.queued.head; l; l = l->next)
        release_cause(b, ((struct replica *)l->data)->upkeep);
    b->isr.parked = true;
    b->isr.parked_ms = broker_backoff_ms(b->isr.parked_ms);
    b->env->timer(b->env->ctx, BROKER_TIMER_ALTER_PARTITION, b->isr.parked_ms);
}

/* Kafka gives up on these until the next LeaderAndIsr or fetch; every other error is tried again. */
static bool is_final(enum kafka_error error)
{
    switch (error) {
    case KERR_OPERATION_NOT_ATTEMPTED:
    case KERR_INELIGIBLE_REPLICA:
    case KERR_UNKNOWN_TOPIC_OR_PARTITION:
    case KERR_UNKNOWN_TOPIC_ID:
    case KERR_INVALID_UPDATE_VERSION:
    case KERR_INVALID_REQUEST:
        return true;
    default:
        return false;
    }
}

static bool was_proposed(const struct isr_upkeep *u, const struct isr_follower *f)
{
    for (uint32_t i = 0; i < u->new_isr->n; i++)
        if (u->new_isr->id[i] == f->id)
            return u->new_isr_epochs[i] == f->epoch;
    return false;
}

/* One of the followers may be to blame, and the others must not wait for it: who is still out fetches again. Those that
 * have come meanwhile are proposed now. */
static void give_up(struct broker *b, struct replica *r, gen_t gen)
{
    struct isr_upkeep *u = r->upkeep;

    for (guint i = 0; i < u->followers->len; i++)
        if (was_proposed(u, &g_array_index(u->followers, struct isr_follower, i)))
            g_array_remove_index(u->followers, i--);
    if (u->followers->len == 0) {
        free_upkeep(b, r);
        return;
    }
    isr_refused(b, r);
    consider(b, r, gen);
}

static bool partition_answered(struct broker *b, const struct alter_partition *p, gen_t gen)
{
    struct replica *r = isr_find_proposed(b, p->topic->name, p->partition, p->leader_epoch);

    if (!r)
        return true;
    if (p->error == KERR_NONE) {
        isr_committed(b, r, p->result_isr ? p->result_isr : p->new_isr, p->result_partition_epoch, gen);
        return true;
    }
    b->env->event(b->env->ctx, "broker %d %s-%d isr change refused: %s", b->id, r->topic->name, r->partition,
            kafka_error_name(p->error));
    if (p->error == KERR_FENCED_LEADER_EPOCH) {
        /* Nothing can be proposed in this epoch any more (Kafka: "awaiting the latest metadata"). For a topic that
         * waits for its deletion that may be long, and its followers fetch every second. */
        free_upkeep(b, r);
        r->fenced = true;
        return true;
    }
    if (is_final(p->error)) {
        give_up(b, r, gen);
        return true;
    }
    set_state(b, r->upkeep, UPKEEP_QUEUED);
    return false;
}

void isr_answered(struct broker *b, struct broker_request *request, gen_t gen)
{
    bool all = true;

    if (request != b->isr.in_flight)
        return; /* given up before */
    b->isr.in_flight = NULL;
    b->env->timer(b->env->ctx, BROKER_TIMER_ALTER_PARTITION, -1);
    if (request->error != KERR_NONE) {
        propose_again(b);
        all = false;
    }
    for (size_t i = 0; request->error == KERR_NONE && i < request->n_partitions; i++)
        all = partition_answered(b, &request->partitions[i], gen) && all;
    if (all)
        b->isr.parked_ms = 0;
    else
        park(b);
    isr_flush(b, gen);
}

void isr_retry(struct broker *b, gen_t gen)
{
    if (b->isr.in_flight) /* its answer is lost */
        propose_again(b);
    b->isr.parked = false;
    isr_flush(b, gen);
}

void isr_controller_heard(struct broker *b, gen_t gen)
{
    /* The one that was asked sends requests after a refusal, too: only another one is a reason to ask again at once. */
    if (b->controller_epoch > b->isr.in_flight_controller_epoch) {
        if (b->isr.in_flight)
            propose_again(b);
        if (b->isr.parked)
            b->env->timer(b->env->ctx, BROKER_TIMER_ALTER_PARTITION, -1);
        b->isr.parked = false;
        b->isr.parked_ms = 0;
    }
    isr_flush(b, gen);
}
