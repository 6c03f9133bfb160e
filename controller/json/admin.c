/* kafka.zk.ReassignPartitionsZNode, PreferredReplicaElectionZNode, IsrChangeNotificationSequenceZNode and
 * LogDirEventNotificationSequenceZNode. */
#include "controller/json/json.h"

static void entry_clear(gpointer item)
{
    struct reassignment_entry *e = item;
    g_free(e->topic);
    g_free(e->why);
    g_free(e->unknown);
    broker_ids_unref(e->replicas);
}

/* What no cluster could do; a wrong type, in contrast, makes Kafka refuse the whole value. */
static char *why_impossible(const struct reassignment_entry *e, bool with_replicas)
{
    const char *why = topic_name_why_bad(e->topic);
    if (why != NULL)
        return g_strdup(why);
    if (e->partition < 0)
        return g_strdup("a partition number must not be negative");
    if (!with_replicas)
        return NULL;
    if (e->replicas->n == 0)
        return g_strdup("the list of replicas is empty");
    for (uint32_t i = 0; i < e->replicas->n; i++) {
        int32_t id = e->replicas->id[i];
        if (id < 0)
            return g_strdup_printf("%d is not a broker id", id);
        for (uint32_t j = 0; j < i; j++)
            if (e->replicas->id[j] == id)
                return g_strdup_printf("broker %d is there twice", id);
    }
    return NULL;
}

static bool decode_entry(const cJSON *item, bool with_replicas, struct reassignment_entry *e, char **ret_why)
{
    const char *topic;
    if (!cJSON_IsObject(item))
        return json_fail(ret_why, "it is not an object");
    if (!json_field_string(item, "topic", &topic, ret_why) ||
            !json_field_int32(item, "partition", &e->partition, ret_why))
        return false;
    const cJSON *replicas = cJSON_GetObjectItemCaseSensitive(item, "replicas");
    if (with_replicas && replicas == NULL)
        return json_fail(ret_why, "\"replicas\" is missing");
    if (with_replicas && !json_broker_ids(replicas, "\"replicas\"", &e->replicas, ret_why))
        return false;
    e->topic = g_strdup(topic);
    e->why = why_impossible(e, with_replicas);
    if (with_replicas)
        e->unknown = json_unknown_members(item, (const char *[]){"topic", "partition", "replicas", NULL});
    return true;
}

static bool decode_entries(
        const struct bytes *data, bool with_replicas, GArray **ret, char **ret_unknown, char **ret_why)
{
    const cJSON *list;
    cJSON *root = json_document(data, ret_why);
    if (root == NULL)
        return false;
    GArray *entries = g_array_new(FALSE, TRUE, sizeof(struct reassignment_entry));
    g_array_set_clear_func(entries, entry_clear);
    bool good = json_field_array(root, "partitions", &list, ret_why);
    for (const cJSON *item = good ? list->child : NULL; good && item != NULL; item = item->next) {
        struct reassignment_entry e = {0};
        g_autofree char *why = NULL;
        good = decode_entry(item, with_replicas, &e, &why);
        if (good)
            g_array_append_val(entries, e);
        else
            json_fail(ret_why, "\"partitions\": entry %u: %s", entries->len + 1, why);
    }
    if (good)
        *ret = entries;
    else
        g_array_unref(entries);
    if (good && ret_unknown != NULL)
        *ret_unknown = json_unknown_members(root, (const char *[]){"version", "partitions", NULL});
    cJSON_Delete(root);
    return good;
}

static struct bytes *encode_entries(const GArray *entries, bool with_replicas, const char *unknown)
{
    GString *out = g_string_new("{\"version\":1,\"partitions\":[");
    for (guint i = 0; i < entries->len; i++) {
        const struct reassignment_entry *e = &g_array_index(entries, struct reassignment_entry, i);
        g_string_append(out, i > 0 ? ",{\"topic\":" : "{\"topic\":");
        json_append_string(out, e->topic);
        g_string_append(out, ",\"partition\":");
        json_append_int(out, e->partition);
        if (with_replicas) {
            g_string_append(out, ",\"replicas\":");
            json_append_ids(out, e->replicas);
        }
        g_string_append_printf(out, "%s}", e->unknown != NULL ? e->unknown : "");
    }
    g_string_append_printf(out, "]%s}", unknown != NULL ? unknown : "");
    return json_take(out);
}

bool reassignment_decode(const struct bytes *data, GArray **ret, char **ret_unknown, char **ret_why)
{
    return decode_entries(data, true, ret, ret_unknown, ret_why);
}

struct bytes *reassignment_encode(const GArray *entries, const char *unknown)
{
    return encode_entries(entries, true, unknown);
}

bool partition_list_decode(const struct bytes *data, GArray **ret, char **ret_why)
{
    return decode_entries(data, false, ret, NULL, ret_why);
}

struct bytes *partition_list_encode(const GArray *entries)
{
    return encode_entries(entries, false, NULL);
}

bool log_dir_event_decode(const struct bytes *data, int32_t *ret_broker_id, char **ret_why)
{
    cJSON *root = json_document(data, ret_why);
    bool good = root != NULL && json_field_int32(root, "broker", ret_broker_id, ret_why);
    cJSON_Delete(root);
    return good;
}

struct bytes *log_dir_event_encode(int32_t broker_id)
{
    GString *out = g_string_new(NULL);
    g_string_printf(out, "{\"version\":1,\"broker\":%d,\"event\":1}", broker_id); /* 1: a log dir failed */
    return json_take(out);
}
