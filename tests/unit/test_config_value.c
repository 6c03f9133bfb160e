/* Definitions, values, throttle lists and names. */
#include "tests/unit/config_fixture.h"
#include <string.h>
#include "controller/config/sanitizer.h"
#include "controller/config/throttle.h"
#include "controller/config/value.h"

static const struct config_table *const tables[] = {&config_table_topic, &config_table_broker,
        &config_table_quota_client, &config_table_quota_user, &config_table_quota_ip, &config_table_quota_broker};

static void test_tables(void **state)
{
    assert_int_equal(config_table_topic.n, 36);
    assert_int_equal(config_table_broker.n, 328);
    for (size_t t = 0; t < G_N_ELEMENTS(tables); t++)
        for (size_t i = 0; i < tables[t]->n; i++) {
            const struct config_def *def = &tables[t]->defs[i];
            if (i > 0)
                assert_true(strcmp(def[-1].name, def->name) < 0);
            assert_ptr_equal(config_def_find(tables[t], def->name), def);
        }
    assert_null(config_def_find(&config_table_topic, "no.such.key"));
    assert_null(config_def_find(&config_table_topic, ""));
}

/* Each default is valid and is what Kafka prints. */
static void test_defaults(void **state)
{
    for (size_t t = 0; t < G_N_ELEMENTS(tables); t++)
        for (size_t i = 0; i < tables[t]->n; i++) {
            const struct config_def *def = &tables[t]->defs[i];
            g_autofree char *value = NULL, *why = NULL;
            if (!def->value)
                continue;
            if (config_value_parse(def, def->value, &value, &why) < 0)
                fail_msg("%s: %s", def->name, why);
            assert_string_equal(value, def->value);
        }
}

static void test_synonyms(void **state)
{
    unsigned without = 0;
    for (size_t i = 0; i < config_table_topic.n; i++) {
        const struct config_def *def = &config_table_topic.defs[i];
        without += !def->synonyms;
        for (const struct config_synonym *s = def->synonyms; s && s->key; s++) {
            const struct config_def *broker = config_def_find(&config_table_broker, s->key);
            assert_non_null(broker);
            assert_true(s->factor >= 1);
            if (s == def->synonyms && strcmp(s->key, "log.message.format.version") != 0)
                assert_int_equal(broker->update, UPDATE_CLUSTER_WIDE);
        }
    }
    assert_int_equal(without, 5);
    const struct config_def *retention = config_def_find(&config_table_topic, "retention.ms");
    assert_string_equal(retention->synonyms[2].key, "log.retention.hours");
    assert_int_equal(retention->synonyms[2].factor, 3600000);
}

static void test_broker_definitions(void **state)
{
    assert_string_equal(config_def_broker("num.io.threads")->name, "num.io.threads");
    assert_string_equal(config_def_broker("listener.name.x.max.connections")->name, "max.connections");
    assert_string_equal(config_def_broker("listener.name.x.plain.sasl.jaas.config")->name, "sasl.jaas.config");
    assert_string_equal(
            config_def_broker("leader.replication.throttled.rate")->name, "leader.replication.throttled.rate");
    assert_null(config_def_broker("listener.name.x.my.key"));
    assert_null(config_def_broker("listener.name.x"));
    assert_null(config_def_broker("my.key"));
    assert_true(config_def_is_secret(config_def_broker("listener.name.x.ssl.key.password")));
    assert_true(config_def_is_secret(config_def_find(&config_table_quota_user, "SCRAM-SHA-256")));
    assert_false(config_def_is_secret(config_def_find(&config_table_quota_user, "producer_byte_rate")));
}

struct value_case {
    const char *key, *text, *value; /* value NULL: refused, and then a part of the reason */
    const char *why;
};

static const struct value_case topic_values[] = {
        {"retention.ms", "5000", "5000", NULL},
        {"retention.ms", "  7 ", "7", NULL},
        {"retention.ms", "-1", "-1", NULL},
        {"retention.ms", "-2", NULL, "Value must be at least -1"},
        {"retention.ms", "+8", "8", NULL},
        {"retention.ms", "0012", "12", NULL},
        {"retention.ms", "9223372036854775807", "9223372036854775807", NULL},
        {"retention.ms", "9223372036854775808", NULL, "Not a number of type LONG"},
        {"retention.bytes", "-9223372036854775808", "-9223372036854775808", NULL},
        {"retention.bytes", "-9223372036854775809", NULL, "Not a number of type LONG"},
        {"retention.ms", "", NULL, "Not a number of type LONG"},
        {"retention.ms", "-", NULL, "Not a number of type LONG"},
        {"retention.ms", "1.5", NULL, "Not a number of type LONG"},
        {"retention.ms", "1e3", NULL, "Not a number of type LONG"},
        {"retention.ms", "0x10", NULL, "Not a number of type LONG"},
        {"retention.ms", "soon", NULL, "Invalid value soon for configuration retention.ms"},
        {"segment.bytes", "2147483647", "2147483647", NULL},
        {"segment.bytes", "2147483648", NULL, "Not a number of type INT"},
        {"segment.bytes", "13", NULL, "Value must be at least 14"},
        {"compression.gzip.level", "-1", "-1", NULL},
        {"compression.gzip.level", "9", "9", NULL},
        {"compression.gzip.level", "0", NULL, "Value must be at least 1"},
        {"compression.gzip.level", "10", NULL, "Value must be no more than 9"},
        {"compression.zstd.level", "-131072", "-131072", NULL},
        {"min.cleanable.dirty.ratio", "0.50", "0.5", NULL},
        {"min.cleanable.dirty.ratio", "1", "1.0", NULL},
        {"min.cleanable.dirty.ratio", ".25d", "0.25", NULL},
        {"min.cleanable.dirty.ratio", "1e-4", "1.0E-4", NULL},
        {"min.cleanable.dirty.ratio", "1.5", NULL, "Value must be no more than 1.0"},
        {"min.cleanable.dirty.ratio", "-0.1", NULL, "Value must be at least 0.0"},
        {"min.cleanable.dirty.ratio", "NaN", NULL, "Not a number of type DOUBLE"},
        {"min.cleanable.dirty.ratio", ".", NULL, "Not a number of type DOUBLE"},
        {"min.cleanable.dirty.ratio", "1e", NULL, "Not a number of type DOUBLE"},
        {"min.cleanable.dirty.ratio", "1,5", NULL, "Not a number of type DOUBLE"},
        {"preallocate", "TRUE", "true", NULL},
        {"preallocate", " False ", "false", NULL},
        {"preallocate", "yes", NULL, "either true or false"},
        {"preallocate", "1", NULL, "either true or false"},
        {"cleanup.policy", " compact , delete", "compact,delete", NULL},
        {"cleanup.policy", "", "", NULL},
        {"cleanup.policy", "compact,", NULL, "String must be one of: compact, delete"},
        {"cleanup.policy", "Compact", NULL, "String must be one of"},
        {"compression.type", " zstd ", "zstd", NULL},
        {"compression.type", "brotli", NULL, "uncompressed, zstd, lz4, snappy, gzip, producer"},
        {"message.timestamp.type", "Foo", NULL, "CreateTime, LogAppendTime"},
        {"message.format.version", "2.8", "2.8", NULL},
        {"message.format.version", "2.8-IV1", "2.8-IV1", NULL},
        {"message.format.version", "2.8.1", "2.8.1", NULL},
        {"message.format.version", "0.10.0", "0.10.0", NULL},
        {"message.format.version", "0.10.0.1", "0.10.0.1", NULL},
        {"message.format.version", "2", NULL, "not a valid version"},
        {"message.format.version", "9.9", NULL, "not a valid version"},
        {"leader.replication.throttled.replicas", " 0:1 , 1:2,", "0:1,1:2,", NULL},
        {"leader.replication.throttled.replicas", "*", "*", NULL},
        {"leader.replication.throttled.replicas", "*,0:1", NULL, "literal '*'"},
};

static void check_values(const struct config_table *table, const struct value_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct value_case *c = &cases[i];
        g_autofree char *value = NULL, *why = NULL;
        const struct config_def *def = config_def_find(table, c->key);
        int r = config_value_parse(def, c->text, &value, &why);
        if ((r == 0) != (c->value != NULL) || (c->value && strcmp(value, c->value) != 0) ||
                (!c->value && !strstr(why, c->why)))
            fail_msg("%s=%s: %d, value %s, reason %s", c->key, c->text, r, value, why);
    }
}

static void test_topic_values(void **state)
{
    check_values(&config_table_topic, topic_values, G_N_ELEMENTS(topic_values));
}

static void test_other_values(void **state)
{
    static const struct value_case broker[] = {
            {"log.cleaner.io.max.bytes.per.second", "1000000", "1000000.0", NULL},
            {"log.cleaner.io.max.bytes.per.second", "12345678", "1.2345678E7", NULL},
            {"group.consumer.migration.policy", "Upgrade", "Upgrade", NULL},
            {"group.consumer.migration.policy", "other", NULL, "one of"},
            {"remote.log.manager.copier.thread.pool.size", "-1", "-1", NULL},
            {"remote.log.manager.copier.thread.pool.size", "0", NULL, "at least 1"},
            {"sasl.login.refresh.buffer.seconds", "32767", "32767", NULL},
            {"sasl.login.refresh.buffer.seconds", "32768", NULL, "type SHORT"},
            {"remote.log.metadata.manager.impl.prefix", " ", NULL, "non-empty"},
    };
    check_values(&config_table_broker, broker, G_N_ELEMENTS(broker));
    static const struct value_case user[] = {
            {"SCRAM-SHA-256", "salt=YQ==,stored_key=YWJj,server_key=YWI=,iterations=4096",
                    "salt=YQ==,stored_key=YWJj,server_key=YWI=,iterations=4096", NULL},
            {"SCRAM-SHA-256", "salt=YQ==,stored_key=YWJj,iterations=4096", NULL, "[hidden]"},
            {"SCRAM-SHA-512", "salt=a,stored_key=YWJj,server_key=YWI=,iterations=4096", NULL, "base64"},
            {"SCRAM-SHA-512", "salt=YQ==,stored_key=YWJj,server_key=YWI=,iterations=x", NULL, "base64"},
            {"SCRAM-SHA-512", "salt=YQ==,salt=YWJj,server_key=YWI=,iterations=1", NULL, "base64"},
            {"producer_byte_rate", "abc", NULL, "type LONG"},
            {"request_percentage", "50", "50.0", NULL},
    };
    check_values(&config_table_quota_user, user, G_N_ELEMENTS(user));
    g_autofree char *why = NULL;
    config_value_parse(config_def_find(&config_table_quota_user, "SCRAM-SHA-256"), "topsecret", NULL, &why);
    assert_null(strstr(why, "topsecret"));
}

static void test_doubles(void **state)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, "0.0"}, {1, "1.0"}, {0.5, "0.5"}, {0.001, "0.001"}, {0.0001, "1.0E-4"}, {9999999, "9999999.0"},
            {10000000, "1.0E7"}, {1.7976931348623157E308, "1.7976931348623157E308"}, {2147483647, "2.147483647E9"},
            {-12.25, "-12.25"}, {123.456, "123.456"}, {0.1 + 0.2, "0.30000000000000004"}, {100, "100.0"}};
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = config_format_double(cases[i].value);
        assert_string_equal(text, cases[i].text);
    }
}

static void test_throttle_lists(void **state)
{
    static const char *const good[] = {"", "*", " * ", "0:1", "0:1,1:2", " 0:1 , 1:2 ", "0:1,,1:2,", ",", "*,"};
    static const char *const bad[] = {"none", "0-1", "0:1;1:2", "a:b", "0:", ":1", "*,0:1", "0:1,*", "**", "0:1:2",
            "-1:1", "0: 1", "2147483648:1", "0:99999999999999999999", "+1:2", "*,*"};
    for (size_t i = 0; i < G_N_ELEMENTS(good); i++)
        if (!throttle_list_valid(good[i]))
            fail_msg("`%s` is good", good[i]);
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        if (throttle_list_valid(bad[i]))
            fail_msg("`%s` is bad", bad[i]);
        assert_null(throttle_list_own(bad[i], 1));
    }
    static const struct {
        const char *list, *own;
    } own[] = {{"10:1,2:1,1:2", "2,10"}, {"0:2", NULL}, {"*", "*"}, {"", NULL}, {"3:1,3:1", "3"}};
    for (size_t i = 0; i < G_N_ELEMENTS(own); i++) {
        g_autofree char *text = throttle_list_own(own[i].list, 1);
        if (g_strcmp0(text, own[i].own) != 0)
            fail_msg("`%s`: %s", own[i].list, text);
    }
}

static void test_sanitizer(void **state)
{
    static const struct {
        const char *name, *text;
    } cases[] = {{"alice", "alice"}, {"a b", "a%20b"}, {"a/b", "a%2Fb"}, {"~", "%7E"}, {"*", "%2A"}, {"%", "%25"},
            {"a.b-c_d9", "a.b-c_d9"}, {"<default>", "%3Cdefault%3E"}, {"CN=x,O=y", "CN%3Dx%2CO%3Dy"},
            {"\xc3\xa9", "%C3%A9"}, {"\n", "%0A"}, {"+", "%2B"}};
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = sanitizer_sanitize(cases[i].name, strlen(cases[i].name)), *name = NULL;
        size_t len;
        assert_string_equal(text, cases[i].text);
        assert_true(sanitizer_desanitize(text, &name, &len));
        assert_string_equal(name, cases[i].name);
        assert_int_equal(len, strlen(cases[i].name));
    }
    static const struct {
        const char *text, *canonical;
    } forms[] = {{"a+b", "a%20b"}, {"a%20b", "a%20b"}, {"a%2fb", "a%2Fb"}, {"%61", "a"}, {"<default>", "<default>"},
            {"%3Cdefault%3E", "%3Cdefault%3E"}, {"x%00y", "x%00y"}, {"%", NULL}, {"%4", NULL}, {"%zz", NULL}};
    for (size_t i = 0; i < G_N_ELEMENTS(forms); i++) {
        g_autofree char *canonical = sanitizer_canonical(forms[i].text);
        if (g_strcmp0(canonical, forms[i].canonical) != 0)
            fail_msg("%s: %s", forms[i].text, canonical);
    }
}

static void test_clip(void **state)
{
    g_autofree char *text = g_strnfill(99, 'a'), *long_text = g_strconcat(text, "\xc3\xa9tail", NULL);
    g_autofree char *clipped = config_clip(long_text);
    assert_true(g_utf8_validate(clipped, -1, NULL));
    assert_int_equal(strlen(clipped), 102);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_tables),
            cmocka_unit_test(test_defaults),
            cmocka_unit_test(test_synonyms),
            cmocka_unit_test(test_broker_definitions),
            cmocka_unit_test(test_topic_values),
            cmocka_unit_test(test_other_values),
            cmocka_unit_test(test_doubles),
            cmocka_unit_test(test_throttle_lists),
            cmocka_unit_test(test_sanitizer),
            cmocka_unit_test(test_clip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
