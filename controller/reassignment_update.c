/* Step U of a reassignment: the new assignment is written to the topic's node, then it is in memory. What an earlier
 * request had added, and this one does not want, goes. */
#include "controller/reassignment_core.h"

/* The in-sync set as the tree has it now, which a hand may have rewritten, or as last known. New reference; NULL: the
 * partition has none. */
static struct broker_ids *in_sync_set(struct controller *c, const struct partition *p)
{
    struct leader_and_isr l;
    if (!p->has_leadership) {
        return NULL;
    }
    return read_partition_state(c, p, &l) == ZOK ? l.isr : broker_ids_ref(p->leadership.isr);
}

/* What an earlier request has added is not part of the origin, and goes if the new request does not want it. But when
 * that request died in step B nobody of the origin may be in sync any more: then all stay until the target is. */
static struct broker_ids *origin_to_keep(struct controller *c, const struct partition *p)
{
    struct broker_ids *origin = partition_origin(&c->ctx, p);
    struct broker_ids *isr = in_sync_set(c, p);
    bool in_sync = !isr;
    for (uint32_t i = 0; isr && i < origin->n; i++) {
        in_sync = in_sync || broker_ids_contain(isr, origin->id[i]);
    }
    broker_ids_unref(isr);
    if (in_sync) {
        return origin;
    }
    broker_ids_unref(origin);
    return broker_ids_ref(p->replicas);
}

/* ReplicaAssignment.reassignTo: the target's order leads, the rest of the origin follows. */
static void assign_target(struct controller *c, struct partition *p, const struct broker_ids *target)
{
    struct broker_ids *origin = origin_to_keep(c, p);
    struct broker_ids *rest = context_without(&c->ctx, origin, target);
    g_autofree int32_t *all = g_new(int32_t, target->n + rest->n + 1);
    memcpy(all, target->id, target->n * sizeof(*all));
    memcpy(all + target->n, rest->id, rest->n * sizeof(*all));
    struct broker_ids *replicas = broker_ids_new(all, target->n + rest->n);
    struct broker_ids *adding = context_without(&c->ctx, replicas, origin);
    partition_assign(&c->ctx, p, replicas, adding, rest);
    broker_ids_unref(origin);
}

static bool changed(const struct before *r)
{
    return !broker_ids_equal(r->replicas, r->p->replicas) || !broker_ids_equal(r->adding, r->p->adding) ||
           !broker_ids_equal(r->removing, r->p->removing);
}

/* Partitions whose leader is among those that are dropped. */
static GPtrArray *led_by_dropped(GPtrArray *partitions)
{
    GPtrArray *led = g_ptr_array_new();
    for (guint i = 0; i < partitions->len; i++) {
        struct partition *p = partitions->pdata[i];
        if (p->has_leadership && p->leadership.leader != LEADER_NONE &&
                !broker_ids_contain(p->replicas, p->leadership.leader)) {
            g_ptr_array_add(led, p);
        }
    }
    return led;
}

/* What the old list had and the new one has not. A member of the in-sync set leaves it with a new leader epoch, and
 * only then it is deleted; the others wait for that of step A or B. Until it is written a leader before 2.7, which
 * writes the set itself, may take in one that has fetched, and is deleted meanwhile. (Kafka stops all at once.) */
static void add_dropped(struct controller *c, const struct before *r, GArray *now)
{
    struct broker_ids *dropped = context_without(&c->ctx, r->replicas, r->p->replicas);
    struct broker_ids *isr = dropped->n ? in_sync_set(c, r->p) : NULL;
    for (uint32_t i = 0; i < dropped->n; i++) {
        if (!isr || broker_ids_contain(isr, dropped->id[i])) {
            replicas_add(now, r->p, dropped->id[i]);
        }
    }
    broker_ids_unref(isr);
    broker_ids_unref(dropped);
}

void reassignment_update(struct controller *c, GPtrArray *partitions, GPtrArray *targets, GPtrArray *taken)
{
    g_autoptr(GArray) all = reassignment_before_new();
    g_autoptr(GPtrArray) to_save = g_ptr_array_new();
    g_autoptr(GArray) now = replicas_new();
    for (guint i = 0; i < partitions->len; i++) {
        struct partition *p = partitions->pdata[i];
        reassignment_before_add(all, p);
        assign_target(c, p, targets->pdata[i]);
        if (changed(&g_array_index(all, struct before, i))) {
            g_ptr_array_add(to_save, p);
        }
    }
    reassignment_save_topics(c, to_save);
    for (guint i = 0; i < all->len; i++) {
        struct before *r = &g_array_index(all, struct before, i);
        if (r->p->topic->unsaved && changed(r)) {
            reassignment_roll_back(c, r);
        } else {
            add_dropped(c, r, now);
            partition_set_reassigning(r->p, true);
            g_ptr_array_add(taken, r->p);
        }
    }
    for (guint i = 0; i < all->len; i++) { /* what was not written before is not written yet */
        const struct before *r = &g_array_index(all, struct before, i);
        if (r->p->topic->unsaved) {
            r->p->topic->unsaved = r->unsaved;
        }
    }
    g_autoptr(GPtrArray) led = led_by_dropped(taken);
    reassignment_drop(c, now);
    partitions_change_state(c, led, PARTITION_OFFLINE);
    reassignment_to_new(c, led);
    g_autoptr(GPtrArray) elected = partitions_elect(c, led, ELECT_OFFLINE);
}
