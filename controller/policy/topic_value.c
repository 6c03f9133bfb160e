#include "controller/policy/topic_value.h"
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "controller/policy/document.h"
#include "controller/policy/values.h"

static int refuse(int err, char **ret_why, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static int refuse(int err, char **ret_why, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    *ret_why = g_strdup_vprintf(fmt, args);
    va_end(args);
    return err;
}

static const cJSON *partitions_of(const cJSON *doc)
{
    return cJSON_GetObjectItemCaseSensitive(doc, "partitions");
}

/* Partition numbers from `from` on without a hole, and nothing else but those below `from`. */
static int check_numbers(const cJSON *doc, int32_t from, const struct topic_assignment *old, char **ret_why)
{
    int32_t added = 0, highest = -1, id;
    const cJSON *list;
    cJSON_ArrayForEach(list, partitions_of(doc))
    {
        if (!parse_id(list->string, &id) || (old && topic_assignment_find(old, id)))
            continue;
        if (id < from)
            return refuse(EINVAL, ret_why, "partitions[\"%" PRId32 "\"]: new partitions start at %" PRId32, id, from);
        added++;
        highest = MAX(highest, id);
    }
    if (added > 0 && highest - from >= added)
        return refuse(EINVAL, ret_why,
                "partitions: the numbers have a hole (%" PRId32 " of them, from %" PRId32
                ", but the highest is %" PRId32 ")",
                added, from, highest);
    return 0;
}

/* ---- what has to be put in ---- */

static void put_item(cJSON *doc, const char *key, cJSON *item)
{
    if (cJSON_GetObjectItemCaseSensitive(doc, key))
        cJSON_ReplaceItemInObjectCaseSensitive(doc, key, item);
    else
        cJSON_AddItemToObject(doc, key, item);
}

/* Version 3, which alone has an id; it always has both maps. */
static void put_id(cJSON *doc, const char *id)
{
    put_item(doc, "version", cJSON_CreateNumber(3));
    put_item(doc, "topic_id", cJSON_CreateString(id));
    if (!cJSON_GetObjectItemCaseSensitive(doc, "adding_replicas"))
        cJSON_AddObjectToObject(doc, "adding_replicas");
    if (!cJSON_GetObjectItemCaseSensitive(doc, "removing_replicas"))
        cJSON_AddObjectToObject(doc, "removing_replicas");
}

static const char *id_of(const cJSON *doc)
{
    return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(doc, "topic_id"));
}

static bool replace_foreign_id(const struct topic_value_env *env, const char *topic, cJSON *doc)
{
    const char *id = id_of(doc);
    g_autofree char *owner = id ? topic_index_owner_of_id(env->topics, id, topic) : NULL;
    if (!owner)
        return false;
    char fresh[23];
    uuid_generate(env->random, env->ctx, fresh);
    put_id(doc, fresh);
    return true;
}

int topic_value_first(const struct topic_value_env *env, const char *topic, cJSON *doc, const struct bytes *text,
        struct bytes **ret, char **ret_why)
{
    int err = check_numbers(doc, 0, NULL, ret_why);
    if (err != 0)
        return err;
    *ret = replace_foreign_id(env, topic, doc) ? document_print(doc) : bytes_ref((struct bytes *)text);
    return 0;
}

/* ---- over what is there ---- */

static bool same_ids(const cJSON *list, const struct broker_ids *ids)
{
    uint32_t i = 0;
    const cJSON *item;
    int64_t id;
    cJSON_ArrayForEach(item, list)
    {
        if (i == ids->n || !json_integer(item, 0, INT32_MAX, &id) || id != ids->id[i])
            return false;
        i++;
    }
    return i == ids->n;
}

static GHashTable *lists_by_name(const cJSON *object)
{
    GHashTable *lists = g_hash_table_new(g_str_hash, g_str_equal);
    const cJSON *list;
    cJSON_ArrayForEach(list, object) g_hash_table_insert(lists, list->string, (gpointer)list);
    return lists;
}

static int check_kept(const struct topic_assignment *old, const cJSON *doc, char **ret_why)
{
    g_autoptr(GHashTable) lists = lists_by_name(partitions_of(doc));
    for (guint i = 0; i < old->partitions->len; i++) {
        const struct partition_assignment *p = &g_array_index(old->partitions, struct partition_assignment, i);
        char name[16];
        g_snprintf(name, sizeof(name), "%" PRId32, p->partition);
        const cJSON *list = g_hash_table_lookup(lists, name);
        if (!list)
            return refuse(EINVAL, ret_why,
                    "partitions: partition %s is missing; the number of partitions cannot go down", name);
        if (!same_ids(list, p->replicas))
            return refuse(EINVAL, ret_why,
                    "partitions[\"%s\"]: the replicas of a partition that exists are changed through "
                    "admin/reassign_partitions",
                    name);
    }
    return 0;
}

static cJSON *ids_item(const struct broker_ids *ids)
{
    cJSON *list = cJSON_CreateArray();
    for (uint32_t i = 0; i < ids->n; i++)
        cJSON_AddItemToArray(list, cJSON_CreateNumber(ids->id[i]));
    return list;
}

/* A reassignment in progress is the controller's: what the node says of it stays. True if `doc` was changed. */
static bool keep_moving(const struct topic_assignment *old, cJSON *doc, const char *key, bool adding)
{
    g_autoptr(GHashTable) given = lists_by_name(cJSON_GetObjectItemCaseSensitive(doc, key));
    cJSON *kept = cJSON_CreateObject();
    guint n = 0;
    bool same = true;
    for (guint i = 0; i < old->partitions->len; i++) {
        const struct partition_assignment *p = &g_array_index(old->partitions, struct partition_assignment, i);
        const struct broker_ids *ids = adding ? p->adding : p->removing;
        if (ids->n == 0)
            continue;
        char name[16];
        g_snprintf(name, sizeof(name), "%" PRId32, p->partition);
        const cJSON *list = g_hash_table_lookup(given, name);
        same = same && list && same_ids(list, ids);
        cJSON_AddItemToObject(kept, name, ids_item(ids));
        n++;
    }
    if (same && g_hash_table_size(given) == n) {
        cJSON_Delete(kept);
        return false;
    }
    put_item(doc, key, kept);
    return true;
}

int topic_value_next(const struct topic_value_env *env, const char *topic, const struct topic_assignment *old,
        cJSON *doc, const struct bytes *text, struct bytes **ret, char **ret_why)
{
    int32_t next = 0;
    if (old->partitions->len > 0)
        next = g_array_index(old->partitions, struct partition_assignment, old->partitions->len - 1).partition + 1;
    int err = check_kept(old, doc, ret_why);
    if (err == 0)
        err = check_numbers(doc, next, old, ret_why);
    if (err != 0)
        return err;

    bool changed = keep_moving(old, doc, "adding_replicas", /* adding= */ true);
    changed = keep_moving(old, doc, "removing_replicas", /* adding= */ false) || changed;
    const char *id = id_of(doc);
    if (old->topic_id[0] != '\0' && (!id || strcmp(id, old->topic_id) != 0)) {
        put_id(doc, old->topic_id);
        changed = true;
    } else if (old->topic_id[0] == '\0') {
        changed = replace_foreign_id(env, topic, doc) || changed;
    }
    *ret = changed ? document_print(doc) : bytes_ref((struct bytes *)text);
    return 0;
}

/* ---- one more partition ---- */

static void place(const struct topic_value_env *env, const struct placement *p, const struct broker_ids *first,
        int32_t partition, size_t factor, int32_t *ret)
{
    uint32_t start, shift;
    if (!first) {
        placement_replicas(p, env->random(env->ctx), env->random(env->ctx) >> 1, 0, partition, factor, ret);
    } else if (placement_infer(p, first->id, first->n, &start, &shift)) {
        placement_replicas(p, start, shift, 0, partition, factor, ret);
    } else {
        start = placement_start_for_added(p, first->n > 0 ? first->id[0] : 0);
        placement_replicas(p, start, start, partition, partition, factor, ret);
    }
}

int topic_value_place(const struct topic_value_env *env, const struct topic_assignment *a, int64_t factor,
        const struct placement_broker *brokers, size_t n_brokers, struct broker_ids **ret, char **ret_why)
{
    const struct partition_assignment *zero = topic_assignment_find(a, 0);
    const struct broker_ids *first = zero && zero->replicas->n > 0 ? zero->replicas : NULL;
    if (first)
        factor = first->n;
    if (factor < 1 || (uint64_t)factor > n_brokers)
        return refuse(EAGAIN, ret_why, "replication factor %" PRId64 " is larger than the number of live brokers, %zu",
                factor, n_brokers);
    int32_t rackless;
    struct placement *p = placement_new(brokers, n_brokers, &rackless);
    if (!p)
        return refuse(EINVAL, ret_why, "not all live brokers have a rack: broker %" PRId32 " has none", rackless);
    g_autofree int32_t *ids = g_new(int32_t, (size_t)factor);
    place(env, p, first, (int32_t)a->partitions->len, (size_t)factor, ids);
    placement_free(p);
    *ret = broker_ids_new(ids, (size_t)factor);
    return 0;
}

struct bytes *topic_value_grown(const struct bytes *stored, struct topic_assignment *a, struct broker_ids *replicas)
{
    int32_t partition = (int32_t)a->partitions->len;
    cJSON *doc = stored ? json_parse(stored->data, stored->len, NULL) : NULL;
    cJSON *partitions = cJSON_GetObjectItemCaseSensitive(doc, "partitions");
    struct bytes *grown;
    if (partitions) {
        char name[16];
        g_snprintf(name, sizeof(name), "%" PRId32, partition);
        cJSON_AddItemToObject(partitions, name, ids_item(replicas));
        grown = document_print(doc);
    } else {
        topic_assignment_add(a, partition, broker_ids_ref(replicas), NULL, NULL);
        grown = topic_assignment_encode(a);
    }
    cJSON_Delete(doc);
    return grown;
}
