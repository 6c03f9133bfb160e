/* Topics and partitions that come, go and change (KafkaController.processTopicChange, processPartitionModifications).
 * Only additions act; what else is changed by hand in a topic's node is ignored and stays as it was written, since
 * reassignments are driven by the controller's memory: until they write the node again, or the next controller reads
 * it. A topic that is removed by hand is forgotten whole, so that its name can start again. */
#include "controller/core.h"
#include "fs/tree/mirror.h"
#include "fs/tree/path.h"

#define SAVE_ATTEMPTS 16
#define MISSING_SHOWN 10

static bool wants_topic_id(const struct controller *c)
{
    return broker_config_ibp_at_least(c->config, 2, 8, 0);
}

/* ---- the topic's node ---- */

/* Decodes; NULL if there is nothing usable in it. Null and empty data are a topic that is being made or removed, and
 * nothing to complain about. */
static struct topic_assignment *decode(struct controller *c, const char *path, const struct bytes *data)
{
    struct topic_assignment *a = NULL;
    g_autofree char *why = NULL;
    const char *bad_name = topic_name_why_bad(path_name(path));
    if (bad_name) {
        complain(c, EINVAL, path, "%s", bad_name);
    } else if (data && data->len && !topic_assignment_decode(data, &a, &why)) {
        complain(c, EINVAL, path, "taken as a topic without partitions: %s", why);
    }
    return a;
}

static struct topic_assignment *read_topic(struct controller *c, const char *name, struct zstat *ret_stat, int *ret_rc)
{
    g_autofree char *path = topic_path(name);
    struct bytes *data = NULL;
    *ret_rc = c->env.get(c->env.ctx, path, &data, ret_stat);
    if (*ret_rc) {
        return NULL;
    }
    struct topic_assignment *a = decode(c, path, data);
    bytes_unref(data);
    return a;
}

/* Makes sure that the topic has an id which no other one has; one that is missing in the tree is written later. */
static void give_topic_id(struct controller *c, struct topic *t)
{
    if (!wants_topic_id(c) || t->ref->id[0]) {
        return;
    }
    char id[23];
    uuid_generate(c->env.random, c->env.ctx, id);
    topic_set_id(&c->ctx, t, id);
    t->unsaved = TOPIC_LACKS_ID;
}

/* What no broker can hold: nothing at all, one replica twice, an id that is none. */
static bool is_possible(const struct broker_ids *replicas)
{
    for (uint32_t i = 0; i < replicas->n; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (replicas->id[k] == replicas->id[i]) {
                return false;
            }
        }
        if (replicas->id[i] < 0) {
            return false;
        }
    }
    return replicas->n > 0;
}

/* NULL: the assignment is impossible, and the partition is left out. */
static struct partition *add_partition(struct controller *c, struct topic *t, const struct partition_assignment *a)
{
    struct broker_ids *none = c->ctx.none;
    if (!is_possible(a->replicas)) {
        g_autofree char *path = topic_path(t->ref->name);
        g_autofree char *ids = broker_ids_text(a->replicas);
        complain(c, EINVAL, path, "partition %d is left out: its replicas are [%s]", a->partition, ids);
        return NULL;
    }
    /* A topic that is being deleted ends its reassignment: all its replicas go (LinkedIn PR 596). */
    bool moving = !t->deletion;
    struct partition *p = topic_partition_add(&c->ctx, t, a->partition, broker_ids_ref(a->replicas),
            broker_ids_ref(moving ? a->adding : none), broker_ids_ref(moving ? a->removing : none));
    partition_set_reassigning(p, partition_is_being_reassigned(p));
    return p;
}

struct topic *topic_load(struct controller *c, const char *name)
{
    struct zstat stat;
    int rc;
    struct topic_assignment *a = read_topic(c, name, &stat, &rc);
    if (rc) {
        return NULL;
    }
    bool taken = a && a->topic_id[0] && g_hash_table_contains(c->ctx.topic_ids, a->topic_id);
    struct topic *t = context_topic_add(&c->ctx, name, a && !taken ? a->topic_id : "", stat.czxid);
    if (a) {
        topic_partitions_reserve(t, a->partitions->len);
        for (guint i = 0; i < a->partitions->len; i++) {
            add_partition(c, t, &g_array_index(a->partitions, struct partition_assignment, i));
        }
        give_topic_id(c, t);
        topic_assignment_free(a);
    }
    return t;
}

/* A controller that found the topic queued has not taken its reassignment on. */
static void take_reassignment_on(struct controller *c, struct topic *t)
{
    struct zstat stat;
    int rc;
    struct topic_assignment *a = read_topic(c, t->ref->name, &stat, &rc);
    for (guint i = 0; a && stat.czxid == t->czxid && i < a->partitions->len; i++) {
        const struct partition_assignment *node = &g_array_index(a->partitions, struct partition_assignment, i);
        struct partition *p = topic_partition(t, node->partition);
        if (p && broker_ids_equal(p->replicas, node->replicas)) {
            partition_assign(&c->ctx, p, broker_ids_ref(node->replicas), broker_ids_ref(node->adding),
                    broker_ids_ref(node->removing));
            partition_set_reassigning(p, partition_is_being_reassigned(p));
        }
    }
    topic_assignment_free(a);
}

void topic_take_up_again(struct controller *c, struct topic *t)
{
    g_autoptr(GArray) dead = replicas_new();
    g_autoptr(GPtrArray) led = g_ptr_array_new();
    g_autoptr(GHashTable) none = g_hash_table_new(NULL, NULL);
    take_reassignment_on(c, t);
    for (guint i = 0; i < t->partitions->len; i++) {
        struct partition *p = t->partitions->pdata[i];
        for (uint32_t r = 0; r < p->replicas->n; r++) {
            if (!replica_is_online(&c->ctx, p, p->replicas->id[r])) {
                replicas_add(dead, p, p->replicas->id[r]);
            }
        }
    }
    replicas_become_offline(c, dead);
    for (guint i = 0; i < t->partitions->len; i++) {
        struct partition *p = t->partitions->pdata[i];
        if (p->has_leadership && replica_is_online(&c->ctx, p, p->leadership.leader)) {
            g_ptr_array_add(led, p); /* caches were told that it goes, leaders not of their last epoch */
        }
    }
    partitions_renew(c, led);
    batch_send(c);
    partitions_trigger_online(c, t->ref->name);
    reassignment_resume_all(c, none);
}

/* The partition that a child of `partitions` stands for; NULL: none. */
static struct partition *partition_named(const struct topic *t, const char *name)
{
    gint64 id;
    bool canonical = g_ascii_isdigit(*name) && (*name != '0' || name[1] == '\0');
    return canonical && g_ascii_string_to_signed(name, 10, 0, INT32_MAX, &id, NULL) ? topic_partition(t, (int32_t)id)
                                                                                    : NULL;
}

void topic_load_leadership(struct controller *c, struct topic *t)
{
    g_autofree char *path = g_strconcat("/brokers/topics/", t->ref->name, "/partitions", NULL);
    g_autoptr(GArray) states = c->env.below(c->env.ctx, path, "state");
    for (guint i = 0; i < states->len; i++) {
        const struct node_below *state = &g_array_index(states, struct node_below, i);
        struct partition *p = partition_named(t, state->child);
        struct leader_and_isr l;
        if (p && decode_partition_state(c, p, state->data, state->version, &l) == ZOK) {
            election_is_outdated(c, p, l.controller_epoch); /* the start-up goes on in vain, and another one follows */
            partition_set_leadership(&c->ctx, p, &l);
        }
    }
}

static void encode_partitions(const struct topic *t, struct topic_assignment *out)
{
    for (guint i = 0; i < t->partitions->len; i++) {
        const struct partition *p = t->partitions->pdata[i];
        topic_assignment_add(
                out, p->id, broker_ids_ref(p->replicas), broker_ids_ref(p->adding), broker_ids_ref(p->removing));
    }
}

bool topic_is_there(struct controller *c, const struct topic *t)
{
    g_autofree char *path = topic_path(t->ref->name);
    struct zstat stat;
    return c->env.get(c->env.ctx, path, NULL, &stat) == ZOK && stat.czxid == t->czxid;
}

/* Partitions that only the node has: somebody has just added them, and the event for it is on its way. */
static void keep_additions(const struct topic *t, const struct topic_assignment *node, struct topic_assignment *out)
{
    for (guint i = 0; node && i < node->partitions->len; i++) {
        const struct partition_assignment *a = &g_array_index(node->partitions, struct partition_assignment, i);
        if (!topic_partition(t, a->partition)) {
            topic_assignment_add(out, a->partition, broker_ids_ref(a->replicas), NULL, NULL);
        }
    }
}

bool topic_put(struct controller *c, struct txn *txn, const struct topic *t)
{
    struct zstat stat;
    int rc;
    struct topic_assignment *node = read_topic(c, t->ref->name, &stat, &rc);
    if (rc || stat.czxid != t->czxid) { /* gone, or made again as another topic: TopicChange follows */
        topic_assignment_free(node);
        return false;
    }
    struct topic_assignment *out = node;
    if (!node || t->unsaved == TOPIC_REASSIGNED) {
        out = topic_assignment_new();
        encode_partitions(t, out);
        keep_additions(t, node, out);
        out->unknown = node ? g_steal_pointer(&node->unknown) : NULL;
    }
    g_strlcpy(out->topic_id, t->ref->id, sizeof(out->topic_id));
    g_autofree char *path = topic_path(t->ref->name);
    size_t set = txn_set(txn, path, topic_assignment_encode(out), stat.version);
    txn->ops[set].czxid = t->czxid;
    if (out != node) {
        topic_assignment_free(out);
    }
    topic_assignment_free(node);
    return true;
}

int topic_save(struct controller *c, struct topic *t)
{
    g_autofree char *path = topic_path(t->ref->name);
    int rc = ZBADVERSION;
    for (int i = 0; rc == ZBADVERSION && i < SAVE_ATTEMPTS && !c->moved; i++) {
        struct txn *txn = fenced_txn(c);
        if (!topic_put(c, txn, t)) {
            txn_free(txn);
            return ZNONODE;
        }
        rc = fenced_run_one(c, txn);
    }
    if (rc == ZOK) {
        t->unsaved = TOPIC_SAVED;
    } else if (rc != ZNONODE && !c->moved) {
        complain(c, zerr_errno(rc), path, "the topic could not be written: %s", zerr_name(rc));
    }
    return rc;
}

void topics_save(struct controller *c, GPtrArray *topics)
{
    g_autoptr(GPtrArray) txns = txn_array_new();
    g_autoptr(GPtrArray) of = g_ptr_array_new();
    for (guint i = 0; i < topics->len; i++) {
        struct topic *t = topics->pdata[i];
        if (!t->unsaved) {
            continue;
        }
        struct txn *txn = fenced_txn(c);
        if (topic_put(c, txn, t)) {
            g_ptr_array_add(txns, txn);
            g_ptr_array_add(of, t);
        } else {
            txn_free(txn);
        }
    }
    fenced_run(c, txns);
    for (guint i = 0; i < txns->len; i++) {
        struct topic *t = of->pdata[i];
        if (((struct txn *)txns->pdata[i])->rc == ZOK) {
            t->unsaved = TOPIC_SAVED;
        } else {
            topic_save(c, t); /* somebody wrote at the same time, or it says what is wrong */
        }
    }
}

void topics_save_all(struct controller *c)
{
    g_autoptr(GPtrArray) topics = g_ptr_array_new();
    GHashTableIter it;
    gpointer value;
    g_hash_table_iter_init(&it, c->ctx.topics);
    while (g_hash_table_iter_next(&it, NULL, &value)) {
        g_ptr_array_add(topics, value);
    }
    topics_save(c, topics);
}

/* ---- creation ---- */

static void note_missing(const struct controller *c, const struct partition *p, GArray *missing)
{
    for (uint32_t i = 0; i < p->replicas->n; i++) {
        int32_t id = p->replicas->id[i];
        bool noted = context_broker(&c->ctx, id);
        for (guint k = 0; !noted && k < missing->len; k++) {
            noted = g_array_index(missing, int32_t, k) == id;
        }
        if (!noted && missing->len < MISSING_SHOWN) {
            g_array_append_val(missing, id);
        }
    }
}

/* An assignment to brokers that are not there (yet) is taken as it is, and said: a line a topic. The partitions of one
 * topic stand together. */
static void say_missing_brokers(struct controller *c, GPtrArray *partitions)
{
    g_autoptr(GArray) missing = g_array_new(FALSE, FALSE, sizeof(int32_t));
    for (guint i = 0; i < partitions->len; i++) {
        const struct partition *p = partitions->pdata[i];
        const struct partition *next = i + 1 < partitions->len ? partitions->pdata[i + 1] : NULL;
        note_missing(c, p, missing);
        if (missing->len > 0 && (!next || next->topic != p->topic)) {
            struct broker_ids *ids = broker_ids_new((const int32_t *)missing->data, missing->len);
            g_autofree char *text = broker_ids_text(ids), *path = topic_path(p->topic->ref->name);
            complain(c, 0, path, "it has replicas on brokers that are not running: %s%s", text,
                    missing->len == MISSING_SHOWN ? "..." : "");
            broker_ids_unref(ids);
            g_array_set_size(missing, 0);
        }
    }
}

/* KafkaController.onNewPartitionCreation */
static void create_partitions(struct controller *c, GPtrArray *partitions)
{
    g_autoptr(GArray) replicas = replicas_new();
    say_missing_brokers(c, partitions);
    for (guint i = 0; i < partitions->len; i++) {
        struct partition *p = partitions->pdata[i];
        replicas_add_all(replicas, p, p->replicas);
    }
    partitions_change_state(c, partitions, PARTITION_NEW);
    replicas_change_state(c, replicas, REPLICA_NEW);
    g_autoptr(GPtrArray) elected = partitions_elect(c, partitions, ELECT_OFFLINE);
    replicas_change_state(c, replicas, REPLICA_ONLINE);
}

/* A topic that comes while it is queued for deletion is loaded like one that was there before: nothing is created. */
static void load_for_deletion(struct controller *c, struct topic *t)
{
    topic_load_leadership(c, t);
    for (guint i = 0; i < t->partitions->len; i++) {
        struct partition *p = t->partitions->pdata[i];
        partition_set_status(&c->ctx, p, p->has_leadership ? PARTITION_OFFLINE : PARTITION_NEW);
        for (uint32_t r = 0; r < p->replicas->n; r++) {
            replica_set_state(p, p->replicas->id[r], REPLICA_OFFLINE);
        }
    }
    deletion_resume_topic(c, t->ref->name);
}

static void add_all_partitions(const struct topic *t, GPtrArray *partitions)
{
    for (guint i = 0; i < t->partitions->len; i++) {
        g_ptr_array_add(partitions, t->partitions->pdata[i]);
    }
}

static void forget_topic(struct controller *c, struct topic *t)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    emit(c, "controller %d topic %s forgotten: its node was removed", c->broker_id, t->ref->name);
    g_autofree char *name = g_strdup(t->ref->name);
    g_ptr_array_add(names, name);
    bool moving = t->n_reassigning;
    context_topic_remove(&c->ctx, t);
    if (moving) {
        reassignment_forget_topics(c, names);
    }
}

/* A topic that is queued for deletion stays known until that is done, also without its node. But its reassignment,
 * which the deletion waits for, can have no end any more. */
static void end_reassignments(struct controller *c, struct topic *t)
{
    for (guint i = 0; i < t->partitions->len; i++) {
        partition_set_reassigning(t->partitions->pdata[i], false);
    }
    deletion_resume_topic(c, t->ref->name);
}

static void look_at_topic(struct controller *c, const char *name, GPtrArray *added)
{
    struct topic *t = context_topic(&c->ctx, name);
    if (t && t->n_reassigning && t->deletion && !topic_is_there(c, t)) {
        end_reassignments(c, t);
    }
    if (t && !t->deletion && !topic_is_there(c, t)) {
        forget_topic(c, t);
        t = NULL;
    }
    if (!t && (t = topic_load(c, name))) {
        g_ptr_array_add(added, t);
    }
}

void topic_change(struct controller *c, GHashTable *names)
{
    g_autoptr(GPtrArray) sorted = names_sorted(names);
    g_autoptr(GPtrArray) added = g_ptr_array_new();
    g_autoptr(GPtrArray) partitions = g_ptr_array_new();
    for (guint i = 0; i < sorted->len; i++) {
        look_at_topic(c, sorted->pdata[i], added);
    }
    for (guint i = 0; i < added->len; i++) {
        struct topic *t = added->pdata[i];
        if (t->deletion) {
            load_for_deletion(c, t);
        } else {
            add_all_partitions(t, partitions);
        }
    }
    create_partitions(c, partitions);
    topics_save(c, added);
}

/* ---- modifications ---- */

/* Does the node say of this partition what the controller knows? */
static bool same_assignment(const struct partition *p, const struct partition_assignment *a)
{
    return broker_ids_equal(p->replicas, a->replicas) && broker_ids_equal(p->adding, a->adding) &&
           broker_ids_equal(p->removing, a->removing);
}

/* What is there already stays as the controller knows it, whatever the node says; it is said. */
static void say_ignored(struct controller *c, const struct topic *t, const struct topic_assignment *a)
{
    const struct partition *first = NULL;
    guint wrong = 0;
    for (guint i = 0; i < t->partitions->len; i++) {
        const struct partition *p = t->partitions->pdata[i];
        const struct partition_assignment *node = topic_assignment_find(a, p->id);
        if (!node || !same_assignment(p, node)) {
            first = wrong++ ? first : p;
        }
    }
    if (wrong) {
        g_autofree char *path = topic_path(t->ref->name);
        g_autofree char *ids = broker_ids_text(first->replicas);
        complain(c, EINVAL, path,
                "ignored for %u partitions (%d stays on %s): admin/reassign_partitions moves replicas", wrong,
                first->id, ids);
    }
}

static void add_new_partitions(
        struct controller *c, struct topic *t, const struct topic_assignment *a, GPtrArray *added)
{
    for (guint i = 0; i < a->partitions->len; i++) {
        const struct partition_assignment *p = &g_array_index(a->partitions, struct partition_assignment, i);
        if (!topic_partition(t, p->partition)) {
            struct partition *new = add_partition(c, t, p);
            if (new) {
                g_ptr_array_add(added, new);
            }
        }
    }
}

/* Partitions that were added to a topic while it is being deleted are taken out again; the assignment is the cached
 * one (KAFKA-6612). The event that this write causes finds nothing to do. */
static void revert_additions(struct controller *c, struct topic *t, const struct topic_assignment *a, int32_t version)
{
    g_autofree char *path = topic_path(t->ref->name);
    bool grown = false;
    for (guint i = 0; i < a->partitions->len; i++) {
        grown = grown || !topic_partition(t, g_array_index(a->partitions, struct partition_assignment, i).partition);
    }
    if (!grown) {
        return;
    }
    complain(c, EBUSY, path, "the topic is being deleted: the partitions added to it were taken out again");
    struct topic_assignment *out = topic_assignment_new();
    g_strlcpy(out->topic_id, t->ref->id, sizeof(out->topic_id));
    out->unknown = g_strdup(a->unknown);
    encode_partitions(t, out);
    struct txn *txn = fenced_txn(c);
    txn_set(txn, path, topic_assignment_encode(out), version);
    topic_assignment_free(out);
    int rc = fenced_run_one(c, txn);
    if (rc && rc != ZBADVERSION && rc != ZNONODE && !c->moved) { /* written again, or gone: another event follows */
        complain(c, zerr_errno(rc), path, "the topic could not be written: %s", zerr_name(rc));
    }
}

static void modify_topic(struct controller *c, const char *name, GPtrArray *added, GPtrArray *touched)
{
    struct topic *t = context_topic(&c->ctx, name);
    struct zstat stat;
    int rc;
    struct topic_assignment *a = t ? read_topic(c, name, &stat, &rc) : NULL;
    if (!a || stat.czxid != t->czxid) { /* unknown, without usable data, or another one: TopicChange follows */
        topic_assignment_free(a);
        return;
    }
    if (t->deletion) {
        revert_additions(c, t, a, stat.version);
        topic_assignment_free(a);
        return;
    }
    if (!t->ref->id[0] && a->topic_id[0] && !g_hash_table_contains(c->ctx.topic_ids, a->topic_id)) {
        topic_set_id(&c->ctx, t, a->topic_id);
    }
    give_topic_id(c, t);
    say_ignored(c, t, a);
    /* A tool from before 2.8 drops the id; brokers would refuse the one that the next controller invents
     * (KAFKA-14190). */
    if (t->unsaved != TOPIC_REASSIGNED) {
        t->unsaved = strcmp(t->ref->id, a->topic_id) != 0 ? TOPIC_LACKS_ID : TOPIC_SAVED;
    }
    add_new_partitions(c, t, a, added);
    g_ptr_array_add(touched, t);
    topic_assignment_free(a);
}

void partition_modifications(struct controller *c, GHashTable *names)
{
    g_autoptr(GPtrArray) sorted = names_sorted(names);
    g_autoptr(GPtrArray) added = g_ptr_array_new();
    g_autoptr(GPtrArray) touched = g_ptr_array_new();
    for (guint i = 0; i < sorted->len; i++) {
        modify_topic(c, sorted->pdata[i], added, touched);
    }
    create_partitions(c, added);
    topics_save(c, touched);
}

void topics_catch_up(struct controller *c, GHashTable *names)
{
    if (g_hash_table_size(names)) {
        topic_change(c, names);
        partition_modifications(c, names);
    }
}
