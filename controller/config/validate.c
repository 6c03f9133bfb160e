/* What may be written: for the namespace policy and for a broker's properties file. */
#include <errno.h>
#include "controller/config/entity.h"
#include "controller/config/manager.h"
#include "controller/config/value.h"

static int parse_entity(const char *kind, const char *entity, struct config_entity *ret, char **ret_why)
{
    g_autofree char *path = g_strconcat(kind, "/", entity, NULL);
    return -config_entity_parse(path, ret, ret_why);
}

int config_value_validate(const char *kind, const char *entity, const char *key, const char *value, char **ret_why)
{
    struct config_entity e = {0};
    int r = parse_entity(kind, entity, &e, ret_why);
    if (r != 0)
        return r;
    r = -config_entity_parse_value(&e, key, value, NULL, ret_why);
    config_entity_clear(&e);
    return r;
}

/* The number in the configuration, or false. */
static bool given(GHashTable *config, const char *key, int64_t *ret)
{
    const char *value = g_hash_table_lookup(config, key);
    return value && config_parse_long(value, ret);
}

/* local.retention.* keeps at most what retention.* keeps; -1 is unlimited, -2 is "the same" (LogConfig). */
static bool local_retention_fits(GHashTable *config, const char *local_key, const char *key)
{
    int64_t local, total;
    if (!given(config, local_key, &local) || !given(config, key, &total) || local == -2)
        return true;
    return total == -1 || (local != -1 && local <= total);
}

static int check_topic_together(GHashTable *config, char **ret_why)
{
    int64_t min, max;
    const char *why = NULL;
    if (given(config, "min.compaction.lag.ms", &min) && given(config, "max.compaction.lag.ms", &max) && min > max)
        why = "min.compaction.lag.ms must not be above max.compaction.lag.ms";
    else if (!local_retention_fits(config, "local.retention.ms", "retention.ms"))
        why = "local.retention.ms must not be above retention.ms";
    else if (!local_retention_fits(config, "local.retention.bytes", "retention.bytes"))
        why = "local.retention.bytes must not be above retention.bytes";
    if (why && ret_why)
        *ret_why = g_strdup(why);
    return why ? EINVAL : 0;
}

int config_entity_validate(const char *kind, const char *entity, GHashTable *config, char **ret_why)
{
    struct config_entity e = {0};
    GHashTableIter it;
    gpointer key, value;
    int r = parse_entity(kind, entity, &e, ret_why);
    if (r != 0)
        return r;
    g_hash_table_iter_init(&it, config);
    while (r == 0 && g_hash_table_iter_next(&it, &key, &value))
        r = -config_entity_parse_value(&e, key, value, NULL, ret_why);
    if (r == 0 && e.kind == ENTITY_TOPIC)
        r = check_topic_together(config, ret_why);
    config_entity_clear(&e);
    return r;
}

int config_static_validate(GHashTable *values, char **ret_why)
{
    for (size_t i = 0; i < config_table_broker.n; i++) {
        const struct config_def *def = &config_table_broker.defs[i];
        const char *value = g_hash_table_lookup(values, def->name);
        if (value && config_value_parse(def, value, NULL, ret_why) < 0)
            return EINVAL;
    }
    return 0;
}
