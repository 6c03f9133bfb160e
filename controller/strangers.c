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

/* ---- which, and when ---- */

/* False: nothing to do, or it cannot be done now. */
static bool plan(struct controller *c, struct partition *p, struct leader_and_isr *ret)
{
    if (read_partition_state(c, p, ret) != ZOK) {
        return false;
    }
    if (election_is_outdated(c, p, ret->controller_epoch) || !any_to_expel(p, ret->isr)) {
        leader_and_isr_clear(ret);
        return false;
    }
    expel(c, p, ret);
    return true;
}

static void stop(struct controller *c, struct partition *p, const struct broker_ids *isr)
{
    for (uint32_t i = 0; i < isr->n; i++) {
        if (!broker_ids_contain(p->replicas, isr->id[i])) {
            batch_stop_replica(c, p, isr->id[i], true);
        }
    }
}

/* Returns those that have none any more. `delete`: StopReplica for them goes into the batch, now that they are out. */
static GPtrArray *expel_from(struct controller *c, GPtrArray *partitions, bool delete)
{
    g_autoptr(GPtrArray) todo = g_ptr_array_copy(partitions, NULL, NULL);
    GPtrArray *done = g_ptr_array_new();
    while (todo->len && !c->moved) {
        g_autoptr(GArray) writes = state_writes_new();
        for (guint i = 0; i < todo->len; i++) {
            struct state_write w = {.p = todo->pdata[i]};
            if (plan(c, w.p, &w.next)) {
                g_array_append_val(writes, w);
            }
        }
        write_partition_states(c, writes);
        g_ptr_array_set_size(todo, 0);
        for (guint i = 0; i < writes->len; i++) {
            struct state_write *w = &g_array_index(writes, struct state_write, i);
            if (w->rc == ZOK) {
                if (delete) {
                    stop(c, w->p, w->p->leadership.isr);
                }
                partition_take_leadership(c, w->p, &w->next);
                g_ptr_array_add(done, w->p);
            } else if (w->rc == ZBADVERSION) {
                g_ptr_array_add(todo, w->p);
            }
        }
    }
    return done;
}

/* Tells the replicas. A leader among the strangers leaves its partition offline. */
static void tell(struct controller *c, GPtrArray *partitions)
{
    g_autoptr(GPtrArray) leaderless = g_ptr_array_new();
    for (guint i = 0; i < partitions->len; i++) {
        struct partition *p = partitions->pdata[i];
        batch_leader_and_isr_all(c, p, p->replicas, false);
        if (p->leadership.leader == LEADER_NONE) {
            g_ptr_array_add(leaderless, p);
        }
    }
    partitions_change_state(c, leaderless, PARTITION_OFFLINE);
}

static GPtrArray *find_all(struct controller *c)
{
    GPtrArray *found = g_ptr_array_new();
    struct partition_iter it = partition_iter(&c->ctx);
    for (struct partition *p; (p = partition_iter_next(&it));) {
        if (strangers_are_in_sync(p)) {
            g_ptr_array_add(found, p);
        }
    }
    return found;
}

void strangers_startup(struct controller *c)
{
    g_autoptr(GPtrArray) all = find_all(c);
    g_autoptr(GPtrArray) done = expel_from(c, all, true);
}

void strangers_retry(struct controller *c)
{
    g_autoptr(GPtrArray) all = find_all(c);
    g_autoptr(GPtrArray) done = expel_from(c, all, true);
    tell(c, done);
}

void strangers_expel(struct controller *c, GPtrArray *partitions)
{
    g_autoptr(GPtrArray) with = g_ptr_array_new();
    for (guint i = 0; i < partitions->len; i++) {
        struct partition *p = partitions->pdata[i];
        if (!deletion_decides(p->topic) && strangers_are_in_sync(p)) {
            g_ptr_array_add(with, p);
        }
    }
    g_autoptr(GPtrArray) done = expel_from(c, with, false);
    tell(c, done);
}
