#include "fs/tree/txn.h"

#include <glib.h>
#include <string.h>

struct txn *txn_new(enum txn_origin origin)
{
    struct txn *txn = g_new0(struct txn, 1);
    txn->origin = origin;
    return txn;
}

void txn_free(struct txn *txn)
{
    if (!txn)
        return;
    for (size_t i = 0; i < txn->n_ops; i++) {
        g_free(txn->ops[i].path);
        g_free(txn->ops[i].result_path);
        bytes_unref(txn->ops[i].data);
    }
    g_free(txn->ops);
    g_free(txn);
}

void txn_reset(struct txn *txn)
{
    txn->rc = ZOK;
    txn->zxid = 0;
    for (size_t i = 0; i < txn->n_ops; i++) {
        struct op *op = &txn->ops[i];
        op->rc = ZOK;
        g_clear_pointer(&op->result_path, g_free);
        memset(&op->stat, 0, sizeof op->stat);
    }
}

static size_t append(struct txn *txn, const struct op *op)
{
    if (txn->n_ops == txn->cap_ops) {
        txn->cap_ops = MAX(4, txn->cap_ops * 2);
        txn->ops = g_renew(struct op, txn->ops, txn->cap_ops);
    }
    txn->ops[txn->n_ops] = *op;
    return txn->n_ops++;
}

size_t txn_create(struct txn *txn, const char *path, struct bytes *data, unsigned flags)
{
    return append(txn, &(struct op){.type = OP_CREATE, .path = g_strdup(path), .data = data, .flags = flags});
}

size_t txn_set(struct txn *txn, const char *path, struct bytes *data, int32_t version)
{
    return append(txn, &(struct op){.type = OP_SET, .path = g_strdup(path), .data = data, .version = version});
}

size_t txn_delete(struct txn *txn, const char *path, int32_t version)
{
    return append(txn, &(struct op){.type = OP_DELETE, .path = g_strdup(path), .version = version});
}

size_t txn_check(struct txn *txn, const char *path, int32_t version)
{
    return append(txn, &(struct op){.type = OP_CHECK, .path = g_strdup(path), .version = version});
}

void txn_expect(struct txn *txn, size_t i, const struct zstat *seen)
{
    txn->ops[i].version = seen->version;
    txn->ops[i].czxid = seen->czxid;
}

size_t txn_size(const struct txn *txn)
{
    size_t size = 0;
    for (size_t i = 0; i < txn->n_ops; i++)
        size += strlen(txn->ops[i].path) + (txn->ops[i].data ? txn->ops[i].data->len : 0);
    return size;
}
