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

/* ---- paths and partition states ---- */

char *topic_path(const char *topic)
{
    return g_strconcat("/brokers/topics/", topic, NULL);
}

char *partition_state_path(const struct partition *p)
{
    char id[12]; /* an election makes hundreds of thousands of these: concatenation costs a third of a format */
    char *at = id + sizeof(id);
    *--at = '\0';
    int32_t n = p->id;
    do {
        *--at = (char)('0' + n % 10);
    } while (n /= 10);
    return g_strconcat("/brokers/topics/", p->topic->ref->name, "/partitions/", at, "/state", NULL);
}

int decode_partition_state(struct controller *c, const struct partition *p, const struct bytes *data, int32_t version,
        struct leader_and_isr *ret)
{
    g_autofree char *why = NULL;
    if (!leader_and_isr_decode(data, ret, &why)) {
        g_autofree char *path = partition_state_path(p);
        complain(c, EINVAL, path, "%s", why);
        return ZBADARGUMENTS;
    }
    ret->partition_epoch = version;
    return ZOK;
}

int read_partition_state(struct controller *c, const struct partition *p, struct leader_and_isr *ret)
{
    g_autofree char *path = partition_state_path(p);
    struct bytes *data = NULL;
    struct zstat stat;
    int rc = c->env.get(c->env.ctx, path, &data, &stat);
    if (rc == ZOK) {
        rc = decode_partition_state(c, p, data, stat.version, ret);
    }
    bytes_unref(data);
    return rc;
}

static void clear_state_write(gpointer arg)
{
    leader_and_isr_clear(&((struct state_write *)arg)->next);
}

GArray *state_writes_new(void)
{
    GArray *writes = g_array_new(FALSE, FALSE, sizeof(struct state_write));
    g_array_set_clear_func(writes, clear_state_write);
    return writes;
}

/* One transaction did those of `which` from `first` up to `end`: what that means for each. One that somebody was faster
 * with, or whose node is gone, takes the others with it: they go to `again`. */
static void take_results(struct controller *c, GArray *writes, const GArray *which, guint first, guint end,
        const struct txn *txn, GArray *again)
{
    bool beaten = txn->rc == ZBADVERSION || txn->rc == ZNONODE;
    for (guint i = first; i < end; i++) {
        guint at = g_array_index(which, guint, i);
        struct state_write *w = &g_array_index(writes, struct state_write, at);
        const struct op *op = &txn->ops[1 + i - first];
        if (txn->rc == ZOK) {
            w->rc = ZOK;
            w->next.partition_epoch = op->stat.version;
        } else if (c->moved) {
            w->rc = ZSESSIONEXPIRED;
        } else if (beaten && end - first > 1) {
            g_array_append_val(again, at);
        } else if (beaten) {
            w->rc = ZBADVERSION; /* it is read again, and its own trouble shows */
        } else {
            w->rc = txn->rc;
            complain(c, zerr_errno(txn->rc), op->path, "the partition state could not be written: %s",
                    zerr_name(txn->rc));
        }
    }
}

/* `alone`: each in a transaction of its own. */
static void run_writes(struct controller *c, GArray *writes, const GArray *which, bool alone, GArray *again)
{
    g_autoptr(GPtrArray) txns = txn_array_new();
    g_autoptr(GArray) ends = g_array_new(FALSE, FALSE, sizeof(guint));
    struct txn *txn = NULL;
    const struct topic *topic = NULL;
    for (guint i = 0; i < which->len; i++) {
        const struct state_write *w = &g_array_index(writes, struct state_write, g_array_index(which, guint, i));
        if (!txn || alone || topic != w->p->topic || txn_is_full(txn)) {
            if (txn) {
                g_array_append_val(ends, i);
            }
            topic = w->p->topic;
            txn = fenced_txn(c);
            g_ptr_array_add(txns, txn);
        }
        g_autofree char *path = partition_state_path(w->p);
        txn_set(txn, path, leader_and_isr_encode(&w->next), w->next.partition_epoch);
    }
    g_array_append_val(ends, which->len);
    fenced_run(c, txns);
    for (guint i = 0, first = 0; i < txns->len; i++) {
        guint end = g_array_index(ends, guint, i);
        take_results(c, writes, which, first, end, txns->pdata[i], again);
        first = end;
    }
}

void write_partition_states(struct controller *c, GArray *writes)
{
    g_autoptr(GArray) all = g_array_sized_new(FALSE, FALSE, sizeof(guint), writes->len);
    g_autoptr(GArray) again = g_array_new(FALSE, FALSE, sizeof(guint));
    for (guint i = 0; i < writes->len; i++) {
        g_array_append_val(all, i);
    }
    run_writes(c, writes, all, false, again);
    if (again->len > 0) {
        run_writes(c, writes, again, true, NULL);
    }
}
