/* Why a deletion waits, in words that an operator can act on. Put together when somebody asks, so that it is true. */
#include "controller/core.h"

#define MAX_NAMED 8

struct names {
    GString *text; /* "t1-0, t1-1" */
    guint n;
};

static void add_name(struct names *names, const struct partition *p)
{
    if (names->n < MAX_NAMED) {
        g_string_append_printf(names->text, "%s%s-%d", names->n ? ", " : "", p->topic->ref->name, p->id);
    }
    names->n++;
}

static void close_names(struct names *names)
{
    if (names->n > MAX_NAMED) {
        g_string_append_printf(names->text, " and %u more", names->n - MAX_NAMED);
    }
}

static void add_reason(GString *out, const char *text)
{
    g_string_append(out, out->len ? "; " : "");
    g_string_append(out, text);
}

/* A controller that has just been elected gives reasons before its replicas have states. */
static bool is_to_delete(const struct partition *p, int32_t broker)
{
    enum replica_state state = replica_get_state(p, broker);
    return p->n_states == 0 ? broker_ids_contain(p->replicas, broker)
                            : state != REPLICA_NON_EXISTENT && state != REPLICA_DELETION_SUCCESSFUL;
}

/* Replicas of `t` on `broker` that are still to be deleted and cannot be reached. */
static void add_broker(const struct controller *c, const struct topic *t, int32_t broker, GString *out)
{
    struct names names = {.text = g_string_new(NULL)};
    const struct broker *b = context_broker(&c->ctx, broker);
    for (guint i = 0; i < t->partitions->len; i++) {
        const struct partition *p = t->partitions->pdata[i];
        if (is_to_delete(p, broker) && !replica_is_online(&c->ctx, p, broker)) {
            add_name(&names, p);
        }
    }
    if (names.n) {
        close_names(&names);
        g_autofree char *text = g_strdup_printf("broker %d %s (replica%s %s)", broker,
                !b                 ? "is not running"
                : b->shutting_down ? "is shutting down"
                                   : "has a failed log dir",
                names.n == 1 ? "" : "s", names.text->str);
        add_reason(out, text);
    }
    g_string_free(names.text, TRUE);
}

static int compare_ids(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static void note_broker(GHashTable *seen, GArray *brokers, int32_t id)
{
    if (g_hash_table_add(seen, GINT_TO_POINTER(id))) {
        g_array_append_val(brokers, id);
    }
}

static void add_brokers(const struct controller *c, const struct topic *t, GString *out)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    g_autoptr(GArray) brokers = g_array_new(FALSE, FALSE, sizeof(int32_t));
    for (guint i = 0; i < t->partitions->len; i++) {
        const struct partition *p = t->partitions->pdata[i];
        for (uint32_t r = 0; r < p->n_states; r++) {
            note_broker(seen, brokers, p->states[r].broker);
        }
        for (uint32_t r = 0; r < p->replicas->n; r++) {
            note_broker(seen, brokers, p->replicas->id[r]);
        }
    }
    g_array_sort(brokers, compare_ids);
    for (guint i = 0; i < brokers->len; i++) {
        add_broker(c, t, g_array_index(brokers, int32_t, i), out);
    }
}

static void add_reassignments(const struct topic *t, GString *out)
{
    struct names names = {.text = g_string_new(NULL)};
    for (guint i = 0; t->n_reassigning && i < t->partitions->len; i++) {
        const struct partition *p = t->partitions->pdata[i];
        if (p->reassigning) {
            add_name(&names, p);
        }
    }
    if (names.n) {
        close_names(&names);
        g_autofree char *text = g_strdup_printf("%s %s being reassigned", names.text->str, names.n == 1 ? "is" : "are");
        add_reason(out, text);
    }
    g_string_free(names.text, TRUE);
}

char *deletion_text(struct controller *c, const char *topic)
{
    const struct deletion *d = g_hash_table_lookup(c->ctx.deletions, topic);
    const struct topic *t = context_topic(&c->ctx, topic);
    if (!d || !d->ineligible) {
        return g_strdup(!d ? "none" : d->started ? "started" : "queued");
    }
    g_autoptr(GString) why = g_string_new(NULL);
    if (t) {
        add_brokers(c, t, why);
        add_reassignments(t, why);
    }
    bool only_failed = !why->len; /* nothing happens by itself then */
    if (d->failure || only_failed) {
        add_reason(why, d->failure ? d->failure : "it failed before");
    }
    if (only_failed) {
        add_reason(why, "touch its entry in admin/delete_topics to try again");
    }
    return g_strdup_printf("ineligible: %s", why->str);
}
