/* Brokers that come, go, bounce and change (KafkaController.processBrokerChange, onBrokerStartup, onBrokerFailure,
 * onReplicasBecomeOffline). A broker is known by id and epoch, the czxid of its registration; a higher epoch under the
 * same id is a death and a return that came in one event (KAFKA-7235). */
#include "controller/core.h"

struct broker_registration *broker_read(struct controller *c, const char *id, int32_t *ret_id, int64_t *ret_epoch)
{
    g_autofree char *path = g_strconcat("/brokers/ids/", id, NULL);
    gint64 number;
    struct bytes *data = NULL;
    struct zstat stat;
    if (!g_ascii_string_to_signed(id, 10, 0, INT32_MAX, &number, NULL)) {
        complain(c, EINVAL, path, "not a broker id");
        return NULL;
    }
    if (c->env.get(c->env.ctx, path, &data, &stat) != ZOK) {
        return NULL;
    }
    struct broker_registration *registration = NULL;
    g_autofree char *why = NULL;
    if (broker_registration_decode(data, &registration, &why)) {
        *ret_id = (int32_t)number;
        *ret_epoch = stat.czxid;
    } else {
        complain(c, EINVAL, path, "the broker is left out: %s", why);
    }
    bytes_unref(data);
    return registration;
}

/* ---- replicas that are not online any more ---- */

/* Partitions of topics that are not being deleted, whose leader is not online. */
static void add_leaderless(struct controller *c, const GArray *replicas, GPtrArray *partitions)
{
    for (guint i = 0; i < replicas->len; i++) {
        struct partition *p = g_array_index(replicas, struct replica_of, i).p;
        bool led = p->has_leadership && replica_is_online(&c->ctx, p, p->leadership.leader);
        if (p->has_leadership && !led && p->status == PARTITION_ONLINE && p->scratch < 0) {
            p->scratch = 0;
            g_ptr_array_add(partitions, p);
        }
    }
    for (guint i = 0; i < partitions->len; i++) {
        ((struct partition *)partitions->pdata[i])->scratch = -1;
    }
}

void replicas_become_offline(struct controller *c, GArray *replicas)
{
    g_autoptr(GArray) normal = replicas_new();
    g_autoptr(GArray) deleting = replicas_new();
    g_autoptr(GPtrArray) leaderless = g_ptr_array_new();
    for (guint i = 0; i < replicas->len; i++) {
        const struct replica_of *r = &g_array_index(replicas, struct replica_of, i);
        g_array_append_val(deletion_decides(r->p->topic) ? deleting : normal, *r);
    }
    add_leaderless(c, normal, leaderless);
    partitions_change_state(c, leaderless, PARTITION_OFFLINE);
    size_t elected = partitions_trigger_online(c, NULL);
    replicas_change_state(c, normal, REPLICA_OFFLINE);
    deletion_fail_replicas(c, deleting, NULL);
    if (normal->len == 0 && elected == 0) {
        batch_update_metadata_empty(c); /* nothing else tells the others who is alive (KAFKA-13225) */
        batch_send(c);
    }
}

/* ---- start-up and failure ---- */

static void add_id(GArray *ids, int32_t id)
{
    g_array_append_val(ids, id);
}

static bool has_id(const GArray *ids, int32_t id)
{
    for (guint i = 0; i < ids->len; i++) {
        if (g_array_index(ids, int32_t, i) == id) {
            return true;
        }
    }
    return false;
}

/* KafkaController.onBrokerStartup. Everything goes to the new ones only; the others learn who is alive (KAFKA-7537). */
static void brokers_started(struct controller *c, const GArray *ids)
{
    g_autoptr(GArray) replicas = replicas_new();
    batch_update_metadata_only(c, ids, false);
    batch_update_metadata_empty(c);
    batch_send(c);
    batch_update_metadata_only(c, ids, true);
    batch_update_metadata_all(c);
    batch_send(c);
    for (guint i = 0; i < ids->len; i++) {
        replicas_add_on_broker(c, replicas, g_array_index(ids, int32_t, i));
    }
    replicas_change_state(c, replicas, REPLICA_ONLINE);
    partitions_trigger_online(c, NULL);
    reassignment_brokers_started(c, ids);
    deletion_resume_topics_of(c, replicas); /* it may wait for a replica there */
    deletion_run(c);
}

/* KafkaController.onBrokerFailure; the brokers have left the context already. */
static void brokers_failed(struct controller *c, const GArray *ids)
{
    g_autoptr(GArray) replicas = replicas_new();
    for (guint i = 0; i < ids->len; i++) {
        replicas_add_on_broker(c, replicas, g_array_index(ids, int32_t, i));
    }
    replicas_become_offline(c, replicas);
}

/* ---- the event ---- */

struct live {
    int32_t id;
    int64_t epoch;
    struct broker_registration *registration;
};

static void clear_live(gpointer arg)
{
    broker_registration_free(((struct live *)arg)->registration);
}

static int compare_live(const void *a, const void *b)
{
    const struct live *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static GArray *read_live(struct controller *c)
{
    GArray *all = g_array_new(FALSE, FALSE, sizeof(struct live));
    g_array_set_clear_func(all, clear_live);
    g_autoptr(GPtrArray) names = c->env.children(c->env.ctx, "/brokers/ids");
    for (guint i = 0; names && i < names->len; i++) {
        struct live l;
        l.registration = broker_read(c, names->pdata[i], &l.id, &l.epoch);
        if (l.registration) {
            g_array_append_val(all, l);
        }
    }
    g_array_sort(all, compare_live);
    return all;
}

static void add_broker(struct controller *c, struct live *l)
{
    context_broker_add(&c->ctx, l->id, l->epoch, g_steal_pointer(&l->registration));
    emit(c, "controller %d broker %d started epoch %" PRId64, c->broker_id, l->id, l->epoch);
}

static void remove_brokers(struct controller *c, const GArray *ids)
{
    for (guint i = 0; i < ids->len; i++) {
        int32_t id = g_array_index(ids, int32_t, i);
        emit(c, "controller %d broker %d failed", c->broker_id, id);
        context_broker_remove(&c->ctx, id);
    }
}

static void add_brokers(struct controller *c, GArray *live, const GArray *ids)
{
    for (guint i = 0; i < live->len; i++) {
        struct live *l = &g_array_index(live, struct live, i);
        if (has_id(ids, l->id)) {
            add_broker(c, l);
        }
    }
}

static void find_dead(const struct controller *c, const GArray *live, GArray *dead)
{
    for (guint i = 0; i < c->ctx.brokers->len; i++) {
        const struct broker *b = c->ctx.brokers->pdata[i];
        bool alive = false;
        for (guint k = 0; k < live->len; k++) {
            alive = alive || g_array_index(live, struct live, k).id == b->id;
        }
        if (!alive) {
            add_id(dead, b->id);
        }
    }
}

/* New, bounced and dead ones, in this order; channels first. */
void broker_change(struct controller *c)
{
    g_autoptr(GArray) live = read_live(c);
    g_autoptr(GArray) started = g_array_new(FALSE, FALSE, sizeof(int32_t));
    g_autoptr(GArray) bounced = g_array_new(FALSE, FALSE, sizeof(int32_t));
    g_autoptr(GArray) dead = g_array_new(FALSE, FALSE, sizeof(int32_t));
    for (guint i = 0; i < live->len; i++) {
        const struct live *l = &g_array_index(live, struct live, i);
        const struct broker *known = context_broker(&c->ctx, l->id);
        if (!known) {
            add_id(started, l->id);
            c->env.channel_open(c->env.ctx, l->id);
        } else if (l->epoch > known->epoch) {
            add_id(bounced, l->id);
            c->env.channel_close(c->env.ctx, l->id);
            c->env.channel_open(c->env.ctx, l->id);
        }
    }
    find_dead(c, live, dead);
    for (guint i = 0; i < dead->len; i++) {
        c->env.channel_close(c->env.ctx, g_array_index(dead, int32_t, i));
    }
    if (started->len) {
        add_brokers(c, live, started);
        brokers_started(c, started);
    }
    if (bounced->len) {
        remove_brokers(c, bounced);
        brokers_failed(c, bounced);
        add_brokers(c, live, bounced);
        brokers_started(c, bounced);
    }
    if (dead->len) {
        remove_brokers(c, dead);
        brokers_failed(c, dead);
    }
}

/* ---- changed listeners ---- */

static bool same_endpoints(const struct broker_registration *a, const struct broker_registration *b)
{
    if (a->n_endpoints != b->n_endpoints) {
        return false;
    }
    for (size_t i = 0; i < a->n_endpoints; i++) {
        const struct broker_endpoint *x = &a->endpoints[i], *y = &b->endpoints[i];
        if (g_strcmp0(x->listener, y->listener) || g_strcmp0(x->host, y->host) || x->port != y->port ||
                g_strcmp0(x->security_protocol, y->security_protocol)) {
            return false;
        }
    }
    return true;
}

void broker_modifications(struct controller *c, GHashTable *names)
{
    g_autoptr(GPtrArray) sorted = names_sorted(names);
    bool changed = false, unknown = false;
    for (guint i = 0; i < sorted->len; i++) {
        int32_t id;
        int64_t epoch;
        struct broker_registration *now = broker_read(c, sorted->pdata[i], &id, &epoch);
        struct broker *b = now ? context_broker(&c->ctx, id) : NULL;
        unknown = unknown || (now && !b); /* it could not be read before */
        if (b && b->epoch == epoch && !same_endpoints(b->registration, now)) {
            broker_registration_free(b->registration);
            b->registration = g_steal_pointer(&now);
            changed = true;
        }
        broker_registration_free(now);
    }
    if (changed) {
        batch_update_metadata_empty(c);
        batch_send(c);
    }
    if (unknown) {
        broker_change(c);
    }
}
