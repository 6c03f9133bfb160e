/* The doors to the engine: what other threads ask of it. */
#include "controller/broker/engine_internal.h"
#include "fs/tree/path.h"
#include <errno.h>

/* ---- doors: the tree ---- */

static void config_changed(struct engine *e, struct engine_msg *m)
{
    for (guint i = 0; i < e->hosts->len; i++) {
        struct incarnation *inc = ((struct host *)g_ptr_array_index(e->hosts, i))->now;
        for (guint k = 0; inc && inc->configs && k < m->names->len; k++)
            config_manager_change_created(inc->configs, g_ptr_array_index(m->names, k));
    }
}

void engine_feed(struct engine *e, const struct commit *commit)
{
    struct engine_msg *m = NULL;

    for (size_t i = 0; i < commit->n_changes; i++) {
        const struct change *c = &commit->changes[i];
        const char *name = c->type == NODE_CREATED ? path_child_of(c->path, "/config/changes") : NULL;
        if (!name)
            continue;
        if (!m) {
            m = engine_msg_new(config_changed);
            m->names = g_ptr_array_new_with_free_func(g_free);
        }
        g_ptr_array_add(m->names, g_strdup(name));
    }
    if (m)
        engine_post(e, m, commit->gen);
}

/* ---- doors: the controller ---- */

static void handle_request(struct engine *e, struct engine_msg *m)
{
    struct broker *core = host_core(host_find(e, m->broker_id), m);

    if (core)
        broker_control_request(core, m->controller_id, m->broker_epoch, m->request, m->item.gen);
}

void engine_request(struct engine *e, int32_t controller_id, int32_t broker_id, int64_t broker_epoch,
        struct control_request *request, gen_t gen)
{
    struct engine_msg *m = engine_msg_new(handle_request);

    m->controller_id = controller_id;
    m->broker_id = broker_id;
    m->broker_epoch = broker_epoch;
    m->request = control_request_ref(request);
    engine_post(e, m, gen);
}

static void handle_response(struct engine *e, struct engine_msg *m)
{
    struct host *h = host_find(e, m->broker_request->broker_id);

    if (h && h->now && h->now->core && h->now->epoch == m->broker_request->broker_epoch)
        broker_answered(h->now->core, g_steal_pointer(&m->broker_request), m->item.gen);
}

void engine_respond(struct engine *e, struct broker_request *request, gen_t gen)
{
    struct engine_msg *m = engine_msg_new(handle_response);

    m->broker_request = request;
    engine_post(e, m, gen);
}

/* ---- doors: commands ---- */

void engine_start_host(struct engine *e, int32_t id, void (*answer)(void *arg, int err), void *arg, gen_t gen)
{
    struct host *h = host_find(e, id);
    struct broker_config *config;
    char *why;

    if (h && answer && (h->state == HOST_STARTING || h->state == HOST_STOPPING)) {
        if (h->now && h->now->core && h->state == HOST_STARTING) {
            answer(arg, 0);
            return;
        }
        struct start_waiter w = {.answer = answer, .arg = arg};
        g_array_append_val(h->waiters, w);
        h->start_again = h->start_again || h->state == HOST_STOPPING;
        return;
    }
    if (h && h->state == HOST_STOPPING) {
        h->start_again = true;
        return;
    }
    if (h && h->now) {
        if (answer)
            answer(arg, 0);
        return;
    }
    int r = broker_file_find(e, id, h ? h->file : NULL, &config, &why);
    if (r < 0) {
        if (h) {
            host_fail(h, -r, why);
            host_answer(h, -r);
        } else {
            g_autofree char *path = g_strdup_printf("/brokers/ids/%d", id);
            journal_error(e->config.errors, -r, path, "%s", why);
            g_free(why);
        }
        if (answer)
            answer(arg, -r);
        return;
    }
    if (!h)
        h = host_new(e, id, config->file);
    config->broker_id = id;
    host_set_config(h, config);
    if (answer) {
        struct start_waiter w = {.answer = answer, .arg = arg};
        g_array_append_val(h->waiters, w);
    }
    g_autoptr(GPtrArray) hosts = g_ptr_array_new();
    g_ptr_array_add(hosts, h);
    startup_begin(e, hosts, gen);
}

void engine_stop_host(struct engine *e, struct host *h, gen_t gen)
{
    h->start_again = false;
    host_answer(h, ECANCELED); /* whoever waits for a start */
    if (h->state == HOST_RUNNING || (h->state == HOST_STARTING && h->now->core)) {
        host_set_state(h, HOST_STOPPING);
        broker_shutdown(h->now->core, gen);
    } else if (h->state == HOST_STARTING) {
        host_set_state(h, HOST_STOPPING);
        inc_end(h->now, true, gen, NULL, NULL);
    }
}

static void handle_start(struct engine *e, struct engine_msg *m)
{
    if (e->stopping)
        m->answer(m->arg, ESHUTDOWN);
    else
        engine_start_host(e, m->broker_id, m->answer, m->arg, m->item.gen);
}

static void handle_kill(struct engine *e, struct engine_msg *m)
{
    struct host *h = host_find(e, m->broker_id);

    if (h && !h->now && h->sessions > 0 && !e->stopping) { /* it is dying already: answered when it is gone */
        struct start_waiter w = {.answer = m->answer, .arg = m->arg};
        g_array_append_val(h->mourners, w);
        return;
    }
    if (!h || !h->now || e->stopping) {
        m->answer(m->arg, e->stopping ? ESHUTDOWN : ENOENT);
        return;
    }
    h->start_again = false;
    host_set_state(h, HOST_STOPPING);
    host_answer(h, ECANCELED);
    inc_end(h->now, true, m->item.gen, m->answer, m->arg);
}

static void post_command(struct engine *e, void (*run_it)(struct engine *, struct engine_msg *), int32_t broker_id,
        gen_t gen, void (*answer)(void *arg, int err), void *arg)
{
    struct engine_msg *m = engine_msg_new(run_it);

    m->broker_id = broker_id;
    m->answer = answer;
    m->arg = arg;
    if (!engine_post(e, m, gen))
        answer(arg, ESHUTDOWN);
}

void engine_start_broker(struct engine *e, int32_t broker_id, gen_t gen, void (*answer)(void *arg, int err), void *arg)
{
    post_command(e, handle_start, broker_id, gen, answer, arg);
}

void engine_kill_broker(struct engine *e, int32_t broker_id, gen_t gen, void (*answer)(void *arg, int err), void *arg)
{
    post_command(e, handle_kill, broker_id, gen, answer, arg);
}

int64_t engine_default_int(struct engine *e, const char *key, int64_t fallback)
{
    struct host *lowest = NULL;
    gint64 v = fallback;

    pthread_mutex_lock(&e->lock);
    for (guint i = 0; i < e->hosts->len; i++) {
        struct host *h = g_ptr_array_index(e->hosts, i);
        if (h->defaults && (!lowest || h->id < lowest->id))
            lowest = h;
    }
    const char *text = lowest ? g_hash_table_lookup(lowest->defaults, key) : NULL;
    if (text && !g_ascii_string_to_signed(text, 10, INT64_MIN, INT64_MAX, &v, NULL))
        v = fallback;
    pthread_mutex_unlock(&e->lock);
    return v;
}
