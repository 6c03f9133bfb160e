/* Requests to brokers, collected while an event is handled (ControllerBrokerRequestBatch). What is said about a
 * partition is read from the context when the batch is sent, so the last change wins; isNew and deletePartition stick;
 * StopReplica keeps the leader epoch of the moment it was added. One object per partition is shared by all requests
 * that say the same. */
#include "controller/core.h"

struct recipient {
    int32_t broker;
    int32_t next; /* index, -1: last */
    bool leader_and_isr, is_new;
    bool stop_replica, delete_partition;
    int32_t stop_leader_epoch;
};

struct entry {
    struct partition *p;
    int32_t first; /* of its recipients, -1: none */
    bool update_metadata;
};

struct batch {
    GArray *entries;    /* struct entry; partition->batch_slot is its index */
    GArray *recipients; /* struct recipient */
    bool update_metadata, full;
    GArray *selected; /* brokers, int32_t: UpdateMetadata only to these, or only to others; NULL: to all */
    bool only_selected;
};

static void make_empty(struct batch *b)
{
    *b = (struct batch){
            .entries = g_array_new(FALSE, FALSE, sizeof(struct entry)),
            .recipients = g_array_new(FALSE, FALSE, sizeof(struct recipient)),
    };
}

static void free_contents(struct batch *b)
{
    g_array_unref(b->entries);
    g_array_unref(b->recipients);
    g_clear_pointer(&b->selected, g_array_unref);
}

struct batch *batch_new(void)
{
    struct batch *b = g_new(struct batch, 1);
    make_empty(b);
    return b;
}

/* A failover's batch is large and must not stay so. */
void batch_clear(struct batch *b)
{
    for (guint i = 0; i < b->entries->len; i++) {
        g_array_index(b->entries, struct entry, i).p->batch_slot = -1;
    }
    free_contents(b);
    make_empty(b);
}

void batch_free(struct batch *b)
{
    if (b) {
        batch_clear(b);
        free_contents(b);
        g_free(b);
    }
}

static struct entry *entry_of(struct batch *b, struct partition *p)
{
    if (p->batch_slot < 0) {
        struct entry e = {.p = p, .first = -1};
        p->batch_slot = (int32_t)b->entries->len;
        g_array_append_val(b->entries, e);
    }
    return &g_array_index(b->entries, struct entry, p->batch_slot);
}

static struct recipient *recipient_of(struct batch *b, struct partition *p, int32_t broker)
{
    struct entry *e = entry_of(b, p);
    for (int32_t i = e->first; i >= 0;) {
        struct recipient *r = &g_array_index(b->recipients, struct recipient, i);
        if (r->broker == broker) {
            return r;
        }
        i = r->next;
    }
    struct recipient r = {.broker = broker, .next = e->first};
    e->first = (int32_t)b->recipients->len;
    g_array_append_val(b->recipients, r);
    return &g_array_index(b->recipients, struct recipient, e->first);
}

void batch_leader_and_isr(struct controller *c, struct partition *p, int32_t broker, bool is_new)
{
    if (!p->has_leadership || broker < 0) {
        return;
    }
    struct recipient *r = recipient_of(c->batch, p, broker);
    r->leader_and_isr = true;
    r->is_new = r->is_new || is_new;
    batch_update_metadata(c, p);
}

void batch_leader_and_isr_all(struct controller *c, struct partition *p, const struct broker_ids *brokers, bool is_new)
{
    for (uint32_t i = 0; i < brokers->n; i++) {
        batch_leader_and_isr(c, p, brokers->id[i], is_new);
    }
}

/* StopReplica's leader epoch lets a broker refuse a late request (KIP-570); a deletion must not be refused. */
static int32_t stop_leader_epoch(const struct partition *p)
{
    if (p->topic->deletion) {
        return EPOCH_DURING_DELETE;
    }
    return p->has_leadership ? p->leadership.leader_epoch : LEADER_EPOCH_NONE;
}

void batch_stop_replica(struct controller *c, struct partition *p, int32_t broker, bool delete_partition)
{
    struct recipient *r = recipient_of(c->batch, p, broker);
    r->stop_replica = true;
    r->delete_partition = r->delete_partition || delete_partition;
    r->stop_leader_epoch = stop_leader_epoch(p);
}

void batch_update_metadata(struct controller *c, struct partition *p)
{
    entry_of(c->batch, p)->update_metadata = true;
    c->batch->update_metadata = true;
}

void batch_update_metadata_empty(struct controller *c)
{
    c->batch->update_metadata = true;
}

/* Partitions without a leader to tell of are left out, topics that are being deleted are named as such. */
void batch_update_metadata_all(struct controller *c)
{
    struct partition_iter it = partition_iter(&c->ctx);
    for (struct partition *p; (p = partition_iter_next(&it));) {
        batch_update_metadata(c, p);
    }
    c->batch->update_metadata = c->batch->full = true;
}

void batch_update_metadata_only(struct controller *c, const GArray *brokers, bool only)
{
    g_clear_pointer(&c->batch->selected, g_array_unref);
    c->batch->selected = g_array_new(FALSE, FALSE, sizeof(int32_t));
    g_array_append_vals(c->batch->selected, brokers->data, brokers->len);
    c->batch->only_selected = only;
}

/* ---- building ---- */

/* Versions by inter.broker.protocol.version (AbstractControllerBrokerRequestBatch). */
static int16_t request_version(const struct controller *c, enum control_api api)
{
    static const struct {
        int major, minor, iv;
        int16_t leader_and_isr, update_metadata, stop_replica;
    } table[] = {
            {3, 4, 0, 7, 8, 4},
            {3, 2, 0, 6, 7, 3},
            {2, 8, 1, 5, 7, 3},
            {2, 6, 0, 4, 6, 3},
            {2, 4, 1, 4, 6, 2},
            {2, 4, 0, 3, 5, 1},
            {2, 2, 0, 2, 5, 1},
            {1, 0, 0, 1, 4, 0},
            {0, 10, 0, 0, 2, 0},
            {0, 9, 0, 0, 1, 0},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(table); i++) {
        if (broker_config_ibp_at_least(c->config, table[i].major, table[i].minor, table[i].iv)) {
            return api == API_LEADER_AND_ISR    ? table[i].leader_and_isr
                   : api == API_UPDATE_METADATA ? table[i].update_metadata
                                                : table[i].stop_replica;
        }
    }
    return 0;
}

static struct control_request *new_request(struct controller *c, enum control_api api)
{
    struct control_request *r = control_request_new(api);
    r->version = request_version(c, api);
    r->correlation_id = ++c->correlation_id;
    r->controller_id = c->broker_id;
    r->controller_epoch = c->epoch;
    return r;
}

static struct broker_ids *offline_replicas(struct controller *c, const struct partition *p)
{
    g_autofree int32_t *offline = NULL;
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->replicas->n; i++) {
        if (!replica_is_online(&c->ctx, p, p->replicas->id[i])) {
            offline = offline ? offline : g_new(int32_t, p->replicas->n);
            offline[n++] = p->replicas->id[i];
        }
    }
    return n ? context_intern(&c->ctx, broker_ids_new(offline, n)) : broker_ids_ref(c->ctx.none);
}

static struct partition_state *describe(struct controller *c, const struct partition *p, bool is_new)
{
    const struct leader_and_isr *l = &p->leadership;
    struct partition_state *s = partition_state_new(p->topic->ref, p->id);
    s->controller_epoch = l->controller_epoch;
    s->leader = l->leader;
    s->leader_epoch = l->leader_epoch;
    s->partition_epoch = l->partition_epoch;
    s->leader_recovery_state = l->leader_recovery_state;
    s->isr = broker_ids_ref(l->isr);
    s->replicas = broker_ids_ref(p->replicas);
    s->adding_replicas = broker_ids_ref(p->adding);
    s->removing_replicas = broker_ids_ref(p->removing);
    s->offline_replicas = offline_replicas(c, p);
    s->is_new = is_new;
    return s;
}

/* LeaderAndIsr.duringDelete: brokers drop the partition from their metadata caches. */
static struct partition_state *describe_during_delete(struct controller *c, const struct partition *p)
{
    struct partition_state *s = describe(c, p, false);
    s->leader = LEADER_DURING_DELETE;
    s->leader_epoch = 0;
    s->partition_epoch = 0;
    return s;
}

static void add_live_brokers(const struct controller *c, struct control_request *r)
{
    for (guint i = 0; i < c->ctx.brokers->len; i++) {
        const struct broker *b = c->ctx.brokers->pdata[i];
        const struct broker_registration *reg = b->registration;
        struct live_broker live = {
                .id = b->id,
                .rack = g_strdup(reg->rack),
                .endpoints = g_new0(struct broker_endpoint, reg->n_endpoints),
                .n_endpoints = reg->n_endpoints,
        };
        for (size_t e = 0; e < reg->n_endpoints; e++) {
            live.endpoints[e] = (struct broker_endpoint){
                    .listener = g_strdup(reg->endpoints[e].listener),
                    .host = g_strdup(reg->endpoints[e].host),
                    .security_protocol = g_strdup(reg->endpoints[e].security_protocol),
                    .port = reg->endpoints[e].port,
            };
        }
        g_array_append_val(r->live_brokers, live);
    }
}

/* The requests that are being built, by position of the broker in the context. */
struct outbox {
    struct control_request **leader_and_isr, **stop, **stop_delete;
    struct control_request *update_metadata;
};

static struct control_request *open_request(struct controller *c, struct control_request **slot, enum control_api api)
{
    if (!*slot) {
        *slot = new_request(c, api);
    }
    return *slot;
}

static void add_stop_replica(
        struct controller *c, struct outbox *out, int i, const struct partition *p, const struct recipient *r)
{
    struct stop_replica_state s = {
            .topic = topic_ref_ref(p->topic->ref),
            .partition = p->id,
            .leader_epoch = r->stop_leader_epoch,
            .delete_partition = r->delete_partition,
    };
    /* Up to version 2 a request has one flag for all its partitions. */
    bool apart = r->delete_partition && request_version(c, API_STOP_REPLICA) < 3;
    struct control_request **slot = apart ? &out->stop_delete[i] : &out->stop[i];
    g_array_append_val(open_request(c, slot, API_STOP_REPLICA)->stop_states, s);
}

static void build_entry(struct controller *c, struct outbox *out, const struct entry *e)
{
    const struct partition *p = e->p;
    struct partition_state *plain = NULL, *fresh = NULL;
    for (int32_t r = e->first; r >= 0;) {
        const struct recipient *to = &g_array_index(c->batch->recipients, struct recipient, r);
        r = to->next;
        int i = context_broker_index(&c->ctx, to->broker);
        if (i < 0) {
            continue;
        }
        if (to->leader_and_isr) {
            struct partition_state **state = to->is_new ? &fresh : &plain;
            *state = *state ? *state : describe(c, p, to->is_new);
            struct control_request *request = open_request(c, &out->leader_and_isr[i], API_LEADER_AND_ISR);
            g_ptr_array_add(request->partition_states, partition_state_ref(*state));
        }
        if (to->stop_replica) {
            add_stop_replica(c, out, i, p, to);
        }
    }
    if (e->update_metadata && p->has_leadership) {
        struct partition_state *state = p->topic->deletion ? describe_during_delete(c, p)
                                        : plain || fresh   ? partition_state_ref(plain ? plain : fresh)
                                                           : describe(c, p, false);
        g_ptr_array_add(out->update_metadata->partition_states, state);
    }
    partition_state_unref(plain);
    partition_state_unref(fresh);
}

static void send_one(struct controller *c, guint i, struct control_request *request)
{
    const struct broker *b = c->ctx.brokers->pdata[i];
    if (request) {
        c->env.send(c->env.ctx, b->id, b->epoch, request);
    }
}

static bool gets_metadata(const struct batch *b, int32_t broker)
{
    if (!b->selected) {
        return true;
    }
    for (guint i = 0; i < b->selected->len; i++) {
        if (g_array_index(b->selected, int32_t, i) == broker) {
            return b->only_selected;
        }
    }
    return !b->only_selected;
}

static void send_all(struct controller *c, struct outbox *out)
{
    guint n = c->ctx.brokers->len;
    for (guint i = 0; i < n; i++) {
        send_one(c, i, out->leader_and_isr[i]);
    }
    for (guint i = 0; i < n && out->update_metadata; i++) {
        if (gets_metadata(c->batch, ((struct broker *)c->ctx.brokers->pdata[i])->id)) {
            send_one(c, i, out->update_metadata);
        }
    }
    for (guint i = 0; i < n; i++) {
        send_one(c, i, out->stop_delete[i]);
        send_one(c, i, out->stop[i]);
    }
}

void batch_send(struct controller *c)
{
    struct batch *b = c->batch;
    guint n = c->ctx.brokers->len;
    if (!c->moved && (b->entries->len || b->update_metadata)) {
        g_autofree struct control_request **requests = g_new0(struct control_request *, 3 * n + 1);
        struct outbox out = {.leader_and_isr = requests, .stop = requests + n, .stop_delete = requests + 2 * n};
        if (b->update_metadata) {
            out.update_metadata = new_request(c, API_UPDATE_METADATA);
            out.update_metadata->full = b->full;
            add_live_brokers(c, out.update_metadata);
        }
        for (guint i = 0; i < b->entries->len; i++) {
            build_entry(c, &out, &g_array_index(b->entries, struct entry, i));
        }
        send_all(c, &out);
        for (guint i = 0; i < 3 * n; i++) {
            control_request_unref(requests[i]);
        }
        control_request_unref(out.update_metadata);
    }
    batch_clear(b);
}
