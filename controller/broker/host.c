/* A broker of this daemon, and its lives. */
#include "controller/broker/engine_internal.h"
#include "controller/broker/listeners.h"
#include <errno.h>

#define HIGH_WATERMARK_PERIOD_MS 5000 /* replica.high.watermark.checkpoint.interval.ms */
#define RECOVERY_POINT_FIRST_MS 30000 /* LogManager's initial delay */

/* ---- hosts ---- */

struct host *host_new(struct engine *e, int32_t id, const char *file)
{
    struct host *h = g_new0(struct host, 1);

    h->engine = e;
    h->id = id;
    h->file = g_strdup(file);
    h->waiters = g_array_new(FALSE, FALSE, sizeof(struct start_waiter));
    h->mourners = g_array_new(FALSE, FALSE, sizeof(struct start_waiter));
    pthread_mutex_lock(&e->lock);
    g_ptr_array_add(e->hosts, h);
    pthread_mutex_unlock(&e->lock);
    return h;
}

void host_free(struct host *h)
{
    broker_config_free(h->config);
    if (h->defaults)
        g_hash_table_unref(h->defaults);
    g_array_unref(h->waiters);
    g_array_unref(h->mourners);
    g_free(h->file);
    g_free(h->why);
    g_free(h);
}

struct host *host_find(struct engine *e, int32_t id)
{
    for (guint i = 0; i < e->hosts->len; i++) {
        struct host *h = g_ptr_array_index(e->hosts, i);
        if (h->id == id && id >= 0)
            return h;
    }
    return NULL;
}

void host_set_id(struct host *h, int32_t id)
{
    pthread_mutex_lock(&h->engine->lock);
    h->id = id;
    pthread_mutex_unlock(&h->engine->lock);
}

const char *host_state_name(enum host_state state)
{
    static const char *const names[] = {"stopped", "starting", "running", "stopping", "failed"};

    return names[state];
}

/* As it is called in `.state/events`; before it has an id, by its file. Newly allocated. */
static char *host_name(const struct host *h)
{
    return h->id >= 0 ? g_strdup_printf("broker %d", h->id) : g_strdup_printf("broker of %s", h->file);
}

void host_set_state(struct host *h, enum host_state state)
{
    g_autofree char *name = host_name(h);

    g_clear_pointer(&h->why, g_free);
    h->state = state;
    engine_event(h->engine, "%s %s", name, host_state_name(state));
}

void host_fail(struct host *h, int err, char *why)
{
    g_autofree char *path = h->id >= 0 ? g_strdup_printf("/brokers/ids/%d", h->id) : g_strdup(h->file);
    g_autofree char *name = host_name(h);

    g_free(h->why);
    h->why = why;
    h->state = HOST_FAILED;
    engine_event(h->engine, "%s failed: %s", name, why);
    journal_error(h->engine->config.errors, err, path, "%s does not run: %s", name, why);
}

static GHashTable *copy_values(GHashTable *values)
{
    GHashTable *copy = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    GHashTableIter it;
    gpointer k, v;

    g_hash_table_iter_init(&it, values);
    while (g_hash_table_iter_next(&it, &k, &v))
        g_hash_table_insert(copy, g_strdup(k), g_strdup(v));
    return copy;
}

void host_set_config(struct host *h, struct broker_config *config)
{
    GHashTable *defaults = copy_values(config->values), *old;

    broker_config_free(h->config);
    h->config = config;
    g_free(h->file);
    h->file = g_strdup(config->file);
    pthread_mutex_lock(&h->engine->lock);
    old = h->defaults;
    h->defaults = defaults;
    pthread_mutex_unlock(&h->engine->lock);
    if (old)
        g_hash_table_unref(old);
}

static void answer_all(GArray **list, int err)
{
    GArray *waiters = *list;

    *list = g_array_new(FALSE, FALSE, sizeof(struct start_waiter));
    for (guint i = 0; i < waiters->len; i++) {
        const struct start_waiter *w = &g_array_index(waiters, struct start_waiter, i);
        w->answer(w->arg, err);
    }
    g_array_unref(waiters);
}

void host_answer(struct host *h, int err)
{
    answer_all(&h->waiters, err);
}

/* ---- lives ---- */

struct incarnation *inc_new(struct host *h)
{
    struct incarnation *inc = g_new0(struct incarnation, 1);

    inc->engine = h->engine;
    inc->host = h;
    inc->key = ++h->engine->next_key;
    inc->refs = 1;
    inc->config = g_steal_pointer(&h->config);
    inc->n_dirs = inc->config->log_dirs->len;
    inc->dirs = g_new0(struct inc_dir, inc->n_dirs);
    inc->paths = g_new0(char *, inc->n_dirs);
    for (size_t i = 0; i < inc->n_dirs; i++) {
        inc->dirs[i].path = inc->paths[i] = g_strdup(g_ptr_array_index(inc->config->log_dirs, i));
        g_queue_init(&inc->dirs[i].outstanding);
    }
    for (int i = 0; i < BROKER_TIMER_N; i++)
        inc->timers[i] = -1;
    inc->high_watermark_ms = inc->recovery_point_ms = -1;
    inc->holds = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    g_queue_init(&inc->early);
    inc_init_env(inc);
    g_ptr_array_add(h->engine->incs, inc);
    h->now = inc;
    return inc;
}

static void inc_free(struct incarnation *inc)
{
    broker_free(inc->core);
    config_manager_free(inc->configs);
    broker_config_free(inc->config);
    for (size_t i = 0; i < inc->n_dirs; i++) {
        g_free(inc->dirs[i].path);
        g_queue_clear(&inc->dirs[i].outstanding);
        if (inc->dirs[i].meta)
            g_hash_table_unref(inc->dirs[i].meta);
    }
    g_free(inc->dirs);
    g_free(inc->paths);
    g_hash_table_unref(inc->holds);
    broker_endpoints_free(inc->endpoints, inc->n_endpoints);
    g_free(inc->refused_why);
    g_free(inc);
}

struct incarnation *inc_ref(struct incarnation *inc)
{
    inc->refs++;
    return inc;
}

void inc_unref(struct incarnation *inc)
{
    if (--inc->refs > 0)
        return;
    g_ptr_array_remove_fast(inc->engine->incs, inc);
    inc_free(inc);
}

struct incarnation *inc_find(struct engine *e, uint64_t key)
{
    for (guint i = 0; i < e->incs->len; i++) {
        struct incarnation *inc = g_ptr_array_index(e->incs, i);
        if (inc->key == key)
            return inc->dead ? NULL : inc;
    }
    return NULL;
}

struct broker *host_core(struct host *h, struct engine_msg *m)
{
    struct incarnation *inc = h ? h->now : NULL;

    if (!inc || inc->core)
        return inc ? inc->core : NULL;
    if (!inc->session) /* it cannot be registered yet: the message is for its former life */
        return NULL;
    settle_hold(inc->engine->config.settle, m->item.gen);
    m->kept = true;
    g_queue_push_tail(&inc->early, m);
    return NULL;
}

/* `deliver`: to the core, which is there now; else they are dropped. */
static void empty_early(struct incarnation *inc, bool deliver)
{
    struct engine *e = inc->engine;
    gen_t gen = e->gen;
    struct engine_msg *m;

    while ((m = g_queue_pop_head(&inc->early))) {
        m->kept = false;
        e->gen = m->item.gen;
        if (deliver)
            m->run(e, m);
        settle_release(e->config.settle, m->item.gen);
        engine_msg_free(m);
    }
    e->gen = gen;
}

void inc_registered(struct incarnation *inc, gen_t gen)
{
    int64_t now = engine_now_ms();

    inc->endpoints = listeners_copy(inc->config->endpoints, inc->config->n_endpoints);
    inc->n_endpoints = inc->config->n_endpoints;
    inc->configs = inc_new_configs(inc);
    atomic_store(&inc->unclean_default, inc->config->unclean_leader_election_enable);
    inc->core = broker_new(inc->host->id, inc->epoch, inc->config, inc->paths, inc->n_dirs, &inc->env);
    config_manager_startup(inc->configs);
    engine_event(inc->engine, "broker %d registered, epoch %" G_GINT64_FORMAT, inc->host->id, inc->epoch);
    for (size_t i = 0; i < inc->n_dirs; i++) {
        struct inc_dir *d = &inc->dirs[i];
        if (!d->online) {
            broker_dir_failed(inc->core, (int)i, inc->refused_why ? inc->refused_why : "not usable", gen);
            continue;
        }
        struct disk_job *meta = disk_job_new(JOB_META);
        meta->broker_id = inc->host->id;
        meta->cluster_id = g_strdup(inc->engine->cluster_id);
        inc_submit_job(inc, (int)i, meta, gen);
        inc->loading++;
        inc_submit_job(inc, (int)i, disk_job_new(JOB_LOAD), gen);
    }
    if (!broker_config_ibp_at_least(inc->config, 3, 0, 0))
        registration_take_producer_ids(inc, gen);
    inc->high_watermark_ms = now + HIGH_WATERMARK_PERIOD_MS;
    inc->recovery_point_ms = now + RECOVERY_POINT_FIRST_MS;
}

void inc_deliver_early(struct incarnation *inc)
{
    empty_early(inc, true);
}

void inc_loaded(struct incarnation *inc, gen_t gen)
{
    broker_loaded(inc->core, gen);
    if (inc->host->state == HOST_STARTING)
        host_set_state(inc->host, HOST_RUNNING);
}

/* ---- the end ---- */

struct closing {
    struct incarnation *inc;
    void (*answer)(void *arg, int err);
    void *arg;
    gen_t gen;
};

static void handle_session_closed(struct engine *e, struct engine_msg *m)
{
    struct host *h = m->inc->host;

    if (m->answer)
        m->answer(m->arg, 0);
    answer_all(&h->mourners, 0);
    h->sessions--;
    h->old_parts--;
    if (!h->now && h->state == HOST_STOPPING)
        host_set_state(h, HOST_STOPPED);
    startup_part_ended(h);
    if (h->start_again && !h->now) {
        h->start_again = false;
        engine_start_host(e, h->id, NULL, NULL, m->item.gen);
    }
}

/* Store thread. */
static void session_closed(void *arg)
{
    struct closing *c = arg;
    struct engine *e = c->inc->engine;
    struct engine_msg *m = engine_msg_new(handle_session_closed);
    gen_t gen = c->gen;

    m->inc = c->inc;
    m->answer = c->answer;
    m->arg = c->arg;
    engine_post(e, m, gen);
    g_free(c);
    settle_release(e->config.settle, gen);
}

static void close_session(struct incarnation *inc, gen_t gen, void (*answer)(void *arg, int err), void *arg)
{
    struct closing *c = g_new(struct closing, 1);

    *c = (struct closing){.inc = inc_ref(inc), .answer = answer, .arg = arg, .gen = gen};
    inc->host->sessions++;
    inc->host->old_parts++;
    settle_hold(inc->engine->config.settle, gen);
    store_session_close(inc->engine->config.store, inc->session, gen, session_closed, c);
}

static void handle_candidate_ended(struct engine *e, struct engine_msg *m)
{
}

/* Controller thread. The message's reference to the incarnation keeps its configuration until here. */
static void candidate_ended(void *arg)
{
    struct incarnation *inc = arg;
    struct engine *e = inc->engine;
    struct engine_msg *m = engine_msg_new(handle_candidate_ended);
    gen_t gen = settle_hold_now(e->config.settle);

    m->inc = inc;
    engine_post(e, m, gen);
    settle_release(e->config.settle, gen);
}

static void drop_state(struct incarnation *inc)
{
    empty_early(inc, false);
    broker_free(g_steal_pointer(&inc->core));
    config_manager_free(g_steal_pointer(&inc->configs));
    inc_drop_holds(inc);
    for (int i = 0; i < BROKER_TIMER_N; i++)
        inc->timers[i] = -1;
    inc->high_watermark_ms = inc->recovery_point_ms = -1;
}

void inc_end(struct incarnation *inc, bool abrupt, gen_t gen, void (*answer)(void *arg, int err), void *arg)
{
    if (inc->dead)
        return;
    inc->dead = true;
    inc->host->now = NULL;
    if (inc->group)
        startup_leave(inc);
    drop_state(inc);
    for (size_t i = 0; i < inc->n_dirs; i++)
        inc_end_worker(inc, (int)i, abrupt, gen);
    if (inc->candidate)
        controller_thread_candidate_end(
                inc->engine->config.controller, inc->host->id, abrupt, gen, candidate_ended, inc_ref(inc));
    if (inc->session) {
        close_session(inc, gen, answer, arg);
    } else {
        if (inc->host->state == HOST_STOPPING)
            host_set_state(inc->host, HOST_STOPPED);
        if (answer)
            answer(arg, 0);
    }
    inc_unref(inc);
}

static bool is_loaded(const struct incarnation *inc)
{
    return inc->core && inc->loading == 0;
}

/* Not before everything is loaded: checkpoints of the logs that are known by then would lose the offsets of the others.
 */
static void submit_close(struct incarnation *inc, gen_t gen)
{
    for (size_t i = 0; is_loaded(inc) && i < inc->n_dirs; i++) {
        if (!inc->dirs[i].worker)
            continue;
        inc->closing++;
        inc_submit_job(inc, (int)i, inc_checkpoint_job(inc, (int)i, JOB_CLOSE, ~0u), gen);
    }
}

void inc_close(struct incarnation *inc, gen_t gen)
{
    submit_close(inc, gen);
    if (inc->closing == 0)
        inc_end(inc, !is_loaded(inc), gen, NULL, NULL);
}

void inc_stop(struct incarnation *inc, gen_t gen)
{
    bool loaded = is_loaded(inc);

    submit_close(inc, gen);
    inc->dead = true;
    inc->host->now = NULL;
    if (inc->group)
        startup_leave(inc);
    host_answer(inc->host, ESHUTDOWN);
    drop_state(inc);
    for (size_t i = 0; i < inc->n_dirs; i++)
        inc_end_worker(inc, (int)i, !loaded, gen);
    inc_unref(inc);
}

void inc_fail(struct incarnation *inc, int err, char *why, gen_t gen)
{
    struct host *h = inc->host;

    host_fail(h, err, why);
    inc_end(inc, true, gen, NULL, NULL);
    host_answer(h, err);
}
