#include "fs/settle.h"

#include <glib.h>
#include <pthread.h>
#include <stdbool.h>

struct settle_waiter {
    gen_t bound;
    void (*settled)(void *arg);
    void *arg;
    bool called; /* taken off the list; the call has been or is being made */
};

struct settle {
    pthread_mutex_t mutex; /* protects all below; a leaf: no callback under it */
    gen_t oldest;          /* generation of counts[first] */
    GArray *counts;        /* uint64_t: pieces of work held, one a generation from `oldest` to the current one */
    guint first;           /* elements before it are gone; compacted now and then */
    GPtrArray *waiters;    /* not yet called */
};

static uint64_t *count_of(struct settle *s, gen_t gen)
{
    g_assert(gen >= s->oldest && gen - s->oldest < s->counts->len - s->first);
    return &g_array_index(s->counts, uint64_t, s->first + (guint)(gen - s->oldest));
}

static gen_t current(const struct settle *s)
{
    return s->oldest + (s->counts->len - s->first) - 1;
}

/* Drops the generations at the front that nothing holds any more; the current one always stays. */
static void advance(struct settle *s)
{
    while (s->counts->len - s->first > 1 && g_array_index(s->counts, uint64_t, s->first) == 0)
        s->first++, s->oldest++;
    if (s->first > 1024 && s->first > s->counts->len / 2) {
        g_array_remove_range(s->counts, 0, s->first);
        s->first = 0;
    }
}

/* Takes the waiters that are due off the list; NULL if there are none. Called with the mutex held. */
static GArray *take_due(struct settle *s)
{
    GArray *due = NULL;
    for (guint i = 0; i < s->waiters->len;) {
        struct settle_waiter *w = g_ptr_array_index(s->waiters, i);
        if (w->bound > s->oldest) {
            i++;
            continue;
        }
        if (!due)
            due = g_array_new(FALSE, FALSE, sizeof *w);
        w->called = true;
        g_array_append_val(due, *w); /* a copy: after the unlock settle_cancel() may free it */
        g_ptr_array_remove_index(s->waiters, i);
    }
    return due;
}

static void call_due(GArray *due)
{
    if (!due)
        return;
    for (guint i = 0; i < due->len; i++) {
        struct settle_waiter *w = &g_array_index(due, struct settle_waiter, i);
        w->settled(w->arg);
    }
    g_array_unref(due);
}

struct settle *settle_new(void)
{
    struct settle *s = g_new0(struct settle, 1);
    pthread_mutex_init(&s->mutex, NULL);
    s->counts = g_array_new(FALSE, TRUE, sizeof(uint64_t));
    s->waiters = g_ptr_array_new();
    s->oldest = 1;
    g_array_set_size(s->counts, 1);
    return s;
}

void settle_free(struct settle *s)
{
    if (!s)
        return;
    g_array_unref(s->counts);
    g_ptr_array_unref(s->waiters);
    pthread_mutex_destroy(&s->mutex);
    g_free(s);
}

gen_t settle_hold_now(struct settle *s)
{
    pthread_mutex_lock(&s->mutex);
    gen_t gen = current(s);
    ++*count_of(s, gen);
    pthread_mutex_unlock(&s->mutex);
    return gen;
}

void settle_hold(struct settle *s, gen_t gen)
{
    pthread_mutex_lock(&s->mutex);
    ++*count_of(s, gen);
    pthread_mutex_unlock(&s->mutex);
}

void settle_release(struct settle *s, gen_t gen)
{
    GArray *due = NULL;
    pthread_mutex_lock(&s->mutex);
    uint64_t *count = count_of(s, gen);
    g_assert(*count > 0);
    if (--*count == 0 && gen == s->oldest) {
        advance(s);
        due = take_due(s);
    }
    pthread_mutex_unlock(&s->mutex);
    call_due(due);
}

gen_t settle_begin(struct settle *s)
{
    pthread_mutex_lock(&s->mutex);
    g_array_set_size(s->counts, s->counts->len + 1);
    gen_t gen = current(s);
    advance(s);
    pthread_mutex_unlock(&s->mutex);
    return gen;
}

struct settle_waiter *settle_wait(struct settle *s, gen_t bound, void (*settled)(void *arg), void *arg)
{
    struct settle_waiter *w = g_new0(struct settle_waiter, 1);
    *w = (struct settle_waiter){.bound = bound, .settled = settled, .arg = arg};
    pthread_mutex_lock(&s->mutex);
    bool now = w->called = bound <= s->oldest;
    if (!now)
        g_ptr_array_add(s->waiters, w);
    pthread_mutex_unlock(&s->mutex);
    if (now)
        settled(arg);
    return w;
}

int settle_cancel(struct settle *s, struct settle_waiter *w)
{
    pthread_mutex_lock(&s->mutex);
    bool withdrawn = !w->called;
    if (withdrawn)
        g_ptr_array_remove(s->waiters, w);
    pthread_mutex_unlock(&s->mutex);
    g_free(w);
    return withdrawn;
}
