/*
 * One broker's dynamic configuration (with test_config_topics.c, test_config_brokers.c): what a real Kafka's
 * DescribeConfigs showed in scenarios of the same kind, and the faults of Kafka's history that must not come back
 * (tests/kafka-issues.md).
 */
#include "tests/unit/config_manager_fixture.h"
#include <string.h>

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
