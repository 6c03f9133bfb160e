/* TopicDeletionManager: which topics are to be deleted, what holds them up, and what to do next. It reaches the world
 * through the state machines and the deletion client alone.
 *
 * resumeDeletions is driven per topic: whatever happens to a queued topic puts it on the list of pending ones, and
 * deletion_run() looks at those only. So a topic that waits for a dead broker costs nothing meanwhile. */
#include "controller/core.h"

bool deletion_enabled(const struct controller *c)
{
    return c->config->delete_topic_enable;
}

bool deletion_decides(const struct topic *t)
{
    return t->deletion && (t->deletion->started || t->n_reassigning == 0);
}

static struct deletion *find_deletion(const struct controller *c, const char *name)
{
    return g_hash_table_lookup(c->ctx.deletions, name);
}

static void touch(struct controller *c, struct deletion *d)
{
    if (!d->pending) {
        d->pending = true;
        g_ptr_array_add(c->pending_deletions, d);
    }
}

void deletion_forget(struct controller *c, struct deletion *d)
{
    struct topic *t = context_topic(&c->ctx, d->name);
    if (t) {
        t->deletion = NULL;
    }
    g_ptr_array_remove(c->pending_deletions, d);
    g_hash_table_remove(c->ctx.deletions, d->name);
}

static struct deletion *enqueue(struct controller *c, const char *name)
{
    struct deletion *d = find_deletion(c, name);
    if (d) {
        return d;
    }
    d = g_new0(struct deletion, 1);
    d->name = g_strdup(name);
    g_hash_table_insert(c->ctx.deletions, d->name, d);
    struct topic *t = context_topic(&c->ctx, name);
    if (t) {
        t->deletion = d;
    }
    emit(c, "controller %d topic %s deletion queued", c->broker_id, name);
    return d;
}

/* ---- what holds a deletion up ---- */

/* The first step of a reassignment and the last one decide about the same replicas: the deletion waits for the end.
 * That of a partition whose state somebody has removed, or that never had one, has none. One that goes on is enough to
 * know: this is asked at the end of each. */
static bool is_reassigning(struct controller *c, struct topic *t)
{
    for (guint i = 0; t && t->n_reassigning && i < t->partitions->len; i++) {
        struct partition *p = t->partitions->pdata[i];
        if (p->reassigning && !partition_state_is_missing(c, p)) {
            return true;
        }
        partition_set_reassigning(p, false);
    }
    return false;
}

void deletion_mark_ineligible(struct controller *c, struct topic *t)
{
    if (t->deletion && !t->deletion->ineligible) {
        t->deletion->ineligible = true;
        if (!c->moved) {
            g_autofree char *text = deletion_text(c, t->ref->name);
            emit(c, "controller %d topic %s deletion %s", c->broker_id, t->ref->name, text);
        }
    }
}

/* resumeDeletionForTopics: the topic is eligible again, unless a reassignment of its own still goes on (Kafka clears
 * that too early). */
void deletion_resume_topic(struct controller *c, const char *topic)
{
    struct deletion *d = find_deletion(c, topic);
    if (!d) {
        return;
    }
    d->ineligible = is_reassigning(c, context_topic(&c->ctx, topic));
    g_clear_pointer(&d->failure, g_free);
    touch(c, d);
}

void deletion_resume_topics_of(struct controller *c, const GArray *replicas)
{
    const struct topic *last = NULL;
    for (guint i = 0; i < replicas->len; i++) {
        const struct topic *t = g_array_index(replicas, struct replica_of, i).p->topic;
        if (t != last) {
            deletion_resume_topic(c, t->ref->name);
        }
        last = t;
    }
}

/* ---- the driver ---- */

static void add_replicas_in(const struct topic *t, enum replica_state state, GArray *replicas)
{
    for (guint i = 0; i < t->partitions->len; i++) {
        struct partition *p = t->partitions->pdata[i];
        for (uint32_t r = 0; r < p->n_states; r++) {
            if (p->states[r].state == state) {
                replicas_add(replicas, p, p->states[r].broker);
            }
        }
    }
}

/* The replicas that a deletion deals with, by what can be done: dead ones wait, the others are told. */
static void sort_replicas(struct controller *c, struct topic *t, GArray *dead, GArray *to_delete, bool *ret_dead)
{
    *ret_dead = false;
    for (guint i = 0; i < t->partitions->len; i++) {
        struct partition *p = t->partitions->pdata[i];
        for (uint32_t r = 0; r < p->n_states; r++) {
            const struct replica *replica = &p->states[r];
            bool online = replica_is_online(&c->ctx, p, replica->broker);
            if (replica->state == REPLICA_DELETION_SUCCESSFUL) {
                continue;
            }
            *ret_dead = *ret_dead || !online;
            if (online) {
                replicas_add(to_delete, p, replica->broker);
            } else if (replica->state != REPLICA_DELETION_INELIGIBLE) {
                replicas_add(dead, p, replica->broker);
            }
        }
    }
}

/* First time only: all partitions to Offline, then NonExistent, so that they count nowhere any more (KAFKA-6753). */
static void start(struct controller *c, GPtrArray *topics)
{
    g_autoptr(GPtrArray) partitions = g_ptr_array_new();
    for (guint i = 0; i < topics->len; i++) {
        struct topic *t = topics->pdata[i];
        if (!t->deletion->started) {
            t->deletion->started = true;
            emit(c, "controller %d topic %s deletion started", c->broker_id, t->ref->name);
            for (guint p = 0; p < t->partitions->len; p++) {
                g_ptr_array_add(partitions, t->partitions->pdata[p]);
            }
        }
    }
    partitions_change_state(c, partitions, PARTITION_OFFLINE);
    partitions_change_state(c, partitions, PARTITION_NON_EXISTENT);
}

/* A replica that could not be taken offline (its state could not be written) would be waited for in vain. */
static void mark_those_that_stayed(struct controller *c, const GArray *replicas)
{
    for (guint i = 0; i < replicas->len && !c->moved; i++) {
        const struct replica_of *r = &g_array_index(replicas, struct replica_of, i);
        if (replica_get_state(r->p, r->broker) != REPLICA_DELETION_STARTED) {
            struct deletion *d = r->p->topic->deletion;
            g_free(d->failure);
            d->failure = g_strdup_printf("the state of %s-%d could not be written", d->name, r->p->id);
            deletion_mark_ineligible(c, r->p->topic);
        }
    }
}

/* TopicDeletionManager.onTopicDeletion */
static void delete_topics(struct controller *c, GPtrArray *topics)
{
    if (topics->len == 0) {
        return;
    }
    for (guint i = 0; i < topics->len; i++) {
        ((struct topic *)topics->pdata[i])->deletion->since = c->correlation_id;
    }
    g_autoptr(GArray) dead = replicas_new();
    g_autoptr(GArray) to_delete = replicas_new();
    g_autoptr(GPtrArray) waiting = g_ptr_array_new();
    start(c, topics);
    deletion_client_send_metadata(c, topics);
    for (guint i = 0; i < topics->len; i++) {
        bool has_dead;
        sort_replicas(c, topics->pdata[i], dead, to_delete, &has_dead);
        if (has_dead) {
            g_ptr_array_add(waiting, topics->pdata[i]);
        }
    }
    replicas_change_state(c, dead, REPLICA_DELETION_INELIGIBLE);
    replicas_change_state(c, to_delete, REPLICA_OFFLINE);
    replicas_change_state(c, to_delete, REPLICA_DELETION_STARTED);
    mark_those_that_stayed(c, to_delete);
    for (guint i = 0; i < waiting->len; i++) {
        deletion_mark_ineligible(c, waiting->pdata[i]);
    }
}

/* TopicDeletionManager.completeDeleteTopic, for many at once. A topic whose nodes could not be removed stays pending:
 * whatever happens next tries again. */
static void complete_topics(struct controller *c, GPtrArray *names)
{
    if (names->len == 0) {
        return;
    }
    g_autofree bool *done = g_new0(bool, names->len);
    g_autoptr(GPtrArray) gone = g_ptr_array_new();
    deletion_client_delete_topics(c, names, done);
    for (guint i = 0; i < names->len && !c->moved; i++) {
        struct deletion *d = find_deletion(c, names->pdata[i]);
        struct topic *t = context_topic(&c->ctx, d->name);
        if (!done[i]) {
            touch(c, d);
            continue;
        }
        emit(c, "controller %d topic %s deletion completed", c->broker_id, d->name);
        if (t) {
            context_topic_remove(&c->ctx, t);
        }
        deletion_forget(c, d); /* queued, started and ineligible: nothing stale stays for a later topic of this name */
        g_ptr_array_add(gone, names->pdata[i]);
    }
    reassignment_forget_topics(c, gone);
}

static bool is_done(const struct topic *t)
{
    return !t || topic_replica_count(t) == t->n_replicas[REPLICA_DELETION_SUCCESSFUL];
}

/* Sorts the pending ones by what is to be done (TopicDeletionManager.resumeDeletions). */
static void look_at(struct controller *c, struct deletion *d, GPtrArray *complete, GArray *retry, GPtrArray *begin)
{
    struct topic *t = context_topic(&c->ctx, d->name);
    if (is_done(t)) {
        g_ptr_array_add(complete, g_strdup(d->name));
        return;
    }
    if (t->n_replicas[REPLICA_DELETION_STARTED] > 0) {
        return; /* answers are on their way */
    }
    if (t->n_replicas[REPLICA_DELETION_INELIGIBLE] > 0) {
        add_replicas_in(t, REPLICA_DELETION_INELIGIBLE, retry);
    }
    if (!d->ineligible) {
        g_ptr_array_add(begin, t);
    }
}

void deletion_run(struct controller *c)
{
    if (c->pending_deletions->len == 0) {
        return;
    }
    g_autoptr(GPtrArray) complete = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) begin = g_ptr_array_new();
    g_autoptr(GArray) retry = replicas_new();
    for (guint i = 0; i < c->pending_deletions->len; i++) {
        struct deletion *d = c->pending_deletions->pdata[i];
        d->pending = false;
        look_at(c, d, complete, retry, begin);
    }
    g_ptr_array_set_size(c->pending_deletions, 0);
    complete_topics(c, complete);
    replicas_change_state(c, retry, REPLICA_OFFLINE);
    delete_topics(c, begin);
}

/* ---- what brokers answer, and what happens to them ---- */

static void touch_topics_of(struct controller *c, const GArray *replicas)
{
    for (guint i = 0; i < replicas->len; i++) {
        touch(c, g_array_index(replicas, struct replica_of, i).p->topic->deletion);
    }
}

void deletion_fail_replicas(struct controller *c, GArray *replicas, const char *why)
{
    if (replicas->len == 0) {
        return;
    }
    replicas_change_state(c, replicas, REPLICA_DELETION_INELIGIBLE);
    for (guint i = 0; i < replicas->len; i++) {
        struct topic *t = g_array_index(replicas, struct replica_of, i).p->topic;
        if (why) {
            g_free(t->deletion->failure);
            t->deletion->failure = g_strdup(why);
        }
        deletion_mark_ineligible(c, t);
    }
    touch_topics_of(c, replicas);
    deletion_run(c);
}

void deletion_complete_replicas(struct controller *c, GArray *replicas)
{
    replicas_change_state(c, replicas, REPLICA_DELETION_SUCCESSFUL);
    touch_topics_of(c, replicas);
    deletion_run(c);
}

/* Is this an answer to the deletion in hand? A reassignment asks for the removal of replicas too, and nobody waits for
 * the answer; it may come when the replica has been made again and is to be deleted with its topic. */
static bool is_of_deletion(const struct deletion *d, const struct control_request *request)
{
    return d && d->started && request->correlation_id > d->since;
}

/* Only answers to a delete, for a topic whose deletion has started (KAFKA-9946). */
void stop_replica_response(
        struct controller *c, int32_t broker_id, struct control_request *request, struct control_response *response)
{
    g_autoptr(GArray) failed = replicas_new();
    g_autoptr(GArray) done = replicas_new();
    g_autofree char *why = NULL;
    for (guint i = 0; i < request->stop_states->len; i++) {
        const struct stop_replica_state *s = &g_array_index(request->stop_states, struct stop_replica_state, i);
        struct partition *p = s->delete_partition ? context_partition(&c->ctx, s->topic->name, s->partition) : NULL;
        if (!p || !is_of_deletion(p->topic->deletion, request) || strcmp(p->topic->ref->id, s->topic->id) != 0 ||
                replica_get_state(p, broker_id) != REPLICA_DELETION_STARTED) {
            continue;
        }
        enum kafka_error error = response->error;
        if (!error && i < response->partition_errors->len) {
            error = g_array_index(response->partition_errors, enum kafka_error, i);
        }
        if (error && !why) {
            why = g_strdup_printf("broker %d could not delete %s-%d: %s", broker_id, s->topic->name, s->partition,
                    kafka_error_name(error));
        }
        replicas_add(error ? failed : done, p, broker_id);
    }
    deletion_fail_replicas(c, failed, why);
    deletion_complete_replicas(c, done);
}

/* ---- events ---- */

void deletion_enqueue(struct controller *c, GPtrArray *topics)
{
    for (guint i = 0; i < topics->len; i++) {
        struct deletion *d = enqueue(c, topics->pdata[i]);
        struct topic *t = context_topic(&c->ctx, d->name);
        if (is_reassigning(c, t)) {
            deletion_mark_ineligible(c, t); /* after the enqueueing, or it would be lost (LinkedIn PR 14) */
        }
        touch(c, d);
    }
}

static bool marker_exists(struct controller *c, const char *name)
{
    g_autofree char *path = g_strconcat("/admin/delete_topics/", name, NULL);
    return c->env.get(c->env.ctx, path, NULL, NULL) == ZOK;
}

/* The mark is gone. A deletion that has started goes on, also under the next controller; one that has not is off. */
static void marker_removed(struct controller *c, struct deletion *d)
{
    if (d->started) {
        deletion_client_restore_marker(c, d->name);
        return;
    }
    struct topic *t = context_topic(&c->ctx, d->name);
    emit(c, "controller %d topic %s deletion withdrawn", c->broker_id, d->name);
    deletion_forget(c, d);
    if (t) {
        topic_take_up_again(c, t);
    }
}

/* A topic may be there and not be known yet: its TopicChange is still queued behind this event. It is taken in first,
 * or the request would be refused as one for a topic that does not exist. */
static bool is_known(struct controller *c, char *name)
{
    if (!context_topic(&c->ctx, name)) {
        g_autoptr(GHashTable) new = g_hash_table_new(g_str_hash, g_str_equal);
        g_hash_table_add(new, name);
        topic_change(c, new);
    }
    return context_topic(&c->ctx, name);
}

/* KafkaController.processTopicDeletion */
void topic_deletion(struct controller *c, GHashTable *names)
{
    g_autoptr(GPtrArray) sorted = names_sorted(names);
    g_autoptr(GPtrArray) wanted = g_ptr_array_new();
    g_autoptr(GPtrArray) refused = g_ptr_array_new();
    for (guint i = 0; i < sorted->len; i++) {
        const char *name = sorted->pdata[i];
        struct deletion *d = find_deletion(c, name);
        if (!marker_exists(c, name)) {
            if (d) {
                marker_removed(c, d);
            }
        } else if (d) {
            continue;
        } else if (!is_known(c, sorted->pdata[i])) {
            g_autofree char *path = g_strconcat("/admin/delete_topics/", name, NULL);
            complain(c, ENOENT, path, "there is no topic of this name; the request was removed");
            g_ptr_array_add(refused, sorted->pdata[i]);
        } else if (!deletion_enabled(c)) {
            g_autofree char *path = g_strconcat("/admin/delete_topics/", name, NULL);
            complain(c, EPERM, path, "delete.topic.enable is false; the request was removed");
            g_ptr_array_add(refused, sorted->pdata[i]);
        } else {
            g_ptr_array_add(wanted, sorted->pdata[i]);
        }
    }
    deletion_client_delete_markers(c, refused);
    deletion_enqueue(c, wanted);
    deletion_run(c);
}

/* `touch` of a marker: whatever held the deletion up, look again now. */
void topic_deletion_retry(struct controller *c, GHashTable *names)
{
    g_autoptr(GPtrArray) sorted = names_sorted(names);
    for (guint i = 0; i < sorted->len; i++) {
        deletion_resume_topic(c, sorted->pdata[i]);
    }
    deletion_run(c);
}

/* ---- a new controller ---- */

static bool has_dead_replica(const struct controller *c, const struct topic *t)
{
    for (guint i = 0; i < t->partitions->len; i++) {
        const struct partition *p = t->partitions->pdata[i];
        for (uint32_t r = 0; r < p->replicas->n; r++) {
            if (!replica_is_online(&c->ctx, p, p->replicas->id[r])) {
                return true;
            }
        }
    }
    return false;
}

/* fetchTopicDeletionsInProgress, TopicDeletionManager.init: all marks count, also those of topics that are gone (their
 * configuration and mark are still to be removed). Called before the topics are loaded (queue), and after (`init`). */
void deletion_load(struct controller *c)
{
    g_autoptr(GPtrArray) names = c->env.children(c->env.ctx, "/admin/delete_topics");
    if (!names) {
        return;
    }
    if (!deletion_enabled(c)) {
        if (names->len) {
            complain(c, EPERM, "/admin/delete_topics", "delete.topic.enable is false; %u requests were removed",
                    names->len);
        }
        deletion_client_delete_markers(c, names);
        return;
    }
    for (guint i = 0; i < names->len; i++) {
        touch(c, enqueue(c, names->pdata[i]));
    }
}

void deletion_init(struct controller *c)
{
    for (guint i = 0; i < c->pending_deletions->len; i++) {
        struct deletion *d = c->pending_deletions->pdata[i];
        struct topic *t = context_topic(&c->ctx, d->name);
        if (t && has_dead_replica(c, t)) {
            deletion_mark_ineligible(c, t);
        }
    }
}
