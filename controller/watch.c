/* Which event a change of the tree means: the watches that KafkaController sets. Events carry names, and later changes
 * add theirs to one that is still queued, so nobody has to look through the whole tree. */
#include "controller/core.h"
#include "fs/tree/path.h"

struct controller_event *controller_event_new(enum controller_event_type type)
{
    struct controller_event *e = g_new0(struct controller_event, 1);
    e->type = type;
    return e;
}

void controller_event_free(struct controller_event *e)
{
    if (!e) {
        return;
    }
    if (e->names) {
        g_hash_table_unref(e->names);
    }
    control_request_unref(e->request);
    control_response_free(e->response);
    broker_request_free(e->broker_request);
    g_free(e);
}

static struct controller_event *named(enum controller_event_type type, char *name)
{
    struct controller_event *e = controller_event_new(type);
    e->names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_hash_table_add(e->names, name);
    return e;
}

static struct controller_event *of_topics(const struct change *change, const char *rest)
{
    const char *slash = strchr(rest, '/');
    if (!slash) {
        return named(
                change->type == NODE_DATA_CHANGED ? EVENT_PARTITION_MODIFICATIONS : EVENT_TOPIC_CHANGE, g_strdup(rest));
    }
    if (!path_matches(change->path, "/brokers/topics/*/partitions/*/state")) {
        return NULL;
    }
    g_autofree char *topic = g_strndup(rest, (gsize)(slash - rest));
    g_autofree char *partition = path_component(change->path, 4);
    return named(EVENT_PARTITION_STATE_CHANGE, g_strdup_printf("%s/%s", topic, partition));
}

static struct controller_event *of_single(const struct change *change)
{
    const char *path = change->path;
    bool deleted = change->type == NODE_DELETED;
    if (strcmp(path, "/controller") == 0) {
        return controller_event_new(deleted ? EVENT_REELECT : EVENT_CONTROLLER_CHANGE);
    }
    if (strcmp(path, "/controller_epoch") == 0) {
        return controller_event_new(EVENT_EPOCH_CHANGE);
    }
    if (!deleted && strcmp(path, "/admin/reassign_partitions") == 0) {
        return controller_event_new(EVENT_PARTITION_REASSIGNMENT);
    }
    if (!deleted && strcmp(path, "/admin/preferred_replica_election") == 0) {
        return controller_event_new(EVENT_REPLICA_LEADER_ELECTION);
    }
    return NULL;
}

struct controller_event *controller_event_of_change(const struct change *change)
{
    const char *path = change->path, *name;
    if (g_str_has_prefix(path, "/brokers/topics/")) {
        return of_topics(change, path + strlen("/brokers/topics/"));
    }
    if ((name = path_child_of(path, "/brokers/ids"))) {
        return change->type == NODE_DATA_CHANGED ? named(EVENT_BROKER_MODIFICATIONS, g_strdup(name))
                                                 : controller_event_new(EVENT_BROKER_CHANGE);
    }
    if ((name = path_child_of(path, "/admin/delete_topics"))) {
        return change->type == NODE_DATA_CHANGED ? NULL : named(EVENT_TOPIC_DELETION, g_strdup(name));
    }
    if (path_child_of(path, "/isr_change_notification")) {
        return change->type == NODE_CREATED ? controller_event_new(EVENT_ISR_CHANGE_NOTIFICATION) : NULL;
    }
    if (path_child_of(path, "/log_dir_event_notification")) {
        return change->type == NODE_CREATED ? controller_event_new(EVENT_LOG_DIR_EVENT_NOTIFICATION) : NULL;
    }
    return of_single(change);
}

static bool is_mergeable(enum controller_event_type type)
{
    return type >= EVENT_CONTROLLER_CHANGE && type <= EVENT_UNCLEAN_ELECTION_ENABLE && type != EVENT_EXPIRE;
}

bool controller_event_merge(struct controller_event *into, struct controller_event *from)
{
    if (into->type != from->type || !is_mergeable(into->type)) {
        return false;
    }
    if (!from->names && into->names) { /* no names: everything */
        g_clear_pointer(&into->names, g_hash_table_unref);
    }
    if (from->names && into->names) {
        GHashTableIter it;
        gpointer name;
        g_hash_table_iter_init(&it, from->names);
        while (g_hash_table_iter_next(&it, &name, NULL)) {
            g_hash_table_iter_steal(&it);
            g_hash_table_add(into->names, name);
        }
    }
    controller_event_free(from);
    return true;
}
