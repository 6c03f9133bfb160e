/* A broker's own keys: defaults, synonyms, what may be changed and what not, listeners, secrets. */
#include "tests/unit/config_manager_fixture.h"
#include <errno.h>
#include <string.h>

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
            {"\"advertised.listeners\":\"PLAINTEXT://lb:5,SSL://lb:5\",", "PLAINTEXT://h:1,SSL://h:2", NULL},
            {"\"listeners\":\"PLAINTEXT://h:5,SSL://i:5\",", "PLAINTEXT://h:1,SSL://h:2", "a different port"},
            {"\"listeners\":\"rubbish\",", "PLAINTEXT://h:1,SSL://h:2", "no NAME://host:port"},
            {"\"listeners\":\"PLAINTEXT://h:1,OTHER://h:4\",", "PLAINTEXT://h:1,SSL://h:2", "no security protocol"},
            {MAP "\"\",", "PLAINTEXT://h:1,SSL://h:2", "no security protocol"},
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
        assert_broker(&f, "log.retention.ms", cases[i].why ? "" : "7", DYNAMIC_BROKER); /* all of it, or nothing */
    }
    stop(&f);
}

static void test_thread_counts(void **state)
{
    struct fixture f = start_plain();
    fake_config(f.tree, "brokers/1", "num.io.threads=64", "log.retention.ms=7000", NULL);
    notify(&f, "brokers/1");
    assert_broker(&f, "num.io.threads", "2", DYNAMIC_BROKER);  /* declared, and not in force: DescribeConfigs says so */
    assert_broker(&f, "log.retention.ms", "", DYNAMIC_BROKER); /* nothing of it is */
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
    static const struct {
        const char *key, *value;
    } bad[] = {{"log.retention.ms", "0"}, {"log.roll.ms", "0"}, {"log.cleaner.dedupe.buffer.size", "1000"},
            {"max.connections.per.ip", "0"}, {"max.connections.per.ip.overrides", "127.0.0.1"},
            {"log.local.retention.ms", "604800001"}, {"log.local.retention.ms", "-1"}};
    struct fixture f = start_plain();
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autofree char *before = config_manager_broker_value(f.m, bad[i].key);
        g_autofree char *pair = g_strconcat(bad[i].key, "=", bad[i].value, NULL);
        fake_clear(f.tree);
        fake_config(f.tree, "brokers/1", pair, "log.retention.bytes=5", NULL);
        notify(&f, "brokers/1");
        assert_broker(&f, bad[i].key, before ? before : "", DYNAMIC_BROKER);
        assert_broker(&f, "log.retention.bytes", "-1", DYNAMIC_BROKER);
        assert_int_equal(f.tree->errors->len, 1);
        assert_true(fake_said(f.tree->errors, "the whole change is refused"));
    }
    fake_config(f.tree, "brokers/1", "max.connections.per.ip=0", "max.connections.per.ip.overrides=h:9", NULL);
    notify(&f, "brokers/1");
    assert_broker(&f, "max.connections.per.ip", "0", DYNAMIC_BROKER);
    stop(&f);
}

/* DynamicLogConfig asks only when a default of the logs has changed; a broker starts with what it refuses later. */
static void test_local_retention(void **state)
{
    struct fixture f =
            start(fake_broker(1, "log.retention.bytes=3", "log.local.retention.bytes=5", NULL), fake_tree_new());
    fake_config(f.tree, "brokers/1", "max.connections=9", NULL);
    notify(&f, "brokers/1");
    assert_broker(&f, "max.connections", "9", DYNAMIC_BROKER);
    fake_config(f.tree, "brokers/1", "log.segment.bytes=9000", NULL);
    notify(&f, "brokers/1");
    assert_broker(&f, "log.segment.bytes", "1073741824", DYNAMIC_BROKER);
    assert_true(fake_said(f.tree->errors, "log.local.retention.bytes: must not be above log.retention.bytes"));
    restart(&f);
    assert_broker(&f, "log.segment.bytes", "9000", DYNAMIC_BROKER);
    stop(&f);
}

/* Recorded from a Kafka: each listener has its own threads; those it is given by name are not the broker's. */
static void test_threads_of_a_listener(void **state)
{
    static const char own[] = "listener.name.plaintext.num.network.threads";
    static const struct {
        const char *own, *common, *own_now, *common_now;
    } steps[] = {{"64", NULL, NULL, "2"}, {"4", NULL, "4", "2"}, {"4", "64", "4", "64"}, {"9", NULL, "4", "64"},
            {NULL, NULL, NULL, "2"}, {"8", NULL, NULL, "2"}, {NULL, "3", NULL, "3"}, {NULL, "7", NULL, "3"}};
    struct fixture f =
            start(fake_broker(1, "listeners=PLAINTEXT://h:1", "num.network.threads=2", NULL), fake_tree_new());
    for (size_t i = 0; i < G_N_ELEMENTS(steps); i++) {
        g_autofree char *a = steps[i].own ? g_strconcat(own, "=", steps[i].own, NULL) : g_strdup("some.key=1");
        g_autofree char *b =
                steps[i].common ? g_strconcat("num.network.threads=", steps[i].common, NULL) : g_strdup("other.key=1");
        fake_config(f.tree, "brokers/1", a, b, NULL);
        notify(&f, "brokers/1");
        g_autofree char *has = config_line(config_manager_effective(f.m, "brokers", "1"), own);
        g_autofree char *common = config_manager_broker_value(f.m, "num.network.threads");
        if (g_strcmp0(has, steps[i].own_now) != 0 || strcmp(common, steps[i].common_now) != 0)
            fail_msg("step %zu: %s and %s", i, has, common);
    }
    assert_true(fake_said(f.tree->errors, own));
    assert_true(fake_said(f.tree->errors, "broker 1: num.network.threads: 7 threads, where 3 run"));
    stop(&f);
}

/* Recorded from a Kafka: what one level says wrong keeps changes of the other out, until it is mended; what is not said
 * any more by a refused document stays in force. At a start there is nothing that stays. */
static void test_refused_as_a_whole(void **state)
{
    struct fixture f = start_plain();
    fake_config(f.tree, "brokers/1", "log.retention.bytes=11", "max.connections=50", NULL);
    notify(&f, "brokers/1");
    fake_config(f.tree, "brokers/1", "num.io.threads=100", "log.retention.ms=7000", "max.connections=5", NULL);
    notify(&f, "brokers/1");
    assert_broker(&f, "num.io.threads", "2", DYNAMIC_BROKER);
    assert_broker(&f, "log.retention.ms", "", DYNAMIC_BROKER);
    assert_broker(&f, "log.retention.bytes", "11", DEFAULT);
    assert_broker(&f, "max.connections", "50", DYNAMIC_BROKER);
    fake_config(f.tree, "brokers/<default>", "min.insync.replicas=3", NULL);
    notify(&f, "brokers/<default>");
    assert_broker(&f, "min.insync.replicas", "1", DYNAMIC_DEFAULT);
    fake_clear(f.tree);
    fake_config(f.tree, "brokers/1", "num.io.threads=4", "log.retention.ms=8000", NULL);
    notify(&f, "brokers/1");
    assert_broker(&f, "num.io.threads", "4", DYNAMIC_BROKER);
    assert_broker(&f, "log.retention.ms", "8000", DYNAMIC_BROKER);
    assert_broker(&f, "log.retention.bytes", "-1", DEFAULT);
    assert_broker(&f, "max.connections", "2147483647", DEFAULT);
    assert_broker(&f, "min.insync.replicas", "3", DYNAMIC_DEFAULT); /* with it */
    assert_int_equal(f.tree->errors->len, 0);
    fake_config(f.tree, "brokers/1", "log.retention.ms=0", "max.connections=70", NULL);
    restart(&f);
    assert_broker(&f, "max.connections", "2147483647", DYNAMIC_BROKER);
    assert_broker(&f, "min.insync.replicas", "3", DYNAMIC_DEFAULT);
    stop(&f);
}

/* DynamicListenerConfig: a listener that runs has read its own keys. They are looked at only if something else makes
 * the broker look at its listeners, as a limit of connections does. */
static void test_keys_of_a_listener(void **state)
{
    static const struct {
        const char *key;
        bool good;
    } cases[] = {{"listener.name.plaintext.max.connections=4", true},
            {"listener.name.plaintext.ssl.keystore.location=/x", true},
            {"listener.name.other.sasl.enabled.mechanisms=PLAIN", true},
            {"listener.name.plaintext.sasl.enabled.mechanisms=PLAIN", false},
            {"listener.name.plaintext.no.such.key=4", false}};
    struct fixture f = start(fake_broker(1, "listeners=PLAINTEXT://h:1", NULL), fake_tree_new());
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        fake_config(f.tree, "brokers/1", NULL);
        notify(&f, "brokers/1");
        fake_clear(f.tree);
        fake_config(f.tree, "brokers/1", cases[i].key, "max.connections=9", NULL);
        notify(&f, "brokers/1");
        assert_broker(&f, "max.connections", cases[i].good ? "9" : "2147483647", DYNAMIC_BROKER);
        assert_int_equal(f.tree->errors->len, cases[i].good ? 0 : 1);
        if (!cases[i].good)
            assert_true(fake_said(f.tree->errors, "is a key of an existing listener"));
    }
    fake_config(f.tree, "brokers/1", NULL);
    notify(&f, "brokers/1");
    fake_config(f.tree, "brokers/1", "listener.name.plaintext.sasl.enabled.mechanisms=PLAIN", NULL);
    notify(&f, "brokers/1");
    assert_broker(&f, "listener.name.plaintext.sasl.enabled.mechanisms", "PLAIN", DYNAMIC_BROKER);
    restart(&f);
    fake_config(
            f.tree, "brokers/1", "listener.name.plaintext.sasl.enabled.mechanisms=GSSAPI", "max.connections=8", NULL);
    restart(&f);
    assert_broker(&f, "max.connections", "8", DYNAMIC_BROKER);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
            cmocka_unit_test(test_local_retention),
            cmocka_unit_test(test_threads_of_a_listener),
            cmocka_unit_test(test_refused_as_a_whole),
            cmocka_unit_test(test_keys_of_a_listener),
            cmocka_unit_test(test_unclean_default),
            cmocka_unit_test(test_secrets),
            cmocka_unit_test(test_password_needs_encoder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
