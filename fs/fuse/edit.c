#include "fs/fuse/edit.h"

#include <errno.h>
#include <string.h>
#include "fs/tree/path.h"

/* Far beyond what can happen: a plan that can never succeed must not spin for ever. */
#define MAX_ROUNDS 100

static void judge(struct edit *e);

struct edit *edit_new(fuse_req_t req, enum request_type type, const char *path, void (*finish)(struct edit *e, int err))
{
    struct edit *e = g_new0(struct edit, 1);
    e->mount = mount_of(req);
    e->req = req;
    e->type = type;
    e->path = g_strdup(path);
    e->finish = finish;
    e->pid = fuse_req_ctx(req)->pid;
    e->gen = settle_hold_now(e->mount->settle);
    return e;
}

void edit_free(struct edit *e)
{
    g_free(e->path);
    g_free(e->new_path);
    g_free(e->result_path);
    bytes_unref(e->value);
    bytes_unref(e->patched);
    inode_unref(e->inode);
    handle_unref(e->handle);
    znode_unref(e->node);
    settle_release(e->mount->settle, e->gen);
    g_free(e);
}

void edit_reply_err(struct edit *e, int err)
{
    fuse_reply_err(e->req, err);
    edit_free(e);
}

/* Makes `patched` from the node's data. 0 or an errno. */
static int make_patched(struct edit *e, const struct bytes *data)
{
    size_t old = data ? data->len : 0, add = e->value ? e->value->len : 0, len;
    uint64_t offset = e->offset < 0 ? old : (uint64_t)e->offset;
    if (offset > ZNODE_MAX_DATA || add > ZNODE_MAX_DATA - offset)
        return EFBIG;
    len = e->truncate ? offset : MAX(old, offset + add);
    g_autofree char *text = g_malloc0(len + 1);
    if (data)
        memcpy(text, data->data, MIN(old, len));
    if (e->value)
        memcpy(text + offset, e->value->data, add);
    bytes_unref(e->patched);
    e->patched = bytes_new(text, len);
    return 0;
}

/* What the request is, given the tree as it is now. 0 or an errno. */
static int look(struct edit *e)
{
    if (!e->set_or_create && !e->patch && !e->node)
        return 0;
    struct mirror *mirror = e->mount->mirror;
    struct bytes *data = NULL;
    mirror_rdlock(mirror);
    struct znode *n = mirror_find(mirror, e->path);
    g_autofree char *parent = n ? NULL : path_parent(e->path);
    bool parent_exists = n || mirror_find(mirror, parent);
    if (n) {
        data = bytes_ref(znode_data(n));
        e->version = znode_stat(n)->version;
        e->czxid = znode_stat(n)->czxid;
    }
    mirror_unlock(mirror);
    int err = 0;
    if (e->node && n != e->node)
        err = ESTALE;
    else if (!n && (!parent_exists || !e->set_or_create))
        err = ENOENT;
    else if (n && e->exclusive)
        err = EEXIST;
    else if (e->set_or_create)
        e->type = n ? REQ_SET : REQ_CREATE;
    if (err == 0 && e->patch)
        err = make_patched(e, data);
    bytes_unref(data);
    return err;
}

static void release_edit(struct mount *m)
{
    pthread_mutex_lock(&m->lock);
    m->edits--;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

/* An outcome: the last thing that happens to an edit before its `finish`. True: that has submitted it again, and it is
 * to be judged. (Not from within `finish`: a write may be a million lines with nothing to do.) */
static bool conclude(struct edit *e, int err)
{
    struct mount *m = e->mount;
    bool again = false;
    if (err == 0 && !e->result_path && e->path)
        e->result_path = g_strdup(e->path);
    e->again = &again;
    e->finish(e, err);
    if (again)
        e->again = NULL;
    else
        release_edit(m);
    return again;
}

static bool may_judge_again(const struct edit *e, int rc)
{
    if (e->rounds >= MAX_ROUNDS)
        return false;
    if (rc == ZBADVERSION || rc == ZNODEEXISTS || rc == ZNONODE)
        return e->judge_again || e->set_or_create || e->patch || e->node;
    return e->judge_again && (rc == ZNOTEMPTY || rc == ZNOCHILDRENFOREPHEMERALS);
}

static const char *failure_words(int rc)
{
    switch (rc) {
    case ZSTORENOSPACE:
        return "the store has no space left";
    case ZNOTREADONLY:
        return "the store is read-only";
    case ZSTOREIO:
        return "the store cannot be written";
    case ZTOOLARGE:
        return "a znode holds at most 1000000 bytes";
    default:
        return NULL;
    }
}

static void edit_done(struct txn *txn, void *arg)
{
    struct edit *e = arg;
    int rc = txn->rc;
    if (rc == ZOK && e->result_op < txn->n_ops) {
        const struct op *op = &txn->ops[e->result_op];
        e->result_path = g_strdup(op->result_path ? op->result_path : op->path);
    }
    txn_free(txn);
    if (rc != ZOK && may_judge_again(e, rc)) {
        judge(e);
        return;
    }
    const char *words = failure_words(rc);
    if (words)
        journal_error(e->mount->errors, zerr_errno(rc), e->path ? e->path : e->new_path, "%s", words);
    if (conclude(e, rc == ZOK ? 0 : zerr_errno(rc)))
        judge(e);
}

const struct edit *edit_of_commit(const struct commit *c)
{
    return c->txn && c->txn->done == edit_done ? c->txn->arg : NULL;
}

/* What is meant for one node must meet that node again, and a value made from its data the same data. */
static void pin(struct edit *e, struct txn *txn)
{
    for (size_t i = 0; i < txn->n_ops; i++) {
        struct op *op = &txn->ops[i];
        if (op->type != OP_SET || op->version != -1 || strcmp(op->path, e->path) != 0)
            continue;
        op->czxid = e->czxid;
        if (e->patch)
            op->version = e->version;
    }
}

static void submit_txn(struct edit *e, struct plan *plan)
{
    struct txn *txn = plan->txn;
    plan->txn = NULL;
    e->judge_again = plan->judge_again;
    e->result_op = plan->result_op;
    if ((e->patch || e->node) && e->type == REQ_SET)
        pin(e, txn);
    txn->origin = TXN_CLIENT;
    txn->gen = e->gen;
    txn->done = edit_done;
    txn->arg = e;
    store_submit(e->mount->config.store, txn);
}

static void command_answered(void *arg, int err)
{
    if (conclude(arg, err))
        judge(arg);
}

/* True: it is to be judged again at once. */
static bool judge_once(struct edit *e)
{
    struct mount *m = e->mount;
    bool again = false;
    e->rounds++;
    int err = look(e);
    if (err == ESTALE && e->patch && m->policy->is_request && m->policy->is_request(m->policy->ctx, e->path))
        return conclude(e, 0);
    if (err != 0)
        return conclude(e, err);
    const struct request request = {
            .type = e->type,
            .path = e->path,
            .new_path = e->new_path,
            .value = e->patch ? e->patched : e->value,
            .replace = e->replace,
            .raw = m->raw,
            .pid = e->pid,
    };
    struct plan plan = {0};
    m->policy->plan(m->policy->ctx, &request, &plan);
    switch (plan.type) {
    case PLAN_REFUSE:
        if (plan.reason)
            journal_error(
                    m->errors, plan.err, e->new_path && !plan.of_source ? e->new_path : e->path, "%s", plan.reason);
        again = conclude(e, plan.err);
        break;
    case PLAN_NOTHING:
        again = conclude(e, 0);
        break;
    case PLAN_TXN:
        submit_txn(e, &plan);
        break;
    case PLAN_COMMAND:
        m->policy->command(m->policy->ctx, &request, e->gen, command_answered, e);
        break;
    }
    plan_clear(&plan);
    return again;
}

static void judge(struct edit *e)
{
    while (judge_once(e))
        ;
}

void edit_submit(struct edit *e)
{
    struct mount *m = e->mount;
    g_clear_pointer(&e->result_path, g_free);
    e->rounds = 0;
    if (e->again) { /* conclude() sees to it, and it counts still */
        *e->again = true;
        return;
    }
    pthread_mutex_lock(&m->lock);
    m->edits++;
    pthread_mutex_unlock(&m->lock);
    judge(e);
}

void edit_wait(struct mount *m, struct handle *h)
{
    pthread_mutex_lock(&m->lock);
    while (atomic_load_explicit(&h->busy, memory_order_acquire))
        pthread_cond_wait(&m->changed, &m->lock);
    pthread_mutex_unlock(&m->lock);
}

void edits_drain(struct mount *m)
{
    pthread_mutex_lock(&m->lock);
    while (m->edits > 0)
        pthread_cond_wait(&m->changed, &m->lock);
    pthread_mutex_unlock(&m->lock);
}
