/* The controller thread: one queue for all candidates, and the loop that hands out what comes. Watch events wait there
 * at most once per kind; later changes add their names and keep the generation of their own cause held until the event
 * has been handled, while its consequences carry the oldest of them. */
#include "controller/thread_core.h"
#include "fs/policy.h"

enum item_kind { ITEM_WATCH, ITEM_EVENT, ITEM_CANDIDATE, ITEM_CANDIDATE_END, ITEM_PASS };

/* What is queued; the first member is the queue's. */
struct item {
    struct queue_item base;
    enum item_kind kind;
    enum controller_event_type type; /* what it counts as, for `.state/controller/queue` */
    int32_t broker_id;               /* of the candidate; not for ITEM_WATCH, ITEM_PASS */
    struct controller_event *event;  /* ITEM_WATCH, ITEM_EVENT */
    gen_t oldest;                    /* ITEM_WATCH: of its own and the merged ones */
    GArray *merged;                  /* ITEM_WATCH: gen_t, held beside the item's own; NULL: none */
    int64_t session;                 /* ITEM_CANDIDATE */
    const struct broker_config *config;
    const atomic_bool *unclean_default;
    void (*then)(void *arg); /* ITEM_CANDIDATE_END, ITEM_PASS */
    void *arg;
};

/* ---- queueing; any thread ---- */

static void free_item(struct item *item)
{
    controller_event_free(item->event);
    g_clear_pointer(&item->merged, g_array_unref);
    g_free(item);
}

static void call(const struct item *item)
{
    if (item->then) {
        item->then(item->arg);
    }
}

/* What came after the end: nothing happens any more, but whoever waits is told. */
static void drop_late(struct item *item)
{
    call(item);
    free_item(item);
}

/* With the lock held: counts it as waiting and queues it. False: this is the end, and the caller keeps it. */
static bool push_locked(struct controller_thread *t, struct item *item, gen_t gen)
{
    bool open = queue_push(t->queue, &item->base, gen);
    t->waiting[item->type] += open;
    return open;
}

static void push(struct controller_thread *t, struct item *item, gen_t gen)
{
    pthread_mutex_lock(&t->lock);
    bool late = !push_locked(t, item, gen);
    if (late && !t->stopped) {
        g_ptr_array_add(t->late, item); /* the thread may still use what `then` gives back */
        late = false;
    }
    pthread_mutex_unlock(&t->lock);
    if (late) {
        drop_late(item);
    }
}

static void hold_merged(struct controller_thread *t, struct item *w, gen_t gen)
{
    w->oldest = MIN(w->oldest, gen);
    if (gen == w->base.gen) {
        return;
    }
    if (!w->merged) {
        w->merged = g_array_new(FALSE, FALSE, sizeof(gen_t));
    }
    for (guint i = 0; i < w->merged->len; i++) {
        if (g_array_index(w->merged, gen_t, i) == gen) {
            return;
        }
    }
    settle_hold(t->config.settle, gen);
    g_array_append_val(w->merged, gen);
}

static void push_watch(struct controller_thread *t, struct controller_event *event, gen_t gen)
{
    event->enqueued_us = thread_now_ms() * 1000;
    pthread_mutex_lock(&t->lock);
    struct item *pending = t->pending[event->type];
    if (pending && controller_event_merge(pending->event, event)) {
        hold_merged(t, pending, gen);
    } else {
        struct item *w = g_new0(struct item, 1);
        w->kind = ITEM_WATCH;
        w->type = event->type;
        w->event = event;
        w->oldest = gen;
        if (push_locked(t, w, gen)) {
            t->pending[event->type] = w;
        } else {
            free_item(w);
        }
    }
    pthread_mutex_unlock(&t->lock);
}

static void push_event(struct controller_thread *t, int32_t broker_id, struct controller_event *event, gen_t gen)
{
    struct item *item = g_new0(struct item, 1);
    event->enqueued_us = thread_now_ms() * 1000;
    item->kind = ITEM_EVENT;
    item->type = event->type;
    item->broker_id = broker_id;
    item->event = event;
    push(t, item, gen);
}

/* ---- the loop; controller thread ---- */

static struct candidate *find_candidate(const struct controller_thread *t, int32_t broker_id)
{
    for (guint i = 0; i < t->candidates->len; i++) {
        struct candidate *c = t->candidates->pdata[i];
        if (c->broker_id == broker_id) {
            return c;
        }
    }
    return NULL;
}

/* Two may think they are active for the moment until the older one hears of it. */
static struct candidate *active_candidate(const struct controller_thread *t)
{
    struct candidate *active = NULL;
    for (guint i = 0; i < t->candidates->len; i++) {
        struct candidate *c = t->candidates->pdata[i];
        if (controller_is_active(c->controller) &&
                (!active || controller_epoch(c->controller) > controller_epoch(active->controller))) {
            active = c;
        }
    }
    return active;
}

static void free_candidate(gpointer arg)
{
    struct candidate *c = arg;
    controller_free(c->controller);
    g_free(c);
}

static bool is_for_all(enum controller_event_type type)
{
    return type == EVENT_CONTROLLER_CHANGE || type == EVENT_REELECT || type == EVENT_EPOCH_CHANGE;
}

static void handle_watch(struct controller_thread *t, struct item *item)
{
    if (is_for_all(item->type)) {
        for (guint i = 0; i < t->candidates->len; i++) {
            const struct candidate *c = t->candidates->pdata[i];
            controller_handle(c->controller, controller_event_new(item->type));
        }
        return;
    }
    struct candidate *active = active_candidate(t);
    if (active) {
        controller_handle(active->controller, g_steal_pointer(&item->event));
        return;
    }
    for (guint i = 0; i < t->candidates->len; i++) { /* one of them may have found no space to be elected */
        const struct candidate *c = t->candidates->pdata[i];
        controller_handle(c->controller, controller_event_new(item->type));
    }
}

static void handle_event(struct controller_thread *t, struct item *item)
{
    struct candidate *c = find_candidate(t, item->broker_id);
    if (c) {
        controller_handle(c->controller, g_steal_pointer(&item->event));
    } else if (item->type == EVENT_BROKER_REQUEST) {
        struct broker_request *r = g_steal_pointer(&item->event->broker_request);
        r->error = KERR_NOT_CONTROLLER;
        t->config.link.respond(t->config.link.ctx, r, t->gen);
    }
}

static void begin_candidate(struct controller_thread *t, const struct item *item)
{
    struct candidate *c = g_new0(struct candidate, 1);
    c->thread = t;
    c->broker_id = item->broker_id;
    c->session = item->session;
    c->unclean_default = item->unclean_default;
    for (int i = 0; i < TIMER_N; i++) {
        c->timers[i] = -1;
    }
    struct controller_env env = candidate_env(c);
    c->controller = controller_new(item->broker_id, item->config, &env);
    g_ptr_array_add(t->candidates, c);
    controller_handle(c->controller, controller_event_new(EVENT_STARTUP));
}

static void end_candidate(struct controller_thread *t, const struct item *item)
{
    struct candidate *c = find_candidate(t, item->broker_id);
    if (c) {
        controller_handle(c->controller, controller_event_new(item->type));
        g_ptr_array_remove(t->candidates, c);
    }
    call(item);
}

static void handle_item(struct controller_thread *t, struct item *item)
{
    switch (item->kind) {
    case ITEM_WATCH:
        handle_watch(t, item);
        break;
    case ITEM_EVENT:
        handle_event(t, item);
        break;
    case ITEM_CANDIDATE:
        begin_candidate(t, item);
        break;
    case ITEM_CANDIDATE_END:
        end_candidate(t, item);
        break;
    case ITEM_PASS:
        call(item);
        break;
    }
}

/* From here on changes make a new event of this kind. */
static void take(struct controller_thread *t, struct item *item)
{
    pthread_mutex_lock(&t->lock);
    t->waiting[item->type]--;
    t->handling = (int)item->type;
    if (t->pending[item->type] == item) {
        t->pending[item->type] = NULL;
    }
    pthread_mutex_unlock(&t->lock);
    t->gen = item->kind == ITEM_WATCH ? item->oldest : item->base.gen;
}

static void done(struct controller_thread *t, struct item *item)
{
    gen_t gen = item->base.gen;
    for (guint i = 0; item->merged && i < item->merged->len; i++) {
        settle_release(t->config.settle, g_array_index(item->merged, gen_t, i));
    }
    free_item(item);
    pthread_mutex_lock(&t->lock);
    t->handling = -1;
    pthread_mutex_unlock(&t->lock);
    queue_done(t->queue, gen);
}

/* The next moment at which a timer is due, -1: none. */
static int64_t next_deadline(const struct controller_thread *t)
{
    int64_t next = -1;
    for (guint i = 0; i < t->candidates->len; i++) {
        const struct candidate *c = t->candidates->pdata[i];
        for (int k = 0; k < TIMER_N; k++) {
            if (c->timers[k] >= 0 && (next < 0 || c->timers[k] < next)) {
                next = c->timers[k];
            }
        }
    }
    return next;
}

/* Timers are a cause of their own; nobody waits for them. */
static void fire(struct controller_thread *t, struct candidate *c, enum controller_timer timer)
{
    struct controller_event *event = controller_event_new(EVENT_TIMER);
    event->timer = timer;
    c->timers[timer] = -1;
    t->gen = settle_hold_now(t->config.settle);
    controller_handle(c->controller, event);
    settle_release(t->config.settle, t->gen);
}

static void fire_timers(struct controller_thread *t)
{
    int64_t now = thread_now_ms();
    for (guint i = 0; i < t->candidates->len; i++) {
        struct candidate *c = t->candidates->pdata[i];
        for (int k = 0; k < TIMER_N; k++) {
            if (c->timers[k] >= 0 && c->timers[k] <= now) {
                fire(t, c, (enum controller_timer)k);
            }
        }
    }
}

static void *loop(void *arg)
{
    struct controller_thread *t = arg;
    pthread_setname_np(pthread_self(), "controller");
    for (;;) {
        struct item *item = (struct item *)queue_pop(t->queue, next_deadline(t));
        if (item) {
            take(t, item);
            handle_item(t, item);
            done(t, item);
        } else if (queue_ended(t->queue)) {
            return NULL;
        }
        fire_timers(t);
    }
}

/* ---- life ---- */

struct controller_thread *controller_thread_new(const struct controller_thread_config *config)
{
    struct controller_thread *t = g_new0(struct controller_thread, 1);
    t->config = *config;
    t->queue = queue_new(config->settle);
    t->candidates = g_ptr_array_new_with_free_func(free_candidate);
    t->late = g_ptr_array_new();
    t->handling = -1;
    pthread_mutex_init(&t->lock, NULL);
    pthread_mutex_init(&t->run_lock, NULL);
    pthread_cond_init(&t->run_done, NULL);
    return t;
}

int controller_thread_start(struct controller_thread *t)
{
    int err = pthread_create(&t->thread, NULL, loop, t);
    t->started = err == 0;
    return -err;
}

void controller_thread_stop(struct controller_thread *t)
{
    queue_close(t->queue);
    if (t->started) {
        pthread_join(t->thread, NULL);
        t->started = false;
    } else {
        loop(t); /* what came to a thread that could not be started */
    }
    g_ptr_array_set_size(t->candidates, 0);
    pthread_mutex_lock(&t->lock);
    t->stopped = true;
    g_autoptr(GPtrArray) late = t->late;
    t->late = g_ptr_array_new();
    pthread_mutex_unlock(&t->lock);
    for (guint i = 0; i < late->len; i++) {
        drop_late(late->pdata[i]);
    }
}

void controller_thread_free(struct controller_thread *t)
{
    if (t) {
        controller_thread_stop(t);
        g_ptr_array_unref(t->candidates);
        g_ptr_array_unref(t->late);
        queue_free(t->queue);
        pthread_mutex_destroy(&t->lock);
        pthread_mutex_destroy(&t->run_lock);
        pthread_cond_destroy(&t->run_done);
        g_free(t);
    }
}

/* ---- from other threads ---- */

void controller_thread_candidate(struct controller_thread *t, int32_t broker_id, int64_t session,
        const struct broker_config *config, const atomic_bool *unclean_default, gen_t gen)
{
    struct item *item = g_new0(struct item, 1);
    item->kind = ITEM_CANDIDATE;
    item->type = EVENT_STARTUP;
    item->broker_id = broker_id;
    item->session = session;
    item->config = config;
    item->unclean_default = unclean_default;
    push(t, item, gen);
}

void controller_thread_candidate_end(
        struct controller_thread *t, int32_t broker_id, bool expired, gen_t gen, void (*ended)(void *arg), void *arg)
{
    struct item *item = g_new0(struct item, 1);
    item->kind = ITEM_CANDIDATE_END;
    item->type = expired ? EVENT_EXPIRE : EVENT_SHUTDOWN;
    item->broker_id = broker_id;
    item->then = ended;
    item->arg = arg;
    push(t, item, gen);
}

void controller_thread_pass(struct controller_thread *t, gen_t gen, void (*passed)(void *arg), void *arg)
{
    struct item *item = g_new0(struct item, 1);
    item->kind = ITEM_PASS;
    item->type = EVENT_STARTUP;
    item->then = passed;
    item->arg = arg;
    push(t, item, gen);
}

/* The controller knows what it wrote itself; only an election concerns the others. */
void controller_thread_feed(struct controller_thread *t, const struct commit *commit)
{
    bool own = thread_owns(t, commit->txn);
    for (size_t i = 0; i < commit->n_changes; i++) {
        struct controller_event *event = controller_event_of_change(&commit->changes[i]);
        if (!event) {
            continue;
        }
        if (own && event->type != EVENT_CONTROLLER_CHANGE && event->type != EVENT_REELECT) {
            controller_event_free(event);
        } else {
            push_watch(t, event, commit->gen);
        }
    }
}

void controller_thread_response(struct controller_thread *t, int32_t controller_id, int32_t broker_id,
        int64_t broker_epoch, struct control_request *request, struct control_response *response, gen_t gen)
{
    struct controller_event *event = controller_event_new(EVENT_CONTROL_RESPONSE);
    event->broker_id = broker_id;
    event->broker_epoch = broker_epoch;
    event->request = request;
    event->response = response;
    push_event(t, controller_id, event, gen);
}

void controller_thread_broker_request(
        struct controller_thread *t, int32_t controller_id, struct broker_request *request, gen_t gen)
{
    struct controller_event *event = controller_event_new(EVENT_BROKER_REQUEST);
    event->broker_request = request;
    push_event(t, controller_id, event, gen);
}

static struct controller_event *named_event(enum controller_event_type type, const char *name)
{
    struct controller_event *event = controller_event_new(type);
    if (name) {
        event->names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        g_hash_table_add(event->names, g_strdup(name));
    }
    return event;
}

void controller_thread_retry_deletion(struct controller_thread *t, const char *topic, gen_t gen)
{
    push_watch(t, named_event(EVENT_TOPIC_DELETION_RETRY, topic), gen);
}

void controller_thread_unclean_enabled(struct controller_thread *t, const char *topic, gen_t gen)
{
    push_watch(t, named_event(EVENT_UNCLEAN_ELECTION_ENABLE, topic), gen);
}

/* ---- questions ---- */

struct question {
    struct controller_thread *thread;
    int query;
    char *path;
    struct state_question *q;
};

static void answer(void *arg)
{
    struct question *question = arg;
    struct candidate *active = active_candidate(question->thread);
    controller_state_ask(active ? active->controller : NULL, question->query, question->path, question->q);
    g_free(question->path);
    g_free(question);
}

/* What is being handled, and what waits: not a question for between two events. */
static void answer_queue(struct controller_thread *t, struct state_question *q)
{
    g_autoptr(GString) out = g_string_new(NULL);
    pthread_mutex_lock(&t->lock);
    if (t->handling >= 0) {
        g_string_append_printf(out, "running %s\n", controller_event_name((enum controller_event_type)t->handling));
    }
    for (int i = 0; i < EVENT_TYPES; i++) {
        if (t->waiting[i]) {
            g_string_append_printf(
                    out, "waiting %s %u\n", controller_event_name((enum controller_event_type)i), t->waiting[i]);
        }
    }
    pthread_mutex_unlock(&t->lock);
    state_answer_bytes(q, out->str, out->len);
}

void controller_thread_ask(struct controller_thread *t, int query, const char *path, struct state_question *q)
{
    if (query == STATE_READ && strcmp(path, "/.state/controller/queue") == 0) {
        answer_queue(t, q);
        return;
    }
    struct question *question = g_new(struct question, 1);
    *question = (struct question){.thread = t, .query = query, .path = g_strdup(path), .q = q};
    if (!queue_ask(t->queue, answer, question)) {
        state_answer_error(q, EIO);
        g_free(question->path);
        g_free(question);
    }
}
