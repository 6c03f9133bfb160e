/* What the policy asks before a value is written. */
#include "tests/unit/config_fixture.h"
#include <errno.h>
#include <string.h>
#include "controller/config/entity.h"

static void test_entity_paths(void **state)
{
    static const struct {
        const char *path;
        enum entity_kind kind;
        const char *name, *client;
    } good[] = {{"topics/t", ENTITY_TOPIC, "t", NULL}, {"clients/<default>", ENTITY_CLIENT, "<default>", NULL},
            {"clients/a%20b", ENTITY_CLIENT, "a%20b", NULL}, {"users/u", ENTITY_USER, "u", NULL},
            {"users/u/clients/c", ENTITY_PAIR, "u", "c"},
            {"users/<default>/clients/<default>", ENTITY_PAIR, "<default>", "<default>"},
            {"brokers/7", ENTITY_BROKER, "7", NULL}, {"brokers/<default>", ENTITY_BROKER, "<default>", NULL},
            {"ips/10.0.0.1", ENTITY_IP, "10.0.0.1", NULL}, {"ips/::1", ENTITY_IP, "::1", NULL},
            {"ips/host.example-1.org", ENTITY_IP, "host.example-1.org", NULL},
            {"ips/<default>", ENTITY_IP, "<default>", NULL},
            {"topics/no such, but said", ENTITY_TOPIC, "no such, but said", NULL}};
    for (size_t i = 0; i < G_N_ELEMENTS(good); i++) {
        struct config_entity e = {0};
        g_autofree char *why = NULL;
        if (config_entity_parse(good[i].path, &e, &why) < 0)
            fail_msg("%s: %s", good[i].path, why);
        assert_int_equal(e.kind, good[i].kind);
        assert_string_equal(e.path, good[i].path);
        assert_string_equal(e.name, good[i].name);
        assert_int_equal(g_strcmp0(e.client, good[i].client), 0);
        config_entity_clear(&e);
    }
    static const char *const bad[] = {"", "t1", "topics", "topics/", "nosuch/x", "topics/a/b", "topics//a", "topics/a/",
            "/topics/a", "topics/..", "users/u/clients", "users/u/clients/", "users/u/x/c", "users/u/clients/c/d",
            "clients/%zz", "users/%", "users/u/clients/%1", "brokers/one", "brokers/-1", "brokers/2147483648",
            "ips/256.1.1.1", "ips/-x", "ips/a..b", "ips/a b", "topics/a\nb", "topic/a"};
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        struct config_entity e = {.name = (char *)"untouched"};
        g_autofree char *why = NULL;
        if (config_entity_parse(bad[i], &e, &why) == 0)
            fail_msg("`%s` is no entity", bad[i]);
        assert_non_null(why);
        assert_string_equal(e.name, "untouched");
    }
}

struct write_case {
    const char *kind, *entity, *key, *value;
    const char *why; /* NULL: good */
};

static const struct write_case writes[] = {
        {"topics", "t", "retention.ms", "5", NULL},
        {"topics", "t", "retention.ms", "soon", "Not a number"},
        {"topics", "t", "no.such.key", "anything", NULL},
        {"topics", "t", "follower.replication.throttled.replicas", "0:1;1:2", "literal '*'"},
        {"brokers", "1", "log.retention.ms", "5", NULL},
        {"brokers", "1", "log.retention.ms", "0", "log.retention.ms must be"},
        {"brokers", "1", "log.roll.ms", "0", "log.roll.ms must be"},
        {"brokers", "1", "log.roll.jitter.ms", "-1", "log.roll.jitter.ms must be"},
        {"brokers", "1", "num.io.threads", "abc", "type INT"},
        {"brokers", "1", "num.io.threads", "0", "at least 1"},
        {"brokers", "1", "broker.rack", "r1", NULL},          /* read-only: tolerated in the tree, brokers say so */
        {"brokers", "1", "log.retention.hours", "abc", NULL}, /* never looked at */
        {"brokers", "1", "my.key", "x", NULL},
        {"brokers", "1", "leader.replication.throttled.rate", "-1", "at least 0"},
        {"brokers", "<default>", "leader.replication.throttled.rate", "1", NULL},
        {"brokers", "<default>", "listeners", "PLAINTEXT://:1", NULL},
        {"brokers", "x", "num.io.threads", "2", "broker id"},
        {"brokers", "1", "listener.name.x.max.connections", "-1", "at least 0"},
        {"clients", "c", "producer_byte_rate", "10", NULL},
        {"clients", "c", "producer_byte_rate", "1.5", "type LONG"},
        {"clients", "c", "request_percentage", "1.5", NULL},
        {"clients", "c", "no.such.key", "1", "Unknown configuration key"},
        {"clients", "c", "SCRAM-SHA-256", "x", "SCRAM"},
        {"clients", "c", "connection_creation_rate", "1", "Unknown configuration key"},
        {"users", "u", "SCRAM-SHA-256", "salt=YQ==,stored_key=YWJj,server_key=YWI=,iterations=4096", NULL},
        {"users", "u", "SCRAM-SHA-256", "secret", "[hidden]"},
        {"users", "<default>", "SCRAM-SHA-256", "salt=YQ==,stored_key=YWJj,server_key=YWI=,iterations=4096", "SCRAM"},
        {"users", "u/clients/c", "SCRAM-SHA-256", "salt=YQ==,stored_key=YWJj,server_key=YWI=,iterations=4096", "SCRAM"},
        {"users", "u/clients/c", "controller_mutation_rate", "2.5", NULL},
        {"users", "u", "x", "1", "Unknown configuration key"},
        {"users", "%zz", "producer_byte_rate", "1", "hex digits"},
        {"ips", "10.0.0.1", "connection_creation_rate", "0", NULL},
        {"ips", "10.0.0.1", "connection_creation_rate", "-1", "at least 0"},
        {"ips", "10.0.0.1", "producer_byte_rate", "1", "Unknown configuration key"},
        {"nosuch", "x", "a", "b", "entity type"},
};

static void test_writes(void **state)
{
    for (size_t i = 0; i < G_N_ELEMENTS(writes); i++) {
        const struct write_case *c = &writes[i];
        g_autoptr(GHashTable) config = g_hash_table_new(g_str_hash, g_str_equal);
        g_autofree char *why = NULL, *whole_why = NULL;
        g_hash_table_insert(config, (char *)c->key, (char *)c->value);
        int one = config_value_validate(c->kind, c->entity, c->key, c->value, &why);
        int whole = config_entity_validate(c->kind, c->entity, config, &whole_why);
        assert_int_equal(one, whole);
        if (one != (c->why ? EINVAL : 0) || (c->why && (!why || !strstr(why, c->why))))
            fail_msg("%s/%s %s=%s: %d %s", c->kind, c->entity, c->key, c->value, one, why);
        assert_int_equal(g_strcmp0(why, whole_why), 0);
        assert_int_equal(config_value_validate(c->kind, c->entity, c->key, c->value, NULL), one);
    }
}

static void test_together(void **state)
{
    static const struct {
        const char *a, *x, *b, *y;
        bool good;
    } cases[] = {
            {"min.compaction.lag.ms", "9", "max.compaction.lag.ms", "3", false},
            {"min.compaction.lag.ms", "3", "max.compaction.lag.ms", "3", true},
            {"local.retention.ms", "6", "retention.ms", "5", false},
            {"local.retention.ms", "5", "retention.ms", "5", true},
            {"local.retention.ms", "-2", "retention.ms", "5", true},
            {"local.retention.ms", "-1", "retention.ms", "5", false},
            {"local.retention.ms", "-1", "retention.ms", "-1", true},
            {"local.retention.ms", "5", "retention.ms", "-1", true},
            {"local.retention.bytes", "6", "retention.bytes", "5", false},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GHashTable) config = g_hash_table_new(g_str_hash, g_str_equal);
        g_autofree char *why = NULL;
        g_hash_table_insert(config, (char *)cases[i].a, (char *)cases[i].x);
        g_hash_table_insert(config, (char *)cases[i].b, (char *)cases[i].y);
        int r = config_entity_validate("topics", "t", config, &why);
        if (r != (cases[i].good ? 0 : EINVAL))
            fail_msg("%s=%s %s=%s: %d %s", cases[i].a, cases[i].x, cases[i].b, cases[i].y, r, why);
    }
}

static void test_static_file(void **state)
{
    struct broker_config *c = fake_broker(1, "num.io.threads=4", "my.key=x", "log.retention.hours=-1", NULL);
    g_autofree char *why = NULL;
    assert_int_equal(config_static_validate(c, &why), 0);
    g_hash_table_insert(c->values, g_strdup("num.io.threads"), g_strdup("many"));
    assert_int_equal(config_static_validate(c, &why), EINVAL);
    assert_non_null(strstr(why, "num.io.threads"));
    fake_broker_free(c);
}

/* What KafkaConfig of 3.9.1 said to a file with these lines. */
static void test_static_requirements(void **state)
{
    static const struct {
        const char *a, *b;
        bool good;
    } cases[] = {
            {"log.roll.ms=0", NULL, false},
            {"log.roll.jitter.ms=-1", NULL, false},
            {"log.retention.ms=0", NULL, false},
            {"log.retention.ms=-5", NULL, true},
            {"log.retention.minutes=0", NULL, false},
            {"log.retention.minutes=0", "log.retention.ms=5", true},
            {"log.retention.hours=0", NULL, false},
            {"log.retention.hours=0", "log.retention.minutes=5", true},
            {"log.cleaner.threads=0", NULL, false},
            {"log.cleaner.threads=127", NULL, true},
            {"log.cleaner.threads=128", NULL, false},
            {"log.cleaner.dedupe.buffer.size=1048576", "log.cleaner.enable=false", false},
            {"max.connections.per.ip=0", NULL, false},
            {"max.connections.per.ip=0", "max.connections.per.ip.overrides=h:1", true},
            {"max.connections.per.ip.overrides=h", NULL, false},
            {"max.connections.per.ip.overrides=h:x", NULL, false},
            {"max.connections.per.ip.overrides=h:2147483648", NULL, false},
            {"max.connections.per.ip.overrides=[::1]:5", NULL, false},
            {"max.connections.per.ip.overrides=,h:5", NULL, false},
            {"max.connections.per.ip.overrides=::1:5 , a : -5,", NULL, true},
            {"replica.fetch.wait.max.ms=30001", NULL, false},
            {"replica.fetch.wait.max.ms=30000", NULL, true},
            {"replica.socket.timeout.ms=499", NULL, false},
            {"queued.max.request.bytes=5", NULL, false},
            {"queued.max.request.bytes=5", "socket.request.max.bytes=5", true},
            {"connections.max.idle.ms=100", NULL, false},
            {"connections.max.idle.ms=-1", NULL, true},
            {"offsets.commit.required.acks=-2", NULL, false},
            {"offsets.commit.required.acks=4", NULL, false},
            {"offsets.topic.compression.codec=5", NULL, false},
            {"offsets.topic.compression.codec=4", NULL, true},
            {"group.consumer.session.timeout.ms=44999", NULL, false},
            {"group.consumer.session.timeout.ms=44999", "group.consumer.min.session.timeout.ms=9", true},
            {"group.share.max.heartbeat.interval.ms=4999", NULL, false},
            {"group.coordinator.rebalance.protocols=consumer", NULL, false},
            {"group.coordinator.rebalance.protocols=consumer,classic", NULL, true},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct broker_config *c = fake_broker(1, cases[i].a, cases[i].b, NULL);
        g_autofree char *why = NULL;
        int r = config_static_validate(c, &why);
        if (r != (cases[i].good ? 0 : EINVAL) || cases[i].good != !why)
            fail_msg("%s %s: %d %s", cases[i].a, cases[i].b, r, why);
        fake_broker_free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_entity_paths),
            cmocka_unit_test(test_writes),
            cmocka_unit_test(test_together),
            cmocka_unit_test(test_static_file),
            cmocka_unit_test(test_static_requirements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
