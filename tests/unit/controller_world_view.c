/* The small cluster from outside: a client's changes, what is there now, and expectations. */
#include "tests/unit/controller_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>
#include "controller/json/codec.h"
#include "fs/policy.h"
#include "fs/tree/path.h"

/* ---- a client ---- */

int world_create(struct world *w, const char *path, const char *data)
{
    struct txn *txn = world_txn();
    txn_create(txn, path, data ? bytes_from_string(data) : NULL, 0);
    return world_run(w, txn);
}

int world_set(struct world *w, const char *path, const char *data)
{
    struct txn *txn = world_txn();
    txn_set(txn, path, data ? bytes_from_string(data) : NULL, -1);
    return world_run(w, txn);
}

int world_delete(struct world *w, const char *path)
{
    struct txn *txn = world_txn();
    txn_delete(txn, path, -1);
    return world_run(w, txn);
}

void world_delete_tree(struct world *w, const char *path)
{
    g_autoptr(GPtrArray) children = mirror_children(w->mirror, path);
    for (guint i = 0; children && i < children->len; i++) {
        g_autofree char *child = path_join(path, children->pdata[i]);
        world_delete_tree(w, child);
    }
    world_delete(w, path);
}

bool world_exists(struct world *w, const char *path)
{
    return mirror_exists(w->mirror, path);
}

char *world_get(struct world *w, const char *path)
{
    struct bytes *data = NULL;
    if (mirror_get(w->mirror, path, &data, NULL) != ZOK) {
        return NULL;
    }
    char *text = data ? g_strndup(data->data, data->len) : g_strdup("");
    bytes_unref(data);
    return text;
}

void world_topic(struct world *w, const char *topic, const char *partitions)
{
    g_autofree char *path = g_strconcat("/brokers/topics/", topic, NULL);
    g_autofree char *data = g_strdup_printf("{\"version\":1,\"partitions\":%s}", partitions);
    world_create(w, path, data);
}

void world_reassign(struct world *w, const char *entries)
{
    g_autoptr(GString) text = g_string_new("{\"version\":1,\"partitions\":[");
    g_auto(GStrv) all = g_strsplit(entries, "; ", -1);
    for (size_t i = 0; all[i]; i++) {
        g_auto(GStrv) parts = g_strsplit(all[i], " ", -1);
        g_string_append_printf(text, "%s{\"topic\":\"%s\",\"partition\":%s,\"replicas\":[%s]}", i ? "," : "", parts[0],
                parts[1], parts[2]);
    }
    g_string_append(text, "]}");
    if (world_create(w, REASSIGN, text->str) == ZNODEEXISTS) {
        world_set(w, REASSIGN, text->str);
    }
}

void world_mark(struct world *w, const char *topic)
{
    g_autofree char *path = g_strconcat("/admin/delete_topics/", topic, NULL);
    world_create(w, path, NULL);
}

/* ---- what is there ---- */

char *world_state(struct world *w, const char *topic, int partition)
{
    g_autofree char *path = g_strdup_printf("/brokers/topics/%s/partitions/%d/state", topic, partition);
    struct bytes *data = NULL;
    struct leader_and_isr l;
    if (mirror_get(w->mirror, path, &data, NULL) != ZOK) {
        return g_strdup("none");
    }
    bool good = leader_and_isr_decode(data, &l, NULL);
    bytes_unref(data);
    if (!good) {
        return g_strdup("bad");
    }
    GString *s = g_string_new(NULL);
    g_string_append_printf(s, "leader %d epoch %d isr ", l.leader, l.leader_epoch);
    for (uint32_t i = 0; i < l.isr->n; i++) {
        g_string_append_printf(s, "%s%d", i ? "," : "", l.isr->id[i]);
    }
    leader_and_isr_clear(&l);
    return g_string_free(s, FALSE);
}

char *world_dirs(struct world *w)
{
    GString *s = g_string_new(NULL);
    for (int i = 1; i <= MAX_BROKERS; i++) {
        g_autoptr(GList) names =
                w->broker[i].id ? g_list_sort(g_hash_table_get_keys(w->broker[i].replicas), (GCompareFunc)strcmp)
                                : NULL;
        if (names) {
            g_string_append_printf(s, "%s%d:", s->len ? "; " : "", i);
        }
        for (GList *l = names; l; l = l->next) {
            g_string_append_printf(s, " %s", (char *)l->data);
        }
    }
    return g_string_free(s, FALSE);
}

struct state_question {
    char *answer;
};

void state_answer_error(struct state_question *q, int err)
{
    q->answer = g_strdup(g_strerror(err));
}

void state_answer_kind(struct state_question *q, enum state_kind kind)
{
    q->answer = g_strdup(kind == STATE_DIRECTORY ? "directory" : "file");
}

void state_answer_bytes(struct state_question *q, const void *data, size_t len)
{
    q->answer = g_strndup(data, len);
}

void state_answer_list(struct state_question *q, const struct state_entry *entries, size_t n)
{
    GString *s = g_string_new(NULL);
    for (size_t i = 0; i < n; i++) {
        g_string_append_printf(s, "%s%s", i ? " " : "", entries[i].name);
    }
    q->answer = g_string_free(s, FALSE);
}

char *world_ask(struct world *w, const char *path)
{
    struct state_question kind = {0}, q = {0};
    controller_state_ask(world_active(w), STATE_LOOKUP, path, &kind);
    bool directory = strcmp(kind.answer, "directory") == 0, file = strcmp(kind.answer, "file") == 0;
    if (!directory && !file) {
        return kind.answer;
    }
    g_free(kind.answer);
    controller_state_ask(world_active(w), directory ? STATE_LIST : STATE_READ, path, &q);
    return q.answer;
}

static void append_tree(struct world *w, const char *path, GString *out)
{
    g_autofree char *data = world_get(w, path);
    g_autoptr(GPtrArray) children = mirror_children(w->mirror, path);
    if (strcmp(path, "/controller") == 0 || strcmp(path, "/controller_epoch") == 0 ||
            strcmp(path, "/brokers/ids") == 0) {
        return;
    }
    g_string_append_printf(out, "%s %s\n", path, data);
    g_autoptr(GHashTable) set = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < children->len; i++) {
        g_hash_table_add(set, children->pdata[i]);
    }
    g_autoptr(GList) names = g_list_sort(g_hash_table_get_keys(set), (GCompareFunc)strcmp);
    for (GList *l = names; l; l = l->next) {
        g_autofree char *child = path_join(path, l->data);
        append_tree(w, child, out);
    }
}

char *world_tree(struct world *w)
{
    GString *out = g_string_new(NULL);
    append_tree(w, "/", out);
    g_autoptr(GRegex) id = g_regex_new("\"topic_id\":\"[^\"]*\"", 0, 0, NULL);
    g_autoptr(GRegex) epochs = g_regex_new("\"(controller_epoch|leader_epoch)\":-?[0-9]+", 0, 0, NULL);
    g_autofree char *text = g_string_free(out, FALSE);
    g_autofree char *no_ids = g_regex_replace(id, text, -1, 0, "\"topic_id\":\"*\"", 0, NULL);
    return g_regex_replace(epochs, no_ids, -1, 0, "\"\\1\":*", 0, NULL);
}

/* ---- expectations ---- */

void expect_state(struct world *w, const char *topic, int partition, const char *want)
{
    g_autofree char *got = world_state(w, topic, partition);
    assert_string_equal(got, want);
}

void expect_asked(struct world *w, const char *path, const char *want)
{
    g_autofree char *got = world_ask(w, path);
    assert_string_equal(got, want);
}

void expect_dirs(struct world *w, const char *want)
{
    g_autofree char *got = world_dirs(w);
    assert_string_equal(got, want);
}

void expect_said(const GString *log, const char *text)
{
    if (!strstr(log->str, text)) {
        fail_msg("no \"%s\" in:\n%s", text, log->str);
    }
}

void expect_not_said(const GString *log, const char *text)
{
    if (strstr(log->str, text)) {
        fail_msg("\"%s\" in:\n%s", text, log->str);
    }
}

void expect_gone(struct world *w, const char *topic)
{
    g_autofree char *t = g_strconcat("/brokers/topics/", topic, NULL);
    g_autofree char *c = g_strconcat("/config/topics/", topic, NULL);
    g_autofree char *m = g_strconcat("/admin/delete_topics/", topic, NULL);
    assert_false(world_exists(w, t));
    assert_false(world_exists(w, c));
    assert_false(world_exists(w, m));
}

void expect_data(struct world *w, const char *path, const char *pattern)
{
    g_autofree char *got = world_get(w, path);
    if (!got || !g_regex_match_simple(pattern, got, 0, 0)) {
        fail_msg("%s is %s, not %s", path, got ? got : "absent", pattern);
    }
}

struct world *world_of_three(const char *properties)
{
    struct world *w = world_new(3, properties);
    world_start_all(w);
    return w;
}
