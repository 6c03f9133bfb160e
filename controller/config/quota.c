#include "controller/config/quota.h"
#include "controller/config/sanitizer.h"

const char *const quota_keys[] = {
        "consumer_byte_rate", "controller_mutation_rate", "producer_byte_rate", "request_percentage", NULL};

struct quota {
    char *path;         /* of the entity */
    GHashTable *values; /* char* -> char* */
};

struct quota_table {
    GHashTable *quotas; /* index_key() -> struct quota */
};

static void free_quota(void *arg)
{
    struct quota *q = arg;
    g_free(q->path);
    g_hash_table_unref(q->values);
    g_free(q);
}

struct quota_table *quota_table_new(void)
{
    struct quota_table *t = g_new0(struct quota_table, 1);
    t->quotas = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_quota);
    return t;
}

void quota_table_free(struct quota_table *t)
{
    if (!t)
        return;
    g_hash_table_unref(t->quotas);
    g_free(t);
}

/* Neither part can contain a slash, and no name is empty, so "" stands for none. */
static char *index_key(const char *user, const char *client)
{
    return g_strconcat(user ? user : "", "/", client ? client : "", NULL);
}

void quota_table_set(struct quota_table *t, const struct config_entity *e, GHashTable *values)
{
    const char *user = e->kind == ENTITY_CLIENT ? NULL : e->name;
    const char *client = e->kind == ENTITY_CLIENT ? e->name : e->client;
    g_autofree char *canonical = client ? sanitizer_canonical(client) : NULL; /* client ids are compared decoded */
    g_autofree char *key = index_key(user, canonical);
    struct quota *q = g_new0(struct quota, 1);
    q->path = g_strdup(e->path);
    q->values = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    for (size_t i = 0; quota_keys[i]; i++) {
        const char *value = values ? g_hash_table_lookup(values, quota_keys[i]) : NULL;
        if (value)
            g_hash_table_insert(q->values, g_strdup(quota_keys[i]), g_strdup(value));
    }
    if (g_hash_table_size(q->values) > 0) {
        g_hash_table_insert(t->quotas, g_steal_pointer(&key), q);
    } else {
        g_hash_table_remove(t->quotas, key);
        free_quota(q);
    }
}

static const char *find_at(
        const struct quota_table *t, const char *user, const char *client, const char *key, const char **ret_where)
{
    g_autofree char *index = index_key(user, client);
    const struct quota *q = g_hash_table_lookup(t->quotas, index);
    const char *value = q ? g_hash_table_lookup(q->values, key) : NULL;
    if (value && ret_where)
        *ret_where = q->path;
    return value;
}

const char *quota_table_find(
        const struct quota_table *t, const char *user, const char *client, const char *key, const char **ret_where)
{
    /* The form in which Kafka itself would look the names up. */
    g_autofree char *u = user ? sanitizer_canonical(user) : NULL, *c = client ? sanitizer_canonical(client) : NULL;
    if ((user && !u) || (client && !c))
        return NULL;
    const char *const levels[][2] = {{u, c}, {u, ENTITY_DEFAULT}, {u, NULL}, {ENTITY_DEFAULT, c},
            {ENTITY_DEFAULT, ENTITY_DEFAULT}, {ENTITY_DEFAULT, NULL}, {NULL, c}, {NULL, ENTITY_DEFAULT}};
    for (size_t i = 0; i < G_N_ELEMENTS(levels); i++) {
        bool same_shape = !levels[i][0] == !user && !levels[i][1] == !client;
        if (!same_shape && !(user && client)) /* only a pair may have the quota of one of its parts */
            continue;
        const char *value = find_at(t, levels[i][0], levels[i][1], key, ret_where);
        if (value)
            return value;
    }
    return NULL;
}
