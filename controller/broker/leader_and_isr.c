/* LeaderAndIsr: ReplicaManager.becomeLeaderOrFollower, LogManager.getOrCreateLog. */
#include "controller/broker/broker_core.h"
#include "controller/json/codec.h"
#include <string.h>

static const struct partition_state *state_of(const struct request_work *w, uint32_t index)
{
    return g_ptr_array_index(w->cause->request->partition_states, index);
}

static bool ids_differ(const struct replica *r, const struct partition_state *s)
{
    return broker_topic_ids_differ(r->topic->id, s->topic->id);
}

static bool is_in_tree(const struct broker *b, const struct topic_ref *topic)
{
    g_autofree char *id = broker_topic_id_in_tree(b, topic->name);

    return strcmp(id, topic->id) == 0;
}

/* A later state of the leader epoch that is held, from a new controller: written by hand, or by a change whose answer
 * was lost. Kafka refuses it, and its leader then proposes in vain until the next epoch. */
static bool is_later_state(const struct broker *b, const struct replica *r, const struct partition_state *s)
{
    if (!r || r->leader_epoch == LEADER_EPOCH_NONE || s->leader != r->leader ||
            s->partition_epoch <= r->partition_epoch)
        return false;
    return r->role == REPLICA_LEADER ||
           (r->role == REPLICA_FOLLOWER && metadata_cache_has_broker(b->metadata, s->leader));
}

/* A state of the leader epoch and leader that are held, and not the held one: it was removed or rewritten by hand. (Or
 * it was said before this leader's last change was done: the controller knows.) Other replicas always come with a new
 * epoch. A follower does not keep the rest. */
static bool is_other_state(const struct replica *r, const struct partition_state *s)
{
    return r->role == REPLICA_LEADER &&
           (s->partition_epoch < r->partition_epoch ||
                   (s->partition_epoch == r->partition_epoch &&
                           (!broker_ids_equal(s->isr, r->isr) || !broker_ids_equal(s->replicas, r->replicas))));
}

/* What the state asks this replica to be, or an error. `r` is NULL if the broker has no such replica. */
static enum kafka_error judge(
        const struct broker *b, const struct replica *r, const struct partition_state *s, enum item_action *ret)
{
    int32_t held = r ? r->leader_epoch : LEADER_EPOCH_NONE;

    if (topic_name_why_bad(s->topic->name))
        return KERR_INVALID_TOPIC_EXCEPTION; /* its directory could not be made */
    if (r && r->role == REPLICA_OFFLINE)
        return KERR_KAFKA_STORAGE_ERROR;
    if (r && r->busy) /* named twice in one request */
        return KERR_STALE_CONTROLLER_EPOCH;
    if (r && ids_differ(r, s)) {
        /* a new topic: what is left of one that somebody removed by hand, or that was moved away while this broker was
         * down, is set aside, not adopted. The request that said "new" may be lost with its controller. */
        if (!s->is_new && !is_in_tree(b, s->topic))
            return KERR_INCONSISTENT_TOPIC_ID;
        held = LEADER_EPOCH_NONE;
    }
    if (s->leader_epoch < held) /* Kafka answers as if it were known; and so for the next two */
        return KERR_FENCED_LEADER_EPOCH;
    if (r && s->leader_epoch == held && s->leader != r->leader)
        return KERR_NOT_LEADER_OR_FOLLOWER;
    if (r && s->leader_epoch == held && is_other_state(r, s))
        return KERR_FENCED_LEADER_EPOCH;
    if (s->leader_epoch == held && !is_later_state(b, r, s)) {
        if (!r || *r->topic->id || !*s->topic->id)
            return KERR_STALE_CONTROLLER_EPOCH;
        *ret = RECORD_ID;
        return KERR_NONE;
    }
    if (!broker_ids_contain(s->replicas, b->id))
        return KERR_UNKNOWN_TOPIC_OR_PARTITION;
    if (s->leader == b->id)
        *ret = MAKE_LEADER;
    else
        *ret = metadata_cache_has_broker(b->metadata, s->leader) ? MAKE_FOLLOWER : MAKE_LOG_ONLY;
    return KERR_NONE;
}

/* The replica takes the request's topic: a new one in place of an old one of that name, or the id it did not have. True
 * if the directory has to be told. */
static bool adopt_topic(struct broker *b, struct replica *r, const struct partition_state *s)
{
    bool other = ids_differ(r, s);
    bool news = other || (!*r->topic->id && *s->topic->id);

    if (other) {
        broker_clear_role(b, r, REPLICA_NONE);
        replica_forget_state(r);
        r->removed = false;
    }
    if (news) {
        topic_ref_unref(r->topic);
        r->topic = topic_ref_ref(s->topic);
    }
    return news;
}

/* Gives the item's log a dir and a task there; without a dir the replica is offline. */
static void place_log(struct broker *b, struct request_work *w, guint i)
{
    struct work_item *item = &g_array_index(w->items, struct work_item, i);
    struct replica *r = item->replica;

    if (r->dir < 0) {
        int dir = replica_manager_next_dir(&b->rm);
        if (dir < 0) {
            r->role = REPLICA_OFFLINE;
            return;
        }
        replica_manager_place(&b->rm, r, dir);
    }
    broker_work_task(w, DISK_CREATE, r->dir, i);
}

static void start_one(struct broker *b, struct request_work *w, uint32_t index)
{
    const struct partition_state *s = state_of(w, index);
    struct replica *r = replica_manager_find(&b->rm, s->topic->name, s->partition);
    enum item_action action;
    enum kafka_error error = judge(b, r, s, &action);
    bool first = false;

    if (error == KERR_FENCED_LEADER_EPOCH || error == KERR_NOT_LEADER_OR_FOLLOWER) {
        control_response_fence(w->response, index, error, r->leader_epoch);
        return;
    }
    if (error != KERR_NONE) {
        /* Known; but the leader may be another incarnation, which does not know this follower yet. (Kafka's fetches all
         * the time.) */
        if (error == KERR_STALE_CONTROLLER_EPOCH && r && r->out_of_sync && !r->busy)
            fetch_add(b, r);
        broker_set_error(w, index, error);
        return;
    }
    if (!r)
        r = replica_manager_add(&b->rm, s->topic, s->partition, &first);
    if (first)
        b->env->topic_created(b->env->ctx, s->topic->name);
    r->hosted = true;
    if (r->dir < 0 && !s->is_new && replica_manager_any_dir_offline(&b->rm)) {
        /* the replica may live in the dir that is away: it must not be made a second time */
        broker_clear_role(b, r, REPLICA_OFFLINE);
        broker_set_error(w, index, KERR_KAFKA_STORAGE_ERROR);
        return;
    }
    bool had_log = r->dir >= 0;
    bool told = adopt_topic(b, r, s);
    struct work_item *item = broker_work_add(w, index, r, action);
    item->existing = had_log;
    r->busy = true;
    if (told)
        r->present = false;
}

static void place_logs(struct broker *b, struct request_work *w, bool of_leaders)
{
    for (guint i = 0; i < w->items->len; i++) {
        struct work_item *item = &g_array_index(w->items, struct work_item, i);
        if (!item->replica->present && (item->action == MAKE_LEADER) == of_leaders)
            place_log(b, w, i);
    }
}

static void task_done(struct broker *b, struct request_work *w, struct work_item *item, const struct log_task *task,
        const struct disk_batch *batch)
{
    struct replica *r = item->replica;

    if (task->err == 0) {
        r->present = true;
        if (!item->existing)
            b->env->event(b->env->ctx, "broker %d log %s-%d created in %s", b->id, r->topic->name, r->partition,
                    b->dirs[batch->dir]);
        return;
    }
    if (batch->failed && !item->existing) {
        /* KAFKA-8526: the next dir is tried */
        r->role = REPLICA_NONE;
        replica_manager_place(&b->rm, r, -1);
        place_log(b, w, task->index);
        return;
    }
    broker_set_error(w, item->index, KERR_KAFKA_STORAGE_ERROR);
    g_autofree char *path = g_strdup_printf("%s/%s-%d", b->dirs[batch->dir], r->topic->name, r->partition);
    if (!batch->failed)
        b->env->error(b->env->ctx, -task->err, path, "the replica's directory could not be made");
}

static void apply(
        struct broker *b, struct replica *r, const struct partition_state *s, enum replica_role role, gen_t gen)
{
    broker_clear_role(b, r, role);
    broker_ids_unref(r->replicas);
    r->replicas = broker_ids_ref(s->replicas);
    r->leader_epoch = s->leader_epoch;
    r->partition_epoch = s->partition_epoch;
    r->leader = s->leader;
    r->controller_epoch = s->controller_epoch;
    if (role == REPLICA_LEADER) {
        r->isr = broker_ids_ref(s->isr);
        isr_became_leader(b, r, gen);
    } else if (!broker_ids_contain(s->isr, b->id)) {
        fetch_set_out_of_sync(b, r, true);
        fetch_add(b, r);
    }
}

static void finish_one(struct broker *b, struct request_work *w, struct work_item *item)
{
    const struct partition_state *s = state_of(w, item->index);
    struct replica *r = item->replica;

    r->busy = false;
    if (r->role == REPLICA_OFFLINE) {
        broker_set_error(w, item->index, KERR_KAFKA_STORAGE_ERROR);
        return;
    }
    if (!r->present && !r->removed) {
        if (!item->existing) /* could not be made, though its dir is well: asked for again, it is tried again */
            broker_forget_replica(b, r);
        return;
    }
    /* Told about its own change before this. In a later leader epoch a lower number is that of another node: the state
     * was removed by hand and begun anew. (Kafka skips that, too.) */
    bool older = s->leader_epoch == r->leader_epoch && s->partition_epoch < r->partition_epoch;
    if (item->action == RECORD_ID || older)
        return;
    if (item->action == MAKE_LOG_ONLY) {
        broker_clear_role(b, r, REPLICA_NONE);
        return;
    }
    apply(b, r, s, item->action == MAKE_LEADER ? REPLICA_LEADER : REPLICA_FOLLOWER, w->gen);
}

static void finish(struct broker *b, struct request_work *w)
{
    for (guint i = 0; i < w->items->len; i++)
        finish_one(b, w, &g_array_index(w->items, struct work_item, i));
}

void leader_and_isr_start(struct broker *b, struct request_work *w)
{
    w->task_done = task_done;
    w->finish = finish;
    for (guint i = 0; i < w->cause->request->partition_states->len; i++)
        start_one(b, w, i);
    /* leaders first (makeLeaders, then makeFollowers): where the logs of one request go depends on it */
    place_logs(b, w, true);
    place_logs(b, w, false);
}
