#include "controller/broker/replica_manager.h"
#include <string.h>

/* A topic that has replicas here. */
struct hosted_topic {
    struct topic_ref *ref; /* of the first that came; the key lies in it */
    size_t n;
};

static guint replica_hash(gconstpointer p)
{
    const struct replica *r = p;

    return g_str_hash(r->topic->name) * 31u + (guint)r->partition;
}

static gboolean replica_equal(gconstpointer pa, gconstpointer pb)
{
    const struct replica *a = pa, *b = pb;

    return a->partition == b->partition && (a->topic == b->topic || strcmp(a->topic->name, b->topic->name) == 0);
}

static void hosted_topic_free(gpointer p)
{
    struct hosted_topic *t = p;

    topic_ref_unref(t->ref);
    g_free(t);
}

void replica_forget_state(struct replica *r)
{
    r->leader_epoch = LEADER_EPOCH_NONE;
    r->partition_epoch = -1;
    r->leader = LEADER_NONE;
    r->controller_epoch = -1;
    r->replicas = broker_ids_unref(r->replicas);
}

static void replica_free(gpointer p)
{
    struct replica *r = p;

    topic_ref_unref(r->topic);
    broker_ids_unref(r->replicas);
    broker_ids_unref(r->isr);
    g_free(r);
}

void replica_manager_init(struct replica_manager *m, size_t n_dirs)
{
    m->replicas = g_hash_table_new_full(replica_hash, replica_equal, replica_free, NULL);
    m->topics = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, hosted_topic_free);
    m->n_dirs = n_dirs;
    m->dirs = g_new0(struct log_dir_info, n_dirs);
    for (size_t i = 0; i < n_dirs; i++)
        m->dirs[i].online = true;
}

void replica_manager_clear(struct replica_manager *m)
{
    g_hash_table_unref(m->replicas);
    g_hash_table_unref(m->topics);
    g_free(m->dirs);
}

struct replica *replica_manager_find(const struct replica_manager *m, const char *topic, int32_t partition)
{
    /* a key on the stack: the name must lie inside a topic_ref */
    size_t len = strlen(topic) + 1;
    union {
        struct topic_ref ref;
        char space[sizeof(struct topic_ref) + 256];
    } key;
    struct replica probe = {.topic = &key.ref, .partition = partition};

    if (len > 256) /* no topic is that long */
        return NULL;
    memcpy(key.space + offsetof(struct topic_ref, name), topic, len);
    return g_hash_table_lookup(m->replicas, &probe);
}

struct replica *replica_manager_add(
        struct replica_manager *m, struct topic_ref *topic, int32_t partition, bool *ret_first)
{
    struct replica *r = g_new0(struct replica, 1);
    struct hosted_topic *t = g_hash_table_lookup(m->topics, topic->name);

    if (!t) {
        t = g_new0(struct hosted_topic, 1);
        t->ref = topic_ref_ref(topic);
        g_hash_table_insert(m->topics, t->ref->name, t);
    }
    if (ret_first)
        *ret_first = t->n == 0;
    t->n++;
    r->topic = topic_ref_ref(strcmp(t->ref->id, topic->id) == 0 ? t->ref : topic);
    r->partition = partition;
    r->dir = r->future_dir = -1;
    replica_forget_state(r);
    g_hash_table_add(m->replicas, r);
    return r;
}

bool replica_manager_remove(struct replica_manager *m, struct replica *r)
{
    struct hosted_topic *t = g_hash_table_lookup(m->topics, r->topic->name);
    bool last = --t->n == 0;

    replica_manager_place(m, r, -1);
    replica_manager_place_future(m, r, -1);
    if (last)
        g_hash_table_remove(m->topics, r->topic->name);
    g_hash_table_remove(m->replicas, r);
    return last;
}

void replica_manager_place(struct replica_manager *m, struct replica *r, int dir)
{
    if (r->dir >= 0)
        m->dirs[r->dir].n_logs--;
    if (dir >= 0)
        m->dirs[dir].n_logs++;
    r->dir = (int16_t)dir;
}

void replica_manager_place_future(struct replica_manager *m, struct replica *r, int dir)
{
    if (r->future_dir >= 0)
        m->dirs[r->future_dir].n_logs--;
    if (dir >= 0)
        m->dirs[dir].n_logs++;
    r->future_dir = (int16_t)dir;
}

int replica_manager_next_dir(const struct replica_manager *m)
{
    int best = -1;

    for (size_t i = 0; i < m->n_dirs; i++)
        if (m->dirs[i].online && (best < 0 || m->dirs[i].n_logs < m->dirs[best].n_logs))
            best = (int)i;
    return best;
}

bool replica_manager_any_dir_offline(const struct replica_manager *m)
{
    for (size_t i = 0; i < m->n_dirs; i++)
        if (!m->dirs[i].online)
            return true;
    return false;
}

bool replica_manager_any_dir_online(const struct replica_manager *m)
{
    return replica_manager_next_dir(m) >= 0;
}
