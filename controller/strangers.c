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

struct expulsion {
    bool stop;       /* StopReplica for them goes into the batch, when they are out */
    GPtrArray *done; /* partitions that have none any more */
};

static bool expel_now(struct controller *c, struct partition *p, int rc, struct leader_and_isr *l, void *arg)
{
    if (rc != ZOK || election_is_outdated(c, p, l->controller_epoch) || !any_to_expel(p, l->isr)) {
        return false;
    }
    expel(c, p, l);
    return true;
}

static void expelled(struct controller *c, struct partition *p, struct leader_and_isr *l, void *arg)
{
    const struct expulsion *x = arg;
    const struct broker_ids *before = p->leadership.isr;
    for (uint32_t i = 0; x->stop && i < before->n; i++) {
        if (!broker_ids_contain(p->replicas, before->id[i])) {
            batch_stop_replica(c, p, before->id[i], true);
        }
    }
    partition_take_leadership(c, p, l);
    g_ptr_array_add(x->done, p);
}

static GPtrArray *expel_from(struct controller *c, GPtrArray *partitions, bool stop)
{
    struct expulsion x = {stop, g_ptr_array_new()};
    rewrite_partition_states(c, partitions, &(struct rewrite){expel_now, expelled, &x});
    return x.done;
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
