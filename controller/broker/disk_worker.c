#include "controller/broker/disk_worker.h"
#include "controller/broker/log_names.h"
#include "controller/broker/meta_properties.h"
#include "controller/broker/watcher.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

struct disk_worker {
    struct disk_worker_config config; /* `path` is owned */
    struct queue *queue;
    pthread_t thread;
    atomic_bool abrupt;
    _Atomic int64_t delete_delay_ms, alive_ms;
    /* the thread's own */
    struct log_dir *dir; /* NULL: not open */
    int watch;           /* -1: none */
    int64_t next_doomed_ms;
};

struct disk_job *disk_job_new(enum disk_job_type type)
{
    struct disk_job *job = g_new0(struct disk_job, 1);

    job->type = type;
    return job;
}

void disk_job_free(struct disk_job *job)
{
    if (!job)
        return;
    g_free(job->cluster_id);
    if (job->logs)
        g_ptr_array_unref(job->logs);
    disk_batch_free(job->batch);
    if (job->names)
        g_ptr_array_unref(job->names);
    g_free(job->why);
    if (job->meta)
        g_hash_table_unref(job->meta);
    found_logs_free(job->found);
    g_free(job);
}

static int64_t now_ms(void)
{
    return g_get_monotonic_time() / 1000;
}

static void warn(void *arg, const char *entry, const char *why)
{
    struct disk_worker *w = arg;

    w->config.warn(w->config.ctx, w->config.path, entry, why);
}

static void set_error(struct disk_job *job, int err, bool failed, char *why)
{
    if (job->err == 0) {
        job->err = err;
        job->failed = failed;
        job->why = why;
    } else {
        g_free(why);
    }
}

static void set_errno(struct disk_worker *w, struct disk_job *job, int err, const char *what)
{
    if (err < 0)
        set_error(job, err, true, g_strdup_printf("%s: %s: %s", w->config.path, what, g_strerror(-err)));
}

/* ---- jobs ---- */

static void do_open(struct disk_worker *w, struct disk_job *job)
{
    char *why = NULL;
    int r = log_dir_open(w->config.path, job->use_topic_ids, &w->dir, &why);

    if (r < 0) {
        set_error(job, r, true, why);
        return;
    }
    w->dir->alive_ms = &w->alive_ms;
    r = log_dir_lock(w->dir, &why);
    if (r < 0) {
        set_error(job, r, r != -EBUSY, why);
        return;
    }
    r = log_dir_check_names(w->dir, &why);
    if (r < 0) {
        set_error(job, r, r != -EINVAL, why);
        return;
    }
    r = meta_properties_read(w->dir, &job->meta, &why);
    if (r < 0) {
        set_error(job, r, r != -EINVAL, why);
        return;
    }
    if (!w->config.watcher)
        return;
    w->watch = watcher_add(w->config.watcher, w->dir->fd, w->config.watch_key, job->dir);
    if (w->watch < 0)
        warn(w, ".", "cannot be watched: what others do to it is noticed late");
}

static void do_load(struct disk_worker *w, struct disk_job *job)
{
    int64_t now = now_ms();
    int64_t due = log_due_ms(now, atomic_load(&w->delete_delay_ms));
    char *why = NULL;

    job->found = g_array_new(FALSE, TRUE, sizeof(struct found_log));
    int r = log_dir_load(w->dir, due, job->found, warn, w, &why);
    if (r < 0) {
        set_error(job, r, true, why);
        return;
    }
    /* without a delay what was left half-deleted is gone when the load is done */
    w->next_doomed_ms = log_remove_doomed(w->dir, now, warn, w);
}

static void say_aside(struct disk_worker *w, const struct log_task *t)
{
    char name[NAME_MAX + 1];

    if (t->aside && log_name_current(t->topic->name, t->partition, name) == 0)
        warn(w, name, "was not this topic's: set aside with the suffix -stray");
}

static int do_task(struct disk_worker *w, struct disk_job *job, struct log_task *t, bool *ret_fatal)
{
    struct disk_batch *batch = job->batch;
    char name[NAME_MAX + 1];
    int r;

    switch (batch->work) {
    case DISK_CREATE:
        r = log_create(w->dir, t);
        say_aside(w, t);
        *ret_fatal = log_dir_error_is_fatal(r);
        return r;
    case DISK_DELETE:
        r = log_delete(w->dir, t, now_ms(), atomic_load(&w->delete_delay_ms), ret_fatal);
        say_aside(w, t);
        job->rewrite = (r == 0 && checkpoints_forget(w->dir, t->topic->name, t->partition)) || job->rewrite;
        return r;
    default:
        r = log_name_current(t->topic->name, t->partition, name);
        if (r == 0)
            r = log_set_aside(w->dir, name, t->topic->name, t->partition);
        *ret_fatal = log_dir_error_is_fatal(r);
        return r;
    }
}

static void do_batch(struct disk_worker *w, struct disk_job *job)
{
    struct disk_batch *batch = job->batch;
    guint doomed = w->dir->doomed->len;
    char *why = NULL;
    int r = log_dir_check(w->dir, &why);

    if (r < 0) {
        disk_batch_fail(batch, 0, r, why);
        return;
    }
    for (guint i = 0; i < batch->tasks->len && !batch->failed; i++) {
        struct log_task *t = &g_array_index(batch->tasks, struct log_task, i);
        bool fatal = false;
        t->err = do_task(w, job, t, &fatal);
        log_dir_alive(w->dir);
        if (t->err < 0 && fatal)
            disk_batch_fail(batch, i, t->err,
                    g_strdup_printf("%s/%s-%d: %s", w->config.path, t->topic->name, t->partition, g_strerror(-t->err)));
    }
    /* once a batch: nobody hears of a deletion before it is durable */
    if (batch->work == DISK_DELETE && TEMP_FAILURE_RETRY(fsync(w->dir->fd)) < 0) {
        r = -errno;
        disk_batch_fail(batch, 0, r, g_strdup_printf("%s: fsync: %s", w->config.path, g_strerror(-r)));
    }
    for (guint i = doomed; i < w->dir->doomed->len; i++) {
        int64_t due = g_array_index(w->dir->doomed, struct doomed_log, i).due_ms;
        w->next_doomed_ms = w->next_doomed_ms < 0 ? due : MIN(w->next_doomed_ms, due);
    }
}

static void do_checkpoints(struct disk_worker *w, struct disk_job *job)
{
    char *why = NULL;
    int r = log_dir_check(w->dir, &why);

    if (r < 0) {
        set_error(job, r, true, why);
        return;
    }
    for (int i = 0; i < CHECKPOINT_N && job->err == 0; i++)
        if (job->checkpoints & 1u << i)
            set_errno(w, job, checkpoint_write(w->dir, i, job->logs), "checkpoint");
    if (job->type == JOB_CLOSE && job->err == 0)
        set_errno(w, job, clean_shutdown_write(w->dir), ".kafka_cleanshutdown");
}

static void do_look(struct disk_worker *w, struct disk_job *job)
{
    char *why = NULL;
    int r = log_dir_check(w->dir, &why);

    if (r < 0) {
        set_error(job, r, true, why);
        return;
    }
    int fd = TEMP_FAILURE_RETRY(openat(w->dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0 && log_dir_error_is_fatal(-errno)) {
        set_errno(w, job, -errno, "cannot be read any more");
        return;
    }
    if (fd >= 0)
        close(fd);
    for (guint i = 0; i < job->names->len;) {
        if (log_dir_has(w->dir, g_ptr_array_index(job->names, i)))
            g_ptr_array_remove_index_fast(job->names, i);
        else
            i++;
    }
}

static void do_job(struct disk_worker *w, struct disk_job *job)
{
    if (atomic_load(&w->abrupt) || (!w->dir && job->type != JOB_OPEN)) {
        set_error(job, -ECANCELED, false, g_strdup_printf("%s: not done", w->config.path));
        if (job->batch)
            disk_batch_fail(job->batch, 0, -ECANCELED, g_strdup("not done"));
        return;
    }
    switch (job->type) {
    case JOB_OPEN:
        do_open(w, job);
        break;
    case JOB_META:
        set_errno(w, job, meta_properties_write(w->dir, job->broker_id, job->cluster_id), "meta.properties");
        break;
    case JOB_LOAD:
        do_load(w, job);
        break;
    case JOB_BATCH:
        do_batch(w, job);
        break;
    case JOB_CHECKPOINT:
    case JOB_CLOSE:
        do_checkpoints(w, job);
        break;
    case JOB_LOOK:
        do_look(w, job);
        break;
    }
}

static void *run(void *arg)
{
    struct disk_worker *w = arg;

    pthread_setname_np(pthread_self(), "disk");
    for (;;) {
        struct queue_item *item = queue_pop(w->queue, w->next_doomed_ms);
        if (item) {
            struct disk_job *job = (struct disk_job *)item;
            do_job(w, job);
            w->config.done(w->config.ctx, job);
        } else if (queue_ended(w->queue)) {
            break;
        } else if (w->dir) {
            w->next_doomed_ms = log_remove_doomed(w->dir, now_ms(), warn, w);
        }
    }
    if (w->watch >= 0)
        watcher_remove(w->config.watcher, w->watch);
    log_dir_close(w->dir);
    w->config.ended(w->config.ctx, w->config.dir, w);
    return NULL;
}

/* ---- from outside ---- */

int disk_worker_new(const struct disk_worker_config *config, struct disk_worker **ret)
{
    struct disk_worker *w = g_new0(struct disk_worker, 1);

    w->config = *config;
    w->config.path = g_strdup(config->path);
    w->queue = queue_new(NULL);
    w->watch = -1;
    w->next_doomed_ms = -1;
    atomic_store(&w->delete_delay_ms, config->delete_delay_ms);
    int r = pthread_create(&w->thread, NULL, run, w);
    if (r != 0) {
        queue_free(w->queue);
        g_free((char *)w->config.path);
        g_free(w);
        return r == EAGAIN ? -ENOMEM : -r; /* it would tell the user to try again */
    }
    *ret = w;
    return 0;
}

void disk_worker_submit(struct disk_worker *w, struct disk_job *job)
{
    bool open = queue_push(w->queue, &job->item, job->gen);

    g_assert(open);
}

void disk_worker_set_delay(struct disk_worker *w, int64_t delete_delay_ms)
{
    atomic_store(&w->delete_delay_ms, delete_delay_ms);
}

int64_t disk_worker_alive_ms(struct disk_worker *w)
{
    return atomic_load_explicit(&w->alive_ms, memory_order_relaxed);
}

void disk_worker_end(struct disk_worker *w, bool abrupt)
{
    if (abrupt)
        atomic_store(&w->abrupt, true);
    queue_close(w->queue);
}

void disk_worker_free(struct disk_worker *w)
{
    if (!w)
        return;
    pthread_join(w->thread, NULL);
    queue_free(w->queue);
    g_free((char *)w->config.path);
    g_free(w);
}
