/* AlterPartition: a leader proposes a new in-sync set (KafkaController.processAlterPartition). The order of the checks
 * is Kafka's and matters (KAFKA-14154, KAFKA-14144, KAFKA-14140). */
#include "controller/core.h"

/* May this broker be in the set? It is assigned, alive, and the incarnation that the leader speaks of. */
static bool is_eligible(
        const struct controller *c, const struct partition *p, const struct alter_partition *a, uint32_t i)
{
    int32_t id = a->new_isr->id[i];
    const struct broker *b = context_broker(&c->ctx, id);
    int64_t epoch = a->new_isr_epochs ? a->new_isr_epochs[i] : -1;
    return broker_ids_contain(p->replicas, id) && replica_is_online(&c->ctx, p, id) &&
           (epoch == -1 || epoch == b->epoch);
}

static bool all_eligible(const struct controller *c, const struct partition *p, const struct alter_partition *a)
{
    for (uint32_t i = 0; i < a->new_isr->n; i++) {
        if (!is_eligible(c, p, a, i)) {
            return false;
        }
    }
    return true;
}

/* `*ret_same`: it is so already. */
static enum kafka_error judge(const struct controller *c, const struct partition *p, int32_t broker,
        const struct alter_partition *a, bool *ret_same)
{
    *ret_same = false;
    if (!p || !p->has_leadership) {
        return KERR_UNKNOWN_TOPIC_OR_PARTITION;
    }
    const struct leader_and_isr *now = &p->leadership;
    if (a->topic->id[0] && strcmp(a->topic->id, p->topic->ref->id) != 0) {
        return KERR_UNKNOWN_TOPIC_ID;
    }
    if (a->partition_epoch > now->partition_epoch || a->leader_epoch > now->leader_epoch) {
        return KERR_NOT_CONTROLLER;
    }
    if (a->leader_epoch < now->leader_epoch) {
        return KERR_FENCED_LEADER_EPOCH;
    }
    if (now->leader == broker && broker_ids_equal(now->isr, a->new_isr) &&
            now->leader_recovery_state == a->leader_recovery_state) {
        *ret_same = true;
        return KERR_NONE;
    }
    if (a->partition_epoch < now->partition_epoch) {
        return KERR_INVALID_UPDATE_VERSION;
    }
    if ((a->leader_recovery_state && a->new_isr->n > 1) || (!now->leader_recovery_state && a->leader_recovery_state) ||
            !broker_ids_contain(a->new_isr, now->leader)) {
        return KERR_INVALID_REQUEST;
    }
    return all_eligible(c, p, a) ? KERR_NONE : KERR_INELIGIBLE_REPLICA;
}

static void fill_result(struct alter_partition *a, const struct leader_and_isr *l)
{
    a->result_leader = l->leader;
    a->result_leader_epoch = l->leader_epoch;
    a->result_partition_epoch = l->partition_epoch;
    broker_ids_unref(a->result_isr);
    a->result_isr = broker_ids_ref(l->isr);
}

static void plan_write(const struct controller *c, struct partition *p, const struct alter_partition *a, GArray *writes)
{
    struct state_write w = {.p = p, .next = p->leadership};
    w.next.isr = broker_ids_ref(a->new_isr);
    w.next.leader_recovery_state = a->leader_recovery_state;
    w.next.controller_epoch = c->epoch;
    g_array_append_val(writes, w);
}

/* Writes what was found good; `of[k]` is the entry of the request that write k belongs to. */
static void write_sets(
        struct controller *c, struct broker_request *r, GArray *writes, const GArray *of, GPtrArray *done)
{
    write_partition_states(c, writes);
    for (guint k = 0; k < writes->len; k++) {
        struct state_write *w = &g_array_index(writes, struct state_write, k);
        struct alter_partition *a = &r->partitions[g_array_index(of, size_t, k)];
        if (w->rc == ZOK) {
            fill_result(a, &w->next);
            partition_take_leadership(c, w->p, &w->next);
            g_ptr_array_add(done, w->p);
        } else {
            a->error = w->rc == ZBADVERSION ? KERR_INVALID_UPDATE_VERSION
                       : c->moved           ? KERR_NOT_CONTROLLER
                                            : KERR_UNKNOWN_SERVER_ERROR;
        }
    }
}

static void alter_partitions(struct controller *c, struct broker_request *r, GPtrArray *done)
{
    g_autoptr(GArray) writes = state_writes_new();
    g_autoptr(GArray) of = g_array_new(FALSE, FALSE, sizeof(size_t));
    g_autoptr(GPtrArray) named = g_ptr_array_new();
    g_autoptr(GPtrArray) behind = g_ptr_array_new();
    g_autoptr(GPtrArray) strange = g_ptr_array_new();
    for (size_t i = 0; i < r->n_partitions; i++) {
        struct alter_partition *a = &r->partitions[i];
        struct partition *p = context_partition(&c->ctx, a->topic->name, a->partition);
        bool same;
        a->error = judge(c, p, r->broker_id, a, &same);
        if (same) {
            fill_result(a, &p->leadership);
        } else if (!a->error) {
            plan_write(c, p, a, writes);
            g_array_append_val(of, i);
        } else if (a->error == KERR_INVALID_UPDATE_VERSION && !deletion_decides(p->topic)) {
            g_ptr_array_add(behind, p);
        } else if (a->error == KERR_INELIGIBLE_REPLICA && strangers_are_in_sync(p)) {
            g_ptr_array_add(strange, p);
        } else if (a->error == KERR_NOT_CONTROLLER) {
            leader_epoch_shown(c, p, r->broker_id, a->leader_epoch, behind);
        }
        if (p && p->has_leadership) {
            g_ptr_array_add(named, p);
        }
    }
    write_sets(c, r, writes, of, done);
    for (guint i = 0; i < named->len; i++) {
        batch_update_metadata(c, named->pdata[i]);
    }
    batch_send(c);
    /* A state that the leader of this epoch does not know: the answer to its change was lost, or a hand wrote it. In
     * the same epoch it would never learn it. Or the leader knows a later one than the controller: either this one is
     * deposed, and cannot write; or a hand has set the state back. */
    partitions_renew(c, behind);
    strangers_expel(c, strange);
    batch_send(c);
    if (strange->len) {
        partitions_trigger_online(c, NULL);
    }
}

void alter_partition(struct controller *c, struct broker_request *r)
{
    g_autoptr(GPtrArray) done = g_ptr_array_new();
    const struct broker *b = context_broker(&c->ctx, r->broker_id);
    if (!b || b->epoch != r->broker_epoch) {
        r->error = KERR_STALE_BROKER_EPOCH;
    } else {
        alter_partitions(c, r, done);
        r->error = c->moved ? KERR_NOT_CONTROLLER : KERR_NONE;
    }
    c->env.respond(c->env.ctx, r);
    reassignment_check(c, done);
}
