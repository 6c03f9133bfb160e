#include "controller/requests.h"

#include <string.h>

/* References may be dropped on any thread: the last one must see everything the others did to the object. */
static void ref_take(atomic_uint *refs)
{
    atomic_fetch_add_explicit(refs, 1, memory_order_relaxed);
}

static bool ref_drop(atomic_uint *refs)
{
    return atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel) == 1;
}

const char *kafka_error_name(enum kafka_error e)
{
#define NAME(error)                                                                                                    \
    case KERR_##error:                                                                                                 \
        return #error
    switch (e) {
        NAME(UNKNOWN_SERVER_ERROR);
        NAME(NONE);
        NAME(UNKNOWN_TOPIC_OR_PARTITION);
        NAME(NOT_LEADER_OR_FOLLOWER);
        NAME(BROKER_NOT_AVAILABLE);
        NAME(STALE_CONTROLLER_EPOCH);
        NAME(INVALID_TOPIC_EXCEPTION);
        NAME(INVALID_REPLICA_ASSIGNMENT);
        NAME(NOT_CONTROLLER);
        NAME(INVALID_REQUEST);
        NAME(OPERATION_NOT_ATTEMPTED);
        NAME(KAFKA_STORAGE_ERROR);
        NAME(FENCED_LEADER_EPOCH);
        NAME(STALE_BROKER_EPOCH);
        NAME(PREFERRED_LEADER_NOT_AVAILABLE);
        NAME(ELIGIBLE_LEADERS_NOT_AVAILABLE);
        NAME(ELECTION_NOT_NEEDED);
        NAME(NO_REASSIGNMENT_IN_PROGRESS);
        NAME(INVALID_UPDATE_VERSION);
        NAME(UNKNOWN_TOPIC_ID);
        NAME(BROKER_ID_NOT_REGISTERED);
        NAME(INCONSISTENT_TOPIC_ID);
        NAME(INELIGIBLE_REPLICA);
    }
#undef NAME
    return "UNKNOWN";
}

/* ---- broker ids ---- */

struct broker_ids *broker_ids_new(const int32_t *ids, size_t n)
{
    struct broker_ids *b = g_malloc(sizeof(*b) + n * sizeof(*ids));
    atomic_init(&b->refs, 1);
    b->n = (uint32_t)n;
    if (n > 0)
        memcpy(b->id, ids, n * sizeof(*ids));
    return b;
}

struct broker_ids *broker_ids_ref(struct broker_ids *b)
{
    if (b != NULL)
        ref_take(&b->refs);
    return b;
}

struct broker_ids *broker_ids_unref(struct broker_ids *b)
{
    if (b != NULL && ref_drop(&b->refs))
        g_free(b);
    return NULL;
}

bool broker_ids_contain(const struct broker_ids *b, int32_t id)
{
    for (uint32_t i = 0; b != NULL && i < b->n; i++)
        if (b->id[i] == id)
            return true;
    return false;
}

bool broker_ids_equal(const struct broker_ids *a, const struct broker_ids *b)
{
    if (a == b)
        return true;
    return a != NULL && b != NULL && a->n == b->n && memcmp(a->id, b->id, a->n * sizeof(a->id[0])) == 0;
}

/* ---- topics ---- */

struct topic_ref *topic_ref_new(const char *name, const char *id)
{
    size_t len = strlen(name) + 1;
    struct topic_ref *t = g_malloc(sizeof(*t) + len);
    atomic_init(&t->refs, 1);
    g_strlcpy(t->id, id != NULL ? id : "", sizeof(t->id));
    memcpy(t->name, name, len);
    return t;
}

struct topic_ref *topic_ref_ref(struct topic_ref *t)
{
    if (t != NULL)
        ref_take(&t->refs);
    return t;
}

struct topic_ref *topic_ref_unref(struct topic_ref *t)
{
    if (t != NULL && ref_drop(&t->refs))
        g_free(t);
    return NULL;
}

/* ---- partition states ---- */

struct partition_state *partition_state_new(struct topic_ref *topic, int32_t partition)
{
    struct partition_state *p = g_new0(struct partition_state, 1);
    atomic_init(&p->refs, 1);
    p->topic = topic_ref_ref(topic);
    p->partition = partition;
    return p;
}

struct partition_state *partition_state_ref(struct partition_state *p)
{
    if (p != NULL)
        ref_take(&p->refs);
    return p;
}

struct partition_state *partition_state_unref(struct partition_state *p)
{
    if (p == NULL || !ref_drop(&p->refs))
        return NULL;
    topic_ref_unref(p->topic);
    broker_ids_unref(p->isr);
    broker_ids_unref(p->replicas);
    broker_ids_unref(p->adding_replicas);
    broker_ids_unref(p->removing_replicas);
    broker_ids_unref(p->offline_replicas);
    g_free(p);
    return NULL;
}

/* ---- control requests ---- */

static void partition_state_destroy(gpointer item)
{
    partition_state_unref(item);
}

static void stop_replica_state_clear(gpointer item)
{
    topic_ref_unref(((struct stop_replica_state *)item)->topic);
}

void broker_endpoints_free(struct broker_endpoint *endpoints, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        g_free(endpoints[i].listener);
        g_free(endpoints[i].host);
        g_free(endpoints[i].security_protocol);
    }
    g_free(endpoints);
}

static void live_broker_clear(gpointer item)
{
    struct live_broker *b = item;
    broker_endpoints_free(b->endpoints, b->n_endpoints);
    g_free(b->rack);
}

struct control_request *control_request_new(enum control_api api)
{
    struct control_request *r = g_new0(struct control_request, 1);
    atomic_init(&r->refs, 1);
    r->api = api;
    r->partition_states = g_ptr_array_new_with_free_func(partition_state_destroy);
    r->stop_states = g_array_new(FALSE, TRUE, sizeof(struct stop_replica_state));
    g_array_set_clear_func(r->stop_states, stop_replica_state_clear);
    r->live_brokers = g_array_new(FALSE, TRUE, sizeof(struct live_broker));
    g_array_set_clear_func(r->live_brokers, live_broker_clear);
    return r;
}

struct control_request *control_request_ref(struct control_request *r)
{
    if (r != NULL)
        ref_take(&r->refs);
    return r;
}

struct control_request *control_request_unref(struct control_request *r)
{
    if (r == NULL || !ref_drop(&r->refs))
        return NULL;
    g_ptr_array_unref(r->partition_states);
    g_array_unref(r->stop_states);
    g_array_unref(r->live_brokers);
    g_free(r);
    return NULL;
}

struct control_response *control_response_new(enum kafka_error error)
{
    struct control_response *r = g_new0(struct control_response, 1);
    r->error = error;
    r->partition_errors = g_array_new(FALSE, TRUE, sizeof(enum kafka_error));
    return r;
}

void control_response_fence(struct control_response *r, guint index, enum kafka_error error, int32_t leader_epoch)
{
    g_array_index(r->partition_errors, enum kafka_error, index) = error;
    if (r->leader_epochs == NULL) {
        r->leader_epochs = g_array_new(FALSE, TRUE, sizeof(int32_t));
        g_array_set_size(r->leader_epochs, r->partition_errors->len);
    }
    g_array_index(r->leader_epochs, int32_t, index) = leader_epoch;
}

void control_response_free(struct control_response *r)
{
    if (r == NULL)
        return;
    g_array_unref(r->partition_errors);
    g_clear_pointer(&r->leader_epochs, g_array_unref);
    g_free(r);
}

void broker_request_free(struct broker_request *r)
{
    if (r == NULL)
        return;
    for (size_t i = 0; i < r->n_partitions; i++) {
        topic_ref_unref(r->partitions[i].topic);
        broker_ids_unref(r->partitions[i].new_isr);
        broker_ids_unref(r->partitions[i].result_isr);
        g_free(r->partitions[i].new_isr_epochs);
    }
    g_free(r->partitions);
    if (r->remaining != NULL)
        g_ptr_array_unref(r->remaining);
    g_free(r);
}
