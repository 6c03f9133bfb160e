/* PartitionStateMachine: the states of partitions and the elections that bring them online. */
#include "controller/core.h"

#define CREATE_ATTEMPTS 8

static const unsigned valid_previous[PARTITION_STATUSES] = {
        [PARTITION_NEW] = 1u << PARTITION_NON_EXISTENT,
        [PARTITION_ONLINE] = 1u << PARTITION_NEW | 1u << PARTITION_ONLINE | 1u << PARTITION_OFFLINE,
        [PARTITION_OFFLINE] = 1u << PARTITION_NEW | 1u << PARTITION_ONLINE | 1u << PARTITION_OFFLINE,
        [PARTITION_NON_EXISTENT] = 1u << PARTITION_OFFLINE,
};

static void move(struct controller *c, struct partition *p, enum partition_status target)
{
    enum partition_status from = p->status;
    if (c->moved || from == target) {
        return;
    }
    partition_set_status(&c->ctx, p, target);
    emit(c, "controller %d partition %s-%d %s -> %s", c->broker_id, p->topic->ref->name, p->id,
            partition_status_name(from), partition_status_name(target));
}

static bool may_move(struct controller *c, const struct partition *p, enum partition_status target)
{
    if (valid_previous[target] & 1u << p->status) {
        return true;
    }
    emit(c, "controller %d partition %s-%d %s -> %s refused", c->broker_id, p->topic->ref->name, p->id,
            partition_status_name(p->status), partition_status_name(target));
    return false;
}

/* To NewPartition, OfflinePartition or NonExistentPartition: nothing is written, nothing sent. */
void partitions_change_state(struct controller *c, GPtrArray *partitions, enum partition_status target)
{
    for (guint i = 0; i < partitions->len; i++) {
        if (may_move(c, partitions->pdata[i], target)) {
            move(c, partitions->pdata[i], target);
        }
    }
}

void partition_take_leadership(struct controller *c, struct partition *p, struct leader_and_isr *l)
{
    if (c->moved) {
        leader_and_isr_clear(l);
        return;
    }
    if (!p->has_leadership || p->leadership.leader_epoch != l->leader_epoch ||
            !broker_ids_equal(p->leadership.isr, l->isr)) {
        g_autofree char *isr = broker_ids_text(l->isr);
        emit(c, "controller %d partition %s-%d leader %d epoch %d isr %s", c->broker_id, p->topic->ref->name, p->id,
                l->leader, l->leader_epoch, isr);
    }
    partition_set_leadership(&c->ctx, p, l);
    l->isr = NULL;
}

/* ---- a new partition: its first leader and in-sync set (initializeLeaderAndIsrForPartitions) ---- */

struct creation {
    struct partition *p;
    struct leader_and_isr first; /* all assigned replicas that are online; the first leads */
    bool done;
};

static void clear_creation(gpointer arg)
{
    leader_and_isr_clear(&((struct creation *)arg)->first);
}

static bool plan_first_leader(struct controller *c, const struct partition *p, struct leader_and_isr *ret)
{
    g_autofree int32_t *live = g_new(int32_t, p->replicas->n + 1);
    size_t n = 0;
    for (uint32_t i = 0; i < p->replicas->n; i++) {
        if (replica_is_online(&c->ctx, p, p->replicas->id[i])) {
            live[n++] = p->replicas->id[i];
        }
    }
    if (n == 0) {
        return false; /* stays NewPartition until one of its brokers comes */
    }
    *ret = (struct leader_and_isr){.leader = live[0], .controller_epoch = c->epoch, .isr = broker_ids_new(live, n)};
    return true;
}

/* Does the state that is in the tree already, made by hand or copied, say something about these replicas? */
static bool has_member(const struct partition *p, const struct leader_and_isr *l)
{
    for (uint32_t i = 0; i < l->isr->n; i++) {
        if (broker_ids_contain(p->replicas, l->isr->id[i])) {
            return true;
        }
    }
    return false;
}

/* It speaks of other brokers: nobody to wait for. The replicas that are online begin, above its epoch. */
static int begin_anew(struct controller *c, const struct creation *n, struct leader_and_isr *l)
{
    g_autoptr(GArray) writes = state_writes_new();
    struct state_write w = {.p = n->p, .next = *l};
    l->isr = broker_ids_unref(l->isr);
    w.next.isr = broker_ids_ref(n->first.isr);
    w.next.leader = LEADER_NONE;
    w.next.leader_epoch = next_leader_epoch(n->p, l->leader_epoch);
    w.next.controller_epoch = c->epoch;
    g_array_append_val(writes, w);
    write_partition_states(c, writes);
    struct state_write *written = &g_array_index(writes, struct state_write, 0);
    if (written->rc == ZOK) {
        *l = written->next;
        written->next.isr = NULL;
    }
    return written->rc;
}

/* A state node exists for a partition that is new here: a topic that was copied or restored. It is taken as the
 * partition's leadership information, and an election goes on from there. */
static void adopt_state(struct controller *c, struct creation *n, GPtrArray *adopted)
{
    struct leader_and_isr l;
    int rc = read_partition_state(c, n->p, &l);
    if (rc == ZOK && !has_member(n->p, &l) && l.controller_epoch <= c->epoch) {
        rc = begin_anew(c, n, &l);
    }
    n->done = rc != ZBADVERSION && rc != ZNONODE;
    if (rc == ZOK) { /* or else it is said in errors, and the partition stays new */
        partition_take_leadership(c, n->p, &l);
        move(c, n->p, PARTITION_OFFLINE);
        g_ptr_array_add(adopted, n->p);
    }
}

static bool node_exists(struct controller *c, const char *path)
{
    return c->env.get(c->env.ctx, path, NULL, NULL) == ZOK;
}

/* Adds what is missing of the nodes of one partition. False: its state is there already. */
static bool add_creates(struct controller *c, struct txn *txn, const struct creation *n, bool *parent)
{
    const char *topic = n->p->topic->ref->name;
    g_autofree char *parent_path = g_strdup_printf("/brokers/topics/%s/partitions", topic);
    g_autofree char *path = g_strdup_printf("%s/%d", parent_path, n->p->id);
    g_autofree char *state = g_strconcat(path, "/state", NULL);
    if (*parent && node_exists(c, state)) {
        return false;
    }
    if (!*parent) {
        txn_create(txn, parent_path, NULL, 0);
    }
    if (!*parent || !node_exists(c, path)) {
        txn_create(txn, path, NULL, 0);
    }
    *parent = true;
    txn_create(txn, state, leader_and_isr_encode(&n->first), 0);
    return true;
}

/* The transactions of one round, and which partitions each of them creates. */
struct round {
    GPtrArray *txns;
    GArray *of; /* for each creation: index of its transaction, -1 none */
};

/* The transaction is for this topic, not for one that is made under its name meanwhile. */
static void check_topic(struct txn *txn, const struct topic *t)
{
    g_autofree char *path = topic_path(t->ref->name);
    size_t check = txn_check(txn, path, -1);
    txn->ops[check].czxid = t->czxid;
}

/* Adds the transactions for the creations [first, end) of one topic. If its node lacks the topic id, that is written
 * with the first. */
static void plan_topic(
        struct controller *c, GArray *all, guint first, guint end, struct round *round, GPtrArray *adopted)
{
    struct topic *t = g_array_index(all, struct creation, first).p->topic;
    g_autofree char *parent_path = g_strdup_printf("/brokers/topics/%s/partitions", t->ref->name);
    bool parent = node_exists(c, parent_path);
    struct txn *txn = NULL;
    for (guint i = first; i < end; i++) {
        struct creation *n = &g_array_index(all, struct creation, i);
        if (n->done) {
            continue;
        }
        if (!txn || txn_is_full(txn)) {
            bool begin = !txn;
            txn = fenced_txn(c);
            g_ptr_array_add(round->txns, txn);
            if (!begin || !t->unsaved || !topic_put(c, txn, t)) {
                check_topic(txn, t);
            }
        }
        if (add_creates(c, txn, n, &parent)) {
            g_array_index(round->of, int, i) = (int)round->txns->len - 1;
        } else {
            adopt_state(c, n, adopted);
        }
    }
}

static void take_creation(struct controller *c, struct creation *n, const struct txn *txn)
{
    struct partition *p = n->p;
    if (c->moved) {
        n->done = true;
    } else if (txn->rc == ZOK) {
        n->done = true;
        if (txn->ops[1].type == OP_SET) {
            p->topic->unsaved = TOPIC_SAVED;
        }
        partition_take_leadership(c, p, &n->first);
        batch_leader_and_isr_all(c, p, p->leadership.isr, true);
        move(c, p, PARTITION_ONLINE);
    } else if (txn->rc != ZNODEEXISTS && txn->rc != ZNONODE && txn->rc != ZBADVERSION) {
        g_autofree char *path = partition_state_path(p);
        n->done = true;
        complain(c, zerr_errno(txn->rc), path, "the partition could not be created: %s", zerr_name(txn->rc));
    }
}

/* One attempt at all that is left. Returns whether something is still to do: somebody made or removed a node. */
static bool create_round(struct controller *c, GArray *all, GPtrArray *adopted)
{
    struct round round = {.txns = txn_array_new(), .of = g_array_sized_new(FALSE, FALSE, sizeof(int), all->len)};
    for (guint i = 0; i < all->len; i++) {
        int none = -1;
        g_array_append_val(round.of, none);
    }
    for (guint first = 0, end; first < all->len; first = end) {
        const struct topic *t = g_array_index(all, struct creation, first).p->topic;
        for (end = first; end < all->len && g_array_index(all, struct creation, end).p->topic == t;) {
            end++;
        }
        if (context_topic(&c->ctx, t->ref->name) == t) {
            plan_topic(c, all, first, end, &round, adopted);
        }
    }
    fenced_run(c, round.txns);
    bool left = false;
    for (guint i = 0; i < all->len; i++) {
        struct creation *n = &g_array_index(all, struct creation, i);
        int txn = g_array_index(round.of, int, i);
        if (txn >= 0) {
            take_creation(c, n, round.txns->pdata[txn]);
        }
        left = left || !n->done;
    }
    g_ptr_array_unref(round.txns);
    g_array_unref(round.of);
    return left && !c->moved;
}

/* Creates the nodes of new partitions; partitions whose state is there already are left in `adopted`. */
static void create_partitions(struct controller *c, GPtrArray *partitions, GPtrArray *adopted)
{
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(struct creation));
    g_array_set_clear_func(all, clear_creation);
    for (guint i = 0; i < partitions->len; i++) {
        struct creation n = {.p = partitions->pdata[i]};
        if (plan_first_leader(c, n.p, &n.first)) {
            g_array_append_val(all, n);
        }
    }
    for (int attempt = 0; create_round(c, all, adopted); attempt++) {
        for (guint i = 0; i < all->len; i++) { /* of a topic that was removed, or made again, nothing is created */
            struct creation *n = &g_array_index(all, struct creation, i);
            n->done = n->done || attempt == CREATE_ATTEMPTS || !topic_is_there(c, n->p->topic);
        }
    }
}

/* ---- elections ---- */

static void send_to_recipients(struct controller *c, struct partition *p, enum election_strategy strategy)
{
    for (uint32_t i = 0; i < p->replicas->n; i++) {
        int32_t id = p->replicas->id[i];
        bool wanted = true;
        if (strategy == ELECT_OFFLINE || strategy == ELECT_OFFLINE_UNCLEAN) {
            wanted = replica_is_online(&c->ctx, p, id);
        } else if (strategy == ELECT_REASSIGN) {
            wanted = !broker_ids_contain(p->removing, id);
        }
        if (wanted) {
            batch_leader_and_isr(c, p, id, false);
        }
    }
}

struct election {
    enum election_strategy strategy;
    GPtrArray *elected;
};

/* The state with a leader, if there can be one. Without a state node there is nothing to go on from. */
static bool elect_now(struct controller *c, struct partition *p, int rc, struct leader_and_isr *l, void *arg)
{
    const struct election *x = arg;
    bool allowed = x->strategy == ELECT_OFFLINE_UNCLEAN, failed = rc != ZOK, unclean;
    struct leader_and_isr next;
    if (!failed && election_is_outdated(c, p, l->controller_epoch)) {
        failed = true;
    } else if (!failed && x->strategy == ELECT_OFFLINE && needs_unclean_election(c, p, l->isr)) {
        allowed = unclean_election_allowed(c, p->topic->ref->name, &failed);
    }
    if (failed || !elect_leader(c, p, l, x->strategy, allowed, &next, &unclean)) {
        return false;
    }
    c->metrics.unclean_leader_elections += unclean;
    if (unclean) {
        emit(c, "controller %d partition %s-%d unclean election of %d", c->broker_id, p->topic->ref->name, p->id,
                next.leader);
    }
    leader_and_isr_clear(l);
    *l = next;
    return true;
}

static void elected_now(struct controller *c, struct partition *p, struct leader_and_isr *l, void *arg)
{
    const struct election *x = arg;
    c->metrics.leader_elections++;
    partition_take_leadership(c, p, l);
    send_to_recipients(c, p, x->strategy);
    move(c, p, PARTITION_ONLINE);
    g_ptr_array_add(x->elected, p);
}

GPtrArray *partitions_elect(struct controller *c, GPtrArray *partitions, enum election_strategy strategy)
{
    g_autoptr(GPtrArray) fresh = g_ptr_array_new();
    g_autoptr(GPtrArray) existing = g_ptr_array_new();
    GPtrArray *elected = g_ptr_array_new();
    for (guint i = 0; i < partitions->len; i++) {
        struct partition *p = partitions->pdata[i];
        if (may_move(c, p, PARTITION_ONLINE)) {
            g_ptr_array_add(p->status == PARTITION_NEW ? fresh : existing, p);
        }
    }
    g_autoptr(GPtrArray) adopted = g_ptr_array_new();
    create_partitions(c, fresh, adopted);
    strangers_expel(c, adopted);
    g_ptr_array_extend(existing, adopted, NULL, NULL);
    for (guint i = 0; i < fresh->len; i++) {
        struct partition *p = fresh->pdata[i];
        if (p->status == PARTITION_ONLINE) {
            g_ptr_array_add(elected, p);
        }
    }
    struct election x = {strategy, elected};
    rewrite_partition_states(c, existing, &(struct rewrite){elect_now, elected_now, &x});
    batch_send(c);
    return elected;
}

static void add_waiting(struct topic *t, GPtrArray *waiting)
{
    for (guint i = 0; t && !deletion_decides(t) && i < t->partitions->len; i++) {
        struct partition *p = t->partitions->pdata[i];
        if (p->status == PARTITION_NEW || p->status == PARTITION_OFFLINE) {
            g_ptr_array_add(waiting, p);
        }
    }
}

size_t partitions_trigger_online(struct controller *c, const char *topic)
{
    g_autoptr(GPtrArray) waiting = g_ptr_array_new();
    if (topic) {
        add_waiting(context_topic(&c->ctx, topic), waiting);
    } else if (c->ctx.n_waiting) {
        GHashTableIter it;
        gpointer value;
        g_hash_table_iter_init(&it, c->ctx.topics);
        while (g_hash_table_iter_next(&it, NULL, &value)) {
            add_waiting(value, waiting);
        }
    }
    g_autoptr(GPtrArray) elected = partitions_elect(c, waiting, ELECT_OFFLINE);
    return elected->len;
}

void partition_machine_startup(struct controller *c)
{
    struct partition_iter it = partition_iter(&c->ctx);
    for (struct partition *p; (p = partition_iter_next(&it));) {
        bool online = p->has_leadership && replica_is_online(&c->ctx, p, p->leadership.leader);
        partition_set_status(&c->ctx, p,
                !p->has_leadership ? PARTITION_NEW
                : online           ? PARTITION_ONLINE
                                   : PARTITION_OFFLINE);
    }
    partitions_trigger_online(c, NULL);
}
