/*
 * ISR changes before inter.broker.protocol.version 2.7-IV2: the leader writes the partition state itself and tells the
 * controller afterwards, many partitions with one /isr_change_notification node (ZkAlterPartitionManager).
 *
 * Kafka waits up to 5 s for more changes before it notifies; here the notification follows as soon as no write of this
 * broker is in flight, so that whoever reads `.state/settled` sees what came of it.
 */
#include "controller/broker/isr.h"
#include "controller/json/codec.h"
#include "fs/tree/path.h"

bool isr_by_request(const struct broker *b)
{
    return broker_config_ibp_at_least(b->config, 2, 7, 2);
}

GArray *isr_changed_new(void)
{
    return g_array_new(FALSE, FALSE, sizeof(struct fetch_partition));
}

static void forget_changed(GArray *changed)
{
    for (guint i = 0; i < changed->len; i++)
        topic_ref_unref(g_array_index(changed, struct fetch_partition, i).topic);
    g_array_set_size(changed, 0);
}

void isr_changed_free(GArray *changed)
{
    forget_changed(changed);
    g_array_unref(changed);
}

/* The value carries the controller epoch of the last LeaderAndIsr, not the highest one seen. */
static struct bytes *new_state(const struct broker *b, const struct replica *r)
{
    struct leader_and_isr l = {.leader = b->id,
            .leader_epoch = r->leader_epoch,
            .controller_epoch = r->controller_epoch,
            .isr = r->upkeep->new_isr};

    return leader_and_isr_encode(&l);
}

void isr_write_queued(struct broker *b, gen_t gen)
{
    struct replica *r;

    while ((r = isr_next_queued(b))) {
        gen_t cause = r->upkeep->held ? r->upkeep->gen : gen;
        g_autofree char *path = g_strdup_printf("/brokers/topics/%s/partitions/%d/state", r->topic->name, r->partition);
        struct txn *txn = txn_new(TXN_INTERNAL);
        txn_set(txn, path, new_state(b, r), r->partition_epoch);
        b->isr.writes++;
        b->env->submit(b->env->ctx, txn, cause);
        isr_release_cause(b, r);
    }
}

/* After ZBADVERSION: the state as it is now, if it still is one of this leader and epoch: our own write whose answer
 * was lost, or one by hand. Kafka gives up here until the next LeaderAndIsr (KAFKA-2729). The caller owns the set. */
static struct broker_ids *read_own_state(
        struct broker *b, const struct replica *r, const char *path, int32_t *ret_version)
{
    struct bytes *data = NULL;
    struct zstat stat;
    struct leader_and_isr l = {0};
    struct broker_ids *isr = NULL;

    if (b->env->get(b->env->ctx, path, &data, &stat) == ZOK && data && leader_and_isr_decode(data, &l, NULL)) {
        if (l.leader == b->id && l.leader_epoch == r->leader_epoch) {
            isr = broker_ids_ref(l.isr);
            *ret_version = stat.version;
        }
        leader_and_isr_clear(&l);
    }
    bytes_unref(data);
    return isr;
}

static void notify(struct broker *b, gen_t gen)
{
    g_autoptr(GArray) entries = g_array_new(FALSE, TRUE, sizeof(struct reassignment_entry));

    for (guint i = 0; i < b->isr.changed->len; i++) {
        const struct fetch_partition *p = &g_array_index(b->isr.changed, struct fetch_partition, i);
        struct reassignment_entry e = {.topic = p->topic->name, .partition = p->partition};
        g_array_append_val(entries, e);
    }
    note_write(b, "/isr_change_notification/isr_change_", partition_list_encode(entries), gen);
    forget_changed(b->isr.changed);
}

/* The replica whose proposal this transaction is; NULL if it has been given up since, for a later epoch or another set.
 */
static struct replica *find_written(struct broker *b, const struct op *op)
{
    g_autofree char *topic = path_component(op->path, 2);
    g_autofree char *partition = path_component(op->path, 4);
    struct replica *r = replica_manager_find(&b->rm, topic, (int32_t)g_ascii_strtoll(partition, NULL, 10));

    if (!r || op->version != r->partition_epoch || !isr_find_proposed(b, topic, r->partition, r->leader_epoch))
        return NULL;
    struct bytes *proposed = new_state(b, r);
    bool same = bytes_equal(proposed, op->data);
    bytes_unref(proposed);
    return same ? r : NULL;
}

void isr_written(struct broker *b, struct txn *txn, gen_t gen)
{
    const struct op *op = &txn->ops[0];
    struct replica *r = find_written(b, op);
    int32_t version = op->stat.version;

    b->isr.writes--;
    if (r) {
        struct broker_ids *isr = NULL;
        if (txn->rc == ZOK)
            isr = broker_ids_ref(r->upkeep->new_isr);
        else if (txn->rc == ZBADVERSION)
            isr = read_own_state(b, r, op->path, &version);
        if (isr) {
            struct fetch_partition p = {.topic = topic_ref_ref(r->topic), .partition = r->partition};
            g_array_append_val(b->isr.changed, p);
            isr_committed(b, r, isr, version, gen);
        } else {
            isr_refused(b, r); /* the state has moved on; the next LeaderAndIsr tells how */
        }
        broker_ids_unref(isr);
    }
    if (b->isr.writes == 0 && b->isr.changed->len > 0)
        notify(b, gen);
}
