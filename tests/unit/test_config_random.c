/*
 * Random writes, notifications, deletions, restarts of one broker and of all: at each step what a running broker
 * has in force equals a fresh computation from what it had been told, made by a model of few words.
 */
#include "tests/unit/config_fixture.h"
#include <stdio.h>
#include <string.h>

enum { N_BROKERS = 3, N_TOPICS = 3, SEQUENCES = 60, STEPS = 120 };

static const char *const topics[N_TOPICS] = {"a", "b", "c"};
static const char *const entities[] = {"topics/a", "topics/b", "topics/c", "brokers/<default>", "brokers/1",
        "brokers/2", "brokers/3", "clients/k", "users/u", "users/u/clients/k"};
static const char *const topic_keys[] = {"retention.ms", "min.insync.replicas", "segment.bytes"};
static const char *const broker_keys[] = {"log.retention.ms", "min.insync.replicas", "log.segment.bytes"};

/* One document: the value of each of three keys (the first is the quota), "" is absent, "x" is bad. */
struct document {
    char values[3][8];
};

struct broker {
    struct broker_config *config;
    struct config_manager *m; /* NULL: down */
    bool hosts[N_TOPICS];
    bool startup_read[N_TOPICS]; /* read at the start, and the topic is still the same */
    struct document told[G_N_ELEMENTS(entities)];
};

struct world {
    GRand *rand;
    struct fake_tree *tree;
    struct document tree_has[G_N_ELEMENTS(entities)];
    bool exists[N_TOPICS];
    struct broker brokers[N_BROKERS];
};

static bool is_topic(size_t e)
{
    return e < N_TOPICS;
}

static bool is_broker(size_t e)
{
    return e >= 3 && e <= 6;
}

static bool has_bad(const struct document *d)
{
    for (int k = 0; k < 3; k++)
        if (strcmp(d->values[k], "x") == 0)
            return true;
    return false;
}

static struct document without_bad(struct document d)
{
    for (int k = 0; k < 3; k++)
        if (strcmp(d.values[k], "x") == 0)
            d.values[k][0] = '\0';
    return d;
}

static void put_document(struct world *w, size_t e)
{
    const char *const *keys = is_topic(e) ? topic_keys : broker_keys;
    static const char *const quota_keys[] = {"producer_byte_rate", "consumer_byte_rate", "request_percentage"};
    if (!is_topic(e) && !is_broker(e))
        keys = quota_keys;
    g_autoptr(GString) text = g_string_new("{\"version\":1,\"config\":{");
    for (int k = 0, n = 0; k < 3; k++)
        if (w->tree_has[e].values[k][0])
            g_string_append_printf(text, "%s\"%s\":\"%s\"", n++ ? "," : "", keys[k], w->tree_has[e].values[k]);
    g_string_append(text, "}}");
    g_autofree char *path = g_strconcat("/config/", entities[e], NULL);
    fake_put(w->tree, path, text->str);
}

static void write_entity(struct world *w)
{
    size_t e = (size_t)g_rand_int_range(w->rand, 0, G_N_ELEMENTS(entities));
    g_autofree char *path = g_strconcat("/config/", entities[e], NULL);
    memset(&w->tree_has[e], 0, sizeof(w->tree_has[e]));
    if (g_rand_int_range(w->rand, 0, 6) == 0) {
        if (strcmp(entities[e], "users/u") == 0)
            fake_put(w->tree, path, NULL); /* it has children */
        else
            fake_delete(w->tree, path);
        return;
    }
    for (int k = 0; k < 3; k++) {
        int choice = g_rand_int_range(w->rand, 0, 8);
        if (choice == 0)
            strcpy(w->tree_has[e].values[k], "x");
        else if (choice < 5)
            snprintf(w->tree_has[e].values[k], 8, "%d", g_rand_int_range(w->rand, 20, 99));
    }
    put_document(w, e);
}

static void tell(struct broker *b, int id, size_t e, const struct document *d)
{
    if (is_broker(e) && e != 3 && (int)e - 3 != id)
        return;
    if (is_topic(e) && !b->hosts[e] && !b->startup_read[e])
        return;
    if (is_broker(e))
        b->told[e] = without_bad(*d);
    else if (!has_bad(d))
        b->told[e] = *d;
}

static void notify(struct world *w)
{
    size_t e = (size_t)g_rand_int_range(w->rand, 0, G_N_ELEMENTS(entities));
    if (g_rand_int_range(w->rand, 0, 5) == 0)
        fake_note(w->tree, "rubbish");
    bool by_pass = g_rand_boolean(w->rand);
    const char *name = fake_notify(w->tree, entities[e]);
    for (int i = 0; i < N_BROKERS; i++) {
        struct broker *b = &w->brokers[i];
        if (!b->m)
            continue;
        if (by_pass)
            config_manager_changes(b->m);
        else
            config_manager_change_created(b->m, name);
        tell(b, i + 1, e, &w->tree_has[e]);
    }
}

static void stop_broker(struct broker *b)
{
    config_manager_free(b->m);
    b->m = NULL;
}

static void start_broker(struct world *w, int i)
{
    struct broker *b = &w->brokers[i];
    struct config_manager_env env = fake_env(w->tree);
    b->m = config_manager_new(b->config, 900000, &env);
    config_manager_startup(b->m);
    for (size_t e = 0; e < G_N_ELEMENTS(entities); e++) {
        memset(&b->told[e], 0, sizeof(b->told[e]));
        if (!is_broker(e) || e == 3 || (int)e - 3 == i + 1)
            b->told[e] = without_bad(w->tree_has[e]);
    }
    for (size_t t = 0; t < N_TOPICS; t++) {
        g_autofree char *path = g_strconcat("/config/topics/", topics[t], NULL);
        b->startup_read[t] = w->exists[t] || g_hash_table_contains(w->tree->nodes, path);
    }
}

static void topic_appears(struct world *w)
{
    size_t t = (size_t)g_rand_int_range(w->rand, 0, N_TOPICS);
    g_autofree char *path = g_strconcat("/brokers/topics/", topics[t], NULL);
    if (w->exists[t])
        return;
    w->exists[t] = true;
    fake_put(w->tree, path, "{}");
    for (int i = 0; i < N_BROKERS; i++) {
        struct broker *b = &w->brokers[i];
        b->startup_read[t] = false; /* another topic than the one of the start */
        if (!b->m || g_rand_int_range(w->rand, 0, 3) == 0)
            continue;
        b->hosts[t] = true;
        config_manager_topic_created(b->m, topics[t]);
        b->told[t] = without_bad(w->tree_has[t]);
    }
}

static void topic_goes(struct world *w)
{
    size_t t = (size_t)g_rand_int_range(w->rand, 0, N_TOPICS);
    g_autofree char *path = g_strconcat("/brokers/topics/", topics[t], NULL);
    g_autofree char *config = g_strconcat("/config/topics/", topics[t], NULL);
    if (!w->exists[t])
        return;
    w->exists[t] = false;
    for (int i = 0; i < N_BROKERS; i++) {
        struct broker *b = &w->brokers[i];
        b->startup_read[t] = false;
        if (b->hosts[t] && b->m)
            config_manager_topic_removed(b->m, topics[t]);
        b->hosts[t] = false;
    }
    fake_delete(w->tree, path);
    fake_delete(w->tree, config);
    memset(&w->tree_has[t], 0, sizeof(w->tree_has[t]));
}

static void bounce(struct world *w, int i)
{
    if (w->brokers[i].m)
        stop_broker(&w->brokers[i]);
    else
        start_broker(w, i);
}

/* ---- the naive computation ---- */

static void expect_broker(struct broker *b, int id, int k, const char **ret_value, const char **ret_source)
{
    static const char *const defaults[] = {"", "1", "1073741824"};
    const char *own = b->told[3 + id].values[k], *cluster = b->told[3].values[k];
    *ret_value = *own ? own : *cluster ? cluster : defaults[k];
    *ret_source = *own ? "DYNAMIC_BROKER_CONFIG" : *cluster ? "DYNAMIC_DEFAULT_BROKER_CONFIG" : "DEFAULT_CONFIG";
}

/* Lines of both views, made once. */
static void assert_line(const char *values, const char *sources, const char *key, const char *value, const char *source)
{
    g_autofree char *v = config_line(g_strdup(values), key), *s = config_line(g_strdup(sources), key);
    if (g_strcmp0(v, value) != 0 || g_strcmp0(s, source) != 0)
        fail_msg("%s: %s (%s), expected %s (%s)", key, v, s, value, source);
}

static void check_broker(struct world *w, int i)
{
    struct broker *b = &w->brokers[i];
    char name[4];
    snprintf(name, sizeof(name), "%d", i + 1);
    const char *value, *source;
    g_autofree char *values = config_manager_effective(b->m, "brokers", name);
    g_autofree char *sources = config_manager_source(b->m, "brokers", name);
    for (int k = 0; k < 3; k++) {
        expect_broker(b, i + 1, k, &value, &source);
        assert_line(values, sources, broker_keys[k], value, source);
    }
    for (size_t t = 0; t < N_TOPICS; t++) {
        g_autofree char *config = g_strconcat("/config/topics/", topics[t], NULL);
        if (!w->exists[t] && !g_hash_table_contains(w->tree->nodes, config)) {
            assert_null(config_manager_effective(b->m, "topics", topics[t]));
            continue;
        }
        g_autofree char *topic_values = config_manager_effective(b->m, "topics", topics[t]);
        g_autofree char *topic_sources = config_manager_source(b->m, "topics", topics[t]);
        struct document fresh = without_bad(w->tree_has[t]);
        const struct document *d = b->hosts[t] || b->startup_read[t] ? &b->told[t] : &fresh;
        for (int k = 0; k < 3; k++) {
            expect_broker(b, i + 1, k, &value, &source);
            if (k == 0 && !*value)
                value = i == 0 ? "7200000" : "604800000"; /* log.retention.hours=2 in the file of broker 1 */
            if (d->values[k][0]) {
                value = d->values[k];
                source = "DYNAMIC_TOPIC_CONFIG";
            }
            assert_line(topic_values, topic_sources, topic_keys[k], value, source);
        }
    }
    const char *client = b->told[7].values[0], *user = b->told[8].values[0], *pair = b->told[9].values[0];
    const char *quota = *pair ? pair : *user ? user : client;
    g_autofree char *got = config_line(config_manager_quota(b->m, "u", "k"), "producer_byte_rate");
    assert_string_equal(got ? got : "", quota);
    g_autofree char *other = config_line(config_manager_quota(b->m, "v", "k"), "producer_byte_rate");
    assert_string_equal(other ? other : "", client);
}

static void run_sequence(guint32 seed)
{
    struct world w = {.rand = g_rand_new_with_seed(seed), .tree = fake_tree_new()};
    fake_put(w.tree, "/config/users/u", NULL);
    fake_put(w.tree, "/config/users/u/clients", NULL);
    for (int i = 0; i < N_BROKERS; i++) {
        w.brokers[i].config = fake_broker(i + 1, i == 0 ? "log.retention.hours=2" : "my.key=1", NULL);
        start_broker(&w, i);
    }
    for (int step = 0; step < STEPS; step++) {
        int choice = g_rand_int_range(w.rand, 0, 20);
        w.tree->now_ms += g_rand_int_range(w.rand, 0, 100000);
        if (choice < 7)
            write_entity(&w);
        else if (choice < 15)
            notify(&w);
        else if (choice < 16)
            topic_appears(&w);
        else if (choice < 17)
            topic_goes(&w);
        else if (choice < 19)
            bounce(&w, g_rand_int_range(w.rand, 0, N_BROKERS));
        else
            for (int i = 0; i < N_BROKERS; i++) { /* the daemon dies and comes back */
                stop_broker(&w.brokers[i]);
                start_broker(&w, i);
            }
        if (w.brokers[step % N_BROKERS].m)
            check_broker(&w, step % N_BROKERS);
        fake_clear(w.tree);
    }
    for (int i = 0; i < N_BROKERS; i++) {
        stop_broker(&w.brokers[i]);
        fake_broker_free(w.brokers[i].config);
    }
    fake_tree_free(w.tree);
    g_rand_free(w.rand);
}

static void test_random_sequences(void **state)
{
    for (guint32 seed = 0; seed < SEQUENCES; seed++) {
        printf("seed %u\n", seed); /* the last one printed is the one that failed */
        run_sequence(seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_sequences)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
