/* What is in force, as text (`.state/brokers/B/config` and its neighbours). */
#include <string.h>
#include "controller/config/internal.h"

static int compare_strings(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* One line; control characters of a value or a custom key cannot make another one. */
static void add_line(GString *out, const char *key, const char *value)
{
    for (const char *part = key, *next = value; part; part = next, next = NULL) {
        for (const char *p = part; *p; p++)
            if (g_ascii_iscntrl(*p))
                g_string_append_printf(out, "\\x%02X", (unsigned char)*p);
            else
                g_string_append_c(out, *p);
        if (next)
            g_string_append_c(out, '=');
    }
    g_string_append_c(out, '\n');
}

/* ---- entities ---- */

static void add_names(GHashTable *set, GPtrArray *names)
{
    for (guint i = 0; names && i < names->len; i++)
        g_hash_table_add(set, g_strdup(names->pdata[i]));
    if (names)
        g_ptr_array_unref(names);
}

static GPtrArray *children(struct config_manager *m, const char *path)
{
    return m->env.children(m->env.ctx, path);
}

/* Clients, users and ips: the nodes, and what is in force although its node went. */
static void add_entities(struct config_manager *m, GHashTable *set, const char *kind)
{
    g_autofree char *parent = g_strconcat("/config/", kind, NULL), *prefix = g_strconcat(kind, "/", NULL);
    add_names(set, children(m, parent));
    GHashTableIter it;
    gpointer path;
    g_hash_table_iter_init(&it, m->entities);
    while (g_hash_table_iter_next(&it, &path, NULL))
        if (g_str_has_prefix(path, prefix))
            g_hash_table_add(set, g_strdup((char *)path + strlen(prefix)));
    if (strcmp(kind, "users") != 0)
        return;
    g_autoptr(GPtrArray) users = children(m, parent);
    for (guint i = 0; users && i < users->len; i++) {
        const char *user = users->pdata[i];
        g_autofree char *below = g_strconcat(parent, "/", user, "/clients", NULL);
        g_autoptr(GPtrArray) clients = children(m, below);
        for (guint c = 0; clients && c < clients->len; c++)
            g_hash_table_add(set, g_strconcat(user, "/clients/", clients->pdata[c], NULL));
    }
}

static bool has_default_broker(struct config_manager *m)
{
    return g_hash_table_size(dynamic_broker_level(m->broker, LEVEL_DEFAULT)) > 0 ||
           m->env.get(m->env.ctx, "/config/brokers/" ENTITY_DEFAULT, NULL, NULL) == ZOK;
}

GPtrArray *config_manager_entities(struct config_manager *m, const char *kind)
{
    g_autoptr(GHashTable) set = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    if (strcmp(kind, "topics") == 0) {
        add_names(set, children(m, "/brokers/topics"));
        add_names(set, children(m, "/config/topics"));
    } else if (strcmp(kind, "brokers") == 0) {
        g_hash_table_add(set, g_strdup_printf("%d", m->config->broker_id));
        if (has_default_broker(m))
            g_hash_table_add(set, g_strdup(ENTITY_DEFAULT));
    } else if (strcmp(kind, "clients") == 0 || strcmp(kind, "users") == 0 || strcmp(kind, "ips") == 0) {
        add_entities(m, set, kind);
    } else {
        return NULL;
    }
    GPtrArray *names = g_ptr_array_new_full(g_hash_table_size(set), g_free);
    GHashTableIter it;
    gpointer name;
    g_hash_table_iter_init(&it, set);
    while (g_hash_table_iter_next(&it, &name, NULL)) {
        g_ptr_array_add(names, name);
        g_hash_table_iter_steal(&it);
    }
    g_ptr_array_sort(names, compare_strings);
    return names;
}

static bool node_exists(struct config_manager *m, const char *top, const char *path)
{
    g_autofree char *znode = g_strconcat(top, path, NULL);
    return m->env.get(m->env.ctx, znode, NULL, NULL) == ZOK;
}

static bool entity_exists(struct config_manager *m, const struct config_entity *e)
{
    switch (e->kind) {
    case ENTITY_TOPIC:
        return node_exists(m, "/brokers/topics/", e->name) || node_exists(m, "/config/", e->path);
    case ENTITY_BROKER:
        return strcmp(e->name, ENTITY_DEFAULT) == 0 ? has_default_broker(m)
                                                    : g_ascii_strtoll(e->name, NULL, 10) == m->config->broker_id;
    default:
        return g_hash_table_contains(m->entities, e->path) || node_exists(m, "/config/", e->path);
    }
}

/* ---- one entity's lines: `what` is its value or its source ---- */

enum aspect { VALUE, SOURCE };

static bool hidden(const struct config_def *def)
{
    return !def || config_def_is_secret(def);
}

/* The overrides in force; where this broker has read none, what a replica made now would have. NULL: none. */
static GHashTable *overrides_of(struct config_manager *m, const char *topic)
{
    struct topic_state *s = topic_state_find(m, topic);
    if (s)
        return g_hash_table_ref(s->overrides);
    g_autofree char *path = g_strconcat("/config/topics/", topic, NULL);
    struct bytes *data = NULL;
    GHashTable *overrides = NULL;
    g_autoptr(GHashTable) config = NULL;
    if (m->env.get(m->env.ctx, path, &data, NULL) == ZOK && config_entity_decode(data, &config, NULL))
        g_ptr_array_unref(topic_config_parse_lenient(config, &overrides));
    bytes_unref(data);
    return overrides;
}

static void topic_lines(struct config_manager *m, const char *topic, enum aspect what, GString *out)
{
    g_autoptr(GHashTable) overrides = overrides_of(m, topic);
    g_autoptr(GPtrArray) keys = topic_config_keys(overrides);
    for (guint i = 0; i < keys->len; i++) {
        const char *key = keys->pdata[i];
        bool known = config_def_find(&config_table_topic, key);
        g_autofree char *value = known ? topic_config_value(m->broker, overrides, key) : NULL;
        add_line(out, key, what == SOURCE ? topic_config_source(m->broker, overrides, key) : value ? value : "");
    }
}

/* A key that Kafka does not know may be a secret, so DescribeConfigs gives no value for it, and neither do we. */
static void broker_lines(struct config_manager *m, const char *name, enum aspect what, GString *out)
{
    bool only_default = strcmp(name, ENTITY_DEFAULT) == 0;
    GHashTable *cluster = dynamic_broker_level(m->broker, LEVEL_DEFAULT);
    g_autoptr(GPtrArray) keys = dynamic_broker_keys(m->broker);
    for (guint i = 0; i < keys->len; i++) {
        const char *key = keys->pdata[i];
        const struct config_def *def = config_def_broker(key);
        const char *raw = g_hash_table_lookup(cluster, key);
        if (only_default && !raw)
            continue;
        g_autofree char *value = only_default ? g_strdup(raw) : dynamic_broker_value(m->broker, key);
        if (what == SOURCE)
            add_line(out, key, only_default ? "DYNAMIC_DEFAULT_BROKER_CONFIG" : dynamic_broker_source(m->broker, key));
        else
            add_line(out, key, !value || !def ? "" : hidden(def) ? "[hidden]" : value);
    }
}

static const char *ip_value(struct config_manager *m, const char *name, const char *key, const char **ret_where)
{
    static const char default_path[] = "ips/" ENTITY_DEFAULT;
    g_autofree char *own = g_strconcat("ips/", name, NULL);
    const char *const paths[] = {own, default_path};
    for (size_t i = 0; i < G_N_ELEMENTS(paths); i++) {
        gpointer path;
        GHashTable *values;
        if (!g_hash_table_lookup_extended(m->entities, paths[i], &path, (gpointer *)&values) ||
                !g_hash_table_lookup(values, key))
            continue;
        *ret_where = path;
        return g_hash_table_lookup(values, key);
    }
    return NULL;
}

/* Users, clients, pairs and ips. Kafka has no words for these sources: it is the entity that the value comes from. */
static void quota_lines(struct config_manager *m, const struct config_entity *e, enum aspect what, GString *out)
{
    const struct config_table *table = config_entity_table(e->kind);
    const char *user = e->kind == ENTITY_CLIENT ? NULL : e->name;
    const char *client = e->kind == ENTITY_CLIENT ? e->name : e->client;
    GHashTable *own = g_hash_table_lookup(m->entities, e->path);
    for (size_t i = 0; i < table->n; i++) {
        const struct config_def *def = &table->defs[i];
        const char *where = "DEFAULT_CONFIG", *value;
        if (config_def_is_secret(def)) {
            value = own ? g_hash_table_lookup(own, def->name) : NULL;
            where = e->path;
            if (!value)
                continue;
            value = "[hidden]";
        } else {
            value = e->kind == ENTITY_IP ? ip_value(m, e->name, def->name, &where)
                                         : quota_table_find(m->quotas, user, client, def->name, &where);
        }
        add_line(out, def->name, what == SOURCE ? where : value ? value : def->value);
    }
}

static char *entity_lines(struct config_manager *m, const char *kind, const char *entity, enum aspect what)
{
    g_autofree char *path = g_strconcat(kind, "/", entity, NULL);
    struct config_entity e = {0};
    if (config_entity_parse(path, &e, NULL) < 0)
        return NULL;
    GString *out = entity_exists(m, &e) ? g_string_new(NULL) : NULL;
    if (out && e.kind == ENTITY_TOPIC)
        topic_lines(m, e.name, what, out);
    else if (out && e.kind == ENTITY_BROKER)
        broker_lines(m, e.name, what, out);
    else if (out)
        quota_lines(m, &e, what, out);
    config_entity_clear(&e);
    return out ? g_string_free(out, FALSE) : NULL;
}

char *config_manager_effective(struct config_manager *m, const char *kind, const char *entity)
{
    return entity_lines(m, kind, entity, VALUE);
}

char *config_manager_source(struct config_manager *m, const char *kind, const char *entity)
{
    return entity_lines(m, kind, entity, SOURCE);
}

/* ---- quotas, throttles, single values ---- */

char *config_manager_quota(struct config_manager *m, const char *user, const char *client)
{
    GString *out = g_string_new(NULL);
    for (size_t i = 0; quota_keys[i]; i++) {
        const char *value = quota_table_find(m->quotas, user, client, quota_keys[i], NULL);
        if (value)
            add_line(out, quota_keys[i], value);
    }
    return g_string_free(out, FALSE);
}

GPtrArray *config_manager_throttled_topics(struct config_manager *m, bool leader)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GList) topics = g_hash_table_get_keys(m->throttles);
    g_autoptr(GPtrArray) copies = g_ptr_array_new_with_free_func(g_free);
    for (GList *l = topics; l; l = l->next)
        g_ptr_array_add(copies, g_strdup(l->data)); /* looking one up may remove it */
    for (guint i = 0; i < copies->len; i++) {
        struct topic_throttle *t = topic_throttle_find(m, copies->pdata[i]);
        if (t && (leader ? t->leader : t->follower))
            g_ptr_array_add(names, g_strdup(copies->pdata[i]));
    }
    g_ptr_array_sort(names, compare_strings);
    return names;
}

char *config_manager_throttled(struct config_manager *m, bool leader, const char *topic)
{
    struct topic_throttle *t = topic_throttle_find(m, topic);
    return t ? g_strdup(leader ? t->leader : t->follower) : NULL;
}

char *config_manager_broker_value(struct config_manager *m, const char *key)
{
    if (!dynamic_broker_has_key(m->broker, key))
        return NULL;
    char *value = dynamic_broker_value(m->broker, key);
    return value ? value : g_strdup("");
}
