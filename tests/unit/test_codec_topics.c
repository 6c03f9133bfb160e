/* The codecs of topics: assignments and partition states, which are decoded by the thousand at a failover. */
#include "tests/unit/codec_fixture.h"
#include <time.h>

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
    /* any order, white space, adding ones of a partition that is not there */
    assert_topic("{\"version\":3,\"partitions\":{\"10\":[2],\"1\":[3,2],\"0\":[1,2]},\"adding_replicas\":{\"5\":[9],"
                 "\"1\":[3]},"
                 "\"removing_replicas\":{\"1\":[2]},\"topic_id\":\"f0hHMZfeRIuE4XM1e6K_vQ\"}");
    assert_topic("{ "
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

static void test_topic_unknown_fields(void **state)
{
    struct topic_assignment *a = NULL;
    assert_true(topic_assignment_decode(
            data("{\"owner\":{\"team\":\"ops\"}, \"version\":1,\"partitions\":{\"0\":[1]},\"tags\":[1.5]}"), &a, NULL));
    assert_encodes(topic_assignment_encode(a),
            "{\"version\":1,\"partitions\":{\"0\":[1]},\"owner\":{\"team\":\"ops\"},\"tags\":[1.5]}");
    topic_assignment_free(a);
    assert_topic_same("{\"removing_replicas\":{},\"partitions\":{},\"adding_replicas\":{},\"version\":3,\"owner\":1}");
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
            cmocka_unit_test_setup_teardown(test_topic_unknown_fields, setup, teardown),
            cmocka_unit_test_setup_teardown(test_topic_add, setup, teardown),
            cmocka_unit_test_setup_teardown(test_topic_refused, setup, teardown),
            cmocka_unit_test_setup_teardown(test_topic_names, setup, teardown),
            cmocka_unit_test_setup_teardown(test_speed, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
