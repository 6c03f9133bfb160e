/* ControllerContext: the controller's memory. See context.h. */
#include "controller/context.h"

const char *replica_state_name(enum replica_state state)
{
    static const char *const names[REPLICA_STATES] = {
            [REPLICA_NON_EXISTENT] = "NonExistentReplica",
            [REPLICA_NEW] = "NewReplica",
            [REPLICA_ONLINE] = "OnlineReplica",
            [REPLICA_OFFLINE] = "OfflineReplica",
            [REPLICA_DELETION_STARTED] = "ReplicaDeletionStarted",
            [REPLICA_DELETION_SUCCESSFUL] = "ReplicaDeletionSuccessful",
            [REPLICA_DELETION_INELIGIBLE] = "ReplicaDeletionIneligible",
    };
    return names[state];
}

const char *partition_status_name(enum partition_status status)
{
    static const char *const names[PARTITION_STATUSES] = {
            [PARTITION_NON_EXISTENT] = "NonExistentPartition",
            [PARTITION_NEW] = "NewPartition",
            [PARTITION_ONLINE] = "OnlinePartition",
            [PARTITION_OFFLINE] = "OfflinePartition",
    };
    return names[status];
}

/* ---- lists ---- */

static guint hash_broker_ids(gconstpointer key)
{
    const struct broker_ids *ids = key;
    guint h = ids->n;
    for (uint32_t i = 0; i < ids->n; i++) {
        h = h * 31 + (guint)ids->id[i];
    }
    return h;
}

static gboolean equal_broker_ids(gconstpointer a, gconstpointer b)
{
    return broker_ids_equal(a, b);
}

static void unref_broker_ids(gpointer ids)
{
    broker_ids_unref(ids);
}

static gboolean only_interned(gpointer key, gpointer value, gpointer unused)
{
    struct broker_ids *ids = key;
    return atomic_load(&ids->refs) == 1;
}

struct broker_ids *context_intern(struct context *x, struct broker_ids *ids)
{
    struct broker_ids *known = g_hash_table_lookup(x->interned, ids);
    if (known) {
        broker_ids_ref(known);
        broker_ids_unref(ids);
        return known;
    }
    if (g_hash_table_size(x->interned) >= x->interned_limit) {
        g_hash_table_foreach_remove(x->interned, only_interned, NULL);
        x->interned_limit = MAX(64u, 2 * g_hash_table_size(x->interned));
    }
    g_hash_table_add(x->interned, broker_ids_ref(ids));
    return ids;
}

struct broker_ids *context_without(struct context *x, const struct broker_ids *a, const struct broker_ids *b)
{
    g_autofree int32_t *left = g_new(int32_t, a->n + 1);
    size_t n = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        if (!broker_ids_contain(b, a->id[i])) {
            left[n++] = a->id[i];
        }
    }
    return context_intern(x, broker_ids_new(left, n));
}

void append_broker_ids(GString *s, const struct broker_ids *ids)
{
    for (uint32_t i = 0; i < ids->n; i++) {
        g_string_append_printf(s, "%s%d", i ? "," : "", ids->id[i]);
    }
}

char *broker_ids_text(const struct broker_ids *ids)
{
    GString *s = g_string_new(NULL);
    append_broker_ids(s, ids);
    return g_string_free(s, FALSE);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

GPtrArray *names_sorted(GHashTable *names)
{
    GPtrArray *sorted = g_ptr_array_new_with_free_func(g_free);
    GHashTableIter it;
    gpointer name;
    g_hash_table_iter_init(&it, names);
    while (g_hash_table_iter_next(&it, &name, NULL)) {
        g_ptr_array_add(sorted, g_strdup(name));
    }
    g_ptr_array_sort(sorted, compare_names);
    return sorted;
}

/* ---- whole ---- */

static void free_broker(gpointer arg)
{
    struct broker *b = arg;
    broker_registration_free(b->registration);
    g_hash_table_unref(b->offline);
    g_free(b);
}

static void free_deletion(gpointer arg)
{
    struct deletion *d = arg;
    g_free(d->name);
    g_free(d->failure);
    g_free(d);
}

static void clear_partition(gpointer arg)
{
    struct partition *p = arg;
    broker_ids_unref(p->replicas);
    broker_ids_unref(p->adding);
    broker_ids_unref(p->removing);
    leader_and_isr_clear(&p->leadership);
    if (p->states != p->few) {
        g_free(p->states);
    }
}

static void free_topic(gpointer arg)
{
    struct topic *t = arg;
    g_ptr_array_unref(t->partitions);
    g_ptr_array_unref(t->blocks);
    topic_ref_unref(t->ref);
    g_free(t);
}

void context_init(struct context *x)
{
    *x = (struct context){
            .brokers = g_ptr_array_new_with_free_func(free_broker),
            .topics = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, free_topic),
            .topic_ids = g_hash_table_new(g_str_hash, g_str_equal),
            .deletions = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, free_deletion),
            .interned = g_hash_table_new_full(hash_broker_ids, equal_broker_ids, unref_broker_ids, NULL),
            .interned_limit = 64,
    };
    x->none = context_intern(x, broker_ids_new(NULL, 0));
}

void context_clear(struct context *x)
{
    if (!x->topics) {
        return;
    }
    g_ptr_array_unref(x->brokers);
    g_hash_table_unref(x->topic_ids);
    g_hash_table_unref(x->topics);
    g_hash_table_unref(x->deletions);
    broker_ids_unref(x->none);
    g_hash_table_unref(x->interned);
    *x = (struct context){0};
}

/* ---- brokers ---- */

/* Position of the first broker whose id is not below `id`. */
static guint broker_position(const struct context *x, int32_t id)
{
    guint low = 0, high = x->brokers->len;
    while (low < high) {
        guint middle = (low + high) / 2;
        const struct broker *b = x->brokers->pdata[middle];
        if (b->id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

int context_broker_index(const struct context *x, int32_t id)
{
    guint i = broker_position(x, id);
    return i < x->brokers->len && ((struct broker *)x->brokers->pdata[i])->id == id ? (int)i : -1;
}

struct broker *context_broker(const struct context *x, int32_t id)
{
    int i = context_broker_index(x, id);
    return i < 0 ? NULL : x->brokers->pdata[i];
}

struct broker *context_broker_add(
        struct context *x, int32_t id, int64_t epoch, struct broker_registration *registration)
{
    struct broker *b = g_new0(struct broker, 1);
    b->id = id;
    b->epoch = epoch;
    b->registration = registration;
    b->offline = g_hash_table_new(NULL, NULL);
    g_ptr_array_insert(x->brokers, (gint)broker_position(x, id), b);
    return b;
}

void context_broker_remove(struct context *x, int32_t id)
{
    struct broker *b = context_broker(x, id);
    if (b) {
        g_ptr_array_remove(x->brokers, b);
    }
}

/* ---- topics ---- */

struct topic *context_topic(const struct context *x, const char *name)
{
    return g_hash_table_lookup(x->topics, name);
}

struct topic *context_topic_add(struct context *x, const char *name, const char *id, int64_t czxid)
{
    struct topic *t = g_new0(struct topic, 1);
    t->ref = topic_ref_new(name, id);
    t->czxid = czxid;
    t->partitions = g_ptr_array_new_with_free_func(clear_partition);
    t->blocks = g_ptr_array_new_with_free_func(g_free);
    t->deletion = g_hash_table_lookup(x->deletions, name);
    g_hash_table_insert(x->topics, t->ref->name, t);
    if (t->ref->id[0]) {
        g_hash_table_insert(x->topic_ids, t->ref->id, t);
    }
    return t;
}

void topic_set_id(struct context *x, struct topic *t, const char *id)
{
    if (t->ref->id[0] && g_hash_table_lookup(x->topic_ids, t->ref->id) == t) {
        g_hash_table_remove(x->topic_ids, t->ref->id);
    }
    g_hash_table_steal(x->topics, t->ref->name);
    struct topic_ref *old = t->ref;
    t->ref = topic_ref_new(old->name, id);
    topic_ref_unref(old);
    g_hash_table_insert(x->topics, t->ref->name, t);
    if (t->ref->id[0]) {
        g_hash_table_insert(x->topic_ids, t->ref->id, t);
    }
}

void context_topic_remove(struct context *x, struct topic *t)
{
    for (guint i = 0; i < t->partitions->len; i++) {
        struct partition *p = t->partitions->pdata[i];
        partition_set_status(x, p, PARTITION_NON_EXISTENT);
        for (guint b = 0; b < x->brokers->len; b++) {
            g_hash_table_remove(((struct broker *)x->brokers->pdata[b])->offline, p);
        }
    }
    x->n_partitions -= t->partitions->len;
    if (t->ref->id[0] && g_hash_table_lookup(x->topic_ids, t->ref->id) == t) {
        g_hash_table_remove(x->topic_ids, t->ref->id);
    }
    g_hash_table_remove(x->topics, t->ref->name);
}

uint32_t topic_replica_count(const struct topic *t)
{
    uint32_t n = 0;
    for (int s = 0; s < REPLICA_STATES; s++) {
        n += t->n_replicas[s];
    }
    return n;
}

/* ---- partitions ---- */

static guint partition_position(const struct topic *t, int32_t id)
{
    guint low = 0, high = t->partitions->len;
    while (low < high) {
        guint middle = (low + high) / 2;
        const struct partition *p = t->partitions->pdata[middle];
        if (p->id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct partition *topic_partition(const struct topic *t, int32_t id)
{
    guint i = (guint)id; /* where it is when none is missing */
    if (i >= t->partitions->len || ((struct partition *)t->partitions->pdata[i])->id != id) {
        i = partition_position(t, id);
    }
    if (i == t->partitions->len) {
        return NULL;
    }
    struct partition *p = t->partitions->pdata[i];
    return p->id == id ? p : NULL;
}

struct partition_iter partition_iter(const struct context *x)
{
    struct partition_iter it = {0};
    g_hash_table_iter_init(&it.topics, x->topics);
    return it;
}

struct partition *partition_iter_next(struct partition_iter *it)
{
    while (!it->topic || it->next == it->topic->partitions->len) {
        gpointer topic;
        if (!g_hash_table_iter_next(&it->topics, NULL, &topic)) {
            return NULL;
        }
        it->topic = topic;
        it->next = 0;
    }
    return it->topic->partitions->pdata[it->next++];
}

struct partition *context_partition(const struct context *x, const char *topic, int32_t id)
{
    struct topic *t = context_topic(x, topic);
    return t ? topic_partition(t, id) : NULL;
}

void topic_partitions_reserve(struct topic *t, guint n)
{
    t->spare = g_new0(struct partition, n);
    t->n_spare = n;
    g_ptr_array_add(t->blocks, t->spare);
}

struct partition *topic_partition_add(struct context *x, struct topic *t, int32_t id, struct broker_ids *replicas,
        struct broker_ids *adding, struct broker_ids *removing)
{
    if (t->n_spare == 0) {
        topic_partitions_reserve(t, 1);
    }
    struct partition *p = t->spare++;
    t->n_spare--;
    p->topic = t;
    p->states = p->few;
    p->id = id;
    p->batch_slot = -1;
    p->shown_epoch = LEADER_EPOCH_NONE;
    p->scratch = -1;
    p->replicas = context_intern(x, replicas);
    p->adding = context_intern(x, adding);
    p->removing = context_intern(x, removing);
    g_ptr_array_insert(t->partitions, (gint)partition_position(t, id), p);
    x->n_partitions++;
    return p;
}

void partition_assign(struct context *x, struct partition *p, struct broker_ids *replicas, struct broker_ids *adding,
        struct broker_ids *removing)
{
    struct broker_ids *old[] = {p->replicas, p->adding, p->removing};
    p->replicas = context_intern(x, replicas);
    p->adding = context_intern(x, adding);
    p->removing = context_intern(x, removing);
    for (size_t i = 0; i < G_N_ELEMENTS(old); i++) {
        broker_ids_unref(old[i]);
    }
}

bool partition_is_being_reassigned(const struct partition *p)
{
    return p->adding->n > 0 || p->removing->n > 0;
}

struct broker_ids *partition_target(struct context *x, const struct partition *p)
{
    return context_without(x, p->replicas, p->removing);
}

struct broker_ids *partition_origin(struct context *x, const struct partition *p)
{
    return context_without(x, p->replicas, p->adding);
}

static bool waits_for_leader(enum partition_status status)
{
    return status == PARTITION_NEW || status == PARTITION_OFFLINE;
}

void partition_set_status(struct context *x, struct partition *p, enum partition_status status)
{
    if (waits_for_leader(p->status)) {
        x->n_waiting--;
    }
    p->status = (uint8_t)status;
    if (waits_for_leader(status)) {
        x->n_waiting++;
    }
}

void partition_set_reassigning(struct partition *p, bool reassigning)
{
    if (p->reassigning != reassigning) {
        p->reassigning = reassigning;
        p->topic->n_reassigning += reassigning ? 1 : (uint32_t)-1;
    }
}

void partition_set_leadership(struct context *x, struct partition *p, const struct leader_and_isr *l)
{
    struct broker_ids *isr = context_intern(x, l->isr);
    leader_and_isr_clear(&p->leadership);
    p->leadership = *l;
    p->leadership.isr = isr;
    p->has_leadership = true;
}

int partition_compare(const void *a, const void *b)
{
    const struct partition *pa = *(struct partition *const *)a, *pb = *(struct partition *const *)b;
    int order = pa->topic == pb->topic ? 0 : strcmp(pa->topic->ref->name, pb->topic->ref->name);
    return order ? order : (pa->id > pb->id) - (pa->id < pb->id);
}

/* ---- replicas ---- */

enum replica_state replica_get_state(const struct partition *p, int32_t broker)
{
    for (uint32_t i = 0; i < p->n_states; i++) {
        if (p->states[i].broker == broker) {
            return p->states[i].state;
        }
    }
    return REPLICA_NON_EXISTENT;
}

/* Its state is still to be set. */
static void add_state(struct partition *p, int32_t broker)
{
    if (p->states != p->few) {
        p->states = g_renew(struct replica, p->states, p->n_states + 1);
    } else if (p->n_states == REPLICAS_INLINE) {
        p->states = g_new(struct replica, p->n_states + 1);
        memcpy(p->states, p->few, sizeof(p->few));
    }
    p->states[p->n_states++].broker = broker;
}

void replica_set_state(struct partition *p, int32_t broker, enum replica_state state)
{
    uint32_t i = 0;
    while (i < p->n_states && p->states[i].broker != broker) {
        i++;
    }
    if (i < p->n_states) {
        p->topic->n_replicas[p->states[i].state]--;
    } else if (state == REPLICA_NON_EXISTENT) {
        return;
    } else {
        add_state(p, broker);
    }
    if (state == REPLICA_NON_EXISTENT) {
        memmove(&p->states[i], &p->states[i + 1], (--p->n_states - i) * sizeof(*p->states));
        return;
    }
    p->states[i].state = state;
    p->topic->n_replicas[state]++;
}

bool replica_is_online(const struct context *x, const struct partition *p, int32_t broker)
{
    const struct broker *b = context_broker(x, broker);
    return b && !b->shutting_down && !g_hash_table_contains(b->offline, p);
}
