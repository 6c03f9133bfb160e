#include "fs/store/session.h"

#include <stdlib.h>
#include <string.h>

struct sessions {
    GHashTable *open;       /* set of ids */
    GHashTable *ephemerals; /* id -> set of paths, never empty */
};

struct sessions *sessions_new(void)
{
    struct sessions *s = g_new0(struct sessions, 1);
    s->open = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    s->ephemerals = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, (GDestroyNotify)g_hash_table_unref);
    return s;
}

void sessions_free(struct sessions *s)
{
    if (!s)
        return;
    g_hash_table_unref(s->open);
    g_hash_table_unref(s->ephemerals);
    g_free(s);
}

void sessions_open(struct sessions *s, int64_t session)
{
    g_hash_table_add(s->open, g_memdup2(&session, sizeof session));
}

bool sessions_is_open(const struct sessions *s, int64_t session)
{
    return g_hash_table_contains(s->open, &session);
}

void sessions_end(struct sessions *s, int64_t session)
{
    g_hash_table_remove(s->open, &session);
}

static void add_path(struct sessions *s, int64_t session, const char *path)
{
    GHashTable *paths = g_hash_table_lookup(s->ephemerals, &session);
    if (!paths) {
        paths = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        g_hash_table_insert(s->ephemerals, g_memdup2(&session, sizeof session), paths);
    }
    g_hash_table_add(paths, g_strdup(path));
}

static void remove_path(struct sessions *s, int64_t session, const char *path)
{
    GHashTable *paths = g_hash_table_lookup(s->ephemerals, &session);
    if (!paths)
        return;
    g_hash_table_remove(paths, path);
    if (g_hash_table_size(paths) == 0)
        g_hash_table_remove(s->ephemerals, &session);
}

void sessions_follow(struct sessions *s, const struct commit *commit)
{
    for (size_t i = 0; i < commit->n_changes; i++) {
        const struct change *ch = &commit->changes[i];
        if (ch->stat.ephemeral_owner && ch->type == NODE_CREATED)
            add_path(s, ch->stat.ephemeral_owner, ch->path);
        else if (ch->stat.ephemeral_owner && ch->type == NODE_DELETED)
            remove_path(s, ch->stat.ephemeral_owner, ch->path);
    }
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void sessions_append_deletes(const struct sessions *s, int64_t session, struct txn *txn)
{
    GHashTable *paths = g_hash_table_lookup(s->ephemerals, &session);
    if (!paths)
        return;
    guint n;
    g_autofree void **sorted = g_hash_table_get_keys_as_array(paths, &n);
    qsort(sorted, n, sizeof *sorted, compare_paths); /* the same order in every run */
    for (guint i = 0; i < n; i++)
        txn_delete(txn, sorted[i], -1);
}
