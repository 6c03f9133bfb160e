/* Becoming and ceasing to be the controller (KafkaController.elect, KafkaZkClient.registerControllerAndIncrement-
 * ControllerEpoch, onControllerResignation). */
#include "controller/core.h"

#define ELECT_ATTEMPTS 16
#define EPOCH_SANE (INT32_MAX - 1000000)

/* ---- the epoch ---- */

static void raise_epoch(struct controller *c, int32_t epoch)
{
    if (epoch < EPOCH_SANE) {
        c->highest_epoch = MAX(c->highest_epoch, epoch);
    }
}

static void look_for_epochs_of_topic(struct controller *c, const char *topic)
{
    g_autofree char *partitions = g_strdup_printf("/brokers/topics/%s/partitions", topic);
    g_autoptr(GPtrArray) ids = c->env.children(c->env.ctx, partitions);
    for (guint i = 0; ids && i < ids->len; i++) {
        g_autofree char *path = g_strdup_printf("%s/%s/state", partitions, (const char *)ids->pdata[i]);
        struct bytes *data = NULL;
        struct leader_and_isr l;
        if (c->env.get(c->env.ctx, path, &data, NULL) == ZOK && leader_and_isr_decode(data, &l, NULL)) {
            raise_epoch(c, l.controller_epoch);
            leader_and_isr_clear(&l);
        }
        bytes_unref(data);
    }
}

/* /controller_epoch is gone or is no number: it is made again above every epoch that was ever seen, or this controller
 * could not touch the partitions that a later one has written. */
static int32_t epoch_from_tree(struct controller *c)
{
    g_autoptr(GPtrArray) topics = c->env.children(c->env.ctx, "/brokers/topics");
    for (guint i = 0; topics && i < topics->len; i++) {
        look_for_epochs_of_topic(c, topics->pdata[i]);
    }
    return c->highest_epoch;
}

/* A partition state carries a higher epoch than this controller's: either there is a later controller, or the epoch was
 * set back by hand, or the state came from elsewhere. If this one wins the next election, it begins above it. A number
 * that leaves no room for epochs to come is nothing but damage, confined to its partition. */
bool election_is_outdated(struct controller *c, const struct partition *p, int32_t epoch)
{
    if (epoch <= c->epoch) {
        return false;
    }
    g_autofree char *path = partition_state_path(p);
    complain(c, ESTALE, path, "its controller_epoch %d is above this controller's, %d", epoch, c->epoch);
    if (epoch < EPOCH_SANE) {
        raise_epoch(c, epoch);
        c->moved = true;
    }
    return true;
}

/* /controller_epoch: what is stored, or what was seen if that is higher; so epochs only grow. */
struct epoch_node {
    bool exists;
    int32_t epoch, version;
    int64_t czxid;
};

static struct epoch_node read_epoch(struct controller *c)
{
    struct epoch_node node = {0};
    struct bytes *data = NULL;
    struct zstat stat;
    node.exists = c->env.get(c->env.ctx, "/controller_epoch", &data, &stat) == ZOK;
    if (node.exists) {
        node.version = stat.version;
        node.czxid = stat.czxid;
    }
    g_autofree char *why = NULL;
    if (!node.exists) {
        node.epoch = epoch_from_tree(c);
    } else if (!controller_epoch_decode(data, &node.epoch, &why)) {
        complain(c, EINVAL, "/controller_epoch", "%s", why);
        node.epoch = epoch_from_tree(c);
    }
    node.epoch = MAX(node.epoch, c->highest_epoch);
    bytes_unref(data);
    return node;
}

/* ---- /controller ---- */

static bool still_mine(struct controller *c, struct zstat *ret_stat)
{
    return c->controller_czxid && c->env.get(c->env.ctx, "/controller", NULL, ret_stat) == ZOK &&
           ret_stat->czxid == c->controller_czxid;
}

/* The one write without the fence: /controller, if it is the node that this candidate made. Whoever is elected then
 * begins anew from the epoch as it is now, so a controller that is named is never inert. What cannot be done now is
 * done before the next attempt to be elected. */
static void give_back(struct controller *c)
{
    struct zstat stat;
    if (!still_mine(c, &stat)) {
        c->controller_czxid = 0;
        return;
    }
    struct txn *txn = txn_new(TXN_INTERNAL);
    txn_delete(txn, "/controller", stat.version);
    c->env.run(c->env.ctx, &txn, 1);
    if (txn->rc == ZSTORENOSPACE || txn->rc == ZCONNECTIONLOSS) {
        complain(c, zerr_errno(txn->rc), "/controller", "broker %d cannot give it back: %s", c->broker_id,
                zerr_name(txn->rc));
        c->retry = true;
    } else {
        c->controller_czxid = 0;
    }
    txn_free(txn);
}

/* ---- elect ---- */

/* /controller as it is: absent; or somebody's; or mine by a transaction whose answer was lost. */
static bool won_before(struct controller *c, const struct epoch_node *before, struct zstat *stat, bool *ret_taken)
{
    struct bytes *data = NULL;
    int32_t id = -1;
    *ret_taken = c->env.get(c->env.ctx, "/controller", &data, stat) == ZOK;
    bool mine = *ret_taken && controller_znode_decode(data, &id, NULL) && id == c->broker_id;
    bytes_unref(data);
    struct epoch_node now = mine && before ? read_epoch(c) : (struct epoch_node){0};
    return mine && before && now.exists && now.epoch == before->epoch + 1;
}

static void win(struct controller *c, const struct epoch_node *won, int64_t controller_czxid)
{
    c->active = true;
    c->epoch = won->epoch;
    c->epoch_zk_version = won->version;
    c->epoch_czxid = won->czxid;
    c->controller_czxid = controller_czxid;
    raise_epoch(c, c->epoch);
    emit(c, "controller %d elected epoch %d", c->broker_id, c->epoch);
    controller_failover(c);
}

/* One transaction: the ephemeral /controller, and the epoch above the last. ZOK: won, and start-up is done. */
static int try_to_win(struct controller *c, const struct epoch_node *node)
{
    struct txn *txn = txn_new(TXN_INTERNAL);
    if (!node->exists) {
        txn_create(txn, "/controller_epoch", controller_epoch_encode(node->epoch), 0);
    }
    struct bytes *me = controller_znode_encode(c->broker_id, c->env.now_ms(c->env.ctx));
    size_t create = txn_create(txn, "/controller", me, CREATE_EPHEMERAL);
    size_t set = txn_set(txn, "/controller_epoch", controller_epoch_encode(node->epoch + 1), node->version);
    c->env.run(c->env.ctx, &txn, 1);
    int rc = txn->rc;
    struct zstat mine = txn->ops[create].stat, epoch = txn->ops[set].stat;
    txn_free(txn);
    if (rc == ZOK) {
        struct epoch_node won = {true, node->epoch + 1, epoch.version, epoch.czxid};
        win(c, &won, mine.czxid);
    }
    return rc;
}

void election_elect(struct controller *c)
{
    struct epoch_node node;
    int rc = ZOK;
    if (!c->active) {
        give_back(c);
    }
    for (int i = 0; i < ELECT_ATTEMPTS; i++) {
        struct zstat stat;
        bool taken;
        if (won_before(c, rc == ZCONNECTIONLOSS ? &node : NULL, &stat, &taken)) {
            struct epoch_node now = read_epoch(c);
            win(c, &now, stat.czxid);
            return;
        }
        if (taken) {
            return;
        }
        node = read_epoch(c);
        if (node.epoch == INT32_MAX) {
            complain(c, ERANGE, "/controller_epoch", "there is no epoch above %d", node.epoch);
            return;
        }
        rc = try_to_win(c, &node);
        if (rc == ZOK || rc == ZSESSIONEXPIRED) {
            return;
        }
        if (rc != ZNODEEXISTS && rc != ZBADVERSION && rc != ZNONODE && rc != ZCONNECTIONLOSS) {
            complain(c, zerr_errno(rc), "/controller", "broker %d cannot become the controller: %s", c->broker_id,
                    zerr_name(rc));
            c->retry = rc == ZSTORENOSPACE;
            return;
        }
    }
}

/* ---- resign ---- */

/* Everything goes at once: no watch, timer, channel or memory of this epoch is left (KAFKA-1578, KAFKA-5310). */
void election_resign(struct controller *c)
{
    c->moved = false;
    if (!c->active) {
        return;
    }
    c->env.timer(c->env.ctx, TIMER_AUTO_PREFERRED_ELECTION, -1);
    for (guint i = 0; i < c->ctx.brokers->len; i++) {
        c->env.channel_close(c->env.ctx, ((struct broker *)c->ctx.brokers->pdata[i])->id);
    }
    batch_clear(c->batch);
    g_ptr_array_set_size(c->pending_deletions, 0);
    context_clear(&c->ctx);
    c->active = false;
    c->retry = c->retried = false;
    emit(c, "controller %d resigned epoch %d", c->broker_id, c->epoch);
    c->epoch = 0;
    c->epoch_zk_version = 0;
    c->epoch_czxid = 0;
}

void election_check(struct controller *c)
{
    struct zstat stat;
    if (c->active && !still_mine(c, &stat)) {
        election_resign(c);
    }
}

void election_give_up(struct controller *c)
{
    election_resign(c);
    give_back(c);
}

void election_step_down(struct controller *c)
{
    election_give_up(c);
    election_elect(c);
}
