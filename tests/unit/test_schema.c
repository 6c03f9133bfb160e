/* The shape of every path and which values are possible, with the reasons people get to read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <cjson/cJSON.h>
#include <errno.h>
#include <string.h>
#include <time.h>
#include "controller/policy/config_text.h"
#include "controller/policy/policy.h"
#include "controller/policy/schema.h"

#define TOPIC "/brokers/topics/t"
#define STATE "/brokers/topics/t/partitions/0/state"
#define REASSIGN "/admin/reassign_partitions"
#define CHANGE "/config/changes/config_change_"
#define CONFIG "/config/topics/t"

struct shape {
    const char *path;
    bool directory;
    enum node_format format;
    const char *sequential;
    bool sensitive, protected_;
};

static void test_shapes(void **state)
{
    static const struct shape shapes[] = {
            {"/", true, FORMAT_OPAQUE, NULL, false, false},
            {"/admin/delete_topics", true, FORMAT_OPAQUE, NULL, false, true},
            {"/admin/delete_topics/t", false, FORMAT_OPAQUE, NULL, false, false},
            {REASSIGN, false, FORMAT_JSON, NULL, false, false},
            {"/brokers/ids/1", false, FORMAT_JSON, NULL, false, false},
            {"/brokers/seqid", false, FORMAT_OPAQUE, NULL, false, true},
            {TOPIC, true, FORMAT_JSON, NULL, false, false},
            {"/brokers/topics/t/partitions", true, FORMAT_OPAQUE, NULL, false, false},
            {"/brokers/topics/t/partitions/0", true, FORMAT_OPAQUE, NULL, false, false},
            {STATE, false, FORMAT_JSON, NULL, false, false},
            {"/cluster", true, FORMAT_OPAQUE, NULL, false, false},
            {"/cluster/id", false, FORMAT_JSON, NULL, false, true},
            {"/config/changes", true, FORMAT_OPAQUE, "config_change_", false, true},
            {"/config/changes/config_change_1", false, FORMAT_JSON, NULL, false, false},
            {CONFIG, false, FORMAT_CONFIG, NULL, false, false},
            {"/config/users", true, FORMAT_OPAQUE, NULL, true, true},
            {"/config/users/u", true, FORMAT_CONFIG, NULL, true, false},
            {"/config/users/u/clients", true, FORMAT_OPAQUE, NULL, true, false},
            {"/config/users/u/clients/c", false, FORMAT_CONFIG, NULL, true, false},
            {"/config/brokers/<default>", false, FORMAT_CONFIG, NULL, true, false},
            {"/consumers/g/offsets/t/0", false, FORMAT_NUMBER, NULL, false, false},
            {"/controller", false, FORMAT_JSON, NULL, false, false},
            {"/controller_epoch", false, FORMAT_NUMBER, NULL, false, true},
            {"/controllers", false, FORMAT_OPAQUE, NULL, false, false},
            {"/delegation_token/tokens/x", false, FORMAT_JSON, NULL, true, false},
            {"/isr_change_notification", true, FORMAT_OPAQUE, "isr_change_", false, true},
            {"/kafka-acl/Topic/t", false, FORMAT_JSON, NULL, false, false},
            {"/kafka-acl-extended/prefixed/topic/t", false, FORMAT_JSON, NULL, false, false},
            {"/latest_producer_id_block", false, FORMAT_JSON, NULL, false, true},
            {"/log_dir_event_notification", true, FORMAT_OPAQUE, "log_dir_event_", false, true},
            {"/notes/x", false, FORMAT_OPAQUE, NULL, false, false},
            {"/a", false, FORMAT_OPAQUE, NULL, false, false},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++) {
        const struct shape *s = &shapes[i];
        const char *prefix = kafka_sequential_prefix(NULL, s->path);
        if (kafka_always_directory(NULL, s->path) != s->directory || kafka_format(NULL, s->path) != s->format ||
                g_strcmp0(prefix, s->sequential) != 0 || kafka_sensitive(NULL, s->path) != s->sensitive ||
                schema_protected(s->path) != s->protected_)
            fail_msg("%s", s->path);
    }
    assert_true(kafka_created_empty(NULL, "/brokers/ids/1"));
    assert_false(kafka_created_empty(NULL, TOPIC));
    assert_true(schema_is_root("/brokers/topics"));
    assert_true(schema_is_root("/latest_producer_id_block"));
    assert_false(schema_is_root("/cluster/id"));
    assert_false(schema_is_root("/controller_epoch"));
}

/* Each is stored as it is. */
static void test_good_values(void **state)
{
    static const char *const good[][2] = {
            {TOPIC, "{\"version\":1,\"partitions\":{\"0\":[1,2],\"1\":[2,3]}}"},
            {TOPIC, "{ \"partitions\" : {} , \"mine\" : 1.50 }"},
            {TOPIC, "{\"version\":3,\"partitions\":{\"0\":[1,2,3]},\"adding_replicas\":{\"0\":[3]},"
                    "\"removing_replicas\":{\"0\":[1]},\"topic_id\":\"MDEyMzQ1Njc4OWFiY2RlZg\"}"},
            {STATE, "{\"controller_epoch\":1,\"leader\":1,\"version\":1,\"leader_epoch\":0,\"isr\":[1,2]}"},
            {STATE, "{\"controller_epoch\":1,\"leader\":-1,\"leader_epoch\":9,\"isr\":[1],\"leader_recovery_state\":"
                    "1}"},
            {REASSIGN, "{\"version\":1,\"partitions\":[{\"topic\":\"t\",\"partition\":0,\"replicas\":[99,2]}]}"},
            {"/admin/preferred_replica_election", "{\"version\":1,\"partitions\":[{\"topic\":\"t\",\"partition\":0}]}"},
            {CHANGE, "{\"version\":2,\"entity_path\":\"topics/t\"}"},
            {CHANGE, "{\"version\":2,\"entity_path\":\"users/a%40b/clients/<default>\"}"},
            {CHANGE, "{\"version\":1,\"entity_type\":\"clients\",\"entity_name\":\"c\"}"},
            {"/isr_change_notification/isr_change_1",
                    "{\"version\":1,\"partitions\":[{\"topic\":\"t\",\"partition\":0}]}"},
            {"/log_dir_event_notification/log_dir_event_1", "{\"version\":1,\"broker\":1,\"event\":1}"},
            {"/brokers/ids/1", "{\"version\":5,\"host\":\"h\",\"port\":9092,\"endpoints\":[\"PLAINTEXT://h:9092\"]}"},
            {"/brokers/ids/1", "{\"version\":1,\"host\":\"h\",\"port\":9092}"},
            {"/consumers/g/offsets/t/0", "42"},
            {"/consumers/g/offsets/t/0", "-1"},
            {CONFIG, "{}"},
            {CONFIG, "{\"version\":1,\"config\":{}}"},
            {CONFIG, "{\"version\":1,\"config\":{\"retention.ms\":\"5\",\"of.nobody\":\"x\"},\"kept\":true}"},
            {"/kafka-acl/Topic/t", "{\"version\":1,\"acls\":[{\"principal\":\"User:a\",\"permissionType\":\"Allow\","
                                   "\"operation\":\"Read\",\"host\":\"*\"}]}"},
            {"/feature", "{\"version\":2,\"status\":1,\"features\":{}}"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(good); i++)
        for (int newline = 0; newline < 2; newline++) {
            g_autofree char *text = g_strconcat(good[i][1], newline ? "\n" : "", NULL);
            struct bytes *value = bytes_from_string(text), *stored;
            char *why = NULL;
            if (schema_check_value(good[i][0], value, &stored, NULL, &why) != 0)
                fail_msg("%s: %s: %s", good[i][0], text, why);
            assert_string_equal(stored->data, good[i][1]);
            bytes_unref(stored);
            bytes_unref(value);
        }
}

static void test_bad_values(void **state)
{
    static const char *const bad[][3] = {
            {TOPIC, "[]", "[] is not a JSON object"},
            {TOPIC, "{\"version\":1}", "partitions is missing"},
            {TOPIC, "{\"version\":4,\"partitions\":{}}", "version: 4 is not one of 1 to 3"},
            {TOPIC, "{\"version\":\"1\",\"partitions\":{}}", "version: \"1\" is not one of 1 to 3"},
            {TOPIC, "{\"version\":1.5,\"partitions\":{}}", "version: 1.5 is not"},
            {TOPIC, "{\"partitions\":[]}", "partitions: [] is not an object of partitions"},
            {TOPIC, "{\"partitions\":{\"x\":[1]}}", "partitions[\"x\"]: \"x\" is not a partition number"},
            {TOPIC, "{\"partitions\":{\"01\":[1]}}", "\"01\" is not a partition number"},
            {TOPIC, "{\"partitions\":{\"-1\":[1]}}", "\"-1\" is not a partition number"},
            {TOPIC, "{\"partitions\":{\"0\":[]}}", "partitions[\"0\"]: the list is empty"},
            {TOPIC, "{\"partitions\":{\"0\":1}}", "partitions[\"0\"]: 1 is not a list of broker ids"},
            {TOPIC, "{\"partitions\":{\"0\":[\"one\"]}}", "partitions[\"0\"][0]: \"one\" is not a broker id"},
            {TOPIC, "{\"partitions\":{\"0\":[1,\"2\"]}}", "partitions[\"0\"][1]: \"2\" is not a broker id"},
            {TOPIC, "{\"partitions\":{\"0\":[1,-2]}}", "partitions[\"0\"][1]: -2 is not a broker id"},
            {TOPIC, "{\"partitions\":{\"0\":[1.5]}}", "1.5 is not a broker id"},
            {TOPIC, "{\"partitions\":{\"0\":[4294967297]}}", "4294967297 is not a broker id"},
            {TOPIC, "{\"partitions\":{\"0\":[1,2,1]}}", "partitions[\"0\"]: broker 1 is repeated"},
            {TOPIC, "{\"partitions\":{\"0\":[1]},\"topic_id\":\"x\"}", "topic_id: \"x\" is not a topic id"},
            {TOPIC, "{\"partitions\":{\"0\":[1]},\"adding_replicas\":{\"0\":[2]}}", "broker 2 is not among"},
            {TOPIC, "{\"partitions\":{\"0\":[1]},\"adding_replicas\":{\"1\":[1]}}", "no such partition"},
            {STATE, "{\"leader\":1,\"leader_epoch\":0,\"controller_epoch\":1}", "isr is missing"},
            {STATE, "{\"leader\":1,\"leader_epoch\":0,\"controller_epoch\":1,\"isr\":[]}", "isr: the list is empty"},
            {STATE, "{\"leader\":1,\"leader_epoch\":0,\"controller_epoch\":1,\"isr\":[2]}",
                    "broker 1 is not in the isr"},
            {STATE, "{\"leader\":\"1\",\"leader_epoch\":0,\"controller_epoch\":1,\"isr\":[1]}",
                    "leader: \"1\" is not an integer"},
            {STATE, "{\"leader\":1,\"leader_epoch\":-1,\"controller_epoch\":1,\"isr\":[1]}", "leader_epoch: -1 is not"},
            {REASSIGN, "{\"version\":1}", "partitions is missing"},
            {REASSIGN, "{\"partitions\":{\"t1\":[2]}}", "is not a list"},
            {REASSIGN, "{\"partitions\":[]}", "the list is empty"},
            {REASSIGN, "{\"partitions\":[{\"topic\":\"t1\"}]}", "partitions[0].partition is missing"},
            {REASSIGN, "{\"partitions\":[{\"topic\":\"t1\",\"partition\":0}]}", "partitions[0].replicas is missing"},
            {REASSIGN, "{\"partitions\":[{\"topic\":\"a b\",\"partition\":0,\"replicas\":[1]}]}", "topic: \"a b\""},
            {REASSIGN, "{\"partitions\":[{\"topic\":\"t\",\"partition\":0,\"replicas\":[1,1]}]}",
                    "broker 1 is repeated"},
            {REASSIGN,
                    "{\"partitions\":[{\"topic\":\"t\",\"partition\":0,\"replicas\":[1]},"
                    "{\"topic\":\"t\",\"partition\":0,\"replicas\":[2]}]}",
                    "partitions[1]: partition 0 of topic t is there twice"},
            {CHANGE, "\"t1\"", "\"t1\" is not a JSON object"},
            {CHANGE, "{\"version\":9}", "version: 9 is not one of 1 to 2"},
            {CHANGE, "{\"entity_path\":\"topics/t\"}", "version is missing"},
            {CHANGE, "{\"version\":2}", "entity_path is missing"},
            {CHANGE, "{\"version\":2,\"entity_path\":\"t1\"}", "\"t1\" is not <type>/<name>"},
            {CHANGE, "{\"version\":2,\"entity_path\":\"nosuch/x\"}", "\"nosuch\" is not one of"},
            {CHANGE, "{\"version\":2,\"entity_path\":\"topics/a/b\"}", "too many parts"},
            {CHANGE, "{\"version\":1,\"entity_type\":\"users\",\"entity_name\":\"u\"}",
                    "\"users\" is not topics or clients"},
            {"/log_dir_event_notification/log_dir_event_1", "{\"version\":1,\"broker\":1,\"event\":2}",
                    "event: 2 is not"},
            {"/consumers/g/offsets/t/0", "4x", "\"4x\" is not a number"},
            {"/consumers/g/offsets/t/0", " 4", "\" 4\" is not a number"},
            {"/consumers/g/offsets/t/0", "99999999999999999999", "is not a number"},
            {CONFIG, "{\"version\":1,\"config\":[]}", "config: [] is not an object"},
            {CONFIG, "{\"version\":2,\"config\":{}}", "version: 2 is not 1"},
            {CONFIG, "{\"config\":{\"retention.ms\":5}}", "config.retention.ms: 5 is not a string (Kafka wants \"5\")"},
            {CONFIG, "not json", "line 1: \"not json\" is neither JSON nor key=value"},
            {CONFIG, "[1]", "is not a JSON object"},
            {CONFIG, "a=1\nb=2\na=3\n", "line 3: the key a is there twice"},
            {CONFIG, "=1", "\"\" is not a key"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        struct bytes *value = bytes_from_string(bad[i][1]), *stored = NULL;
        char *why = NULL;
        assert_int_equal(schema_check_value(bad[i][0], value, &stored, NULL, &why), EINVAL);
        if (!strstr(why, bad[i][2]))
            fail_msg("%s: %s: says \"%s\", not \"%s\"", bad[i][0], bad[i][1], why, bad[i][2]);
        assert_null(stored);
        g_free(why);
        bytes_unref(value);
    }
}

/* What is wrong with a configuration that keeps secrets is said without any text of it but the keys. */
static void test_secrets(void **state)
{
    static const char *const paths[] = {"/config/users/u", "/config/users/u/clients/c", "/config/brokers/1"};
    static const char *const bad[] = {"{\"config\":{\"SCRAM-SHA-256\":424242}}", "{\"config\":\"424242\"}", "[424242]",
            "\"424242\"", "{\"version\":424242}", "SCRAM-SHA-256: 424242\n", "SCRAM-SHA-256 424242=1\n",
            "{\"config\":{\"SCRAM-SHA-256\":{\"salt\":\"424242\"}}}", "{\"config\":{\"SCRAM-SHA-256\":\"424242}}",
            "{\"config\":{\"SCRAM-SHA-256\":x424242}}"};
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++)
        for (size_t k = 0; k < G_N_ELEMENTS(paths); k++) {
            struct bytes *value = bytes_from_string(bad[i]), *stored = NULL, *line = bytes_from_string("a=1\n");
            g_autofree char *why = NULL, *line_why = NULL;
            assert_int_equal(schema_check_value(paths[k], value, &stored, NULL, &why), EINVAL);
            assert_int_equal(config_text_apply_line(paths[k], value, line, &stored, &line_why), EINVAL);
            if (strstr(why, "424242") || strstr(line_why, "424242"))
                fail_msg("%s: %s; %s", paths[k], why, line_why);
            bytes_unref(value);
            bytes_unref(line);
        }
}

/* What no JSON value is; the parser's own tests have the rest. */
static void test_bad_json(void **state)
{
    static const char *const bad[] = {"{", "{\"a\":1e999}", "{\"partitions\":{},\"partitions\":{}}", "{} x",
            "{\"a\":\"\xff\"}", "{'a':1}", "nul"};
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        struct bytes *value = bytes_from_string(bad[i]), *stored;
        g_autofree char *why = NULL;
        assert_int_equal(schema_check_value(TOPIC, value, &stored, NULL, &why), EINVAL);
        assert_true(strlen(why) > 5);
        bytes_unref(value);
    }
}

static void test_size(void **state)
{
    g_autofree char *big = g_malloc(ZNODE_MAX_DATA + 2);
    memset(big, 'x', ZNODE_MAX_DATA + 1);
    big[ZNODE_MAX_DATA + 1] = '\0';
    struct bytes *value = bytes_from_string(big), *stored;
    char *why = NULL;
    assert_int_equal(schema_check_value("/notes/x", value, &stored, NULL, &why), EFBIG);
    g_free(why);
    bytes_unref(value);
    value = bytes_new(big, ZNODE_MAX_DATA);
    assert_int_equal(schema_check_value("/notes/x", value, &stored, NULL, &why), 0);
    assert_int_equal(stored->len, ZNODE_MAX_DATA);
    bytes_unref(stored);
    bytes_unref(value);
}

/* A hostile value must not cost more than its size: a list of all brokers, all of them being added. */
static void test_not_quadratic(void **state)
{
    GString *text = g_string_new("{\"partitions\":{\"0\":["), *ids = g_string_new(NULL);
    for (int i = 0; i < 60000; i++)
        g_string_append_printf(ids, "%s%d", i ? "," : "", i);
    g_string_append_printf(text, "%s]},\"adding_replicas\":{\"0\":[%s]}}", ids->str, ids->str);
    struct bytes *value = bytes_new(text->str, text->len), *stored;
    char *why = NULL;
    struct timespec before, after;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    assert_int_equal(schema_check_value(TOPIC, value, &stored, NULL, &why), 0);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    assert_true(after.tv_sec - before.tv_sec < 2);
    bytes_unref(stored);
    bytes_unref(value);
    g_string_free(text, TRUE);
    g_string_free(ids, TRUE);
}

static void test_names(void **state)
{
    g_autofree char *long_name = g_strnfill(249, 'x'), *longer = g_strnfill(250, 'x');
    g_autofree char *long_path = g_strconcat("/brokers/topics/", long_name, NULL);
    g_autofree char *longer_path = g_strconcat("/brokers/topics/", longer, NULL);
    const char *good[] = {TOPIC, "/brokers/topics/__consumer_offsets", "/brokers/topics/a.b-c_d", long_path,
            "/brokers/topics/t/partitions/10", "/brokers/ids/0", "/config/brokers/<default>", "/config/brokers/12",
            "/config/users/<default>", "/config/changes/config_change_0000000042", "/notes/any name",
            "/isr_change_notification/isr_change_7"};
    const char *bad[] = {"/brokers/topics/a b", "/brokers/topics/é", longer_path, "/admin/delete_topics/a*b",
            "/config/topics/x~", "/brokers/topics/t/partitions/one", "/brokers/topics/t/partitions/00",
            "/brokers/topics/t/partitions/-1", "/brokers/topics/t/partitions/2147483648", "/brokers/ids/two",
            "/config/brokers/x", "/config/changes/foo", "/config/changes/config_change_x",
            "/log_dir_event_notification/isr_change_1"};
    for (size_t i = 0; i < G_N_ELEMENTS(good); i++) {
        char *why = NULL;
        if (schema_check_name(good[i], &why) != 0)
            fail_msg("%s: %s", good[i], why);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        char *why = NULL;
        if (schema_check_name(bad[i], &why) != EINVAL || !strstr(why, "is not possible here: "))
            fail_msg("%s", bad[i]);
        g_free(why);
    }
}

/* ---- key=value lines ---- */

static void assert_stored(const char *path, const char *text, const char *want)
{
    struct bytes *value = bytes_from_string(text), *stored;
    char *why = NULL;
    if (config_text_whole(path, value, &stored, &why) != 0)
        fail_msg("%s: %s", text, why);
    assert_string_equal(stored->data, want);
    bytes_unref(stored);
    bytes_unref(value);
}

static void test_lines(void **state)
{
    assert_stored(CONFIG, "retention.ms=60000\n", "{\"version\":1,\"config\":{\"retention.ms\":\"60000\"}}");
    assert_stored(CONFIG, "# mine\n\n b = x = y \r\na=1", "{\"version\":1,\"config\":{\"a\":\"1\",\"b\":\"x = y\"}}");
    assert_stored(CONFIG, "a=1\nb=\n", "{\"version\":1,\"config\":{\"a\":\"1\"}}");
    assert_stored(CONFIG, "a=\"\\\n", "{\"version\":1,\"config\":{\"a\":\"\\\"\\\\\"}}");
    assert_stored(CONFIG, "#\n", "{\"version\":1,\"config\":{}}");
}

static void test_check_line(void **state)
{
    static const char before[] = "ab=1\n# c=1\n d = 2\nx=c=3\n";
    static const struct {
        const char *line;
        int err;
    } lines[] = {{"a=1\n", 0}, {"b=1", 0}, {"ab=2\n", EINVAL}, {"c=1\n", 0}, {"d=5", EINVAL}, {"# any\n", 0}, {"\n", 0},
            {"nothing\n", EINVAL}, {"k=\n", 0}, {"retention.ms=abc\n", EINVAL}, {"retention.ms=1\n", 0}};
    for (size_t i = 0; i < G_N_ELEMENTS(lines); i++) {
        char *why = NULL;
        int err = config_text_check_line(CONFIG, before, strlen(before), lines[i].line, strlen(lines[i].line), &why);
        if (err != lines[i].err)
            fail_msg("%s: %d %s", lines[i].line, err, why);
        g_free(why);
    }
}

static void assert_applied(const char *stored, const char *line, const char *want)
{
    struct bytes *old = stored ? bytes_from_string(stored) : NULL, *text = bytes_from_string(line), *result;
    char *why = NULL;
    if (config_text_apply_line(CONFIG, old, text, &result, &why) != 0)
        fail_msg("%s: %s", line, why);
    if (want)
        assert_string_equal(result->data, want);
    else
        assert_null(result);
    bytes_unref(result);
    bytes_unref(text);
    bytes_unref(old);
}

static void test_apply_line(void **state)
{
    assert_applied(NULL, "a=1\n", "{\"version\":1,\"config\":{\"a\":\"1\"}}");
    assert_applied("", "a=1\n", "{\"version\":1,\"config\":{\"a\":\"1\"}}");
    assert_applied("{}", "a=1\n", "{\"config\":{\"a\":\"1\"}}");
    assert_applied("{\"version\":1,\"config\":{\"b\":\"2\",\"c\":\"3\"},\"n\":12345678901234567890}", "b=4\n",
            "{\"version\":1,\"config\":{\"b\":\"4\",\"c\":\"3\"},\"n\":12345678901234567890}");
    assert_applied(
            "{\"version\":1,\"config\":{\"b\":\"2\",\"c\":\"3\"}}", "b=\n", "{\"version\":1,\"config\":{\"c\":\"3\"}}");
    assert_applied("{\"version\":1,\"config\":{\"c\":\"3\"}}", "b=\n", NULL);
    assert_applied("{\"version\":1,\"config\":{\"c\":\"3\"}}", "# b\n", NULL);
    /* another key that is bad already does not stand in the way */
    assert_applied(
            "{\"config\":{\"retention.ms\":\"abc\"}}", "b=1\n", "{\"config\":{\"retention.ms\":\"abc\",\"b\":\"1\"}}");

    struct bytes *old = bytes_from_string("rubbish"), *line = bytes_from_string("a=1\n"), *result;
    char *why = NULL;
    assert_int_equal(config_text_apply_line(CONFIG, old, line, &result, &why), EINVAL);
    assert_non_null(strstr(why, "write it whole"));
    g_free(why);
    bytes_unref(old);
    bytes_unref(line);
}

static void test_entities(void **state)
{
    static const char *const paths[][3] = {{"/config/topics/t", "topics", "t"}, {"/config/users/u", "users", "u"},
            {"/config/users/u/clients/c", "users", "u/clients/c"}, {"/config/topics", NULL, NULL}, {"/x", NULL, NULL}};
    for (size_t i = 0; i < G_N_ELEMENTS(paths); i++) {
        g_autofree char *kind = NULL, *entity = NULL;
        assert_int_equal(config_entity_of_path(paths[i][0], &kind, &entity), paths[i][1] != NULL);
        assert_int_equal(g_strcmp0(kind, paths[i][1]), 0);
        assert_int_equal(g_strcmp0(entity, paths[i][2]), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_shapes),
            cmocka_unit_test(test_good_values),
            cmocka_unit_test(test_bad_values),
            cmocka_unit_test(test_bad_json),
            cmocka_unit_test(test_secrets),
            cmocka_unit_test(test_size),
            cmocka_unit_test(test_not_quadratic),
            cmocka_unit_test(test_names),
            cmocka_unit_test(test_lines),
            cmocka_unit_test(test_check_line),
            cmocka_unit_test(test_apply_line),
            cmocka_unit_test(test_entities),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
