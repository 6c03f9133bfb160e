/* KafkaController.onControllerFailover: what a new controller reads, and in what order it acts. */
#include "controller/core.h"

#define FIRST_REBALANCE_MS 5000

/* setupFeatureZNode: with 2.7 and later the node is enabled (here always without features), before it is disabled.
 * A node that says so already is left as it is. */
static void set_up_feature(struct controller *c)
{
    int version = broker_config_ibp_at_least(c->config, 3, 3, 0) ? 2 : 1;
    int wanted = broker_config_ibp_at_least(c->config, 2, 7, 0) ? 1 : 0;
    struct bytes *data = NULL;
    int rc = c->env.get(c->env.ctx, "/feature", &data, NULL);
    int stored_version, status = -1;
    bool good = rc == ZOK && feature_decode(data, &stored_version, &status, NULL) && status == wanted;
    bytes_unref(data);
    if (good) {
        return;
    }
    struct txn *txn = fenced_txn(c);
    if (rc == ZOK) {
        txn_set(txn, "/feature", feature_encode(version, wanted), -1);
    } else {
        txn_create(txn, "/feature", feature_encode(version, wanted), 0);
    }
    rc = fenced_run_one(c, txn);
    if (rc && !c->moved) {
        complain(c, zerr_errno(rc), "/feature", "could not be written: %s", zerr_name(rc));
    }
}

static void load_brokers(struct controller *c)
{
    g_autoptr(GPtrArray) ids = c->env.children(c->env.ctx, "/brokers/ids");
    for (guint i = 0; ids && i < ids->len; i++) {
        int32_t id;
        int64_t epoch;
        struct broker_registration *registration = broker_read(c, ids->pdata[i], &id, &epoch);
        if (registration) {
            context_broker_add(&c->ctx, id, epoch, registration);
            c->env.channel_open(c->env.ctx, id);
        }
    }
}

static void load_topics(struct controller *c)
{
    g_autoptr(GPtrArray) names = c->env.children(c->env.ctx, "/brokers/topics");
    for (guint i = 0; names && i < names->len; i++) {
        struct topic *t = topic_load(c, names->pdata[i]);
        if (t) {
            topic_load_leadership(c, t);
        }
    }
}

void controller_failover(struct controller *c)
{
    context_init(&c->ctx);
    set_up_feature(c);
    fenced_delete_children(c, "/log_dir_event_notification", NULL);
    fenced_delete_children(c, "/isr_change_notification", NULL);
    load_brokers(c);
    deletion_load(c);
    load_topics(c);
    topics_save_all(c);
    deletion_init(c);
    /* Brokers must know each other before the first LeaderAndIsr (KAFKA-4443). */
    batch_update_metadata_empty(c);
    batch_send(c);
    strangers_startup(c);
    replica_machine_startup(c);
    partition_machine_startup(c);
    reassignment_resume(c);
    deletion_run(c);
    replica_leader_election(c);
    if (c->config->auto_leader_rebalance_enable && !c->moved) {
        c->env.timer(c->env.ctx, TIMER_AUTO_PREFERRED_ELECTION, FIRST_REBALANCE_MS);
    }
    emit(c, "controller %d ready epoch %d: %u brokers, %u topics, %zu partitions", c->broker_id, c->epoch,
            c->ctx.brokers->len, g_hash_table_size(c->ctx.topics), c->ctx.n_partitions);
}
