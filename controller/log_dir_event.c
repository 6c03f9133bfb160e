/* Failed log dirs (KafkaController.processLogDirEventNotification, processLeaderAndIsrResponseReceived): a broker says
 * that a dir has failed; LeaderAndIsr for all its replicas finds out which are gone. */
#include "controller/core.h"

#define LOG_DIR_NOTIFICATIONS "/log_dir_event_notification"

static void add_replicas_of(struct controller *c, const char *path, GHashTable *seen, GArray *replicas)
{
    struct bytes *data = NULL;
    int32_t id;
    g_autofree char *why = NULL;
    if (c->env.get(c->env.ctx, path, &data, NULL) != ZOK) {
        return;
    }
    if (!log_dir_event_decode(data, &id, &why)) {
        complain(c, EINVAL, path, "%s", why);
    } else if (context_broker(&c->ctx, id) && g_hash_table_add(seen, GINT_TO_POINTER(id))) {
        emit(c, "controller %d broker %d has a failed log dir", c->broker_id, id);
        replicas_add_on_broker(c, replicas, id);
    }
    bytes_unref(data);
}

/* Going online sends nothing to a replica that is still new (ReplicaStateMachine), and one that is being added may lead
 * already, by an unclean election: it has to be asked too. */
static void ask_new_replicas(struct controller *c, const GArray *replicas)
{
    for (guint i = 0; i < replicas->len; i++) {
        const struct replica_of *r = &g_array_index(replicas, struct replica_of, i);
        if (replica_get_state(r->p, r->broker) == REPLICA_NEW) {
            batch_leader_and_isr(c, r->p, r->broker, false);
        }
    }
}

void log_dir_event_notification(struct controller *c)
{
    g_autoptr(GPtrArray) names = c->env.children(c->env.ctx, LOG_DIR_NOTIFICATIONS);
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    g_autoptr(GArray) replicas = replicas_new();
    if (!names || names->len == 0) {
        return;
    }
    for (guint i = 0; i < names->len; i++) {
        g_autofree char *path = g_strconcat(LOG_DIR_NOTIFICATIONS "/", names->pdata[i], NULL);
        add_replicas_of(c, path, seen, replicas);
    }
    ask_new_replicas(c, replicas);
    replicas_change_state(c, replicas, REPLICA_ONLINE);
    fenced_delete_children(c, LOG_DIR_NOTIFICATIONS, names);
}

/* A dir that works again: its replicas are asked for, and deletions that waited for them go on. */
static void replicas_are_back(struct controller *c, GArray *replicas)
{
    if (replicas->len == 0) {
        return;
    }
    replicas_change_state(c, replicas, REPLICA_ONLINE);
    partitions_trigger_online(c, NULL);
    deletion_resume_topics_of(c, replicas);
    deletion_run(c);
}

void leader_and_isr_response(
        struct controller *c, int32_t broker_id, struct control_request *request, struct control_response *response)
{
    struct broker *b = context_broker(&c->ctx, broker_id);
    g_autoptr(GArray) offline = replicas_new();
    g_autoptr(GArray) back = replicas_new();
    if (response->error) {
        emit(c, "controller %d broker %d answered LeaderAndIsr: %s", c->broker_id, broker_id,
                kafka_error_name(response->error));
        return;
    }
    if (response->leader_epochs) {
        leader_epochs_fenced(c, broker_id, request, response);
    }
    for (guint i = 0; i < request->partition_states->len && i < response->partition_errors->len; i++) {
        const struct partition_state *s = request->partition_states->pdata[i];
        enum kafka_error error = g_array_index(response->partition_errors, enum kafka_error, i);
        if (error != KERR_KAFKA_STORAGE_ERROR && g_hash_table_size(b->offline) == 0) {
            continue; /* nothing to take back: so it is for nearly all, and there are many after a failover */
        }
        struct partition *p = context_partition(&c->ctx, s->topic->name, s->partition);
        if (!p || strcmp(p->topic->ref->id, s->topic->id) != 0) {
            continue;
        }
        bool exists = replica_get_state(p, broker_id) != REPLICA_NON_EXISTENT; /* or it has moved away meanwhile */
        if (error == KERR_KAFKA_STORAGE_ERROR && exists && g_hash_table_add(b->offline, p)) {
            replicas_add(offline, p, broker_id);
        } else if (error == KERR_NONE && g_hash_table_remove(b->offline, p)) {
            replicas_add(back, p, broker_id);
        }
    }
    if (offline->len) {
        replicas_become_offline(c, offline);
    }
    replicas_are_back(c, back);
}
