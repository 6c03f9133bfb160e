#include <stdlib.h>
#include <string.h>
#include "controller/config/definition.h"

static int compare_name(const void *key, const void *def)
{
    return strcmp(key, ((const struct config_def *)def)->name);
}

const struct config_def *config_def_find(const struct config_table *table, const char *key)
{
    return bsearch(key, table->defs, table->n, sizeof(*table->defs), compare_name);
}

const char *config_listener_key(const char *key)
{
    static const char prefix[] = "listener.name.";
    if (strncmp(key, prefix, sizeof(prefix) - 1) != 0)
        return NULL;
    const char *dot = strchr(key + sizeof(prefix) - 1, '.');
    return dot && dot[1] ? dot + 1 : NULL;
}

/* `<mechanism>.<key>`: the mechanism has no fixed form, so the key is recognized by its end (ListenerMechanismConfigs).
 */
static const struct config_def *find_mechanism(const char *key)
{
    size_t len = strlen(key);
    for (size_t i = 0; i < config_table_broker.n; i++) {
        const struct config_def *def = &config_table_broker.defs[i];
        size_t n = strlen(def->name);
        if (def->mechanism && len > n && strcmp(key + len - n, def->name) == 0 && key[len - n - 1] == '.')
            return def;
    }
    return NULL;
}

const struct config_def *config_def_broker(const char *key)
{
    const struct config_def *def = config_def_find(&config_table_broker, key);
    if (!def)
        def = config_def_find(&config_table_quota_broker, key);
    const char *base = def ? NULL : config_listener_key(key);
    if (!base)
        return def;
    def = config_def_find(&config_table_broker, base);
    return def ? def : find_mechanism(base);
}

bool config_def_is_secret(const struct config_def *def)
{
    return def->type == TYPE_PASSWORD || def->rule == RULE_SCRAM;
}
