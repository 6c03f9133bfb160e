/* What a request means where the policy has no rule of its own: plain ZooKeeper. */
#include "fs/policy.h"

#include <errno.h>

void plan_refuse(struct plan *ret, int err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    ret->type = PLAN_REFUSE;
    ret->err = err;
    ret->reason = g_strdup_vprintf(fmt, ap);
    va_end(ap);
}

void plan_clear(struct plan *plan)
{
    g_free(plan->reason);
    txn_free(plan->txn);
    *plan = (struct plan){0};
}

/* Refuses with the errno alone: what the shell says is reason enough. */
static void fail(struct plan *ret, int err)
{
    ret->type = PLAN_REFUSE;
    ret->err = err;
}

static struct txn *begin(struct plan *ret)
{
    ret->type = PLAN_TXN;
    ret->txn = txn_new(TXN_CLIENT);
    return ret->txn;
}

/* What there is to know about one end of a rename. */
struct end {
    bool exists, directory;
    struct bytes *data; /* a reference */
    struct zstat stat;
};

static struct end look(struct mirror *m, const char *path)
{
    struct end e = {0};
    mirror_rdlock(m);
    struct znode *n = mirror_find(m, path);
    if (n) {
        e.exists = true;
        e.directory = znode_is_directory(n);
        e.data = bytes_ref(znode_data(n));
        e.stat = *znode_stat(n);
    }
    mirror_unlock(m);
    return e;
}

/* A leaf moves: its data under the new name, in one transaction. The data was read here, so the node must still be that
 * one; a target that comes or goes meanwhile fails as well, and the request is judged again. */
static void plan_rename(struct mirror *m, const struct request *request, struct plan *ret)
{
    struct end from = {.exists = true, .data = bytes_ref((struct bytes *)request->value)};
    if (request->path)
        from = look(m, request->path);
    struct end to = look(m, request->new_path);
    ret->of_source = !from.exists || from.directory || from.stat.ephemeral_owner != 0;
    if (!from.exists)
        fail(ret, ENOENT);
    else if (from.directory)
        plan_refuse(ret, EPERM, "a directory cannot be renamed: ZooKeeper has no such operation");
    else if (from.stat.ephemeral_owner != 0)
        plan_refuse(ret, EPERM, "an ephemeral node belongs to its session and cannot be renamed");
    else if (to.exists && !request->replace)
        fail(ret, EEXIST);
    else if (to.exists && to.directory)
        fail(ret, EISDIR);
    else {
        struct txn *txn = begin(ret);
        if (to.exists)
            txn_expect(txn, ret->result_op = txn_set(txn, request->new_path, bytes_ref(from.data), -1), &to.stat);
        else
            ret->result_op = txn_create(txn, request->new_path, bytes_ref(from.data), 0);
        if (request->path)
            txn_expect(txn, txn_delete(txn, request->path, -1), &from.stat);
        ret->judge_again = true;
    }
    bytes_unref(from.data);
    bytes_unref(to.data);
}

/* The line is put after what is there. */
static void plan_append(struct mirror *m, const struct request *request, struct plan *ret)
{
    struct end e = look(m, request->path);
    g_autoptr(GByteArray) all = g_byte_array_new();
    if (e.data)
        g_byte_array_append(all, (const guint8 *)e.data->data, e.data->len);
    g_byte_array_append(all, (const guint8 *)request->value->data, request->value->len);
    struct txn *txn = begin(ret);
    if (e.exists)
        txn_expect(txn, txn_set(txn, request->path, bytes_new(all->data, all->len), -1), &e.stat);
    else
        txn_create(txn, request->path, bytes_new(all->data, all->len), 0);
    ret->judge_again = true;
    bytes_unref(e.data);
}

void plan_default(struct mirror *m, const struct request *request, struct plan *ret)
{
    *ret = (struct plan){0};
    switch (request->type) {
    case REQ_MKDIR:
        ret->result_op = txn_create(begin(ret), request->path, NULL, 0);
        break;
    case REQ_CREATE:
        ret->result_op = txn_create(begin(ret), request->path, bytes_ref((struct bytes *)request->value), 0);
        break;
    case REQ_SET:
        txn_set(begin(ret), request->path, bytes_ref((struct bytes *)request->value), -1);
        break;
    case REQ_APPEND:
        plan_append(m, request, ret);
        break;
    case REQ_UNLINK:
    case REQ_RMDIR:
        txn_delete(begin(ret), request->path, -1);
        break;
    case REQ_RENAME:
        plan_rename(m, request, ret);
        break;
    case REQ_TOUCH:
        ret->type = PLAN_NOTHING;
        break;
    }
}
