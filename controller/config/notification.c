#include <errno.h>
#include <string.h>
#include "controller/config/notification.h"
#include "controller/config/value.h"
#include "controller/json/codec.h"

static const char parent[] = "/config/changes";
static const size_t prefix_length = sizeof("config_change_") - 1;

enum { PURGE_BATCH = 500, KNOWN_SLACK = 1000, REMOVE_AGAIN_MS = 60000 };

struct notification {
    char *name;
    int64_t number; /* -1: the name has none */
    int64_t due_ms; /* after it, the node has expired; then: it is looked for again */
};

struct notification_listener {
    struct config_manager_env env;
    int32_t broker_id;
    int64_t expiry_ms;
    int (*entity)(void *arg, const char *path, bool just_read, char **ret_why);
    void *arg;
    int64_t last_executed;
    GHashTable *known; /* names seen and still there, as far as this broker was told */
    GPtrArray *heap;   /* struct notification, first due first: what is still to be purged */
};

static void free_notification(void *arg)
{
    struct notification *n = arg;
    if (!n)
        return;
    g_free(n->name);
    g_free(n);
}

struct notification_listener *notification_listener_new(const struct config_manager_env *env, int32_t broker_id,
        int64_t expiry_ms, int (*entity)(void *arg, const char *path, bool just_read, char **ret_why), void *arg)
{
    struct notification_listener *l = g_new0(struct notification_listener, 1);
    l->env = *env;
    l->broker_id = broker_id;
    l->expiry_ms = expiry_ms;
    l->entity = entity;
    l->arg = arg;
    l->last_executed = -1;
    l->known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    l->heap = g_ptr_array_new_with_free_func(free_notification);
    return l;
}

void notification_listener_free(struct notification_listener *l)
{
    if (!l)
        return;
    g_hash_table_unref(l->known);
    g_ptr_array_unref(l->heap);
    g_free(l);
}

/* ---- purging: a binary heap, so that each notification is looked at when it is due and not in every pass ---- */

static bool sooner(const GPtrArray *heap, guint a, guint b)
{
    return ((struct notification *)heap->pdata[a])->due_ms < ((struct notification *)heap->pdata[b])->due_ms;
}

static void swap(GPtrArray *heap, guint a, guint b)
{
    void *t = heap->pdata[a];
    heap->pdata[a] = heap->pdata[b];
    heap->pdata[b] = t;
}

static void heap_push(GPtrArray *heap, struct notification *n)
{
    g_ptr_array_add(heap, n);
    for (guint i = heap->len - 1; i > 0 && sooner(heap, i, (i - 1) / 2); i = (i - 1) / 2)
        swap(heap, i, (i - 1) / 2);
}

static struct notification *heap_pop(GPtrArray *heap)
{
    swap(heap, 0, heap->len - 1);
    struct notification *n = g_ptr_array_steal_index(heap, heap->len - 1);
    for (guint i = 0, child; (child = 2 * i + 1) < heap->len; i = child) {
        if (child + 1 < heap->len && sooner(heap, child + 1, child))
            child++;
        if (!sooner(heap, child, i))
            break;
        swap(heap, i, child);
    }
    return n;
}

static bool exists(const struct notification_listener *l, const char *path)
{
    struct bytes *data = NULL;
    struct zstat stat;
    int rc = l->env.get(l->env.ctx, path, &data, &stat);
    bytes_unref(data);
    return rc == ZOK;
}

/* Any broker purges whatever is old enough, malformed and empty ones too. A store without room may refuse: each is
 * looked for once more. */
static void purge(struct notification_listener *l, int64_t now)
{
    GPtrArray *batch = NULL;
    while (l->heap->len > 0 && ((struct notification *)l->heap->pdata[0])->due_ms < now) {
        struct notification *n = heap_pop(l->heap);
        g_autofree char *path = g_strconcat(parent, "/", n->name, NULL);
        if (!exists(l, path)) {
            free_notification(n);
            continue;
        }
        if (!batch)
            batch = g_ptr_array_new_with_free_func(g_free);
        g_ptr_array_add(batch, g_steal_pointer(&path));
        n->due_ms = now + REMOVE_AGAIN_MS;
        heap_push(l->heap, n);
        if (batch->len == PURGE_BATCH)
            l->env.remove(l->env.ctx, g_steal_pointer(&batch));
    }
    if (batch)
        l->env.remove(l->env.ctx, batch);
}

/* ---- processing ---- */

/* Everything behind the prefix's length, whatever the prefix; -1 if that is no number. */
static int64_t change_number(const char *name)
{
    int64_t number;
    if (strlen(name) <= prefix_length || !config_parse_long(name + prefix_length, &number) || number < 0)
        return -1;
    return number;
}

static void complain(const struct notification_listener *l, const char *path, const char *why)
{
    l->env.error(l->env.ctx, EINVAL, path, "broker %d: notification skipped: %s", l->broker_id, why);
}

/* The node as it is; false if it went meanwhile. */
static bool read_node(
        struct notification_listener *l, const char *path, struct bytes **ret_data, struct zstat *ret_stat)
{
    return l->env.get(l->env.ctx, path, ret_data, ret_stat) == ZOK;
}

/* `seen`: entities that this pass has read already; nothing can be newer without another notification. */
static void execute(
        struct notification_listener *l, const char *path, const struct bytes *data, GHashTable *seen, bool replay)
{
    g_autofree char *entity = NULL, *why = NULL;
    if (!data || data->len == 0) {
        complain(l, path, "it has no data");
    } else if (!config_change_decode(data, &entity, &why)) {
        complain(l, path, why);
    } else if (!seen || g_hash_table_add(seen, g_strdup(entity))) {
        if (l->entity(l->arg, entity, replay, &why) < 0)
            complain(l, path, why);
    }
}

static void process(struct notification_listener *l, struct notification *n, GHashTable *seen, bool replay, int64_t now)
{
    g_autofree char *path = g_strconcat(parent, "/", n->name, NULL);
    struct bytes *data = NULL;
    struct zstat stat;
    if (!read_node(l, path, &data, &stat)) {
        free_notification(n);
        return;
    }
    n->due_ms = stat.ctime + l->expiry_ms;
    bool silent = replay && n->due_ms < now;
    if (n->number < 0) {
        if (!silent)
            complain(l, path, "its name does not end in a number");
    } else if (n->number <= l->last_executed) {
        l->env.error(l->env.ctx, 0, path,
                "broker %d: notification ignored until the broker starts again: number %" G_GINT64_FORMAT
                " was handled already",
                l->broker_id, l->last_executed);
    } else {
        if (!silent)
            execute(l, path, data, seen, replay);
        l->last_executed = n->number;
    }
    bytes_unref(data);
    heap_push(l->heap, n);
}

static struct notification *new_notification(const char *name)
{
    struct notification *n = g_new0(struct notification, 1);
    n->name = g_strdup(name);
    n->number = change_number(name);
    return n;
}

static int compare_notifications(const void *a, const void *b)
{
    const struct notification *x = *(struct notification *const *)a, *y = *(struct notification *const *)b;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Those that were not there before, in order; `known` becomes what is there now. */
static GPtrArray *find_new(struct notification_listener *l, GPtrArray *children)
{
    GPtrArray *found = g_ptr_array_new();
    GHashTable *known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; children && i < children->len; i++) {
        const char *name = children->pdata[i];
        g_hash_table_add(known, g_strdup(name));
        if (!g_hash_table_contains(l->known, name))
            g_ptr_array_add(found, new_notification(name));
    }
    g_hash_table_unref(l->known);
    l->known = known;
    g_ptr_array_sort(found, compare_notifications);
    return found;
}

void notification_listener_pass(struct notification_listener *l, bool replay)
{
    g_autoptr(GPtrArray) children = l->env.children(l->env.ctx, parent);
    g_autoptr(GPtrArray) found = find_new(l, children);
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    int64_t now = l->env.now_ms(l->env.ctx);
    for (guint i = 0; i < found->len; i++)
        process(l, found->pdata[i], seen, replay, now);
    purge(l, now);
}

/* Names of notifications that are gone would pile up where no pass is made. */
static void forget_removed(struct notification_listener *l)
{
    g_autoptr(GPtrArray) children = l->env.children(l->env.ctx, parent);
    g_hash_table_remove_all(l->known);
    for (guint i = 0; children && i < children->len; i++)
        g_hash_table_add(l->known, g_strdup(children->pdata[i]));
}

void notification_listener_created(struct notification_listener *l, const char *name)
{
    int64_t now = l->env.now_ms(l->env.ctx);
    if (!g_hash_table_add(l->known, g_strdup(name)))
        return; /* the pass at the start was faster than the feed */
    process(l, new_notification(name), NULL, /* replay= */ false, now);
    purge(l, now);
    if (g_hash_table_size(l->known) > 2 * l->heap->len + KNOWN_SLACK)
        forget_removed(l);
}
