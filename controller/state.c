/* The controller's part of `.state`: controller/{broker,epoch,queue}, topics/..., metrics.
 * Answered from memory, between two events. */
#include "controller/core.h"
#include "fs/policy.h"

/* What a virtual path names. */
struct place {
    enum {
        NOWHERE,
        CONTROLLER,
        BROKER,
        EPOCH,
        QUEUE,
        METRICS,
        TOPICS,
        TOPIC,
        DELETION,
        PARTITION,
        STATE,
        ASSIGNMENT,
        ADDING,
        REMOVING,
        REPLICAS,
        REPLICA,
    } what;
    const char *name;      /* topic; it may be one that is only queued for deletion */
    const struct topic *t; /* NULL then */
    const struct partition *p;
    int32_t broker;
};

static bool number_of(const char *text, int32_t *ret)
{
    gint64 n;
    if (!g_ascii_string_to_signed(text, 10, 0, INT32_MAX, &n, NULL)) {
        return false;
    }
    g_autofree char *canonical = g_strdup_printf("%d", (int)n);
    *ret = (int32_t)n;
    return strcmp(canonical, text) == 0;
}

static int find_name(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(names[i], name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static const char *const controller_files[] = {"broker", "epoch", "queue"};
static const char *const partition_files[] = {"state", "assignment", "adding", "removing", "replicas"};

static void find_in_partition(char **parts, guint n, struct place *at)
{
    at->what = PARTITION;
    if (n > 0) {
        int i = find_name(partition_files, G_N_ELEMENTS(partition_files), parts[0]);
        at->what = i < 0 ? NOWHERE : STATE + (unsigned)i;
    }
    if (n > 1) {
        bool found = at->what == REPLICAS && n == 2 && number_of(parts[1], &at->broker) &&
                     replica_get_state(at->p, at->broker) != REPLICA_NON_EXISTENT;
        at->what = found ? REPLICA : NOWHERE;
    }
}

/* `parts`: what follows "topics". */
static void find_in_topics(const struct controller *c, char **parts, guint n, struct place *at)
{
    int32_t id;
    at->what = TOPICS;
    if (n == 0) {
        return;
    }
    at->name = parts[0];
    at->t = c ? context_topic(&c->ctx, parts[0]) : NULL;
    if (!c || (!at->t && !g_hash_table_contains(c->ctx.deletions, parts[0]))) {
        at->what = NOWHERE;
    } else if (n == 1) {
        at->what = TOPIC;
    } else if (strcmp(parts[1], "deletion") == 0) {
        at->what = n == 2 ? DELETION : NOWHERE;
    } else if (at->t && number_of(parts[1], &id) && (at->p = topic_partition(at->t, id))) {
        find_in_partition(parts + 2, n - 2, at);
    } else {
        at->what = NOWHERE;
    }
}

/* `parts`: of the path, without "" and ".state". */
static struct place find_place(const struct controller *c, char **parts, guint n)
{
    struct place at = {.what = NOWHERE};
    if (n == 0) {
        return at;
    }
    if (strcmp(parts[0], "topics") == 0) {
        find_in_topics(c, parts + 1, n - 1, &at);
    } else if (strcmp(parts[0], "metrics") == 0 && n == 1) {
        at.what = METRICS;
    } else if (strcmp(parts[0], "controller") == 0 && n == 1) {
        at.what = CONTROLLER;
    } else if (strcmp(parts[0], "controller") == 0 && n == 2) {
        int i = find_name(controller_files, G_N_ELEMENTS(controller_files), parts[1]);
        at.what = i < 0 ? NOWHERE : BROKER + (unsigned)i;
    }
    return at;
}

/* ---- answers ---- */

static bool is_directory(const struct place *at)
{
    return at->what == CONTROLLER || at->what == TOPICS || at->what == TOPIC || at->what == PARTITION ||
           at->what == REPLICAS;
}

/* Entries under construction; names are kept alive by `owned`. */
struct listing {
    GArray *entries;
    GPtrArray *owned;
};

static void add_entry(struct listing *l, const char *name, enum state_kind kind)
{
    struct state_entry e = {name, kind};
    g_array_append_val(l->entries, e);
}

static void add_number(struct listing *l, int32_t number, enum state_kind kind)
{
    char *name = g_strdup_printf("%d", number);
    g_ptr_array_add(l->owned, name);
    add_entry(l, name, kind);
}

static void list_topics(const struct controller *c, struct listing *l)
{
    GHashTableIter it;
    gpointer name;
    if (!c) {
        return;
    }
    g_hash_table_iter_init(&it, c->ctx.topics);
    while (g_hash_table_iter_next(&it, &name, NULL)) {
        add_entry(l, name, STATE_DIRECTORY);
    }
    g_hash_table_iter_init(&it, c->ctx.deletions);
    while (g_hash_table_iter_next(&it, &name, NULL)) {
        if (!context_topic(&c->ctx, name)) {
            add_entry(l, name, STATE_DIRECTORY);
        }
    }
}

static void list_place(const struct controller *c, const struct place *at, struct listing *l)
{
    if (at->what == CONTROLLER) {
        for (size_t i = 0; i < G_N_ELEMENTS(controller_files); i++) {
            add_entry(l, controller_files[i], STATE_FILE);
        }
    } else if (at->what == TOPICS) {
        list_topics(c, l);
    } else if (at->what == TOPIC) {
        add_entry(l, "deletion", STATE_FILE);
        for (guint i = 0; at->t && i < at->t->partitions->len; i++) {
            add_number(l, ((const struct partition *)at->t->partitions->pdata[i])->id, STATE_DIRECTORY);
        }
    } else if (at->what == PARTITION) {
        for (size_t i = 0; i < G_N_ELEMENTS(partition_files); i++) {
            bool directory = strcmp(partition_files[i], "replicas") == 0;
            add_entry(l, partition_files[i], directory ? STATE_DIRECTORY : STATE_FILE);
        }
    } else {
        for (uint32_t i = 0; i < at->p->n_states; i++) {
            add_number(l, at->p->states[i].broker, STATE_FILE);
        }
    }
}

static void answer_list(const struct controller *c, const struct place *at, struct state_question *q)
{
    struct listing l = {
            .entries = g_array_new(FALSE, FALSE, sizeof(struct state_entry)),
            .owned = g_ptr_array_new_with_free_func(g_free),
    };
    list_place(c, at, &l);
    state_answer_list(q, (const struct state_entry *)(const void *)l.entries->data, l.entries->len);
    g_array_unref(l.entries);
    g_ptr_array_unref(l.owned);
}

static void append_lines(GString *out, const struct broker_ids *ids)
{
    for (uint32_t i = 0; i < ids->n; i++) {
        g_string_append_printf(out, "%d\n", ids->id[i]);
    }
}

static void append_content(struct controller *c, const struct place *at, GString *out)
{
    g_autofree char *text = NULL;
    switch (at->what) {
    case BROKER:
        g_string_append_printf(out, "%d\n", c ? c->broker_id : -1);
        break;
    case EPOCH:
        g_string_append_printf(out, "%d\n", c ? c->epoch : 0);
        break;
    case METRICS:
        metrics_append(c, out);
        break;
    case DELETION:
        text = deletion_text(c, at->name);
        g_string_append_printf(out, "%s\n", text);
        break;
    case STATE:
        g_string_append_printf(out, "%s\n", partition_status_name(at->p->status));
        break;
    case ASSIGNMENT:
        append_broker_ids(out, at->p->replicas);
        g_string_append_c(out, '\n');
        break;
    case ADDING:
        append_lines(out, at->p->adding);
        break;
    case REMOVING:
        append_lines(out, at->p->removing);
        break;
    case REPLICA:
        g_string_append_printf(out, "%s\n", replica_state_name(replica_get_state(at->p, at->broker)));
        break;
    default: /* QUEUE: the thread knows what waits (thread.c) */
        break;
    }
}

void controller_state_ask(struct controller *c, int query, const char *path, struct state_question *q)
{
    g_auto(GStrv) parts = g_strsplit(path, "/", -1);
    guint n = g_strv_length(parts);
    struct place at = find_place(c, parts + MIN(n, 2u), n > 2 ? n - 2 : 0);
    if (at.what == NOWHERE) {
        state_answer_error(q, ENOENT);
    } else if (query == STATE_LOOKUP) {
        state_answer_kind(q, is_directory(&at) ? STATE_DIRECTORY : STATE_FILE);
    } else if (query == STATE_LIST) {
        if (is_directory(&at)) {
            answer_list(c, &at, q);
        } else {
            state_answer_error(q, ENOTDIR);
        }
    } else if (query == STATE_READ && !is_directory(&at)) {
        g_autoptr(GString) out = g_string_new(NULL);
        append_content(c, &at, out);
        state_answer_bytes(q, out->str, out->len);
    } else {
        state_answer_error(q, query == STATE_READ ? EISDIR : query == STATE_WRITE ? EACCES : EINVAL);
    }
}
