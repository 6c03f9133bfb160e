/* StopReplica: ReplicaManager.stopReplicas, LogManager.asyncDelete. */
#include "controller/broker/broker_core.h"
#include <errno.h>
#include <string.h>

static const struct stop_replica_state *state_of(const struct request_work *w, uint32_t index)
{
    return &g_array_index(w->cause->request->stop_states, struct stop_replica_state, index);
}

/* `r` is NULL if the broker has no such replica. */
static enum kafka_error judge(const struct broker *b, const struct replica *r, const struct stop_replica_state *s)
{
    if (r && r->role == REPLICA_OFFLINE)
        return KERR_KAFKA_STORAGE_ERROR; /* and it stays so, however often it is asked for (KAFKA-7313) */
    if (!r && s->delete_partition && replica_manager_any_dir_offline(&b->rm))
        return KERR_KAFKA_STORAGE_ERROR; /* it may live in the dir that is away: nobody may call it deleted */
    if (!r || !r->hosted)
        return KERR_NONE;
    if (s->leader_epoch == EPOCH_DURING_DELETE || s->leader_epoch == LEADER_EPOCH_NONE)
        return KERR_NONE;
    /* an equal one is accepted (KAFKA-13972) */
    return s->leader_epoch < r->leader_epoch ? KERR_FENCED_LEADER_EPOCH : KERR_NONE;
}

/* The task names the topic that is to go, so that a directory of another id is not taken for it. */
static void add_task(struct request_work *w, int dir, guint item, const struct stop_replica_state *s, bool future)
{
    struct log_task *t = broker_work_task(w, DISK_DELETE, dir, item);

    t->future = future;
    if (*s->topic->id && strcmp(t->topic->id, s->topic->id) != 0) {
        topic_ref_unref(t->topic);
        t->topic = topic_ref_ref(s->topic);
    }
}

static void start_one(struct broker *b, struct request_work *w, uint32_t index)
{
    const struct stop_replica_state *s = state_of(w, index);
    struct replica *r = replica_manager_find(&b->rm, s->topic->name, s->partition);
    enum kafka_error error = judge(b, r, s);

    if (error != KERR_NONE) {
        broker_set_error(w, index, error);
        return;
    }
    if (!r || r->busy) /* busy: named twice in one request */
        return;
    broker_clear_role(b, r, REPLICA_NONE);
    if (!s->delete_partition)
        return;
    r->busy = true;
    r->hosted = false;
    replica_forget_state(r);
    broker_work_add(w, index, r, DELETE_LOG);
    if (r->dir >= 0)
        add_task(w, r->dir, w->items->len - 1, s, false);
    if (r->future_dir >= 0)
        add_task(w, r->future_dir, w->items->len - 1, s, true);
}

static void task_done(struct broker *b, struct request_work *w, struct work_item *item, const struct log_task *task,
        const struct disk_batch *batch)
{
    struct replica *r = item->replica;

    if (task->err == 0) {
        if (task->future)
            replica_manager_place_future(&b->rm, r, -1);
        else
            replica_manager_place(&b->rm, r, -1);
        return;
    }
    broker_set_error(w, item->index, KERR_KAFKA_STORAGE_ERROR);
    if (batch->failed)
        return;
    g_autofree char *path = g_strdup_printf("%s/%s-%d", b->dirs[batch->dir], r->topic->name, r->partition);
    b->env->error(b->env->ctx, -task->err, path, "the replica's directory could not be removed%s",
            task->err == -EXDEV ? ": something is mounted in it" : "");
}

/* A follower that is deleted, too, may have fetched since: the next topic of that name begins without it. */
static void forget_fetches(struct broker *b, const GArray *states)
{
    for (guint i = 0; i < states->len; i++) {
        const struct stop_replica_state *s = &g_array_index(states, struct stop_replica_state, i);
        if (s->delete_partition)
            isr_forget_early(b, s->topic->name, s->partition, INT32_MAX);
    }
}

static void finish(struct broker *b, struct request_work *w)
{
    forget_fetches(b, w->cause->request->stop_states);
    for (guint i = 0; i < w->items->len; i++) {
        struct replica *r = g_array_index(w->items, struct work_item, i).replica;
        r->busy = false;
        if (r->dir >= 0 || r->future_dir >= 0 || r->role == REPLICA_OFFLINE)
            continue;
        b->env->event(b->env->ctx, "broker %d log %s-%d deleted", b->id, r->topic->name, r->partition);
        broker_forget_replica(b, r);
    }
}

/* The last first: so the hashes of a topic's first partitions order them in LogManager.asyncDelete, and what a failing
 * log dir still lets go is the same. */
void stop_replica_start(struct broker *b, struct request_work *w)
{
    w->task_done = task_done;
    w->finish = finish;
    for (guint i = w->cause->request->stop_states->len; i-- > 0;)
        start_one(b, w, i);
}
