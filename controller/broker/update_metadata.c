/* UpdateMetadata: ReplicaManager.maybeUpdateMetadataCache, and what followers and leaders learn from it. */
#include "controller/broker/broker_core.h"
#include <string.h>

/* The partition has moved away, and the StopReplica that says so was lost with its controller. The log is left where it
 * is, as in Kafka; but nobody waits for this leader, and this follower's leader for nobody. */
static void look_at_moved(struct broker *b, const struct partition_state *s)
{
    struct replica *r = replica_manager_find(&b->rm, s->topic->name, s->partition);
    bool of_now = r && (s->leader == LEADER_DURING_DELETE || s->leader_epoch >= r->leader_epoch);

    if (!of_now || (r->role != REPLICA_LEADER && r->role != REPLICA_FOLLOWER) ||
            strcmp(r->topic->id, s->topic->id) != 0 || broker_ids_contain(s->replicas, b->id))
        return;
    b->env->event(b->env->ctx, "broker %d is no replica of %s-%d any more", b->id, r->topic->name, r->partition);
    broker_clear_role(b, r, REPLICA_NONE);
}

/* A follower that the leader has taken in is in sync; one that is still out asks again when the state has changed. (Not
 * whenever it is told: the controller tells it after each proposal, also after one that it has refused.) */
static void look_at_followed(struct broker *b, const struct partition_state *s)
{
    struct replica *r = replica_manager_find(&b->rm, s->topic->name, s->partition);

    if (!r || !r->out_of_sync || s->leader_epoch != r->leader_epoch)
        return;
    if (broker_ids_contain(s->isr, b->id))
        fetch_set_out_of_sync(b, r, false);
    else if (s->partition_epoch > r->partition_epoch)
        fetch_add(b, r);
    r->partition_epoch = MAX(r->partition_epoch, s->partition_epoch);
}

void update_metadata_apply(struct broker *b, struct request_work *w)
{
    const struct control_request *request = w->cause->request;
    g_autoptr(GArray) arrived = g_array_new(FALSE, FALSE, sizeof(int32_t));
    g_autoptr(GArray) before = metadata_cache_brokers(b->metadata);

    for (guint i = 0; i < request->live_brokers->len; i++) {
        int32_t id = g_array_index(request->live_brokers, struct live_broker, i).id;
        if (!metadata_cache_has_broker(b->metadata, id))
            g_array_append_val(arrived, id);
    }
    metadata_cache_update(b->metadata, request);
    for (guint i = 0; i < before->len; i++)
        if (!metadata_cache_has_broker(b->metadata, g_array_index(before, int32_t, i)))
            isr_broker_left(b, g_array_index(before, int32_t, i));
    for (guint i = 0; i < arrived->len && b->n_out_of_sync > 0; i++)
        fetch_again(b, g_array_index(arrived, int32_t, i));
    for (guint i = 0; i < request->partition_states->len; i++) {
        const struct partition_state *s = g_ptr_array_index(request->partition_states, i);
        if (s->leader != b->id)
            isr_forget_early(
                    b, s->topic->name, s->partition, s->leader == LEADER_DURING_DELETE ? INT32_MAX : s->leader_epoch);
        look_at_moved(b, s);
        if (b->n_out_of_sync > 0)
            look_at_followed(b, s);
    }
    isr_brokers_changed(b, w->gen);
}
