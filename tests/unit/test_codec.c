/* The codecs of every znode: Kafka's own values in, the same bytes out, and a reason for everything else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <time.h>
#include "controller/json/codec.h"

/* Text as data; freed with the test's pool. */
static GPtrArray *pool;
static struct bytes *data(const char *text)
{
    struct bytes *b = bytes_from_string(text);
    g_ptr_array_add(pool, b);
    return b;
}

static void unref_bytes(gpointer b)
{
    bytes_unref(b);
}

static int setup(void **state)
{
    pool = g_ptr_array_new_with_free_func(unref_bytes);
    return 0;
}

static int teardown(void **state)
{
    g_ptr_array_unref(pool);
    return 0;
}

static void assert_encodes(struct bytes *encoded, const char *expected)
{
    assert_string_equal(encoded->data, expected);
    assert_int_equal(encoded->len, strlen(expected));
    bytes_unref(encoded);
}

static void assert_reason(bool decoded, char **why, const char *expected)
{
    assert_false(decoded);
    assert_non_null(*why);
    assert_string_equal(*why, expected);
    *why = (g_free(*why), NULL);
}

static void assert_ids(const struct broker_ids *ids, size_t n, const int32_t *expected)
{
    assert_int_equal(ids->n, n);
    assert_memory_equal(ids->id, expected, n * sizeof(*expected));
}
#define IDS(...)                                                                                                       \
    G_N_ELEMENTS(((int32_t[]){__VA_ARGS__})), (int32_t[])                                                              \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

/* ---- partition state ---- */

#define STATE "{\"controller_epoch\":3,\"leader\":2,\"version\":1,\"leader_epoch\":7,\"isr\":[2,1]}"

static void assert_state(const char *text)
{
    struct leader_and_isr l;
    char *why = NULL;
    if (!leader_and_isr_decode(data(text), &l, &why))
        fail_msg("%s: %s", text, why);
    assert_int_equal(l.leader, 2);
    assert_int_equal(l.leader_epoch, 7);
    assert_int_equal(l.controller_epoch, 3);
    assert_ids(l.isr, IDS(2, 1));
    assert_int_equal(l.leader_recovery_state, 0);
    leader_and_isr_clear(&l);
    assert_null(l.isr);
}

static void test_partition_state(void **state)
{
    assert_state(STATE);
    assert_state("{\"version\":1,\"leader\":2,\"leader_epoch\":7,\"controller_epoch\":3,\"isr\":[2,1]}");
    assert_state(" { \"leader\" : 2, \"isr\":[2, 1],\"leader_epoch\":7,\"controller_epoch\":3 }\n");
    assert_state("{\"leader\":2,\"isr\":[2,1],\"leader_epoch\":7,\"controller_epoch\":3,\"future\":{\"x\":[]}}");
    assert_state("{\"leader\":2,\"isr\":[2,1],\"leader_epoch\":7,\"controller_epoch\":3,\"leader_recovery_state\":0}");

    struct leader_and_isr l = {.leader = 2, .leader_epoch = 7, .controller_epoch = 3};
    l.isr = broker_ids_new((int32_t[]){2, 1}, 2);
    assert_encodes(leader_and_isr_encode(&l), STATE);
    l.leader = LEADER_NONE;
    l.leader_recovery_state = 1;
    struct bytes *encoded = leader_and_isr_encode(&l);
    leader_and_isr_clear(&l);
    assert_true(leader_and_isr_decode(encoded, &l, NULL));
    assert_int_equal(l.leader, LEADER_NONE);
    assert_int_equal(l.leader_recovery_state, 1);
    leader_and_isr_clear(&l);
    bytes_unref(encoded);
}

static void test_partition_state_long_isr(void **state)
{
    struct leader_and_isr l = {0}, again;
    int32_t ids[200];
    for (int32_t i = 0; i < 200; i++)
        ids[i] = i - 100;
    l.isr = broker_ids_new(ids, 200);
    struct bytes *encoded = leader_and_isr_encode(&l);
    assert_true(leader_and_isr_decode(encoded, &again, NULL));
    assert_true(broker_ids_equal(l.isr, again.isr));
    leader_and_isr_clear(&l);
    leader_and_isr_clear(&again);
    bytes_unref(encoded);
}

static void test_partition_state_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
            {"", "empty data"},
            {"[]", "not a JSON object"},
            {"{}", "\"leader\" is missing"},
            {"{\"leader\":\"2\",\"leader_epoch\":7,\"controller_epoch\":3,\"isr\":[2,1]}",
                    "\"leader\" is not a 32-bit integer"},
            {"{\"leader\":2.0,\"leader_epoch\":7,\"controller_epoch\":3,\"isr\":[2,1]}",
                    "\"leader\" is not a 32-bit integer"},
            {"{\"leader\":2,\"leader_epoch\":2147483648,\"controller_epoch\":3,\"isr\":[]}",
                    "\"leader_epoch\" is not a 32-bit integer"},
            {"{\"leader\":2,\"leader_epoch\":7,\"isr\":[2,1]}", "\"controller_epoch\" is missing"},
            {"{\"leader\":2,\"leader_epoch\":7,\"controller_epoch\":3}", "\"isr\" is missing"},
            {"{\"leader\":2,\"leader_epoch\":7,\"controller_epoch\":3,\"isr\":2}",
                    "\"isr\" is not a list of broker ids"},
            {"{\"leader\":2,\"leader_epoch\":7,\"controller_epoch\":3,\"isr\":[1,null]}",
                    "\"isr\": entry 2 is not a broker id"},
            {"{\"leader\":2,\"leader\":2,\"leader_epoch\":7,\"controller_epoch\":3,\"isr\":[]}",
                    "line 1, column 13: duplicate key \"leader\""},
            {STATE "x", "line 1, column 75: something follows the value"},
            {"{\"leader\":02,\"leader_epoch\":7,\"controller_epoch\":3,\"isr\":[]}",
                    "line 1, column 11: a number with a leading zero"},
            {"{\"leader\":2,\"leader_epoch\":7,\"controller_epoch\":3,\"isr\":[],\"leader_recovery_state\":2}",
                    "\"leader_recovery_state\" is neither 0 nor 1"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        struct leader_and_isr l = {.leader = 77};
        char *why = NULL;
        assert_reason(leader_and_isr_decode(data(bad[i].text), &l, &why), &why, bad[i].why);
        assert_int_equal(l.leader, 77);
        assert_false(leader_and_isr_decode(data(bad[i].text), &l, NULL));
    }
    char *why = NULL;
    assert_reason(leader_and_isr_decode(NULL, &(struct leader_and_isr){0}, &why), &why, "no data");
}

/* ---- topic assignment ---- */

#define TOPIC                                                                                                          \
    "{\"removing_replicas\":{\"1\":[2]},\"partitions\":{\"0\":[1,2],\"1\":[3,2],\"10\":[2]},\"topic_id\":"             \
    "\"f0hHMZfeRIuE4XM1e6K_vQ\",\"adding_replicas\":{\"1\":[3]},\"version\":3}"

static void assert_topic(const char *text)
{
    struct topic_assignment *a = NULL;
    char *why = NULL;
    if (!topic_assignment_decode(data(text), &a, &why))
        fail_msg("%s: %s", text, why);
    assert_int_equal(a->version, 3);
    assert_string_equal(a->topic_id, "f0hHMZfeRIuE4XM1e6K_vQ");
    assert_int_equal(a->partitions->len, 3);
    assert_ids(topic_assignment_find(a, 0)->replicas, IDS(1, 2));
    assert_int_equal(topic_assignment_find(a, 0)->adding->n, 0);
    assert_ids(topic_assignment_find(a, 1)->adding, IDS(3));
    assert_ids(topic_assignment_find(a, 1)->removing, IDS(2));
    assert_ids(topic_assignment_find(a, 10)->replicas, IDS(2));
    assert_null(topic_assignment_find(a, 2));
    assert_null(topic_assignment_find(a, 11));
    assert_encodes(topic_assignment_encode(a), TOPIC);
    topic_assignment_free(a);
}

static void test_topic(void **state)
{
    assert_topic(TOPIC);
    /* any order, white space, unknown keys, adding ones of a partition that is not there */
    assert_topic("{\"version\":3,\"partitions\":{\"10\":[2],\"1\":[3,2],\"0\":[1,2]},\"adding_replicas\":{\"5\":[9],"
                 "\"1\":[3]},"
                 "\"removing_replicas\":{\"1\":[2]},\"topic_id\":\"f0hHMZfeRIuE4XM1e6K_vQ\"}");
    assert_topic("{\"x\":1, "
                 "\"version\":3,\"partitions\":{\"10\":[2],\"1\":[3,2],\"0\":[1,2]},\"adding_replicas\":{\"1\":[3]},"
                 "\"removing_replicas\":{\"1\":[2]},\"topic_id\":\"f0hHMZfeRIuE4XM1e6K_vQ\"}\n");
}

static void assert_topic_same(const char *text)
{
    struct topic_assignment *a = NULL;
    assert_true(topic_assignment_decode(data(text), &a, NULL));
    assert_encodes(topic_assignment_encode(a), text);
    topic_assignment_free(a);
}

static void test_topic_versions(void **state)
{
    assert_topic_same("{\"version\":1,\"partitions\":{\"0\":[1,2],\"1\":[2,3]}}");
    assert_topic_same(
            "{\"version\":2,\"partitions\":{\"0\":[1]},\"adding_replicas\":{},\"removing_replicas\":{\"0\":[1]}}");
    assert_topic_same("{\"removing_replicas\":{},\"partitions\":{},\"adding_replicas\":{},\"version\":3}");

    struct topic_assignment *a = NULL; /* by shape, if the version is missing */
    assert_true(topic_assignment_decode(data("{\"partitions\":{},\"adding_replicas\":{}}"), &a, NULL));
    assert_int_equal(a->version, 2);
    topic_assignment_free(a);
    assert_true(topic_assignment_decode(data("{}"), &a, NULL)); /* Kafka: a topic without partitions */
    assert_int_equal(a->version, 1);
    assert_int_equal(a->partitions->len, 0);
    topic_assignment_free(a);
    assert_true(topic_assignment_decode(data("{\"topic_id\":\"AAAAAAAAAAAAAAAAAAAAAA\"}"), &a, NULL));
    assert_string_equal(a->topic_id, "");
    topic_assignment_free(a);
}

static void test_topic_add(void **state)
{
    struct topic_assignment *a = topic_assignment_new();
    topic_assignment_add(a, 2, broker_ids_new((int32_t[]){1}, 1), NULL, NULL);
    topic_assignment_add(a, 0, broker_ids_new((int32_t[]){2}, 1), NULL, NULL);
    topic_assignment_add(a, 1, NULL, broker_ids_new((int32_t[]){4}, 1), NULL);
    g_strlcpy(a->topic_id, "f0hHMZfeRIuE4XM1e6K_vQ", sizeof(a->topic_id));
    a->version = 1; /* a topic id needs version 3 */
    assert_encodes(topic_assignment_encode(a), "{\"removing_replicas\":{},\"partitions\":{\"0\":[2],\"1\":[],\"2\":[1]}"
                                               ",\"topic_id\":\"f0hHMZfeRIuE4XM1e6K_vQ\","
                                               "\"adding_replicas\":{\"1\":[4]},\"version\":3}");
    topic_assignment_free(a);
    assert_null(topic_assignment_free(NULL));
}

static void test_topic_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
            {"", "empty data"},
            {"7", "not a JSON object"},
            {"{\"partitions\":[]}", "\"partitions\" is not an object"},
            {"{\"partitions\":null}", "\"partitions\" is not an object"},
            {"{\"partitions\":{\"x\":[1]}}", "\"partitions\": \"x\" is not a partition number"},
            {"{\"partitions\":{\"-1\":[1]}}", "\"partitions\": \"-1\" is not a partition number"},
            {"{\"partitions\":{\"00\":[1]}}", "\"partitions\": \"00\" is not a partition number"},
            {"{\"partitions\":{\"2147483648\":[1]}}", "\"partitions\": \"2147483648\" is not a partition number"},
            {"{\"partitions\":{\"0\":1}}", "\"partitions\": \"0\" is not a list of broker ids"},
            {"{\"partitions\":{\"0\":[1,\"2\"]}}", "\"partitions\": \"0\": entry 2 is not a broker id"},
            {"{\"partitions\":{\"0\":[1],\"0\":[1]}}", "line 1, column 24: duplicate key \"0\""},
            {"{\"partitions\":{},\"partitions\":{}}", "line 1, column 18: duplicate key \"partitions\""},
            {"{\"partitions\":{},\"topic_id\":\"short\"}", "\"topic_id\" is not 22 characters of URL-safe base64"},
            {"{\"partitions\":{},\"topic_id\":\"f0hHMZfeRIuE4XM1e6K+vQ\"}",
                    "\"topic_id\" is not 22 characters of URL-safe base64"},
            {"{\"partitions\":{},\"topic_id\":null}", "\"topic_id\" is not 22 characters of URL-safe base64"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        struct topic_assignment *a = NULL;
        char *why = NULL;
        assert_reason(topic_assignment_decode(data(bad[i].text), &a, &why), &why, bad[i].why);
        assert_null(a);
    }
    /* a long key is cut, at a character */
    GString *text = g_string_new("{\"partitions\":{\"");
    for (int i = 0; i < 1000; i++)
        g_string_append(text, "\xc3\xa9");
    g_string_append(text, "\":[]}}");
    struct topic_assignment *a = NULL;
    char *why = NULL;
    assert_false(topic_assignment_decode(data(text->str), &a, &why));
    assert_true(strlen(why) < 150 && g_utf8_validate(why, -1, NULL));
    g_free(why);
    g_string_free(text, TRUE);
}

static void test_topic_names(void **state)
{
    static const char *const good[] = {"a", "A.b_c-9", "...", "__consumer_offsets", "-rf"};
    static const char *const bad[] = {"", ".", "..", "a b", "a/b", "a\n", "\xc3\xa9", "a:b", "a*"};
    for (size_t i = 0; i < G_N_ELEMENTS(good); i++)
        assert_null(topic_name_why_bad(good[i]));
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++)
        assert_non_null(topic_name_why_bad(bad[i]));
    char name[251];
    memset(name, 'a', 250);
    name[249] = '\0';
    assert_null(topic_name_why_bad(name));
    name[249] = 'a';
    name[250] = '\0';
    assert_non_null(topic_name_why_bad(name));
}

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
    assert_true(reassignment_decode(data(text), &entries, NULL));
    assert_int_equal(entries->len, 2);
    struct reassignment_entry *e = &g_array_index(entries, struct reassignment_entry, 0);
    assert_string_equal(e->topic, "a");
    assert_int_equal(e->partition, 1);
    assert_ids(e->replicas, IDS(3, 1));
    assert_null(e->why);
    assert_encodes(reassignment_encode(entries), text);
    assert_encodes(partition_list_encode(entries),
            "{\"version\":1,\"partitions\":[{\"topic\":\"a\",\"partition\":1},{\"topic\":\"b\",\"partition\":0}]}");
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
        assert_true(reassignment_decode(data(text), &entries, NULL));
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
        assert_reason(reassignment_decode(data(bad[i].text), &entries, &why), &why, bad[i].why);
        assert_null(entries);
        assert_false(reassignment_decode(data(bad[i].text), &entries, NULL));
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

/* ---- speed: both are decoded for every partition or topic at a failover ---- */

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void report(const char *what, double ns, double limit)
{
    print_message("%s: %.0f ns\n", what, ns);
    assert_true(ns < limit * 10); /* quadratic would be far above; the machine may be busy or the build instrumented */
}

static void test_speed(void **state)
{
    enum { ROUNDS = 100000 };
    struct bytes *text = data(
            "{\"controller_epoch\":12,\"leader\":1001,\"version\":1,\"leader_epoch\":345,\"isr\":[1001,1002,1003]}");
    double start = cpu_ns();
    for (int i = 0; i < ROUNDS; i++) {
        struct leader_and_isr l;
        assert_true(leader_and_isr_decode(text, &l, NULL));
        leader_and_isr_clear(&l);
    }
    report("partition state, decode", (cpu_ns() - start) / ROUNDS, 3000);

    struct leader_and_isr l;
    assert_true(leader_and_isr_decode(text, &l, NULL));
    start = cpu_ns();
    for (int i = 0; i < ROUNDS; i++)
        bytes_unref(leader_and_isr_encode(&l));
    report("partition state, encode", (cpu_ns() - start) / ROUNDS, 3000);
    leader_and_isr_clear(&l);

    struct topic_assignment *a = topic_assignment_new();
    for (int32_t p = 0; p < 10000; p++)
        topic_assignment_add(a, p, broker_ids_new((int32_t[]){1001, 1002, 1003}, 3), NULL, NULL);
    struct bytes *big = topic_assignment_encode(a);
    topic_assignment_free(a);
    start = cpu_ns();
    assert_true(topic_assignment_decode(big, &a, NULL));
    report("assignment, decode, a partition", (cpu_ns() - start) / 10000, 5000);
    topic_assignment_free(a);
    bytes_unref(big);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(test_partition_state, setup, teardown),
            cmocka_unit_test_setup_teardown(test_partition_state_long_isr, setup, teardown),
            cmocka_unit_test_setup_teardown(test_partition_state_refused, setup, teardown),
            cmocka_unit_test_setup_teardown(test_topic, setup, teardown),
            cmocka_unit_test_setup_teardown(test_topic_versions, setup, teardown),
            cmocka_unit_test_setup_teardown(test_topic_add, setup, teardown),
            cmocka_unit_test_setup_teardown(test_topic_refused, setup, teardown),
            cmocka_unit_test_setup_teardown(test_topic_names, setup, teardown),
            cmocka_unit_test_setup_teardown(test_broker, setup, teardown),
            cmocka_unit_test_setup_teardown(test_broker_old_versions, setup, teardown),
            cmocka_unit_test_setup_teardown(test_broker_refused, setup, teardown),
            cmocka_unit_test_setup_teardown(test_controller, setup, teardown),
            cmocka_unit_test_setup_teardown(test_cluster_id, setup, teardown),
            cmocka_unit_test_setup_teardown(test_uuid, setup, teardown),
            cmocka_unit_test_setup_teardown(test_feature_and_producer_ids, setup, teardown),
            cmocka_unit_test_setup_teardown(test_config, setup, teardown),
            cmocka_unit_test_setup_teardown(test_reassignment, setup, teardown),
            cmocka_unit_test_setup_teardown(test_reassignment_verdicts, setup, teardown),
            cmocka_unit_test_setup_teardown(test_partition_list_and_log_dir, setup, teardown),
            cmocka_unit_test_setup_teardown(test_speed, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
