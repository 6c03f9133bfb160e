/* BrokerConfigHandler, and the handlers of quotas: users, clients, their pairs, ips. */
#include <errno.h>
#include <string.h>
#include "controller/config/internal.h"

/* ---- brokers ---- */

static GHashTable *values_of(struct dynamic_broker *b, GHashTable *keys)
{
    GHashTable *values = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    GHashTableIter it;
    gpointer key;
    g_hash_table_iter_init(&it, keys);
    while (g_hash_table_iter_next(&it, &key, NULL))
        g_hash_table_insert(values, g_strdup(key), dynamic_broker_value(b, key));
    return values;
}

/* What this change may change: what it says, and what the levels have said before. */
static GHashTable *keys_concerned(struct dynamic_broker *b, GHashTable *config)
{
    GHashTable *keys = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GHashTable) set = g_hash_table_new(g_str_hash, g_str_equal);
    GHashTableIter it;
    gpointer key;
    dynamic_broker_add_keys(b, set);
    g_hash_table_iter_init(&it, config);
    while (g_hash_table_iter_next(&it, &key, NULL))
        g_hash_table_add(set, key);
    g_hash_table_iter_init(&it, set);
    while (g_hash_table_iter_next(&it, &key, NULL))
        g_hash_table_add(keys, g_strdup(key));
    return keys;
}

static char *shown(const struct config_def *def, const char *value)
{
    return g_strdup(value && config_def_is_secret(def) ? "[hidden]" : value);
}

/* Says what changed in force; true if anything did. Custom keys may be secrets, and there may be many: not a word. */
static bool note_changes(struct config_manager *m, const char *path, GHashTable *keys, GHashTable *before)
{
    bool changed = false;
    g_autoptr(GHashTable) after = values_of(m->broker, keys);
    g_autoptr(GList) sorted = g_list_sort(g_hash_table_get_keys(keys), (GCompareFunc)strcmp);
    for (GList *l = sorted; l; l = l->next) {
        const struct config_def *def = config_def_broker(l->data);
        const char *old = g_hash_table_lookup(before, l->data), *now = g_hash_table_lookup(after, l->data);
        changed |= g_strcmp0(old, now) != 0;
        if (def)
            manager_changed(m, path, l->data, shown(def, old), shown(def, now));
    }
    return changed;
}

static bool unclean_allowed(struct config_manager *m)
{
    g_autofree char *value = dynamic_broker_value(m->broker, "unclean.leader.election.enable");
    return g_strcmp0(value, "true") == 0;
}

void broker_handler_apply(struct config_manager *m, const struct config_entity *e, bool start)
{
    enum broker_level level = strcmp(e->name, ENTITY_DEFAULT) == 0 ? LEVEL_DEFAULT : LEVEL_BROKER;
    if (level == LEVEL_BROKER && g_ascii_strtoll(e->name, NULL, 10) != m->config->broker_id)
        return;
    g_autoptr(GHashTable) config = NULL, before = NULL;
    if (!manager_read(m, e->path, &config))
        return;
    g_autoptr(GHashTable) keys = keys_concerned(m->broker, config);
    before = values_of(m->broker, keys);
    bool unclean = unclean_allowed(m);
    g_autoptr(GPtrArray) complaints = dynamic_broker_set(m->broker, level, config, !start);
    manager_complain_all(m, EINVAL, e->path, complaints);
    if (note_changes(m, e->path, keys, before))
        m->env.broker_changed(m->env.ctx);
    if (!start && !unclean && unclean_allowed(m))
        m->env.unclean_enabled(m->env.ctx, NULL);
}

/* ---- users, clients, pairs, ips ---- */

/* Parsed values; NULL if one is bad and the old ones stay. `lenient`: bad ones are left out. */
static GHashTable *read_values(struct config_manager *m, const struct config_entity *e, bool lenient)
{
    g_autoptr(GHashTable) config = NULL;
    g_autoptr(GHashTable) values = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    GHashTableIter it;
    gpointer key, text;
    if (!manager_read(m, e->path, &config))
        return lenient ? g_steal_pointer(&values) : NULL;
    g_hash_table_iter_init(&it, config);
    while (g_hash_table_iter_next(&it, &key, &text)) {
        g_autofree char *why = NULL;
        char *value = NULL;
        if (!config_entity_has_key(e, key)) /* kept in the tree, unused */
            continue;
        if (config_entity_parse_value(e, key, text, &value, &why) == 0) {
            g_hash_table_insert(values, g_strdup(key), value);
            continue;
        }
        manager_complain(m, EINVAL, e->path, why);
        if (!lenient)
            return NULL;
    }
    return g_steal_pointer(&values);
}

static char *quota_shown(const struct config_def *def, GHashTable *values)
{
    return shown(def, values ? g_hash_table_lookup(values, def->name) : NULL);
}

void quota_handler_apply(struct config_manager *m, const struct config_entity *e, bool start)
{
    g_autoptr(GHashTable) values = read_values(m, e, start);
    if (!values)
        return;
    GHashTable *old = g_hash_table_lookup(m->entities, e->path);
    const struct config_table *table = config_entity_table(e->kind);
    for (size_t i = 0; i < table->n; i++)
        manager_changed(m, e->path, table->defs[i].name, quota_shown(&table->defs[i], old),
                quota_shown(&table->defs[i], values));
    if (e->kind != ENTITY_IP)
        quota_table_set(m->quotas, e, values);
    if (g_hash_table_size(values) > 0)
        g_hash_table_insert(m->entities, g_strdup(e->path), g_hash_table_ref(values));
    else
        g_hash_table_remove(m->entities, e->path);
}
