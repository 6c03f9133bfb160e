/* The codecs of every other znode (test_codec_topics.c): Kafka's own values in, the same bytes out, and a reason for
 * everything else. */
#include "tests/unit/codec_fixture.h"

/* ---- brokers ---- */

#define BROKER5                                                                                                        \
    "{\"features\":{},\"listener_security_protocol_map\":{\"INTERNAL\":\"SSL\",\"EXTERNAL\":\"PLAINTEXT\"},"           \
    "\"endpoints\":[\"INTERNAL://[::1]:9093\",\"EXTERNAL://h:9092\"],\"rack\":\"r\\\"1\",\"jmx_port\":-1,"             \
    "\"port\":9092,\"host\":\"h\",\"version\":5,\"timestamp\":\"1736198272985\"}"

static struct broker_registration *decode_broker(const char *text)
{
    struct broker_registration *b = NULL;
    char *why = NULL;
    if (!broker_registration_decode(data(text), &b, &why))
        fail_msg("%s: %s", text, why);
    return b;
}

static void test_broker(void **state)
{
    struct broker_registration *b = decode_broker(BROKER5);
    assert_int_equal(b->version, 5);
    assert_int_equal(b->n_endpoints, 2);
    assert_string_equal(b->endpoints[0].listener, "INTERNAL");
    assert_string_equal(b->endpoints[0].host, "::1");
    assert_string_equal(b->endpoints[0].security_protocol, "SSL");
    assert_int_equal(b->endpoints[0].port, 9093);
    assert_string_equal(b->rack, "r\"1");
    assert_true(b->timestamp_ms == 1736198272985);
    assert_encodes(broker_registration_encode(b), BROKER5);
    b->version = 4;
    b->rack = (g_free(b->rack), NULL);
    assert_encodes(broker_registration_encode(b),
            "{\"listener_security_protocol_map\":{\"INTERNAL\":\"SSL\",\"EXTERNAL\":\"PLAINTEXT\"},\"endpoints\":["
            "\"INTERNAL://[::1]:9093\",\"EXTERNAL://"
            "h:9092\"],\"jmx_port\":-1,\"port\":9092,\"host\":\"h\",\"version\":4,"
            "\"timestamp\":\"1736198272985\"}");
    broker_registration_free(b);
    assert_null(broker_registration_free(NULL));
}

static void test_broker_old_versions(void **state)
{
    struct broker_registration *b =
            decode_broker("{\"version\":1,\"host\":\"old\",\"port\":9092,\"jmx_port\":9999,\"timestamp\":\"5\"}");
    assert_int_equal(b->n_endpoints, 1);
    assert_string_equal(b->endpoints[0].host, "old");
    assert_string_equal(b->endpoints[0].security_protocol, "PLAINTEXT");
    assert_int_equal(b->jmx_port, 9999);
    broker_registration_free(b);

    /* without a map the listener's name is the protocol; without one in plain text there is no host */
    b = decode_broker("{\"version\":2,\"host\":null,\"port\":-1,\"jmx_port\":-1,\"timestamp\":\"5\",\"endpoints\":["
                      "\"SSL://h:1\"]}");
    assert_string_equal(b->endpoints[0].security_protocol, "SSL");
    assert_encodes(broker_registration_encode(b),
            "{\"endpoints\":[\"SSL://"
            "h:1\"],\"jmx_port\":-1,\"port\":-1,\"host\":null,\"version\":2,\"timestamp\":\"5\"}");
    broker_registration_free(b);

    b = decode_broker("{\"version\":9,\"endpoints\":[],\"rack\":null,\"features\":{\"f\":{\"min_version\":1}}}");
    assert_int_equal(b->version, 9); /* lenient on versions to come (KAFKA-3100) */
    assert_int_equal(b->jmx_port, -1);
    assert_null(b->rack);
    broker_registration_free(b);
}

static void test_broker_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
            {"{\"version\":0}", "\"version\" 0 is below 1"},
            {"{\"version\":1,\"host\":7,\"port\":1}", "\"host\" is not a string"},
            {"{\"version\":5}", "\"endpoints\" is missing"},
            {"{\"version\":5,\"endpoints\":[7]}", "\"endpoints\": entry 1 is not LISTENER://host:port"},
            {"{\"version\":5,\"endpoints\":[\"A://h:1\",\"h:9092\"]}",
                    "\"endpoints\": entry 2 is not LISTENER://host:port"},
            {"{\"version\":5,\"endpoints\":[\"A://h\"]}", "\"endpoints\": entry 1 is not LISTENER://host:port"},
            {"{\"version\":5,\"endpoints\":[\"A://[::1:7\"]}", "\"endpoints\": entry 1 is not LISTENER://host:port"},
            {"{\"version\":5,\"endpoints\":[\"A://h:70000\"]}", "\"endpoints\": entry 1 is not LISTENER://host:port"},
            {"{\"version\":5,\"endpoints\":[\"A://h:1\"],\"listener_security_protocol_map\":{\"B\":\"SSL\"}}",
                    "\"listener_security_protocol_map\" does not name A"},
            {"{\"version\":5,\"endpoints\":[],\"timestamp\":\"x\"}", "\"timestamp\" is not a number in quotes"},
            {"{\"version\":5,\"endpoints\":[],\"rack\":7}", "\"rack\" is not a string"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        struct broker_registration *b = NULL;
        char *why = NULL;
        assert_reason(broker_registration_decode(data(bad[i].text), &b, &why), &why, bad[i].why);
        assert_null(b);
    }
}

/* ---- controller, epoch, cluster id, ids, feature ---- */

static void test_controller(void **state)
{
    int32_t id = 77, epoch = 77;
    char *why = NULL;
    assert_encodes(controller_znode_encode(1, 1719917952299),
            "{\"version\":2,\"brokerid\":1,\"timestamp\":\"1719917952299\",\"kraftControllerEpoch\":-1}");
    assert_true(controller_znode_decode(data("{\"version\":1,\"brokerid\":4,\"timestamp\":\"1\"}"), &id, NULL));
    assert_int_equal(id, 4);
    assert_reason(controller_znode_decode(data("{\"version\":1}"), &id, &why), &why, "\"brokerid\" is missing");

    assert_encodes(controller_epoch_encode(0), "0");
    assert_encodes(controller_epoch_encode(INT32_MAX), "2147483647");
    assert_true(controller_epoch_decode(data("42"), &epoch, NULL));
    assert_int_equal(epoch, 42);
    static const char *const bad[] = {"-1", "4 2", "42\n", "x", "2147483648", "99999999999999999999", "1.0", "+1"};
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        why = NULL;
        assert_reason(controller_epoch_decode(data(bad[i]), &epoch, &why), &why, "not a number from 0 to 2147483647");
    }
    assert_reason(controller_epoch_decode(NULL, &epoch, &why), &why, "no data");
    assert_int_equal(epoch, 42);
}

static void test_cluster_id(void **state)
{
    char *id = NULL, *why = NULL;
    assert_encodes(
            cluster_id_encode("Sfr7YvlkRHSHrmSrwq9mug"), "{\"version\":\"1\",\"id\":\"Sfr7YvlkRHSHrmSrwq9mug\"}");
    assert_true(cluster_id_decode(data("{\"version\":\"1\",\"id\":\"abc\"}"), &id, NULL));
    assert_string_equal(id, "abc");
    g_free(id);
    id = NULL;
    assert_reason(cluster_id_decode(data("{\"id\":\"\"}"), &id, &why), &why, "\"id\" is empty");
    assert_reason(cluster_id_decode(data("{\"id\":7}"), &id, &why), &why, "\"id\" is not a string");
    assert_null(id);
}

static uint32_t scripted(void *arg)
{
    uint32_t **next = arg;
    return *(*next)++;
}

static void test_uuid(void **state)
{
    char text[23];
    /* bytes 0xF8.. would start with '-': rolled again */
    uint32_t words[] = {0xFFFFFFF8, 0, 0, 0, 0x03020100, 0x07060504, 0x0B0A0908, 0x0F0E0D0C}, *next = words;
    uuid_generate(scripted, &next, text);
    assert_int_equal(next - words, 8);
    assert_string_equal(text, "AAECAwQFRgeICQoLDA0ODw"); /* 00010203-0405-4607-8809-0a0b0c0d0e0f */
    assert_true(uuid_valid(text));
    assert_false(uuid_valid("AAECAwQFRgeICQoLDA0OD"));
    assert_false(uuid_valid("AAECAwQFRgeICQoLDA0ODww"));
    assert_false(uuid_valid("AAECAwQFRgeICQoLDA0OD="));
    assert_false(uuid_valid(""));
}

static void test_feature_and_producer_ids(void **state)
{
    int version = 0, status = 0;
    int64_t start = 77, end = 77;
    char *why = NULL;
    assert_encodes(feature_encode(2, 1), "{\"features\":{},\"version\":2,\"status\":1}");
    assert_true(feature_decode(data("{\"version\":1,\"status\":0,\"features\":{}}"), &version, &status, NULL));
    assert_int_equal(version, 1);
    assert_int_equal(status, 0);
    assert_reason(feature_decode(data("{\"version\":3,\"status\":0}"), &version, &status, &why), &why,
            "\"version\" 3 is neither 1 nor 2");
    assert_reason(feature_decode(data("{\"version\":2,\"status\":2}"), &version, &status, &why), &why,
            "\"status\" 2 is neither 0 nor 1");

    /* exact beyond what a double holds */
    assert_encodes(producer_id_block_encode(1, 9007199254740993, 9223372036854775807),
            "{\"version\":1,\"broker\":1,\"block_start\":\"9007199254740993\",\"block_end\":\"9223372036854775807\"}");
    assert_true(producer_id_block_decode(data("{\"version\":1,\"broker\":1,\"block_start\":\"9007199254740993\","
                                              "\"block_end\":\"9007199254741992\"}"),
            &start, &end, NULL));
    assert_true(start == 9007199254740993 && end == 9007199254741992);
    assert_reason(producer_id_block_decode(data("{\"block_start\":0,\"block_end\":\"1\"}"), &start, &end, &why), &why,
            "\"block_start\" is not a string");
    assert_reason(producer_id_block_decode(data("{\"block_start\":\"9\",\"block_end\":\"1\"}"), &start, &end, &why),
            &why, "\"block_start\" is above \"block_end\"");
    assert_reason(producer_id_block_decode(
                          data("{\"block_start\":\"0\",\"block_end\":\"9223372036854775808\"}"), &start, &end, &why),
            &why, "\"block_end\" is not a number from 0 to 9223372036854775807");
    assert_true(start == 9007199254740993);
    assert_true(producer_id_block_next(NULL, 1000, &start, NULL) && start == 0);
    assert_true(producer_id_block_next(
            data("{\"block_start\":\"0\",\"block_end\":\"9223372036854774806\"}"), 1000, &start, NULL));
    assert_true(start == INT64_MAX - 1000);
    assert_reason(producer_id_block_next(
                          data("{\"block_start\":\"0\",\"block_end\":\"9223372036854774807\"}"), 1000, &start, &why),
            &why, "all producer ids have been given out");
}

/* ---- configuration ---- */

static void test_config(void **state)
{
    GHashTable *config = NULL;
    char *why = NULL, *path = NULL;
    assert_true(config_entity_decode(
            data("{\"version\":1,\"config\":{\"b\":\"2\",\"a\":\"x\\\"\\n\\u0001/\"}}"), &config, NULL));
    assert_int_equal(g_hash_table_size(config), 2);
    assert_string_equal(g_hash_table_lookup(config, "a"), "x\"\n\001/");
    assert_encodes(config_entity_encode(config), "{\"version\":1,\"config\":{\"a\":\"x\\\"\\n\\u0001/\",\"b\":\"2\"}}");
    g_hash_table_unref(config);
    assert_true(config_entity_decode(data("{\"version\":1}"), &config, NULL)); /* Kafka: reads as empty */
    assert_int_equal(g_hash_table_size(config), 0);
    assert_encodes(config_entity_encode(config), "{\"version\":1,\"config\":{}}");
    g_hash_table_unref(config);
    assert_true(config_entity_decode(data("{\"config\":[]}"), &config, NULL));
    g_hash_table_unref(config);
    assert_reason(config_entity_decode(data("{\"config\":{\"retention.ms\":1}}"), &config, &why), &why,
            "\"config\": the value of \"retention.ms\" is not a string");

    assert_true(config_change_decode(data("{\"version\":2,\"entity_path\":\"users/u/clients/c\"}"), &path, NULL));
    assert_string_equal(path, "users/u/clients/c");
    g_free(path);
    assert_true(config_change_decode(
            data("{\"version\":1,\"entity_type\":\"topics\",\"entity_name\":\"x\"}"), &path, NULL));
    assert_string_equal(path, "topics/x");
    g_free(path);
    path = NULL;
    static const struct {
        const char *text, *why;
    } bad[] = {
            {"x", "line 1, column 1: a value is expected, not 'x'"},
            {"{\"entity_path\":\"topics/x\"}", "\"version\" is missing"},
            {"{\"version\":3,\"entity_path\":\"topics/x\"}", "\"version\" 3 is neither 1 nor 2"},
            {"{\"version\":2,\"entity_path\":\"topics\"}", "\"entity_path\" is not <type>/<name>"},
            {"{\"version\":2}", "\"entity_path\" is missing"},
            {"{\"version\":1,\"entity_type\":\"topics\"}", "\"entity_name\" is missing"},
            {"{\"version\":1,\"entity_type\":\"users\",\"entity_name\":\"u\"}",
                    "\"entity_type\" of version 1 is topics or clients, not \"users\""},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++)
        assert_reason(config_change_decode(data(bad[i].text), &path, &why), &why, bad[i].why);
    assert_null(path);
}

/* ---- admin ---- */

static void test_reassignment(void **state)
{
    GArray *entries = NULL;
    const char *text = "{\"version\":1,\"partitions\":[{\"topic\":\"a\",\"partition\":1,\"replicas\":[3,1]},"
                       "{\"topic\":\"b\",\"partition\":0,\"replicas\":[2]}]}";
    assert_true(reassignment_decode(data(text), &entries, NULL, NULL));
    assert_int_equal(entries->len, 2);
    struct reassignment_entry *e = &g_array_index(entries, struct reassignment_entry, 0);
    assert_string_equal(e->topic, "a");
    assert_int_equal(e->partition, 1);
    assert_ids(e->replicas, IDS(3, 1));
    assert_null(e->why);
    assert_encodes(reassignment_encode(entries, NULL), text);
    assert_encodes(partition_list_encode(entries),
            "{\"version\":1,\"partitions\":[{\"topic\":\"a\",\"partition\":1},{\"topic\":\"b\",\"partition\":0}]}");
    g_array_unref(entries);
}

/* What a tool wrote beside Kafka's own fields is there when the file is rewritten. */
static void test_reassignment_unknown_fields(void **state)
{
    GArray *entries = NULL;
    g_autofree char *unknown = NULL;
    const char *text = "{\"version\":1,\"partitions\":[{\"topic\":\"a\",\"partition\":1,\"replicas\":[3],"
                       "\"log_dirs\":[\"any\"]},{\"topic\":\"b\",\"partition\":0,\"replicas\":[2]}],"
                       "\"by \\\"me\\\"\":{\"at\":1796051456141,\"x\":[]},\"none\":null}";
    assert_true(reassignment_decode(data(text), &entries, &unknown, NULL));
    assert_encodes(reassignment_encode(entries, unknown), text);
    g_array_remove_index(entries, 0);
    assert_encodes(reassignment_encode(entries, NULL),
            "{\"version\":1,\"partitions\":[{\"topic\":\"b\",\"partition\":0,\"replicas\":[2]}]}");
    g_array_unref(entries);
}

static void test_reassignment_verdicts(void **state)
{
    static const struct {
        const char *entry, *why;
    } cases[] = {
            {"{\"topic\":\"a\",\"partition\":0,\"replicas\":[]}", "the list of replicas is empty"},
            {"{\"topic\":\"a\",\"partition\":0,\"replicas\":[1,2,1]}", "broker 1 is there twice"},
            {"{\"topic\":\"a\",\"partition\":0,\"replicas\":[1,-2]}", "-2 is not a broker id"},
            {"{\"topic\":\"a\",\"partition\":-1,\"replicas\":[1]}", "a partition number must not be negative"},
            {"{\"topic\":\"\",\"partition\":0,\"replicas\":[1]}", "a topic name must not be empty"},
            {"{\"topic\":\"a\",\"partition\":0,\"replicas\":[1],\"log_dirs\":[\"any\"]}", NULL},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        GArray *entries = NULL;
        g_autofree char *text = g_strdup_printf(
                "{\"partitions\":[%s,{\"topic\":\"ok\",\"partition\":0,\"replicas\":[1]}]}", cases[i].entry);
        assert_true(reassignment_decode(data(text), &entries, NULL, NULL));
        const char *why = g_array_index(entries, struct reassignment_entry, 0).why;
        assert_int_equal(g_strcmp0(why, cases[i].why), 0);
        assert_null(g_array_index(entries, struct reassignment_entry, 1).why);
        g_array_unref(entries);
    }
    static const struct {
        const char *text, *why;
    } bad[] = {
            {"not json", "line 1, column 1: a value is expected, not 'n'"},
            {"{\"version\":1}", "\"partitions\" is missing"},
            {"{\"partitions\":{}}", "\"partitions\" is not a list"},
            {"{\"partitions\":[7]}", "\"partitions\": entry 1: it is not an object"},
            {"{\"partitions\":[{\"topic\":\"a\",\"partition\":0,\"replicas\":[1]},{\"topic\":7}]}",
                    "\"partitions\": entry 2: \"topic\" is not a string"},
            {"{\"partitions\":[{\"topic\":\"a\",\"partition\":\"0\",\"replicas\":[1]}]}",
                    "\"partitions\": entry 1: \"partition\" is not a 32-bit integer"},
            {"{\"partitions\":[{\"topic\":\"a\",\"partition\":0}]}",
                    "\"partitions\": entry 1: \"replicas\" is missing"},
            {"{\"partitions\":[{\"topic\":\"a\",\"partition\":0,\"replicas\":[\"1\"]}]}",
                    "\"partitions\": entry 1: \"replicas\": entry 1 is not a broker id"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        GArray *entries = NULL;
        char *why = NULL;
        assert_reason(reassignment_decode(data(bad[i].text), &entries, NULL, &why), &why, bad[i].why);
        assert_null(entries);
        assert_false(reassignment_decode(data(bad[i].text), &entries, NULL, NULL));
    }
}

static void test_partition_list_and_log_dir(void **state)
{
    GArray *entries = NULL;
    int32_t id = 77;
    char *why = NULL;
    assert_true(partition_list_decode(
            data("{\"version\":1,\"partitions\":[{\"topic\":\"a\",\"partition\":0}]}"), &entries, NULL));
    assert_null(g_array_index(entries, struct reassignment_entry, 0).replicas);
    g_array_unref(entries);

    assert_encodes(log_dir_event_encode(3), "{\"version\":1,\"broker\":3,\"event\":1}");
    assert_true(log_dir_event_decode(data("{\"version\":1,\"broker\":3,\"event\":1}"), &id, NULL));
    assert_int_equal(id, 3);
    assert_reason(
            log_dir_event_decode(data("{\"broker\":\"3\"}"), &id, &why), &why, "\"broker\" is not a 32-bit integer");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(test_broker, setup, teardown),
            cmocka_unit_test_setup_teardown(test_broker_old_versions, setup, teardown),
            cmocka_unit_test_setup_teardown(test_broker_refused, setup, teardown),
            cmocka_unit_test_setup_teardown(test_controller, setup, teardown),
            cmocka_unit_test_setup_teardown(test_cluster_id, setup, teardown),
            cmocka_unit_test_setup_teardown(test_uuid, setup, teardown),
            cmocka_unit_test_setup_teardown(test_feature_and_producer_ids, setup, teardown),
            cmocka_unit_test_setup_teardown(test_config, setup, teardown),
            cmocka_unit_test_setup_teardown(test_reassignment, setup, teardown),
            cmocka_unit_test_setup_teardown(test_reassignment_unknown_fields, setup, teardown),
            cmocka_unit_test_setup_teardown(test_reassignment_verdicts, setup, teardown),
            cmocka_unit_test_setup_teardown(test_partition_list_and_log_dir, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
