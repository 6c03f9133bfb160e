/* In-sync members that are no replicas. A reassignment has dropped them (step U), and its controller died before it
 * could tell anybody; or the state was written by hand, or is that of a former topic of this name. A leader that is
 * told of them proposes them again with every new member, and is refused for it: so they leave, and a new epoch says
 * so. */
#include "controller/core.h"

static uint32_t count_replicas(const struct partition *p, const struct broker_ids *isr)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < isr->n; i++) {
        n += broker_ids_contain(p->replicas, isr->id[i]);
    }
    return n;
}

/* If all are strangers nobody else has the data, and they stay. */
static bool any_to_expel(const struct partition *p, const struct broker_ids *isr)
{
    uint32_t replicas = count_replicas(p, isr);
    return replicas > 0 && replicas < isr->n;
}

bool strangers_are_in_sync(const struct partition *p)
{
    return p->has_leadership && any_to_expel(p, p->leadership.isr);
}

/* The state without them, in the next epoch. */
static void expel(const struct controller *c, const struct partition *p, struct leader_and_isr *l)
{
    g_autofree int32_t *stay = g_new(int32_t, l->isr->n);
    uint32_t n = 0;
    for (uint32_t i = 0; i < l->isr->n; i++) {
        if (broker_ids_contain(p->replicas, l->isr->id[i])) {
            stay[n++] = l->isr->id[i];
        }
    }
    broker_ids_unref(l->isr);
    l->isr = broker_ids_new(stay, n);
    l->leader = broker_ids_contain(p->replicas, l->leader) ? l->leader : LEADER_NONE;
    l->leader_epoch = next_leader_epoch(p, l->leader_epoch);
    l->controller_epoch = c->epoch;
}

/* ---- a new controller: all of them, and StopReplica for them in the batch ---- */

static void stop_strangers(struct controller *c, struct partition *p)
{
    const struct broker_ids *isr = p->leadership.isr;
    for (uint32_t i = 0; i < isr->n; i++) {
        if (!broker_ids_contain(p->replicas, isr->id[i])) {
            batch_stop_replica(c, p, isr->id[i], true);
        }
    }
}

void strangers_expel_all(struct controller *c)
{
    g_autoptr(GArray) writes = state_writes_new();
    struct partition_iter it = partition_iter(&c->ctx);
    for (struct partition *p; (p = partition_iter_next(&it));) {
        if (strangers_are_in_sync(p)) {
            struct state_write w = {.p = p, .next = p->leadership};
            broker_ids_ref(w.next.isr);
            stop_strangers(c, p);
            expel(c, p, &w.next);
            g_array_append_val(writes, w);
        }
    }
    write_partition_states(c, writes);
    for (guint i = 0; i < writes->len; i++) {
        struct state_write *w = &g_array_index(writes, struct state_write, i);
        if (w->rc == ZOK) {
            partition_take_leadership(c, w->p, &w->next);
        }
    }
}

/* ---- later ---- */

static void plan_one(struct controller *c, struct partition *p, GArray *writes)
{
    struct state_write w = {.p = p};
    if (deletion_decides(p->topic) || !strangers_are_in_sync(p) || read_partition_state(c, p, &w.next) != ZOK) {
        return;
    }
    if (election_is_outdated(c, p, w.next.controller_epoch) || !any_to_expel(p, w.next.isr)) {
        leader_and_isr_clear(&w.next);
        return;
    }
    expel(c, p, &w.next);
    g_array_append_val(writes, w);
}

void strangers_expel(struct controller *c, GPtrArray *partitions)
{
    g_autoptr(GPtrArray) todo = g_ptr_array_copy(partitions, NULL, NULL);
    g_autoptr(GPtrArray) leaderless = g_ptr_array_new();
    while (todo->len && !c->moved) {
        g_autoptr(GArray) writes = state_writes_new();
        for (guint i = 0; i < todo->len; i++) {
            plan_one(c, todo->pdata[i], writes);
        }
        write_partition_states(c, writes);
        g_ptr_array_set_size(todo, 0);
        for (guint i = 0; i < writes->len; i++) {
            struct state_write *w = &g_array_index(writes, struct state_write, i);
            if (w->rc == ZOK) {
                partition_take_leadership(c, w->p, &w->next);
                batch_leader_and_isr_all(c, w->p, w->p->replicas, false);
                if (w->p->leadership.leader == LEADER_NONE) {
                    g_ptr_array_add(leaderless, w->p);
                }
            } else if (w->rc == ZBADVERSION) {
                g_ptr_array_add(todo, w->p);
            }
        }
    }
    partitions_change_state(c, leaderless, PARTITION_OFFLINE);
}
