#include "fs/store/apply.h"

#include <string.h>
#include "fs/store/overlay.h"
#include "fs/tree/path.h"

struct applier {
    struct overlay *overlay;
    /* of the transaction at work */
    struct txn *txn;
    const struct apply_env *env;
    GArray *changes;
    int64_t zxid;
    int failure; /* -errno of the backend */
};

struct applier *applier_new(struct backend *b)
{
    struct applier *a = g_new0(struct applier, 1);
    a->overlay = overlay_new(b);
    return a;
}

void applier_free(struct applier *a)
{
    if (!a)
        return;
    overlay_free(a->overlay);
    g_free(a);
}

/* Of an existing node; NULL if there is none, or after a failure of the backend. */
static struct entry *find_node(struct applier *a, const char *path)
{
    struct entry *e = NULL;
    if (a->failure == 0)
        a->failure = overlay_find(a->overlay, path, &e);
    return a->failure == 0 && e && e->exists ? e : NULL;
}

/* Counters wrap, as Java's do. */
static int32_t next_version(int32_t version)
{
    return (int32_t)((uint32_t)version + 1);
}

static void note_change(struct applier *a, enum change_type type, const struct op *op, const struct entry *e,
        const struct entry *parent)
{
    struct change change = {
            .type = type,
            .path = op->result_path ? op->result_path : op->path,
            .data = type == NODE_DELETED ? NULL : op->data,
            .stat = e->node.stat,
            .parent_pzxid = parent ? parent->node.stat.pzxid : 0,
            .parent_cversion = parent ? parent->node.stat.cversion : 0,
    };
    g_array_append_val(a->changes, change);
}

/* One child more or less. */
static void change_children(struct applier *a, struct entry *parent, int by)
{
    overlay_touch(a->overlay, parent);
    struct node *node = &parent->node;
    node->stat.cversion = next_version(node->stat.cversion);
    node->stat.pzxid = a->zxid;
    node->num_children += (uint32_t)by;
}

/* The path of a new node. A sequence number is the count of children ever created, which Stat does not have: it shows
 * that count plus the count of children ever deleted as cversion (DataNode.copyStat: 2 * created - present). */
static char *new_path(const struct op *op, const struct entry *parent)
{
    if (!(op->flags & CREATE_SEQUENTIAL))
        return g_strdup(op->path);
    uint32_t created = ((uint32_t)parent->node.stat.cversion + parent->node.num_children) / 2;
    return g_strdup_printf("%s%010d", op->path, (int32_t)created);
}

/* The arguments alone. The bare prefix of a sequential name may be empty. */
static int check_create(const struct op *op)
{
    g_autofree char *probe = op->flags & CREATE_SEQUENTIAL ? g_strconcat(op->path, "0000000000", NULL) : NULL;
    const char *path = probe ? probe : op->path;
    if (!path_valid(path))
        return ZBADARGUMENTS;
    if (strlen(path) > STORE_PATH_MAX || strlen(path_name(path)) > RECORD_NAME_MAX)
        return ZNAMETOOLONG;
    return op->data && op->data->len > ZNODE_MAX_DATA ? ZTOOLARGE : ZOK;
}

/* PrepRequestProcessor.pRequest2TxnCreate, DataTree.createNode */
static int apply_create(struct applier *a, struct op *op)
{
    int rc = check_create(op);
    if (rc != ZOK)
        return rc;
    if (strcmp(op->path, "/") == 0 && !(op->flags & CREATE_SEQUENTIAL))
        return ZNODEEXISTS;
    int64_t owner = 0;
    if (op->flags & CREATE_EPHEMERAL) {
        owner = op->owner ? op->owner : a->txn->session;
        if (!a->env->session_open(a->env->ctx, owner))
            return ZSESSIONEXPIRED;
    }
    g_autofree char *parent_path = path_parent(op->path);
    struct entry *parent = find_node(a, parent_path);
    if (!parent)
        return ZNONODE;
    g_autofree char *path = new_path(op, parent);
    struct entry *e = NULL;
    a->failure = overlay_find(a->overlay, path, &e);
    if (a->failure < 0)
        return ZSTOREIO;
    if (e->exists)
        return ZNODEEXISTS;
    if (parent->node.stat.ephemeral_owner)
        return ZNOCHILDRENFOREPHEMERALS;

    change_children(a, parent, 1);
    struct node node = {.id = overlay_meta(a->overlay)->next_id++, .data = bytes_ref(op->data)};
    struct zstat *stat = &node.stat;
    stat->czxid = stat->mzxid = stat->pzxid = a->zxid;
    stat->ctime = stat->mtime = a->env->time_ms;
    stat->ephemeral_owner = owner;
    overlay_create(a->overlay, e, parent->node.id, &node);
    overlay_meta(a->overlay)->ephemerals += owner != 0;
    op->result_path = g_steal_pointer(&path);
    op->stat = e->node.stat;
    note_change(a, NODE_CREATED, op, e, parent);
    return ZOK;
}

static bool is_expected(const struct op *op, const struct zstat *stat)
{
    return (op->version == -1 || op->version == stat->version) && (op->czxid == 0 || op->czxid == stat->czxid);
}

/* pRequest2Txn(setData), DataTree.setData */
static int apply_set(struct applier *a, struct op *op)
{
    if (op->data && op->data->len > ZNODE_MAX_DATA)
        return ZTOOLARGE;
    struct entry *e = find_node(a, op->path);
    if (!e)
        return ZNONODE;
    if (!is_expected(op, &e->node.stat))
        return ZBADVERSION;
    overlay_touch(a->overlay, e);
    bytes_unref(e->node.data);
    e->node.data = bytes_ref(op->data);
    e->node.stat.version = next_version(e->node.stat.version);
    e->node.stat.mzxid = a->zxid;
    e->node.stat.mtime = a->env->time_ms;
    op->stat = e->node.stat;
    note_change(a, NODE_DATA_CHANGED, op, e, NULL);
    return ZOK;
}

/* pRequest2Txn(delete), DataTree.deleteNode */
static int apply_delete(struct applier *a, struct op *op)
{
    if (strcmp(op->path, "/") == 0)
        return ZBADARGUMENTS;
    struct entry *e = find_node(a, op->path);
    if (!e)
        return ZNONODE;
    if (!is_expected(op, &e->node.stat))
        return ZBADVERSION;
    if (e->node.num_children > 0)
        return ZNOTEMPTY;
    g_autofree char *parent_path = path_parent(op->path);
    struct entry *parent = find_node(a, parent_path);
    change_children(a, parent, -1);
    note_change(a, NODE_DELETED, op, e, parent);
    overlay_meta(a->overlay)->ephemerals -= e->node.stat.ephemeral_owner != 0;
    overlay_delete(a->overlay, e);
    return ZOK;
}

static int apply_check(struct applier *a, struct op *op)
{
    struct entry *e = find_node(a, op->path);
    if (!e)
        return ZNONODE;
    op->stat = e->node.stat;
    return is_expected(op, &e->node.stat) ? ZOK : ZBADVERSION;
}

static int apply_op(struct applier *a, struct op *op)
{
    int rc;
    if (op->type == OP_CREATE)
        rc = apply_create(a, op);
    else if (!path_valid(op->path))
        rc = ZBADARGUMENTS;
    else if (op->type == OP_SET)
        rc = apply_set(a, op);
    else if (op->type == OP_DELETE)
        rc = apply_delete(a, op);
    else
        rc = apply_check(a, op);
    return a->failure < 0 ? ZSTOREIO : rc;
}

void txn_fail(struct txn *txn, int rc)
{
    txn->rc = rc;
    for (size_t i = 0; i < txn->n_ops; i++)
        txn->ops[i].rc = rc;
}

static void apply_ops(struct applier *a)
{
    struct txn *txn = a->txn;
    size_t i = 0;
    for (; i < txn->n_ops && txn->rc == ZOK; i++)
        txn->rc = txn->ops[i].rc = apply_op(a, &txn->ops[i]);
    for (; i < txn->n_ops; i++)
        txn->ops[i].rc = ZRUNTIMEINCONSISTENCY;
}

int apply_txn(struct applier *a, struct txn *txn, const struct apply_env *env, GArray *changes)
{
    struct meta *meta = overlay_meta(a->overlay);
    guint before = changes->len;
    a->txn = txn;
    a->env = env;
    a->changes = changes;
    a->zxid = meta->zxid + 1;
    a->failure = 0;
    overlay_mark(a->overlay);
    txn_reset(txn);
    if (txn->session && !env->session_open(env->ctx, txn->session))
        txn_fail(txn, ZSESSIONEXPIRED);
    else
        apply_ops(a);
    if (txn->rc != ZOK) {
        overlay_undo(a->overlay);
        g_array_set_size(changes, before);
    } else if (changes->len > before) {
        meta->zxid = a->zxid;
    }
    txn->zxid = meta->zxid;
    return a->failure;
}

int apply_begin_incarnation(struct applier *a)
{
    overlay_meta(a->overlay)->incarnation++;
    return overlay_commit(a->overlay);
}

int apply_commit(struct applier *a)
{
    return overlay_commit(a->overlay);
}

void apply_rollback(struct applier *a)
{
    overlay_forget(a->overlay);
}
