#include "controller/broker/metadata_cache.h"
#include <cjson/cJSON.h>
#include <string.h>

/* One topic: its partitions' states, sorted by partition. */
struct cached_topic {
    struct topic_ref *topic; /* the newest; owned reference */
    struct partition_state **states;
    size_t n, cap;
};

struct metadata_cache {
    GHashTable *topics;  /* name (of the topic_ref) -> struct cached_topic */
    GHashTable *brokers; /* set of live broker ids */
};

static void cached_topic_free(gpointer p)
{
    struct cached_topic *t = p;

    for (size_t i = 0; i < t->n; i++)
        partition_state_unref(t->states[i]);
    g_free(t->states);
    topic_ref_unref(t->topic);
    g_free(t);
}

struct metadata_cache *metadata_cache_new(void)
{
    struct metadata_cache *c = g_new0(struct metadata_cache, 1);

    c->topics = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, cached_topic_free);
    c->brokers = g_hash_table_new(g_direct_hash, g_direct_equal);
    return c;
}

void metadata_cache_free(struct metadata_cache *c)
{
    if (!c)
        return;
    g_hash_table_unref(c->topics);
    g_hash_table_unref(c->brokers);
    g_free(c);
}

/* Index of the partition, or of the first above it. */
static size_t find_index(const struct cached_topic *t, int32_t partition)
{
    size_t low = 0, high = t->n;

    if (t->n > 0 && t->states[t->n - 1]->partition < partition)
        return t->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (t->states[mid]->partition < partition)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static bool is_at(const struct cached_topic *t, size_t i, int32_t partition)
{
    return i < t->n && t->states[i]->partition == partition;
}

static void reserve(struct cached_topic *t, size_t n)
{
    if (n <= t->cap)
        return;
    t->cap = MAX(n, t->cap + t->cap / 2);
    t->states = g_renew(struct partition_state *, t->states, t->cap);
}

/* Replaces what is there and appends behind it. False: this needs merge(). */
static bool update_in_place(struct cached_topic *t, struct partition_state *s)
{
    size_t i = find_index(t, s->partition);

    if (is_at(t, i, s->partition)) {
        if (s->leader == LEADER_DURING_DELETE)
            return false;
        partition_state_ref(s);
        partition_state_unref(t->states[i]);
        t->states[i] = s;
        return true;
    }
    if (s->leader == LEADER_DURING_DELETE)
        return true;
    if (i < t->n)
        return false;
    reserve(t, t->n + 1);
    t->states[t->n++] = partition_state_ref(s);
    return true;
}

static int compare_partitions(const void *pa, const void *pb)
{
    const struct partition_state *a = *(struct partition_state *const *)pa, *b = *(struct partition_state *const *)pb;

    return (a->partition > b->partition) - (a->partition < b->partition);
}

/* Merges `n` states, sorted by partition, in one pass: any mixture of new, changed and removed ones costs the same. */
static void merge(struct cached_topic *t, struct partition_state **states, size_t n)
{
    struct partition_state **out = g_new(struct partition_state *, t->n + n);
    size_t i = 0, k = 0, len = 0;

    while (i < t->n || k < n) {
        if (k == n || (i < t->n && t->states[i]->partition < states[k]->partition)) {
            out[len++] = t->states[i++];
            continue;
        }
        int32_t partition = states[k]->partition;
        while (k + 1 < n && states[k + 1]->partition == partition) /* the last of equals counts */
            k++;
        if (is_at(t, i, partition))
            partition_state_unref(t->states[i++]);
        if (states[k]->leader != LEADER_DURING_DELETE)
            out[len++] = partition_state_ref(states[k]);
        k++;
    }
    g_free(t->states);
    t->states = out;
    t->cap = t->n + n;
    t->n = len;
}

static struct cached_topic *get_topic(struct metadata_cache *c, struct topic_ref *topic)
{
    struct cached_topic *t = g_hash_table_lookup(c->topics, topic->name);

    if (!t) {
        t = g_new0(struct cached_topic, 1);
        t->topic = topic_ref_ref(topic);
        g_hash_table_insert(c->topics, t->topic->name, t);
    } else if (t->topic != topic) {
        /* the key lies inside the reference: both change together; an empty id removes the cached one */
        g_hash_table_steal(c->topics, t->topic->name);
        topic_ref_unref(t->topic);
        t->topic = topic_ref_ref(topic);
        g_hash_table_insert(c->topics, t->topic->name, t);
    }
    return t;
}

/* `n` states of one topic, in the order of the request. */
static void update_topic(struct metadata_cache *c, struct partition_state **states, size_t n)
{
    struct cached_topic *t = get_topic(c, states[n - 1]->topic);
    size_t done = 0;

    while (done < n && update_in_place(t, states[done]))
        done++;
    if (done < n) {
        bool sorted = true;
        for (size_t i = done + 1; i < n && sorted; i++)
            sorted = states[i - 1]->partition <= states[i]->partition;
        if (sorted) {
            merge(t, states + done, n - done);
        } else {
            struct partition_state **copy = g_new(struct partition_state *, n - done);
            memcpy(copy, states + done, (n - done) * sizeof *copy);
            qsort(copy, n - done, sizeof *copy, compare_partitions);
            merge(t, copy, n - done);
            g_free(copy);
        }
    }
    if (t->n == 0)
        g_hash_table_remove(c->topics, t->topic->name);
}

void metadata_cache_update(struct metadata_cache *c, const struct control_request *update)
{
    struct partition_state **states = (struct partition_state **)update->partition_states->pdata;
    size_t n = update->partition_states->len;

    g_hash_table_remove_all(c->brokers);
    for (guint i = 0; i < update->live_brokers->len; i++)
        g_hash_table_add(c->brokers, GINT_TO_POINTER(g_array_index(update->live_brokers, struct live_broker, i).id));
    if (update->full)
        g_hash_table_remove_all(c->topics);
    for (size_t i = 0; i < n;) {
        size_t k = i + 1;
        while (k < n &&
                (states[k]->topic == states[i]->topic || !strcmp(states[k]->topic->name, states[i]->topic->name)))
            k++;
        update_topic(c, states + i, k - i);
        i = k;
    }
}

bool metadata_cache_has_broker(const struct metadata_cache *c, int32_t broker_id)
{
    return g_hash_table_contains(c->brokers, GINT_TO_POINTER(broker_id));
}

static gint compare_ids(gconstpointer pa, gconstpointer pb)
{
    int32_t a = *(const int32_t *)pa, b = *(const int32_t *)pb;

    return (a > b) - (a < b);
}

GArray *metadata_cache_brokers(const struct metadata_cache *c)
{
    GArray *ids = g_array_new(FALSE, FALSE, sizeof(int32_t));
    GHashTableIter it;
    gpointer p;

    g_hash_table_iter_init(&it, c->brokers);
    while (g_hash_table_iter_next(&it, &p, NULL)) {
        int32_t id = GPOINTER_TO_INT(p);
        g_array_append_val(ids, id);
    }
    g_array_sort(ids, compare_ids);
    return ids;
}

const struct partition_state *metadata_cache_partition(
        const struct metadata_cache *c, const char *topic, int32_t partition)
{
    const struct cached_topic *t = g_hash_table_lookup(c->topics, topic);
    size_t i = t ? find_index(t, partition) : 0;

    return t && is_at(t, i, partition) ? t->states[i] : NULL;
}

static int compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

GPtrArray *metadata_cache_topics(const struct metadata_cache *c)
{
    GPtrArray *names = g_ptr_array_new_full(g_hash_table_size(c->topics), g_free);
    GHashTableIter it;
    gpointer name;

    g_hash_table_iter_init(&it, c->topics);
    while (g_hash_table_iter_next(&it, &name, NULL))
        g_ptr_array_add(names, g_strdup(name));
    g_ptr_array_sort(names, compare_names);
    return names;
}

GArray *metadata_cache_partitions(const struct metadata_cache *c, const char *topic)
{
    const struct cached_topic *t = g_hash_table_lookup(c->topics, topic);
    GArray *ids;

    if (!t)
        return NULL;
    ids = g_array_sized_new(FALSE, FALSE, sizeof(int32_t), (guint)t->n);
    for (size_t i = 0; i < t->n; i++)
        g_array_append_val(ids, t->states[i]->partition);
    return ids;
}

static void append_ids(GString *out, const char *key, const struct broker_ids *ids)
{
    g_string_append_printf(out, ",\"%s\":[", key);
    for (uint32_t i = 0; ids && i < ids->n; i++)
        g_string_append_printf(out, "%s%d", i ? "," : "", ids->id[i]);
    g_string_append_c(out, ']');
}

/* The fields of UpdateMetadataPartitionState. A topic's name needs no escaping: Kafka's rule allows no such character.
 */
char *metadata_cache_json(const struct metadata_cache *c, const char *topic, int32_t partition)
{
    const struct cached_topic *t = g_hash_table_lookup(c->topics, topic);
    const struct partition_state *s = metadata_cache_partition(c, topic, partition);
    GString *out;

    if (!s)
        return NULL;
    out = g_string_new(NULL);
    cJSON *name = cJSON_CreateString(topic);
    char *quoted = cJSON_PrintUnformatted(name);
    g_string_append_printf(out, "{\"topic\":%s", quoted);
    cJSON_free(quoted);
    cJSON_Delete(name);
    if (*t->topic->id)
        g_string_append_printf(out, ",\"topic_id\":\"%s\"", t->topic->id);
    g_string_append_printf(out, ",\"partition\":%d,\"controller_epoch\":%d,\"leader\":%d,\"leader_epoch\":%d",
            partition, s->controller_epoch, s->leader, s->leader_epoch);
    append_ids(out, "isr", s->isr);
    g_string_append_printf(out, ",\"zk_version\":%d", s->partition_epoch);
    append_ids(out, "replicas", s->replicas);
    append_ids(out, "offline_replicas", s->offline_replicas);
    g_string_append_c(out, '}');
    return g_string_free(out, FALSE);
}
