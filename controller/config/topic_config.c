#include <errno.h>
#include <string.h>
#include "controller/config/topic_config.h"
#include "controller/config/value.h"

/* Adds one parsed value to `map`. */
static int parse_into(GHashTable *map, const char *key, const char *value, char **ret_why)
{
    const struct config_def *def = config_def_find(&config_table_topic, key);
    char *parsed = NULL;
    if (!def)
        parsed = g_strdup(value);
    else if (config_value_parse(def, value, &parsed, ret_why) < 0)
        return -EINVAL;
    g_hash_table_insert(map, g_strdup(key), parsed);
    return 0;
}

int topic_config_parse(GHashTable *config, GHashTable **ret, char **ret_why)
{
    g_autoptr(GHashTable) map = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    GHashTableIter it;
    gpointer key, value;
    g_hash_table_iter_init(&it, config);
    while (g_hash_table_iter_next(&it, &key, &value))
        if (parse_into(map, key, value, ret_why) < 0)
            return -EINVAL;
    *ret = g_steal_pointer(&map);
    return 0;
}

GPtrArray *topic_config_parse_lenient(GHashTable *config, GHashTable **ret)
{
    GPtrArray *reasons = g_ptr_array_new_with_free_func(g_free);
    GHashTable *map = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    GHashTableIter it;
    gpointer key, value;
    g_hash_table_iter_init(&it, config);
    while (g_hash_table_iter_next(&it, &key, &value)) {
        char *why = NULL;
        if (parse_into(map, key, value, &why) < 0)
            g_ptr_array_add(reasons, why);
    }
    *ret = map;
    return reasons;
}

/* A topic's only synonym: the same thing under another name. A key that has followed an older one counts once it is
 * changed (KafkaConfig.logMessageTimestampBeforeMaxMs). */
static char *only_synonym(const struct dynamic_broker *broker, const char *key)
{
    const struct config_def *def = config_def_find(&config_table_broker, key);
    char *value = dynamic_broker_value(broker, key);
    if (!def->older || g_strcmp0(value, def->value) != 0)
        return value;
    g_free(value);
    return dynamic_broker_value(broker, def->older);
}

/* What the broker's keys say, in the unit of the topic's key; NULL: none is set and none has a default. */
static char *broker_value(const struct dynamic_broker *broker, const struct config_def *def)
{
    if (def->synonyms && !def->synonyms[1].key)
        return only_synonym(broker, def->synonyms[0].key);
    for (const struct config_synonym *s = def->synonyms; s && s->key; s++) {
        g_autofree char *value = dynamic_broker_value(broker, s->key);
        int64_t n;
        if (!value || !config_parse_long(value, &n) || __builtin_mul_overflow(n, s->factor, &n))
            continue;
        return g_strdup_printf("%" G_GINT64_FORMAT, n < 0 ? -1 : n); /* any negative time is "unlimited" */
    }
    return NULL;
}

char *topic_config_value(const struct dynamic_broker *broker, GHashTable *overrides, const char *key)
{
    const struct config_def *def = config_def_find(&config_table_topic, key);
    const char *override = overrides ? g_hash_table_lookup(overrides, key) : NULL;
    if (override || !def)
        return g_strdup(override);
    char *value = broker_value(broker, def);
    return value ? value : g_strdup(def->value);
}

/* DescribeConfigs looks at the first synonym only: a static log.retention.hours shows as DEFAULT_CONFIG. */
const char *topic_config_source(const struct dynamic_broker *broker, GHashTable *overrides, const char *key)
{
    if (overrides && g_hash_table_contains(overrides, key))
        return "DYNAMIC_TOPIC_CONFIG";
    const struct config_def *def = config_def_find(&config_table_topic, key);
    return def && def->synonyms ? dynamic_broker_source(broker, def->synonyms[0].key) : "DEFAULT_CONFIG";
}

static int compare_strings(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

GPtrArray *topic_config_keys(GHashTable *overrides)
{
    GPtrArray *keys = g_ptr_array_new_with_free_func(g_free);
    for (size_t i = 0; i < config_table_topic.n; i++)
        g_ptr_array_add(keys, g_strdup(config_table_topic.defs[i].name));
    GHashTableIter it;
    gpointer key;
    if (overrides) {
        g_hash_table_iter_init(&it, overrides);
        while (g_hash_table_iter_next(&it, &key, NULL))
            if (!config_def_find(&config_table_topic, key))
                g_ptr_array_add(keys, g_strdup(key));
    }
    g_ptr_array_sort(keys, compare_strings);
    return keys;
}

/* Position of a version in the order of releases; -1: unknown. */
static int version_order(const char *version)
{
    int order = -1;
    for (int i = 0; config_metadata_versions[i]; i++) {
        const char *known = config_metadata_versions[i];
        size_t n = strcspn(known, "-"), len = strlen(version);
        if (strcmp(known, version) == 0 || (len == n && strncmp(known, version, n) == 0))
            order = i;
    }
    return order;
}

GPtrArray *topic_config_warnings(const struct broker_config *config, GHashTable *overrides)
{
    GPtrArray *warnings = g_ptr_array_new_with_free_func(g_free);
    const char *format = g_hash_table_lookup(overrides, "message.format.version");
    const char *ibp = g_hash_table_lookup(config->values, "inter.broker.protocol.version");
    int order = format ? version_order(format) : -1;
    if (order >= 0 && config->ibp_major >= 3 && order < version_order("0.11.0-IV0"))
        g_ptr_array_add(warnings,
                g_strdup_printf("message.format.version=%s predates record format v2; it is ignored because the "
                                "inter-broker protocol version is 3.0 or newer",
                        format));
    else if (config->ibp_major < 3 && ibp && order > version_order(ibp))
        g_ptr_array_add(
                warnings, g_strdup_printf("message.format.version=%s is above the inter-broker protocol version; "
                                          "it is ignored",
                                  format));
    const char *retention = g_hash_table_lookup(overrides, "retention.ms");
    const char *difference = g_hash_table_lookup(overrides, "message.timestamp.difference.max.ms");
    int64_t kept, limit;
    if (retention && difference && config_parse_long(retention, &kept) && config_parse_long(difference, &limit) &&
            kept >= 0 && kept < limit && limit != INT64_MAX)
        g_ptr_array_add(
                warnings, g_strdup_printf("retention.ms=%s is below message.timestamp.difference.max.ms=%s: old "
                                          "timestamps may roll the log often",
                                  retention, difference));
    return warnings;
}
