/* The values that brokers, configuration and security keep in the tree; topics and partitions are in values.c. */
#include <string.h>
#include "controller/json/codec.h"
#include "controller/policy/values.h"

/* A time in ms is a string in these, and any decimal in it. */
static bool check_decimal_string(const cJSON *doc, const char *key, char **ret_why)
{
    if (!check_string(doc, "", key, ret_why))
        return false;
    const char *text = cJSON_GetObjectItemCaseSensitive(doc, key)->valuestring;
    char *end;
    (void)g_ascii_strtoll(text, &end, 10);
    if (*text != '\0' && *end == '\0' && !g_ascii_isspace(*text))
        return true;
    g_autofree char *shown = shown_text(text);
    return bad_value(ret_why, "%s: \"%s\" is not a string of digits", key, shown);
}

bool check_controller(const cJSON *doc, char **ret_why)
{
    return check_object(doc, ret_why) && check_version(doc, 2, /* required= */ false, ret_why) &&
           check_int(doc, "", "brokerid", 0, INT32_MAX, ret_why) && check_decimal_string(doc, "timestamp", ret_why);
}

/* ---- brokers ---- */

/* LISTENER://host:port */
static bool is_endpoint(const char *text)
{
    const char *sep = strstr(text, "://"), *colon = strrchr(text, ':');
    int32_t port;
    return sep && sep > text && colon > sep && parse_id(colon + 1, &port) && port <= 65535;
}

static bool check_endpoints(const cJSON *doc, char **ret_why)
{
    const cJSON *endpoints = cJSON_GetObjectItemCaseSensitive(doc, "endpoints"), *item;
    if (!cJSON_IsArray(endpoints) || cJSON_GetArraySize(endpoints) == 0)
        return bad_value(ret_why, "endpoints is not a list with an endpoint in it");
    int i = 0;
    cJSON_ArrayForEach(item, endpoints)
    {
        if (!cJSON_IsString(item) || !is_endpoint(item->valuestring)) {
            g_autofree char *shown = shown_item(item);
            return bad_value(ret_why, "endpoints[%d]: %s is not LISTENER://host:port", i, shown);
        }
        i++;
    }
    return true;
}

bool check_registration(const cJSON *doc, char **ret_why)
{
    if (!check_object(doc, ret_why) || !check_version(doc, 5, /* required= */ true, ret_why))
        return false;
    const cJSON *host = cJSON_GetObjectItemCaseSensitive(doc, "host");
    const cJSON *rack = cJSON_GetObjectItemCaseSensitive(doc, "rack");
    const cJSON *map = cJSON_GetObjectItemCaseSensitive(doc, "listener_security_protocol_map");
    if (!cJSON_IsString(host) && !cJSON_IsNull(host))
        return bad_value(ret_why, "host is neither a string nor null");
    if (rack && !cJSON_IsString(rack))
        return bad_value(ret_why, "rack is not a string");
    if (map && !cJSON_IsObject(map))
        return bad_value(ret_why, "listener_security_protocol_map is not an object");
    if (!check_int(doc, "", "port", -1, 65535, ret_why))
        return false;
    return (int)cJSON_GetObjectItemCaseSensitive(doc, "version")->valuedouble == 1 || check_endpoints(doc, ret_why);
}

bool check_cluster_id(const cJSON *doc, char **ret_why)
{
    if (!check_object(doc, ret_why) || !check_string(doc, "", "version", ret_why) ||
            !check_string(doc, "", "id", ret_why))
        return false;
    if (*cJSON_GetObjectItemCaseSensitive(doc, "id")->valuestring == '\0')
        return bad_value(ret_why, "id is empty");
    return true;
}

bool check_log_dir_event(const cJSON *doc, char **ret_why)
{
    return check_object(doc, ret_why) && check_version(doc, 1, /* required= */ false, ret_why) &&
           check_int(doc, "", "broker", 0, INT32_MAX, ret_why) && check_int(doc, "", "event", 1, 1, ret_why);
}

bool check_producer_id_block(const cJSON *doc, char **ret_why)
{
    return check_object(doc, ret_why) && check_version(doc, 1, /* required= */ false, ret_why) &&
           check_int(doc, "", "broker", 0, INT32_MAX, ret_why) && check_decimal_string(doc, "block_start", ret_why) &&
           check_decimal_string(doc, "block_end", ret_why);
}

/* ---- configuration ---- */

/* A part of a document for a reason. */
static char *quoted(const cJSON *item, bool quote)
{
    return quote ? shown_item(item) : g_strdup("[hidden]");
}

bool check_config(const cJSON *doc, bool quote, char **ret_why)
{
    const cJSON *version = cJSON_GetObjectItemCaseSensitive(doc, "version"), *item;
    const cJSON *config = cJSON_GetObjectItemCaseSensitive(doc, "config");
    int64_t one;
    if (!cJSON_IsObject(doc)) {
        g_autofree char *shown = quoted(doc, quote);
        return bad_value(ret_why, "%s is not a JSON object", shown);
    }
    if (version && !json_integer(version, 1, 1, &one)) {
        g_autofree char *shown = quoted(version, quote);
        return bad_value(ret_why, "version: %s is not 1", shown);
    }
    if (!config)
        return true;
    if (!cJSON_IsObject(config)) {
        g_autofree char *shown = quoted(config, quote);
        return bad_value(ret_why, "config: %s is not an object", shown);
    }
    cJSON_ArrayForEach(item, config)
    {
        g_autofree char *key = shown_text(item->string);
        if (*key == '\0')
            return bad_value(ret_why, "config: a key is empty");
        if (!cJSON_IsString(item)) {
            g_autofree char *shown = quoted(item, quote);
            return bad_value(ret_why, "config.%s: %s is not a string (Kafka wants \"%s\")", key, shown, shown);
        }
    }
    return true;
}

/* "<type>/<name>", and for users also "users/<user>/clients/<client>" (ConfigEntityChangeNotification). */
static bool check_entity_path(const char *entity, char **ret_why)
{
    static const char *const types[] = {"topics", "clients", "users", "brokers", "ips", NULL};
    g_autofree char *shown = shown_text(entity);
    const char *slash = strchr(entity, '/');
    if (!slash || slash[1] == '\0')
        return bad_value(ret_why, "entity_path: \"%s\" is not <type>/<name>", shown);
    g_autofree char *type = g_strndup(entity, (size_t)(slash - entity));
    if (!g_strv_contains(types, type)) {
        g_autofree char *shown_type = shown_text(type);
        return bad_value(ret_why, "entity_path: \"%s\" is not one of topics, clients, users, brokers, ips", shown_type);
    }
    const char *name = slash + 1, *more = strchr(name, '/');
    if (!more)
        return true;
    if (strcmp(type, "users") == 0 && g_str_has_prefix(more, "/clients/") && more > name) {
        const char *client = more + strlen("/clients/");
        if (*client != '\0' && !strchr(client, '/'))
            return true;
    }
    return bad_value(ret_why, "entity_path: \"%s\" has too many parts", shown);
}

bool check_config_change(const cJSON *doc, char **ret_why)
{
    if (!check_object(doc, ret_why) || !check_version(doc, 2, /* required= */ true, ret_why))
        return false;
    if ((int)cJSON_GetObjectItemCaseSensitive(doc, "version")->valuedouble == 2)
        return check_string(doc, "", "entity_path", ret_why) &&
               check_entity_path(cJSON_GetObjectItemCaseSensitive(doc, "entity_path")->valuestring, ret_why);
    if (!check_string(doc, "", "entity_type", ret_why) || !check_string(doc, "", "entity_name", ret_why))
        return false;
    const char *type = cJSON_GetObjectItemCaseSensitive(doc, "entity_type")->valuestring;
    if (strcmp(type, "topics") != 0 && strcmp(type, "clients") != 0) {
        g_autofree char *shown = shown_text(type);
        return bad_value(ret_why, "entity_type: \"%s\" is not topics or clients (all that version 1 has)", shown);
    }
    if (*cJSON_GetObjectItemCaseSensitive(doc, "entity_name")->valuestring == '\0')
        return bad_value(ret_why, "entity_name is empty");
    return true;
}

bool check_feature(const cJSON *doc, char **ret_why)
{
    if (!check_object(doc, ret_why) || !check_version(doc, 2, /* required= */ true, ret_why) ||
            !check_int(doc, "", "status", 0, 1, ret_why))
        return false;
    const cJSON *features = cJSON_GetObjectItemCaseSensitive(doc, "features");
    if (!cJSON_IsObject(features))
        return bad_value(ret_why, "features is not an object");
    return true;
}

bool check_migration(const cJSON *doc, char **ret_why)
{
    return check_object(doc, ret_why) && check_int(doc, "", "version", 0, 0, ret_why);
}

/* ---- security ---- */

bool check_delegation_token(const cJSON *doc, char **ret_why)
{
    return check_object(doc, ret_why) && check_version(doc, 3, /* required= */ true, ret_why) &&
           check_string(doc, "", "owner", ret_why) && check_string(doc, "", "tokenId", ret_why) &&
           check_int(doc, "", "issueTimestamp", 0, INT64_MAX, ret_why) &&
           check_int(doc, "", "maxTimestamp", 0, INT64_MAX, ret_why) &&
           check_int(doc, "", "expiryTimestamp", 0, INT64_MAX, ret_why);
}

bool check_acl(const cJSON *doc, char **ret_why)
{
    static const char *const fields[] = {"principal", "permissionType", "operation", "host"};
    if (!check_object(doc, ret_why) || !check_version(doc, 1, /* required= */ true, ret_why))
        return false;
    const cJSON *acls = cJSON_GetObjectItemCaseSensitive(doc, "acls"), *acl;
    if (!cJSON_IsArray(acls))
        return bad_value(ret_why, "acls is not a list");
    int i = 0;
    cJSON_ArrayForEach(acl, acls)
    {
        char where[32];
        g_snprintf(where, sizeof(where), "acls[%d].", i++);
        for (size_t f = 0; f < G_N_ELEMENTS(fields); f++)
            if (!check_string(acl, where, fields[f], ret_why))
                return false;
    }
    return true;
}

bool check_extended_acl_change(const cJSON *doc, char **ret_why)
{
    return check_object(doc, ret_why) && check_version(doc, 1, /* required= */ true, ret_why) &&
           check_string(doc, "", "resourceType", ret_why) && check_string(doc, "", "name", ret_why) &&
           check_string(doc, "", "patternType", ret_why);
}

bool check_consumer(const cJSON *doc, char **ret_why)
{
    if (!check_object(doc, ret_why) || !check_version(doc, 1, /* required= */ false, ret_why))
        return false;
    if (!cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(doc, "subscription")))
        return bad_value(ret_why, "subscription is not an object of topics");
    return true;
}
