/* `.state/metrics`: Kafka's metrics under the names that its Prometheus exporters give them, lower case and without
 * marks: kafka.controller:type=KafkaController,name=OfflinePartitionsCount and so on. Gauges are counted when somebody
 * asks. */
#include "controller/core.h"

const char *controller_event_name(enum controller_event_type type)
{
    static const char *const names[EVENT_TYPES] = {
            [EVENT_STARTUP] = "Startup",
            [EVENT_CONTROLLER_CHANGE] = "ControllerChange",
            [EVENT_REELECT] = "Reelect",
            [EVENT_EXPIRE] = "Expire",
            [EVENT_BROKER_CHANGE] = "BrokerChange",
            [EVENT_BROKER_MODIFICATIONS] = "BrokerModifications",
            [EVENT_TOPIC_CHANGE] = "TopicChange",
            [EVENT_PARTITION_MODIFICATIONS] = "PartitionModifications",
            [EVENT_TOPIC_DELETION] = "TopicDeletion",
            [EVENT_TOPIC_DELETION_RETRY] = "TopicDeletionRetry",
            [EVENT_PARTITION_REASSIGNMENT] = "PartitionReassignment",
            [EVENT_REPLICA_LEADER_ELECTION] = "ReplicaLeaderElection",
            [EVENT_ISR_CHANGE_NOTIFICATION] = "IsrChangeNotification",
            [EVENT_LOG_DIR_EVENT_NOTIFICATION] = "LogDirEventNotification",
            [EVENT_PARTITION_STATE_CHANGE] = "PartitionStateChange",
            [EVENT_EPOCH_CHANGE] = "EpochChange",
            [EVENT_UNCLEAN_ELECTION_ENABLE] = "UncleanLeaderElectionEnable",
            [EVENT_TIMER] = "AutoPreferredReplicaLeaderElection",
            [EVENT_CONTROL_RESPONSE] = "ControlResponse",
            [EVENT_BROKER_REQUEST] = "BrokerRequest",
            [EVENT_SHUTDOWN] = "Shutdown",
    };
    return names[type];
}

struct counts {
    uint64_t active, topics, partitions, offline_partitions, under_replicated, imbalance;
    uint64_t topics_to_delete, topics_ineligible, replicas_to_delete, replicas_ineligible, reassigning;
};

struct broker_counts {
    uint64_t preferring, elsewhere;
};

static void count_partition(
        const struct controller *c, const struct partition *p, struct counts *n, GHashTable *brokers)
{
    const struct leader_and_isr *l = p->has_leadership ? &p->leadership : NULL;
    n->reassigning += p->reassigning;
    if (p->topic->deletion) {
        return;
    }
    n->offline_partitions += p->status == PARTITION_OFFLINE;
    n->under_replicated += l && l->isr->n < p->replicas->n - p->adding->n;
    if (p->replicas->n == 0) {
        return;
    }
    bool elsewhere = l && l->leader != p->replicas->id[0];
    gpointer key = GINT_TO_POINTER(p->replicas->id[0]);
    struct broker_counts *b = g_hash_table_lookup(brokers, key);
    if (!b) {
        b = g_new0(struct broker_counts, 1);
        g_hash_table_insert(brokers, key, b);
    }
    n->imbalance += elsewhere;
    b->preferring++;
    b->elsewhere += elsewhere;
}

static void count_deletion(const struct topic *t, struct counts *n)
{
    for (int s = REPLICA_NEW; s < REPLICA_STATES; s++) {
        n->replicas_to_delete += s == REPLICA_DELETION_SUCCESSFUL ? 0 : t->n_replicas[s];
    }
    n->replicas_ineligible += t->n_replicas[REPLICA_DELETION_INELIGIBLE];
}

static void count_all(const struct controller *c, struct counts *n, GHashTable *brokers)
{
    GHashTableIter it;
    gpointer value;
    n->active = 1;
    n->topics = g_hash_table_size(c->ctx.topics);
    n->partitions = c->ctx.n_partitions;
    g_hash_table_iter_init(&it, c->ctx.topics);
    while (g_hash_table_iter_next(&it, NULL, &value)) {
        const struct topic *t = value;
        for (guint i = 0; i < t->partitions->len; i++) {
            count_partition(c, t->partitions->pdata[i], n, brokers);
        }
        if (t->deletion) {
            count_deletion(t, n);
        }
    }
    g_hash_table_iter_init(&it, c->ctx.deletions);
    while (g_hash_table_iter_next(&it, NULL, &value)) {
        n->topics_to_delete++;
        n->topics_ineligible += ((const struct deletion *)value)->ineligible;
    }
}

static void append_head(GString *out, const char *name, const char *type, const char *help)
{
    g_string_append_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void append_one(GString *out, const char *name, const char *type, const char *help, uint64_t value)
{
    append_head(out, name, type, help);
    g_string_append_printf(out, "%s %" PRIu64 "\n", name, value);
}

#define KAFKA_CONTROLLER "kafka_controller_kafkacontroller_"

static void append_gauges(GString *out, const struct counts *n)
{
    const struct {
        const char *name, *help;
        uint64_t value;
    } gauges[] = {
            {KAFKA_CONTROLLER "activecontrollercount", "Active controllers in this daemon.", n->active},
            {KAFKA_CONTROLLER "globaltopiccount", "Topics.", n->topics},
            {KAFKA_CONTROLLER "globalpartitioncount", "Partitions.", n->partitions},
            {KAFKA_CONTROLLER "offlinepartitionscount",
                    "Partitions in state OfflinePartition; one that never had a leader is a NewPartition.",
                    n->offline_partitions},
            {KAFKA_CONTROLLER "preferredreplicaimbalancecount", "Partitions not led by their preferred replica.",
                    n->imbalance},
            {KAFKA_CONTROLLER "topicstodeletecount", "Topics queued for deletion.", n->topics_to_delete},
            {KAFKA_CONTROLLER "topicsineligibletodeletecount", "Topics whose deletion is held up.",
                    n->topics_ineligible},
            {KAFKA_CONTROLLER "replicastodeletecount", "Replicas that are still to be deleted.", n->replicas_to_delete},
            {KAFKA_CONTROLLER "replicasineligibletodeletecount", "Replicas whose deletion is held up.",
                    n->replicas_ineligible},
            {KAFKA_CONTROLLER "reassigningpartitionscount", "Partitions that are being reassigned.", n->reassigning},
            {"kafka_server_replicamanager_underreplicatedpartitions",
                    "Partitions with fewer replicas in sync than assigned.", n->under_replicated},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(gauges); i++) {
        append_one(out, gauges[i].name, "gauge", gauges[i].help, gauges[i].value);
    }
}

static int compare_ids(const void *a, const void *b)
{
    int x = GPOINTER_TO_INT(*(void *const *)a), y = GPOINTER_TO_INT(*(void *const *)b);
    return (x > y) - (x < y);
}

static void append_imbalance(GString *out, GHashTable *brokers)
{
    const char *name = KAFKA_CONTROLLER "leaderimbalance_ratio";
    g_autoptr(GPtrArray) ids = g_ptr_array_new();
    GHashTableIter it;
    gpointer id;
    g_hash_table_iter_init(&it, brokers);
    while (g_hash_table_iter_next(&it, &id, NULL)) {
        g_ptr_array_add(ids, id);
    }
    if (ids->len == 0) {
        return;
    }
    g_ptr_array_sort(ids, compare_ids);
    append_head(out, name, "gauge", "Of the partitions that prefer this broker, the share that is led elsewhere.");
    for (guint i = 0; i < ids->len; i++) {
        const struct broker_counts *b = g_hash_table_lookup(brokers, ids->pdata[i]);
        g_string_append_printf(out, "%s{broker=\"%d\"} %.6g\n", name, GPOINTER_TO_INT(ids->pdata[i]),
                (double)b->elsewhere / (double)b->preferring);
    }
}

static void append_summary(GString *out, const struct controller *c, const char *name, const char *help, bool queue)
{
    append_head(out, name, "summary", help);
    for (int k = 0; k < EVENT_TYPES; k++) {
        uint64_t events = c->metrics.kind[k].events;
        int64_t us = queue ? c->metrics.kind[k].queue_us : c->metrics.kind[k].processing_us;
        if (events) {
            const char *kind = controller_event_name(k);
            g_string_append_printf(out, "%s_sum{kind=\"%s\"} %.6f\n", name, kind, (double)us / 1e6);
            g_string_append_printf(out, "%s_count{kind=\"%s\"} %" PRIu64 "\n", name, kind, events);
        }
    }
}

void metrics_append(struct controller *c, GString *out)
{
    g_autoptr(GHashTable) brokers = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    struct counts n = {0};
    if (c) {
        count_all(c, &n, brokers);
    }
    append_gauges(out, &n);
    append_imbalance(out, brokers);
    append_one(out, "kafka_controller_controllerstats_leaderelections_total", "counter",
            "Leader elections that succeeded.", c ? c->metrics.leader_elections : 0);
    append_one(out, "kafka_controller_controllerstats_uncleanleaderelections_total", "counter",
            "Leader elections outside the in-sync set.", c ? c->metrics.unclean_leader_elections : 0);
    if (c) {
        append_summary(out, c, "kafka_controller_controllereventmanager_eventqueuetime_seconds",
                "Time that events waited in the queue, by kind.", true);
        append_summary(out, c, "kafka_controller_controllerstats_processingtime_seconds",
                "Time spent on events, by kind.", false);
    }
}
