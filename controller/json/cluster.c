/* kafka.zk.ControllerZNode, ControllerEpochZNode, ClusterIdZNode, ProducerIdBlockZNode and FeatureZNode. */
#include "controller/json/json.h"

#include <string.h>

bool controller_znode_decode(const struct bytes *data, int32_t *ret_broker_id, char **ret_why)
{
    cJSON *root = json_document(data, ret_why);
    bool good = root != NULL && json_field_int32(root, "brokerid", ret_broker_id, ret_why);
    cJSON_Delete(root);
    return good;
}

struct bytes *controller_znode_encode(int32_t broker_id, int64_t timestamp_ms)
{
    GString *out = g_string_new(NULL);
    g_string_printf(out,
            "{\"version\":2,\"brokerid\":%d,\"timestamp\":\"%" G_GINT64_FORMAT "\",\"kraftControllerEpoch\":-1}",
            broker_id, timestamp_ms);
    return json_take(out);
}

bool controller_epoch_decode(const struct bytes *data, int32_t *ret_epoch, char **ret_why)
{
    int64_t epoch;
    if (data == NULL || data->len == 0)
        return json_fail(ret_why, data == NULL ? "no data" : "empty data");
    if (!json_decimal(data->data, data->len, 0, INT32_MAX, &epoch))
        return json_fail(ret_why, "not a number from 0 to %d", INT32_MAX);
    *ret_epoch = (int32_t)epoch;
    return true;
}

struct bytes *controller_epoch_encode(int32_t epoch)
{
    GString *out = g_string_new(NULL);
    json_append_int(out, epoch);
    return json_take(out);
}

bool cluster_id_decode(const struct bytes *data, char **ret_id, char **ret_why)
{
    const char *id;
    cJSON *root = json_document(data, ret_why);
    bool good = root != NULL && json_field_string(root, "id", &id, ret_why);
    if (good && *id == '\0')
        good = json_fail(ret_why, "\"id\" is empty");
    if (good)
        *ret_id = g_strdup(id);
    cJSON_Delete(root);
    return good;
}

struct bytes *cluster_id_encode(const char *id)
{
    GString *out = g_string_new("{\"version\":\"1\",\"id\":");
    json_append_string(out, id);
    g_string_append_c(out, '}');
    return json_take(out);
}

/* 64-bit numbers in quotes. */
static bool decode_block_field(const cJSON *root, const char *key, int64_t *ret, char **ret_why)
{
    const char *text;
    if (!json_field_string(root, key, &text, ret_why))
        return false;
    if (!json_decimal(text, strlen(text), 0, INT64_MAX, ret))
        return json_fail(ret_why, "\"%s\" is not a number from 0 to %" G_GINT64_FORMAT, key, INT64_MAX);
    return true;
}

bool producer_id_block_decode(const struct bytes *data, int64_t *ret_start, int64_t *ret_end, char **ret_why)
{
    int64_t start, end;
    cJSON *root = json_document(data, ret_why);
    bool good = root != NULL && decode_block_field(root, "block_start", &start, ret_why) &&
                decode_block_field(root, "block_end", &end, ret_why);
    cJSON_Delete(root);
    if (good && start > end)
        good = json_fail(ret_why, "\"block_start\" is above \"block_end\"");
    if (good) {
        *ret_start = start;
        *ret_end = end;
    }
    return good;
}

bool producer_id_block_next(const struct bytes *data, int64_t len, int64_t *ret_start, char **ret_why)
{
    int64_t start, end = -1;
    if (data && data->len && !producer_id_block_decode(data, &start, &end, ret_why))
        return false;
    if (end > INT64_MAX - 1 - len)
        return json_fail(ret_why, "all producer ids have been given out");
    *ret_start = end + 1;
    return true;
}

struct bytes *producer_id_block_encode(int32_t broker_id, int64_t start, int64_t end)
{
    GString *out = g_string_new(NULL);
    g_string_printf(out,
            "{\"version\":1,\"broker\":%d,\"block_start\":\"%" G_GINT64_FORMAT "\",\"block_end\":\"%" G_GINT64_FORMAT
            "\"}",
            broker_id, start, end);
    return json_take(out);
}

bool feature_decode(const struct bytes *data, int *ret_version, int *ret_status, char **ret_why)
{
    int32_t version, status;
    cJSON *root = json_document(data, ret_why);
    bool good = root != NULL && json_field_int32(root, "version", &version, ret_why) &&
                json_field_int32(root, "status", &status, ret_why);
    cJSON_Delete(root);
    if (good && (version < 1 || version > 2))
        good = json_fail(ret_why, "\"version\" %d is neither 1 nor 2", version);
    if (good && (status < 0 || status > 1))
        good = json_fail(ret_why, "\"status\" %d is neither 0 nor 1", status);
    if (good) {
        *ret_version = version;
        *ret_status = status;
    }
    return good;
}

struct bytes *feature_encode(int version, int status)
{
    GString *out = g_string_new(NULL);
    g_string_printf(out, "{\"features\":{},\"version\":%d,\"status\":%d}", version, status);
    return json_take(out);
}
