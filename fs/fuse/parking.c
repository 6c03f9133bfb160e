#include "fs/fuse/parking.h"

#include <errno.h>

struct parking {
    pthread_mutex_t lock;
    pthread_cond_t answered;
    GQueue waiting; /* of struct parked, by their links; each holds a reference */
    unsigned answering;
    bool closed;
};

struct parking *parking_new(void)
{
    struct parking *k = g_new0(struct parking, 1);
    pthread_mutex_init(&k->lock, NULL);
    pthread_cond_init(&k->answered, NULL);
    g_queue_init(&k->waiting);
    return k;
}

void parking_free(struct parking *k)
{
    if (!k)
        return;
    pthread_cond_destroy(&k->answered);
    pthread_mutex_destroy(&k->lock);
    g_free(k);
}

void parked_init(struct parking *k, struct parked *p, fuse_req_t req, void (*free)(struct parked *p),
        void (*interrupted)(struct parked *p))
{
    *p = (struct parked){.parking = k, .free = free, .interrupted = interrupted, .req = req, .link.data = p};
    atomic_init(&p->refs, 1);
    pthread_mutex_init(&p->lock, NULL);
}

struct parked *parked_ref(struct parked *p)
{
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    return p;
}

struct parked *parked_unref(struct parked *p)
{
    if (!p || atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
        return NULL;
    pthread_mutex_destroy(&p->lock);
    p->free(p);
    return NULL;
}

/* Takes `p` off the list, with the list's reference. */
static void unlink_parked(struct parked *p)
{
    struct parking *k = p->parking;
    pthread_mutex_lock(&k->lock);
    bool linked = p->linked;
    if (linked)
        g_queue_unlink(&k->waiting, &p->link);
    p->linked = false;
    pthread_mutex_unlock(&k->lock);
    if (linked)
        parked_unref(p);
}

static fuse_req_t take(struct parked *p)
{
    pthread_mutex_lock(&p->lock);
    fuse_req_t req = p->req;
    p->req = NULL;
    pthread_mutex_unlock(&p->lock);
    return req;
}

/* libfuse calls this on the FUSE thread with the request's own lock held. */
static void interrupt(fuse_req_t same, void *arg)
{
    struct parked *p = arg;
    fuse_req_t req = take(p);
    if (!req)
        return;
    fuse_reply_err(req, EINTR);
    if (p->interrupted)
        p->interrupted(p);
    unlink_parked(p);
}

static void count(struct parking *k, int more)
{
    pthread_mutex_lock(&k->lock);
    k->answering += (unsigned)more;
    pthread_cond_broadcast(&k->answered);
    pthread_mutex_unlock(&k->lock);
}

void parked_answered(struct parked *p)
{
    count(p->parking, -1);
}

fuse_req_t parked_take(struct parked *p)
{
    count(p->parking, 1); /* before it is taken, or parking_close() would see neither */
    fuse_req_t req = take(p);
    if (!req) {
        count(p->parking, -1);
        return NULL;
    }
    /* Waits for an interrupt that is being looked at, so that none comes after the answer. */
    fuse_req_interrupt_func(req, NULL, NULL);
    unlink_parked(p);
    return req;
}

static void shut_down(struct parked *p)
{
    fuse_req_t req = parked_take(p);
    if (!req)
        return;
    fuse_reply_err(req, ESHUTDOWN);
    parked_answered(p);
}

void parked_wait(struct parked *p)
{
    struct parking *k = p->parking;
    pthread_mutex_lock(&k->lock);
    bool closed = k->closed;
    if (!closed) {
        parked_ref(p);
        p->linked = true;
        g_queue_push_tail_link(&k->waiting, &p->link);
    }
    pthread_mutex_unlock(&k->lock);
    fuse_req_interrupt_func(p->req, interrupt, p);
    if (closed)
        shut_down(p);
}

void parking_close(struct parking *k)
{
    for (;;) {
        pthread_mutex_lock(&k->lock);
        k->closed = true;
        GList *first = g_queue_peek_head_link(&k->waiting);
        struct parked *p = first ? parked_ref(first->data) : NULL;
        while (!p && k->answering > 0)
            pthread_cond_wait(&k->answered, &k->lock);
        pthread_mutex_unlock(&k->lock);
        if (!p)
            return;
        shut_down(p);
        unlink_parked(p); /* if another took it, it may not have come to this yet */
        parked_unref(p);
    }
}
