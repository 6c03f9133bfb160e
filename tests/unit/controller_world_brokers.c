/* Scripted brokers: they answer control requests as real ones do, and propose in-sync sets. */
#include "tests/unit/controller_world.h"

#include <stdlib.h>
#include <string.h>

static void free_hosted(gpointer arg)
{
    struct hosted *h = arg;
    broker_ids_unref(h->isr);
    broker_ids_unref(h->replicas);
    g_free(h);
}

void broker_init(struct scripted_broker *b)
{
    b->replicas = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_hosted);
    b->metadata = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    b->broken = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    b->undeletable = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
}

static char *replica_name(const struct topic_ref *topic, int32_t partition)
{
    return g_strdup_printf("%s-%d", topic->name, partition);
}

/* Of the same leader and epoch. */
static bool is_other_state(const struct scripted_broker *b, const struct hosted *h, const struct partition_state *s)
{
    return s->leader == b->id &&
           (s->partition_epoch < h->partition_epoch ||
                   (s->partition_epoch == h->partition_epoch &&
                           (!broker_ids_equal(s->isr, h->isr) || !broker_ids_equal(s->replicas, h->replicas))));
}

/* `*ret_held`: the epoch that it has, if it refuses for that */
static enum kafka_error lead_or_follow(struct scripted_broker *b, const struct partition_state *s, int32_t *ret_held)
{
    char *name = replica_name(s->topic, s->partition);
    if (g_hash_table_contains(b->broken, name)) {
        g_free(name);
        return KERR_KAFKA_STORAGE_ERROR;
    }
    struct hosted *h = g_hash_table_lookup(b->replicas, name);
    if (h && strcmp(h->topic_id, s->topic->id) == 0 && !h->stopped && s->leader_epoch <= h->leader_epoch) {
        *ret_held = h->leader_epoch;
        g_free(name);
        return s->leader_epoch < h->leader_epoch ? KERR_FENCED_LEADER_EPOCH
               : s->leader != h->leader          ? KERR_NOT_LEADER_OR_FOLLOWER
               : is_other_state(b, h, s)         ? KERR_FENCED_LEADER_EPOCH
                                                 : KERR_STALE_CONTROLLER_EPOCH;
    }
    h = g_new0(struct hosted, 1);
    *h = (struct hosted){.leader = s->leader,
            .leader_epoch = s->leader_epoch,
            .partition_epoch = s->partition_epoch,
            .isr = broker_ids_ref(s->isr),
            .replicas = broker_ids_ref(s->replicas)};
    g_strlcpy(h->topic_id, s->topic->id, sizeof(h->topic_id));
    g_hash_table_replace(b->replicas, name, h);
    return KERR_NONE;
}

static enum kafka_error stop_replica(struct scripted_broker *b, const struct stop_replica_state *s)
{
    g_autofree char *name = replica_name(s->topic, s->partition);
    struct hosted *h = g_hash_table_lookup(b->replicas, name);
    if (g_hash_table_contains(b->broken, name) ||
            (s->delete_partition && g_hash_table_contains(b->undeletable, name))) {
        return KERR_KAFKA_STORAGE_ERROR;
    }
    if (h && !h->stopped && s->leader_epoch >= 0 && s->leader_epoch < h->leader_epoch) {
        return KERR_FENCED_LEADER_EPOCH;
    }
    if (h) {
        h->stopped = true;
    }
    if (s->delete_partition) {
        g_hash_table_remove(b->replicas, name);
    }
    return KERR_NONE;
}

static void update_metadata(struct scripted_broker *b, const struct partition_state *s)
{
    char *name = replica_name(s->topic, s->partition);
    if (s->leader == LEADER_DURING_DELETE) {
        g_hash_table_remove(b->metadata, name);
        g_free(name);
    } else {
        g_hash_table_replace(b->metadata, name, GINT_TO_POINTER(s->leader));
    }
}

void broker_handle(struct world *w, struct sent *sent)
{
    struct scripted_broker *b = &w->broker[sent->broker];
    struct control_request *r = sent->request;
    if (!b->running || sent->epoch != b->epoch || b->silent) {
        return;
    }
    struct control_response *response = control_response_new(KERR_NONE);
    if (r->full) {
        g_hash_table_remove_all(b->metadata);
    }
    g_array_set_size(response->partition_errors, r->api == API_LEADER_AND_ISR ? r->partition_states->len : 0);
    for (guint i = 0; i < r->partition_states->len; i++) {
        if (r->api == API_UPDATE_METADATA) {
            update_metadata(b, r->partition_states->pdata[i]);
        } else {
            int32_t held;
            enum kafka_error e = lead_or_follow(b, r->partition_states->pdata[i], &held);
            g_array_index(response->partition_errors, enum kafka_error, i) = e;
            if (e == KERR_FENCED_LEADER_EPOCH || e == KERR_NOT_LEADER_OR_FOLLOWER) {
                control_response_fence(response, i, e, held);
            }
        }
    }
    for (guint i = 0; i < r->stop_states->len; i++) {
        enum kafka_error e = stop_replica(b, &g_array_index(r->stop_states, struct stop_replica_state, i));
        g_array_append_val(response->partition_errors, e);
    }
    struct queued *q = g_new(struct queued, 1);
    *q = (struct queued){controller_event_new(EVENT_CONTROL_RESPONSE), sent->controller};
    q->event->broker_id = b->id;
    q->event->broker_epoch = b->epoch;
    q->event->request = control_request_ref(r);
    q->event->response = response;
    g_queue_push_tail(&w->events, q);
}

/* ---- in-sync sets, as leaders of 2.7 and later keep them ---- */

static bool follows(struct world *w, int32_t broker, const char *name, const struct hosted *leader)
{
    const struct scripted_broker *b = broker <= MAX_BROKERS ? &w->broker[broker] : &w->broker[0];
    const struct hosted *h = b->running ? g_hash_table_lookup(b->replicas, name) : NULL;
    return h && !h->stopped && h->leader == leader->leader && !g_hash_table_contains(b->broken, name) &&
           strcmp(h->topic_id, leader->topic_id) == 0;
}

static struct broker_ids *grown_isr(struct world *w, const char *name, const struct hosted *h)
{
    int32_t ids[2 * MAX_BROKERS];
    size_t n = 0;
    for (uint32_t i = 0; i < h->isr->n; i++) {
        ids[n++] = h->isr->id[i];
    }
    for (uint32_t i = 0; i < h->replicas->n; i++) {
        if (!broker_ids_contain(h->isr, h->replicas->id[i]) && follows(w, h->replicas->id[i], name, h)) {
            ids[n++] = h->replicas->id[i];
        }
    }
    return broker_ids_new(ids, n);
}

static struct broker_request *proposal(
        struct scripted_broker *b, const char *name, const struct hosted *h, struct broker_ids *isr)
{
    struct broker_request *r = g_new0(struct broker_request, 1);
    const char *dash = strrchr(name, '-');
    g_autofree char *topic = g_strndup(name, (gsize)(dash - name));
    r->api = API_ALTER_PARTITION;
    r->broker_id = b->id;
    r->broker_epoch = b->epoch;
    r->partitions = g_new0(struct alter_partition, 1);
    r->n_partitions = 1;
    r->partitions[0] = (struct alter_partition){.topic = topic_ref_new(topic, h->topic_id),
            .partition = atoi(dash + 1),
            .leader_epoch = h->leader_epoch,
            .partition_epoch = h->partition_epoch,
            .new_isr = isr};
    return r;
}

bool brokers_propose(struct world *w)
{
    for (int i = 1; world_active(w) && i <= MAX_BROKERS; i++) {
        struct scripted_broker *b = &w->broker[i];
        g_autoptr(GList) names =
                b->running ? g_list_sort(g_hash_table_get_keys(b->replicas), (GCompareFunc)strcmp) : NULL;
        for (GList *l = names; l; l = l->next) {
            struct hosted *h = g_hash_table_lookup(b->replicas, l->data);
            struct broker_ids *isr = h->leader == b->id && !h->stopped ? grown_isr(w, l->data, h) : NULL;
            if (!isr || isr->n == h->isr->n) {
                broker_ids_unref(isr);
                continue;
            }
            struct controller_event *e = controller_event_new(EVENT_BROKER_REQUEST);
            e->broker_request = proposal(b, l->data, h, isr);
            world_tell(w, e);
            return true;
        }
    }
    return false;
}

void broker_take_answer(struct world *w, struct broker_request *r)
{
    struct scripted_broker *b = &w->broker[r->broker_id];
    if (r == w->awaited) {
        return; /* world_request() takes it */
    }
    if (r->api == API_ALTER_PARTITION && b->running && b->epoch == r->broker_epoch) {
        const struct alter_partition *a = &r->partitions[0];
        g_autofree char *name = replica_name(a->topic, a->partition);
        struct hosted *h = g_hash_table_lookup(b->replicas, name);
        if (h && r->error == KERR_NONE && a->error == KERR_NONE && h->leader_epoch == a->result_leader_epoch) {
            broker_ids_unref(h->isr);
            h->isr = broker_ids_ref(a->result_isr);
            h->partition_epoch = a->result_partition_epoch;
        } else if (h && h->leader_epoch == a->leader_epoch) {
            h->leader = LEADER_NONE; /* refused: the next LeaderAndIsr tells */
            h->stopped = true;
        }
    }
    broker_request_free(r);
}
