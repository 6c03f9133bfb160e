/* /admin/reassign_partitions: what operators ask for. Each entry is judged by itself; the good ones are taken on, each
 * refusal is a line in errors and leaves the file, finished ones leave it, and the file goes with its last entry. A
 * file that cannot be read stays where it is, and is looked at again when it is written again. */
#include "controller/core.h"

#define FILE_PATH "/admin/reassign_partitions"
#define WRITE_ATTEMPTS 16

static guint hash_entry(gconstpointer key)
{
    const struct reassignment_entry *e = key;
    return g_str_hash(e->topic) * 31 + (guint)e->partition;
}

static gboolean equal_entries(gconstpointer a, gconstpointer b)
{
    const struct reassignment_entry *x = a, *y = b;
    return x->partition == y->partition && strcmp(x->topic, y->topic) == 0;
}

/* Of two entries for one partition the last counts, as in Kafka's map. */
static void drop_repeated(GArray *entries)
{
    g_autoptr(GHashTable) seen = g_hash_table_new_full(hash_entry, equal_entries, NULL, NULL);
    g_autoptr(GArray) repeated = g_array_new(FALSE, FALSE, sizeof(guint));
    for (guint i = entries->len; i > 0; i--) {
        if (!g_hash_table_add(seen, &g_array_index(entries, struct reassignment_entry, i - 1))) {
            guint at = i - 1;
            g_array_append_val(repeated, at);
        }
    }
    g_hash_table_remove_all(seen);
    for (guint i = 0; i < repeated->len; i++) {
        g_array_remove_index(entries, g_array_index(repeated, guint, i));
    }
}

static GArray *read_file(struct controller *c, struct zstat *ret_stat, char **ret_unknown)
{
    struct bytes *data = NULL;
    GArray *entries = NULL;
    g_autofree char *why = NULL;
    if (c->env.get(c->env.ctx, FILE_PATH, &data, ret_stat) != ZOK) {
        return NULL;
    }
    if (!reassignment_decode(data, &entries, ret_unknown, &why)) {
        complain(c, EINVAL, FILE_PATH, "%s", why);
    } else {
        drop_repeated(entries);
    }
    bytes_unref(data);
    return entries;
}

/* ---- entries leave the file ---- */

typedef bool entry_test(const struct reassignment_entry *e, const void *arg);

/* Removes the entries that `gone` says yes to, and the file if none is left. Somebody may write it at the same time:
 * then it is read again. */
static void remove_entries(struct controller *c, entry_test *gone, const void *arg)
{
    int rc = ZBADVERSION;
    for (int i = 0; rc == ZBADVERSION && i < WRITE_ATTEMPTS && !c->moved; i++) {
        struct zstat stat;
        g_autofree char *unknown = NULL;
        g_autoptr(GArray) entries = read_file(c, &stat, &unknown);
        if (!entries) {
            return;
        }
        guint before = entries->len;
        for (guint e = entries->len; e > 0; e--) {
            if (gone(&g_array_index(entries, struct reassignment_entry, e - 1), arg)) {
                g_array_remove_index(entries, e - 1);
            }
        }
        if (entries->len == before && before > 0) {
            return;
        }
        struct txn *txn = fenced_txn(c);
        if (entries->len) {
            txn_set(txn, FILE_PATH, reassignment_encode(entries, unknown), stat.version);
        } else {
            txn_delete(txn, FILE_PATH, stat.version);
        }
        rc = fenced_run_one(c, txn);
    }
    if (rc && rc != ZNONODE && !c->moved) {
        complain(c, zerr_errno(rc), FILE_PATH, "could not be written: %s", zerr_name(rc));
    }
}

/* Kafka: an entry is done if its list is the one that has been reached; another one is a newer request. */
static bool is_done(const struct reassignment_entry *e, const void *partitions)
{
    const struct partition *p = g_hash_table_lookup((GHashTable *)(void *)(uintptr_t)partitions, e);
    return p && broker_ids_equal(p->replicas, e->replicas);
}

void reassignment_file_done(struct controller *c, GPtrArray *partitions)
{
    g_autofree struct reassignment_entry *keys = g_new0(struct reassignment_entry, partitions->len + 1);
    g_autoptr(GHashTable) index = g_hash_table_new(hash_entry, equal_entries);
    for (guint i = 0; i < partitions->len; i++) {
        struct partition *p = partitions->pdata[i];
        keys[i].topic = p->topic->ref->name;
        keys[i].partition = p->id;
        g_hash_table_insert(index, &keys[i], p);
    }
    remove_entries(c, is_done, index);
}

static bool is_of_topic(const struct reassignment_entry *e, const void *names)
{
    return g_hash_table_contains((GHashTable *)(void *)(uintptr_t)names, e->topic);
}

void reassignment_forget_topics(struct controller *c, GPtrArray *names)
{
    g_autoptr(GHashTable) set = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < names->len; i++) {
        g_hash_table_add(set, names->pdata[i]);
    }
    if (names->len && c->env.get(c->env.ctx, FILE_PATH, NULL, NULL) == ZOK) {
        remove_entries(c, is_of_topic, set);
    }
}

static bool is_refused(const struct reassignment_entry *e, const void *refused)
{
    const struct reassignment_entry *r = g_hash_table_lookup((GHashTable *)(void *)(uintptr_t)refused, e);
    return r && broker_ids_equal(r->replicas, e->replicas);
}

/* ---- judging ---- */

static const char *why_refused(const struct controller *c, const struct reassignment_entry *e)
{
    const struct topic *t = context_topic(&c->ctx, e->topic);
    if (e->why) {
        return e->why;
    }
    if (!t) {
        return "UNKNOWN_TOPIC_OR_PARTITION: there is no such topic";
    }
    if (t->deletion) {
        return "UNKNOWN_TOPIC_OR_PARTITION: the topic is being deleted";
    }
    return topic_partition(t, e->partition) ? NULL : "UNKNOWN_TOPIC_OR_PARTITION: there is no such partition";
}

void requests_catch_up(struct controller *c, const GArray *entries)
{
    g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; entries && i < entries->len; i++) {
        const struct reassignment_entry *e = &g_array_index(entries, struct reassignment_entry, i);
        if (!e->why && !context_partition(&c->ctx, e->topic, e->partition)) {
            g_hash_table_add(names, e->topic);
        }
    }
    topics_catch_up(c, names);
}

/* Is this request being carried out already? */
static bool is_running(struct controller *c, const struct partition *p, const struct reassignment_entry *e)
{
    struct broker_ids *target = partition_target(&c->ctx, p);
    bool same = p->reassigning && broker_ids_equal(target, e->replicas);
    broker_ids_unref(target);
    return same;
}

/* A target on a broker that is not there is waited for, and said. */
static void say_missing_brokers(struct controller *c, const struct reassignment_entry *e)
{
    g_autoptr(GString) missing = g_string_new(NULL);
    for (uint32_t i = 0; i < e->replicas->n; i++) {
        if (!context_broker(&c->ctx, e->replicas->id[i])) {
            g_string_append_printf(missing, "%s%d", missing->len ? ", " : "", e->replicas->id[i]);
        }
    }
    if (missing->len) {
        complain(c, 0, FILE_PATH, "%s-%d waits for brokers that are not running: %s", e->topic, e->partition,
                missing->str);
    }
}

/* The state has been removed by hand: nothing can be told to its brokers, and as in Kafka the request has failed. What
 * it has begun is in the topic's node, and the next controller, which makes the state again, ends that. */
static void leave_out_without_state(struct controller *c, GArray *entries, GHashTable *refused)
{
    for (guint i = 0; i < entries->len && !c->moved; i++) {
        struct reassignment_entry *e = &g_array_index(entries, struct reassignment_entry, i);
        const struct partition *p = context_partition(&c->ctx, e->topic, e->partition);
        if (p && p->reassigning && p->has_leadership && !g_hash_table_contains(refused, e) &&
                partition_state_is_missing(c, p)) {
            complain(c, ENOENT, FILE_PATH,
                    "%s-%d is left out: its state was removed; the next controller moves it "
                    "(remove /controller)",
                    e->topic, e->partition);
            g_hash_table_add(refused, e);
        }
    }
}

/* Takes on what the file says. `again`: also what is running already (a new controller). `started`, if given, gets the
 * partitions. */
static void process_file(struct controller *c, bool again, GHashTable *started)
{
    struct zstat stat;
    g_autoptr(GArray) entries = read_file(c, &stat, NULL);
    g_autoptr(GHashTable) refused = g_hash_table_new(hash_entry, equal_entries);
    g_autoptr(GPtrArray) partitions = g_ptr_array_new();
    g_autoptr(GPtrArray) targets = g_ptr_array_new();
    requests_catch_up(c, entries);
    for (guint i = 0; entries && i < entries->len; i++) {
        struct reassignment_entry *e = &g_array_index(entries, struct reassignment_entry, i);
        struct partition *p = context_partition(&c->ctx, e->topic, e->partition);
        const char *why = why_refused(c, e);
        if (why) {
            complain(c, EINVAL, FILE_PATH, "%s-%d is left out: %s", e->topic, e->partition, why);
            g_hash_table_add(refused, e);
        } else if (again || !is_running(c, p, e)) {
            if (!again) {
                say_missing_brokers(c, e);
            }
            g_ptr_array_add(partitions, p);
            g_ptr_array_add(targets, e->replicas);
            if (started) {
                g_hash_table_add(started, p);
            }
        }
    }
    reassignment_start(c, partitions, targets);
    if (entries && !again) {
        leave_out_without_state(c, entries, refused);
    }
    if (entries && (g_hash_table_size(refused) || entries->len == 0)) {
        remove_entries(c, is_refused, refused);
    }
}

void reassignment_file(struct controller *c)
{
    process_file(c, false, NULL);
}

void reassignment_resume(struct controller *c)
{
    g_autoptr(GHashTable) started = g_hash_table_new(NULL, NULL);
    process_file(c, true, started);
    reassignment_resume_all(c, started);
}
