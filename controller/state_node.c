/* The state node of a partition, /brokers/topics/T/partitions/P/state: how it is read, written under the fence, and
 * rewritten when others write it, too (leaders before 2.7, and hands). */
#include "controller/core.h"

/* ---- paths ---- */

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

/* ---- reading ---- */

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

bool partition_state_is_missing(struct controller *c, const struct partition *p)
{
    g_autofree char *path = partition_state_path(p);
    return c->env.get(c->env.ctx, path, NULL, NULL) == ZNONODE;
}

/* ---- writing ---- */

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

/* ---- rewriting ---- */

static void add_write(struct controller *c, struct partition *p, const struct rewrite *how, GArray *writes)
{
    struct state_write w = {.p = p};
    int rc = read_partition_state(c, p, &w.next);
    if (how->next(c, p, rc, &w.next, how->arg)) {
        g_array_append_val(writes, w);
    } else {
        leader_and_isr_clear(&w.next);
    }
}

void rewrite_partition_states(struct controller *c, GPtrArray *partitions, const struct rewrite *how)
{
    g_autoptr(GPtrArray) todo = g_ptr_array_copy(partitions, NULL, NULL);
    while (todo->len && !c->moved) {
        g_autoptr(GArray) writes = state_writes_new();
        for (guint i = 0; i < todo->len; i++) {
            add_write(c, todo->pdata[i], how, writes);
        }
        write_partition_states(c, writes);
        g_ptr_array_set_size(todo, 0);
        for (guint i = 0; i < writes->len; i++) {
            struct state_write *w = &g_array_index(writes, struct state_write, i);
            if (w->rc == ZOK) {
                how->written(c, w->p, &w->next, how->arg);
            } else if (w->rc == ZBADVERSION) {
                g_ptr_array_add(todo, w->p);
            }
        }
    }
}
