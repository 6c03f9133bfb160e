#include <errno.h>
#include <string.h>
#include "controller/config/dynamic_broker.h"
#include "controller/config/listener_update.h"
#include "controller/config/value.h"

/* Kept apart, since DescribeConfigs names the source by what is declared even where the running broker refused it. */
struct level {
    GHashTable *declared; /* key -> value as written: what the entity says, without what can never be */
    GHashTable *in_force; /* the same, or what it said before, if that was refused */
};

struct dynamic_broker {
    const struct broker_config *config;
    struct level levels[N_BROKER_LEVELS];
};

static GHashTable *new_map(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
}

struct dynamic_broker *dynamic_broker_new(const struct broker_config *config)
{
    struct dynamic_broker *b = g_new0(struct dynamic_broker, 1);
    b->config = config;
    for (size_t i = 0; i < N_BROKER_LEVELS; i++)
        b->levels[i] = (struct level){.declared = new_map(), .in_force = new_map()};
    return b;
}

void dynamic_broker_free(struct dynamic_broker *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < N_BROKER_LEVELS; i++) {
        g_hash_table_unref(b->levels[i].declared);
        g_hash_table_unref(b->levels[i].in_force);
    }
    g_free(b);
}

GHashTable *dynamic_broker_level(const struct dynamic_broker *b, enum broker_level level)
{
    return b->levels[level].in_force;
}

/* ---- reading ---- */

/* The text that wins, borrowed; NULL: none is set. A dynamic value of a key also takes away what lower levels say by
 * its other names, so that the new value and not an old `log.retention.hours` counts (overrideProps). */
static const char *winning_text(const struct dynamic_broker *b, const char *key, const struct config_def *def)
{
    const char *text = NULL;
    for (int level = N_BROKER_LEVELS - 1; level >= 0 && !text; level--) {
        text = g_hash_table_lookup(b->levels[level].in_force, key);
        if (!text && def && def->replaced_by && g_hash_table_contains(b->levels[level].in_force, def->replaced_by))
            return NULL;
    }
    return text ? text : g_hash_table_lookup(b->config->values, key);
}

char *dynamic_broker_value(const struct dynamic_broker *b, const char *key)
{
    const struct config_def *def = config_def_broker(key);
    const char *text = winning_text(b, key, def);
    char *value = NULL;
    if (!def)
        return g_strdup(text);
    if (text && config_value_parse(def, text, &value, NULL) == 0)
        return value;
    if (config_listener_key(key) && !config_def_find(&config_table_broker, key))
        return NULL;                                     /* without the prefix it is another key */
    if (strcmp(key, "log.segment.delete.delay.ms") == 0) /* this product's own default */
        return g_strdup_printf("%" G_GINT64_FORMAT, b->config->file_delete_delay_ms);
    return g_strdup(def->value);
}

const char *dynamic_broker_source(const struct dynamic_broker *b, const char *key)
{
    if (g_hash_table_contains(b->levels[LEVEL_BROKER].declared, key))
        return "DYNAMIC_BROKER_CONFIG";
    if (g_hash_table_contains(b->levels[LEVEL_DEFAULT].declared, key))
        return "DYNAMIC_DEFAULT_BROKER_CONFIG";
    return g_hash_table_contains(b->config->values, key) ? "STATIC_BROKER_CONFIG" : "DEFAULT_CONFIG";
}

bool dynamic_broker_has_key(const struct dynamic_broker *b, const char *key)
{
    return config_def_find(&config_table_broker, key) || config_def_find(&config_table_quota_broker, key) ||
           winning_text(b, key, NULL);
}

static int compare_strings(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void add_keys(GHashTable *set, GHashTable *from)
{
    GHashTableIter it;
    gpointer key;
    g_hash_table_iter_init(&it, from);
    while (g_hash_table_iter_next(&it, &key, NULL))
        g_hash_table_add(set, key);
}

void dynamic_broker_add_keys(const struct dynamic_broker *b, GHashTable *set)
{
    for (size_t i = 0; i < N_BROKER_LEVELS; i++) {
        add_keys(set, b->levels[i].declared);
        add_keys(set, b->levels[i].in_force);
    }
}

GPtrArray *dynamic_broker_keys(const struct dynamic_broker *b)
{
    g_autoptr(GHashTable) set = g_hash_table_new(g_str_hash, g_str_equal);
    for (size_t i = 0; i < config_table_broker.n; i++)
        if (!config_table_broker.defs[i].internal)
            g_hash_table_add(set, (gpointer)config_table_broker.defs[i].name);
    for (size_t i = 0; i < config_table_quota_broker.n; i++)
        g_hash_table_add(set, (gpointer)config_table_quota_broker.defs[i].name);
    add_keys(set, b->config->values);
    dynamic_broker_add_keys(b, set);
    GPtrArray *keys = g_ptr_array_new_full(g_hash_table_size(set), g_free);
    GHashTableIter it;
    gpointer key;
    g_hash_table_iter_init(&it, set);
    while (g_hash_table_iter_next(&it, &key, NULL))
        g_ptr_array_add(keys, g_strdup(key));
    g_ptr_array_sort(keys, compare_strings);
    return keys;
}

/* ---- a new configuration of one level ---- */

/* ClusterLevelListenerConfigs: per listener, and still for the whole cluster. */
static bool cluster_wide_listener_key(const char *base)
{
    return strcmp(base, "max.connections") == 0 || strcmp(base, "max.connection.creation.rate") == 0 ||
           strcmp(base, "num.network.threads") == 0;
}

bool dynamic_broker_key_allowed(const char *key, bool per_broker, const char **ret_why)
{
    const struct config_def *def = config_def_find(&config_table_broker, key);
    const char *base = config_listener_key(key), *why = NULL;
    if (def && def->listener_only)
        why = "is dynamic only with a listener prefix";
    else if (def && def->update == UPDATE_READ_ONLY)
        why = "is read-only";
    else if (per_broker)
        return true;
    else if ((def && def->update == UPDATE_PER_BROKER) || (base && !cluster_wide_listener_key(base)))
        why = "is set per broker, not for the whole cluster";
    if (why && ret_why)
        *ret_why = why;
    return !why;
}

/* The fields of an encoded password (PasswordEncoder); what is in it is never looked at. */
static bool password_encoded(const char *text)
{
    static const char *const fields[] = {"keyFactoryAlgorithm:", "cipherAlgorithm:", "keyLength:", "salt:",
            "iterations:", "encryptedPassword:", "passwordLength:", "initializationVector:"};
    g_auto(GStrv) parts = g_strsplit(text, ",", -1);
    for (size_t f = 0; f < G_N_ELEMENTS(fields); f++) {
        bool found = false;
        for (size_t i = 0; parts[i]; i++)
            found |= g_str_has_prefix(parts[i], fields[f]);
        if (!found)
            return false;
    }
    return true;
}

/* What KafkaConfig.validateValues() requires of one value; NULL, or why it is refused. */
static const char *why_refused(const char *key, const char *value)
{
    int64_t n;
    if (strcmp(key, "log.retention.ms") == 0)
        return config_parse_long(value, &n) && n == 0
                       ? "log.retention.ms must be unlimited (-1) or, equal or greater than 1"
                       : NULL;
    if (strcmp(key, "log.roll.ms") == 0)
        return config_parse_long(value, &n) && n < 1 ? "log.roll.ms must be greater than or equal to 1" : NULL;
    if (strcmp(key, "log.roll.jitter.ms") == 0)
        return config_parse_long(value, &n) && n < 0 ? "log.roll.jitter.ms must be greater than or equal to 0" : NULL;
    return NULL;
}

int dynamic_broker_parse_value(
        const char *key, const struct config_def *def, const char *value, char **ret, char **ret_why)
{
    g_autofree char *parsed = NULL;
    int r = config_value_parse(def, value, &parsed, ret_why);
    if (r < 0)
        return r;
    const char *why = why_refused(key, parsed);
    if (why) {
        if (ret_why)
            *ret_why = g_strdup(why);
        return -EINVAL;
    }
    if (ret)
        *ret = g_steal_pointer(&parsed);
    return 0;
}

static void complain(GPtrArray *complaints, const char *key, const char *why)
{
    g_autofree char *clipped = config_clip(key);
    g_ptr_array_add(complaints, g_strdup_printf("%s: %s; ignored", clipped, why));
}

/* DynamicBrokerConfig.isPasswordConfig(): a custom key counts too if it ends like a dynamic password. */
static bool is_password(const char *key, const struct config_def *def)
{
    if (def)
        return def->type == TYPE_PASSWORD;
    for (size_t i = 0; i < config_table_broker.n; i++) {
        const struct config_def *d = &config_table_broker.defs[i];
        if (d->type == TYPE_PASSWORD && d->update != UPDATE_READ_ONLY && g_str_has_suffix(key, d->name))
            return true;
    }
    return false;
}

/* Is the pair good for that level, looked at alone? Otherwise says why. */
static bool accept_value(
        const struct dynamic_broker *b, const char *key, const char *value, bool per_broker, GPtrArray *complaints)
{
    const struct config_def *def = config_def_broker(key);
    const char *why = NULL;
    g_autofree char *reason = NULL;
    if (!dynamic_broker_key_allowed(key, per_broker, &why)) {
        complain(complaints, key, why);
        return false;
    }
    if (is_password(key, def)) {
        if (!g_hash_table_contains(b->config->values, "password.encoder.secret"))
            why = "is a password, and this broker has no password.encoder.secret";
        else if (!password_encoded(value))
            why = "is no encoded password";
    } else if (def && config_value_parse(def, value, NULL, &reason) < 0) {
        why = reason;
    }
    if (why)
        complain(complaints, key, why);
    return !why;
}

/* ---- a change that a running broker, or values together, forbid: it is refused as a whole ---- */

/* Everything the entities say is tried together, so what one level says wrong also keeps changes of the other out,
 * until it is mended (DynamicBrokerConfig.updateCurrentConfig). */
struct update {
    struct dynamic_broker *b;
    GHashTable *changed; /* set: the keys whose text in force would change */
    GPtrArray *complaints;
    bool refused;
};

static void refuse(struct update *u, const char *key, const char *why)
{
    g_autofree char *clipped = config_clip(key);
    g_ptr_array_add(u->complaints, g_strdup_printf("%s: %s; the whole change is refused", clipped, why));
    u->refused = true;
}

static int64_t number(const struct dynamic_broker *b, const char *key)
{
    g_autofree char *text = dynamic_broker_value(b, key);
    int64_t n = 0;
    if (text)
        config_parse_long(text, &n);
    return n;
}

static void check_alone(struct update *u)
{
    static const char *const keys[] = {"log.retention.ms", "log.roll.ms", "log.roll.jitter.ms"};
    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
        g_autofree char *value = dynamic_broker_value(u->b, keys[i]);
        const char *why = value ? why_refused(keys[i], value) : NULL;
        if (why)
            refuse(u, keys[i], why);
    }
}

static const char *const thread_keys[] = {"num.io.threads", "num.network.threads", "num.replica.fetchers",
        "num.recovery.threads.per.data.dir", "background.threads", "log.cleaner.threads"};

static void check_threads(struct update *u, const int64_t before[G_N_ELEMENTS(thread_keys)])
{
    for (size_t i = 0; i < G_N_ELEMENTS(thread_keys); i++) {
        int64_t now = number(u->b, thread_keys[i]);
        if (now == before[i] || (now >= 1 && now >= before[i] / 2 && now <= before[i] * 2))
            continue;
        g_autofree char *why =
                g_strdup_printf("%" G_GINT64_FORMAT " threads, where %" G_GINT64_FORMAT
                                " run: a change is to at least half and at most double the current value",
                        now, before[i]);
        refuse(u, thread_keys[i], why);
    }
}

static void check_together(struct update *u)
{
    static const char buffer[] = "log.cleaner.dedupe.buffer.size", threads[] = "log.cleaner.threads";
    if (number(u->b, threads) > 0 && number(u->b, buffer) / number(u->b, threads) <= 1024 * 1024)
        refuse(u, buffer, "must be at least 1MB per cleaner thread");
    static const char per_ip[] = "max.connections.per.ip", overrides[] = "max.connections.per.ip.overrides";
    g_autofree char *list = dynamic_broker_value(u->b, overrides);
    if (number(u->b, per_ip) == 0 && (!list || !*list))
        refuse(u, per_ip, "can be 0 only with max.connections.per.ip.overrides");
}

static const char *const listener_keys[] = {"listeners", "advertised.listeners", "listener.security.protocol.map"};

/* `before`: the listeners that run, NULL if none do. */
static void check_listeners(struct update *u, const struct listener_set *before)
{
    g_autofree char *why = NULL;
    const char *changed = NULL;
    for (size_t i = 0; i < G_N_ELEMENTS(listener_keys) && !changed; i++)
        if (g_hash_table_contains(u->changed, listener_keys[i]))
            changed = listener_keys[i];
    if (!changed)
        return;
    struct listener_set *now = listener_set_new(u->b, &why);
    if (now)
        why = listener_set_why_refused(before, now);
    listener_set_free(now);
    if (why)
        refuse(u, changed, why);
}

/* Does a change of this key make the broker look at its listeners? (DynamicListenerConfig.ReconfigurableConfigs) */
static bool concerns_listeners(const char *key)
{
    const struct config_def *def = config_def_find(&config_table_broker, key);
    return def && (def->update == UPDATE_PER_BROKER || cluster_wide_listener_key(key));
}

/* A listener that runs keeps all its own keys but its certificates and limits. Kafka compares them only when something
 * else has made it look at its listeners. */
static void check_listener_keys(struct update *u, const struct listener_set *before)
{
    GHashTableIter it;
    gpointer key;
    bool looks = false;
    g_hash_table_iter_init(&it, u->changed);
    while (!looks && g_hash_table_iter_next(&it, &key, NULL))
        looks = concerns_listeners(key);
    struct listener_set *now = looks ? listener_set_new(u->b, NULL) : NULL;
    g_hash_table_iter_init(&it, u->changed);
    while (now && g_hash_table_iter_next(&it, &key, NULL)) {
        const char *base = config_listener_key(key);
        const struct config_def *def = base ? config_def_find(&config_table_broker, base) : NULL;
        if (base && !(def && def->listener_only) && !cluster_wide_listener_key(base) &&
                listener_set_has_prefix(before, key) && listener_set_has_prefix(now, key))
            refuse(u, key, "is a key of an existing listener, which reads it when the broker starts");
    }
    listener_set_free(now);
}

/* The texts in force of what either level says, now or after the change: key -> text (NULL: unset). */
static GHashTable *texts_in_force(const struct dynamic_broker *b)
{
    g_autoptr(GHashTable) keys = g_hash_table_new(g_str_hash, g_str_equal);
    GHashTable *texts = new_map();
    GHashTableIter it;
    gpointer key;
    dynamic_broker_add_keys(b, keys);
    g_hash_table_iter_init(&it, keys);
    while (g_hash_table_iter_next(&it, &key, NULL))
        g_hash_table_insert(texts, g_strdup(key), g_strdup(winning_text(b, key, config_def_broker(key))));
    return texts;
}

static GHashTable *copy_map(GHashTable *from)
{
    GHashTable *map = new_map();
    GHashTableIter it;
    gpointer key, value;
    g_hash_table_iter_init(&it, from);
    while (g_hash_table_iter_next(&it, &key, &value))
        g_hash_table_insert(map, g_strdup(key), g_strdup(value));
    return map;
}

/* What the levels declare comes in force, all of it or nothing. */
static void apply_declared(struct dynamic_broker *b, bool running, GPtrArray *complaints)
{
    struct listener_set *listeners = running ? listener_set_new(b, NULL) : NULL;
    g_autoptr(GHashTable) changed = texts_in_force(b);
    GHashTable *old[N_BROKER_LEVELS];
    int64_t threads[G_N_ELEMENTS(thread_keys)];
    GHashTableIter it;
    gpointer key, text;
    for (size_t i = 0; i < G_N_ELEMENTS(thread_keys); i++)
        threads[i] = number(b, thread_keys[i]);
    for (size_t i = 0; i < N_BROKER_LEVELS; i++) {
        old[i] = b->levels[i].in_force;
        b->levels[i].in_force = copy_map(b->levels[i].declared);
    }
    g_hash_table_iter_init(&it, changed);
    while (g_hash_table_iter_next(&it, &key, &text))
        if (g_strcmp0(text, winning_text(b, key, config_def_broker(key))) == 0)
            g_hash_table_iter_remove(&it);
    struct update u = {.b = b, .changed = changed, .complaints = complaints};
    check_alone(&u);
    if (running)
        check_threads(&u, threads);
    check_together(&u);
    check_listeners(&u, listeners);
    if (listeners)
        check_listener_keys(&u, listeners);
    listener_set_free(listeners);
    for (size_t i = 0; i < N_BROKER_LEVELS; i++) {
        if (u.refused) {
            g_hash_table_unref(b->levels[i].in_force);
            b->levels[i].in_force = old[i];
        } else {
            g_hash_table_unref(old[i]);
        }
    }
}

GPtrArray *dynamic_broker_set(struct dynamic_broker *b, enum broker_level level, GHashTable *config, bool running)
{
    GPtrArray *complaints = g_ptr_array_new_with_free_func(g_free);
    struct level *l = &b->levels[level];
    GHashTableIter it;
    gpointer key, value;
    g_hash_table_remove_all(l->declared);
    g_hash_table_iter_init(&it, config);
    while (g_hash_table_iter_next(&it, &key, &value))
        if (accept_value(b, key, value, level == LEVEL_BROKER, complaints))
            g_hash_table_insert(l->declared, g_strdup(key), g_strdup(value));
    apply_declared(b, running, complaints);
    g_ptr_array_sort(complaints, compare_strings);
    return complaints;
}
