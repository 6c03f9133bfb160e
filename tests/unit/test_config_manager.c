/*
 * One broker's dynamic configuration: what a real Kafka's DescribeConfigs showed in scenarios of the same kind, and the
 * faults of Kafka's history that must not come back:
 *   KAFKA-2246 (path /config/<type>/<name>), 6672 (no /config/changes), 4158 (absence removes a quota), 5094 (secrets
 *   in logs), 8813 (a change while the log is made), 9254 (a broker default wipes overrides), 10803 (one bad value),
 *   9625 and 10268 (pure deletions), 7976 (old unclean setting), 10460 (`*,x`: test_config_value.c), 17584 (synonyms
 *   reset by another change); isolation of bad notifications: test_config_notification.c.
 * Not here: 12840 (there is no log cleaner: nothing is compacted), 5767, 8526, 1647, 1758 (log dirs: tests of
 * controller/broker).
 */
#include "tests/unit/config_fixture.h"
#include <errno.h>
#include <string.h>

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

/* ---- topics ---- */

static void test_topic_override(void **state)
{
    struct fixture f = start_plain();
    make_topic(&f, "a");
    fake_config(f.tree, "topics/a", "retention.ms=70000", "cleanup.policy=compact", NULL);
    assert_topic(&f, "retention.ms", "604800000", DEFAULT); /* the text alone changes nothing */
    notify(&f, "topics/a");
    assert_topic(&f, "retention.ms", "70000", DYNAMIC_TOPIC);
    assert_topic(&f, "cleanup.policy", "compact", DYNAMIC_TOPIC);
    assert_topic(&f, "segment.bytes", "1073741824", DEFAULT);
    assert_true(fake_said(f.tree->events, "broker 1 config topics/a retention.ms=70000 (was 604800000)"));
    assert_int_equal(f.tree->events->len, 2);
    fake_config(f.tree, "topics/a", "cleanup.policy=compact", NULL);
    fake_clear(f.tree);
    notify(&f, "topics/a");
    assert_topic(&f, "retention.ms", "604800000", DEFAULT); /* a pure deletion (KAFKA-9625, 10268) */
    assert_topic(&f, "cleanup.policy", "compact", DYNAMIC_TOPIC);
    assert_int_equal(f.tree->events->len, 1);
    assert_true(fake_said(f.tree->events, "retention.ms=604800000 (was 70000)"));
    fake_delete(f.tree, "/config/topics/a");
    notify(&f, "topics/a");
    assert_topic(&f, "cleanup.policy", "delete", DEFAULT);
    assert_int_equal(f.tree->errors->len, 0);
    stop(&f);
}

static void test_topic_bad_value(void **state)
{
    struct fixture f = start_plain();
    make_topic(&f, "a");
    fake_config(f.tree, "topics/a", "segment.bytes=100", NULL);
    notify(&f, "topics/a");
    fake_config(f.tree, "topics/a", "cleanup.policy=compact", "retention.ms=soon", "segment.bytes=200", NULL);
    notify(&f, "topics/a"); /* all of it is refused, the old values stay */
    assert_topic(&f, "cleanup.policy", "delete", DEFAULT);
    assert_topic(&f, "segment.bytes", "100", DYNAMIC_TOPIC);
    assert_int_equal(f.tree->errors->len, 1);
    assert_true(fake_said(
            f.tree->errors, "22 /config/topics/a broker 1: Invalid value soon for configuration retention.ms"));
    fake_clear(f.tree);
    restart(&f); /* a broker starts all the same, without the offender */
    assert_topic(&f, "cleanup.policy", "compact", DYNAMIC_TOPIC);
    assert_topic(&f, "segment.bytes", "200", DYNAMIC_TOPIC);
    assert_topic(&f, "retention.ms", "604800000", DEFAULT);
    assert_int_equal(f.tree->errors->len, 1);
    config_manager_topic_created(f.m, "a"); /* its log was found on the disk: said once */
    assert_int_equal(f.tree->errors->len, 1);
    assert_topic(&f, "segment.bytes", "200", DYNAMIC_TOPIC);
    fake_config(f.tree, "topics/a", "cleanup.policy=compact", NULL);
    notify(&f, "topics/a");
    assert_topic(&f, "segment.bytes", "1073741824", DEFAULT);
    stop(&f);
}

static void test_topic_documents(void **state)
{
    static const struct {
        const char *text, *retention, *source;
        unsigned errors;
    } cases[] = {
            {"{\"version\":1,\"config\":{\"retention.ms\":\"8\"},\"more\":1}", "8", DYNAMIC_TOPIC, 0},
            {"rubbish", "604800000", DEFAULT, 1},
            {"{\"version\":1,\"config\":{\"retention.ms\":\"6\"}}", "6", DYNAMIC_TOPIC, 0},
            {"{\"version\":1,\"config\":{\"retention.ms\":7}}", "6", DYNAMIC_TOPIC,
                    1}, /* no string: the old one stays */
            {"{\"version\":7,\"config\":[1]}", "604800000", DEFAULT, 0},
            {"{\"config\":{\"retention.ms\":\"9\"}}", "9", DYNAMIC_TOPIC, 0},
            {"{}", "604800000", DEFAULT, 0},
            {"{\"config\":{\"retention.ms\":\"9\"}}", "9", DYNAMIC_TOPIC, 0},
            {NULL, "604800000", DEFAULT, 0},
            {"{\"config\":{\"retention.ms\":\"9\"}}", "9", DYNAMIC_TOPIC, 0},
            {"", "604800000", DEFAULT, 0},
            {"[1]", "604800000", DEFAULT, 1},
    };
    struct fixture f = start_plain();
    make_topic(&f, "a");
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        fake_clear(f.tree);
        fake_put(f.tree, "/config/topics/a", cases[i].text);
        notify(&f, "topics/a");
        assert_topic(&f, "retention.ms", cases[i].retention, cases[i].source);
        assert_int_equal(f.tree->errors->len, cases[i].errors);
    }
    stop(&f);
}

static void test_topic_unknown_key(void **state)
{
    struct fixture f = start_plain();
    make_topic(&f, "a");
    fake_config(f.tree, "topics/a", "no.such.key=x", "retention.ms=1234", NULL);
    notify(&f, "topics/a");
    assert_topic(&f, "retention.ms", "1234", DYNAMIC_TOPIC);
    assert_topic(&f, "no.such.key", "", DYNAMIC_TOPIC); /* shown without its value, as DescribeConfigs does */
    assert_int_equal(f.tree->errors->len, 0);
    stop(&f);
}

static void test_topic_recreated(void **state)
{
    struct fixture f = start_plain();
    make_topic(&f, "a");
    fake_config(f.tree, "topics/a", "retention.ms=5", "leader.replication.throttled.replicas=*", NULL);
    notify(&f, "topics/a");
    assert_topic(&f, "retention.ms", "5", DYNAMIC_TOPIC);
    delete_topic(&f, "a");
    assert_null(config_manager_effective(f.m, "topics", "a"));
    notify(&f, "topics/a"); /* a late one for a topic that went: nothing */
    fake_config(f.tree, "topics/a", "segment.bytes=77", NULL);
    make_topic(&f, "a");
    assert_topic(&f, "retention.ms", "604800000", DEFAULT);
    assert_topic(&f, "segment.bytes", "77", DYNAMIC_TOPIC);
    assert_null(config_manager_throttled(f.m, true, "a"));
    stop(&f);
}

/* The same on a broker that has no replica: it learns of the deletion from the tree alone. */
static void test_topic_recreated_elsewhere(void **state)
{
    struct fixture f = start_plain();
    fake_put(f.tree, "/brokers/topics/a", "{}");
    fake_config(f.tree, "topics/a", "retention.ms=5", "leader.replication.throttled.replicas=*", NULL);
    assert_topic(&f, "retention.ms", "5", DYNAMIC_TOPIC); /* what a replica made now would have */
    restart(&f);
    g_autofree char *throttled = config_manager_throttled(f.m, true, "a");
    assert_string_equal(throttled, "*");
    fake_delete(f.tree, "/brokers/topics/a");
    fake_delete(f.tree, "/config/topics/a");
    assert_null(config_manager_throttled(f.m, true, "a"));
    fake_put(f.tree, "/brokers/topics/a", "{}");
    assert_topic(&f, "retention.ms", "604800000", DEFAULT);
    assert_null(config_manager_throttled(f.m, true, "a"));
    g_autoptr(GPtrArray) topics = config_manager_throttled_topics(f.m, true);
    assert_int_equal(topics->len, 0);
    stop(&f);
}

/* A topic known from the start gets its first replica here: its configuration is read then (LogManager.getOrCreateLog).
 */
static void test_replica_comes_later(void **state)
{
    struct fixture f = start_plain();
    fake_put(f.tree, "/brokers/topics/a", "{}");
    fake_config(f.tree, "topics/a", "retention.ms=1", NULL);
    restart(&f);
    fake_config(f.tree, "topics/a", "retention.ms=2", NULL);
    assert_topic(&f, "retention.ms", "1", DYNAMIC_TOPIC);
    config_manager_topic_created(f.m, "a");
    assert_topic(&f, "retention.ms", "2", DYNAMIC_TOPIC);
    stop(&f);
}

/* The value is written after the log's configuration was read, the notification comes while the log is made
 * (KAFKA-8813): nothing is lost, whichever comes first. */
static void test_change_while_created(void **state)
{
    struct fixture f = start_plain();
    fake_put(f.tree, "/brokers/topics/a", "{}");
    fake_config(f.tree, "topics/a", "retention.ms=1", NULL);
    notify(&f, "topics/a");
    config_manager_topic_created(f.m, "a");
    assert_topic(&f, "retention.ms", "1", DYNAMIC_TOPIC);
    fake_config(f.tree, "topics/a", "retention.ms=2", NULL);
    notify(&f, "topics/a");
    assert_topic(&f, "retention.ms", "2", DYNAMIC_TOPIC);
    stop(&f);
}

static void test_unclean_topic(void **state)
{
    struct fixture f = start_plain();
    make_topic(&f, "a");
    fake_config(f.tree, "topics/a", "unclean.leader.election.enable=TRUE", NULL);
    notify(&f, "topics/a");
    assert_int_equal(f.tree->unclean->len, 1);
    assert_string_equal(f.tree->unclean->pdata[0], "a");
    assert_topic(&f, "unclean.leader.election.enable", "true", DYNAMIC_TOPIC); /* before it is told (KAFKA-7976) */
    fake_clear(f.tree);
    fake_config(f.tree, "topics/a", "unclean.leader.election.enable=false", NULL);
    notify(&f, "topics/a");
    fake_config(f.tree, "topics/elsewhere", "unclean.leader.election.enable=true", NULL);
    notify(&f, "topics/elsewhere"); /* the controller may be here without a replica */
    assert_int_equal(f.tree->unclean->len, 1);
    assert_string_equal(f.tree->unclean->pdata[0], "elsewhere");
    stop(&f);
}

static void test_topic_warnings(void **state)
{
    struct fixture f = start_plain();
    make_topic(&f, "a");
    fake_config(
            f.tree, "topics/a", "retention.ms=1000", "message.timestamp.difference.max.ms=9223372036854775807", NULL);
    notify(&f, "topics/a");
    assert_int_equal(f.tree->errors->len, 0); /* legal, and the limit is none */
    fake_config(f.tree, "topics/a", "retention.ms=1000", "message.timestamp.difference.max.ms=5000", NULL);
    notify(&f, "topics/a");
    assert_int_equal(f.tree->errors->len, 1);
    assert_true(fake_said(f.tree->errors, "0 /config/topics/a broker 1: retention.ms=1000 is below"));
    fake_clear(f.tree);
    fake_config(f.tree, "topics/a", "message.format.version=0.10.2", NULL);
    notify(&f, "topics/a");
    assert_true(fake_said(f.tree->errors, "message.format.version=0.10.2 predates"));
    assert_topic(&f, "message.format.version", "0.10.2", DYNAMIC_TOPIC);
    fake_clear(f.tree);
    fake_config(f.tree, "topics/a", "message.format.version=2.8", NULL);
    notify(&f, "topics/a");
    assert_int_equal(f.tree->errors->len, 0);
    stop(&f);
}

static void test_throttles(void **state)
{
    struct fixture f = start_plain();
    make_topic(&f, "a");
    fake_config(f.tree, "topics/a", "leader.replication.throttled.replicas=3:1,0:1,1:2",
            "follower.replication.throttled.replicas=1:1", NULL);
    notify(&f, "topics/a");
    g_autofree char *leader = config_manager_throttled(f.m, true, "a");
    g_autofree char *follower = config_manager_throttled(f.m, false, "a");
    assert_string_equal(leader, "0,3");
    assert_string_equal(follower, "1");
    assert_true(fake_said(f.tree->events, "broker 1 throttle leader a 0,3 (was none)"));
    static const char *const bad[] = {"none", "0-1", "0:1;1:2", "a:b", "0:", ":1", "*,0:1"};
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autofree char *pair = g_strconcat("leader.replication.throttled.replicas=", bad[i], NULL);
        fake_config(f.tree, "topics/a", pair, NULL);
        notify(&f, "topics/a");
        g_autofree char *still = config_manager_throttled(f.m, true, "a");
        assert_string_equal(still, "0,3");
        g_autofree char *other = config_manager_throttled(f.m, false, "a");
        assert_string_equal(other, "1");
    }
    fake_config(f.tree, "topics/a", "leader.replication.throttled.replicas=", NULL);
    notify(&f, "topics/a");
    assert_null(config_manager_throttled(f.m, true, "a"));
    assert_null(config_manager_throttled(f.m, false, "a"));
    g_autoptr(GPtrArray) topics = config_manager_throttled_topics(f.m, true);
    assert_int_equal(topics->len, 0);
    stop(&f);
}

/* ---- brokers ---- */

static void test_broker_default(void **state)
{
    struct fixture f = start_plain();
    make_topic(&f, "a");
    fake_config(f.tree, "brokers/<default>", "log.retention.ms=7000", "min.insync.replicas=2", NULL);
    notify(&f, "brokers/<default>");
    assert_broker(&f, "log.retention.ms", "7000", DYNAMIC_DEFAULT);
    assert_broker(&f, "log.retention.hours", "168", DEFAULT);
    assert_broker(&f, "min.insync.replicas", "2", DYNAMIC_DEFAULT);
    assert_topic(&f, "retention.ms", "7000", DYNAMIC_DEFAULT);
    assert_topic(&f, "min.insync.replicas", "2", DYNAMIC_DEFAULT);
    assert_config(f.m, "brokers", "<default>", "log.retention.ms", "7000", DYNAMIC_DEFAULT);
    assert_int_equal(f.tree->broker_changed, 1);
    assert_true(fake_said(f.tree->events, "broker 1 config brokers/<default> log.retention.ms=7000 (was none)"));
    fake_config(f.tree, "brokers/<default>", NULL);
    notify(&f, "brokers/<default>");
    assert_broker(&f, "log.retention.ms", "", DEFAULT);
    assert_broker(&f, "min.insync.replicas", "1", DEFAULT);
    assert_topic(&f, "retention.ms", "604800000", DEFAULT);
    assert_topic(&f, "min.insync.replicas", "1", DEFAULT);
    assert_int_equal(f.tree->broker_changed, 2);
    notify(&f, "brokers/<default>");
    assert_int_equal(f.tree->broker_changed, 2); /* nothing changed */
    stop(&f);
}

static void test_broker_over_default(void **state)
{
    struct fixture f = start_plain();
    fake_config(f.tree, "brokers/<default>", "background.threads=3", "log.cleaner.threads=2", NULL);
    notify(&f, "brokers/<default>");
    fake_config(f.tree, "brokers/1", "background.threads=6", NULL);
    notify(&f, "brokers/1");
    fake_config(f.tree, "brokers/2", "background.threads=5", NULL);
    notify(&f, "brokers/2"); /* another's */
    assert_broker(&f, "log.cleaner.threads", "2", DYNAMIC_DEFAULT);
    assert_broker(&f, "background.threads", "6", DYNAMIC_BROKER);
    fake_config(f.tree, "brokers/1", NULL);
    notify(&f, "brokers/1");
    assert_broker(&f, "background.threads", "3", DYNAMIC_DEFAULT);
    stop(&f);
}

/* A later change of a broker default leaves a topic's own values alone (KAFKA-9254). */
static void test_default_keeps_overrides(void **state)
{
    struct fixture f = start_plain();
    make_topic(&f, "a");
    fake_config(f.tree, "topics/a", "retention.ms=11", NULL);
    notify(&f, "topics/a");
    for (int i = 1; i <= 2; i++) {
        fake_config(f.tree, "brokers/<default>", i == 1 ? "log.retention.ms=1000" : "log.segment.bytes=2000", NULL);
        notify(&f, "brokers/<default>");
        assert_topic(&f, "retention.ms", "11", DYNAMIC_TOPIC);
    }
    assert_topic(&f, "segment.bytes", "2000", DYNAMIC_DEFAULT);
    stop(&f);
}

static void test_static_synonyms(void **state)
{
    struct fixture f = start(fake_broker(1, "log.retention.hours=24", "log.retention.minutes=77", "log.roll.hours=5",
                                     "log.flush.scheduler.interval.ms=7000", NULL),
            fake_tree_new());
    make_topic(&f, "a");
    assert_broker(&f, "log.retention.hours", "24", STATIC);
    assert_topic(&f, "retention.ms", "4620000", DEFAULT); /* DescribeConfigs looks at log.retention.ms alone */
    assert_topic(&f, "segment.ms", "18000000", DEFAULT);
    assert_topic(&f, "flush.ms", "7000", DEFAULT);
    fake_config(f.tree, "brokers/<default>", "log.retention.ms=5000", "log.flush.interval.ms=9", NULL);
    notify(&f, "brokers/<default>");
    assert_broker(&f, "log.retention.ms", "5000", DYNAMIC_DEFAULT);
    assert_broker(&f, "log.retention.hours", "168", STATIC); /* the new value has taken the static ones away */
    assert_broker(&f, "log.retention.minutes", "", STATIC);
    assert_broker(&f, "log.flush.scheduler.interval.ms", "9223372036854775807", STATIC);
    assert_topic(&f, "retention.ms", "5000", DYNAMIC_DEFAULT);
    assert_topic(&f, "flush.ms", "9", DYNAMIC_DEFAULT);
    assert_topic(&f, "segment.ms", "18000000", DEFAULT); /* unrelated, so kept (KAFKA-17584) */
    fake_config(f.tree, "brokers/1", "log.roll.ms=8888", NULL);
    notify(&f, "brokers/1");
    assert_broker(&f, "log.roll.hours", "168", STATIC);
    assert_topic(&f, "segment.ms", "8888", DYNAMIC_BROKER);
    fake_config(f.tree, "brokers/<default>", NULL);
    notify(&f, "brokers/<default>");
    assert_broker(&f, "log.retention.minutes", "77", STATIC);
    assert_topic(&f, "retention.ms", "4620000", DEFAULT);
    assert_topic(&f, "flush.ms", "7000", DEFAULT);
    stop(&f);
}

static void test_unlimited_synonyms(void **state)
{
    struct fixture f = start(fake_broker(1, "log.retention.hours=-1", NULL), fake_tree_new());
    make_topic(&f, "a");
    assert_topic(&f, "retention.ms", "-1", DEFAULT);
    fake_config(f.tree, "brokers/1", "log.retention.ms=-9", NULL);
    notify(&f, "brokers/1");
    assert_broker(&f, "log.retention.ms", "-9", DYNAMIC_BROKER);
    assert_topic(&f, "retention.ms", "-1", DYNAMIC_BROKER);
    stop(&f);
}

static void test_broker_bad_values(void **state)
{
    struct fixture f = start_plain();
    fake_config(f.tree, "brokers/1", "log.retention.ms=7000", "num.io.threads=abc", "log.cleanup.policy=x", NULL);
    notify(&f, "brokers/1");
    assert_broker(&f, "log.retention.ms", "7000", DYNAMIC_BROKER);
    assert_broker(&f, "num.io.threads", "2", STATIC);
    assert_broker(&f, "log.cleanup.policy", "delete", DEFAULT);
    assert_int_equal(f.tree->errors->len, 2);
    assert_true(fake_said(f.tree->errors, "num.io.threads: Invalid value abc"));
    fake_clear(f.tree);
    restart(&f);
    assert_broker(&f, "log.retention.ms", "7000", DYNAMIC_BROKER);
    assert_int_equal(f.tree->errors->len, 2);
    stop(&f);
}

static void test_broker_read_only_keys(void **state)
{
    struct fixture f = start_plain();
    fake_config(f.tree, "brokers/1", "broker.rack=r9", "num.io.threads=4", "log.retention.hours=3",
            "ssl.keystore.location=/x", NULL);
    notify(&f, "brokers/1");
    assert_broker(&f, "broker.rack", "", DEFAULT);
    assert_broker(&f, "log.retention.hours", "168", DEFAULT);
    assert_broker(&f, "ssl.keystore.location", "", DEFAULT);
    assert_broker(&f, "num.io.threads", "4", DYNAMIC_BROKER);
    assert_true(fake_said(f.tree->errors, "broker.rack: is read-only; ignored"));
    assert_true(fake_said(f.tree->errors, "ssl.keystore.location: is dynamic only with a listener prefix; ignored"));
    assert_int_equal(f.tree->errors->len, 3);
    stop(&f);
}

static void test_per_broker_keys_in_default(void **state)
{
    struct fixture f = start(fake_broker(1, "listeners=PLAINTEXT://127.0.0.1:1", NULL), fake_tree_new());
    fake_config(f.tree, "brokers/<default>", "listeners=PLAINTEXT://127.0.0.1:2", "log.retention.ms=7000",
            "listener.name.x.ssl.keystore.location=/y", "listener.name.x.max.connections=3",
            "leader.replication.throttled.rate=66", NULL);
    notify(&f, "brokers/<default>");
    assert_broker(&f, "listeners", "PLAINTEXT://127.0.0.1:1", STATIC);
    assert_broker(&f, "log.retention.ms", "7000", DYNAMIC_DEFAULT);
    assert_broker(&f, "listener.name.x.max.connections", "3", DYNAMIC_DEFAULT);
    assert_broker(&f, "listener.name.x.ssl.keystore.location", NULL, NULL);
    assert_broker(&f, "leader.replication.throttled.rate", "66", DYNAMIC_DEFAULT);
    assert_int_equal(f.tree->errors->len, 2);
    fake_config(f.tree, "brokers/1", "leader.replication.throttled.rate=77", "listeners=PLAINTEXT://127.0.0.1:3",
            "listener.name.x.ssl.keystore.location=/z", NULL);
    notify(&f, "brokers/1");
    assert_broker(&f, "leader.replication.throttled.rate", "77", DYNAMIC_BROKER);
    assert_broker(&f, "listeners", "PLAINTEXT://127.0.0.1:3", DYNAMIC_BROKER);
    assert_broker(&f, "listener.name.x.ssl.keystore.location", "/z", DYNAMIC_BROKER);
    fake_config(f.tree, "brokers/1", NULL);
    notify(&f, "brokers/1");
    assert_broker(&f, "leader.replication.throttled.rate", "66", DYNAMIC_DEFAULT);
    fake_delete(f.tree, "/config/brokers/<default>");
    notify(&f, "brokers/<default>");
    assert_broker(&f, "leader.replication.throttled.rate", "9223372036854775807", DEFAULT); /* absence resets */
    stop(&f);
}

static void test_listeners(void **state)
{
#define MAP "\"listener.security.protocol.map\":"
    struct fixture f = start(fake_broker(1, "listeners=PLAINTEXT://h:1,SSL://h:2", NULL), fake_tree_new());
    static const struct {
        const char *keys;      /* as JSON, with a comma at the end */
        const char *listeners; /* in force afterwards */
        const char *why;       /* NULL: good */
    } cases[] = {
            {"\"listeners\":\"PLAINTEXT://h:1,SSL://h:3\",", "PLAINTEXT://h:1,SSL://h:3", NULL},
            {"\"listeners\":\"PLAINTEXT://h:1\",", "PLAINTEXT://h:1", NULL},
            {"\"listeners\":\"PLAINTEXT://h:1,NEW://h:9\"," MAP "\"PLAINTEXT:PLAINTEXT,NEW:SSL,SSL:SSL\",",
                    "PLAINTEXT://h:1,NEW://h:9", NULL},
            {"\"advertised.listeners\":\"PLAINTEXT://x:5\",", "PLAINTEXT://h:1,SSL://h:2", NULL},
            {"\"listeners\":\"rubbish\",", "PLAINTEXT://h:1,SSL://h:2", "no NAME://host:port"},
            {"\"listeners\":\"PLAINTEXT://h:1,OTHER://h:4\",", "PLAINTEXT://h:1,SSL://h:2", "no security protocol"},
            {"\"listeners\":\"SSL://h:2\",", "PLAINTEXT://h:1,SSL://h:2", "inter-broker listener PLAINTEXT"},
            {"\"advertised.listeners\":\"PLAINTEXT://x:1,SASL_SSL://x:2\",", "PLAINTEXT://h:1,SSL://h:2",
                    "SASL_SSL is advertised"},
            {MAP "\"PLAINTEXT:PLAINTEXT,SSL:SASL_SSL\",", "PLAINTEXT://h:1,SSL://h:2",
                    "protocol of the existing listener SSL"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        fake_config(f.tree, "brokers/1", NULL);
        notify(&f, "brokers/1");
        fake_clear(f.tree);
        g_autofree char *text = g_strdup_printf("{\"config\":{%s\"log.retention.ms\":\"7\"}}", cases[i].keys);
        fake_put(f.tree, "/config/brokers/1", text);
        notify(&f, "brokers/1");
        assert_int_equal(f.tree->errors->len, cases[i].why ? 1 : 0);
        if (cases[i].why && !fake_said(f.tree->errors, cases[i].why))
            fail_msg("%s: %s", text, (char *)f.tree->errors->pdata[0]);
        g_autofree char *value = config_manager_broker_value(f.m, "listeners");
        assert_string_equal(value, cases[i].listeners);
        assert_broker(&f, "log.retention.ms", "7", DYNAMIC_BROKER); /* the rest is applied */
    }
    stop(&f);
}

static void test_thread_counts(void **state)
{
    struct fixture f = start_plain();
    fake_config(f.tree, "brokers/1", "num.io.threads=64", "log.retention.ms=7000", NULL);
    notify(&f, "brokers/1");
    assert_broker(&f, "num.io.threads", "2", DYNAMIC_BROKER); /* declared, and not in force: DescribeConfigs says so */
    assert_broker(&f, "log.retention.ms", "7000", DYNAMIC_BROKER);
    assert_true(fake_said(f.tree->errors, "num.io.threads: 64 threads, where 2 run"));
    static const char *const steps[][2] = {{"5", "2"}, {"4", "4"}, {"8", "8"}, {"3", "8"}, {"4", "4"}, {"8", "8"}};
    for (size_t i = 0; i < G_N_ELEMENTS(steps); i++) {
        g_autofree char *pair = g_strconcat("num.io.threads=", steps[i][0], NULL);
        fake_config(f.tree, "brokers/1", pair, NULL);
        notify(&f, "brokers/1");
        assert_broker(&f, "num.io.threads", steps[i][1], DYNAMIC_BROKER);
    }
    fake_config(f.tree, "brokers/1", NULL);
    notify(&f, "brokers/1"); /* back to 2 is less than half */
    assert_broker(&f, "num.io.threads", "8", STATIC);
    fake_config(f.tree, "brokers/1", "num.io.threads=64", NULL);
    restart(&f); /* no thread runs yet */
    assert_broker(&f, "num.io.threads", "64", DYNAMIC_BROKER);
    stop(&f);
}

static void test_values_together(void **state)
{
    struct fixture f = start_plain();
    fake_config(f.tree, "brokers/1", "log.retention.ms=0", "log.retention.bytes=5",
            "log.cleaner.dedupe.buffer.size=1000", "max.connections.per.ip=0", NULL);
    notify(&f, "brokers/1");
    assert_broker(&f, "log.retention.ms", "", DYNAMIC_BROKER);
    assert_broker(&f, "log.retention.bytes", "5", DYNAMIC_BROKER);
    assert_broker(&f, "log.cleaner.dedupe.buffer.size", "134217728", DYNAMIC_BROKER);
    assert_broker(&f, "max.connections.per.ip", "2147483647", DYNAMIC_BROKER);
    assert_int_equal(f.tree->errors->len, 3);
    fake_config(f.tree, "brokers/1", "max.connections.per.ip=0", "max.connections.per.ip.overrides=h:9", NULL);
    notify(&f, "brokers/1");
    assert_broker(&f, "max.connections.per.ip", "0", DYNAMIC_BROKER);
    stop(&f);
}

static void test_unclean_default(void **state)
{
    struct fixture f = start_plain();
    fake_config(f.tree, "brokers/<default>", "unclean.leader.election.enable=true", NULL);
    notify(&f, "brokers/<default>");
    assert_int_equal(f.tree->unclean->len, 1);
    assert_string_equal(f.tree->unclean->pdata[0], "");
    notify(&f, "brokers/<default>");
    assert_int_equal(f.tree->unclean->len, 1); /* it was so before */
    restart(&f);
    assert_int_equal(f.tree->unclean->len, 1);
    stop(&f);
}

#define ENCODED                                                                                                        \
    "keyFactoryAlgorithm:PBKDF2WithHmacSHA512,cipherAlgorithm:AES/CBC/PKCS5Padding,keyLength:128,salt:dG9wc2VjcmV0,"   \
    "iterations:4096,encryptedPassword:dG9wc2VjcmV0,passwordLength:6,initializationVector:dG9wc2VjcmV0"

static void test_secrets(void **state)
{
    struct fixture f = start(fake_broker(1, "password.encoder.secret=topsecret", "ssl.keystore.password=topsecret",
                                     "my.password=topsecret", NULL),
            fake_tree_new());
    fake_config(f.tree, "brokers/1", "listener.name.x.ssl.key.password=" ENCODED,
            "listener.name.x.ssl.keystore.password=topsecret", "other.key=topsecret", "my.ssl.key.password=topsecret",
            NULL);
    notify(&f, "brokers/1");
    assert_broker(&f, "listener.name.x.ssl.key.password", "[hidden]", DYNAMIC_BROKER);
    assert_broker(&f, "listener.name.x.ssl.keystore.password", NULL, NULL); /* it is not encoded */
    assert_broker(&f, "ssl.keystore.password", "[hidden]", STATIC);
    assert_broker(&f, "password.encoder.secret", "[hidden]", STATIC);
    assert_broker(&f, "my.password", "", STATIC);
    assert_broker(&f, "other.key", "", DYNAMIC_BROKER);
    assert_broker(&f, "my.ssl.key.password", NULL, NULL);
    assert_false(fake_said(f.tree->events, "other.key"));
    fake_config(
            f.tree, "users/u", "SCRAM-SHA-256=salt=dG9wc2VjcmV0,stored_key=YWJj,server_key=YWI=,iterations=4096", NULL);
    notify(&f, "users/u");
    assert_config(f.m, "users", "u", "SCRAM-SHA-256", "[hidden]", "users/u");
    fake_config(f.tree, "users/u", "SCRAM-SHA-256=topsecret", NULL);
    notify(&f, "users/u");
    g_autofree char *lines = config_manager_effective(f.m, "brokers", "1");
    assert_null(strstr(lines, "topsecret"));
    assert_null(strstr(lines, "dG9wc2VjcmV0"));
    assert_false(fake_said(f.tree->events, "topsecret") || fake_said(f.tree->events, "dG9wc2VjcmV0"));
    assert_false(fake_said(f.tree->errors, "topsecret") || fake_said(f.tree->errors, "dG9wc2VjcmV0"));
    assert_true(fake_said(f.tree->events, "SCRAM-SHA-256=[hidden] (was none)"));
    stop(&f);
}

static void test_password_needs_encoder(void **state)
{
    struct fixture f = start_plain();
    fake_config(f.tree, "brokers/1", "listener.name.x.ssl.key.password=" ENCODED, NULL);
    notify(&f, "brokers/1");
    assert_broker(&f, "listener.name.x.ssl.key.password", NULL, NULL);
    assert_true(fake_said(f.tree->errors, "no password.encoder.secret"));
    stop(&f);
}

/* ---- start, values of the product, entities ---- */

static void test_no_notification(void **state)
{
    struct fixture f = start_plain();
    fake_config(f.tree, "brokers/1", "background.threads=4", NULL);
    assert_broker(&f, "background.threads", "2", STATIC);
    restart(&f);
    assert_broker(&f, "background.threads", "4", DYNAMIC_BROKER);
    assert_int_equal(f.tree->events->len, 0);
    assert_int_equal(f.tree->broker_changed, 1); /* who took a value from the file asks again */
    stop(&f);
}

static void test_file_delete_delay(void **state)
{
    struct fixture f = start_plain();
    f.config->file_delete_delay_ms = 0;
    make_topic(&f, "a");
    assert_topic(&f, "file.delete.delay.ms", "0", DEFAULT); /* the product's own default */
    fake_config(f.tree, "brokers/<default>", "log.segment.delete.delay.ms=3000", NULL);
    notify(&f, "brokers/<default>");
    assert_topic(&f, "file.delete.delay.ms", "3000", DYNAMIC_DEFAULT);
    g_autofree char *value = config_manager_broker_value(f.m, "log.segment.delete.delay.ms");
    assert_string_equal(value, "3000");
    assert_null(config_manager_broker_value(f.m, "no.such.key"));
    g_autofree char *null = config_manager_broker_value(f.m, "log.retention.ms");
    assert_string_equal(null, "");
    stop(&f);
}

static void test_quotas(void **state)
{
    struct fixture f = start_plain();
    fake_config(f.tree, "users/u", "producer_byte_rate=60", "request_percentage=12.50", NULL);
    fake_config(f.tree, "users/u/clients/c", "producer_byte_rate=80", NULL);
    fake_config(f.tree, "clients/<default>", "consumer_byte_rate=5", NULL);
    fake_put(f.tree, "/config/users/u/clients", NULL);
    restart(&f); /* read at the start: nested ones too */
    g_autofree char *pair = config_manager_quota(f.m, "u", "c");
    assert_string_equal(pair, "consumer_byte_rate=5\nproducer_byte_rate=80\nrequest_percentage=12.5\n");
    assert_config(f.m, "users", "u/clients/c", "producer_byte_rate", "80", "users/u/clients/c");
    assert_config(f.m, "users", "u/clients/c", "consumer_byte_rate", "5", "clients/<default>");
    assert_config(f.m, "users", "u", "producer_byte_rate", "60", "users/u");
    assert_config(f.m, "users", "u", "consumer_byte_rate", "9223372036854775807", DEFAULT);
    fake_config(f.tree, "users/u/clients/c", NULL);
    notify(&f, "users/u/clients/c"); /* absence removes (KAFKA-4158), and the user's counts again */
    g_autofree char *fallen = config_manager_quota(f.m, "u", "c");
    assert_string_equal(fallen, "consumer_byte_rate=5\nproducer_byte_rate=60\nrequest_percentage=12.5\n");
    assert_true(fake_said(f.tree->events, "broker 1 config users/u/clients/c producer_byte_rate=none (was 80)"));
    fake_config(f.tree, "users/u", "producer_byte_rate=many", "consumer_byte_rate=1", NULL);
    notify(&f, "users/u"); /* bad: the old one stays as a whole */
    g_autofree char *same = config_manager_quota(f.m, "u", "x");
    assert_string_equal(same, "consumer_byte_rate=5\nproducer_byte_rate=60\nrequest_percentage=12.5\n");
    restart(&f); /* only the offender is left out */
    g_autofree char *started = config_manager_quota(f.m, "u", "x");
    assert_string_equal(started, "consumer_byte_rate=1\n");
    g_autofree char *none = config_manager_quota(f.m, "nobody", "%zz");
    assert_string_equal(none, "");
    stop(&f);
}

static void test_ips(void **state)
{
    struct fixture f = start_plain();
    fake_config(f.tree, "ips/<default>", "connection_creation_rate=10", NULL);
    fake_config(f.tree, "ips/10.0.0.1", "connection_creation_rate=20", NULL);
    fake_config(f.tree, "ips/10.0.0.2", NULL);
    notify(&f, "ips/<default>");
    notify(&f, "ips/10.0.0.1");
    assert_config(f.m, "ips", "10.0.0.1", "connection_creation_rate", "20", "ips/10.0.0.1");
    assert_config(f.m, "ips", "10.0.0.2", "connection_creation_rate", "10", "ips/<default>");
    fake_delete(f.tree, "/config/ips/<default>");
    notify(&f, "ips/<default>");
    assert_config(f.m, "ips", "10.0.0.2", "connection_creation_rate", "2147483647", DEFAULT);
    fake_put(f.tree, "/config/ips/not an ip", "{\"config\":{\"connection_creation_rate\":\"1\"}}");
    fake_clear(f.tree);
    restart(&f);
    assert_int_equal(f.tree->errors->len, 1);
    stop(&f);
}

static void test_entities(void **state)
{
    struct fixture f = start_plain();
    make_topic(&f, "b");
    fake_config(f.tree, "topics/a", NULL);
    fake_config(f.tree, "users/u/clients/c", "producer_byte_rate=1", NULL);
    fake_put(f.tree, "/config/users/u/clients", NULL);
    fake_put(f.tree, "/config/users/u", NULL);
    fake_put(f.tree, "/config/clients/k", NULL);
    static const struct {
        const char *kind, *names;
    } cases[] = {{"topics", "a b"}, {"brokers", "1"}, {"users", "u u/clients/c"}, {"clients", "k"}, {"ips", ""}};
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GPtrArray) names = config_manager_entities(f.m, cases[i].kind);
        g_ptr_array_add(names, NULL);
        g_autofree char *joined = g_strjoinv(" ", (char **)names->pdata);
        assert_string_equal(joined, cases[i].names);
    }
    assert_null(config_manager_entities(f.m, "nosuch"));
    static const char *const absent[][2] = {{"topics", "nosuch"}, {"brokers", "2"}, {"brokers", "<default>"},
            {"users", "nosuch"}, {"ips", "10.0.0.1"}, {"nosuch", "x"}, {"topics", "a/b"}};
    for (size_t i = 0; i < G_N_ELEMENTS(absent); i++) {
        assert_null(config_manager_effective(f.m, absent[i][0], absent[i][1]));
        assert_null(config_manager_source(f.m, absent[i][0], absent[i][1]));
    }
    stop(&f);
}

/* 900 KB of keys that are refused one by one are not as many lines. */
static void test_many_complaints(void **state)
{
    struct fixture f = start_plain();
    g_autoptr(GString) text = g_string_new("{\"config\":{");
    for (int i = 0; i < 10000; i++)
        g_string_append_printf(text, "\"listener.name.l%05d.max.connections\":\"bad\",", i);
    g_string_append(text, "\"log.retention.ms\":\"7\"}}");
    fake_put(f.tree, "/config/brokers/1", text->str);
    notify(&f, "brokers/1");
    assert_broker(&f, "log.retention.ms", "7", DYNAMIC_BROKER);
    assert_int_equal(f.tree->errors->len, 41);
    assert_true(fake_said(f.tree->errors, "broker 1: and 9960 more"));
    stop(&f);
}

/* A line is one line whatever a key or value contains, and big ones are cut in what is said about them. */
static void test_untrusted_text(void **state)
{
    struct fixture f = start_plain();
    make_topic(&f, "a");
    fake_put(f.tree, "/config/topics/a",
            "{\"config\":{\"x\\nretention.ms\":\"1\",\"%s%n\":\"%n\",\"compression.type\":\"zstd\"}}");
    notify(&f, "topics/a");
    assert_topic(&f, "retention.ms", "604800000", DEFAULT);
    assert_topic(&f, "x\\x0Aretention.ms", "", DYNAMIC_TOPIC);
    g_autofree char *big = g_strnfill(900000, 'x'), *pair = g_strconcat("retention.ms=", big, NULL);
    fake_config(f.tree, "topics/a", pair, NULL);
    fake_clear(f.tree);
    notify(&f, "topics/a");
    assert_int_equal(f.tree->errors->len, 1);
    assert_true(strlen(f.tree->errors->pdata[0]) < 300);
    stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_topic_override),
            cmocka_unit_test(test_topic_bad_value),
            cmocka_unit_test(test_topic_documents),
            cmocka_unit_test(test_topic_unknown_key),
            cmocka_unit_test(test_topic_recreated),
            cmocka_unit_test(test_topic_recreated_elsewhere),
            cmocka_unit_test(test_replica_comes_later),
            cmocka_unit_test(test_change_while_created),
            cmocka_unit_test(test_unclean_topic),
            cmocka_unit_test(test_topic_warnings),
            cmocka_unit_test(test_throttles),
            cmocka_unit_test(test_broker_default),
            cmocka_unit_test(test_broker_over_default),
            cmocka_unit_test(test_default_keeps_overrides),
            cmocka_unit_test(test_static_synonyms),
            cmocka_unit_test(test_unlimited_synonyms),
            cmocka_unit_test(test_broker_bad_values),
            cmocka_unit_test(test_broker_read_only_keys),
            cmocka_unit_test(test_per_broker_keys_in_default),
            cmocka_unit_test(test_listeners),
            cmocka_unit_test(test_thread_counts),
            cmocka_unit_test(test_values_together),
            cmocka_unit_test(test_unclean_default),
            cmocka_unit_test(test_secrets),
            cmocka_unit_test(test_password_needs_encoder),
            cmocka_unit_test(test_no_notification),
            cmocka_unit_test(test_file_delete_delay),
            cmocka_unit_test(test_quotas),
            cmocka_unit_test(test_ips),
            cmocka_unit_test(test_entities),
            cmocka_unit_test(test_many_complaints),
            cmocka_unit_test(test_untrusted_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
