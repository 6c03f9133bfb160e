/* Partition reassignment (KafkaController.onPartitionReassignment, KIP-455). Replicas R, of them adding A and removing
 * M; origin = R - A, target = R - M. The steps are Kafka's, each done for all partitions at hand in one pipeline:
 *
 *   U  write the topic's node, then memory; replicas that an earlier request had added go, after a new leader epoch:
 *      that of their leaving the in-sync set, or of A or B
 *   A  not yet in sync: leader epoch + 1, LeaderAndIsr to origin and adding, adding ones to NewReplica
 *   B  in sync: leader into the target, removing ones leave the in-sync set and are deleted, the topic's node last,
 *      because it is the only record of the origin */
#include "controller/core.h"

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

/* ---- step U ---- */

struct request {
    struct partition *p;
    struct broker_ids *replicas, *adding, *removing; /* as they were */
};

static void clear_request(gpointer arg)
{
    struct request *r = arg;
    broker_ids_unref(r->replicas);
    broker_ids_unref(r->adding);
    broker_ids_unref(r->removing);
}

static bool changed(const struct request *r)
{
    return !broker_ids_equal(r->replicas, r->p->replicas) || !broker_ids_equal(r->adding, r->p->adding) ||
           !broker_ids_equal(r->removing, r->p->removing);
}

static void save_topics_of(struct controller *c, GPtrArray *partitions)
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

/* The topic's node could not be written: this request is as if it had not been made. */
static void roll_back(struct controller *c, struct request *r)
{
    partition_assign(
            &c->ctx, r->p, g_steal_pointer(&r->replicas), g_steal_pointer(&r->adding), g_steal_pointer(&r->removing));
}

/* From OfflineReplica on, without waiting for an answer. As in Kafka the directory of a broker that is down stays where
 * it is, without a role. */
static void delete_replicas(struct controller *c, GArray *replicas)
{
    static const enum replica_state steps[] = {
            REPLICA_DELETION_STARTED, REPLICA_DELETION_SUCCESSFUL, REPLICA_NON_EXISTENT};
    for (size_t i = 0; replicas->len && i < G_N_ELEMENTS(steps); i++) {
        replicas_change_state(c, replicas, steps[i]);
    }
}

/* In the in-sync set as the tree has it now? */
static bool is_in_sync(struct controller *c, const struct partition *p, int32_t broker)
{
    struct leader_and_isr l;
    if (read_partition_state(c, p, &l) != ZOK) {
        return false;
    }
    bool in_sync = broker_ids_contain(l.isr, broker);
    leader_and_isr_clear(&l);
    return in_sync;
}

/* U3: what the old list had and the new one has not. A member of the in-sync set leaves it with a new leader epoch, and
 * only then it is deleted; the others wait for that of step A or B. Until it is written a leader before 2.7, which
 * writes the set itself, may take in one that has fetched, and is deleted meanwhile. (Kafka stops all at once.) */
static void add_dropped(struct controller *c, const struct request *r, GArray *now, GArray *later)
{
    for (uint32_t i = 0; i < r->replicas->n; i++) {
        int32_t id = r->replicas->id[i];
        if (!broker_ids_contain(r->p->replicas, id)) {
            bool wait = r->p->has_leadership && !is_in_sync(c, r->p, id);
            replicas_add(wait ? later : now, r->p, id);
        }
    }
}

/* The last member of an in-sync set stays one (a hand has rewritten it in this moment): it keeps its directory. */
static void drop(struct controller *c, GArray *dropped)
{
    g_autoptr(GArray) out = replicas_new();
    replicas_change_state(c, dropped, REPLICA_OFFLINE);
    for (guint i = 0; i < dropped->len; i++) {
        const struct replica_of *r = &g_array_index(dropped, struct replica_of, i);
        if (!r->p->has_leadership || !broker_ids_contain(r->p->leadership.isr, r->broker)) {
            g_array_append_val(out, *r);
        }
    }
    delete_replicas(c, out);
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

static void to_new(struct controller *c, GPtrArray *partitions)
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

/* Writes the new assignments. Those that are in the tree then are in `taken`; the others wait for a retry. Replicas
 * that are to be dropped when the leader epoch is a new one are added to `dropped`. */
static void update_assignments(
        struct controller *c, GPtrArray *partitions, GPtrArray *targets, GPtrArray *taken, GArray *dropped)
{
    g_autoptr(GArray) requests = g_array_new(FALSE, FALSE, sizeof(struct request));
    g_array_set_clear_func(requests, clear_request);
    g_autoptr(GPtrArray) to_save = g_ptr_array_new();
    g_autoptr(GArray) now = replicas_new();
    for (guint i = 0; i < partitions->len; i++) {
        struct partition *p = partitions->pdata[i];
        struct request r = {p, broker_ids_ref(p->replicas), broker_ids_ref(p->adding), broker_ids_ref(p->removing)};
        assign_target(c, p, targets->pdata[i]);
        if (changed(&r)) {
            g_ptr_array_add(to_save, p);
        }
        g_array_append_val(requests, r);
    }
    save_topics_of(c, to_save);
    for (guint i = 0; i < requests->len; i++) {
        struct request *r = &g_array_index(requests, struct request, i);
        if (r->p->topic->unsaved && changed(r)) {
            roll_back(c, r);
        } else {
            add_dropped(c, r, now, dropped);
            partition_set_reassigning(r->p, true);
            g_ptr_array_add(taken, r->p);
        }
    }
    for (guint i = 0; i < to_save->len; i++) {
        ((struct partition *)to_save->pdata[i])->topic->unsaved = TOPIC_SAVED;
    }
    g_autoptr(GPtrArray) led = led_by_dropped(taken);
    drop(c, now);
    partitions_change_state(c, led, PARTITION_OFFLINE);
    to_new(c, led);
    g_autoptr(GPtrArray) elected = partitions_elect(c, led, ELECT_OFFLINE);
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
    to_new(c, bumped);
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
        to_new(c, leaderless);
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
 * takes notice by a new epoch. */
static void move_leaders(struct controller *c, GPtrArray *partitions)
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
    for (guint i = 0; i < elect->len; i++) { /* a leader that cannot be replaced has to know its replicas, too */
        struct partition *p = elect->pdata[i];
        if (broker_ids_contain(p->replicas, p->leadership.leader) && !g_ptr_array_find(elected, p, NULL)) {
            g_ptr_array_add(bump, p);
        }
    }
    partitions_renew(c, bump);
    batch_send(c);
}

/* B2, and what was before. */
static GArray *assign_targets(struct controller *c, GPtrArray *partitions)
{
    GArray *before = g_array_new(FALSE, FALSE, sizeof(struct request));
    g_array_set_clear_func(before, clear_request);
    for (guint i = 0; i < partitions->len; i++) {
        struct partition *p = partitions->pdata[i];
        struct request r = {p, broker_ids_ref(p->replicas), broker_ids_ref(p->adding), broker_ids_ref(p->removing)};
        partition_assign(
                &c->ctx, p, partition_target(&c->ctx, p), broker_ids_ref(c->ctx.none), broker_ids_ref(c->ctx.none));
        g_array_append_val(before, r);
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

/* Have the removing ones left the in-sync set? */
static bool have_left(const struct request *r)
{
    if (!target_is_in_sync(r->p)) {
        return false;
    }
    for (uint32_t i = 0; i < r->removing->n; i++) {
        enum replica_state state = replica_get_state(r->p, r->removing->id[i]);
        if (state != REPLICA_OFFLINE && state != REPLICA_NON_EXISTENT) {
            return false;
        }
    }
    return true;
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
 * be deleted yet. */
static void shrink(struct controller *c, GPtrArray *partitions, GArray *before, GArray *removed)
{
    g_autoptr(GArray) removing = replicas_new();
    g_autoptr(GArray) stay = replicas_new();
    g_autoptr(GPtrArray) unfinished = g_ptr_array_new();
    for (guint i = 0; i < before->len; i++) {
        const struct request *r = &g_array_index(before, struct request, i);
        replicas_add_all(removing, r->p, r->removing);
    }
    replicas_change_state(c, removing, REPLICA_OFFLINE);
    g_ptr_array_set_size(partitions, 0);
    for (guint i = 0; i < before->len; i++) {
        struct request *r = &g_array_index(before, struct request, i);
        if (have_left(r)) {
            replicas_add_all(removed, r->p, r->removing);
            g_ptr_array_add(partitions, r->p);
        } else {
            roll_back(c, r);
            add_online(c, r->p, stay);
            g_ptr_array_add(unfinished, r->p);
        }
    }
    take_back(c, stay, unfinished);
}

/* As far as the new leader epoch. Returns what was before. */
static GArray *lead_from_targets(struct controller *c, GPtrArray *partitions)
{
    to_new(c, partitions); /* those that were in sync before this step came to them */
    to_online(c, partitions);
    GArray *before = assign_targets(c, partitions);
    move_leaders(c, partitions);
    return before;
}

static void remove_others(struct controller *c, GPtrArray *partitions, GArray *before)
{
    if (partitions->len == 0) {
        return;
    }
    g_autoptr(GArray) removed = replicas_new();
    shrink(c, partitions, before, removed);
    delete_replicas(c, removed);
    take_leaderless_offline(c, partitions);
    save_topics_of(c, partitions);
    for (guint i = 0; i < partitions->len && !c->moved; i++) {
        struct partition *p = partitions->pdata[i];
        g_autofree char *ids = broker_ids_text(p->replicas);
        partition_set_reassigning(p, false);
        emit(c, "controller %d partition %s-%d reassigned to %s", c->broker_id, p->topic->ref->name, p->id, ids);
        batch_update_metadata(c, p);
    }
    reassignment_file_done(c, partitions);
    batch_send(c);
    for (guint i = 0; i < partitions->len; i++) {
        const struct topic *t = ((struct partition *)partitions->pdata[i])->topic;
        deletion_resume_topic(c, t->ref->name);
    }
    deletion_run(c);
}

/* ---- all of it ---- */

static void finish(struct controller *c, GPtrArray *partitions)
{
    g_autoptr(GArray) before = lead_from_targets(c, partitions);
    remove_others(c, partitions, before);
}

/* KafkaController.onPartitionReassignment, after step U, which has left `dropped`. */
static void carry_on(struct controller *c, GPtrArray *partitions, GArray *dropped)
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
    g_autoptr(GArray) before = lead_from_targets(c, complete);
    drop(c, dropped);
    remove_others(c, complete, before);
}

static void resume(struct controller *c, GPtrArray *partitions)
{
    g_autoptr(GArray) dropped = replicas_new();
    carry_on(c, partitions, dropped);
}

void reassignment_start(struct controller *c, GPtrArray *partitions, GPtrArray *targets)
{
    g_autoptr(GPtrArray) taken = g_ptr_array_new();
    g_autoptr(GArray) dropped = replicas_new();
    for (guint i = 0; i < partitions->len; i++) {
        const struct partition *p = partitions->pdata[i];
        g_autofree char *ids = broker_ids_text(targets->pdata[i]);
        emit(c, "controller %d partition %s-%d reassignment to %s", c->broker_id, p->topic->ref->name, p->id, ids);
    }
    update_assignments(c, partitions, targets, taken, dropped);
    carry_on(c, taken, dropped);
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
    resume(c, found);
}

/* Has step A not been done, because the state could not be written? */
static bool lacks_step_a(const struct partition *p)
{
    for (uint32_t i = 0; i < p->adding->n; i++) {
        if (replica_get_state(p, p->adding->id[i]) == REPLICA_NON_EXISTENT) {
            return true;
        }
    }
    return false;
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
        if (lacks_step_a(found->pdata[i])) {
            g_ptr_array_add(begin, found->pdata[i]);
        }
    }
    resume(c, begin);
    reassignment_check(c, found);
}

static bool not_started(const struct partition *p, const void *started)
{
    return !g_hash_table_contains((GHashTable *)(void *)(uintptr_t)started, p);
}

void reassignment_resume_all(struct controller *c, GHashTable *started)
{
    g_autoptr(GPtrArray) found = find_reassigning(c, not_started, started);
    resume(c, found);
}
