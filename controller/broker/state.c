/* `.state/brokers/...`: questions are answered on the engine thread, between two messages, from what is true then. */
#include "controller/broker/engine_internal.h"
#include "fs/policy.h"
#include <errno.h>
#include <string.h>

struct ask {
    struct engine *engine;
    enum state_query query;
    char **path; /* components below /.state/brokers */
    guint n;
    struct state_question *q;
};

/* What one place below brokers/B is: its kind, and, for those that ask for it, its content. */
struct answer {
    enum state_kind kind;
    GPtrArray *names; /* STATE_DIRECTORY: char*, directories end with '/', the others are of `entry_kind`; owned */
    enum state_kind entry_kind;
    char *text; /* STATE_FILE, STATE_LINK; owned */
};

static GPtrArray *new_names(void)
{
    return g_ptr_array_new_with_free_func(g_free);
}

static bool directory(struct answer *a, GPtrArray *names, enum state_kind entry_kind)
{
    a->kind = STATE_DIRECTORY;
    a->names = names ? names : new_names();
    a->entry_kind = entry_kind;
    return true;
}

/* A file, or nothing if there is no text. */
static bool file(struct answer *a, char *text)
{
    a->kind = STATE_FILE;
    a->text = text;
    return text != NULL;
}

static bool to_number(const char *text, int32_t *ret)
{
    gint64 v;
    char canonical[16];

    if (!g_ascii_string_to_signed(text, 10, 0, INT32_MAX, &v, NULL))
        return false;
    g_snprintf(canonical, sizeof canonical, "%d", (int)v);
    *ret = (int32_t)v;
    return strcmp(canonical, text) == 0;
}

static char *with_newline(char *text)
{
    if (!text)
        return NULL;
    char *line = g_strdup_printf("%s\n", text);
    g_free(text);
    return line;
}

/* ---- logs, log dirs ---- */

struct listing {
    GPtrArray *names;
};

static bool add_log(void *arg, const struct replica_view *view)
{
    struct listing *l = arg;

    if (view->dir >= 0)
        g_ptr_array_add(l->names, g_strdup_printf("%s-%d", view->topic->name, view->partition));
    return true;
}

static gint compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool answer_logs(const struct incarnation *inc, char **path, guint n, struct answer *a)
{
    struct replica_view view;
    int32_t partition;

    if (n == 0) {
        struct listing l = {.names = new_names()};
        if (inc && inc->core)
            broker_each_replica(inc->core, add_log, &l);
        g_ptr_array_sort(l.names, compare_names);
        return directory(a, l.names, STATE_LINK);
    }
    g_autofree char *topic = g_strdup(path[0]);
    char *dash = strrchr(topic, '-');
    if (n > 1 || !inc || !inc->core || !dash || !to_number(dash + 1, &partition))
        return false;
    *dash = '\0';
    if (!broker_replica(inc->core, topic, partition, &view) || view.dir < 0)
        return false;
    a->kind = STATE_LINK;
    a->text = g_strdup_printf("%s/%s", inc->paths[view.dir], path[0]);
    return true;
}

static bool is_online(const struct incarnation *inc, size_t dir)
{
    return inc->core ? broker_dir_online(inc->core, (int)dir) : inc->dirs[dir].online;
}

static bool answer_dirs(const struct incarnation *inc, bool online, char **path, guint n, struct answer *a)
{
    int32_t i;

    if (n == 0) {
        GPtrArray *names = new_names();
        for (size_t k = 0; inc && k < inc->n_dirs; k++)
            if (is_online(inc, k) == online)
                g_ptr_array_add(names, g_strdup_printf("%zu", k));
        return directory(a, names, STATE_LINK);
    }
    if (n > 1 || !inc || !to_number(path[0], &i) || (size_t)i >= inc->n_dirs || is_online(inc, (size_t)i) != online)
        return false;
    a->kind = STATE_LINK;
    a->text = g_strdup(inc->paths[i]);
    return true;
}

/* ---- metadata ---- */

static bool answer_metadata(const struct incarnation *inc, char **path, guint n, struct answer *a)
{
    const struct metadata_cache *c = inc && inc->core ? broker_metadata(inc->core) : NULL;
    int32_t partition;

    if (n == 0)
        return directory(a, c ? metadata_cache_topics(c) : NULL, STATE_DIRECTORY);
    if (!c)
        return false;
    if (n == 1) {
        g_autoptr(GArray) ids = metadata_cache_partitions(c, path[0]);
        if (!ids)
            return false;
        GPtrArray *names = new_names();
        for (guint i = 0; i < ids->len; i++)
            g_ptr_array_add(names, g_strdup_printf("%d", g_array_index(ids, int32_t, i)));
        return directory(a, names, STATE_FILE);
    }
    return n == 2 && to_number(path[1], &partition) &&
           file(a, with_newline(metadata_cache_json(c, path[0], partition)));
}

/* ---- configuration ---- */

static const char *const kinds[] = {"topics", "clients", "users", "brokers", "ips"};

static GPtrArray *kind_names(void)
{
    GPtrArray *names = new_names();

    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++)
        g_ptr_array_add(names, g_strdup(kinds[i]));
    return names;
}

static bool is_kind(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++)
        if (strcmp(kinds[i], name) == 0)
            return true;
    return false;
}

/* "u/" (there is something below it) takes the place of "u". */
static void add_once(GHashTable *names, char *name)
{
    size_t len = strlen(name);
    bool below = len > 0 && name[len - 1] == '/';

    if (below)
        name[len - 1] = '\0';
    if (below || !g_hash_table_contains(names, name))
        g_hash_table_replace(names, name, GINT_TO_POINTER(below));
    else
        g_free(name);
}

static GPtrArray *to_names(GHashTable *set)
{
    GPtrArray *names = new_names();
    GHashTableIter it;
    gpointer name, below;

    g_hash_table_iter_init(&it, set);
    while (g_hash_table_iter_next(&it, &name, &below))
        g_ptr_array_add(names, g_strconcat(name, below ? "/" : "", NULL));
    g_ptr_array_sort(names, compare_names);
    return names;
}

/* The next components below `prefix` among the entities ("u", "u/clients/c"); NULL: none is there. `*ret_leaf`:
 * `prefix` is an entity itself. */
static GPtrArray *entities_below(struct config_manager *m, const char *kind, const char *prefix, bool *ret_leaf)
{
    g_autoptr(GPtrArray) all = config_manager_entities(m, kind);
    g_autoptr(GHashTable) names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    size_t len = strlen(prefix);

    *ret_leaf = false;
    for (guint i = 0; all && i < all->len; i++) {
        const char *entity = g_ptr_array_index(all, i);
        if (len > 0 && strcmp(entity, prefix) == 0)
            *ret_leaf = true;
        if (strncmp(entity, prefix, len) != 0 || (len > 0 && entity[len] != '/'))
            continue;
        const char *rest = entity + len + (len > 0);
        size_t n = strcspn(rest, "/");
        add_once(names, g_strndup(rest, n + (rest[n] == '/')));
    }
    return g_hash_table_size(names) > 0 || len == 0 ? to_names(names) : NULL;
}

static char *config_text(struct config_manager *m, bool source, const char *kind, const char *entity)
{
    return source ? config_manager_source(m, kind, entity) : config_manager_effective(m, kind, entity);
}

/* A user with pairs of its own is a directory; what is set for the user alone is the file `.data` in it, as in the
 * tree. */
static bool answer_config(const struct incarnation *inc, bool source, char **path, guint n, struct answer *a)
{
    struct config_manager *m = inc ? inc->configs : NULL;
    bool leaf;

    if (n == 0)
        return directory(a, kind_names(), STATE_DIRECTORY);
    if (!is_kind(path[0]))
        return false;
    if (!m)
        return n == 1 && directory(a, NULL, STATE_FILE);
    g_autofree char *entity = g_strjoinv("/", path + 1);
    if (n > 2 && strcmp(path[n - 1], ".data") == 0) {
        entity[strlen(entity) - strlen("/.data")] = '\0';
        return file(a, config_text(m, source, path[0], entity));
    }
    if (n > 1 && strcmp(path[0], "users") != 0)
        return n == 2 && file(a, config_text(m, source, path[0], entity));
    GPtrArray *below = entities_below(m, path[0], entity, &leaf);
    if (below && leaf)
        g_ptr_array_add(below, g_strdup(".data"));
    return below ? directory(a, below, STATE_FILE) : n > 1 && file(a, config_text(m, source, path[0], entity));
}

/* Two lists in one, sorted and without repetition; both are taken over, NULL is empty. */
static GPtrArray *both(GPtrArray *a, GPtrArray *b)
{
    g_autoptr(GHashTable) names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    GPtrArray *lists[] = {a, b};

    for (size_t i = 0; i < G_N_ELEMENTS(lists); i++) {
        for (guint k = 0; lists[i] && k < lists[i]->len; k++)
            add_once(names, g_strdup(g_ptr_array_index(lists[i], k)));
        if (lists[i])
            g_ptr_array_unref(lists[i]);
    }
    return to_names(names);
}

static bool answer_quotas(const struct incarnation *inc, char **path, guint n, struct answer *a)
{
    struct config_manager *m = inc ? inc->configs : NULL;
    bool leaf;

    if (n == 0)
        return directory(a, m ? entities_below(m, "users", "", &leaf) : NULL, STATE_DIRECTORY);
    if (!m)
        return false;
    if (n == 1) {
        g_autofree char *pairs = g_strdup_printf("%s/clients", path[0]);
        return directory(
                a, both(entities_below(m, "users", pairs, &leaf), entities_below(m, "clients", "", &leaf)), STATE_FILE);
    }
    return n == 2 && file(a, config_manager_quota(m, path[0], path[1]));
}

static bool answer_throttled(const struct incarnation *inc, char **path, guint n, struct answer *a)
{
    struct config_manager *m = inc ? inc->configs : NULL;

    if (n == 0) {
        GPtrArray *names = new_names();
        g_ptr_array_add(names, g_strdup("leader"));
        g_ptr_array_add(names, g_strdup("follower"));
        return directory(a, names, STATE_DIRECTORY);
    }
    bool leader = strcmp(path[0], "leader") == 0;
    if (!leader && strcmp(path[0], "follower") != 0)
        return false;
    if (n == 1)
        return directory(a, m ? config_manager_throttled_topics(m, leader) : NULL, STATE_FILE);
    return n == 2 && m && file(a, with_newline(config_manager_throttled(m, leader, path[1])));
}

/* ---- the whole ---- */

static char *state_text(const struct host *h)
{
    return h->state == HOST_FAILED ? g_strdup_printf("failed: %s\n", h->why)
                                   : g_strdup_printf("%s\n", host_state_name(h->state));
}

static bool answer_broker(const struct host *h, char **path, guint n, struct answer *a)
{
    static const char *const entries[] = {
            "config", "config_source", "log_dirs", "logs", "metadata", "offline_log_dirs", "quotas", "throttled"};
    const struct incarnation *inc = h->now;

    if (n == 0) {
        GPtrArray *names = new_names();
        for (size_t i = 0; i < G_N_ELEMENTS(entries); i++)
            g_ptr_array_add(names, g_strdup(entries[i]));
        return directory(a, names, STATE_DIRECTORY); /* and `state`, which is a file: see list() */
    }
    const char *what = path[0];
    if (strcmp(what, "state") == 0) {
        a->kind = STATE_WRITABLE_FILE;
        a->text = state_text(h);
        return n == 1;
    }
    path++;
    n--;
    if (strcmp(what, "logs") == 0)
        return answer_logs(inc, path, n, a);
    if (strcmp(what, "log_dirs") == 0)
        return answer_dirs(inc, true, path, n, a);
    if (strcmp(what, "offline_log_dirs") == 0)
        return answer_dirs(inc, false, path, n, a);
    if (strcmp(what, "metadata") == 0)
        return answer_metadata(inc, path, n, a);
    if (strcmp(what, "config") == 0)
        return answer_config(inc, false, path, n, a);
    if (strcmp(what, "config_source") == 0)
        return answer_config(inc, true, path, n, a);
    if (strcmp(what, "quotas") == 0)
        return answer_quotas(inc, path, n, a);
    if (strcmp(what, "throttled") == 0)
        return answer_throttled(inc, path, n, a);
    return false;
}

static bool answer_any(struct engine *e, char **path, guint n, struct answer *a)
{
    int32_t id;

    if (n == 0) {
        GPtrArray *names = new_names();
        for (guint i = 0; i < e->hosts->len; i++) {
            const struct host *h = g_ptr_array_index(e->hosts, i);
            if (h->id >= 0)
                g_ptr_array_add(names, g_strdup_printf("%d", h->id));
        }
        return directory(a, names, STATE_DIRECTORY);
    }
    struct host *h = to_number(path[0], &id) ? host_find(e, id) : NULL;
    return h && answer_broker(h, path + 1, n - 1, a);
}

static void list(const struct ask *ask, const struct answer *a)
{
    g_autofree struct state_entry *entries = g_new0(struct state_entry, a->names->len + 1);
    size_t n = 0;

    for (guint i = 0; i < a->names->len; i++) {
        char *name = g_ptr_array_index(a->names, i);
        size_t len = strlen(name);
        bool below = len > 0 && name[len - 1] == '/';
        if (below)
            name[len - 1] = '\0';
        entries[n++] = (struct state_entry){.name = name, .kind = below ? STATE_DIRECTORY : a->entry_kind};
    }
    if (ask->n == 1)
        entries[n++] = (struct state_entry){.name = "state", .kind = STATE_WRITABLE_FILE};
    state_answer_list(ask->q, entries, n);
}

static void give(const struct ask *ask, const struct answer *a)
{
    switch (ask->query) {
    case STATE_LOOKUP:
        state_answer_kind(ask->q, a->kind);
        return;
    case STATE_LIST:
        if (a->kind == STATE_DIRECTORY)
            list(ask, a);
        else
            state_answer_error(ask->q, ENOTDIR);
        return;
    case STATE_READ:
    case STATE_READLINK:
        if (a->kind == STATE_DIRECTORY)
            state_answer_error(ask->q, ask->query == STATE_READ ? EISDIR : EINVAL);
        else if ((a->kind == STATE_LINK) != (ask->query == STATE_READLINK))
            state_answer_error(ask->q, EINVAL);
        else
            state_answer_bytes(ask->q, a->text, strlen(a->text));
        return;
    case STATE_WRITE:
        state_answer_error(ask->q, EACCES);
        return;
    }
}

/* Engine thread. */
static void run_ask(void *arg)
{
    struct ask *ask = arg;
    struct answer a = {0};

    if (answer_any(ask->engine, ask->path, ask->n, &a))
        give(ask, &a);
    else
        state_answer_error(ask->q, ENOENT);
    if (a.names)
        g_ptr_array_unref(a.names);
    g_free(a.text);
    g_strfreev(ask->path);
    g_free(ask);
}

/* ---- writes of brokers/B/state ---- */

static void handle_write(struct engine *e, struct engine_msg *m)
{
    struct host *h = host_find(e, m->broker_id);
    struct state_question *q = m->arg;

    if (!h || e->stopping) {
        state_answer_error(q, h ? ESHUTDOWN : ENOENT);
    } else if (strcmp(m->text, "stopped") == 0) {
        engine_stop_host(e, h, m->item.gen);
        state_answer_done(q);
    } else if (strcmp(m->text, "running") == 0) {
        engine_start_host(e, h->id, NULL, NULL, m->item.gen);
        state_answer_done(q);
    } else {
        g_autofree char *path = g_strdup_printf("/.state/brokers/%d/state", h->id);
        journal_error(e->config.errors, EINVAL, path, "'%s' is neither stopped nor running", m->text);
        state_answer_error(q, EINVAL);
    }
}

static void ask_write(
        struct engine *e, char **path, guint n, const struct bytes *value, gen_t gen, struct state_question *q)
{
    int32_t id;

    if (n != 2 || !to_number(path[0], &id) || strcmp(path[1], "state") != 0) {
        state_answer_error(q, EACCES);
        return;
    }
    struct engine_msg *m = engine_msg_new(handle_write);
    m->broker_id = id;
    m->arg = q;
    m->text = g_strstrip(g_strndup(value ? value->data : "", value ? value->len : 0));
    if (!engine_post(e, m, gen))
        state_answer_error(q, ESHUTDOWN);
}

void engine_state_ask(
        struct engine *e, int query, const char *path, const struct bytes *value, gen_t gen, struct state_question *q)
{
    static const char top[] = "/.state/brokers";
    const char *rest = path + strlen(top);
    char **components = g_strsplit(*rest == '/' ? rest + 1 : rest, "/", -1);

    if (query == STATE_WRITE) {
        ask_write(e, components, g_strv_length(components), value, gen, q);
        g_strfreev(components);
        return;
    }
    struct ask *ask = g_new(struct ask, 1);
    *ask = (struct ask){.engine = e, .query = query, .path = components, .n = g_strv_length(components), .q = q};
    if (queue_ask(e->queue, run_ask, ask))
        return;
    state_answer_error(q, ESHUTDOWN);
    g_strfreev(components);
    g_free(ask);
}
