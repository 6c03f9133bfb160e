#include <errno.h>
#include <string.h>
#include "controller/config/dynamic_broker.h"
#include "controller/config/listener_update.h"
#include "controller/config/requirements.h"
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

int64_t dynamic_broker_number(const struct dynamic_broker *b, const char *key, int64_t fallback)
{
    g_autofree char *text = dynamic_broker_value(b, key);
    int64_t n;
    return text && config_parse_long(text, &n) ? n : fallback;
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
    for (size_t i = 0; i < N_BROKER_LEVELS; i++) /* a custom key that was refused is none of this broker's */
        add_keys(set, b->levels[i].in_force);
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

int dynamic_broker_parse_value(
        const char *key, const struct config_def *def, const char *value, char **ret, char **ret_why)
{
    g_autofree char *parsed = NULL;
    int r = config_value_parse(def, value, &parsed, ret_why);
    if (r < 0)
        return r;
    const char *why = requirement_of_value(key, parsed);
    if (why) {
        if (ret_why)
            *ret_why = g_strdup_printf("%s %s", key, why);
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

static void refuse(void *arg, const char *key, const char *why)
{
    struct update *u = arg;
    g_autofree char *clipped = config_clip(key);
    g_ptr_array_add(u->complaints, g_strdup_printf("%s: %s; the whole change is refused", clipped, why));
    u->refused = true;
}

static const char *const thread_keys[] = {"num.io.threads", "num.replica.fetchers", "num.recovery.threads.per.data.dir",
        "background.threads", "log.cleaner.threads"};
static const char listener_threads[] = "num.network.threads";

/* The pools that run: key -> number of threads; each listener has one of its own. */
static GHashTable *thread_pools(const struct dynamic_broker *b, const struct listener_set *running)
{
    GHashTable *pools = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GPtrArray) prefixes = listener_set_prefixes(running);
    int64_t common = dynamic_broker_number(b, listener_threads, 0);
    for (size_t i = 0; i < G_N_ELEMENTS(thread_keys); i++)
        g_hash_table_insert(
                pools, g_strdup(thread_keys[i]), GINT_TO_POINTER(dynamic_broker_number(b, thread_keys[i], 0)));
    for (guint i = 0; i < prefixes->len; i++) {
        char *key = g_strconcat(prefixes->pdata[i], listener_threads, NULL);
        g_hash_table_insert(pools, key, GINT_TO_POINTER(dynamic_broker_number(b, key, common)));
    }
    return pools;
}

/* DynamicThreadPool, DataPlaneAcceptor.validateReconfiguration */
static void check_threads(struct update *u, GHashTable *before, GHashTable *after)
{
    GHashTableIter it;
    gpointer key, count;
    g_hash_table_iter_init(&it, before);
    while (g_hash_table_iter_next(&it, &key, &count)) {
        int was = GPOINTER_TO_INT(count), now = GPOINTER_TO_INT(g_hash_table_lookup(after, key));
        if (now == was || (now >= 1 && now >= was / 2 && now <= 2 * (int64_t)was))
            continue;
        g_autofree char *own = dynamic_broker_value(u->b, key);
        g_autofree char *why = g_strdup_printf(
                "%d threads, where %d run: a change is to at least half and at most double the current value", now,
                was);
        refuse(u, own ? key : listener_threads, why);
    }
}

/* A default of the logs, DynamicLogConfig.ReconfigurableConfigs: what a topic's key falls back to first. */
static bool concerns_logs(const char *key)
{
    const struct config_def *def = config_def_find(&config_table_broker, key);
    for (size_t i = 0; def && def->update == UPDATE_CLUSTER_WIDE && i < config_table_topic.n; i++) {
        const struct config_synonym *first = config_table_topic.defs[i].synonyms;
        if (first && strcmp(first->key, key) == 0)
            return true;
    }
    return false;
}

static void check_logs(struct update *u)
{
    GHashTableIter it;
    gpointer key;
    bool concerned = false;
    g_hash_table_iter_init(&it, u->changed);
    while (!concerned && g_hash_table_iter_next(&it, &key, NULL))
        concerned = concerns_logs(key);
    if (concerned)
        requirements_of_logs(u->b, refuse, u);
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
    g_autoptr(GHashTable) pools = running ? thread_pools(b, listeners) : NULL;
    GHashTableIter it;
    gpointer key, text;
    for (size_t i = 0; i < N_BROKER_LEVELS; i++) {
        old[i] = b->levels[i].in_force;
        b->levels[i].in_force = copy_map(b->levels[i].declared);
    }
    g_hash_table_iter_init(&it, changed);
    while (g_hash_table_iter_next(&it, &key, &text))
        if (g_strcmp0(text, winning_text(b, key, config_def_broker(key))) == 0)
            g_hash_table_iter_remove(&it);
    struct update u = {.b = b, .changed = changed, .complaints = complaints};
    requirements_of_broker(b, refuse, &u);
    if (running) {
        g_autoptr(GHashTable) now = thread_pools(b, listeners);
        check_threads(&u, pools, now);
        check_logs(&u);
    }
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
