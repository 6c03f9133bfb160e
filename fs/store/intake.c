#include "fs/store/intake.h"

#include <glib.h>
#include <pthread.h>
#include <time.h>

#define GROUP_OPS 1000
#define GROUP_BYTES (4u << 20)

struct intake {
    pthread_mutex_t mutex; /* protects all below */
    pthread_cond_t wake;   /* for the store thread */
    struct store_item *first, **tail;
    size_t n_urgent; /* queued items that somebody outside waits for */
    size_t awaited;  /* so many of those the store thread wants before it is woken; 0: any item */
    size_t n_ops, n_bytes;
    bool closed;
};

struct intake *intake_new(void)
{
    struct intake *in = g_new0(struct intake, 1);
    in->tail = &in->first;
    pthread_mutex_init(&in->mutex, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&in->wake, &attr);
    pthread_condattr_destroy(&attr);
    return in;
}

void intake_free(struct intake *in)
{
    if (!in)
        return;
    g_assert(!in->first);
    pthread_cond_destroy(&in->wake);
    pthread_mutex_destroy(&in->mutex);
    g_free(in);
}

static bool is_urgent(const struct store_item *item)
{
    return item->type != ITEM_TXN || item->txn->origin == TXN_CLIENT;
}

static size_t ops_of(const struct store_item *item)
{
    return item->type == ITEM_TXN ? item->txn->n_ops : 0;
}

static void count(struct intake *in, const struct store_item *item, int sign)
{
    in->n_urgent += (size_t)(sign * is_urgent(item));
    in->n_ops += (size_t)sign * ops_of(item);
    in->n_bytes += (size_t)sign * item->bytes;
}

static bool group_full(const struct intake *in)
{
    return in->n_ops >= GROUP_OPS || in->n_bytes >= GROUP_BYTES;
}

bool intake_push(struct intake *in, struct store_item *item)
{
    item->next = NULL;
    item->bytes = item->type == ITEM_TXN ? txn_size(item->txn) : 0;
    pthread_mutex_lock(&in->mutex);
    bool open = !in->closed;
    if (open) {
        *in->tail = item;
        in->tail = &item->next;
        count(in, item, 1);
        if (in->n_urgent >= in->awaited || group_full(in))
            pthread_cond_signal(&in->wake);
    }
    pthread_mutex_unlock(&in->mutex);
    return open;
}

static struct timespec deadline_after(int64_t us)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t ns = t.tv_nsec + us % 1000000 * 1000;
    t.tv_sec += us / 1000000 + ns / 1000000000;
    t.tv_nsec = ns % 1000000000;
    return t;
}

static void wait_for_item(struct intake *in, int64_t timeout_us)
{
    struct timespec deadline = deadline_after(MAX(timeout_us, 0));
    while (!in->first && !in->closed && timeout_us != 0) {
        if (timeout_us < 0)
            pthread_cond_wait(&in->wake, &in->mutex);
        else if (pthread_cond_timedwait(&in->wake, &in->mutex, &deadline) != 0)
            return;
    }
}

static void wait_for_clients(struct intake *in, size_t n_clients, int64_t linger_us)
{
    struct timespec deadline = deadline_after(linger_us);
    in->awaited = n_clients;
    while (in->n_urgent < n_clients && !in->closed && !group_full(in))
        if (pthread_cond_timedwait(&in->wake, &in->mutex, &deadline) != 0)
            break;
    in->awaited = 0;
}

static struct store_item *cut_group(struct intake *in)
{
    struct store_item *group = in->first, **end = &in->first;
    size_t ops = 0, bytes = 0;
    while (*end) {
        struct store_item *item = *end;
        bool after_txn = ops > 0 && item->type != ITEM_TXN;
        bool over = ops > 0 && (ops + ops_of(item) > GROUP_OPS || bytes + item->bytes > GROUP_BYTES);
        if (after_txn || over)
            break;
        ops += ops_of(item);
        bytes += item->bytes;
        count(in, item, -1);
        end = &item->next;
    }
    struct store_item *rest = *end;
    *end = NULL;
    in->first = rest;
    if (!rest)
        in->tail = &in->first;
    return group;
}

struct store_item *intake_take(struct intake *in, int64_t timeout_us, size_t n_clients, int64_t linger_us)
{
    pthread_mutex_lock(&in->mutex);
    wait_for_item(in, timeout_us);
    if (in->first && linger_us > 0)
        wait_for_clients(in, n_clients, linger_us);
    struct store_item *group = in->first ? cut_group(in) : NULL;
    pthread_mutex_unlock(&in->mutex);
    return group;
}

size_t intake_clients(struct intake *in)
{
    pthread_mutex_lock(&in->mutex);
    size_t n = in->n_urgent;
    pthread_mutex_unlock(&in->mutex);
    return n;
}

void intake_close(struct intake *in)
{
    pthread_mutex_lock(&in->mutex);
    in->closed = true;
    pthread_cond_signal(&in->wake);
    pthread_mutex_unlock(&in->mutex);
}

bool intake_closed(struct intake *in)
{
    pthread_mutex_lock(&in->mutex);
    bool closed = in->closed;
    pthread_mutex_unlock(&in->mutex);
    return closed;
}
