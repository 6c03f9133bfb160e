/* Who leads a partition (kafka.controller.Election, PartitionLeaderElectionAlgorithms). Each success raises the leader
 * epoch by one and carries this controller's epoch. */
#include "controller/config/topic_config.h"
#include "controller/core.h"

/* Alive in the sense of ControllerContext.isReplicaOnline(includeShuttingDown = true). */
static bool online_or_shutting_down(const struct controller *c, const struct partition *p, int32_t broker)
{
    const struct broker *b = context_broker(&c->ctx, broker);
    return b && !g_hash_table_contains(b->offline, p);
}

static bool shutting_down(const struct controller *c, int32_t broker)
{
    const struct broker *b = context_broker(&c->ctx, broker);
    return b && b->shutting_down;
}

static bool in_sync(const struct controller *c, const struct partition *p, const struct leader_and_isr *now, int32_t id)
{
    return replica_is_online(&c->ctx, p, id) && broker_ids_contain(now->isr, id);
}

/* The members of the in-sync set that stay in it. */
static struct broker_ids *keep_members(const struct controller *c, const struct partition *p,
        const struct leader_and_isr *now, bool (*stays)(const struct controller *, const struct partition *, int32_t))
{
    g_autofree int32_t *isr = g_new(int32_t, now->isr->n + 1);
    size_t n = 0;
    for (uint32_t i = 0; i < now->isr->n; i++) {
        if (stays(c, p, now->isr->id[i])) {
            isr[n++] = now->isr->id[i];
        }
    }
    return broker_ids_new(isr, n);
}

static bool stays_online(const struct controller *c, const struct partition *p, int32_t id)
{
    return replica_is_online(&c->ctx, p, id);
}

static bool stays_up(const struct controller *c, const struct partition *p, int32_t id)
{
    return !shutting_down(c, id);
}

/* offlinePartitionLeaderElection: the first assigned replica that is online and in sync; or else, if that is allowed,
 * the first that is online, alone in the new in-sync set. */
static bool elect_offline(const struct controller *c, const struct partition *p, const struct leader_and_isr *now,
        bool unclean_allowed, struct leader_and_isr *ret, bool *ret_unclean)
{
    int32_t first_online = LEADER_NONE;
    for (uint32_t i = 0; i < p->replicas->n; i++) {
        int32_t id = p->replicas->id[i];
        if (in_sync(c, p, now, id)) {
            ret->leader = id;
            ret->isr = keep_members(c, p, now, stays_online);
            return true;
        }
        if (first_online == LEADER_NONE && replica_is_online(&c->ctx, p, id)) {
            first_online = id;
        }
    }
    if (!unclean_allowed || first_online == LEADER_NONE) {
        return false;
    }
    ret->leader = first_online;
    ret->isr = broker_ids_new(&first_online, 1);
    ret->leader_recovery_state = broker_config_ibp_at_least(c->config, 3, 2, 0) ? 1 : 0;
    *ret_unclean = true;
    return true;
}

/* reassignPartitionLeaderElection: the first target replica that is online and in sync. */
static bool elect_reassign(const struct controller *c, const struct partition *p, const struct leader_and_isr *now,
        struct leader_and_isr *ret)
{
    for (uint32_t i = 0; i < p->replicas->n; i++) {
        int32_t id = p->replicas->id[i];
        if (!broker_ids_contain(p->removing, id) && in_sync(c, p, now, id)) {
            ret->leader = id;
            ret->isr = broker_ids_ref(now->isr);
            return true;
        }
    }
    return false;
}

/* preferredReplicaPartitionLeaderElection */
static bool elect_preferred(const struct controller *c, const struct partition *p, const struct leader_and_isr *now,
        struct leader_and_isr *ret)
{
    if (p->replicas->n == 0 || !in_sync(c, p, now, p->replicas->id[0])) {
        return false;
    }
    ret->leader = p->replicas->id[0];
    ret->isr = broker_ids_ref(now->isr);
    return true;
}

/* controlledShutdownPartitionLeaderElection */
static bool elect_shutdown(const struct controller *c, const struct partition *p, const struct leader_and_isr *now,
        struct leader_and_isr *ret)
{
    for (uint32_t i = 0; i < p->replicas->n; i++) {
        int32_t id = p->replicas->id[i];
        if (online_or_shutting_down(c, p, id) && broker_ids_contain(now->isr, id) && !shutting_down(c, id)) {
            ret->leader = id;
            ret->isr = keep_members(c, p, now, stays_up);
            return true;
        }
    }
    return false;
}

bool elect_leader(const struct controller *c, const struct partition *p, const struct leader_and_isr *now,
        enum election_strategy strategy, bool unclean_allowed, struct leader_and_isr *ret, bool *ret_unclean)
{
    struct leader_and_isr next = *now;
    bool found = false;
    *ret_unclean = false;
    switch (strategy) {
    case ELECT_OFFLINE:
    case ELECT_OFFLINE_UNCLEAN:
        found = elect_offline(c, p, now, unclean_allowed, &next, ret_unclean);
        break;
    case ELECT_REASSIGN:
        found = elect_reassign(c, p, now, &next);
        break;
    case ELECT_PREFERRED:
        found = elect_preferred(c, p, now, &next);
        break;
    case ELECT_SHUTDOWN:
        found = elect_shutdown(c, p, now, &next);
        break;
    }
    if (found) {
        next.leader_epoch = next_leader_epoch(p, next.leader_epoch);
        next.controller_epoch = c->epoch;
        *ret = next;
    }
    return found;
}

bool needs_unclean_election(const struct controller *c, const struct partition *p, const struct broker_ids *isr)
{
    for (uint32_t i = 0; i < isr->n; i++) {
        if (replica_is_online(&c->ctx, p, isr->id[i])) {
            return false;
        }
    }
    return true;
}

/* The overrides of a topic, parsed (char* -> char*); NULL if they cannot be read, or one of them can never be. */
static GHashTable *topic_overrides(struct controller *c, const char *path)
{
    struct bytes *data = NULL;
    g_autoptr(GHashTable) config = NULL;
    g_autofree char *why = NULL;
    GHashTable *overrides = NULL;
    if (c->env.get(c->env.ctx, path, &data, NULL) != ZOK || !data) {
        return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    }
    if (!config_entity_decode(data, &config, &why) || topic_config_parse(config, &overrides, &why) < 0) {
        complain(c, EINVAL, path, "%s", why);
    }
    bytes_unref(data);
    return overrides;
}

/* The topic's override is read now, as Kafka does (KafkaZkClient.getLogConfigs); without one it is what this
 * controller's broker has in force. */
bool unclean_election_allowed(struct controller *c, const char *topic, bool *ret_failed)
{
    g_autofree char *path = g_strconcat("/config/topics/", topic, NULL);
    g_autoptr(GHashTable) overrides = topic_overrides(c, path);
    if (!overrides) {
        *ret_failed = true;
        return false;
    }
    const char *value = g_hash_table_lookup(overrides, "unclean.leader.election.enable");
    return value ? strcmp(value, "true") == 0 : c->env.unclean_default(c->env.ctx);
}
