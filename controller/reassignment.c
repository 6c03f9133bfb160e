/* Partition reassignment (KafkaController.onPartitionReassignment, KIP-455). Replicas R, of them adding A and removing
 * M; origin = R - A, target = R - M. The steps are Kafka's, each done for all partitions at hand in one pipeline:
 *
 *   U  write the topic's node, then memory; replicas that an earlier request had added go, after a new leader epoch:
 *      that of their leaving the in-sync set, or of A or B
 *   A  not yet in sync: leader epoch + 1, LeaderAndIsr to origin and adding, adding ones to NewReplica
 *   B  in sync: leader into the target, removing ones leave the in-sync set and are deleted, the topic's node last,
 *      because it is the only record of the origin */
#include "controller/reassignment_core.h"

/* ---- what the steps share ---- */

static void clear_before(gpointer arg)
{
    struct before *r = arg;
    broker_ids_unref(r->replicas);
    broker_ids_unref(r->adding);
    broker_ids_unref(r->removing);
}

GArray *reassignment_before_new(void)
{
    GArray *all = g_array_new(FALSE, FALSE, sizeof(struct before));
    g_array_set_clear_func(all, clear_before);
    return all;
}

void reassignment_before_add(GArray *all, struct partition *p)
{
    struct before r = {.p = p,
            .replicas = broker_ids_ref(p->replicas),
            .adding = broker_ids_ref(p->adding),
            .removing = broker_ids_ref(p->removing),
            .unsaved = p->topic->unsaved};
    g_array_append_val(all, r);
}

void reassignment_roll_back(struct controller *c, struct before *r)
{
    partition_assign(
            &c->ctx, r->p, g_steal_pointer(&r->replicas), g_steal_pointer(&r->adding), g_steal_pointer(&r->removing));
}

void reassignment_save_topics(struct controller *c, GPtrArray *partitions)
{
    g_autoptr(GPtrArray) topics = g_ptr_array_new();
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < partitions->len; i++) {
        struct topic *t = ((struct partition *)partitions->pdata[i])->topic;
        t->unsaved = TOPIC_REASSIGNED;
        if (g_hash_table_add(seen, t)) {
            g_ptr_array_add(topics, t);
        }
    }
    topics_save(c, topics);
}

void reassignment_to_new(struct controller *c, GPtrArray *partitions)
{
    g_autoptr(GArray) adding = replicas_new();
    for (guint i = 0; i < partitions->len; i++) {
        struct partition *p = partitions->pdata[i];
        for (uint32_t r = 0; r < p->adding->n; r++) {
            /* When resumed they have a state already. */
            if (replica_get_state(p, p->adding->id[r]) == REPLICA_NON_EXISTENT) {
                replicas_add(adding, p, p->adding->id[r]);
            }
        }
    }
    replicas_change_state(c, adding, REPLICA_NEW);
}

/* ---- is it complete? ---- */

/* The target is a subset of the in-sync set as the tree has it now. */
static bool is_complete(struct controller *c, struct partition *p)
{
    if (!partition_is_being_reassigned(p)) {
        return true;
    }
    struct leader_and_isr l;
    if (read_partition_state(c, p, &l) != ZOK) {
        return false;
    }
    bool complete = true;
    for (uint32_t i = 0; i < p->replicas->n; i++) {
        int32_t id = p->replicas->id[i];
        complete = complete && (broker_ids_contain(p->removing, id) || broker_ids_contain(l.isr, id));
    }
    leader_and_isr_clear(&l);
    return complete;
}

/* ---- step A ---- */

/* Partitions of `wanted` that are not among `done`. */
static GPtrArray *others(GPtrArray *wanted, GPtrArray *done)
{
    GPtrArray *rest = g_ptr_array_new();
    for (guint i = 0; i < done->len; i++) {
        ((struct partition *)done->pdata[i])->scratch = 0;
    }
    for (guint i = 0; i < wanted->len; i++) {
        if (((struct partition *)wanted->pdata[i])->scratch < 0) {
            g_ptr_array_add(rest, wanted->pdata[i]);
        }
    }
    for (guint i = 0; i < done->len; i++) {
        ((struct partition *)done->pdata[i])->scratch = -1;
    }
    return rest;
}

/* Those of `wanted` whose leader does not learn of the new list, since the new epoch could not be written. Until then
 * it may take in what is to be removed. */
static GPtrArray *not_told(struct controller *c, GPtrArray *wanted, GPtrArray *renewed)
{
    GPtrArray *rest = others(wanted, renewed);
    for (guint i = rest->len; i-- > 0;) {
        if (partition_state_is_missing(c, rest->pdata[i])) { /* no epoch to raise, no set that a leader could write */
            g_ptr_array_remove_index_fast(rest, i);
        }
    }
    return rest;
}

static void drop_from(struct controller *c, GPtrArray *partitions)
{
    g_autoptr(GArray) dropped = replicas_new();
    for (guint i = 0; i < partitions->len; i++) {
        reassignment_add_dropped(partitions->pdata[i], dropped);
    }
    reassignment_drop(c, dropped);
}

static void start_adding(struct controller *c, GPtrArray *partitions)
{
    g_autoptr(GPtrArray) bumped = g_ptr_array_copy(partitions, NULL, NULL);
    partitions_bump_leader_epoch(c, bumped);
    for (guint i = 0; i < bumped->len; i++) {
        struct partition *p = bumped->pdata[i];
        for (uint32_t r = 0; r < p->replicas->n; r++) {
            int32_t id = p->replicas->id[r];
            /* A new replica may be made on a broker that has lost another log dir (KAFKA-10314). */
            batch_leader_and_isr(c, p, id, broker_ids_contain(p->adding, id));
        }
    }
    batch_send(c);
    reassignment_to_new(c, bumped);
    g_autoptr(GPtrArray) untold = not_told(c, partitions, bumped);
    g_autoptr(GPtrArray) told = others(partitions, untold);
    drop_from(c, told);
}

/* A partition that never had a leader, because none of its brokers was there: the new ones may begin it. */
static void begin_without_leader(struct controller *c, GPtrArray *partitions)
{
    g_autoptr(GPtrArray) leaderless = g_ptr_array_new();
    g_autoptr(GArray) replicas = replicas_new();
    for (guint i = 0; i < partitions->len; i++) {
        struct partition *p = partitions->pdata[i];
        if (!p->has_leadership && p->status == PARTITION_NEW) {
            g_ptr_array_add(leaderless, p);
            replicas_add_all(replicas, p, p->adding);
        }
    }
    if (leaderless->len) {
        reassignment_to_new(c, leaderless);
        g_autoptr(GPtrArray) elected = partitions_elect(c, leaderless, ELECT_OFFLINE);
        replicas_change_state(c, replicas, REPLICA_ONLINE);
    }
}

/* ---- step B ---- */

static void to_online(struct controller *c, GPtrArray *partitions)
{
    g_autoptr(GArray) adding = replicas_new();
    for (guint i = 0; i < partitions->len; i++) {
        struct partition *p = partitions->pdata[i];
        replicas_add_all(adding, p, p->adding);
        for (uint32_t r = 0; r < p->replicas->n; r++) { /* that an earlier request has added, and this one kept */
            int32_t id = p->replicas->id[r];
            if (replica_get_state(p, id) == REPLICA_NEW && !broker_ids_contain(p->adding, id)) {
                replicas_add(adding, p, id);
            }
        }
    }
    replicas_change_state(c, adding, REPLICA_ONLINE);
}

/* moveReassignedPartitionLeaderIfRequired: a leader outside the target, or not online, is replaced; another one only
 * takes notice by a new epoch. Returns those that could not be told. */
static GPtrArray *move_leaders(struct controller *c, GPtrArray *partitions)
{
    g_autoptr(GPtrArray) elect = g_ptr_array_new();
    g_autoptr(GPtrArray) bump = g_ptr_array_new();
    for (guint i = 0; i < partitions->len; i++) {
        struct partition *p = partitions->pdata[i];
        int32_t leader = p->leadership.leader;
        if (p->has_leadership) {
            bool stays = broker_ids_contain(p->replicas, leader) && replica_is_online(&c->ctx, p, leader);
            g_ptr_array_add(stays ? bump : elect, p);
        }
    }
    g_autoptr(GPtrArray) elected = partitions_elect(c, elect, ELECT_REASSIGN);
    g_autoptr(GPtrArray) left = others(elect, elected);
    for (guint i = 0; i < left->len; i++) { /* a leader that cannot be replaced has to know its replicas, too */
        struct partition *p = left->pdata[i];
        if (broker_ids_contain(p->replicas, p->leadership.leader)) {
            g_ptr_array_add(bump, p);
        }
    }
    g_autoptr(GPtrArray) renewed = g_ptr_array_copy(bump, NULL, NULL);
    partitions_renew(c, renewed);
    batch_send(c);
    return not_told(c, bump, renewed);
}

/* B2, and what was before. */
static GArray *assign_targets(struct controller *c, GPtrArray *partitions)
{
    GArray *before = reassignment_before_new();
    for (guint i = 0; i < partitions->len; i++) {
        struct partition *p = partitions->pdata[i];
        reassignment_before_add(before, p);
        partition_assign(
                &c->ctx, p, partition_target(&c->ctx, p), broker_ids_ref(c->ctx.none), broker_ids_ref(c->ctx.none));
    }
    return before;
}

/* B1 to B3, as far as the new leader epoch. Returns what was before. */
static GArray *lead_from_targets(struct controller *c, GPtrArray *partitions)
{
    reassignment_to_new(c, partitions); /* those that were in sync before this step came to them */
    to_online(c, partitions);
    GArray *before = assign_targets(c, partitions);
    g_autoptr(GPtrArray) untold = move_leaders(c, partitions);
    for (guint i = 0; i < untold->len; i++) {
        ((struct partition *)untold->pdata[i])->scratch = 0;
    }
    for (guint i = 0; i < before->len; i++) {
        struct before *r = &g_array_index(before, struct before, i);
        r->told = r->p->scratch < 0;
    }
    for (guint i = 0; i < untold->len; i++) {
        ((struct partition *)untold->pdata[i])->scratch = -1;
    }
    return before;
}

/* A hand may have rewritten the state meanwhile: what is to be removed is then the only one that has the data. */
static bool target_is_in_sync(const struct partition *p)
{
    for (uint32_t i = 0; p->has_leadership && i < p->leadership.isr->n; i++) {
        if (broker_ids_contain(p->replicas, p->leadership.isr->id[i])) {
            return true;
        }
    }
    return !p->has_leadership;
}

/* Have those that the assignment has no more left the in-sync set? */
static bool have_left(const struct partition *p)
{
    for (uint32_t i = 0; i < p->n_states; i++) {
        enum replica_state state = p->states[i].state;
        if (!broker_ids_contain(p->replicas, p->states[i].broker) && state != REPLICA_OFFLINE &&
                state != REPLICA_NON_EXISTENT) {
            return false;
        }
    }
    return target_is_in_sync(p);
}

/* The last member of an in-sync set may be a broker that is down: a partition without a leader is elected for when it
 * comes. */
static void take_leaderless_offline(struct controller *c, GPtrArray *partitions)
{
    g_autoptr(GPtrArray) leaderless = g_ptr_array_new();
    for (guint i = 0; i < partitions->len; i++) {
        struct partition *p = partitions->pdata[i];
        if (p->has_leadership && p->leadership.leader == LEADER_NONE) {
            g_ptr_array_add(leaderless, p);
        }
    }
    partitions_change_state(c, leaderless, PARTITION_OFFLINE);
    g_autoptr(GPtrArray) elected = partitions_elect(c, leaderless, ELECT_OFFLINE);
}

static void add_online(struct controller *c, struct partition *p, GArray *replicas)
{
    for (uint32_t i = 0; i < p->removing->n; i++) {
        if (replica_is_online(&c->ctx, p, p->removing->id[i])) {
            replicas_add(replicas, p, p->removing->id[i]);
        }
    }
}

/* Those that have not left stay replicas for now, and one of them leads. */
static void take_back(struct controller *c, GArray *removing, GPtrArray *partitions)
{
    replicas_change_state(c, removing, REPLICA_ONLINE);
    take_leaderless_offline(c, partitions);
}

/* B4. Those whose state could not be written, or would be without a member, go on being reassigned: nothing of them may
 * be deleted yet. `partitions` are then the others. */
static void shrink(struct controller *c, GPtrArray *partitions, GArray *before, GArray *removed)
{
    g_autoptr(GArray) removing = replicas_new();
    g_autoptr(GArray) stay = replicas_new();
    g_autoptr(GPtrArray) unfinished = g_ptr_array_new();
    for (guint i = 0; i < before->len; i++) {
        const struct before *r = &g_array_index(before, struct before, i);
        if (r->told) {
            reassignment_add_dropped(r->p, removing);
        }
    }
    replicas_change_state(c, removing, REPLICA_OFFLINE);
    g_ptr_array_set_size(partitions, 0);
    for (guint i = 0; i < before->len; i++) {
        struct before *r = &g_array_index(before, struct before, i);
        if (r->told && have_left(r->p)) {
            reassignment_add_dropped(r->p, removed);
            g_ptr_array_add(partitions, r->p);
        } else {
            reassignment_roll_back(c, r);
            add_online(c, r->p, stay);
            g_ptr_array_add(unfinished, r->p);
        }
    }
    take_back(c, stay, unfinished);
}

/* Step B. */
static void finish(struct controller *c, GPtrArray *partitions)
{
    if (partitions->len == 0) {
        return;
    }
    g_autoptr(GArray) before = lead_from_targets(c, partitions);
    g_autoptr(GArray) removed = replicas_new();
    shrink(c, partitions, before, removed);
    reassignment_delete(c, removed);
    take_leaderless_offline(c, partitions);
    reassignment_save_topics(c, partitions);
    for (guint i = 0; i < partitions->len && !c->moved; i++) {
        struct partition *p = partitions->pdata[i];
        g_autofree char *ids = broker_ids_text(p->replicas);
        partition_set_reassigning(p, false);
        emit(c, "controller %d partition %s-%d reassigned to %s", c->broker_id, p->topic->ref->name, p->id, ids);
        batch_update_metadata(c, p);
    }
    reassignment_file_done(c, partitions);
    batch_send(c);
    const struct topic *last = NULL;
    for (guint i = 0; i < partitions->len; i++) {
        const struct topic *t = ((struct partition *)partitions->pdata[i])->topic;
        if (t != last) { /* it looks at all partitions */
            deletion_resume_topic(c, t->ref->name);
        }
        last = t;
    }
    deletion_run(c);
}

/* ---- all of it ---- */

/* KafkaController.onPartitionReassignment, after step U. */
static void carry_on(struct controller *c, GPtrArray *partitions)
{
    g_autoptr(GPtrArray) complete = g_ptr_array_new();
    g_autoptr(GPtrArray) incomplete = g_ptr_array_new();
    begin_without_leader(c, partitions);
    for (guint i = 0; i < partitions->len; i++) {
        struct partition *p = partitions->pdata[i];
        if (is_complete(c, p)) {
            g_ptr_array_add(complete, p);
        } else if (p->has_leadership) {
            g_ptr_array_add(incomplete, p);
        }
    }
    start_adding(c, incomplete);
    finish(c, complete);
}

void reassignment_start(struct controller *c, GPtrArray *partitions, GPtrArray *targets)
{
    g_autoptr(GPtrArray) taken = g_ptr_array_new();
    for (guint i = 0; i < partitions->len; i++) {
        const struct partition *p = partitions->pdata[i];
        g_autofree char *ids = broker_ids_text(targets->pdata[i]);
        emit(c, "controller %d partition %s-%d reassignment to %s", c->broker_id, p->topic->ref->name, p->id, ids);
    }
    reassignment_update(c, partitions, targets, taken);
    carry_on(c, taken);
}

void reassignment_check(struct controller *c, GPtrArray *partitions)
{
    g_autoptr(GPtrArray) complete = g_ptr_array_new();
    for (guint i = 0; i < partitions->len; i++) {
        struct partition *p = partitions->pdata[i];
        if (p->reassigning && is_complete(c, p)) {
            g_ptr_array_add(complete, p);
        }
    }
    finish(c, complete);
}

/* Those that are being reassigned and that `wanted` says yes to, in a fixed order. */
static GPtrArray *find_reassigning(
        struct controller *c, bool (*wanted)(const struct partition *, const void *), const void *arg)
{
    GPtrArray *found = g_ptr_array_new();
    GHashTableIter it;
    gpointer value;
    g_hash_table_iter_init(&it, c->ctx.topics);
    while (g_hash_table_iter_next(&it, NULL, &value)) {
        const struct topic *t = value;
        for (guint i = 0; t->n_reassigning && i < t->partitions->len; i++) {
            struct partition *p = t->partitions->pdata[i];
            if (p->reassigning && wanted(p, arg)) {
                g_ptr_array_add(found, p);
            }
        }
    }
    g_ptr_array_sort(found, partition_compare);
    return found;
}

static bool aims_at(const struct partition *p, const void *brokers)
{
    const GArray *ids = brokers;
    for (guint i = 0; i < ids->len; i++) {
        int32_t id = g_array_index(ids, int32_t, i);
        if (broker_ids_contain(p->replicas, id) && !broker_ids_contain(p->removing, id)) {
            return true;
        }
    }
    return false;
}

void reassignment_brokers_started(struct controller *c, const GArray *brokers)
{
    g_autoptr(GPtrArray) found = find_reassigning(c, aims_at, brokers);
    carry_on(c, found);
}

/* Has step A, or B, not been done, because the state could not be written? */
static bool lacks_a_step(const struct partition *p)
{
    for (uint32_t i = 0; i < p->adding->n; i++) {
        if (replica_get_state(p, p->adding->id[i]) == REPLICA_NON_EXISTENT) {
            return true;
        }
    }
    return reassignment_has_dropped(p);
}

static bool is_any(const struct partition *p, const void *unused)
{
    return true;
}

void reassignment_retry(struct controller *c)
{
    g_autoptr(GPtrArray) found = find_reassigning(c, is_any, NULL);
    g_autoptr(GPtrArray) begin = g_ptr_array_new();
    for (guint i = 0; i < found->len; i++) {
        if (lacks_a_step(found->pdata[i])) {
            g_ptr_array_add(begin, found->pdata[i]);
        }
    }
    carry_on(c, begin);
    reassignment_check(c, found);
}

static bool not_started(const struct partition *p, const void *started)
{
    return !g_hash_table_contains((GHashTable *)(void *)(uintptr_t)started, p);
}

void reassignment_resume_all(struct controller *c, GHashTable *started)
{
    g_autoptr(GPtrArray) found = find_reassigning(c, not_started, started);
    carry_on(c, found);
}
