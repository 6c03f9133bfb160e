/* What the broker core and the configuration manager ask of their environment, done by the real things. */
#include "controller/broker/engine_internal.h"
#include <errno.h>
#include <stdarg.h>

/* ---- generations ---- */

gen_t inc_gen(struct incarnation *inc, gen_t gen)
{
    return gen < inc->gen_floor ? inc->engine->gen : gen;
}

static bool any_dir_silent(const struct incarnation *inc)
{
    for (size_t i = 0; i < inc->n_dirs; i++)
        if (inc->dirs[i].silent)
            return true;
    return false;
}

/* What waits behind a silent disk is not waited for either. */
void inc_hold(struct incarnation *inc, gen_t gen)
{
    gint64 key = (gint64)gen;

    if (gen < inc->gen_floor || any_dir_silent(inc))
        return;
    guint n = GPOINTER_TO_UINT(g_hash_table_lookup(inc->holds, &key));
    settle_hold(inc->engine->config.settle, gen);
    g_hash_table_replace(inc->holds, g_memdup2(&key, sizeof key), GUINT_TO_POINTER(n + 1));
}

void inc_release(struct incarnation *inc, gen_t gen)
{
    gint64 key = (gint64)gen;
    guint n = GPOINTER_TO_UINT(g_hash_table_lookup(inc->holds, &key));

    if (n == 0)
        return;
    if (n == 1)
        g_hash_table_remove(inc->holds, &key);
    else
        g_hash_table_replace(inc->holds, g_memdup2(&key, sizeof key), GUINT_TO_POINTER(n - 1));
    settle_release(inc->engine->config.settle, gen);
}

void inc_drop_holds(struct incarnation *inc)
{
    struct settle *settle = inc->engine->config.settle;
    GHashTableIter it;
    gpointer key, n;

    g_hash_table_iter_init(&it, inc->holds);
    while (g_hash_table_iter_next(&it, &key, &n))
        for (guint i = 0; i < GPOINTER_TO_UINT(n); i++)
            settle_release(settle, (gen_t) * (gint64 *)key);
    g_hash_table_remove_all(inc->holds);
    gen_t now = settle_hold_now(settle);
    settle_release(settle, now);
    inc->gen_floor = now + 1;
}

/* ---- transactions ---- */

struct submitted {
    struct engine *engine;
    struct engine_msg *done;
};

/* Store thread. */
static void txn_done(struct txn *txn, void *arg)
{
    struct submitted *s = arg;
    struct engine *e = s->engine;
    gen_t gen = txn->gen;

    s->done->txn = txn;
    engine_post(e, s->done, gen);
    g_free(s);
    settle_release(e->config.settle, gen);
}

void engine_submit(struct engine *e, struct txn *txn, int64_t session, gen_t gen, struct engine_msg *done)
{
    struct submitted *s = g_new(struct submitted, 1);

    *s = (struct submitted){.engine = e, .done = done};
    txn->session = session;
    txn->origin = TXN_INTERNAL;
    txn->gen = gen;
    txn->done = txn_done;
    txn->arg = s;
    if (done->inc)
        inc_ref(done->inc);
    e->txns++;
    settle_hold(e->config.settle, gen);
    store_submit(e->config.store, txn);
}

static void core_txn_done(struct engine *e, struct engine_msg *m)
{
    e->txns--;
    if (!m->inc->dead && m->inc->core)
        broker_txn_done(m->inc->core, g_steal_pointer(&m->txn), m->item.gen);
}

/* ---- struct broker_env ---- */

static void env_disk(void *ctx, struct disk_batch *batch, gen_t gen)
{
    struct incarnation *inc = ctx;
    struct disk_job *job = disk_job_new(JOB_BATCH);

    job->batch = batch;
    inc_submit_job(inc, batch->dir, job, inc_gen(inc, gen));
}

static void env_respond(void *ctx, int32_t controller_id, int64_t broker_epoch, struct control_request *request,
        struct control_response *response, gen_t gen)
{
    struct incarnation *inc = ctx;

    controller_thread_response(inc->engine->config.controller, controller_id, inc->host->id, broker_epoch, request,
            response, inc_gen(inc, gen));
}

static void env_ask_controller(void *ctx, int32_t controller_id, struct broker_request *request, gen_t gen)
{
    struct incarnation *inc = ctx;

    controller_thread_broker_request(inc->engine->config.controller, controller_id, request, inc_gen(inc, gen));
}

static void deliver_fetch(struct engine *e, struct engine_msg *m)
{
    struct broker *core = host_core(host_find(e, m->broker_id), m);

    if (core)
        broker_fetch(core, m->fetch, m->item.gen);
}

static void env_fetch(void *ctx, int32_t leader, struct fetch_request *request, gen_t gen)
{
    struct incarnation *inc = ctx;
    struct engine_msg *m = engine_msg_new(deliver_fetch);

    m->broker_id = leader;
    m->fetch = request;
    engine_post(inc->engine, m, inc_gen(inc, gen));
}

static int env_get(void *ctx, const char *path, struct bytes **ret_data, struct zstat *ret_stat)
{
    struct incarnation *inc = ctx;

    return mirror_get(inc->engine->config.mirror, path, ret_data, ret_stat);
}

static void env_submit(void *ctx, struct txn *txn, gen_t gen)
{
    struct incarnation *inc = ctx;
    struct engine_msg *m = engine_msg_new(core_txn_done);

    m->inc = inc;
    engine_submit(inc->engine, txn, inc->session, inc_gen(inc, gen), m);
}

static void env_timer(void *ctx, enum broker_timer timer, int64_t delay_ms)
{
    struct incarnation *inc = ctx;

    inc->timers[timer] = delay_ms < 0 ? -1 : engine_now_ms() + delay_ms;
}

static int64_t env_now_ms(void *ctx)
{
    return engine_now_ms();
}

static void env_hold(void *ctx, gen_t gen)
{
    inc_hold(ctx, gen);
}

static void env_release(void *ctx, gen_t gen)
{
    inc_release(ctx, gen);
}

static void env_topic_created(void *ctx, const char *topic)
{
    struct incarnation *inc = ctx;

    config_manager_topic_created(inc->configs, topic);
}

static void env_topic_removed(void *ctx, const char *topic)
{
    struct incarnation *inc = ctx;

    if (inc->configs)
        config_manager_topic_removed(inc->configs, topic);
}

static void do_halt(struct engine *e, struct engine_msg *m)
{
    if (!m->inc->dead)
        inc_fail(m->inc, EIO, g_steal_pointer(&m->text), m->item.gen);
}

static void env_halt(void *ctx, const char *why)
{
    struct incarnation *inc = ctx;
    struct engine_msg *m = engine_msg_new(do_halt);

    m->inc = inc_ref(inc);
    m->text = g_strdup(why);
    engine_post(inc->engine, m, inc->engine->gen);
}

static void do_shutdown(struct engine *e, struct engine_msg *m)
{
    if (!m->inc->dead)
        inc_close(m->inc, m->item.gen);
}

static void env_shutdown_done(void *ctx, gen_t gen)
{
    struct incarnation *inc = ctx;
    struct engine_msg *m = engine_msg_new(do_shutdown);

    m->inc = inc_ref(inc);
    engine_post(inc->engine, m, inc_gen(inc, gen));
}

static void env_event(void *ctx, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void env_event(void *ctx, const char *fmt, ...)
{
    struct incarnation *inc = ctx;
    va_list ap;

    va_start(ap, fmt);
    g_autofree char *text = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    engine_event(inc->engine, "%s", text);
}

static void env_error(void *ctx, int err, const char *path, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
static void env_error(void *ctx, int err, const char *path, const char *fmt, ...)
{
    struct incarnation *inc = ctx;
    va_list ap;

    va_start(ap, fmt);
    g_autofree char *text = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    journal_error(inc->engine->config.errors, err, path, "%s", text);
}

void inc_init_env(struct incarnation *inc)
{
    inc->env = (struct broker_env){.ctx = inc,
            .disk = env_disk,
            .respond = env_respond,
            .ask_controller = env_ask_controller,
            .fetch = env_fetch,
            .get = env_get,
            .submit = env_submit,
            .timer = env_timer,
            .now_ms = env_now_ms,
            .hold = env_hold,
            .release = env_release,
            .topic_created = env_topic_created,
            .topic_removed = env_topic_removed,
            .halt = env_halt,
            .shutdown_done = env_shutdown_done,
            .event = env_event,
            .error = env_error};
}

/* ---- struct config_manager_env ---- */

static GPtrArray *config_children(void *ctx, const char *path)
{
    struct incarnation *inc = ctx;

    return mirror_children(inc->engine->config.mirror, path);
}

static int64_t config_now_ms(void *ctx)
{
    return g_get_real_time() / 1000;
}

static void removed(struct engine *e, struct engine_msg *m)
{
    e->txns--;
    g_hash_table_remove(e->removing, m->text);
    if (m->txn->rc != ZOK && m->txn->rc != ZNONODE)
        journal_error(e->config.errors, zerr_errno(m->txn->rc), m->text,
                "the expired notification could not be removed: %s; a later notification tries again",
                zerr_name(m->txn->rc));
}

/* Each in a transaction of its own: another process may be faster, and the store commits them together anyway. All
 * brokers of this one come to remove the same nodes at the same time: the first does it for the others, and so without
 * its session. */
static void config_remove(void *ctx, GPtrArray *paths)
{
    struct engine *e = ((struct incarnation *)ctx)->engine;

    for (guint i = 0; i < paths->len; i++) {
        const char *path = g_ptr_array_index(paths, i);
        if (!mirror_exists(e->config.mirror, path) || !g_hash_table_add(e->removing, g_strdup(path)))
            continue;
        struct txn *txn = txn_new(TXN_INTERNAL);
        struct engine_msg *m = engine_msg_new(removed);
        m->text = g_strdup(path);
        txn_delete(txn, path, -1);
        engine_submit(e, txn, /* session= */ 0, e->gen, m);
    }
    g_ptr_array_unref(paths);
}

static void config_unclean_enabled(void *ctx, const char *topic)
{
    struct incarnation *inc = ctx;

    controller_thread_unclean_enabled(inc->engine->config.controller, topic, inc->engine->gen);
}

/* What is taken from the configuration in force: listeners, the delay of deletions (LogManager.deleteLogs), and what
 * this broker's controller elects by. */
static void config_broker_changed(void *ctx)
{
    struct incarnation *inc = ctx;
    g_autofree char *text = config_manager_broker_value(inc->configs, "log.segment.delete.delay.ms");
    g_autofree char *unclean = config_manager_broker_value(inc->configs, "unclean.leader.election.enable");
    gint64 delay;

    atomic_store(&inc->unclean_default, g_strcmp0(unclean, "true") == 0);
    registration_update_listeners(inc, inc->engine->gen);
    if (!text || !g_ascii_string_to_signed(text, 10, 0, INT64_MAX, &delay, NULL))
        return;
    for (size_t i = 0; i < inc->n_dirs; i++)
        if (inc->dirs[i].worker)
            disk_worker_set_delay(inc->dirs[i].worker, delay);
}

struct config_manager *inc_new_configs(struct incarnation *inc)
{
    struct config_manager_env env = {.ctx = inc,
            .get = env_get,
            .children = config_children,
            .now_ms = config_now_ms,
            .remove = config_remove,
            .event = env_event,
            .error = env_error,
            .unclean_enabled = config_unclean_enabled,
            .broker_changed = config_broker_changed};

    return config_manager_new(inc->config, inc->engine->config.config_change_expiry_ms, &env);
}
