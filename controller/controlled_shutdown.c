/* ControlledShutdown: a broker that is about to stop gives its leaderships away and leaves the in-sync sets
 * (KafkaController.doControlledShutdown). */
#include "controller/core.h"

/* More than one replica, leadership information, not being deleted. */
static bool counts(const struct partition *p, int32_t broker)
{
    return p->replicas->n > 1 && p->has_leadership && broker_ids_contain(p->replicas, broker);
}

static void sort_partitions(struct controller *c, int32_t broker, GPtrArray *led, GArray *followed)
{
    struct partition_iter it = partition_iter(&c->ctx);
    for (struct partition *p; (p = partition_iter_next(&it));) {
        if (p->topic->deletion || !counts(p, broker)) {
            continue;
        }
        if (p->leadership.leader == broker) {
            g_ptr_array_add(led, p);
        } else {
            replicas_add(followed, p, broker);
        }
    }
}

static void give_away(struct controller *c, struct broker_request *r)
{
    g_autoptr(GPtrArray) led = g_ptr_array_new();
    g_autoptr(GArray) followed = replicas_new();
    sort_partitions(c, r->broker_id, led, followed);
    g_autoptr(GPtrArray) elected = partitions_elect(c, led, ELECT_SHUTDOWN);
    for (guint i = 0; i < followed->len; i++) {
        batch_stop_replica(c, g_array_index(followed, struct replica_of, i).p, r->broker_id, false);
    }
    batch_send(c);
    replicas_change_state(c, followed, REPLICA_OFFLINE);
    r->remaining = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < led->len; i++) {
        const struct partition *p = led->pdata[i];
        if (p->leadership.leader == r->broker_id) {
            g_ptr_array_add(r->remaining, g_strdup_printf("%s-%d", p->topic->ref->name, p->id));
        }
    }
}

void controlled_shutdown(struct controller *c, struct broker_request *r)
{
    struct broker *b = context_broker(&c->ctx, r->broker_id);
    if (!b) {
        r->error = KERR_BROKER_NOT_AVAILABLE;
    } else if (r->broker_epoch >= 0 && r->broker_epoch < b->epoch) {
        r->error = KERR_STALE_BROKER_EPOCH;
    } else {
        if (!b->shutting_down) {
            emit(c, "controller %d broker %d is shutting down", c->broker_id, b->id);
        }
        b->shutting_down = true; /* from now on its replicas count as not online */
        give_away(c, r);
        r->error = c->moved ? KERR_NOT_CONTROLLER : KERR_NONE;
    }
    c->env.respond(c->env.ctx, r);
}
