/* TopicConfigHandler, and what LogManager reads when it makes a log. */
#include <errno.h>
#include "controller/config/internal.h"
#include "controller/config/throttle.h"

void topic_state_free(void *state)
{
    struct topic_state *s = state;
    g_hash_table_unref(s->overrides);
    g_free(s);
}

void topic_throttle_free(void *throttle)
{
    struct topic_throttle *t = throttle;
    g_free(t->leader);
    g_free(t->follower);
    g_free(t);
}

struct topic_state *topic_state_find(struct config_manager *m, const char *topic)
{
    struct topic_state *s = g_hash_table_lookup(m->topics, topic);
    if (!s || s->hosted || s->czxid == manager_topic_czxid(m, topic))
        return s;
    g_hash_table_remove(m->topics, topic);
    return NULL;
}

/* A throttle that was set before there was a topic is that of the first one. */
struct topic_throttle *topic_throttle_find(struct config_manager *m, const char *topic)
{
    struct topic_throttle *t = g_hash_table_lookup(m->throttles, topic);
    int64_t czxid = t ? manager_topic_czxid(m, topic) : 0;
    if (!t || (czxid == 0 && t->czxid == 0))
        return NULL;
    if (t->czxid == 0)
        t->czxid = czxid;
    if (t->czxid == czxid)
        return t;
    g_hash_table_remove(m->throttles, topic);
    return NULL;
}

static void throttle_event(
        struct config_manager *m, const char *topic, const char *side, const char *old, const char *now)
{
    if (m->running && g_strcmp0(old, now) != 0)
        m->env.event(m->env.ctx, "broker %d throttle %s %s %s (was %s)", m->config->broker_id, side, topic,
                now ? now : "none", old ? old : "none");
}

static void set_throttle(struct config_manager *m, const char *topic, GHashTable *overrides)
{
    const char *leader = g_hash_table_lookup(overrides, "leader.replication.throttled.replicas");
    const char *follower = g_hash_table_lookup(overrides, "follower.replication.throttled.replicas");
    struct topic_throttle *old = topic_throttle_find(m, topic), *now = g_new0(struct topic_throttle, 1);
    now->leader = leader ? throttle_list_own(leader, m->config->broker_id) : NULL;
    now->follower = follower ? throttle_list_own(follower, m->config->broker_id) : NULL;
    now->czxid = manager_topic_czxid(m, topic);
    throttle_event(m, topic, "leader", old ? old->leader : NULL, now->leader);
    throttle_event(m, topic, "follower", old ? old->follower : NULL, now->follower);
    if (now->leader || now->follower) {
        g_hash_table_insert(m->throttles, g_strdup(topic), now);
    } else {
        g_hash_table_remove(m->throttles, topic);
        topic_throttle_free(now);
    }
}

/* Overrides from the tree, all or nothing; a log that is made now has nothing old to keep and leaves out what is bad.
 */
static GHashTable *read_overrides(struct config_manager *m, const char *path, bool lenient)
{
    g_autoptr(GHashTable) config = NULL;
    g_autoptr(GPtrArray) reasons = NULL;
    g_autofree char *why = NULL;
    GHashTable *overrides = NULL;
    if (!manager_read(m, path, &config))
        return lenient ? g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free) : NULL;
    if (!lenient) {
        if (topic_config_parse(config, &overrides, &why) < 0)
            manager_complain(m, EINVAL, path, why);
        return overrides;
    }
    reasons = topic_config_parse_lenient(config, &overrides);
    manager_complain_all(m, EINVAL, path, reasons);
    return overrides;
}

static void note_changes(struct config_manager *m, const char *path, GHashTable *old, GHashTable *now)
{
    for (size_t i = 0; m->running && i < config_table_topic.n; i++) {
        const char *key = config_table_topic.defs[i].name;
        if (g_hash_table_contains(old, key) || g_hash_table_contains(now, key))
            manager_changed(
                    m, path, key, topic_config_value(m->broker, old, key), topic_config_value(m->broker, now, key));
    }
}

static void warn(struct config_manager *m, const char *path, GHashTable *overrides)
{
    g_autoptr(GPtrArray) warnings = topic_config_warnings(m->config, overrides);
    manager_complain_all(m, 0, path, warnings);
}

static void put_state(struct config_manager *m, const char *topic, GHashTable *overrides, bool hosted)
{
    struct topic_state *s = g_new0(struct topic_state, 1);
    s->overrides = overrides;
    s->hosted = hosted;
    s->czxid = manager_topic_czxid(m, topic);
    s->mzxid = manager_topic_mzxid(m, topic);
    g_hash_table_insert(m->topics, g_strdup(topic), s);
}

void topic_handler_apply(struct config_manager *m, const struct config_entity *e, bool start)
{
    struct topic_state *s = topic_state_find(m, e->name);
    g_autoptr(GHashTable) overrides = read_overrides(m, e->path, start);
    if (!overrides)
        return; /* what is in force stays, the throttle too */
    warn(m, e->path, overrides);
    if (s)
        note_changes(m, e->path, s->overrides, overrides);
    if (s || start)
        put_state(m, e->name, g_hash_table_ref(overrides), s && s->hosted);
    set_throttle(m, e->name, overrides);
    const char *unclean = g_hash_table_lookup(overrides, "unclean.leader.election.enable");
    if (!start && g_strcmp0(unclean, "true") == 0)
        m->env.unclean_enabled(m->env.ctx, e->name);
}

void config_manager_topic_created(struct config_manager *m, const char *topic)
{
    struct topic_state *s = topic_state_find(m, topic);
    if (s && s->mzxid == manager_topic_mzxid(m, topic)) { /* a log that was there at the start: nothing new to read */
        s->hosted = true;
        return;
    }
    g_autofree char *path = g_strconcat("topics/", topic, NULL);
    put_state(m, topic, read_overrides(m, path, /* lenient= */ true), /* hosted= */ true);
}

void config_manager_topic_removed(struct config_manager *m, const char *topic)
{
    g_hash_table_remove(m->topics, topic);
    g_hash_table_remove(m->throttles, topic);
}
