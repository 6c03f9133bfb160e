/* What a broker finds in its log dirs, and what becomes of it (LogManager.loadLogs, handleLogDirFailure). */
#include "controller/broker/broker_core.h"
#include "controller/json/codec.h"
#include <errno.h>
#include <string.h>

static struct replica *find_or_add(struct broker *b, const char *topic, int32_t partition, const char *topic_id)
{
    struct replica *r = replica_manager_find(&b->rm, topic, partition);
    bool first;

    if (r)
        return r;
    struct topic_ref *ref = topic_ref_new(topic, topic_id);
    r = replica_manager_add(&b->rm, ref, partition, &first);
    topic_ref_unref(ref);
    if (first)
        b->env->topic_created(b->env->ctx, topic);
    return r;
}

int broker_log_found(struct broker *b, int dir, const char *topic, int32_t partition, const char *topic_id, bool torn,
        int *ret_other)
{
    struct replica *r = find_or_add(b, topic, partition, topic_id);

    if (r->dir >= 0 && r->present && !torn) {
        *ret_other = r->dir;
        return -EEXIST;
    }
    if (r->dir >= 0) { /* a torn one reads as absent */
        struct leftover l = {.replica = r, .dir = torn ? dir : r->dir};
        g_array_append_val(b->leftovers, l);
        if (torn)
            return 0;
    }
    if (strcmp(r->topic->id, topic_id) != 0) { /* its `-future` directory came first */
        topic_ref_unref(r->topic);
        r->topic = topic_ref_new(topic, topic_id);
    }
    replica_manager_place(&b->rm, r, dir);
    r->present = !torn;
    return 0;
}

void broker_future_found(struct broker *b, int dir, const char *topic, int32_t partition)
{
    struct replica *r = find_or_add(b, topic, partition, "");

    if (r->future_dir < 0)
        replica_manager_place_future(&b->rm, r, dir);
}

/* ---- directories of a topic that is another one now ---- */

char *broker_topic_id_in_tree(const struct broker *b, const char *topic)
{
    g_autofree char *path = g_strdup_printf("/brokers/topics/%s", topic);
    struct bytes *data = NULL;
    struct topic_assignment *a = NULL;
    char *id = NULL;
    if (b->env->get(b->env->ctx, path, &data, NULL) == ZOK && data && topic_assignment_decode(data, &a, NULL)) {
        id = g_strdup(a->topic_id);
        topic_assignment_free(a);
    }
    bytes_unref(data);
    return id ? id : g_strdup("");
}

/* Remembered per name. */
static const char *id_in_tree(struct broker *b, GHashTable *ids, const char *topic)
{
    char *id = g_hash_table_lookup(ids, topic);

    if (!id) {
        id = broker_topic_id_in_tree(b, topic);
        g_hash_table_insert(ids, g_strdup(topic), id);
    }
    return id;
}

static void loading_done(struct broker *b, struct request_work *w, struct work_item *item, const struct log_task *task,
        const struct disk_batch *batch)
{
    /* of the task: two items may be about one replica, and the first may have ended it */
    g_autofree char *path = g_strdup_printf("%s/%s-%d", b->dirs[batch->dir], task->topic->name, task->partition);

    if (item->action == CLEAR_UP) {
        if (task->err)
            b->env->error(b->env->ctx, -task->err, path, "is a torn directory and could not be removed");
        return;
    }
    if (task->err)
        b->env->error(
                b->env->ctx, -task->err, path, "belongs to another topic of that name and could not be set aside");
    else
        b->env->error(b->env->ctx, 0, path, "belongs to another topic of that name: set aside with the suffix -stray");
    if (!batch->failed)
        broker_forget_replica(b, item->replica);
}

static void loading_finish(struct broker *b, struct request_work *w)
{
}

void broker_loaded(struct broker *b, gen_t gen)
{
    g_autoptr(GHashTable) ids = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    struct request_work *w = broker_work_new(b, NULL, gen);
    GHashTableIter it;
    gpointer p;

    w->task_done = loading_done;
    w->finish = loading_finish;
    g_hash_table_iter_init(&it, b->rm.replicas);
    while (g_hash_table_iter_next(&it, &p, NULL)) {
        struct replica *r = p;
        if (r->dir < 0 || *r->topic->id == '\0' || !b->rm.dirs[r->dir].online)
            continue;
        const char *id = id_in_tree(b, ids, r->topic->name);
        if (*id == '\0' || strcmp(id, r->topic->id) == 0)
            continue;
        broker_work_add(w, 0, r, SET_ASIDE);
        broker_work_task(w, DISK_STRAY, r->dir, w->items->len - 1);
    }
    for (guint i = 0; i < b->leftovers->len; i++) {
        const struct leftover *l = &g_array_index(b->leftovers, struct leftover, i);
        broker_work_add(w, 0, l->replica, CLEAR_UP);
        broker_work_task(w, DISK_DELETE, l->dir, w->items->len - 1);
    }
    b->work = w;
    broker_submit_work(b, w);
    broker_run_requests(b);
}

/* ---- failure ---- */

/* Replicas whose log was there are offline until the next start; of those with only a future log there nothing is left
 * of it. */
static void take_replicas_offline(struct broker *b, int dir)
{
    GHashTableIter it;
    gpointer p;

    g_hash_table_iter_init(&it, b->rm.replicas);
    while (g_hash_table_iter_next(&it, &p, NULL)) {
        struct replica *r = p;
        if (r->future_dir == dir)
            replica_manager_place_future(&b->rm, r, -1);
        if (r->dir == dir)
            broker_clear_role(b, r, REPLICA_OFFLINE);
    }
}

void broker_dir_failed(struct broker *b, int dir, const char *why, gen_t gen)
{
    if (b->halted || !b->rm.dirs[dir].online)
        return;
    b->rm.dirs[dir].online = false;
    b->env->error(b->env->ctx, EIO, b->dirs[dir], "broker %d takes this log dir offline until its next start: %s",
            b->id, why);
    b->env->event(b->env->ctx, "broker %d log dir %s offline", b->id, b->dirs[dir]);
    take_replicas_offline(b, dir);
    if (!replica_manager_any_dir_online(&b->rm) || !broker_config_ibp_at_least(b->config, 1, 0, 0)) {
        b->halted = true;
        g_autofree char *reason = g_strdup_printf("log dir %s failed: %s", b->dirs[dir], why);
        b->env->halt(b->env->ctx, reason);
        return;
    }
    note_write(b, "/log_dir_event_notification/log_dir_event_", log_dir_event_encode(b->id), gen);
}

void broker_log_removed(struct broker *b, int dir, const char *topic, int32_t partition)
{
    struct replica *r = replica_manager_find(&b->rm, topic, partition);

    if (!r || r->dir != dir || !r->present || r->removed || r->role == REPLICA_OFFLINE)
        return;
    r->removed = true;
    g_autofree char *path = g_strdup_printf("%s/%s-%d", b->dirs[dir], topic, partition);
    b->env->error(b->env->ctx, ENOENT, path,
            "somebody removed this directory of a replica; it is made again when broker %d starts next", b->id);
}
