#include "controller/policy/values.h"
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include "controller/json/codec.h"

#define SHOWN_MAX 60

bool bad_value(char **ret_why, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    *ret_why = g_strdup_vprintf(fmt, args);
    va_end(args);
    return false;
}

char *shown_text(const char *text)
{
    size_t len = strlen(text);
    if (len <= SHOWN_MAX)
        return g_strdup(text);
    const char *end = g_utf8_find_prev_char(text, text + SHOWN_MAX + 1);
    return g_strdup_printf("%.*s...", (int)(end - text), text);
}

char *shown_item(const cJSON *item)
{
    char *text = cJSON_PrintUnformatted(item);
    char *shown = shown_text(text);
    cJSON_free(text);
    return shown;
}

bool parse_id(const char *text, int32_t *ret)
{
    size_t len = strlen(text);
    if (len == 0 || len > 10 || strspn(text, "0123456789") != len || (text[0] == '0' && len > 1))
        return false;
    int64_t value = g_ascii_strtoll(text, NULL, 10);
    if (value > INT32_MAX)
        return false;
    *ret = (int32_t)value;
    return true;
}

bool check_object(const cJSON *doc, char **ret_why)
{
    if (cJSON_IsObject(doc))
        return true;
    g_autofree char *shown = shown_item(doc);
    return bad_value(ret_why, "%s is not a JSON object", shown);
}

bool check_version(const cJSON *doc, int max, bool required, char **ret_why)
{
    const cJSON *version = cJSON_GetObjectItemCaseSensitive(doc, "version");
    int64_t value;
    if (!version && !required)
        return true;
    if (!version)
        return bad_value(ret_why, "version is missing");
    if (json_integer(version, 1, max, &value))
        return true;
    g_autofree char *shown = shown_item(version);
    if (max == 1)
        return bad_value(ret_why, "version: %s is not 1", shown);
    return bad_value(ret_why, "version: %s is not one of 1 to %d", shown, max);
}

bool check_int(const cJSON *object, const char *where, const char *key, int64_t min, int64_t max, char **ret_why)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    int64_t value;
    if (!item)
        return bad_value(ret_why, "%s%s is missing", where, key);
    if (json_integer(item, min, max, &value))
        return true;
    g_autofree char *shown = shown_item(item);
    return bad_value(ret_why, "%s%s: %s is not an integer from %" PRId64 " to %" PRId64, where, key, shown, min, max);
}

bool check_string(const cJSON *object, const char *where, const char *key, char **ret_why)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!item)
        return bad_value(ret_why, "%s%s is missing", where, key);
    if (cJSON_IsString(item))
        return true;
    g_autofree char *shown = shown_item(item);
    return bad_value(ret_why, "%s%s: %s is not a string", where, key, shown);
}

static int compare_ids(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

bool check_broker_ids(const cJSON *list, const char *where, bool may_be_empty, GArray **ret_sorted, char **ret_why)
{
    if (!cJSON_IsArray(list)) {
        g_autofree char *shown = shown_item(list);
        return bad_value(ret_why, "%s: %s is not a list of broker ids", where, shown);
    }
    g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(int32_t));
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        int64_t id;
        if (!json_integer(item, 0, INT32_MAX, &id)) {
            g_autofree char *shown = shown_item(item);
            return bad_value(ret_why, "%s[%u]: %s is not a broker id (an integer from 0)", where, ids->len, shown);
        }
        int32_t id32 = (int32_t)id;
        g_array_append_val(ids, id32);
    }
    if (ids->len == 0 && !may_be_empty)
        return bad_value(ret_why, "%s: the list is empty", where);
    g_array_sort(ids, compare_ids);
    for (guint i = 1; i < ids->len; i++) {
        int32_t id = g_array_index(ids, int32_t, i);
        if (id == g_array_index(ids, int32_t, i - 1))
            return bad_value(ret_why, "%s: broker %" PRId32 " is repeated", where, id);
    }
    if (ret_sorted)
        *ret_sorted = g_steal_pointer(&ids);
    return true;
}

/* ---- topics ---- */

static bool contains_id(GArray *sorted, int32_t id)
{
    return g_array_binary_search(sorted, &id, compare_ids, NULL);
}

/* Every id of `list`, which is sorted, is in `replicas`. */
static bool check_part_of(GArray *list, const cJSON *replicas, const char *where, char **ret_why)
{
    g_autoptr(GArray) all = NULL;
    if (!check_broker_ids(replicas, where, /* may_be_empty= */ false, &all, ret_why))
        return false;
    for (guint i = 0; i < list->len; i++) {
        int32_t id = g_array_index(list, int32_t, i);
        if (!contains_id(all, id))
            return bad_value(ret_why, "%s: broker %" PRId32 " is not among the partition's replicas", where, id);
    }
    return true;
}

/* adding_replicas, removing_replicas: of partitions that exist, and part of their replicas. `by_name`: the lists of
 * "partitions" by their keys. */
static bool check_moving(const cJSON *doc, const char *key, GHashTable *by_name, char **ret_why)
{
    const cJSON *moving = cJSON_GetObjectItemCaseSensitive(doc, key), *list;
    if (!moving)
        return true;
    if (!cJSON_IsObject(moving)) {
        g_autofree char *shown = shown_item(moving);
        return bad_value(ret_why, "%s: %s is not an object of partitions", key, shown);
    }
    cJSON_ArrayForEach(list, moving)
    {
        g_autofree char *name = shown_text(list->string), *where = g_strdup_printf("%s[\"%s\"]", key, name);
        const cJSON *replicas = g_hash_table_lookup(by_name, list->string);
        g_autoptr(GArray) ids = NULL;
        if (!replicas)
            return bad_value(ret_why, "%s: there is no such partition in this value", where);
        if (!check_broker_ids(list, where, /* may_be_empty= */ true, &ids, ret_why) ||
                !check_part_of(ids, replicas, where, ret_why))
            return false;
    }
    return true;
}

/* Fills `by_name` with the lists by their keys. */
static bool check_partitions(const cJSON *partitions, GHashTable *by_name, char **ret_why)
{
    const cJSON *list;
    if (!partitions)
        return bad_value(ret_why, "partitions is missing");
    if (!cJSON_IsObject(partitions)) {
        g_autofree char *shown = shown_item(partitions);
        return bad_value(ret_why, "partitions: %s is not an object of partitions", shown);
    }
    cJSON_ArrayForEach(list, partitions)
    {
        int32_t id;
        g_autofree char *name = shown_text(list->string), *where = g_strdup_printf("partitions[\"%s\"]", name);
        if (!parse_id(list->string, &id))
            return bad_value(ret_why, "%s: \"%s\" is not a partition number", where, name);
        if (!check_broker_ids(list, where, /* may_be_empty= */ false, NULL, ret_why))
            return false;
        g_hash_table_insert(by_name, list->string, (gpointer)list);
    }
    return true;
}

bool check_topic(const cJSON *doc, char **ret_why)
{
    if (!check_object(doc, ret_why) || !check_version(doc, 3, /* required= */ false, ret_why))
        return false;
    g_autoptr(GHashTable) by_name = g_hash_table_new(g_str_hash, g_str_equal);
    if (!check_partitions(cJSON_GetObjectItemCaseSensitive(doc, "partitions"), by_name, ret_why) ||
            !check_moving(doc, "adding_replicas", by_name, ret_why) ||
            !check_moving(doc, "removing_replicas", by_name, ret_why))
        return false;
    const cJSON *id = cJSON_GetObjectItemCaseSensitive(doc, "topic_id");
    if (!id || (cJSON_IsString(id) && uuid_valid(id->valuestring)))
        return true;
    g_autofree char *shown = shown_item(id);
    return bad_value(ret_why, "topic_id: %s is not a topic id (22 characters of URL-safe base64)", shown);
}

bool check_partition_state(const cJSON *doc, char **ret_why)
{
    if (!check_object(doc, ret_why) || !check_version(doc, 1, /* required= */ false, ret_why) ||
            !check_int(doc, "", "leader", -1, INT32_MAX, ret_why) ||
            !check_int(doc, "", "leader_epoch", 0, INT32_MAX, ret_why) ||
            !check_int(doc, "", "controller_epoch", 0, INT32_MAX, ret_why))
        return false;
    const cJSON *isr = cJSON_GetObjectItemCaseSensitive(doc, "isr");
    if (!isr)
        return bad_value(ret_why, "isr is missing");
    g_autoptr(GArray) members = NULL;
    if (!check_broker_ids(isr, "isr", /* may_be_empty= */ false, &members, ret_why))
        return false;
    int32_t leader = (int32_t)cJSON_GetObjectItemCaseSensitive(doc, "leader")->valuedouble;
    if (leader >= 0 && !contains_id(members, leader))
        return bad_value(ret_why, "leader: broker %" PRId32 " is not in the isr", leader);
    return !cJSON_GetObjectItemCaseSensitive(doc, "leader_recovery_state") ||
           check_int(doc, "", "leader_recovery_state", 0, 1, ret_why);
}

/* ---- lists of partitions ---- */

/* `entries[i]` has a topic and a partition that no earlier one has. */
static bool check_entry(const cJSON *entry, int i, GHashTable *seen, char **ret_why)
{
    char where[32];
    g_snprintf(where, sizeof(where), "partitions[%d].", i);
    if (!cJSON_IsObject(entry)) {
        g_autofree char *shown = shown_item(entry);
        return bad_value(ret_why, "partitions[%d]: %s is not an object", i, shown);
    }
    if (!check_string(entry, where, "topic", ret_why) || !check_int(entry, where, "partition", 0, INT32_MAX, ret_why))
        return false;
    const char *topic = cJSON_GetObjectItemCaseSensitive(entry, "topic")->valuestring;
    const char *bad_name = topic_name_why_bad(topic);
    if (bad_name) {
        g_autofree char *shown = shown_text(topic);
        return bad_value(ret_why, "%stopic: \"%s\": %s", where, shown, bad_name);
    }
    int partition = (int)cJSON_GetObjectItemCaseSensitive(entry, "partition")->valuedouble;
    if (!g_hash_table_add(seen, g_strdup_printf("%s-%d", topic, partition)))
        return bad_value(ret_why, "partitions[%d]: partition %d of topic %s is there twice", i, partition, topic);
    return true;
}

static bool check_entries(const cJSON *doc, bool with_replicas, char **ret_why)
{
    if (!check_object(doc, ret_why) || !check_version(doc, 1, /* required= */ false, ret_why))
        return false;
    const cJSON *entries = cJSON_GetObjectItemCaseSensitive(doc, "partitions"), *entry;
    if (!entries)
        return bad_value(ret_why, "partitions is missing");
    if (!cJSON_IsArray(entries)) {
        g_autofree char *shown = shown_item(entries);
        return bad_value(ret_why, "partitions: %s is not a list", shown);
    }
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    int i = 0;
    cJSON_ArrayForEach(entry, entries)
    {
        if (!check_entry(entry, i, seen, ret_why))
            return false;
        const cJSON *replicas = cJSON_GetObjectItemCaseSensitive(entry, "replicas");
        char where[48];
        g_snprintf(where, sizeof(where), "partitions[%d].replicas", i);
        if (with_replicas && !replicas)
            return bad_value(ret_why, "%s is missing", where);
        if (with_replicas && !check_broker_ids(replicas, where, /* may_be_empty= */ false, NULL, ret_why))
            return false;
        i++;
    }
    if (i == 0)
        return bad_value(ret_why, "partitions: the list is empty");
    return true;
}

bool check_reassignment(const cJSON *doc, char **ret_why)
{
    return check_entries(doc, /* with_replicas= */ true, ret_why);
}

bool check_partition_list(const cJSON *doc, char **ret_why)
{
    return check_entries(doc, /* with_replicas= */ false, ret_why);
}
