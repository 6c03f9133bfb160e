/* What could not be written because the store had no space. Kafka's state machines log such a failure and forget it;
 * here the next event, whatever it is, brings memory and tree together again. */
#include "controller/core.h"

/* Replicas that should have been taken offline, and partitions whose leader went with them. */
static void add_stale(struct controller *c, struct partition *p, GArray *replicas)
{
    for (uint32_t r = 0; r < p->n_states; r++) {
        enum replica_state state = p->states[r].state;
        if ((state == REPLICA_ONLINE || state == REPLICA_NEW) && !replica_is_online(&c->ctx, p, p->states[r].broker)) {
            replicas_add(replicas, p, p->states[r].broker);
        }
    }
}

static void take_stale_offline(struct controller *c)
{
    g_autoptr(GArray) stale = replicas_new();
    struct partition_iter it = partition_iter(&c->ctx);
    for (struct partition *p; (p = partition_iter_next(&it));) {
        add_stale(c, p, stale);
    }
    if (stale->len) {
        replicas_become_offline(c, stale);
    }
}

/* Deletions that wait because a state could not be written. */
static void resume_deletions(struct controller *c)
{
    g_autoptr(GPtrArray) names = names_sorted(c->ctx.deletions);
    for (guint i = 0; i < names->len; i++) {
        const struct deletion *d = g_hash_table_lookup(c->ctx.deletions, names->pdata[i]);
        if (d->ineligible && d->failure) {
            deletion_resume_topic(c, d->name);
        }
    }
}

void retry_writes(struct controller *c)
{
    take_stale_offline(c);
    strangers_retry(c);
    partitions_trigger_online(c, NULL);
    leader_epochs_retry(c);
    topics_save_all(c);
    reassignment_retry(c);
    reassignment_file(c);
    replica_leader_election(c);
    resume_deletions(c);
}
