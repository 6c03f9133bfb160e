/* Transactions under the controller's fence: each begins with check(/controller_epoch, epochZkVersion), so that a
 * deposed controller cannot write (KafkaZkClient, KAFKA-6082). Independent ones run as one pipeline, one commit for
 * many. */
#include "controller/core.h"

/* Well below ZooKeeper's packet of 1 MB: the size is looked at every 64 operations only. */
#define TXN_MAX_BYTES 600000
#define TXN_MAX_OPS 1000

struct txn *fenced_txn(const struct controller *c)
{
    struct txn *txn = txn_new(TXN_INTERNAL);
    txn_check(txn, "/controller_epoch", c->epoch_zk_version);
    txn->ops[0].czxid = c->epoch_czxid; /* removed by hand and made again, it may have that version once more */
    return txn;
}

static void free_txn(gpointer txn)
{
    txn_free(txn);
}

GPtrArray *txn_array_new(void)
{
    return g_ptr_array_new_with_free_func(free_txn);
}

bool txn_is_full(const struct txn *txn)
{
    return txn->n_ops >= TXN_MAX_OPS || (txn->n_ops % 64 == 0 && txn_size(txn) > TXN_MAX_BYTES);
}

/* Does this result mean that somebody else may be the controller now? An unknown outcome counts: a new election reads
 * the tree anew and so learns it. */
static bool means_moved(const struct txn *txn)
{
    if (txn->rc == ZSESSIONEXPIRED || txn->rc == ZCONNECTIONLOSS) {
        return true;
    }
    return txn->rc != ZOK && txn->n_ops > 0 && txn->ops[0].type == OP_CHECK &&
           (txn->ops[0].rc == ZBADVERSION || txn->ops[0].rc == ZNONODE);
}

void fenced_run(struct controller *c, GPtrArray *txns)
{
    if (c->moved) {
        for (guint i = 0; i < txns->len; i++) {
            ((struct txn *)txns->pdata[i])->rc = ZSESSIONEXPIRED;
        }
        return;
    }
    if (txns->len == 0) {
        return;
    }
    c->env.run(c->env.ctx, (struct txn **)txns->pdata, txns->len);
    for (guint i = 0; i < txns->len; i++) {
        c->moved = c->moved || means_moved(txns->pdata[i]);
        c->retry = c->retry || ((struct txn *)txns->pdata[i])->rc == ZSTORENOSPACE;
    }
}

int fenced_run_one(struct controller *c, struct txn *txn)
{
    g_autoptr(GPtrArray) txns = txn_array_new();
    g_ptr_array_add(txns, txn);
    fenced_run(c, txns);
    return txn->rc;
}

void fenced_delete_children(struct controller *c, const char *parent, GPtrArray *names)
{
    g_autoptr(GPtrArray) all = names ? g_ptr_array_ref(names) : c->env.children(c->env.ctx, parent);
    g_autoptr(GPtrArray) txns = txn_array_new();
    for (guint i = 0; all && i < all->len; i++) {
        g_autofree char *path = g_strconcat(parent, "/", all->pdata[i], NULL);
        struct txn *txn = fenced_txn(c);
        txn_delete(txn, path, -1);
        g_ptr_array_add(txns, txn);
    }
    fenced_run(c, txns);
    for (guint i = 0; i < txns->len; i++) {
        const struct txn *txn = txns->pdata[i];
        if (txn->rc && txn->rc != ZNONODE && !c->moved) {
            complain(c, zerr_errno(txn->rc), txn->ops[1].path, "could not be removed: %s", zerr_name(txn->rc));
        }
    }
}
