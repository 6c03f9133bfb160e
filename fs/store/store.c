#include "fs/store/store.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include "fs/store/apply.h"
#include "fs/store/backend.h"
#include "fs/store/intake.h"
#include "fs/store/load.h"
#include "fs/store/session.h"

#define RETRY_US 1000000       /* a session's end that found no space */
#define CLIENT_RECENT_US 20000 /* how long after a client's transaction another is expected, at least */

struct store {
    struct store_config config;
    struct backend *backend;
    struct intake *intake;
    pthread_t thread;
    bool started;
    atomic_int_fast64_t next_session;
    /* of the store thread */
    struct applier *applier;
    struct sessions *sessions;
    struct store_item *unfinished; /* ends of sessions that found no space; tried again with every group */
    bool read_only;
    int64_t commit_us;      /* moving average of a commit's time */
    int64_t last_client_us; /* CLOCK_MONOTONIC of the last group with a client's transaction */
    size_t clients;         /* at work: they were in the last group, or queued while it was being committed */
};

/* One item in the course of a batch. */
struct work {
    struct store_item *item;
    struct txn *txn; /* the item's, or the store's own that ends a session */
    int64_t time_ms;
    guint first, end; /* its changes, in the batch's array */
};

static int64_t monotonic_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000) + t.tv_nsec / 1000;
}

/* ---- applying and committing ---- */

static bool session_open(void *ctx, int64_t session)
{
    return sessions_is_open(((struct store *)ctx)->sessions, session);
}

/* 0, or -errno of the backend. */
static int apply_work(struct store *s, struct work *w, GArray *changes)
{
    w->time_ms = s->config.now_ms(s->config.ctx);
    w->first = w->end = changes->len;
    if (w->item->type == ITEM_SESSION_OPEN) {
        sessions_open(s->sessions, w->item->session);
        return 0;
    }
    if (w->item->type == ITEM_SESSION_CLOSE) {
        sessions_end(s->sessions, w->item->session);
        txn_free(w->txn);
        w->txn = txn_new(TXN_INTERNAL);
        sessions_append_deletes(s->sessions, w->item->session, w->txn);
    }
    struct apply_env env = {.time_ms = w->time_ms, .session_open = session_open, .ctx = s};
    int err = apply_txn(s->applier, w->txn, &env, changes);
    w->end = changes->len;
    return err;
}

static int timed_commit(struct store *s)
{
    int64_t start = monotonic_us();
    int err = apply_commit(s->applier);
    s->commit_us += (monotonic_us() - start - s->commit_us) / 8;
    return err;
}

/* ---- publishing ---- */

/* The item has been dealt with, whatever came out. */
static void finish(struct work *w)
{
    struct store_item *item = w->item;
    if (item->type == ITEM_TXN)
        w->txn->done(w->txn, w->txn->arg);
    else
        txn_free(w->txn);
    if (item->done)
        item->done(item->arg);
    g_free(item);
}

static void publish(struct store *s, struct work *w, GArray *changes)
{
    if (w->end > w->first) {
        bool own = w->item->type != ITEM_TXN;
        struct commit commit = {
                .zxid = w->txn->zxid,
                .time_ms = w->time_ms,
                .gen = own ? w->item->gen : w->txn->gen,
                .txn = own ? NULL : w->txn,
                .changes = &g_array_index(changes, struct change, w->first),
                .n_changes = w->end - w->first,
        };
        sessions_follow(s->sessions, &commit);
        s->config.feed(s->config.ctx, &commit);
    }
    finish(w);
}

/* ---- failure ---- */

static void fail_for_good(struct store *s, int err)
{
    g_autofree char *why =
            g_strdup_printf("%s: %s; nothing is written until the next mount", s->backend->ops->name, g_strerror(-err));
    s->read_only = true;
    s->config.failed(s->config.ctx, why);
}

/* The batch was not committed. A session that could not be ended for want of space is ended later. */
static void refuse(struct store *s, struct work *w, int rc)
{
    if (w->item->type == ITEM_SESSION_CLOSE && rc == ZSTORENOSPACE) {
        txn_free(w->txn);
        w->item->next = s->unfinished;
        s->unfinished = w->item;
        return;
    }
    if (w->item->type == ITEM_TXN)
        txn_fail(w->txn, rc);
    finish(w);
}

/* ---- batches ---- */

static size_t count_clients(const struct work *works, size_t n)
{
    size_t clients = 0;
    for (size_t i = 0; i < n; i++)
        clients += works[i].item->type == ITEM_TXN && works[i].txn->origin == TXN_CLIENT;
    return clients;
}

/* Applies, commits and publishes as one. After an error it is as if nothing had been tried. */
static int try_batch(struct store *s, struct work *works, size_t n)
{
    g_autoptr(GArray) changes = g_array_new(FALSE, FALSE, sizeof(struct change));
    int err = 0;
    for (size_t i = 0; i < n && err == 0; i++)
        err = apply_work(s, &works[i], changes);
    if (err == 0)
        err = changes->len > 0 ? timed_commit(s) : apply_commit(s->applier);
    if (err < 0) {
        apply_rollback(s->applier);
        return err;
    }
    s->clients = count_clients(works, n) + intake_clients(s->intake); /* before those in it are answered */
    for (size_t i = 0; i < n; i++)
        publish(s, &works[i], changes);
    return 0;
}

static void run_batch(struct store *s, struct work *works, size_t n)
{
    int err = s->read_only ? 0 : try_batch(s, works, n);
    if (err == -ENOSPC && n > 1) { /* a large one must not fail the others */
        for (size_t i = 0; i < n; i++)
            run_batch(s, &works[i], 1);
        return;
    }
    if (err == 0 && !s->read_only)
        return;
    int rc = s->read_only ? ZNOTREADONLY : err == -ENOSPC ? ZSTORENOSPACE : ZSTOREIO;
    if (rc == ZSTOREIO)
        fail_for_good(s, err);
    for (size_t i = 0; i < n; i++)
        refuse(s, &works[i], rc);
}

/* Returns the number of transactions. */
static size_t run_group(struct store *s, struct store_item *group)
{
    g_autoptr(GArray) works = g_array_new(FALSE, TRUE, sizeof(struct work));
    struct store_item *lists[] = {s->unfinished, group};
    size_t n_txns = 0;
    s->unfinished = NULL;
    for (size_t i = 0; i < G_N_ELEMENTS(lists); i++) {
        for (struct store_item *item = lists[i]; item; item = item->next) {
            struct work work = {.item = item, .txn = item->txn};
            g_array_append_val(works, work);
            if (item->type == ITEM_TXN && item->txn->origin == TXN_CLIENT)
                s->last_client_us = monotonic_us();
            n_txns += item->type == ITEM_TXN;
        }
    }
    run_batch(s, (struct work *)(void *)works->data, works->len);
    return n_txns;
}

/* Nothing will be tried again. */
static void drop_unfinished(struct store *s)
{
    while (s->unfinished) {
        struct work work = {.item = s->unfinished};
        s->unfinished = work.item->next;
        finish(&work);
    }
}

/* How long a group waits for as many clients as are at work, or at least one. Those who were answered together come
 * back together, so one fsync goes on serving all of them, where without it two halves would take turns; and for a
 * client that makes one change after the other, while the controller makes others in consequence, one fsync serves
 * both. A client that does not come back is waited for once. */
static int64_t linger_us(const struct store *s)
{
    int64_t recent = MAX(CLIENT_RECENT_US, 4 * s->commit_us);
    return monotonic_us() - s->last_client_us < recent ? s->commit_us / 2 : 0;
}

static void *store_thread(void *arg)
{
    struct store *s = arg;
    for (;;) {
        struct store_item *group =
                intake_take(s->intake, s->unfinished ? RETRY_US : -1, MAX(s->clients, 1), linger_us(s));
        if (!group && intake_closed(s->intake))
            return NULL;
        run_group(s, group);
    }
}

int store_start(struct store *s)
{
    sigset_t all, before; /* signals are the main thread's */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = pthread_create(&s->thread, NULL, store_thread, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err != 0)
        return -err;
    pthread_setname_np(s->thread, "store");
    s->started = true;
    return 0;
}

size_t store_step(struct store *s)
{
    size_t n = 0;
    struct store_item *group;
    while ((group = intake_take(s->intake, 0, 0, 0)))
        n += run_group(s, group);
    return n;
}

/* ---- for other threads ---- */

static void push(struct store *s, const struct store_item *item)
{
    struct store_item *copy = g_memdup2(item, sizeof *item);
    if (intake_push(s->intake, copy))
        return;
    if (copy->type == ITEM_TXN)
        txn_fail(copy->txn, ZCONNECTIONLOSS);
    finish(&(struct work){.item = copy, .txn = copy->txn});
}

void store_submit(struct store *s, struct txn *txn)
{
    push(s, &(struct store_item){.type = ITEM_TXN, .txn = txn});
}

int64_t store_session_open(struct store *s)
{
    int64_t session = atomic_fetch_add(&s->next_session, 1);
    push(s, &(struct store_item){.type = ITEM_SESSION_OPEN, .session = session});
    return session;
}

void store_session_close(struct store *s, int64_t session, gen_t gen, void (*done)(void *arg), void *arg)
{
    push(s, &(struct store_item){.type = ITEM_SESSION_CLOSE, .session = session, .gen = gen, .done = done, .arg = arg});
}

void store_usage(struct store *s, struct store_usage *ret)
{
    s->backend->ops->usage(s->backend, ret);
}

/* ---- opening and closing ---- */

static void note_ephemeral(void *arg, const char *path, struct bytes *data, const struct zstat *stat)
{
    if (stat->ephemeral_owner)
        txn_delete(arg, path, -1);
}

static bool no_session(void *ctx, int64_t session)
{
    return false;
}

/* Begins a new life of the store: all sessions of the former one have ended, and so have their ephemerals. */
static int begin_incarnation(struct store *s, char **ret_why)
{
    struct txn *txn = txn_new(TXN_INTERNAL);
    g_autoptr(GArray) changes = g_array_new(FALSE, FALSE, sizeof(struct change));
    struct apply_env env = {.time_ms = s->config.now_ms(s->config.ctx), .session_open = no_session};
    int err = 0;
    if (s->backend->meta.ephemerals > 0)
        err = load_tree(s->backend, note_ephemeral, txn, ret_why);
    if (err == 0) {
        err = apply_txn(s->applier, txn, &env, changes);
        if (err == 0 && txn->rc != ZOK)
            err = -EUCLEAN;
        if (err == 0)
            err = apply_begin_incarnation(s->applier);
        if (err < 0)
            *ret_why = g_strdup_printf("cannot be written: %s", g_strerror(-err));
    }
    txn_free(txn);
    return err;
}

int store_open_backend(
        struct backend *b, bool read_only, const struct store_config *config, struct store **ret, char **ret_why)
{
    struct store *s = g_new0(struct store, 1);
    s->config = *config;
    s->backend = b;
    s->read_only = read_only;
    s->intake = intake_new();
    s->applier = applier_new(b);
    s->sessions = sessions_new();
    s->last_client_us = INT64_MIN / 2;
    int err = read_only ? 0 : begin_incarnation(s, ret_why);
    if (err < 0) {
        store_close(s);
        return err;
    }
    atomic_init(&s->next_session, (int64_t)b->meta.incarnation << 32 | 1);
    *ret = s;
    return 0;
}

struct visitor {
    void (*visit)(void *arg, const char *path, struct bytes *data, const struct zstat *stat);
    void *arg;
};

static void visit_persistent(void *arg, const char *path, struct bytes *data, const struct zstat *stat)
{
    const struct visitor *visitor = arg;
    if (!stat->ephemeral_owner) /* what is left of sessions of a store that may not be written */
        visitor->visit(visitor->arg, path, data, stat);
}

int store_load(struct store *s,
        void (*visit)(void *arg, const char *path, struct bytes *data, const struct zstat *stat), void *arg,
        char **ret_why)
{
    struct visitor visitor = {.visit = visit, .arg = arg};
    return load_tree(s->backend, visit_persistent, &visitor, ret_why);
}

void store_close(struct store *s)
{
    if (!s)
        return;
    intake_close(s->intake);
    if (s->started)
        pthread_join(s->thread, NULL);
    else
        store_step(s);
    drop_unfinished(s);
    applier_free(s->applier);
    sessions_free(s->sessions);
    intake_free(s->intake);
    s->backend->ops->close(s->backend);
    g_free(s);
}
