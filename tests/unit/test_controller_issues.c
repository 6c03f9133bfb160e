/* Faults that Kafka's controller once had, by the numbers of their issues, one test for each that can occur here; the
 * whole list is in tests/kafka-issues.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "tests/unit/controller_env.h"

static const char *after(const char *text, const char *what)
{
    const char *at = text ? strstr(text, what) : NULL;
    if (!at) {
        fail_msg("no \"%s\" in:\n%s", what, text ? text : "(nothing)");
    }
    return at + strlen(what);
}

/* KAFKA-6082: every write is fenced. (The environment of these tests refuses any other in every test.) */
static void kafka_6082(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2]}");
    world_settle(w);
    g_string_truncate(w->write_log, 0);
    world_set(w, "/controller_epoch", "20"); /* not told yet: still queued */
    struct controller_event *e = controller_event_new(EVENT_TOPIC_CHANGE);
    e->names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    world_topic(w, "b", "{\"0\":[1,2]}");
    g_hash_table_add(e->names, g_strdup("b"));
    world_push_first(w, e);
    world_step(w);
    /* It has tried, was refused, and stepped down; /controller went first, and all else is of the new epoch. */
    after(w->write_log->str, "delete /controller\n");
    expect_data(w, "/controller_epoch", "^21$");
    world_settle(w);
    expect_data(w, "/brokers/topics/b/partitions/0/state", "\"controller_epoch\":21");
    world_free(w);
}

/* KAFKA-1096, KAFKA-4447, KAFKA-1578: one that is not the controller any more does nothing, whatever it hears. */
static void kafka_1096(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2]}");
    world_settle(w);
    struct controller *old = w->broker[1].candidate;
    assert_true(controller_is_active(old));
    world_delete(w, "/controller");
    struct txn *txn = txn_new(TXN_CLIENT);
    txn_create(txn, "/controller", bytes_from_string("{\"version\":2,\"brokerid\":77,\"timestamp\":\"1\"}"), 0);
    txn_set(txn, "/controller_epoch", bytes_from_string("2"), -1);
    assert_int_equal(world_run(w, txn), ZOK);
    g_string_truncate(w->write_log, 0);
    world_topic(w, "b", "{\"0\":[1,2]}");
    world_mark(w, "a");
    world_settle(w);
    assert_false(controller_is_active(old));
    assert_int_equal(controller_epoch(old), 0);
    assert_string_equal(w->write_log->str, "");
    g_string_truncate(w->request_log, 0);
    world_kill(w, 2);
    world_settle(w);
    assert_string_equal(w->request_log->str, "");
    world_free(w);
}

/* KAFKA-5310: a controller that resigned and is elected again starts from the tree alone. */
static void kafka_5310(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2]}");
    world_settle(w);
    world_reassign(w, "a 0 9");
    world_settle(w);
    expect_asked(w, "/.state/topics/a/0/adding", "9\n");
    world_delete(w, REASSIGN);
    world_delete_tree(w, "/brokers/topics/a");
    world_topic(w, "a", "{\"0\":[2,3]}");
    world_delete(w, "/controller");
    world_settle(w);
    expect_asked(w, "/.state/topics/a/0/adding", "");
    expect_state(w, "a", 0, "leader 2 epoch 0 isr 2,3");
    world_free(w);
}

/* KAFKA-4443: brokers hear of each other before the first LeaderAndIsr. */
static void kafka_4443(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2,3]}");
    world_settle(w);
    g_string_truncate(w->request_log, 0);
    world_delete(w, "/controller");
    world_settle(w);
    assert_true(g_str_has_prefix(w->request_log->str,
            "UpdateMetadata to 1:\nUpdateMetadata to 2:\nUpdateMetadata to 3:\nLeaderAndIsr to 1: a-0 leader 1\n"));
    world_free(w);
}

/* KAFKA-5502, KAFKA-5879: what counts is the tree when the event is handled, not when it was made. */
static void kafka_5502(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2]}");
    world_topic(w, "b", "{\"0\":[1]}");
    world_delete_tree(w, "/brokers/topics/a");
    world_set(w, "/brokers/topics/b", "{\"version\":1,\"partitions\":{\"0\":[3]}}");
    world_settle(w);
    expect_asked(w, "/.state/topics", "b");
    expect_state(w, "b", 0, "leader 3 epoch 0 isr 3");
    assert_string_equal(w->error_log->str, "");
    world_free(w);
}

/* KAFKA-4229: elected again and again. */
static void kafka_4229(void **state)
{
    struct world *w = world_of_three(NULL);
    for (int i = 2; i < 30; i++) {
        g_autofree char *epoch = g_strdup_printf("%d\n", i);
        world_delete(w, "/controller");
        world_settle(w);
        expect_asked(w, "/.state/controller/epoch", epoch);
    }
    world_free(w);
}

/* KAFKA-13225: the death of a broker without partitions is told too. KAFKA-7537: all of the metadata goes to a new
 * broker only. */
static void kafka_13225(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2]}");
    world_settle(w);
    g_string_truncate(w->request_log, 0);
    world_kill(w, 3);
    world_settle(w);
    assert_string_equal(w->request_log->str, "UpdateMetadata to 1:\nUpdateMetadata to 2:\n");
    g_string_truncate(w->request_log, 0);
    world_start(w, 3);
    world_settle(w);
    assert_string_equal(
            w->request_log->str, "UpdateMetadata to 1:\nUpdateMetadata to 2:\nUpdateMetadata to 3: a-0 leader 1\n");
    world_free(w);
}

/* KAFKA-5329: the order of replicas is kept in requests and states. */
static void kafka_5329(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[3,1,2]}");
    world_settle(w);
    expect_state(w, "a", 0, "leader 3 epoch 0 isr 3,1,2");
    const struct hosted *h = g_hash_table_lookup(w->broker[1].replicas, "a-0");
    assert_int_equal(h->replicas->id[0], 3);
    assert_int_equal(h->replicas->id[1], 1);
    assert_int_equal(h->replicas->id[2], 2);
    world_free(w);
}

/* An answer of broker 2 to a StopReplica for a-0 that was never sent: the `number`th request. */
static void answer_stop(struct world *w, int64_t number, bool delete_partition, enum kafka_error error)
{
    const struct hosted *h = g_hash_table_lookup(w->broker[2].replicas, "a-0");
    struct controller_event *e = controller_event_new(EVENT_CONTROL_RESPONSE);
    e->broker_id = 2;
    e->broker_epoch = w->broker[2].epoch;
    e->request = control_request_new(API_STOP_REPLICA);
    e->request->controller_epoch = controller_epoch(world_active(w));
    e->request->correlation_id = number;
    struct stop_replica_state s = {topic_ref_new("a", h->topic_id), 0, EPOCH_DURING_DELETE, delete_partition};
    g_array_append_val(e->request->stop_states, s);
    e->response = control_response_new(KERR_NONE);
    g_array_append_val(e->response->partition_errors, error);
    world_tell(w, e);
    world_settle(w);
}

/* KAFKA-9946: only the answer to a delete counts as one; and to a delete of this deletion, not to the one that moved a
 * former replica away from the same broker. */
static void kafka_9946(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2]}");
    world_settle(w);
    w->broker[2].silent = true;
    world_mark(w, "a");
    world_settle(w);
    expect_asked(w, "/.state/topics/a/deletion", "started\n");
    expect_asked(w, "/.state/topics/a/0/replicas/2", "ReplicaDeletionStarted\n");
    answer_stop(w, INT64_MAX, false, KERR_NONE);
    answer_stop(w, INT64_MAX, false, KERR_KAFKA_STORAGE_ERROR);
    answer_stop(w, 1, true, KERR_NONE);
    expect_asked(w, "/.state/topics/a/0/replicas/2", "ReplicaDeletionStarted\n");
    answer_stop(w, INT64_MAX, true, KERR_NONE);
    expect_gone(w, "a");
    world_free(w);
}

/* KAFKA-6753: a topic that is being deleted is no offline partition. */
static void kafka_6753(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[3]}");
    world_settle(w);
    world_kill(w, 3);
    world_settle(w);
    g_autofree char *before = world_ask(w, "/.state/metrics");
    after(before, "\nkafka_controller_kafkacontroller_offlinepartitionscount 1\n");
    world_mark(w, "a");
    world_settle(w);
    g_autofree char *now = world_ask(w, "/.state/metrics");
    after(now, "\nkafka_controller_kafkacontroller_offlinepartitionscount 0\n");
    world_free(w);
}

/* KAFKA-9539: StopReplica says of which leader epoch it is; in a deletion no epoch refuses it. */
static void kafka_9539(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2]}");
    world_settle(w);
    world_kill(w, 3);
    world_settle(w);
    world_start(w, 3);
    world_settle(w);
    g_string_truncate(w->request_log, 0);
    world_stop(w, 2);
    after(w->request_log->str, "StopReplica to 2: a-0 epoch 0\n"); /* the one before the shrink */
    world_start(w, 2);
    world_settle(w);
    world_mark(w, "a");
    world_settle(w);
    after(w->request_log->str, "StopReplica to 2: a-0 epoch -2 delete\n");
    world_free(w);
}

/* KAFKA-12835: a controller of an older protocol loses no topic id when it writes a node. */
static void kafka_12835(void **state)
{
    struct world *w = world_of_three("inter.broker.protocol.version=2.7");
    world_create(w, "/brokers/topics/a",
            "{\"version\":3,\"partitions\":{\"0\":[1]},\"topic_id\":\"AAAAAAAAAAAAAAAAAAAAAB\",\"adding_replicas\":{},"
            "\"removing_replicas\":{}}");
    world_topic(w, "b", "{\"0\":[1]}");
    world_settle(w);
    world_reassign(w, "a 0 2; b 0 2");
    world_settle(w);
    expect_data(w, "/brokers/topics/a", "\"0\":\\[2\\].*\"topic_id\":\"AAAAAAAAAAAAAAAAAAAAAB\"");
    g_autofree char *b = world_get(w, "/brokers/topics/b");
    after(b, "\"0\":[2]");
    assert_null(strstr(b, "topic_id"));
    world_free(w);
}

/* KAFKA-14190: a tool from before 2.8 rewrites the node without its id; null data and rubbish are left alone. */
static void kafka_14190(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2]}");
    world_settle(w);
    g_autofree char *before = world_get(w, "/brokers/topics/a");
    world_set(w, "/brokers/topics/a", "{\"version\":2,\"partitions\":{\"0\":[1,2]}}");
    world_settle(w);
    g_autofree char *now = world_get(w, "/brokers/topics/a");
    assert_string_equal(now, before);
    world_set(w, "/brokers/topics/a", NULL);
    world_settle(w);
    expect_data(w, "/brokers/topics/a", "^$");
    world_set(w, "/brokers/topics/a", "rubbish");
    world_settle(w);
    expect_data(w, "/brokers/topics/a", "^rubbish$");
    expect_asked(w, "/.state/topics/a/0/assignment", "1,2\n");
    world_free(w);
}

/* KAFKA-9089: at a takeover the file supplants what the topic's node says. */
static void kafka_9089(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2]}");
    world_settle(w);
    world_reassign(w, "a 0 9,2");
    world_settle(w);
    for (int i = 1; i <= 3; i++) {
        world_kill(w, i);
    }
    world_reassign(w, "a 0 3,2");
    world_start_all(w);
    expect_asked(w, "/.state/topics/a/0/assignment", "3,2\n");
    expect_dirs(w, "2: a-0; 3: a-0");
    assert_false(world_exists(w, REASSIGN));
    world_free(w);
}

/* KAFKA-9212: the raised epoch is what brokers are told. KAFKA-10314: a new replica may be made whatever dirs its
 * broker has lost. */
static void kafka_9212(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2]}");
    world_settle(w);
    g_string_truncate(w->request_log, 0);
    w->broker[3].silent = true;
    world_reassign(w, "a 0 3,2");
    world_settle(w);
    after(w->request_log->str, "LeaderAndIsr to 3: a-0 leader 1 new\n");
    assert_null(strstr(w->request_log->str, "LeaderAndIsr to 1: a-0 leader 1 new"));
    const struct hosted *h = g_hash_table_lookup(w->broker[1].replicas, "a-0");
    assert_int_equal(h->leader_epoch, 1);
    expect_state(w, "a", 0, "leader 1 epoch 1 isr 1,2");
    world_free(w);
}

/* KAFKA-10149: a reassignment anywhere does not hold the rebalance up. */
static void kafka_10149(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2],\"1\":[2,1]}");
    world_topic(w, "b", "{\"0\":[1]}");
    world_settle(w);
    world_reassign(w, "b 0 9");
    world_kill(w, 2);
    world_settle(w);
    world_start(w, 2);
    world_settle(w);
    world_fire_timer(w);
    expect_state(w, "a", 1, "leader 2 epoch 2 isr 1,2");
    world_free(w);
}

/* KAFKA-1397, KAFKA-1558, KAFKA-1681: an end is found from every state in which brokers come and go during a deletion.
 */
static void kafka_1397(void **state)
{
    for (int dies = 1; dies <= 3; dies++) {
        struct world *w = world_of_three(NULL);
        world_topic(w, "a", "{\"0\":[1,2,3],\"1\":[2,3]}");
        world_settle(w);
        w->broker[dies].silent = true;
        world_mark(w, "a");
        world_settle(w);
        world_kill(w, dies);
        world_settle(w);
        assert_true(world_exists(w, "/admin/delete_topics/a"));
        w->broker[dies].silent = false;
        world_start(w, dies);
        world_settle(w);
        expect_gone(w, "a");
        expect_dirs(w, "");
        world_free(w);
    }
}

/* What a former controller has told a broker and nobody took back: the next one's caches hold what is there, and only
 * that, also those of a broker that comes. */
static void caches_at_a_takeover(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2]}");
    world_settle(w);
    g_hash_table_insert(w->broker[3].metadata, g_strdup("gone-0"), GINT_TO_POINTER(1));
    world_delete(w, "/controller");
    world_settle(w);
    assert_false(g_hash_table_contains(w->broker[3].metadata, "gone-0"));
    assert_true(g_hash_table_contains(w->broker[3].metadata, "a-0"));
    world_kill(w, 3);
    world_settle(w);
    world_start(w, 3);
    g_hash_table_insert(w->broker[3].metadata, g_strdup("gone-0"), GINT_TO_POINTER(1));
    world_settle(w);
    assert_false(g_hash_table_contains(w->broker[3].metadata, "gone-0"));
    assert_true(g_hash_table_contains(w->broker[3].metadata, "a-0"));
    world_free(w);
}

/* A mark that is taken back: before the deletion has started it is off; afterwards it is put back. */
static void mark_taken_back(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,3]}");
    world_topic(w, "b", "{\"0\":[1]}");
    world_settle(w);
    world_reassign(w, "b 0 9");
    world_kill(w, 3);
    world_mark(w, "b");
    world_mark(w, "a");
    world_settle(w);
    world_delete(w, "/admin/delete_topics/a");
    world_delete(w, "/admin/delete_topics/b");
    world_settle(w);
    assert_true(world_exists(w, "/admin/delete_topics/a"));
    assert_false(world_exists(w, "/admin/delete_topics/b"));
    expect_asked(w, "/.state/topics/b/deletion", "none\n");
    expect_said(w->error_log, "/admin/delete_topics/a");
    assert_true(g_hash_table_contains(w->broker[2].metadata, "b-0"));
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(kafka_6082),
            cmocka_unit_test(kafka_1096),
            cmocka_unit_test(kafka_5310),
            cmocka_unit_test(kafka_4443),
            cmocka_unit_test(kafka_5502),
            cmocka_unit_test(kafka_4229),
            cmocka_unit_test(kafka_13225),
            cmocka_unit_test(kafka_5329),
            cmocka_unit_test(kafka_9946),
            cmocka_unit_test(kafka_6753),
            cmocka_unit_test(kafka_9539),
            cmocka_unit_test(kafka_12835),
            cmocka_unit_test(kafka_14190),
            cmocka_unit_test(kafka_9089),
            cmocka_unit_test(kafka_9212),
            cmocka_unit_test(kafka_10149),
            cmocka_unit_test(kafka_1397),
            cmocka_unit_test(caches_at_a_takeover),
            cmocka_unit_test(mark_taken_back),
    };
    return cmocka_run_group_tests_name("controller issues", tests, NULL, NULL);
}
