/*
 * Brokers start (KafkaServer.startup): persistent roots and cluster id; log dirs opened, locked and checked; ids; all
 * usable brokers of the group registered in one transaction, so that nobody elects before the others are there; then
 * the candidates, in ascending order of id. Log dirs are loaded after that: requests wait for it, not people.
 */
#include "controller/broker/engine_internal.h"
#include "controller/broker/meta_properties.h"
#include <errno.h>
#include <string.h>

#define ROOTS_ATTEMPTS 10

enum group_stage { GROUP_ROOTS, GROUP_OPEN, GROUP_IDS, GROUP_PASS, GROUP_REGISTER };

struct start_group {
    struct engine *engine;
    enum group_stage stage;
    GPtrArray *incs;     /* struct incarnation, each referred to */
    gen_t gen;           /* held */
    int64_t deadline_ms; /* GROUP_OPEN: log dirs that do not answer until then are gone on without */
    int attempts;
};

static void open_stage(struct start_group *g);
static void ids_stage(struct start_group *g);
static void pass_stage(struct start_group *g);
static void register_stage(struct start_group *g);

/* ---- members ---- */

void startup_leave(struct incarnation *inc)
{
    struct start_group *g = inc->group;

    inc->group = NULL;
    g_ptr_array_remove(g->incs, inc);
    inc_unref(inc);
}

/* This broker cannot start; the others can. */
static void refuse(struct incarnation *inc, int err, char *why)
{
    gen_t gen = inc->group->gen;

    inc_fail(inc, err, why, gen);
}

static void refuse_all(struct start_group *g, int err, const char *why)
{
    while (g->incs->len > 0)
        refuse(g_ptr_array_index(g->incs, 0), err, g_strdup(why));
}

static void group_end(struct start_group *g)
{
    while (g->incs->len > 0)
        startup_leave(g_ptr_array_index(g->incs, 0));
    settle_release(g->engine->config.settle, g->gen);
    g_ptr_array_remove_fast(g->engine->groups, g);
    g_ptr_array_unref(g->incs);
    g_free(g);
}

static struct engine_msg *group_msg(struct start_group *g, void (*run)(struct engine *e, struct engine_msg *m))
{
    struct engine_msg *m = engine_msg_new(run);

    m->group = g;
    return m;
}

/* ---- roots and cluster id ---- */

static void roots_done(struct engine *e, struct engine_msg *m);

static void roots_stage(struct start_group *g)
{
    struct txn *txn = registration_roots(g->engine);

    if (txn)
        engine_submit(g->engine, txn, 0, g->gen, group_msg(g, roots_done));
    else
        open_stage(g);
}

static void roots_done(struct engine *e, struct engine_msg *m)
{
    struct start_group *g = m->group;

    e->txns--;
    if (m->txn->rc == ZOK || (m->txn->rc == ZNODEEXISTS && ++g->attempts < ROOTS_ATTEMPTS)) {
        roots_stage(g);
        return;
    }
    g_autofree char *why = g_strdup_printf("the persistent roots could not be made: %s", zerr_name(m->txn->rc));
    refuse_all(g, zerr_errno(m->txn->rc), why);
    group_end(g);
}

/* ---- log dirs ---- */

static void open_dirs(struct incarnation *inc)
{
    for (size_t i = 0; i < inc->n_dirs && !inc->dead; i++) {
        int r = inc_start_worker(inc, (int)i);
        if (r < 0) {
            refuse(inc, -r, g_strdup_printf("no thread for log dir %s: %s", inc->dirs[i].path, g_strerror(-r)));
            return;
        }
        struct disk_job *job = disk_job_new(JOB_OPEN);
        job->use_topic_ids = broker_config_ibp_at_least(inc->config, 2, 8, 0);
        inc->opening++;
        inc_submit_job(inc, (int)i, job, inc->group->gen);
    }
}

/* All that could be opened is open: does it belong to this broker and this cluster? */
static void check_dirs(struct incarnation *inc)
{
    g_autoptr(GPtrArray) sets = g_ptr_array_new();
    int32_t id = inc->host->id;
    bool any = false;
    char *why;

    for (size_t i = 0; i < inc->n_dirs; i++) {
        any = any || inc->dirs[i].online;
        g_ptr_array_add(sets, inc->dirs[i].meta);
    }
    if (inc->refused) {
        refuse(inc, inc->refused, g_steal_pointer(&inc->refused_why));
    } else if (!any) {
        refuse(inc, EIO, g_strdup_printf("no log dir can be used: %s", inc->refused_why));
    } else if (meta_properties_check(sets, inc->paths, inc->engine->cluster_id, &id, &why) < 0) {
        refuse(inc, EINVAL, why);
    } else if (id >= 0 && id != inc->host->id && host_find(inc->engine, id)) {
        refuse(inc, EEXIST, g_strdup_printf("its log dirs belong to broker %d, which is another one here", id));
    } else {
        host_set_id(inc->host, id);
        inc->ready = true;
    }
}

static bool all_ready(const struct start_group *g)
{
    for (guint i = 0; i < g->incs->len; i++)
        if (!((struct incarnation *)g_ptr_array_index(g->incs, i))->ready)
            return false;
    return true;
}

static void check_group(struct start_group *g)
{
    if (g->stage == GROUP_OPEN && all_ready(g))
        ids_stage(g);
}

void startup_opened(struct incarnation *inc, struct disk_job *job)
{
    struct inc_dir *d = &inc->dirs[job->dir];
    struct start_group *g = inc->group;

    inc->opening--;
    d->online = job->err == 0;
    d->meta = g_steal_pointer(&job->meta);
    if (job->err) {
        if (!job->failed)
            inc->refused = -job->err;
        if (!job->failed || !inc->refused_why) {
            g_free(inc->refused_why);
            inc->refused_why = g_steal_pointer(&job->why);
        }
        inc_end_worker(inc, job->dir, true, g->gen);
    }
    if (inc->opening > 0)
        return;
    check_dirs(inc);
    check_group(g);
}

void startup_part_ended(struct host *h)
{
    struct incarnation *inc = h->now;

    if (!inc || !inc->group || inc->group->stage != GROUP_OPEN || h->old_parts > 0 || inc->opening > 0 || inc->ready ||
            inc->dirs[0].worker)
        return;
    struct start_group *g = inc->group;
    open_dirs(inc);
    check_group(g);
}

static void open_stage(struct start_group *g)
{
    struct engine *e = g->engine;

    g->stage = GROUP_OPEN;
    g->deadline_ms = engine_now_ms() + DISK_SILENCE_MS;
    g_free(e->cluster_id);
    e->cluster_id = registration_cluster_id(e);
    if (!e->cluster_id) {
        refuse_all(g, EINVAL, "/cluster/id holds no cluster id");
        group_end(g);
        return;
    }
    g_autoptr(GPtrArray) all = g_ptr_array_copy(g->incs, NULL, NULL);
    for (guint i = 0; i < all->len; i++) {
        struct incarnation *inc = g_ptr_array_index(all, i);
        if (inc->host->old_parts == 0) /* else when its former life has let go */
            open_dirs(inc);
    }
    check_group(g);
}

int64_t startup_tick(struct engine *e, int64_t now)
{
    int64_t next = -1;

    for (guint i = 0; i < e->groups->len; i++) {
        struct start_group *g = g_ptr_array_index(e->groups, i);
        if (g->stage != GROUP_OPEN)
            continue;
        if (now < g->deadline_ms && !all_ready(g)) { /* the one that was waited for may have left */
            next = next < 0 ? g->deadline_ms : MIN(next, g->deadline_ms);
            continue;
        }
        g_autoptr(GPtrArray) all = g_ptr_array_copy(g->incs, NULL, NULL);
        for (guint k = 0; k < all->len; k++) {
            struct incarnation *inc = g_ptr_array_index(all, k);
            if (!inc->ready)
                refuse(inc, ETIMEDOUT, g_strdup_printf("a log dir does not answer (%s ...)", inc->dirs[0].path));
        }
        check_group(g);
        return now; /* the list of groups may be another one now */
    }
    return next;
}

/* ---- ids ---- */

static void ids_done(struct engine *e, struct engine_msg *m)
{
    struct start_group *g = m->group;
    size_t op = 0;

    e->txns--;
    if (m->txn->rc != ZOK) {
        g_autofree char *why = g_strdup_printf("no broker id could be made: %s", zerr_name(m->txn->rc));
        refuse_all(g, zerr_errno(m->txn->rc), why);
        group_end(g);
        return;
    }
    for (guint i = 0; i < g->incs->len && op < m->txn->n_ops; i++) {
        struct incarnation *inc = g_ptr_array_index(g->incs, i);
        if (inc->host->id < 0)
            host_set_id(inc->host, m->txn->ops[op++].stat.version + inc->config->reserved_broker_max_id);
    }
    pass_stage(g);
}

/* KafkaZkClient.generateBrokerId: each write of /brokers/seqid makes a number. */
static void ids_stage(struct start_group *g)
{
    struct txn *txn = txn_new(TXN_INTERNAL);

    g->stage = GROUP_IDS;
    for (guint i = 0; i < g->incs->len; i++)
        if (((struct incarnation *)g_ptr_array_index(g->incs, i))->host->id < 0)
            txn_set(txn, "/brokers/seqid", bytes_new("", 0), -1);
    if (txn->n_ops > 0) {
        engine_submit(g->engine, txn, 0, g->gen, group_msg(g, ids_done));
    } else {
        txn_free(txn);
        pass_stage(g);
    }
}

/* ---- the controller ---- */

static void handle_passed(struct engine *e, struct engine_msg *m)
{
    e->txns--;
    register_stage(m->group);
}

/* Controller thread. */
static void passed(void *arg)
{
    struct start_group *g = arg;

    engine_post(g->engine, group_msg(g, handle_passed), g->gen);
}

/* A broker takes longer to start than an election (in Kafka by seconds): a death that was seen before is over for the
 * controller, also for one that is only elected by it, when that broker is there again. */
static void pass_stage(struct start_group *g)
{
    g->stage = GROUP_PASS;
    g->engine->txns++;
    controller_thread_pass(g->engine->config.controller, g->gen, passed, g);
}

/* ---- registration ---- */

static gint compare_ids(gconstpointer pa, gconstpointer pb)
{
    const struct incarnation *a = *(struct incarnation *const *)pa, *b = *(struct incarnation *const *)pb;

    return (a->host->id > b->host->id) - (a->host->id < b->host->id);
}

static bool clashes(struct start_group *g, guint at)
{
    struct incarnation *inc = g_ptr_array_index(g->incs, at);
    int32_t other = registration_find_clash(g->engine, inc->host->id, inc->config);

    for (guint i = 0; i < at && other < 0; i++) {
        struct incarnation *earlier = g_ptr_array_index(g->incs, i);
        if (registration_clash(earlier->config, inc->config))
            other = earlier->host->id;
    }
    if (other < 0)
        return false;
    refuse(inc, EADDRINUSE, g_strdup_printf("its listeners are already those of broker %d", other));
    return true;
}

/* The member that an operation is about; NULL: it has left meanwhile, and its session has ended with it. */
static struct incarnation *member_of(struct start_group *g, const struct op *op)
{
    for (guint i = 0; i < g->incs->len; i++) {
        struct incarnation *inc = g_ptr_array_index(g->incs, i);
        g_autofree char *path = g_strdup_printf("/brokers/ids/%d", inc->host->id);
        if (strcmp(path, op->path) == 0)
            return inc;
    }
    return NULL;
}

static void registered(struct start_group *g, const struct txn *txn)
{
    g_autoptr(GPtrArray) all = g_ptr_array_new();

    for (size_t i = 0; i < txn->n_ops; i++) {
        struct incarnation *inc = txn->ops[i].type == OP_SET ? member_of(g, &txn->ops[i]) : NULL;
        if (!inc)
            continue;
        inc->epoch = txn->ops[i].stat.czxid;
        g_ptr_array_add(all, inc_ref(inc));
    }
    for (guint i = 0; i < all->len; i++) /* all of them can take requests before anyone of them can send some */
        inc_registered(g_ptr_array_index(all, i), g->gen);
    for (guint i = 0; i < all->len; i++) {
        struct incarnation *inc = g_ptr_array_index(all, i);
        inc_deliver_early(inc);
        if (!inc->dead) {
            inc->candidate = true;
            controller_thread_candidate(g->engine->config.controller, inc->host->id, inc->session, inc->config,
                    &inc->unclean_default, g->gen);
            host_answer(inc->host, 0);
        }
        inc_unref(inc);
    }
    group_end(g);
}

static void register_done(struct engine *e, struct engine_msg *m)
{
    struct start_group *g = m->group;
    const struct txn *txn = m->txn;
    const struct op *failed = NULL;

    e->txns--;
    if (txn->rc == ZOK) {
        registered(g, txn);
        return;
    }
    for (size_t i = 0; i < txn->n_ops && !failed; i++)
        if (txn->ops[i].rc != ZOK && txn->ops[i].rc != ZRUNTIMEINCONSISTENCY)
            failed = &txn->ops[i];
    struct incarnation *inc = failed ? member_of(g, failed) : NULL;
    if (inc && txn->rc == ZNODEEXISTS) {
        refuse(inc, EEXIST, g_strdup_printf("id %d is already registered", inc->host->id));
    } else if (!failed || inc) {
        g_autofree char *why = g_strdup_printf("it could not be registered: %s", zerr_name(txn->rc));
        refuse_all(g, zerr_errno(txn->rc), why);
    }
    register_stage(g);
}

/* Null data first, then the registration: so a live broker's data version is 1 or more, as Kafka's. */
static void register_stage(struct start_group *g)
{
    struct txn *txn;

    g->stage = GROUP_REGISTER;
    g_ptr_array_sort(g->incs, compare_ids);
    for (guint i = 0; i < g->incs->len;)
        if (!clashes(g, i))
            i++;
    if (g->incs->len == 0) {
        group_end(g);
        return;
    }
    txn = txn_new(TXN_INTERNAL);
    for (guint i = 0; i < g->incs->len; i++) {
        struct incarnation *inc = g_ptr_array_index(g->incs, i);
        g_autofree char *path = g_strdup_printf("/brokers/ids/%d", inc->host->id);
        inc->config->broker_id = inc->host->id;
        if (!inc->session)
            inc->session = store_session_open(g->engine->config.store);
        size_t op = txn_create(txn, path, NULL, CREATE_EPHEMERAL);
        txn->ops[op].owner = inc->session;
        txn_set(txn, path, registration_encode(inc->config, inc->config->endpoints, inc->config->n_endpoints), 0);
    }
    engine_submit(g->engine, txn, 0, g->gen, group_msg(g, register_done));
}

/* ---- the beginning ---- */

void startup_begin(struct engine *e, GPtrArray *hosts, gen_t gen)
{
    struct start_group *g = g_new0(struct start_group, 1);

    g->engine = e;
    g->gen = gen;
    g->incs = g_ptr_array_new();
    settle_hold(e->config.settle, gen);
    g_ptr_array_add(e->groups, g);
    for (guint i = 0; i < hosts->len; i++) {
        struct host *h = g_ptr_array_index(hosts, i);
        struct incarnation *inc = inc_new(h);
        inc->group = g;
        g_ptr_array_add(g->incs, inc_ref(inc));
        host_set_state(h, HOST_STARTING);
    }
    roots_stage(g);
}

void startup_free_groups(struct engine *e)
{
    while (e->groups->len > 0)
        group_end(g_ptr_array_index(e->groups, 0));
}
