/* Replicas that a partition's assignment has no more. They keep a state until they are deleted, and they are deleted
 * only when the tree says, in a leader epoch that the leader has to take notice of, that they are out: a store without
 * room must not lose a directory that still counts. */
#include "controller/reassignment_core.h"

static bool is_dropped(const struct partition *p, const struct replica *r)
{
    return r->state != REPLICA_NON_EXISTENT && !broker_ids_contain(p->replicas, r->broker);
}

bool reassignment_has_dropped(const struct partition *p)
{
    for (uint32_t i = 0; i < p->n_states; i++) {
        if (is_dropped(p, &p->states[i])) {
            return true;
        }
    }
    return false;
}

void reassignment_add_dropped(struct partition *p, GArray *replicas)
{
    for (uint32_t i = 0; i < p->n_states; i++) {
        if (is_dropped(p, &p->states[i])) {
            replicas_add(replicas, p, p->states[i].broker);
        }
    }
}

/* From OfflineReplica on, without waiting for an answer. As in Kafka the directory of a broker that is down stays where
 * it is, without a role. */
void reassignment_delete(struct controller *c, GArray *replicas)
{
    static const enum replica_state steps[] = {
            REPLICA_DELETION_STARTED, REPLICA_DELETION_SUCCESSFUL, REPLICA_NON_EXISTENT};
    for (size_t i = 0; replicas->len && i < G_N_ELEMENTS(steps); i++) {
        replicas_change_state(c, replicas, steps[i]);
    }
}

/* The last member of an in-sync set stays one (a hand has rewritten it in this moment): it keeps its directory. */
void reassignment_drop(struct controller *c, GArray *dropped)
{
    g_autoptr(GArray) out = replicas_new();
    replicas_change_state(c, dropped, REPLICA_OFFLINE);
    for (guint i = 0; i < dropped->len; i++) {
        const struct replica_of *r = &g_array_index(dropped, struct replica_of, i);
        if (!r->p->has_leadership || !broker_ids_contain(r->p->leadership.isr, r->broker)) {
            g_array_append_val(out, *r);
        }
    }
    reassignment_delete(c, out);
}
