/* The control requests: references, equality, and that everything owned is freed (AddressSanitizer says if not). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include "controller/requests.h"

static void test_broker_ids(void **state)
{
    struct broker_ids *a = broker_ids_new((int32_t[]){3, 1, 2}, 3), *b = broker_ids_new((int32_t[]){3, 1, 2}, 3);
    struct broker_ids *c = broker_ids_new((int32_t[]){1, 3, 2}, 3), *none = broker_ids_new(NULL, 0);
    assert_true(broker_ids_equal(a, b));
    assert_false(broker_ids_equal(a, c)); /* order matters: the first is the preferred leader */
    assert_false(broker_ids_equal(a, none));
    assert_false(broker_ids_equal(a, NULL));
    assert_true(broker_ids_equal(NULL, NULL));
    assert_true(broker_ids_contain(a, 2));
    assert_false(broker_ids_contain(a, 4));
    assert_false(broker_ids_contain(NULL, 1));
    assert_false(broker_ids_contain(none, 0));
    assert_ptr_equal(broker_ids_ref(a), a);
    assert_null(broker_ids_unref(a));
    assert_int_equal(a->id[0], 3); /* one reference is left */
    broker_ids_unref(a);
    broker_ids_unref(b);
    broker_ids_unref(c);
    broker_ids_unref(none);
    assert_null(broker_ids_ref(NULL));
    assert_null(broker_ids_unref(NULL));
}

static struct partition_state *make_partition(struct topic_ref *topic, int32_t partition)
{
    struct partition_state *p = partition_state_new(topic, partition);
    p->isr = broker_ids_new((int32_t[]){1, 2}, 2);
    p->replicas = broker_ids_ref(p->isr);
    p->adding_replicas = broker_ids_new(NULL, 0);
    p->removing_replicas = broker_ids_ref(p->adding_replicas);
    p->offline_replicas = broker_ids_new((int32_t[]){2}, 1);
    return p;
}

static void test_request_owns_what_it_holds(void **state)
{
    struct topic_ref *topic = topic_ref_new("orders", "AbCdEfGhIjKlMnOpQrStUv");
    struct topic_ref *plain = topic_ref_new("old", NULL);
    assert_string_equal(topic->name, "orders");
    assert_string_equal(topic->id, "AbCdEfGhIjKlMnOpQrStUv");
    assert_string_equal(plain->id, "");

    struct control_request *r = control_request_new(API_UPDATE_METADATA);
    g_ptr_array_add(r->partition_states, make_partition(topic, 0));
    struct partition_state *kept = partition_state_ref(g_ptr_array_index(r->partition_states, 0));
    struct stop_replica_state stop = {
            .topic = topic_ref_ref(plain), .partition = 1, .leader_epoch = EPOCH_DURING_DELETE};
    g_array_append_val(r->stop_states, stop);
    struct live_broker live = {
            .id = 1, .rack = g_strdup("r1"), .endpoints = g_new0(struct broker_endpoint, 1), .n_endpoints = 1};
    live.endpoints[0] = (struct broker_endpoint){g_strdup("EXTERNAL"), g_strdup("h"), g_strdup("SSL"), 9093};
    g_array_append_val(r->live_brokers, live);

    assert_ptr_equal(control_request_ref(r), r);
    assert_null(control_request_unref(r));
    assert_null(control_request_unref(r));
    assert_string_equal(kept->topic->name, "orders"); /* a metadata cache may keep a state longer than its request */
    topic_ref_unref(topic);
    assert_string_equal(kept->topic->name, "orders");
    assert_null(partition_state_unref(kept));
    topic_ref_unref(plain);
    assert_null(control_request_unref(NULL));
    assert_null(topic_ref_unref(NULL));
}

static void test_broker_request(void **state)
{
    struct broker_request *r = g_new0(struct broker_request, 1);
    r->n_partitions = 1;
    r->partitions = g_new0(struct alter_partition, 1);
    r->partitions[0].topic = topic_ref_new("t", "");
    r->partitions[0].new_isr = broker_ids_new((int32_t[]){1}, 1);
    r->partitions[0].result_isr = broker_ids_ref(r->partitions[0].new_isr);
    r->partitions[0].new_isr_epochs = g_new0(int64_t, 1);
    r->remaining = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(r->remaining, g_strdup("t-0"));
    broker_request_free(r);
    broker_request_free(g_new0(struct broker_request, 1));
    broker_request_free(NULL);

    struct control_response *response = control_response_new(KERR_STALE_BROKER_EPOCH);
    assert_int_equal(response->error, KERR_STALE_BROKER_EPOCH);
    assert_int_equal(response->partition_errors->len, 0);
    control_response_free(response);
    control_response_free(NULL);
}

static void test_error_names(void **state)
{
    assert_string_equal(kafka_error_name(KERR_NONE), "NONE");
    assert_string_equal(kafka_error_name(KERR_KAFKA_STORAGE_ERROR), "KAFKA_STORAGE_ERROR");
    assert_string_equal(kafka_error_name((enum kafka_error)12345), "UNKNOWN");
}

static void *churn(void *arg)
{
    for (int i = 0; i < 20000; i++) {
        struct broker_ids *b = broker_ids_ref(arg);
        assert_int_equal(b->id[1], 2);
        broker_ids_unref(b);
    }
    broker_ids_unref(arg);
    return NULL;
}

static void test_references_across_threads(void **state)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    struct broker_ids *b = broker_ids_new((int32_t[]){1, 2}, 2);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, broker_ids_ref(b)), 0);
    broker_ids_unref(b);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_broker_ids),
            cmocka_unit_test(test_request_owns_what_it_holds),
            cmocka_unit_test(test_broker_request),
            cmocka_unit_test(test_error_names),
            cmocka_unit_test(test_references_across_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
