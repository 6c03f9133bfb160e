/* What may be written: for the namespace policy and for a broker's properties file. */
#include <errno.h>
#include "controller/config/entity.h"
#include "controller/config/manager.h"
#include "controller/config/requirements.h"
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

static int check_topic_together(GHashTable *config, char **ret_why)
{
    const char *why = requirements_of_topic(config);
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

/* The first reason is enough. */
static void keep_first(void *arg, const char *key, const char *why)
{
    char **first = arg;
    if (!*first)
        *first = g_strdup_printf("%s: %s", key, why);
}

int config_static_validate(const struct broker_config *config, char **ret_why)
{
    for (size_t i = 0; i < config_table_broker.n; i++) {
        const struct config_def *def = &config_table_broker.defs[i];
        const char *value = g_hash_table_lookup(config->values, def->name);
        if (value && config_value_parse(def, value, NULL, ret_why) < 0)
            return EINVAL;
    }
    struct dynamic_broker *b = dynamic_broker_new(config);
    g_autofree char *why = NULL;
    requirements_of_broker(b, keep_first, &why);
    dynamic_broker_free(b);
    int r = why ? EINVAL : 0;
    if (why && ret_why)
        *ret_why = g_steal_pointer(&why);
    return r;
}
