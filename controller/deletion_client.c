/* ControllerDeletionClient: what the deletion manager writes and sends.
 *
 * The nodes of a topic go in one transaction: partition states and partitions, the topic, its configuration, and last
 * the mark. Where one is too small for them, the transactions are in that order, so that every prefix is a state which
 * a new controller finishes: the topic, configuration and mark are in the last, which fails if an earlier one did. */
#include "controller/core.h"

#define DELETE_ATTEMPTS 8

enum outcome { OPEN, GONE, FAILED };

struct job {
    const char *name;
    struct txn *last; /* of this round */
    enum outcome outcome;
};

/* The transactions for one topic, as they are being filled. */
struct plan_of_topic {
    struct controller *c;
    GPtrArray *txns;
    struct txn *txn;
};

static void begin_txn(struct plan_of_topic *plan)
{
    plan->txn = fenced_txn(plan->c);
    g_ptr_array_add(plan->txns, plan->txn);
}

/* Everything below `path`, children first. Returns whether `path` exists. */
static bool add_below(struct plan_of_topic *plan, const char *path)
{
    g_autoptr(GPtrArray) children = plan->c->env.children(plan->c->env.ctx, path);
    for (guint i = 0; children && i < children->len; i++) {
        g_autofree char *child = g_strconcat(path, "/", children->pdata[i], NULL);
        add_below(plan, child);
        if (txn_is_full(plan->txn)) {
            begin_txn(plan);
        }
        txn_delete(plan->txn, child, -1);
    }
    return children;
}

static void plan_topic(struct controller *c, GPtrArray *txns, struct job *job)
{
    static const char *const parents[] = {"/brokers/topics/", "/config/topics/", "/admin/delete_topics/"};
    struct plan_of_topic plan = {.c = c, .txns = txns};
    char *paths[G_N_ELEMENTS(parents)];
    bool exists[G_N_ELEMENTS(parents)];
    begin_txn(&plan);
    for (size_t i = 0; i < G_N_ELEMENTS(parents); i++) {
        paths[i] = g_strconcat(parents[i], job->name, NULL);
        exists[i] = add_below(&plan, paths[i]);
    }
    if (plan.txn->n_ops > 100) {
        begin_txn(&plan);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(parents); i++) {
        if (exists[i]) {
            txn_delete(plan.txn, paths[i], -1);
        }
        g_free(paths[i]);
    }
    job->last = plan.txn;
}

static void take_result(struct controller *c, struct job *job)
{
    int rc = job->last->rc;
    if (rc == ZOK) {
        job->outcome = GONE;
    } else if (rc != ZNOTEMPTY && rc != ZNONODE) { /* those two: nodes came or went meanwhile, look again */
        job->outcome = FAILED;
        if (!c->moved) {
            g_autofree char *path = topic_path(job->name);
            complain(c, zerr_errno(rc), path, "the topic's nodes could not be removed: %s", zerr_name(rc));
        }
    }
}

/* Returns whether some are still open. */
static bool delete_round(struct controller *c, struct job *jobs, guint n)
{
    g_autoptr(GPtrArray) txns = txn_array_new();
    bool open = false;
    for (guint i = 0; i < n; i++) {
        if (jobs[i].outcome == OPEN) {
            plan_topic(c, txns, &jobs[i]);
        }
    }
    fenced_run(c, txns);
    for (guint i = 0; i < n; i++) {
        if (jobs[i].outcome == OPEN) {
            take_result(c, &jobs[i]);
            open = open || jobs[i].outcome == OPEN;
        }
    }
    return open && !c->moved;
}

void deletion_client_delete_topics(struct controller *c, GPtrArray *names, bool *done)
{
    g_autofree struct job *jobs = g_new0(struct job, names->len);
    for (guint i = 0; i < names->len; i++) {
        jobs[i].name = names->pdata[i];
    }
    for (int attempt = 0; attempt < DELETE_ATTEMPTS && delete_round(c, jobs, names->len);) {
        attempt++;
    }
    for (guint i = 0; i < names->len; i++) {
        done[i] = jobs[i].outcome == GONE;
    }
}

void deletion_client_delete_markers(struct controller *c, GPtrArray *names)
{
    fenced_delete_children(c, "/admin/delete_topics", names);
}

void deletion_client_restore_marker(struct controller *c, const char *name)
{
    g_autofree char *path = g_strconcat("/admin/delete_topics/", name, NULL);
    struct txn *txn = fenced_txn(c);
    txn_create(txn, path, NULL, 0);
    int rc = fenced_run_one(c, txn);
    if (rc == ZOK) {
        complain(c, 0, path, "the deletion has started and goes on; the mark was put back");
    } else if (rc != ZNODEEXISTS && !c->moved) {
        complain(c, zerr_errno(rc), path, "the mark could not be put back: %s", zerr_name(rc));
    }
}

void deletion_client_send_metadata(struct controller *c, GPtrArray *topics)
{
    for (guint i = 0; i < topics->len; i++) {
        const struct topic *t = topics->pdata[i];
        for (guint p = 0; p < t->partitions->len; p++) {
            batch_update_metadata(c, t->partitions->pdata[p]);
        }
    }
    batch_send(c);
}
