/* Disk jobs of the engine: submitted, answered, watched. */
#include "controller/broker/engine_internal.h"
#include "controller/broker/log_names.h"
#include <errno.h>

#define ALL_CHECKPOINTS ((1u << CHECKPOINT_N) - 1)

/* ---- what a finished job means ---- */

static void load_done(struct incarnation *inc, struct disk_job *job, gen_t gen)
{
    inc->loading--;
    if (job->err)
        broker_dir_failed(inc->core, job->dir, job->why, gen);
    for (guint i = 0; job->err == 0 && i < job->found->len; i++) {
        const struct found_log *log = &g_array_index(job->found, struct found_log, i);
        int other;
        if (log->future) {
            broker_future_found(inc->core, job->dir, log->topic, log->partition);
        } else if (broker_log_found(inc->core, job->dir, log->topic, log->partition, log->topic_id, log->torn, &other) <
                   0) {
            inc_fail(inc, EEXIST,
                    g_strdup_printf("%s-%d is in two log dirs, %s and %s; one of the two must be moved away",
                            log->topic, log->partition, inc->dirs[other].path, inc->dirs[job->dir].path),
                    gen);
            return;
        }
    }
    if (inc->loading == 0)
        inc_loaded(inc, gen);
}

/* The broker still has what was deleted: it is told afterwards, so that the checkpoints are written before the first
 * job for the next topic of that name. */
static void checkpoint_without(struct incarnation *inc, const struct disk_batch *deleted, gen_t gen)
{
    struct disk_job *job = inc_checkpoint_job(inc, deleted->dir, JOB_CHECKPOINT, ALL_CHECKPOINTS);
    g_autoptr(GHashTable) names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    for (guint i = 0; i < deleted->tasks->len; i++) {
        const struct log_task *t = &g_array_index(deleted->tasks, struct log_task, i);
        if (t->err == 0 && !t->future)
            g_hash_table_add(names, g_strdup_printf("%s %d", t->topic->name, t->partition));
    }
    for (guint i = job->logs->len; i-- > 0;)
        if (g_hash_table_contains(names, g_ptr_array_index(job->logs, i)))
            g_ptr_array_remove_index_fast(job->logs, i);
    inc->dirs[deleted->dir].dirty = 0;
    inc_submit_job(inc, deleted->dir, job, gen);
}

static void batch_done(struct incarnation *inc, struct disk_job *job, gen_t gen)
{
    struct inc_dir *d = &inc->dirs[job->dir];

    d->dirty |= ALL_CHECKPOINTS;
    if (job->rewrite && d->worker)
        checkpoint_without(inc, job->batch, gen);
    broker_disk_done(inc->core, g_steal_pointer(&job->batch), gen);
}

static void look_done(struct incarnation *inc, struct disk_job *job, gen_t gen)
{
    char topic[NAME_MAX + 1];
    int32_t partition;

    if (job->err) {
        if (job->failed)
            broker_dir_failed(inc->core, job->dir, job->why, gen);
        return;
    }
    for (guint i = 0; i < job->names->len; i++)
        if (log_name_parse(g_ptr_array_index(job->names, i), topic, &partition) == LOG_CURRENT)
            broker_log_removed(inc->core, job->dir, topic, partition);
}

static void job_done(struct incarnation *inc, struct disk_job *job, gen_t gen)
{
    switch (job->type) {
    case JOB_OPEN:
        startup_opened(inc, job);
        break;
    case JOB_LOAD:
        load_done(inc, job, gen);
        break;
    case JOB_BATCH:
        batch_done(inc, job, gen);
        break;
    case JOB_META:
    case JOB_CHECKPOINT:
        if (job->err && job->failed)
            broker_dir_failed(inc->core, job->dir, job->why, gen);
        break;
    case JOB_LOOK:
        look_done(inc, job, gen);
        break;
    case JOB_CLOSE:
        if (--inc->closing == 0)
            inc_end(inc, false, gen, NULL, NULL);
        break;
    }
    if (!inc->dead && inc->core && !broker_dir_online(inc->core, job->dir) && inc->dirs[job->dir].online) {
        /* a failed log dir is let go at once, with its lock */
        inc->dirs[job->dir].online = false;
        inc_end_worker(inc, job->dir, true, gen);
    }
}

static void handle_job_done(struct engine *e, struct engine_msg *m)
{
    struct incarnation *inc = m->inc;
    struct inc_dir *d = &inc->dirs[m->job->dir];

    g_queue_remove(&d->outstanding, m->job);
    d->last_answer_ms = engine_now_ms();
    if (d->silent) {
        d->silent = false;
        journal_error(e->config.errors, 0, d->path, "broker %d: the disk answers again", inc->host->id);
    }
    if (m->job->type == JOB_CLOSE && m->job->err)
        journal_error(e->config.errors, -m->job->err, d->path, "not closed in order: %s", m->job->why);
    if (!inc->dead)
        job_done(inc, m->job, m->item.gen);
}

/* Worker's thread. A job whose generation was given up comes back with a new one. */
static void worker_done(void *ctx, struct disk_job *job)
{
    struct incarnation *inc = ctx;
    struct engine *e = inc->engine;
    struct engine_msg *m = engine_msg_new(handle_job_done);
    gen_t gen = atomic_exchange(&job->held, false) ? job->gen : settle_hold_now(e->config.settle);

    m->inc = inc;
    m->job = job;
    engine_post(e, m, gen);
    settle_release(e->config.settle, gen);
}

static void worker_warn(void *ctx, const char *path, const char *entry, const char *why)
{
    struct incarnation *inc = ctx;
    g_autofree char *full = g_strdup_printf("%s/%s", path, entry);

    journal_error(inc->engine->config.errors, 0, full, "%s", why);
}

static void handle_worker_ended(struct engine *e, struct engine_msg *m)
{
    struct incarnation *inc = m->inc;
    struct inc_dir *d = &inc->dirs[m->dir];

    disk_worker_free(m->worker);
    inc->host->old_parts--;
    if (atomic_exchange(&d->end_held, false))
        settle_release(e->config.settle, d->end_gen);
    d->silent = false;
    startup_part_ended(inc->host);
}

/* Worker's thread, its last act. */
static void worker_ended(void *ctx, int dir, struct disk_worker *w)
{
    struct incarnation *inc = ctx;
    struct engine_msg *m = engine_msg_new(handle_worker_ended);
    gen_t gen = settle_hold_now(inc->engine->config.settle);

    m->inc = inc;
    m->worker = w;
    m->dir = dir;
    engine_post(inc->engine, m, gen);
    settle_release(inc->engine->config.settle, gen);
}

/* ---- submission ---- */

int inc_start_worker(struct incarnation *inc, int dir)
{
    struct inc_dir *d = &inc->dirs[dir];
    struct disk_worker_config config = {.path = d->path,
            .watcher = inc->engine->watcher,
            .watch_key = inc->key,
            .dir = dir,
            .delete_delay_ms = inc->config->file_delete_delay_ms,
            .ctx = inc,
            .done = worker_done,
            .warn = worker_warn,
            .ended = worker_ended};

    return disk_worker_new(&config, &d->worker);
}

void inc_submit_job(struct incarnation *inc, int dir, struct disk_job *job, gen_t gen)
{
    struct inc_dir *d = &inc->dirs[dir];

    job->owner = inc;
    job->dir = dir;
    job->gen = gen;
    job->submitted_ms = engine_now_ms();
    if (!d->silent) {
        settle_hold(inc->engine->config.settle, gen);
        atomic_store(&job->held, true);
    }
    inc_ref(inc);
    g_queue_push_tail(&d->outstanding, job);
    if (d->worker) {
        disk_worker_submit(d->worker, job);
        return;
    }
    job->err = -ECANCELED;
    job->why = g_strdup_printf("%s: offline", d->path);
    if (job->batch)
        disk_batch_fail(job->batch, 0, -ECANCELED, g_strdup("offline"));
    worker_done(inc, job);
}

void inc_end_worker(struct incarnation *inc, int dir, bool abrupt, gen_t gen)
{
    struct inc_dir *d = &inc->dirs[dir];

    if (!d->worker)
        return;
    inc_ref(inc); /* until it has ended */
    inc->host->old_parts++;
    d->end_gen = gen;
    d->end_ms = engine_now_ms();
    if (!d->silent) {
        settle_hold(inc->engine->config.settle, gen);
        atomic_store(&d->end_held, true);
    }
    disk_worker_end(g_steal_pointer(&d->worker), abrupt);
}

struct log_names {
    GPtrArray *names;
    int dir;
    char separator;
};

static bool add_name(void *arg, const struct replica_view *view)
{
    struct log_names *l = arg;

    if (view->dir == l->dir)
        g_ptr_array_add(l->names, g_strdup_printf("%s%c%d", view->topic->name, l->separator, view->partition));
    return true;
}

static GPtrArray *names_in(struct incarnation *inc, int dir, char separator)
{
    struct log_names l = {.names = g_ptr_array_new_with_free_func(g_free), .dir = dir, .separator = separator};

    broker_each_replica(inc->core, add_name, &l);
    return l.names;
}

struct disk_job *inc_checkpoint_job(struct incarnation *inc, int dir, enum disk_job_type type, unsigned which)
{
    struct disk_job *job = disk_job_new(type);

    job->checkpoints = which;
    job->logs = names_in(inc, dir, ' ');
    return job;
}

void inc_checkpoint(struct incarnation *inc, int dir, unsigned which, gen_t gen)
{
    struct inc_dir *d = &inc->dirs[dir];

    which &= d->dirty;
    if (!which || !d->worker)
        return;
    d->dirty &= ~which;
    inc_submit_job(inc, dir, inc_checkpoint_job(inc, dir, JOB_CHECKPOINT, which), gen);
}

void inc_look(struct incarnation *inc, int dir, GPtrArray *names, gen_t gen)
{
    if (!inc->core || !inc->dirs[dir].worker) {
        if (names)
            g_ptr_array_unref(names);
        return;
    }
    struct disk_job *job = disk_job_new(JOB_LOOK);
    job->names = names ? names : names_in(inc, dir, '-');
    inc_submit_job(inc, dir, job, gen);
}

/* ---- silence ---- */

static void give_up(struct engine *e, struct disk_job *job)
{
    if (atomic_exchange(&job->held, false))
        settle_release(e->config.settle, job->gen);
}

static void fall_silent(struct incarnation *inc, struct inc_dir *d)
{
    struct engine *e = inc->engine;

    d->silent = true;
    journal_error(e->config.errors, ETIMEDOUT, d->path,
            "broker %d: the disk has not answered for %d s and is not waited for any longer", inc->host->id,
            DISK_SILENCE_MS / 1000);
    for (GList *l = d->outstanding.head; l; l = l->next)
        give_up(e, l->data);
    if (atomic_exchange(&d->end_held, false))
        settle_release(e->config.settle, d->end_gen);
    inc_drop_holds(inc);
}

/* Since when this dir is expected to say something; -1: it is not. */
static int64_t waiting_since(struct inc_dir *d)
{
    const struct disk_job *head = g_queue_peek_head(&d->outstanding);

    if (d->silent)
        return -1;
    if (head) /* a long job shows that it goes on */
        return MAX(MAX(head->submitted_ms, d->last_answer_ms), d->worker ? disk_worker_alive_ms(d->worker) : 0);
    return atomic_load(&d->end_held) ? d->end_ms : -1;
}

int64_t engine_watch_disks(struct engine *e, int64_t now)
{
    int64_t next = -1;

    for (guint i = 0; i < e->incs->len; i++) {
        struct incarnation *inc = g_ptr_array_index(e->incs, i);
        for (size_t k = 0; k < inc->n_dirs; k++) {
            int64_t since = waiting_since(&inc->dirs[k]);
            if (since < 0)
                continue;
            if (now - since >= DISK_SILENCE_MS)
                fall_silent(inc, &inc->dirs[k]);
            else if (next < 0 || since + DISK_SILENCE_MS < next)
                next = since + DISK_SILENCE_MS;
        }
    }
    return next;
}
