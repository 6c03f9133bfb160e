#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include "controller/config/dynamic_broker.h"
#include "controller/config/entity.h"
#include "controller/config/sanitizer.h"
#include "controller/config/value.h"
#include "fs/tree/path.h"

static const char *const type_names[] = {"topics", "clients", "users", NULL, "brokers", "ips"};

static int refuse(char **ret_why, const char *what, const char *text)
{
    if (ret_why) {
        g_autofree char *clipped = config_clip(text);
        *ret_why = g_strdup_printf("%s: %s", what, clipped);
    }
    return -EINVAL;
}

static bool decodable(const char *name)
{
    g_autofree char *canonical = sanitizer_canonical(name);
    return canonical != NULL;
}

/* An address, or what could be a host name: only a resolver can tell more. */
static bool host_valid(const char *name)
{
    struct in6_addr address;
    if (inet_pton(AF_INET, name, &address) == 1 || inet_pton(AF_INET6, name, &address) == 1)
        return true;
    size_t len = strlen(name);
    return len <= 253 && g_ascii_isalnum(name[0]) && g_ascii_isalnum(name[len - 1]) && !strstr(name, "..") &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") == len &&
           strspn(name, "0123456789.") != len;
}

static int check_name(const struct config_entity *e, char **ret_why)
{
    int64_t id;
    bool is_default = strcmp(e->name, ENTITY_DEFAULT) == 0;
    switch (e->kind) {
    case ENTITY_PAIR:
        if (!decodable(e->client))
            return refuse(ret_why, "a client's name has a % that is followed by no two hex digits", e->client);
        return decodable(e->name)
                       ? 0
                       : refuse(ret_why, "a user's name has a % that is followed by no two hex digits", e->name);
    case ENTITY_USER:
    case ENTITY_CLIENT:
        return decodable(e->name) ? 0
                                  : refuse(ret_why, "a name has a % that is followed by no two hex digits", e->name);
    case ENTITY_BROKER:
        return is_default || (config_parse_long(e->name, &id) && id >= 0 && id <= INT32_MAX)
                       ? 0
                       : refuse(ret_why, "a broker entity is <default> or a broker id", e->name);
    case ENTITY_IP:
        return is_default || host_valid(e->name)
                       ? 0
                       : refuse(ret_why, "an ip entity is <default>, an address or a host name", e->name);
    default:
        return 0;
    }
}

/* users/<u>/clients/<c>: 1 if it is such a pair, 0 if it is a user alone. */
static int split_user(struct config_entity *e, const char *rest, char **ret_why)
{
    g_auto(GStrv) parts = g_strsplit(rest, "/", 4);
    guint n = g_strv_length(parts);
    if (n == 1) {
        e->name = g_strdup(rest);
        return 0;
    }
    if (n != 3 || strcmp(parts[1], "clients") != 0)
        return refuse(ret_why, "a user entity is users/<user> or users/<user>/clients/<client>", e->path);
    e->kind = ENTITY_PAIR;
    e->name = g_strdup(parts[0]);
    e->client = g_strdup(parts[2]);
    return 0;
}

static int parse(const char *path, struct config_entity *e, char **ret_why)
{
    const char *slash = strchr(path, '/');
    g_autofree char *znode = g_strconcat("/config/", path, NULL), *type = NULL;
    if (!slash || !path_valid(znode))
        return refuse(ret_why, "an entity path is <type>/<name>", path);
    type = g_strndup(path, (size_t)(slash - path));
    for (e->kind = 0; e->kind < N_ENTITY_KINDS; e->kind++)
        if (type_names[e->kind] && strcmp(type_names[e->kind], type) == 0)
            break;
    if (e->kind == N_ENTITY_KINDS)
        return refuse(ret_why, "an entity type is topics, clients, users, brokers or ips", type);
    e->path = g_strdup(path);
    if (e->kind == ENTITY_USER) {
        int r = split_user(e, slash + 1, ret_why);
        return r < 0 ? r : check_name(e, ret_why);
    }
    if (strchr(slash + 1, '/'))
        return refuse(ret_why, "a name has no slash", path);
    e->name = g_strdup(slash + 1);
    return check_name(e, ret_why);
}

int config_entity_parse(const char *path, struct config_entity *ret, char **ret_why)
{
    struct config_entity e = {0};
    int r = parse(path, &e, ret_why);
    if (r < 0)
        config_entity_clear(&e);
    else
        *ret = e;
    return r;
}

void config_entity_clear(struct config_entity *e)
{
    g_free(e->path);
    g_free(e->name);
    g_free(e->client);
    *e = (struct config_entity){0};
}

const struct config_table *config_entity_table(enum entity_kind kind)
{
    switch (kind) {
    case ENTITY_TOPIC:
        return &config_table_topic;
    case ENTITY_CLIENT:
        return &config_table_quota_client;
    case ENTITY_USER:
    case ENTITY_PAIR:
        return &config_table_quota_user;
    case ENTITY_IP:
        return &config_table_quota_ip;
    default:
        return NULL;
    }
}

const struct config_def *config_entity_def(const struct config_entity *e, const char *key)
{
    const struct config_table *table = config_entity_table(e->kind);
    return table ? config_def_find(table, key) : config_def_broker(key);
}

bool config_entity_has_key(const struct config_entity *e, const char *key)
{
    const struct config_def *def = config_entity_def(e, key);
    if (!def)
        return false;
    return def->rule != RULE_SCRAM || (e->kind == ENTITY_USER && strcmp(e->name, ENTITY_DEFAULT) != 0);
}

int config_entity_parse_value(
        const struct config_entity *e, const char *key, const char *value, char **ret, char **ret_why)
{
    const struct config_def *def = config_entity_def(e, key);
    bool kept = e->kind == ENTITY_TOPIC || e->kind == ENTITY_BROKER; /* keys that Kafka does not know stay unused */
    if (!kept && !config_entity_has_key(e, key))
        return refuse(ret_why, def ? "Only a user has SCRAM credentials" : "Unknown configuration key", key);
    if (e->kind == ENTITY_BROKER && def && !dynamic_broker_key_allowed(key, /* per_broker= */ true, NULL))
        def = NULL; /* ignored by every broker, so it may be anything */
    if (!def) {
        if (ret)
            *ret = g_strdup(value);
        return 0;
    }
    return e->kind == ENTITY_BROKER ? dynamic_broker_parse_value(key, def, value, ret, ret_why)
                                    : config_value_parse(def, value, ret, ret_why);
}
