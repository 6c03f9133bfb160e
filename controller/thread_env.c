/* The environment of the candidates in production: mirror, store, brokers, clock, journals. Controller thread. */
#include "controller/thread_core.h"
#include "fs/tree/mirror.h"

#include <stdlib.h>
#include <time.h>

/* ---- reads ---- */

static int env_get(void *ctx, const char *path, struct bytes **ret_data, struct zstat *ret_stat)
{
    const struct candidate *me = ctx;
    return mirror_get(me->thread->config.mirror, path, ret_data, ret_stat);
}

static GPtrArray *env_children(void *ctx, const char *path)
{
    const struct candidate *me = ctx;
    return mirror_children(me->thread->config.mirror, path);
}

static GArray *env_below(void *ctx, const char *path, const char *name)
{
    const struct candidate *me = ctx;
    return mirror_below(me->thread->config.mirror, path, name);
}

/* ---- writes ---- */

/* Store thread. */
static void txn_done(struct txn *txn, void *arg)
{
    struct controller_thread *t = arg;
    pthread_mutex_lock(&t->run_lock);
    if (--t->running == 0) {
        pthread_cond_signal(&t->run_done);
    }
    pthread_mutex_unlock(&t->run_lock);
}

bool thread_owns(const struct controller_thread *t, const struct txn *txn)
{
    return txn && txn->done == txn_done && txn->arg == t;
}

static void env_run(void *ctx, struct txn **txns, size_t n)
{
    const struct candidate *me = ctx;
    struct controller_thread *t = me->thread;
    pthread_mutex_lock(&t->run_lock);
    t->running = n;
    pthread_mutex_unlock(&t->run_lock);
    for (size_t i = 0; i < n; i++) {
        txns[i]->session = me->session;
        txns[i]->origin = TXN_INTERNAL;
        txns[i]->gen = t->gen;
        txns[i]->done = txn_done;
        txns[i]->arg = t;
        store_submit(t->config.store, txns[i]);
    }
    pthread_mutex_lock(&t->run_lock);
    while (t->running) {
        pthread_cond_wait(&t->run_done, &t->run_lock);
    }
    pthread_mutex_unlock(&t->run_lock);
}

/* ---- brokers ---- */

static void env_send(void *ctx, int32_t broker_id, int64_t broker_epoch, struct control_request *request)
{
    const struct candidate *me = ctx;
    struct controller_thread *t = me->thread;
    t->config.link.request(t->config.link.ctx, me->broker_id, broker_id, broker_epoch, request, t->gen);
}

/* In one process a channel is the queue of the engine. What was under way when it closed is told apart by the broker's
 * epoch in the request and in the answer. */
static void env_channel(void *ctx, int32_t broker_id)
{
}

static void env_respond(void *ctx, struct broker_request *request)
{
    const struct candidate *me = ctx;
    struct controller_thread *t = me->thread;
    t->config.link.respond(t->config.link.ctx, request, t->gen);
}

/* ---- time and chance ---- */

static int64_t env_now_ms(void *ctx)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

static int64_t env_monotonic_us(void *ctx)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000) + t.tv_nsec / 1000;
}

int64_t thread_now_ms(void)
{
    return env_monotonic_us(NULL) / 1000;
}

static uint32_t env_random(void *ctx)
{
    return arc4random();
}

static void env_timer(void *ctx, enum controller_timer timer, int64_t delay_ms)
{
    struct candidate *me = ctx;
    me->timers[timer] = delay_ms < 0 ? -1 : thread_now_ms() + delay_ms;
}

/* ---- people ---- */

static void env_event(void *ctx, const char *fmt, ...)
{
    const struct candidate *me = ctx;
    struct controller_thread *t = me->thread;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (now.tv_sec != t->second) {
        struct tm utc;
        t->second = now.tv_sec;
        gmtime_r(&now.tv_sec, &utc);
        strftime(t->second_text, sizeof(t->second_text), "%Y-%m-%dT%H:%M:%S", &utc);
    }
    va_list args;
    va_start(args, fmt);
    g_autofree char *text = g_strdup_vprintf(fmt, args);
    va_end(args);
    journal_line(t->config.events, "%s.%03ldZ %s", t->second_text, now.tv_nsec / 1000000, text);
}

static void env_error(void *ctx, int err, const char *path, const char *fmt, ...)
{
    const struct candidate *me = ctx;
    va_list args;
    va_start(args, fmt);
    g_autofree char *text = g_strdup_vprintf(fmt, args);
    va_end(args);
    journal_error(me->thread->config.errors, err, path, "%s", text);
}

static bool env_unclean_default(void *ctx)
{
    const struct candidate *me = ctx;
    return atomic_load(me->unclean_default);
}

struct controller_env candidate_env(struct candidate *candidate)
{
    return (struct controller_env){
            .ctx = candidate,
            .get = env_get,
            .children = env_children,
            .below = env_below,
            .run = env_run,
            .send = env_send,
            .channel_open = env_channel,
            .channel_close = env_channel,
            .respond = env_respond,
            .unclean_default = env_unclean_default,
            .now_ms = env_now_ms,
            .monotonic_us = env_monotonic_us,
            .random = env_random,
            .timer = env_timer,
            .event = env_event,
            .error = env_error,
    };
}
