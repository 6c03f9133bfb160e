/* ReplicaStateMachine: the states of replicas, what each transition writes and sends. A batch of transitions is one
 * pipeline of writes and one batch of requests. An invalid transition is skipped; the others of the batch go on. */
#include "controller/core.h"

/* By target: a bit for each valid previous state. */
static const unsigned valid_previous[REPLICA_STATES] = {
        [REPLICA_NEW] = 1u << REPLICA_NON_EXISTENT,
        [REPLICA_ONLINE] =
                1u << REPLICA_NEW | 1u << REPLICA_ONLINE | 1u << REPLICA_OFFLINE | 1u << REPLICA_DELETION_INELIGIBLE,
        [REPLICA_OFFLINE] =
                1u << REPLICA_NEW | 1u << REPLICA_ONLINE | 1u << REPLICA_OFFLINE | 1u << REPLICA_DELETION_INELIGIBLE,
        [REPLICA_DELETION_STARTED] = 1u << REPLICA_OFFLINE,
        [REPLICA_DELETION_SUCCESSFUL] = 1u << REPLICA_DELETION_STARTED,
        [REPLICA_DELETION_INELIGIBLE] = 1u << REPLICA_OFFLINE | 1u << REPLICA_DELETION_STARTED,
        [REPLICA_NON_EXISTENT] = 1u << REPLICA_DELETION_SUCCESSFUL,
};

GArray *replicas_new(void)
{
    return g_array_new(FALSE, FALSE, sizeof(struct replica_of));
}

void replicas_add(GArray *replicas, struct partition *p, int32_t broker)
{
    struct replica_of r = {p, broker};
    g_array_append_val(replicas, r);
}

void replicas_add_all(GArray *replicas, struct partition *p, const struct broker_ids *brokers)
{
    for (uint32_t i = 0; i < brokers->n; i++) {
        replicas_add(replicas, p, brokers->id[i]);
    }
}

void replicas_add_on_broker(struct controller *c, GArray *replicas, int32_t broker)
{
    struct partition_iter it = partition_iter(&c->ctx);
    for (struct partition *p; (p = partition_iter_next(&it));) {
        /* a deletion also waits for one that the assignment has no more */
        if (broker_ids_contain(p->replicas, broker) ||
                (p->topic->deletion && replica_get_state(p, broker) != REPLICA_NON_EXISTENT)) {
            replicas_add(replicas, p, broker);
        }
    }
}

/* ---- one replica ---- */

static void move(struct controller *c, const struct replica_of *r, enum replica_state target)
{
    enum replica_state from = replica_get_state(r->p, r->broker);
    if (c->moved) {
        return;
    }
    replica_set_state(r->p, r->broker, target);
    if (from != target) {
        emit(c, "controller %d replica %s-%d broker %d %s -> %s", c->broker_id, r->p->topic->ref->name, r->p->id,
                r->broker, replica_state_name(from), replica_state_name(target));
    }
}

/* In a deletion replicas are told twice what they are already; elsewhere it is worth a line. */
static void refuse(struct controller *c, const struct replica_of *r, enum replica_state target)
{
    if (r->p->topic->deletion) {
        return;
    }
    emit(c, "controller %d replica %s-%d broker %d %s -> %s refused", c->broker_id, r->p->topic->ref->name, r->p->id,
            r->broker, replica_state_name(replica_get_state(r->p, r->broker)), replica_state_name(target));
}

/* One that leads already, by an unclean election before the first step of its reassignment could be done, has been
 * told. (Kafka refuses the transition; the replica is then unknown, and stays when the topic is deleted.) */
static void to_new(struct controller *c, const struct replica_of *r)
{
    if (!r->p->has_leadership || r->p->leadership.leader != r->broker) {
        batch_leader_and_isr(c, r->p, r->broker, true);
    }
    move(c, r, REPLICA_NEW);
}

static void to_online(struct controller *c, const struct replica_of *r)
{
    if (replica_get_state(r->p, r->broker) != REPLICA_NEW) {
        batch_leader_and_isr(c, r->p, r->broker, false);
    }
    move(c, r, REPLICA_ONLINE);
}

/* ---- going offline: the replica leaves the in-sync set ---- */

/* The replicas of one partition that go offline, as a chain in ascending order of broker. */
struct removal {
    struct partition *p;
    int32_t first;
};

struct removals {
    GArray *partitions; /* struct removal; partition->scratch is its index */
    GArray *brokers;    /* struct { broker, next } */
};

struct link {
    int32_t broker, next;
};

static void add_removal(struct removals *all, struct partition *p, int32_t broker)
{
    if (p->scratch < 0) {
        struct removal r = {.p = p, .first = -1};
        p->scratch = (int32_t)all->partitions->len;
        g_array_append_val(all->partitions, r);
    }
    struct link l = {.broker = broker};
    int32_t at = (int32_t)all->brokers->len;
    g_array_append_val(all->brokers, l);
    struct link *links = (struct link *)(void *)all->brokers->data;
    int32_t *slot = &g_array_index(all->partitions, struct removal, p->scratch).first;
    while (*slot >= 0 && links[*slot].broker < broker) {
        slot = &links[*slot].next;
    }
    links[at].next = *slot;
    *slot = at;
}

/* ReplicaStateMachine.removeReplicasFromIsr, broker after broker as Kafka does it, but only the last of its values is
 * written: each member that leaves raises the leader epoch; the last member is kept. Returns whether it changed. */
static bool shrink_isr(
        const struct controller *c, const struct removals *all, const struct removal *r, struct leader_and_isr *l)
{
    bool changed = false;
    g_autofree int32_t *isr = g_new(int32_t, l->isr->n + 1);
    uint32_t n = l->isr->n;
    memcpy(isr, l->isr->id, n * sizeof(*isr));
    for (int32_t i = r->first; i >= 0;) {
        const struct link *link = &g_array_index(all->brokers, struct link, i);
        i = link->next;
        uint32_t at = 0;
        while (at < n && isr[at] != link->broker) {
            at++;
        }
        if (at == n) {
            continue;
        }
        changed = true;
        l->leader_epoch = next_leader_epoch(r->p, l->leader_epoch);
        l->leader = l->leader == link->broker ? LEADER_NONE : l->leader;
        if (n > 1) {
            memmove(isr + at, isr + at + 1, (--n - at) * sizeof(*isr));
        }
    }
    l->controller_epoch = c->epoch;
    broker_ids_unref(l->isr);
    l->isr = broker_ids_new(isr, n);
    return changed;
}

static void set_offline(struct controller *c, const struct removals *all, const struct removal *r)
{
    for (int32_t i = r->first; i >= 0;) {
        const struct link *link = &g_array_index(all->brokers, struct link, i);
        move(c, &(struct replica_of){r->p, link->broker}, REPLICA_OFFLINE);
        i = link->next;
    }
}

static bool is_removed(const struct removals *all, const struct removal *r, int32_t broker)
{
    for (int32_t i = r->first; i >= 0;) {
        const struct link *link = &g_array_index(all->brokers, struct link, i);
        if (link->broker == broker) {
            return true;
        }
        i = link->next;
    }
    return false;
}

/* The new state is known: cache it, tell the other replicas (not in a deletion), and the replicas are offline. */
static void finish_removal(
        struct controller *c, const struct removals *all, const struct removal *r, struct leader_and_isr *l)
{
    struct partition *p = r->p;
    partition_take_leadership(c, p, l);
    if (!deletion_decides(p->topic)) {
        batch_update_metadata(c, p); /* all brokers are told, also if none of them has another replica */
        for (uint32_t i = 0; i < p->replicas->n; i++) {
            if (!is_removed(all, r, p->replicas->id[i])) {
                batch_leader_and_isr(c, p, p->replicas->id[i], false);
            }
        }
    }
    set_offline(c, all, r);
}

static const struct removal *removal_of(const struct removals *all, const struct partition *p)
{
    return &g_array_index(all->partitions, struct removal, p->scratch);
}

/* Either is done with it, or it is to be written. */
static bool remove_now(struct controller *c, struct partition *p, int rc, struct leader_and_isr *l, void *arg)
{
    const struct removals *all = arg;
    const struct removal *r = removal_of(all, p);
    if (rc == ZNONODE) {
        /* Somebody removed the node. Nothing to shrink; the replica is offline all the same (KAFKA-6650). */
        set_offline(c, all, r);
    }
    if (rc != ZOK || election_is_outdated(c, p, l->controller_epoch)) {
        return false;
    }
    if (shrink_isr(c, all, r, l)) {
        return true;
    }
    finish_removal(c, all, r, l);
    return false;
}

static void removed(struct controller *c, struct partition *p, struct leader_and_isr *l, void *arg)
{
    finish_removal(c, arg, removal_of(arg, p), l);
}

static void remove_from_isr(struct controller *c, struct removals *all)
{
    g_autoptr(GPtrArray) partitions = g_ptr_array_new();
    for (guint i = 0; i < all->partitions->len; i++) {
        g_ptr_array_add(partitions, g_array_index(all->partitions, struct removal, i).p);
    }
    rewrite_partition_states(c, partitions, &(struct rewrite){remove_now, removed, all});
}

static void to_offline(struct controller *c, const GArray *replicas)
{
    struct removals all = {
            .partitions = g_array_new(FALSE, FALSE, sizeof(struct removal)),
            .brokers = g_array_new(FALSE, FALSE, sizeof(struct link)),
    };
    for (guint i = 0; i < replicas->len; i++) {
        const struct replica_of *r = &g_array_index(replicas, struct replica_of, i);
        batch_stop_replica(c, r->p, r->broker, false);
        if (r->p->has_leadership) {
            add_removal(&all, r->p, r->broker);
        } else {
            move(c, r, REPLICA_OFFLINE);
        }
    }
    remove_from_isr(c, &all);
    for (guint i = 0; i < all.partitions->len; i++) {
        g_array_index(all.partitions, struct removal, i).p->scratch = -1;
    }
    g_array_unref(all.partitions);
    g_array_unref(all.brokers);
}

/* ---- a batch ---- */

/* NonExistentReplica: the replica leaves the assignment, if it is still in there, and has no state any more. */
static void to_non_existent(struct controller *c, const struct replica_of *r)
{
    struct partition *p = r->p;
    move(c, r, REPLICA_NON_EXISTENT);
    if (broker_ids_contain(p->replicas, r->broker)) {
        struct broker_ids *gone = broker_ids_new(&r->broker, 1);
        partition_assign(&c->ctx, p, context_without(&c->ctx, p->replicas, gone),
                context_without(&c->ctx, p->adding, gone), context_without(&c->ctx, p->removing, gone));
        broker_ids_unref(gone);
    }
}

static void change_one(struct controller *c, const struct replica_of *r, enum replica_state target)
{
    switch (target) {
    case REPLICA_NEW:
        to_new(c, r);
        break;
    case REPLICA_ONLINE:
        to_online(c, r);
        break;
    case REPLICA_NON_EXISTENT:
        to_non_existent(c, r);
        break;
    case REPLICA_DELETION_STARTED:
        move(c, r, target);
        batch_stop_replica(c, r->p, r->broker, true);
        break;
    default:
        move(c, r, target);
        break;
    }
}

void replicas_change_state(struct controller *c, GArray *replicas, enum replica_state target)
{
    g_autoptr(GArray) valid = replicas_new();
    for (guint i = 0; i < replicas->len; i++) {
        const struct replica_of *r = &g_array_index(replicas, struct replica_of, i);
        if (valid_previous[target] & 1u << replica_get_state(r->p, r->broker)) {
            g_array_append_val(valid, *r);
        } else {
            refuse(c, r, target);
        }
    }
    if (target == REPLICA_OFFLINE) {
        to_offline(c, valid);
    } else {
        for (guint i = 0; i < valid->len; i++) {
            change_one(c, &g_array_index(valid, struct replica_of, i), target);
        }
    }
    batch_send(c);
}

/* ReplicaStateMachine.startup: LeaderAndIsr to every live replica, then those on dead brokers leave their in-sync sets
 * (KAFKA-3143). */
void replica_machine_startup(struct controller *c)
{
    g_autoptr(GArray) online = replicas_new();
    g_autoptr(GArray) offline = replicas_new();
    struct partition_iter it = partition_iter(&c->ctx);
    for (struct partition *p; (p = partition_iter_next(&it));) {
        for (uint32_t r = 0; r < p->replicas->n; r++) {
            int32_t broker = p->replicas->id[r];
            bool live = replica_is_online(&c->ctx, p, broker);
            replica_set_state(p, broker, live ? REPLICA_ONLINE : REPLICA_DELETION_INELIGIBLE);
            replicas_add(live ? online : offline, p, broker);
        }
    }
    batch_update_metadata_all(c);
    replicas_change_state(c, online, REPLICA_ONLINE);
    replicas_change_state(c, offline, REPLICA_OFFLINE);
}
