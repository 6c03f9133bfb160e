#include <errno.h>
#include "controller/config/internal.h"
#include "controller/config/value.h"
#include "controller/json/codec.h"

enum { MAX_COMPLAINTS = 40 };

static int on_notification(void *arg, const char *path, bool just_read, char **ret_why);

static void free_map(void *map)
{
    g_hash_table_unref(map);
}

/* What a broker knows before it has read anything. */
static void make_empty(struct config_manager *m)
{
    m->broker = dynamic_broker_new(m->config);
    m->topics = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, topic_state_free);
    m->throttles = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, topic_throttle_free);
    m->entities = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_map);
    m->quotas = quota_table_new();
    m->listener = notification_listener_new(&m->env, m->config->broker_id, m->change_expiry_ms, on_notification, m);
    m->running = false;
}

static void drop_all(struct config_manager *m)
{
    notification_listener_free(m->listener);
    quota_table_free(m->quotas);
    g_hash_table_unref(m->entities);
    g_hash_table_unref(m->throttles);
    g_hash_table_unref(m->topics);
    dynamic_broker_free(m->broker);
}

struct config_manager *config_manager_new(
        const struct broker_config *config, int64_t change_expiry_ms, const struct config_manager_env *env)
{
    struct config_manager *m = g_new0(struct config_manager, 1);
    m->config = config;
    m->change_expiry_ms = change_expiry_ms;
    m->env = *env;
    make_empty(m);
    return m;
}

void config_manager_free(struct config_manager *m)
{
    if (!m)
        return;
    drop_all(m);
    g_free(m);
}

/* ---- what the handlers share ---- */

void manager_complain(struct config_manager *m, int err, const char *path, const char *what)
{
    g_autofree char *znode = g_strconcat("/config/", path, NULL);
    m->env.error(m->env.ctx, err, znode, "broker %d: %s", m->config->broker_id, what);
}

void manager_complain_all(struct config_manager *m, int err, const char *path, GPtrArray *what)
{
    for (guint i = 0; i < what->len && i < MAX_COMPLAINTS; i++)
        manager_complain(m, err, path, what->pdata[i]);
    if (what->len > MAX_COMPLAINTS) {
        g_autofree char *rest = g_strdup_printf("and %u more", what->len - MAX_COMPLAINTS);
        manager_complain(m, err, path, rest);
    }
}

void manager_changed(struct config_manager *m, const char *path, const char *key, char *old, char *now)
{
    g_autofree char *before = old, *after = now;
    if (!m->running || g_strcmp0(before, after) == 0)
        return;
    g_autofree char *k = config_clip(key), *b = config_clip(before ? before : "none"),
                    *a = config_clip(after ? after : "none");
    m->env.event(m->env.ctx, "broker %d config %s %s=%s (was %s)", m->config->broker_id, path, k, a, b);
}

int64_t manager_topic_czxid(struct config_manager *m, const char *topic)
{
    g_autofree char *path = g_strconcat("/brokers/topics/", topic, NULL);
    struct zstat stat;
    return m->env.get(m->env.ctx, path, NULL, &stat) == ZOK ? stat.czxid : 0;
}

int64_t manager_topic_mzxid(struct config_manager *m, const char *topic)
{
    g_autofree char *path = g_strconcat("/config/topics/", topic, NULL);
    struct zstat stat;
    return m->env.get(m->env.ctx, path, NULL, &stat) == ZOK ? stat.mzxid : 0;
}

/* No JSON, or no object: Kafka reads it as no configuration. */
static bool is_object(const struct bytes *data, char **ret_why)
{
    cJSON *root = json_parse(data->data, data->len, ret_why);
    bool object = cJSON_IsObject(root);
    if (root && !object)
        *ret_why = g_strdup("it is no JSON object");
    cJSON_Delete(root);
    return object;
}

bool manager_read(struct config_manager *m, const char *path, GHashTable **ret)
{
    g_autofree char *znode = g_strconcat("/config/", path, NULL), *why = NULL;
    struct bytes *data = NULL;
    bool good = true;
    int rc = m->env.get(m->env.ctx, znode, &data, NULL);
    if (rc != ZOK || !data || data->len == 0) {
        *ret = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    } else if (!is_object(data, &why)) {
        g_autofree char *what = g_strconcat("read as no configuration: ", why, NULL);
        manager_complain(m, EINVAL, path, what);
        *ret = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    } else if (!config_entity_decode(data, ret, &why)) {
        manager_complain(m, EINVAL, path, why);
        good = false;
    }
    bytes_unref(data);
    return good;
}

/* ---- start, notifications, replicas ---- */

static void apply(struct config_manager *m, const struct config_entity *e, bool start)
{
    switch (e->kind) {
    case ENTITY_TOPIC:
        topic_handler_apply(m, e, start);
        break;
    case ENTITY_BROKER:
        broker_handler_apply(m, e, start);
        break;
    default:
        quota_handler_apply(m, e, start);
        break;
    }
}

static int on_notification(void *arg, const char *path, bool just_read, char **ret_why)
{
    struct config_entity e = {0};
    int r = config_entity_parse(path, &e, ret_why);
    if (r < 0)
        return r;
    if (!just_read)
        apply(arg, &e, /* start= */ false);
    config_entity_clear(&e);
    return 0;
}

static void start_entity(struct config_manager *m, const char *path)
{
    struct config_entity e = {0};
    g_autofree char *why = NULL;
    if (config_entity_parse(path, &e, &why) < 0) {
        manager_complain(m, EINVAL, path, why);
        return;
    }
    apply(m, &e, /* start= */ true);
    config_entity_clear(&e);
}

static void start_children(struct config_manager *m, const char *path)
{
    g_autofree char *znode = g_strconcat("/config/", path, NULL);
    g_autoptr(GPtrArray) names = m->env.children(m->env.ctx, znode);
    for (guint i = 0; names && i < names->len; i++) {
        g_autofree char *child = g_strconcat(path, "/", names->pdata[i], NULL);
        start_entity(m, child);
    }
}

/* All topics, those without a configuration too: a log that is on disk already has what is read now. */
static void start_topics(struct config_manager *m)
{
    g_autoptr(GPtrArray) topics = m->env.children(m->env.ctx, "/brokers/topics");
    start_children(m, "topics");
    for (guint i = 0; topics && i < topics->len; i++) {
        g_autofree char *path = g_strconcat("topics/", topics->pdata[i], NULL);
        if (!g_hash_table_contains(m->topics, topics->pdata[i]))
            start_entity(m, path);
    }
}

static void start_pairs(struct config_manager *m)
{
    g_autoptr(GPtrArray) users = m->env.children(m->env.ctx, "/config/users");
    for (guint i = 0; users && i < users->len; i++) {
        g_autofree char *clients = g_strconcat("users/", users->pdata[i], "/clients", NULL);
        start_children(m, clients);
    }
}

void config_manager_startup(struct config_manager *m)
{
    drop_all(m);
    make_empty(m);
    g_autofree char *own = g_strdup_printf("brokers/%d", m->config->broker_id);
    start_entity(m, "brokers/" ENTITY_DEFAULT);
    start_entity(m, own);
    start_topics(m);
    static const char *const types[] = {"clients", "users", "ips"};
    for (size_t i = 0; i < G_N_ELEMENTS(types); i++)
        start_children(m, types[i]);
    start_pairs(m);
    notification_listener_pass(m->listener, /* replay= */ true);
    m->running = true;
}

void config_manager_changes(struct config_manager *m)
{
    notification_listener_pass(m->listener, /* replay= */ false);
}

void config_manager_change_created(struct config_manager *m, const char *name)
{
    notification_listener_created(m->listener, name);
}
