/* The engine thread: its life, timers, and what the watcher tells. */
#include "controller/broker/engine_internal.h"
#include "controller/broker/log_names.h"
#include <errno.h>
#include <stdarg.h>
#include <time.h>

#define HIGH_WATERMARK_PERIOD_MS 5000
#define RECOVERY_POINT_PERIOD_MS 60000 /* log.flush.offset.checkpoint.interval.ms */
#define STOP_PATIENCE_MS 30000

/* ---- messages ---- */

struct engine_msg *engine_msg_new(void (*run)(struct engine *e, struct engine_msg *m))
{
    struct engine_msg *m = g_new0(struct engine_msg, 1);

    m->run = run;
    return m;
}

void engine_msg_free(struct engine_msg *m)
{
    control_request_unref(m->request);
    if (m->broker_request)
        broker_request_free(m->broker_request);
    fetch_request_free(m->fetch);
    txn_free(m->txn);
    disk_job_free(m->job);
    if (m->names)
        g_ptr_array_unref(m->names);
    g_free(m->text);
    g_free(m);
}

bool engine_post(struct engine *e, struct engine_msg *m, gen_t gen)
{
    if (queue_push(e->queue, &m->item, gen))
        return true;
    engine_msg_free(m);
    return false;
}

/* ---- the thread ---- */

static int64_t sooner(int64_t a, int64_t b)
{
    return a < 0 ? b : b < 0 ? a : MIN(a, b);
}

/* Kafka writes the high watermarks whether they have changed or not, and so notices that a disk has gone. Nothing tells
 * of a log dir that is removed while it is open. */
static void write_high_watermarks(struct incarnation *inc, gen_t gen)
{
    for (size_t i = 0; i < inc->n_dirs; i++) {
        struct inc_dir *d = &inc->dirs[i];
        if (d->dirty & 1u << CHECKPOINT_HIGH_WATERMARK)
            inc_checkpoint(inc, (int)i, 1u << CHECKPOINT_HIGH_WATERMARK, gen);
        else if (g_queue_is_empty(&d->outstanding))
            inc_look(inc, (int)i, g_ptr_array_new(), gen);
    }
}

static void checkpoints(struct incarnation *inc, int64_t now, gen_t gen)
{
    if (inc->high_watermark_ms >= 0 && now >= inc->high_watermark_ms) {
        inc->high_watermark_ms = now + HIGH_WATERMARK_PERIOD_MS;
        write_high_watermarks(inc, gen);
    }
    if (inc->recovery_point_ms >= 0 && now >= inc->recovery_point_ms) {
        inc->recovery_point_ms = now + RECOVERY_POINT_PERIOD_MS;
        for (size_t i = 0; i < inc->n_dirs; i++)
            inc_checkpoint(inc, (int)i, ~(1u << CHECKPOINT_HIGH_WATERMARK), gen);
    }
}

static bool any_dirty(const struct incarnation *inc)
{
    for (size_t i = 0; i < inc->n_dirs; i++)
        if (inc->dirs[i].dirty && inc->dirs[i].worker)
            return true;
    return false;
}

static int64_t inc_deadline(const struct incarnation *inc)
{
    int64_t next = -1;

    for (int t = 0; t < BROKER_TIMER_N; t++)
        next = sooner(next, inc->timers[t]);
    next = sooner(next, inc->high_watermark_ms);
    if (any_dirty(inc))
        next = sooner(next, inc->recovery_point_ms);
    return next;
}

static void fire_timers(struct incarnation *inc, int64_t now, gen_t gen)
{
    for (int t = 0; t < BROKER_TIMER_N && inc->core; t++) {
        if (inc->timers[t] < 0 || now < inc->timers[t])
            continue;
        inc->timers[t] = -1;
        broker_timer(inc->core, t, gen);
    }
}

/* Everything that is due; returns when the next thing is. */
static int64_t tick(struct engine *e)
{
    int64_t now = engine_now_ms(), next;

    e->gen = settle_hold_now(e->config.settle);
    for (guint i = 0; i < e->hosts->len; i++) {
        struct incarnation *inc = ((struct host *)g_ptr_array_index(e->hosts, i))->now;
        if (!inc || !inc->core)
            continue;
        fire_timers(inc, now, e->gen);
        checkpoints(inc, now, e->gen);
    }
    next = sooner(engine_watch_disks(e, now), startup_tick(e, now));
    for (guint i = 0; i < e->hosts->len; i++) {
        struct incarnation *inc = ((struct host *)g_ptr_array_index(e->hosts, i))->now;
        if (inc && inc->core)
            next = sooner(next, inc_deadline(inc));
    }
    if (e->stopping)
        next = sooner(next, e->stop_deadline_ms);
    settle_release(e->config.settle, e->gen);
    return next;
}

static bool parts_left(struct engine *e)
{
    for (guint i = 0; i < e->hosts->len; i++)
        if (((struct host *)g_ptr_array_index(e->hosts, i))->old_parts > 0)
            return true;
    return e->txns > 0;
}

void engine_event(struct engine *e, const char *fmt, ...)
{
    gint64 us = g_get_real_time();
    time_t second = us / 1000000;
    struct tm utc;
    char text[32];
    va_list ap;

    gmtime_r(&second, &utc);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &utc);
    va_start(ap, fmt);
    g_autofree char *line = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    journal_line(e->config.events, "%s.%03dZ %s", text, (int)(us / 1000 % 1000), line);
}

static void handle(struct engine *e, struct engine_msg *m)
{
    gen_t gen = m->item.gen;

    e->gen = gen;
    m->run(e, m);
    if (!m->kept) {
        if (m->inc)
            inc_unref(m->inc);
        engine_msg_free(m);
    }
    queue_done(e->queue, gen);
}

static void drain(struct engine *e)
{
    queue_close(e->queue);
    for (struct engine_msg *m; (m = (struct engine_msg *)queue_pop(e->queue, -1));)
        handle(e, m);
}

static void *run(void *arg)
{
    struct engine *e = arg;

    pthread_setname_np(pthread_self(), "brokers");
    while (!e->stopping || parts_left(e)) {
        int64_t next = tick(e);
        if (e->stopping && engine_now_ms() >= e->stop_deadline_ms) {
            e->hung = true;
            break;
        }
        struct engine_msg *m = (struct engine_msg *)queue_pop(e->queue, next);
        if (m)
            handle(e, m);
    }
    drain(e);
    return NULL;
}

/* ---- start and stop ---- */

static void start_all(struct engine *e, struct engine_msg *m)
{
    g_autoptr(GPtrArray) hosts = g_ptr_array_new();

    for (guint i = 0; i < e->hosts->len; i++) {
        struct host *h = g_ptr_array_index(e->hosts, i);
        if (h->config && h->state == HOST_STOPPED)
            g_ptr_array_add(hosts, h);
    }
    if (hosts->len > 0)
        startup_begin(e, hosts, m->item.gen);
}

static void stop_all(struct engine *e, struct engine_msg *m)
{
    e->stopping = true;
    e->stop_deadline_ms = engine_now_ms() + STOP_PATIENCE_MS;
    for (guint i = 0; i < e->hosts->len; i++) {
        struct incarnation *inc = ((struct host *)g_ptr_array_index(e->hosts, i))->now;
        if (inc)
            inc_stop(inc, m->item.gen);
    }
}

/* ---- watcher ---- */

static void look_at_names(struct engine *e, struct engine_msg *m)
{
    struct incarnation *inc = inc_find(e, m->key);
    char topic[NAME_MAX + 1];
    int32_t partition;

    for (guint i = 0; inc && i < m->names->len;) {
        if (log_name_parse(g_ptr_array_index(m->names, i), topic, &partition) != LOG_CURRENT)
            g_ptr_array_remove_index_fast(m->names, i);
        else
            i++;
    }
    if (inc && (m->flag || m->names->len > 0))
        inc_look(inc, m->dir, g_steal_pointer(&m->names), m->item.gen);
}

static void look_everywhere(struct engine *e, struct engine_msg *m)
{
    for (guint i = 0; i < e->hosts->len; i++) {
        struct incarnation *inc = ((struct host *)g_ptr_array_index(e->hosts, i))->now;
        for (size_t k = 0; inc && k < inc->n_dirs; k++)
            if (!inc->dirs[k].silent) /* there it stays in the queue */
                inc_look(inc, (int)k, m->flag ? NULL : g_ptr_array_new(), m->item.gen);
    }
}

static void post_now(struct engine *e, struct engine_msg *m)
{
    gen_t gen = settle_hold_now(e->config.settle);

    engine_post(e, m, gen);
    settle_release(e->config.settle, gen);
}

static void post_look(struct engine *e, uint64_t key, int dir, GPtrArray *names, bool always)
{
    struct engine_msg *m = engine_msg_new(look_at_names);

    m->key = key;
    m->dir = dir;
    m->names = names;
    m->flag = always;
    post_now(e, m);
}

/* Watcher's thread. */
static void on_removed(void *ctx, uint64_t key, int dir, GPtrArray *names)
{
    post_look(ctx, key, dir, names, false);
}

static void on_changed(void *ctx, uint64_t key, int dir)
{
    post_look(ctx, key, dir, g_ptr_array_new(), true);
}

static void on_look_everywhere(void *ctx, bool lost)
{
    struct engine_msg *m = engine_msg_new(look_everywhere);

    m->flag = lost;
    post_now(ctx, m);
}

static struct watcher *set_watcher(struct engine *e, struct watcher *watcher)
{
    pthread_mutex_lock(&e->lock);
    struct watcher *was = e->watcher;
    e->watcher = watcher;
    pthread_mutex_unlock(&e->lock);
    return was;
}

void engine_look(struct engine *e)
{
    pthread_mutex_lock(&e->lock);
    if (e->watcher)
        watcher_read_now(e->watcher);
    pthread_mutex_unlock(&e->lock);
    on_look_everywhere(e, false);
}

/* ---- life ---- */

struct engine *engine_new(const struct engine_config *config)
{
    struct engine *e = g_new0(struct engine, 1);

    e->config = *config;
    e->cluster_dir = g_strdup(config->cluster_dir);
    e->queue = queue_new(config->settle);
    pthread_mutex_init(&e->lock, NULL);
    e->hosts = g_ptr_array_new();
    e->incs = g_ptr_array_new();
    e->groups = g_ptr_array_new();
    e->removing = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return e;
}

int engine_add_broker(struct engine *e, struct broker_config *config, char **ret_why)
{
    if (host_find(e, config->broker_id)) {
        *ret_why = g_strdup_printf("%s: broker.id %d is already that of %s", config->file, config->broker_id,
                host_find(e, config->broker_id)->file);
        broker_config_free(config);
        return -EEXIST;
    }
    host_set_config(host_new(e, config->broker_id, config->file), config);
    return 0;
}

void engine_add_failed_broker(struct engine *e, int32_t broker_id, const char *file, const char *why)
{
    if (!host_find(e, broker_id))
        host_fail(host_new(e, broker_id, file), EINVAL, g_strdup(why));
    else
        journal_error(e->config.errors, EINVAL, file, "%s", why);
}

int engine_start(struct engine *e, gen_t gen)
{
    struct watcher_config watch = {
            .ctx = e, .removed = on_removed, .changed = on_changed, .look_everywhere = on_look_everywhere};
    struct watcher *watcher = NULL;
    int r = watcher_new(&watch, &watcher);

    if (r < 0)
        journal_error(
                e->config.errors, -r, "/.state/brokers", "changes in the log dirs made by others are not noticed");
    set_watcher(e, watcher);
    r = -pthread_create(&e->thread, NULL, run, e);
    e->thread_runs = r == 0;
    if (r == 0)
        engine_post(e, engine_msg_new(start_all), gen);
    return r;
}

void engine_stop(struct engine *e)
{
    if (e->thread_runs) {
        post_now(e, engine_msg_new(stop_all));
        pthread_join(e->thread, NULL);
        e->thread_runs = false;
    } else {
        e->stopping = true;
        drain(e); /* what came to a thread that could not be started */
    }
    watcher_free(set_watcher(e, NULL));
}

void engine_free(struct engine *e)
{
    if (!e || e->hung) /* what a thread that hangs in the kernel may still touch stays */
        return;
    startup_free_groups(e);
    while (e->incs->len > 0) {
        struct incarnation *inc = g_ptr_array_index(e->incs, 0);
        inc->refs = 1;
        inc_unref(inc);
    }
    for (guint i = 0; i < e->hosts->len; i++)
        host_free(g_ptr_array_index(e->hosts, i));
    g_ptr_array_unref(e->hosts);
    g_ptr_array_unref(e->incs);
    g_ptr_array_unref(e->groups);
    g_hash_table_unref(e->removing);
    queue_free(e->queue);
    pthread_mutex_destroy(&e->lock);
    g_free(e->cluster_dir);
    g_free(e->cluster_id);
    g_free(e);
}
