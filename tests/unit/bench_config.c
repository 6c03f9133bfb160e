/*
 * By hand: 10,000 topics, 10,000 notifications, 3 brokers, one by one and in one pass; a start with 100,000 old
 * notifications; a view. The tree is in memory, so this is the configuration's own cost.
 */
#include "tests/unit/config_fixture.h"
#include <stdio.h>

enum { N_TOPICS = 10000, N_BROKERS = 3, N_OLD = 100000 };

static double seconds_since(gint64 *start)
{
    gint64 now = g_get_monotonic_time();
    double s = (double)(now - *start) / 1e6;
    *start = now;
    return s;
}

/* Deletes nothing: that is the store's work. */
static void count_removed(void *ctx, GPtrArray *paths)
{
    g_ptr_array_add(((struct fake_tree *)ctx)->batches, g_strdup_printf("%u", paths->len));
    g_ptr_array_unref(paths);
}

int main(void)
{
    struct fake_tree *tree = fake_tree_new();
    struct config_manager_env env = fake_env(tree);
    env.remove = count_removed;
    struct broker_config *config[N_BROKERS];
    struct config_manager *m[N_BROKERS];
    for (int t = 0; t < N_TOPICS; t++) {
        g_autofree char *topic = g_strdup_printf("topics/t%d", t), *path = g_strdup_printf("/brokers/topics/t%d", t);
        fake_put(tree, path, "{}");
        fake_config(tree, topic, "retention.ms=1000", NULL);
    }
    for (int b = 0; b < N_BROKERS; b++) {
        config[b] = fake_broker(b + 1, "log.retention.hours=2", NULL);
        m[b] = config_manager_new(config[b], 900000, &env);
    }
    gint64 at = g_get_monotonic_time();
    for (int b = 0; b < N_BROKERS; b++)
        config_manager_startup(m[b]);
    printf("start of %d brokers, %d topics: %.3f s\n", N_BROKERS, N_TOPICS, seconds_since(&at));
    for (int round = 0; round < 2; round++) {
        for (int t = 0; t < N_TOPICS; t++) {
            g_autofree char *topic = g_strdup_printf("topics/t%d", t);
            fake_config(tree, topic, round ? "retention.ms=3000" : "retention.ms=2000", NULL);
            const char *name = fake_notify(tree, topic);
            for (int b = 0; round == 0 && b < N_BROKERS; b++)
                config_manager_change_created(m[b], name);
        }
        for (int b = 0; round == 1 && b < N_BROKERS; b++)
            config_manager_changes(m[b]);
        printf("%d notifications %s, %d brokers: %.3f s, %u events\n", N_TOPICS, round ? "in one pass" : "one by one",
                N_BROKERS, seconds_since(&at), tree->events->len);
        fake_clear(tree);
    }
    for (int t = 0; t < N_OLD; t++)
        fake_notify(tree, "topics/t1");
    tree->now_ms += 900001;
    seconds_since(&at);
    config_manager_startup(m[0]);
    printf("start with %d old notifications, purge included: %.3f s, %u batches\n", N_OLD, seconds_since(&at),
            tree->batches->len);
    for (int i = 0; i < 1000; i++)
        g_free(config_manager_effective(m[0], "brokers", "1"));
    printf("a broker's view: %.0f us\n", seconds_since(&at) * 1e3);
    for (int b = 0; b < N_BROKERS; b++) {
        config_manager_free(m[b]);
        fake_broker_free(config[b]);
    }
    fake_tree_free(tree);
    return 0;
}
