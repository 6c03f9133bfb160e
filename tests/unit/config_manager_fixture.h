#pragma once
/* A broker with its dynamic configuration, for the tests of the manager. */
#include "tests/unit/config_fixture.h"

#pragma GCC diagnostic ignored "-Wunused-function" /* each test uses what it needs */

#define DYNAMIC_TOPIC "DYNAMIC_TOPIC_CONFIG"
#define DYNAMIC_BROKER "DYNAMIC_BROKER_CONFIG"
#define DYNAMIC_DEFAULT "DYNAMIC_DEFAULT_BROKER_CONFIG"
#define STATIC "STATIC_BROKER_CONFIG"
#define DEFAULT "DEFAULT_CONFIG"

struct fixture {
    struct fake_tree *tree;
    struct broker_config *config;
    struct config_manager *m;
};

/* A started broker 1 with the tree's topic `a` hosted, if it exists. */
static struct fixture start(struct broker_config *config, struct fake_tree *tree)
{
    struct fixture f = {.tree = tree, .config = config};
    struct config_manager_env env = fake_env(tree);
    f.m = config_manager_new(config, 900000, &env);
    config_manager_startup(f.m);
    return f;
}

static void restart(struct fixture *f)
{
    struct config_manager_env env = fake_env(f->tree);
    config_manager_free(f->m);
    f->m = config_manager_new(f->config, 900000, &env);
    config_manager_startup(f->m);
}

static void stop(struct fixture *f)
{
    config_manager_free(f->m);
    fake_tree_free(f->tree);
    fake_broker_free(f->config);
}

static struct fixture start_plain(void)
{
    return start(
            fake_broker(1, "num.io.threads=2", "background.threads=2", "log.cleaner.threads=1", NULL), fake_tree_new());
}

static void make_topic(struct fixture *f, const char *topic)
{
    g_autofree char *path = g_strconcat("/brokers/topics/", topic, NULL);
    fake_put(f->tree, path, "{}");
    config_manager_topic_created(f->m, topic);
}

static void delete_topic(struct fixture *f, const char *topic)
{
    g_autofree char *path = g_strconcat("/brokers/topics/", topic, NULL);
    g_autofree char *config = g_strconcat("/config/topics/", topic, NULL);
    config_manager_topic_removed(f->m, topic);
    fake_delete(f->tree, path);
    fake_delete(f->tree, config);
}

static void notify(struct fixture *f, const char *entity)
{
    config_manager_change_created(f->m, fake_notify(f->tree, entity));
}

#define assert_topic(f, key, value, source) assert_config((f)->m, "topics", "a", key, value, source)
#define assert_broker(f, key, value, source) assert_config((f)->m, "brokers", "1", key, value, source)
