#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <limits.h>
#include <string.h>
#include "controller/broker/properties.h"

/* ---- the syntax ---- */

static GHashTable *parse(const char *text, size_t len)
{
    GHashTable *ret = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    char *why = NULL;

    if (properties_parse(text, len, ret, &why) < 0) {
        assert_non_null(why);
        g_free(why);
        assert_int_equal(g_hash_table_size(ret), 0);
        g_hash_table_unref(ret);
        return NULL;
    }
    assert_null(why);
    return ret;
}

static void expect_property(const char *text, const char *key, const char *value)
{
    g_autoptr(GHashTable) all = parse(text, strlen(text));

    assert_non_null(all);
    const char *got = g_hash_table_lookup(all, key);
    if (!got)
        fail_msg("no key '%s' in: %s", key, text);
    assert_string_equal(got, value);
}

static void syntax(void **state)
{
    expect_property("a=b", "a", "b");
    expect_property("a = b\n", "a", "b");
    expect_property("a:b", "a", "b");
    expect_property("a b c", "a", "b c");
    expect_property("  a\t=\f b ", "a", "b ");
    expect_property("a==b", "a", "=b");
    expect_property("a =: b", "a", ": b");
    expect_property("a", "a", "");
    expect_property("a=", "a", "");
    expect_property("=v", "", "v");
    expect_property("# x=1\n! y=2\n  # z=3\na=1", "a", "1");
    expect_property("a=1\r\nb=2\r", "b", "2");
    expect_property("a=1\ra=2", "a", "2");
    expect_property("a=# no comment", "a", "# no comment");
    expect_property("log.dirs=/d/\xc3\xa4", "log.dirs", "/d/\xc3\xa4");
}

static void continuation(void **state)
{
    expect_property("a=1,\\\n   2,\\\r\n 3\nb=4", "a", "1,2,3");
    expect_property("a=1\\\\\nb=2", "b", "2");
    expect_property("a=1\\\\\nb=2", "a", "1\\");
    expect_property("ke\\\n  y=v", "key", "v");
    expect_property("a\\\n = v", "a", "v");
    expect_property("a = \\\n  v", "a", "v");
    expect_property("a=v\\", "a", "v");
    expect_property("# comment \\\na=v", "a", "v"); /* a comment does not continue */
}

static void escapes(void **state)
{
    expect_property("a\\ b\\=c\\:d=e", "a b=c:d", "e");
    expect_property("a=\\t\\n\\r\\f\\x\\\\", "a", "\t\n\r\fx\\");
    expect_property("a=\\u0041\\u00e4", "a", "A\xc3\xa4");
    expect_property("a=\\ud83d\\ude00", "a", "\xf0\x9f\x98\x80");
    expect_property("a=\\u0020 b", "a", "  b");
    assert_null(parse("x=1\na=\\u12", 10));
    assert_null(parse("a=\\uzzzz", 8));
    assert_null(parse("a=\\ud83d", 8));
    assert_null(parse("a=\\u0000", 8));
    assert_null(parse("a=\0b", 4));
}

static void names_the_line(void **state)
{
    g_autoptr(GHashTable) all = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    const char *text = "a=1\nb=2,\\\n3\n\nc=\\uq\n";
    char *why = NULL;

    assert_int_equal(properties_parse(text, strlen(text), all, &why), -EINVAL);
    assert_true(strstr(why, "line 5") != NULL);
    g_free(why);
}

/* ---- the settings ---- */

static struct broker_config *good(const char *text)
{
    struct broker_config *c = NULL;
    char *why = NULL;

    if (broker_config_parse("/etc/kafka/server.properties", text, strlen(text), &c, &why) < 0)
        fail_msg("%s", why);
    return c;
}

static void expect_bad(const char *text, const char *word)
{
    struct broker_config *c = NULL;
    char *why = NULL;

    assert_int_equal(broker_config_parse("/etc/server.properties", text, strlen(text), &c, &why), -EINVAL);
    assert_null(c);
    assert_true(g_str_has_prefix(why, "/etc/server.properties: "));
    if (!strstr(why, word))
        fail_msg("'%s' is not in: %s", word, why);
    assert_null(strchr(why, '\n'));
    g_free(why);
}

static void defaults(void **state)
{
    struct broker_config *c = good("broker.id=3\nlog.dirs=/a\nlisteners=PLAINTEXT://h:1\nstrange.key= x \n");

    assert_int_equal(c->broker_id, 3);
    assert_int_equal(c->file_delete_delay_ms, 0);
    assert_int_equal(c->num_partitions, 1);
    assert_int_equal(c->default_replication_factor, 1);
    assert_int_equal(c->controlled_shutdown_max_retries, 3);
    assert_int_equal(c->controlled_shutdown_retry_backoff_ms, 5000);
    assert_int_equal(c->leader_imbalance_per_broker_percentage, 10);
    assert_int_equal(c->leader_imbalance_check_interval_seconds, 300);
    assert_true(c->delete_topic_enable && c->auto_leader_rebalance_enable && c->controlled_shutdown_enable);
    assert_false(c->unclean_leader_election_enable);
    assert_null(c->rack);
    assert_string_equal(broker_config_value(c, "strange.key"), "x");
    assert_null(broker_config_value(c, "other"));
    assert_true(broker_config_ibp_at_least(c, 3, 9, 0));
    broker_config_free(c);
    broker_config_free(NULL);
}

static void log_dirs(void **state)
{
    struct broker_config *c = good("log.dirs= /a , /b/../c,, d \nlog.dir=/never");

    assert_int_equal(c->log_dirs->len, 3);
    assert_string_equal(g_ptr_array_index(c->log_dirs, 0), "/a");
    assert_string_equal(g_ptr_array_index(c->log_dirs, 1), "/c");
    assert_string_equal(g_ptr_array_index(c->log_dirs, 2), "/etc/kafka/d");
    broker_config_free(c);
    c = good("log.dir=/only");
    assert_string_equal(g_ptr_array_index(c->log_dirs, 0), "/only");
    broker_config_free(c);
    expect_bad("broker.id=1", "no log dir");
    expect_bad("log.dirs= , ", "no log dir");
    expect_bad("log.dirs=/a,/b,/a/", "twice");
}

static void listeners(void **state)
{
    struct broker_config *c = good("log.dirs=/a\nlisteners=plaintext://:1, SSL://[::1]:2\n"
                                   "advertised.listeners=PLAINTEXT://x.example:9, IN://y:8\n"
                                   "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,IN:sasl_ssl,SSL:SSL");

    assert_int_equal(c->n_endpoints, 2);
    assert_string_equal(c->endpoints[0].host, "x.example");
    assert_int_equal(c->endpoints[0].port, 9);
    assert_string_equal(c->endpoints[1].listener, "IN");
    assert_string_equal(c->endpoints[1].security_protocol, "SASL_SSL");
    broker_config_free(c);
    c = good("log.dirs=/a\nlisteners=plaintext://:1,SSL://[::1]:2");
    assert_string_equal(c->endpoints[0].listener, "PLAINTEXT");
    assert_true(*c->endpoints[0].host != '\0');
    assert_string_equal(c->endpoints[1].host, "::1");
    broker_config_free(c);
    expect_bad("log.dirs=/a\nlisteners=PLAINTEXT://h", "listeners");
    expect_bad("log.dirs=/a\nlisteners=PLAINTEXT://h:x", "listeners");
    expect_bad("log.dirs=/a\nlisteners=PLAINTEXT://h:65536", "65535");
    expect_bad("log.dirs=/a\nlisteners=://h:1", "listeners");
    expect_bad("log.dirs=/a\nlisteners=FOO://h:1", "FOO");
    expect_bad("log.dirs=/a\nlisteners=PLAINTEXT://h:1,PLAINTEXT://h:2", "a different name");
    expect_bad("log.dirs=/a\nlisteners=PLAINTEXT://h:1,SSL://h:1", "a different port");
    expect_bad("log.dirs=/a\nlisteners=PLAINTEXT://h:1,SSL://i:1", "a different port");
    expect_bad("log.dirs=/a\nlisteners=PLAINTEXT://127.0.0.1:1,SSL://127.0.0.2:1", "a different port");
    expect_bad("log.dirs=/a\nlisteners=PLAINTEXT://h:1,SSL://[::1]:1", "a different port");
    expect_bad("log.dirs=/a\nlisteners=rubbish\nadvertised.listeners=PLAINTEXT://h:1", ": listeners: 'rubbish'");
    expect_bad("log.dirs=/a\nlisteners=PLAINTEXT://h:1,SSL://h:2\n"
               "advertised.listeners=PLAINTEXT://h:1,PLAINTEXT://h:2",
            "advertised.listeners: 'PLAINTEXT://h:2': each listener must have a different name");
    broker_config_free(good("log.dirs=/a\nlisteners=PLAINTEXT://127.0.0.1:1,SSL://[::1]:1"));
    broker_config_free(good("log.dirs=/a\nlisteners=PLAINTEXT://h:0,SSL://h:0"));
    c = good("log.dirs=/a\nlisteners=PLAINTEXT://h:1,SSL://h:2\nadvertised.listeners=PLAINTEXT://lb:9,SSL://lb:9");
    assert_int_equal(c->n_endpoints, 2); /* one load balancer for both */
    broker_config_free(c);
    expect_bad("log.dirs=/a\nadvertised.listeners=PLAINTEXT://0.0.0.0:1", "0.0.0.0");
    expect_bad("log.dirs=/a\nlisteners=,", "no listener");
}

static void ids(void **state)
{
    struct broker_config *c = good("log.dirs=/a");

    assert_int_equal(c->broker_id, -1);
    broker_config_free(c);
    c = good("log.dirs=/a\nbroker.id=2000\nreserved.broker.max.id=3000");
    assert_int_equal(c->broker_id, 2000);
    broker_config_free(c);
    c = good("log.dirs=/a\nbroker.id=2000\nbroker.id.generation.enable=false");
    assert_int_equal(c->broker_id, 2000);
    broker_config_free(c);
    /* node.id is the other name */
    c = good("log.dirs=/a\nnode.id=7");
    assert_int_equal(c->broker_id, 7);
    assert_string_equal(broker_config_value(c, "broker.id"), "7");
    broker_config_free(c);
    c = good("log.dirs=/a\nbroker.id=7");
    assert_string_equal(broker_config_value(c, "node.id"), "7");
    broker_config_free(c);
    c = good("log.dirs=/a\nbroker.id=7\nnode.id=+7");
    assert_int_equal(c->broker_id, 7);
    broker_config_free(c);
    expect_bad("log.dirs=/a\nbroker.id=7\nnode.id=8", "node.id: 8 is not broker.id (7)");
    expect_bad("log.dirs=/a\nnode.id=x", "'x' is no number");
    expect_bad("log.dirs=/a\nbroker.id=-2", "broker.id");
    expect_bad("log.dirs=/a\nbroker.id=-1\nbroker.id.generation.enable=false", "broker.id");
    expect_bad("log.dirs=/a\nbroker.id=1001", "reserved.broker.max.id");
    /* keys that mean nothing here are held to Kafka's types and ranges too */
    expect_bad("log.dirs=/a\nnum.io.threads=many", "num.io.threads");
    expect_bad("log.dirs=/a\nlog.retention.hours=1.5", "log.retention.hours");
    expect_bad("log.dirs=/a\nbroker.id=one", "'one' is no number");
    expect_bad("log.dirs=/a\nbroker.id=1.0", "no number");
    expect_bad("log.dirs=/a\nbroker.id=99999999999", "not from");
    expect_bad("log.dirs=/a\nbroker.id=", "no number");
}

static void bad_values(void **state)
{
    expect_bad("log.dirs=/a\ndelete.topic.enable=yes", "delete.topic.enable");
    expect_bad("log.dirs=/a\nnum.partitions=0", "num.partitions");
    expect_bad("log.dirs=/a\nlog.segment.delete.delay.ms=-1", "log.segment.delete.delay.ms");
    expect_bad("log.dirs=/a\nbroker.rack=\\uXY", "line 2");
    /* half-written: the last line has no end, and is a key alone */
    expect_bad("log.dirs=/a\ncontrolled.shutdown.max.retries", "no number");
}

static void last_of_equals_wins(void **state)
{
    struct broker_config *c = good("log.dirs=/a\nbroker.id=1\nbroker.id=2");

    assert_int_equal(c->broker_id, 2);
    broker_config_free(c);
}

static void protocol_versions(void **state)
{
    static const struct {
        const char *text;
        int major, minor, iv;
    } good_ones[] = {{"2.6", 2, 6, INT_MAX}, {"2.7-IV0", 2, 7, 0}, {"2.7-IV2", 2, 7, 2}, {"0.10.2", 0, 1002, INT_MAX},
            {"0.10.0-IV0", 0, 1000, 0}, {"0.9.0", 0, 900, INT_MAX}, {"0.8.2.0", 0, 0, 0}, {"3.9-IV0", 3, 9, 0}};

    for (size_t i = 0; i < G_N_ELEMENTS(good_ones); i++) {
        g_autofree char *text = g_strdup_printf("log.dirs=/a\ninter.broker.protocol.version=%s", good_ones[i].text);
        if (good_ones[i].minor == 0 && good_ones[i].major == 0) {
            expect_bad(text, "inter.broker.protocol.version");
            continue;
        }
        struct broker_config *c = good(text);
        assert_int_equal(c->ibp_major, good_ones[i].major);
        assert_int_equal(c->ibp_minor, good_ones[i].minor);
        assert_int_equal(c->ibp_iv, good_ones[i].iv);
        broker_config_free(c);
    }
    expect_bad("log.dirs=/a\ninter.broker.protocol.version=4.0", "no version");
    expect_bad("log.dirs=/a\ninter.broker.protocol.version=2", "no version");
    expect_bad("log.dirs=/a\ninter.broker.protocol.version=2.6-IV", "no version");
    expect_bad("log.dirs=/a\ninter.broker.protocol.version=2.x", "no version");
    struct broker_config *c = good("log.dirs=/a\ninter.broker.protocol.version=2.7-IV1");
    assert_true(broker_config_ibp_at_least(c, 2, 6, 9));
    assert_true(broker_config_ibp_at_least(c, 2, 7, 1));
    assert_false(broker_config_ibp_at_least(c, 2, 7, 2));
    assert_false(broker_config_ibp_at_least(c, 3, 0, 0));
    assert_true(broker_config_ibp_at_least(c, 0, 1002, 0));
    broker_config_free(c);
}

static void files(void **state)
{
    g_autofree char *dir = g_dir_make_tmp("properties.XXXXXX", NULL);
    g_autofree char *file = g_build_filename(dir, "server.properties", NULL);
    struct broker_config *c = NULL;
    char *why = NULL;

    assert_int_equal(broker_config_load(file, &c, &why), -ENOENT);
    assert_true(strstr(why, file) != NULL);
    g_free(why);
    assert_true(g_file_set_contents(file, "broker.id=7\nlog.dirs=logs", -1, NULL));
    assert_int_equal(broker_config_load(file, &c, &why), 0);
    assert_string_equal(c->file, file);
    g_autofree char *logs = g_build_filename(dir, "logs", NULL);
    assert_string_equal(g_ptr_array_index(c->log_dirs, 0), logs);
    broker_config_free(c);
    g_remove(file);
    g_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(syntax),
            cmocka_unit_test(continuation),
            cmocka_unit_test(escapes),
            cmocka_unit_test(names_the_line),
            cmocka_unit_test(defaults),
            cmocka_unit_test(log_dirs),
            cmocka_unit_test(listeners),
            cmocka_unit_test(ids),
            cmocka_unit_test(bad_values),
            cmocka_unit_test(last_of_equals_wins),
            cmocka_unit_test(protocol_versions),
            cmocka_unit_test(files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
