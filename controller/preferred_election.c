/* Elections that somebody or something asks for: /admin/preferred_replica_election, the automatic rebalance, and
 * unclean election that has become allowed (KafkaController.processReplicaLeaderElection,
 * checkAndTriggerAutoLeaderRebalance, processTopicUncleanLeaderElectionEnable). */
#include "controller/core.h"

#define FILE_PATH "/admin/preferred_replica_election"

/* Why no election is held for an entry; NULL: it is held. */
static const char *why_not(const struct controller *c, const struct reassignment_entry *e, const struct partition *p)
{
    const struct topic *t = context_topic(&c->ctx, e->topic);
    if (e->why) {
        return e->why;
    }
    if (!p) {
        return "UNKNOWN_TOPIC_OR_PARTITION";
    }
    return t->deletion ? "INVALID_TOPIC_EXCEPTION: the topic is being deleted" : NULL;
}

static bool is_needed(const struct partition *p)
{
    return p->replicas->n > 0 && (!p->has_leadership || p->leadership.leader != p->replicas->id[0]);
}

static void elect_preferred(struct controller *c, GPtrArray *partitions)
{
    g_autoptr(GHashTable) won = g_hash_table_new(NULL, NULL);
    g_autoptr(GPtrArray) elected = partitions_elect(c, partitions, ELECT_PREFERRED);
    for (guint i = 0; i < elected->len; i++) {
        g_hash_table_add(won, elected->pdata[i]);
    }
    for (guint i = 0; i < partitions->len && !c->moved && !c->retry; i++) {
        const struct partition *p = partitions->pdata[i];
        if (!g_hash_table_contains(won, p)) {
            complain(c, EAGAIN, FILE_PATH,
                    "%s-%d: PREFERRED_LEADER_NOT_AVAILABLE: broker %d is not online or not in sync",
                    p->topic->ref->name, p->id, p->replicas->id[0]);
        }
    }
}

/* The whole node goes, whatever came of it; not if it has been written again meanwhile. */
static void remove_file(struct controller *c, int32_t version)
{
    struct txn *txn = fenced_txn(c);
    txn_delete(txn, FILE_PATH, version);
    int rc = fenced_run_one(c, txn);
    if (rc && rc != ZNONODE && rc != ZBADVERSION && !c->moved) {
        complain(c, zerr_errno(rc), FILE_PATH, "could not be removed: %s", zerr_name(rc));
    }
}

void replica_leader_election(struct controller *c)
{
    struct bytes *data = NULL;
    struct zstat stat;
    g_autoptr(GPtrArray) partitions = g_ptr_array_new();
    g_autofree char *bad = NULL;
    GArray *entries = NULL;
    if (c->env.get(c->env.ctx, FILE_PATH, &data, &stat) != ZOK) {
        return;
    }
    if (!partition_list_decode(data, &entries, &bad)) {
        complain(c, EINVAL, FILE_PATH, "%s", bad);
    }
    bytes_unref(data);
    requests_catch_up(c, entries);
    for (guint i = 0; entries && i < entries->len; i++) {
        const struct reassignment_entry *e = &g_array_index(entries, struct reassignment_entry, i);
        struct partition *p = context_partition(&c->ctx, e->topic, e->partition);
        const char *why = why_not(c, e, p);
        if (why) {
            complain(c, EINVAL, FILE_PATH, "%s-%d: %s", e->topic, e->partition, why);
        } else if (is_needed(p) && p->scratch < 0) {
            p->scratch = 0;
            g_ptr_array_add(partitions, p);
        }
    }
    for (guint i = 0; i < partitions->len; i++) {
        ((struct partition *)partitions->pdata[i])->scratch = -1;
    }
    if (entries) {
        g_array_unref(entries);
    }
    elect_preferred(c, partitions);
    if (!c->retry) { /* else there was no room for a state: the next event tries again */
        remove_file(c, stat.version);
    }
}

/* ---- automatic rebalance ---- */

struct balance { /* of the partitions that prefer one broker */
    uint64_t total, elsewhere;
};

static void count_partition(const struct partition *p, GHashTable *by_broker)
{
    if (p->replicas->n == 0) {
        return;
    }
    gpointer key = GINT_TO_POINTER(p->replicas->id[0]);
    struct balance *b = g_hash_table_lookup(by_broker, key);
    if (!b) {
        b = g_new0(struct balance, 1);
        g_hash_table_insert(by_broker, key, b);
    }
    b->total++;
    b->elsewhere += p->has_leadership && is_needed(p);
}

static bool may_lead(const struct controller *c, const struct partition *p)
{
    int32_t preferred = p->replicas->id[0];
    return p->has_leadership && replica_is_online(&c->ctx, p, preferred) &&
           broker_ids_contain(p->leadership.isr, preferred);
}

typedef void visit_partition(struct controller *c, struct partition *p, GHashTable *by_broker, GPtrArray *elect);

static void for_each(struct controller *c, visit_partition *visit, GHashTable *by_broker, GPtrArray *elect)
{
    struct partition_iter it = partition_iter(&c->ctx);
    for (struct partition *p; (p = partition_iter_next(&it));) {
        if (!p->topic->deletion) {
            visit(c, p, by_broker, elect);
        }
    }
}

static void visit_count(struct controller *c, struct partition *p, GHashTable *by_broker, GPtrArray *elect)
{
    count_partition(p, by_broker);
}

/* Kafka: more than leader.imbalance.per.broker.percentage of what prefers this broker is led elsewhere. */
static void visit_choose(struct controller *c, struct partition *p, GHashTable *by_broker, GPtrArray *elect)
{
    if (!is_needed(p)) {
        return;
    }
    const struct balance *b = g_hash_table_lookup(by_broker, GINT_TO_POINTER(p->replicas->id[0]));
    uint64_t percentage = (uint64_t)c->config->leader_imbalance_per_broker_percentage;
    if (b->elsewhere * 100 > percentage * b->total && may_lead(c, p)) {
        g_ptr_array_add(elect, p);
    }
}

void auto_preferred_election(struct controller *c)
{
    g_autoptr(GHashTable) by_broker = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    g_autoptr(GPtrArray) elect = g_ptr_array_new();
    for_each(c, visit_count, by_broker, elect);
    for_each(c, visit_choose, by_broker, elect);
    g_autoptr(GPtrArray) elected = partitions_elect(c, elect, ELECT_PREFERRED);
    if (!c->moved) {
        c->env.timer(
                c->env.ctx, TIMER_AUTO_PREFERRED_ELECTION, c->config->leader_imbalance_check_interval_seconds * 1000);
    }
}

/* ---- unclean election is allowed now ---- */

void unclean_election_enable(struct controller *c, GHashTable *names)
{
    if (!names) {
        partitions_trigger_online(c, NULL);
        return;
    }
    g_autoptr(GPtrArray) sorted = names_sorted(names);
    for (guint i = 0; i < sorted->len; i++) {
        partitions_trigger_online(c, sorted->pdata[i]);
    }
}
