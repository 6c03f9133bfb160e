#include "controller/policy/topic_index.h"
#include <pthread.h>
#include <string.h>
#include "controller/json/codec.h"
#include "fs/tree/path.h"

#define TOPICS "/brokers/topics"

struct topic {
    char *name;
    char id[23]; /* "" if it has none */
    struct topic *next_alike;
};

struct topic_index {
    pthread_mutex_t lock; /* protects all below; taken before the mirror's */
    struct mirror *mirror;
    GHashTable *by_name; /* name -> struct topic, which it owns; NULL until the first question */
    GHashTable *by_id;   /* id -> struct topic */
    GHashTable *alike;   /* name with `.` as `_` -> list of struct topic; only names that have one of the two */
};

static void free_topic(void *p)
{
    struct topic *t = p;
    g_free(t->name);
    g_free(t);
}

struct topic_index *topic_index_new(struct mirror *mirror)
{
    struct topic_index *x = g_new0(struct topic_index, 1);
    x->mirror = mirror;
    pthread_mutex_init(&x->lock, NULL);
    return x;
}

struct topic_index *topic_index_free(struct topic_index *x)
{
    if (x) {
        if (x->by_name) {
            g_hash_table_unref(x->by_id);
            g_hash_table_unref(x->alike);
            g_hash_table_unref(x->by_name);
        }
        pthread_mutex_destroy(&x->lock);
        g_free(x);
    }
    return NULL;
}

static char *alike_key(const char *name)
{
    if (!strpbrk(name, "._"))
        return NULL;
    return g_strdelimit(g_strdup(name), ".", '_');
}

static void forget_id(struct topic_index *x, struct topic *t)
{
    if (g_hash_table_lookup(x->by_id, t->id) == t)
        g_hash_table_remove(x->by_id, t->id);
    t->id[0] = '\0';
}

static void remember_id(struct topic_index *x, struct topic *t, struct bytes *data)
{
    struct topic_assignment *a;
    forget_id(x, t);
    if (!data || !strstr(data->data, "topic_id") || !topic_assignment_decode(data, &a, NULL))
        return;
    memcpy(t->id, a->topic_id, sizeof(t->id));
    topic_assignment_free(a);
    if (t->id[0] != '\0')
        g_hash_table_replace(x->by_id, t->id, t);
}

static void put_topic(struct topic_index *x, const char *name, struct bytes *data)
{
    struct topic *t = g_hash_table_lookup(x->by_name, name);
    if (!t) {
        t = g_new0(struct topic, 1);
        t->name = g_strdup(name);
        g_hash_table_insert(x->by_name, t->name, t);
        char *key = alike_key(name);
        if (key) {
            t->next_alike = g_hash_table_lookup(x->alike, key);
            g_hash_table_replace(x->alike, key, t);
        }
    }
    remember_id(x, t, data);
}

static void drop_alike(struct topic_index *x, struct topic *t)
{
    g_autofree char *key = alike_key(t->name);
    struct topic *first = key ? g_hash_table_lookup(x->alike, key) : NULL;
    if (!first)
        return;
    if (first != t) {
        struct topic *before = first;
        while (before->next_alike != t)
            before = before->next_alike;
        before->next_alike = t->next_alike;
    } else if (t->next_alike) {
        g_hash_table_replace(x->alike, g_steal_pointer(&key), t->next_alike);
    } else {
        g_hash_table_remove(x->alike, key);
    }
}

static void drop_topic(struct topic_index *x, const char *name)
{
    struct topic *t = g_hash_table_lookup(x->by_name, name);
    if (!t)
        return;
    forget_id(x, t);
    drop_alike(x, t);
    g_hash_table_remove(x->by_name, name);
}

/* Under the lock. */
static void build(struct topic_index *x)
{
    if (x->by_name)
        return;
    x->by_name = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, free_topic);
    x->by_id = g_hash_table_new(g_str_hash, g_str_equal);
    x->alike = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GPtrArray) names = mirror_children(x->mirror, TOPICS);
    for (guint i = 0; names && i < names->len; i++) {
        g_autofree char *path = path_join(TOPICS, names->pdata[i]);
        struct bytes *data;
        if (mirror_get(x->mirror, path, &data, NULL) != ZOK)
            continue;
        put_topic(x, names->pdata[i], data);
        bytes_unref(data);
    }
}

void topic_index_feed(struct topic_index *x, const struct commit *commit)
{
    pthread_mutex_lock(&x->lock);
    for (size_t i = 0; x->by_name && i < commit->n_changes; i++) {
        const struct change *c = &commit->changes[i];
        const char *name = path_child_of(c->path, TOPICS);
        if (!name)
            continue;
        if (c->type == NODE_DELETED)
            drop_topic(x, name);
        else
            put_topic(x, name, c->data);
    }
    pthread_mutex_unlock(&x->lock);
}

char *topic_index_owner_of_id(struct topic_index *x, const char *id, const char *topic)
{
    pthread_mutex_lock(&x->lock);
    build(x);
    struct topic *t = g_hash_table_lookup(x->by_id, id);
    char *owner = t && strcmp(t->name, topic) != 0 ? g_strdup(t->name) : NULL;
    pthread_mutex_unlock(&x->lock);
    return owner;
}

char *topic_index_colliding(struct topic_index *x, const char *topic)
{
    g_autofree char *key = alike_key(topic);
    if (!key)
        return NULL;
    pthread_mutex_lock(&x->lock);
    build(x);
    struct topic *t = g_hash_table_lookup(x->alike, key);
    while (t && strcmp(t->name, topic) == 0)
        t = t->next_alike;
    char *other = t ? g_strdup(t->name) : NULL;
    pthread_mutex_unlock(&x->lock);
    return other;
}
