#include "fs/queue.h"

#include <glib.h>
#include <pthread.h>
#include <time.h>

struct ask {
    struct ask *next;
    void (*fn)(void *arg);
    void *arg;
};

struct queue {
    struct settle *settle;
    pthread_mutex_t mutex; /* protects all below; no callback under it */
    pthread_cond_t wake;   /* for the one receiver */
    struct queue_item *items, **items_tail;
    struct ask *asks, **asks_tail;
    bool closed;
};

struct queue *queue_new(struct settle *settle)
{
    struct queue *q = g_new0(struct queue, 1);
    q->settle = settle;
    q->items_tail = &q->items;
    q->asks_tail = &q->asks;
    pthread_mutex_init(&q->mutex, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&q->wake, &attr);
    pthread_condattr_destroy(&attr);
    return q;
}

void queue_free(struct queue *q)
{
    if (!q)
        return;
    g_assert(!q->items && !q->asks);
    pthread_cond_destroy(&q->wake);
    pthread_mutex_destroy(&q->mutex);
    g_free(q);
}

bool queue_push(struct queue *q, struct queue_item *item, gen_t gen)
{
    item->next = NULL;
    item->gen = gen;
    pthread_mutex_lock(&q->mutex);
    bool open = !q->closed;
    if (open) {
        if (q->settle)
            settle_hold(q->settle, gen);
        *q->items_tail = item;
        q->items_tail = &item->next;
        pthread_cond_signal(&q->wake);
    }
    pthread_mutex_unlock(&q->mutex);
    return open;
}

bool queue_ask(struct queue *q, void (*fn)(void *arg), void *arg)
{
    struct ask *ask = g_new(struct ask, 1);
    *ask = (struct ask){.fn = fn, .arg = arg};
    pthread_mutex_lock(&q->mutex);
    bool open = !q->closed;
    if (open) {
        *q->asks_tail = ask;
        q->asks_tail = &ask->next;
        pthread_cond_signal(&q->wake);
    }
    pthread_mutex_unlock(&q->mutex);
    if (!open)
        g_free(ask);
    return open;
}

/* Runs the questions that are there now. Called with the mutex held; it is released meanwhile. */
static void run_asks(struct queue *q)
{
    struct ask *ask = q->asks;
    q->asks = NULL;
    q->asks_tail = &q->asks;
    pthread_mutex_unlock(&q->mutex);
    while (ask) {
        struct ask *next = ask->next;
        ask->fn(ask->arg);
        g_free(ask);
        ask = next;
    }
    pthread_mutex_lock(&q->mutex);
}

static struct queue_item *take_item(struct queue *q)
{
    struct queue_item *item = q->items;
    q->items = item->next;
    if (!q->items)
        q->items_tail = &q->items;
    item->next = NULL;
    return item;
}

/* False: the deadline has passed. */
static bool wait_until(struct queue *q, int64_t deadline_ms)
{
    if (deadline_ms < 0)
        return pthread_cond_wait(&q->wake, &q->mutex) == 0;
    struct timespec deadline = {.tv_sec = deadline_ms / 1000, .tv_nsec = deadline_ms % 1000 * 1000000};
    return pthread_cond_timedwait(&q->wake, &q->mutex, &deadline) == 0;
}

struct queue_item *queue_pop(struct queue *q, int64_t deadline_ms)
{
    struct queue_item *item = NULL;
    pthread_mutex_lock(&q->mutex);
    for (;;) {
        if (q->asks)
            run_asks(q);
        if (q->items) {
            item = take_item(q);
            break;
        }
        if (q->asks)
            continue;
        if (q->closed || !wait_until(q, deadline_ms))
            break;
    }
    pthread_mutex_unlock(&q->mutex);
    return item;
}

void queue_done(struct queue *q, gen_t gen)
{
    if (q->settle)
        settle_release(q->settle, gen);
}

void queue_close(struct queue *q)
{
    pthread_mutex_lock(&q->mutex);
    q->closed = true;
    pthread_cond_broadcast(&q->wake);
    pthread_mutex_unlock(&q->mutex);
}

/* Since a queue_pop() whose deadline passed, items may have come before the end. */
bool queue_ended(struct queue *q)
{
    pthread_mutex_lock(&q->mutex);
    bool ended = q->closed && !q->items && !q->asks;
    pthread_mutex_unlock(&q->mutex);
    return ended;
}
