/* Leader epochs, and how they are raised. The tree is where they are kept; but a state can be removed or rewritten by
 * hand, and the one that a later controller then makes is below what brokers have. They refuse it, rightly: an epoch
 * has one leader. In Kafka that is the end, until they are started again: no leader, no end of a reassignment, no
 * deletion. Here a broker says what it has, and the partition goes on above that. */
#include "controller/core.h"

/* INT32_MAX is a number that some hand has written; there is nothing above it. */
int32_t next_leader_epoch(const struct partition *p, int32_t epoch)
{
    int32_t last = MAX(epoch, p->shown_epoch);
    return last < INT32_MAX ? last + 1 : last;
}

static bool raise_epoch(struct controller *c, struct partition *p, int rc, struct leader_and_isr *l, void *arg)
{
    if (rc != ZOK || election_is_outdated(c, p, l->controller_epoch)) {
        g_autofree char *path = partition_state_path(p);
        complain(c, rc ? zerr_errno(rc) : ESTALE, path, "the leader epoch could not be raised%s",
                rc == ZNONODE ? "; the next controller makes the state again (remove /controller)" : "");
        return false;
    }
    l->leader_epoch = next_leader_epoch(p, l->leader_epoch);
    l->controller_epoch = c->epoch;
    return true;
}

static void raised(struct controller *c, struct partition *p, struct leader_and_isr *l, void *arg)
{
    partition_take_leadership(c, p, l);
    g_ptr_array_add(arg, p);
}

/* KafkaController.updateLeaderEpoch: followers and leader take notice of a changed replica list by a new epoch. The
 * bumped epoch goes into the cache, or UpdateMetadata would spread the old one (KAFKA-9212). */
void partitions_bump_leader_epoch(struct controller *c, GPtrArray *partitions)
{
    g_autoptr(GPtrArray) all = g_ptr_array_copy(partitions, NULL, NULL);
    g_ptr_array_set_size(partitions, 0);
    rewrite_partition_states(c, all, &(struct rewrite){raise_epoch, raised, partitions});
}

void partitions_renew(struct controller *c, GPtrArray *partitions)
{
    partitions_bump_leader_epoch(c, partitions);
    for (guint i = 0; i < partitions->len; i++) {
        struct partition *p = partitions->pdata[i];
        batch_leader_and_isr_all(c, p, p->replicas, false);
    }
}

/* ---- what brokers show ---- */

static bool is_behind(const struct partition *p)
{
    return p->has_leadership && p->shown_epoch >= p->leadership.leader_epoch && !deletion_decides(p->topic);
}

void leader_epoch_shown(struct controller *c, struct partition *p, int32_t broker, int32_t epoch, GPtrArray *behind)
{
    if (!p->has_leadership || epoch < p->leadership.leader_epoch) {
        return; /* raised meanwhile */
    }
    emit(c, "controller %d partition %s-%d broker %d has leader epoch %d", c->broker_id, p->topic->ref->name, p->id,
            broker, epoch);
    p->shown_epoch = MAX(p->shown_epoch, epoch);
    if (p->leadership.leader_epoch == INT32_MAX) {
        g_autofree char *path = partition_state_path(p);
        complain(c, ERANGE, path, "there is no leader epoch above that of broker %d", broker);
    } else if (is_behind(p)) {
        g_ptr_array_add(behind, p);
    }
}

/* Has a leader refused the state that the controller and the tree still have? If not, it has changed the state itself
 * since this was said. */
static bool is_unchanged(struct controller *c, const struct partition *p, const struct partition_state *s)
{
    struct leader_and_isr now;
    if (p->leadership.partition_epoch != s->partition_epoch || read_partition_state(c, p, &now) != ZOK) {
        return false;
    }
    leader_and_isr_clear(&now);
    return now.partition_epoch == s->partition_epoch;
}

/* Is the state that was refused, or what has become of it, no news to this broker for ever? */
static bool is_fenced(struct controller *c, const struct partition *p, const struct partition_state *s,
        enum kafka_error error, int32_t held)
{
    if (error != KERR_FENCED_LEADER_EPOCH && error != KERR_NOT_LEADER_OR_FOLLOWER) {
        return false;
    }
    if (held != p->leadership.leader_epoch) {
        return held > p->leadership.leader_epoch;
    }
    return s->leader_epoch == held && (error == KERR_NOT_LEADER_OR_FOLLOWER || is_unchanged(c, p, s));
}

void leader_epochs_fenced(struct controller *c, int32_t broker, const struct control_request *request,
        const struct control_response *response)
{
    g_autoptr(GPtrArray) behind = g_ptr_array_new();
    guint n = MIN(request->partition_states->len, response->leader_epochs->len);
    for (guint i = 0; i < n; i++) {
        const struct partition_state *s = request->partition_states->pdata[i];
        struct partition *p = context_partition(&c->ctx, s->topic->name, s->partition);
        enum kafka_error error = g_array_index(response->partition_errors, enum kafka_error, i);
        int32_t held = g_array_index(response->leader_epochs, int32_t, i);
        if (p && p->has_leadership && strcmp(p->topic->ref->id, s->topic->id) == 0 && is_fenced(c, p, s, error, held)) {
            leader_epoch_shown(c, p, broker, held, behind);
        }
    }
    partitions_renew(c, behind);
    batch_send(c);
}

void leader_epochs_retry(struct controller *c)
{
    g_autoptr(GPtrArray) behind = g_ptr_array_new();
    struct partition_iter it = partition_iter(&c->ctx);
    for (struct partition *p; (p = partition_iter_next(&it));) {
        if (is_behind(p) && p->leadership.leader_epoch < INT32_MAX) {
            g_ptr_array_add(behind, p);
        }
    }
    partitions_renew(c, behind);
    batch_send(c);
}
