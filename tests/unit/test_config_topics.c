/* Topics: overrides, documents, a topic that is made and made again, what is said of bad values, throttles. */
#include "tests/unit/config_manager_fixture.h"

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

/* What a Kafka shows: the newer limits of timestamps follow the older one while they have their default. */
static void test_timestamp_limits(void **state)
{
    static const char before[] = "message.timestamp.before.max.ms", after[] = "message.timestamp.after.max.ms";
    static const char none[] = "9223372036854775807";
    struct fixture f = start_plain();
    make_topic(&f, "a");
    assert_topic(&f, before, none, DEFAULT);
    fake_config(f.tree, "brokers/1", "log.message.timestamp.difference.max.ms=5", NULL);
    notify(&f, "brokers/1");
    assert_topic(&f, before, "5", DEFAULT);
    assert_topic(&f, after, "5", DEFAULT);
    assert_broker(&f, "log.message.timestamp.before.max.ms", none, DEFAULT);
    fake_config(f.tree, "brokers/1", "log.message.timestamp.difference.max.ms=5",
            "log.message.timestamp.after.max.ms=9", NULL);
    notify(&f, "brokers/1");
    assert_topic(&f, before, "5", DEFAULT);
    assert_topic(&f, after, "9", DYNAMIC_BROKER);
    fake_config(f.tree, "topics/a", "message.timestamp.difference.max.ms=7", NULL);
    notify(&f, "topics/a");
    assert_topic(&f, before, "5", DEFAULT);
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
            cmocka_unit_test(test_timestamp_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
