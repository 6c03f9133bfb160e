/* kafka.zk.BrokerIdZNode. */
#include "controller/json/json.h"

#include <string.h>

struct broker_registration *broker_registration_free(struct broker_registration *b)
{
    if (b == NULL)
        return NULL;
    broker_endpoints_free(b->endpoints, b->n_endpoints);
    g_free(b->rack);
    g_free(b);
    return NULL;
}

/* ---- reading ---- */

/* LISTENER://host:port, where an IPv6 address stands in brackets. */
static bool parse_endpoint(const char *text, struct broker_endpoint *ret)
{
    const char *separator = strstr(text, "://"), *colon = strrchr(text, ':');
    int64_t port;
    if (separator == NULL || separator == text || colon == separator ||
            !json_decimal(colon + 1, strlen(colon + 1), -1, 65535, &port))
        return false;
    const char *host = separator + 3, *host_end = colon;
    if (*host == '[') {
        if (host_end[-1] != ']')
            return false;
        host++;
        host_end--;
    }
    ret->listener = g_strndup(text, (gsize)(separator - text));
    ret->host = g_strndup(host, (gsize)(host_end - host));
    ret->port = (int32_t)port;
    return true;
}

/* Without a map (versions 2 and 3) the listener's name is the protocol's too. */
static bool decode_protocol(const cJSON *map, struct broker_endpoint *e, char **ret_why)
{
    const cJSON *protocol = cJSON_GetObjectItemCaseSensitive(map, e->listener);
    if (map != NULL && !cJSON_IsString(protocol))
        return json_fail(ret_why, "\"listener_security_protocol_map\" does not name %s", json_clip(e->listener));
    e->security_protocol = g_strdup(map != NULL ? protocol->valuestring : e->listener);
    return true;
}

static bool decode_endpoints(const cJSON *root, struct broker_registration *b, char **ret_why)
{
    const cJSON *list, *map = cJSON_GetObjectItemCaseSensitive(root, "listener_security_protocol_map");
    if (!json_field_array(root, "endpoints", &list, ret_why))
        return false;
    if (map != NULL && !cJSON_IsObject(map))
        return json_fail(ret_why, "\"listener_security_protocol_map\" is not an object");
    b->endpoints = g_new0(struct broker_endpoint, (gsize)cJSON_GetArraySize(list));
    for (const cJSON *e = list->child; e != NULL; e = e->next) {
        struct broker_endpoint *endpoint = &b->endpoints[b->n_endpoints];
        if (!cJSON_IsString(e) || !parse_endpoint(e->valuestring, endpoint))
            return json_fail(ret_why, "\"endpoints\": entry %zu is not LISTENER://host:port", b->n_endpoints + 1);
        b->n_endpoints++;
        if (!decode_protocol(map, endpoint, ret_why))
            return false;
    }
    return true;
}

/* Version 1: host and port alone, spoken to in plain text. */
static bool decode_host_and_port(const cJSON *root, struct broker_registration *b, char **ret_why)
{
    const char *host;
    int32_t port;
    if (!json_field_string(root, "host", &host, ret_why) || !json_field_int32(root, "port", &port, ret_why))
        return false;
    b->endpoints = g_new0(struct broker_endpoint, 1);
    b->n_endpoints = 1;
    b->endpoints[0] = (struct broker_endpoint){
            .listener = g_strdup("PLAINTEXT"),
            .host = g_strdup(host),
            .security_protocol = g_strdup("PLAINTEXT"),
            .port = port,
    };
    return true;
}

static bool decode_timestamp(const cJSON *item, int64_t *ret, char **ret_why)
{
    if (item == NULL || json_integer(item, 0, INT64_MAX, ret))
        return true;
    if (!cJSON_IsString(item) || !json_decimal(item->valuestring, strlen(item->valuestring), INT64_MIN, INT64_MAX, ret))
        return json_fail(ret_why, "\"timestamp\" is not a number in quotes");
    return true;
}

static bool decode_object(const cJSON *root, struct broker_registration *b, char **ret_why)
{
    const cJSON *rack = cJSON_GetObjectItemCaseSensitive(root, "rack");
    int32_t version;
    if (!json_field_int32(root, "version", &version, ret_why))
        return false;
    if (version < 1)
        return json_fail(ret_why, "\"version\" %d is below 1", version);
    b->version = version;
    b->jmx_port = -1;
    if (cJSON_GetObjectItemCaseSensitive(root, "jmx_port") != NULL &&
            !json_field_int32(root, "jmx_port", &b->jmx_port, ret_why))
        return false;
    if (!decode_timestamp(cJSON_GetObjectItemCaseSensitive(root, "timestamp"), &b->timestamp_ms, ret_why))
        return false;
    if (rack != NULL && !cJSON_IsNull(rack) && !cJSON_IsString(rack))
        return json_fail(ret_why, "\"rack\" is not a string");
    b->rack = rack != NULL ? g_strdup(rack->valuestring) : NULL;
    return version == 1 ? decode_host_and_port(root, b, ret_why) : decode_endpoints(root, b, ret_why);
}

bool broker_registration_decode(const struct bytes *data, struct broker_registration **ret, char **ret_why)
{
    cJSON *root = json_document(data, ret_why);
    if (root == NULL)
        return false;
    struct broker_registration *b = g_new0(struct broker_registration, 1);
    bool good = decode_object(root, b, ret_why);
    cJSON_Delete(root);
    if (good)
        *ret = b;
    else
        broker_registration_free(b);
    return good;
}

/* ---- writing ---- */

static void append_protocol_map(GString *out, const struct broker_registration *b)
{
    g_string_append(out, "\"listener_security_protocol_map\":{");
    for (size_t i = 0; i < b->n_endpoints; i++) {
        if (i > 0)
            g_string_append_c(out, ',');
        json_append_string(out, b->endpoints[i].listener);
        g_string_append_c(out, ':');
        json_append_string(out, b->endpoints[i].security_protocol);
    }
    g_string_append(out, "},");
}

static void append_endpoints(GString *out, const struct broker_registration *b)
{
    g_string_append(out, "\"endpoints\":[");
    for (size_t i = 0; i < b->n_endpoints; i++) {
        const struct broker_endpoint *e = &b->endpoints[i];
        bool ipv6 = strchr(e->host, ':') != NULL;
        g_autofree char *text = g_strdup_printf(ipv6 ? "%s://[%s]:%d" : "%s://%s:%d", e->listener, e->host, e->port);
        if (i > 0)
            g_string_append_c(out, ',');
        json_append_string(out, text);
    }
    g_string_append(out, "],");
}

/* `host` and `port` repeat the first endpoint in plain text, for readers of version 1. */
static const struct broker_endpoint *plain_endpoint(const struct broker_registration *b)
{
    for (size_t i = 0; i < b->n_endpoints; i++)
        if (strcmp(b->endpoints[i].security_protocol, "PLAINTEXT") == 0)
            return &b->endpoints[i];
    return NULL;
}

struct bytes *broker_registration_encode(const struct broker_registration *b)
{
    GString *out = g_string_new("{");
    const struct broker_endpoint *plain = plain_endpoint(b);
    if (b->version >= 5)
        g_string_append(out, "\"features\":{},");
    if (b->version >= 4)
        append_protocol_map(out, b);
    if (b->version >= 2)
        append_endpoints(out, b);
    if (b->version >= 3 && b->rack != NULL) {
        g_string_append(out, "\"rack\":");
        json_append_string(out, b->rack);
        g_string_append_c(out, ',');
    }
    g_string_append_printf(out, "\"jmx_port\":%d,\"port\":%d,\"host\":", b->jmx_port, plain != NULL ? plain->port : -1);
    if (plain != NULL)
        json_append_string(out, plain->host);
    else
        g_string_append(out, "null");
    g_string_append_printf(out, ",\"version\":%d,\"timestamp\":\"%" G_GINT64_FORMAT "\"}", b->version, b->timestamp_ms);
    return json_take(out);
}
