/* The broker core: fencing, LeaderAndIsr, StopReplica, UpdateMetadata. */
#include "tests/unit/broker_fixture.h"

/* ---- fencing ---- */

static void fencing(void **state)
{
    static const struct {
        enum control_api api;
        int32_t controller_epoch;
        int64_t broker_epoch;
        enum kafka_error error;
    } cases[] = {
            {API_LEADER_AND_ISR, 5, EPOCH, KERR_NONE},
            {API_LEADER_AND_ISR, 4, EPOCH, KERR_STALE_CONTROLLER_EPOCH},
            {API_STOP_REPLICA, 4, EPOCH, KERR_STALE_CONTROLLER_EPOCH},
            {API_UPDATE_METADATA, 4, EPOCH, KERR_STALE_CONTROLLER_EPOCH},
            {API_UPDATE_METADATA, 5, EPOCH - 1, KERR_STALE_BROKER_EPOCH},
            {API_LEADER_AND_ISR, 9, EPOCH - 1, KERR_STALE_BROKER_EPOCH}, /* its epoch is not learned either */
            {API_STOP_REPLICA, 5, EPOCH - 1, KERR_STALE_BROKER_EPOCH},
            {API_STOP_REPLICA, 5, -1, KERR_NONE},
            {API_LEADER_AND_ISR, 5, EPOCH + 7, KERR_NONE}, /* the controller may know it first */
            {API_UPDATE_METADATA, 6, EPOCH, KERR_NONE},
            {API_LEADER_AND_ISR, 5, EPOCH, KERR_STALE_CONTROLLER_EPOCH}, /* learned from UpdateMetadata */
            {API_STOP_REPLICA, 7, EPOCH, KERR_NONE},
            {API_UPDATE_METADATA, 6, EPOCH, KERR_STALE_CONTROLLER_EPOCH},
    };
    struct fixture *f = ready();

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        send(f, request(cases[i].api, cases[i].controller_epoch), cases[i].broker_epoch);
        enum kafka_error e = whole_error(f);
        if (e != cases[i].error)
            fail_msg("case %zu: %s", i, kafka_error_name(e));
    }
    destroy(f);
}

/* Also by what the tree says when a broker starts: nobody who is deposed by then is heard. */
static void fencing_from_the_start(void **state)
{
    struct fixture *f = make("");

    g_hash_table_insert(f->tree, g_strdup("/controller_epoch"), controller_epoch_encode(5));
    broker_free(f->b);
    f->b = broker_new(ME, EPOCH, f->config, (char *const *)f->config->log_dirs->pdata, 2, &f->env);
    broker_loaded(f->b, 1);
    send(f, request(API_UPDATE_METADATA, 4), EPOCH);
    assert_int_equal(whole_error(f), KERR_STALE_CONTROLLER_EPOCH);
    assert_int_equal(broker_controller_id(f->b), -1);
    send(f, request(API_UPDATE_METADATA, 5), EPOCH);
    assert_int_equal(whole_error(f), KERR_NONE);
    assert_int_equal(broker_controller_id(f->b), 2);
    destroy(f);
}

static void requests_wait_for_loading_and_each_other(void **state)
{
    struct fixture *f = make("");

    f->manual = true;
    leader_and_isr(f, (struct want){.leader = ME, .is_new = true});
    send(f, request(API_UPDATE_METADATA, 5), EPOCH);
    assert_int_equal(f->held, 2);
    assert_int_equal(g_queue_get_length(&f->batches), 0);
    broker_loaded(f->b, 1);
    assert_int_equal(g_queue_get_length(&f->batches), 1);
    assert_int_equal(g_queue_get_length(&f->responses), 0); /* nothing overtakes the disk */
    assert_false(broker_idle(f->b));
    f->manual = false;
    do_disk(f);
    assert_int_equal(first_error(f), KERR_NONE);
    assert_int_equal(whole_error(f), KERR_NONE);
    assert_true(broker_idle(f->b));
    destroy(f);
}

static void ends_in_the_middle(void **state)
{
    struct fixture *f = ready();

    f->manual = true;
    leader_and_isr(f, (struct want){.leader = ME, .is_new = true});
    leader_and_isr(f, (struct want){.leader = ME, .is_new = true, .partition = 1});
    destroy(f); /* with a batch outstanding and a request queued */
}

/* ---- LeaderAndIsr ---- */

static void roles(void **state)
{
    struct fixture *f = ready();

    live(f, "12");
    assert_int_equal(leader_and_isr(f, (struct want){.leader = ME, .is_new = true}), KERR_NONE);
    assert_int_equal(view(f, "t", 0).role, REPLICA_LEADER);
    assert_int_equal(view(f, "t", 0).dir, 0);
    assert_int_equal(view(f, "t", 0).isr->n, 2);
    assert_int_equal(leader_and_isr(f, (struct want){.leader = 2, .partition = 1, .is_new = true}), KERR_NONE);
    assert_int_equal(view(f, "t", 1).role, REPLICA_FOLLOWER);
    assert_int_equal(view(f, "t", 1).dir, 1); /* the emptier one */
    assert_string_equal(f->topics->str, "+t ");
    /* the leader is not alive: the log is made, the epoch is not taken */
    assert_int_equal(leader_and_isr(f, (struct want){.leader = 3, .leader_epoch = 4, .partition = 2, .is_new = true}),
            KERR_NONE);
    assert_int_equal(view(f, "t", 2).role, REPLICA_NONE);
    assert_int_equal(view(f, "t", 2).leader_epoch, LEADER_EPOCH_NONE);
    assert_int_equal(view(f, "t", 2).dir, 0);
    assert_int_equal(leader_and_isr(f, (struct want){.leader = -1, .leader_epoch = 1}), KERR_NONE);
    assert_int_equal(view(f, "t", 0).role, REPLICA_NONE);
    assert_int_equal(view(f, "t", 0).leader_epoch, 0);
    destroy(f);
}

static void leader_epochs(void **state)
{
    struct fixture *f = ready();

    live(f, "12");
    leader_and_isr(f, (struct want){.leader = ME, .leader_epoch = 3, .partition_epoch = 7, .is_new = true});
    assert_int_equal(leader_and_isr(f, (struct want){.leader = ME, .leader_epoch = 3, .partition_epoch = 7}),
            KERR_STALE_CONTROLLER_EPOCH);
    assert_int_equal(leader_and_isr(f, (struct want){.leader = ME, .leader_epoch = 2}), KERR_FENCED_LEADER_EPOCH);
    assert_int_equal(leader_and_isr(f, (struct want){.leader = 2, .leader_epoch = 3}), KERR_NOT_LEADER_OR_FOLLOWER);
    assert_int_equal(view(f, "t", 0).role, REPLICA_LEADER);
    assert_int_equal(leader_and_isr(f, (struct want){.leader = 2, .leader_epoch = 4, .replicas = "23"}),
            KERR_UNKNOWN_TOPIC_OR_PARTITION);
    /* a lower partition epoch in a later leader epoch: that of another node */
    assert_int_equal(leader_and_isr(f, (struct want){.leader = 2, .leader_epoch = 4, .partition_epoch = 2}), KERR_NONE);
    assert_int_equal(view(f, "t", 0).role, REPLICA_FOLLOWER);
    assert_int_equal(view(f, "t", 0).partition_epoch, 2);
    assert_int_equal(leader_and_isr(f, (struct want){.topic = "..", .leader = ME, .is_new = true}),
            KERR_INVALID_TOPIC_EXCEPTION);
    assert_int_equal(leader_and_isr(f, (struct want){.topic = "u", .leader = 2, .replicas = "23", .is_new = true}),
            KERR_UNKNOWN_TOPIC_OR_PARTITION);
    assert_int_equal(view(f, "u", 0).dir, -2); /* nothing is left of it */
    destroy(f);
}

/* One that was made again has the same numbers: the leader sees it by the in-sync set. */
static void another_state_of_the_same_epoch(void **state)
{
    struct fixture *f = ready();
    struct want held = {.leader = ME, .leader_epoch = 3, .partition_epoch = 7, .is_new = true}, other = held;

    live(f, "12");
    leader_and_isr(f, held);
    assert_int_equal(leader_and_isr(f, held), KERR_STALE_CONTROLLER_EPOCH);
    other.isr = "1";
    assert_int_equal(leader_and_isr(f, other), KERR_FENCED_LEADER_EPOCH);
    other.partition_epoch = 6;
    assert_int_equal(leader_and_isr(f, other), KERR_FENCED_LEADER_EPOCH);
    assert_int_equal(view(f, "t", 0).isr->n, 2);
    other = held;
    other.replicas = "123";
    assert_int_equal(leader_and_isr(f, other), KERR_FENCED_LEADER_EPOCH);
    other.isr = "1";
    other.partition_epoch = 8; /* a later one */
    assert_int_equal(leader_and_isr(f, other), KERR_NONE);
    assert_int_equal(view(f, "t", 0).isr->n, 1);
    /* a follower does not keep the set */
    leader_and_isr(f, (struct want){.leader = 2, .partition = 1, .partition_epoch = 4, .is_new = true});
    assert_int_equal(leader_and_isr(f, (struct want){.leader = 2, .partition = 1, .isr = "2", .partition_epoch = 3}),
            KERR_STALE_CONTROLLER_EPOCH);
    destroy(f);
}

/* The answer says what the broker has, so that the controller can go on above it. */
static void says_its_leader_epoch(void **state)
{
    struct fixture *f = ready();

    live(f, "12");
    leader_and_isr(f, (struct want){.leader = ME, .leader_epoch = 3, .is_new = true});
    leader_and_isr(f, (struct want){.leader = 2, .leader_epoch = 9, .partition = 1, .is_new = true});
    struct control_request *r = request(API_LEADER_AND_ISR, 5);
    g_ptr_array_add(r->partition_states, state_of((struct want){.leader = ME, .leader_epoch = 3}));
    g_ptr_array_add(r->partition_states, state_of((struct want){.leader = ME, .leader_epoch = 8, .partition = 1}));
    send(f, r, EPOCH);
    struct control_response *answer = take_response(f);
    assert_int_equal(g_array_index(answer->partition_errors, enum kafka_error, 0), KERR_STALE_CONTROLLER_EPOCH);
    assert_int_equal(g_array_index(answer->partition_errors, enum kafka_error, 1), KERR_FENCED_LEADER_EPOCH);
    assert_int_equal(answer->leader_epochs->len, 2);
    assert_int_equal(g_array_index(answer->leader_epochs, int32_t, 1), 9);
    control_response_free(answer);
    leader_and_isr(f, (struct want){.leader = ME, .leader_epoch = 10, .partition = 1});
    assert_int_equal(view(f, "t", 1).role, REPLICA_LEADER);
    destroy(f);
}

static void topic_ids(void **state)
{
    struct fixture *f = make("");
    int other;

    assert_int_equal(broker_log_found(f->b, 1, "old", 0, "", false, &other), 0);
    assert_int_equal(broker_log_found(f->b, 0, "t", 0, ID_A, false, &other), 0);
    assert_int_equal(broker_log_found(f->b, 1, "t", 0, ID_A, false, &other), -EEXIST);
    assert_int_equal(other, 0);
    broker_loaded(f->b, 1);
    live(f, "12");
    assert_int_equal(leader_and_isr(f, (struct want){.id = ID_B, .leader = ME}), KERR_INCONSISTENT_TOPIC_ID);
    /* known already: no disk work */
    f->manual = true;
    leader_and_isr(f, (struct want){.leader = ME, .leader_epoch = 5});
    assert_int_equal(g_queue_get_length(&f->batches), 0);
    assert_int_equal(first_error(f), KERR_NONE);
    f->manual = false;
    /* a new topic of that name: the old directory is set aside by the create task, epochs begin anew */
    assert_int_equal(leader_and_isr(f, (struct want){.id = ID_B, .leader = ME, .is_new = true}), KERR_NONE);
    assert_int_equal(view(f, "t", 0).leader_epoch, 0);
    assert_string_equal(view(f, "t", 0).topic->id, ID_B);
    /* a log without an id takes the request's */
    f->manual = true;
    leader_and_isr(f, (struct want){.topic = "old", .leader = ME});
    struct disk_batch *batch = g_queue_peek_head(&f->batches);
    assert_non_null(batch);
    assert_int_equal(batch->work, DISK_CREATE);
    assert_int_equal(batch->dir, 1);
    f->manual = false;
    do_disk(f);
    assert_int_equal(first_error(f), KERR_NONE);
    assert_string_equal(view(f, "old", 0).topic->id, ID_A);
    destroy(f);
}

/* The request that called the topic new was lost with its controller; the tree says which topic is right. */
static void a_topic_id_of_the_tree(void **state)
{
    struct fixture *f = make("");
    int other;

    assert_int_equal(broker_log_found(f->b, 0, "t", 0, ID_A, false, &other), 0);
    broker_loaded(f->b, 1);
    live(f, "12");
    g_hash_table_insert(f->tree, g_strdup("/brokers/topics/t"),
            bytes_from_string("{\"version\":3,\"partitions\":{\"0\":[1,2]},\"topic_id\":\"" ID_A
                              "\",\"adding_replicas\":{},\"removing_replicas\":{}}"));
    assert_int_equal(leader_and_isr(f, (struct want){.id = ID_B, .leader = ME}), KERR_INCONSISTENT_TOPIC_ID);
    g_hash_table_insert(f->tree, g_strdup("/brokers/topics/t"),
            bytes_from_string("{\"version\":3,\"partitions\":{\"0\":[1,2]},\"topic_id\":\"" ID_B
                              "\",\"adding_replicas\":{},\"removing_replicas\":{}}"));
    f->manual = true;
    leader_and_isr(f, (struct want){.id = ID_B, .leader = ME});
    struct disk_batch *batch = g_queue_peek_head(&f->batches);
    assert_non_null(batch);
    assert_int_equal(batch->work, DISK_CREATE); /* which sets the other one aside */
    assert_string_equal(g_array_index(batch->tasks, struct log_task, 0).topic->id, ID_B);
    f->manual = false;
    do_disk(f);
    assert_int_equal(first_error(f), KERR_NONE);
    assert_int_equal(view(f, "t", 0).role, REPLICA_LEADER);
    destroy(f);
}

static void a_topic_id_alone_is_news(void **state)
{
    struct fixture *f = ready();

    live(f, "12");
    assert_int_equal(
            leader_and_isr(f, (struct want){.id = "", .leader = ME, .leader_epoch = 2, .is_new = true}), KERR_NONE);
    assert_int_equal(
            leader_and_isr(f, (struct want){.id = "", .leader = ME, .leader_epoch = 2}), KERR_STALE_CONTROLLER_EPOCH);
    assert_int_equal(leader_and_isr(f, (struct want){.leader = ME, .leader_epoch = 2}), KERR_NONE);
    assert_string_equal(view(f, "t", 0).topic->id, ID_A);
    assert_int_equal(view(f, "t", 0).role, REPLICA_LEADER);
    assert_int_equal(leader_and_isr(f, (struct want){.leader = ME, .leader_epoch = 2}), KERR_STALE_CONTROLLER_EPOCH);
    destroy(f);
}

static void named_twice(void **state)
{
    struct fixture *f = ready();
    struct control_request *r = request(API_LEADER_AND_ISR, 5);

    for (int i = 0; i < 2; i++)
        g_ptr_array_add(r->partition_states, state_of((struct want){.leader = ME, .is_new = true}));
    f->fail_err = -EMFILE;
    send(f, r, EPOCH);
    assert_int_equal(first_error(f), KERR_KAFKA_STORAGE_ERROR);
    leader_and_isr(f, (struct want){.leader = ME, .is_new = true});
    r = request(API_STOP_REPLICA, 5);
    for (int i = 0; i < 2; i++) {
        struct stop_replica_state s = {
                .topic = topic_ref_new("t", ID_A), .leader_epoch = EPOCH_DURING_DELETE, .delete_partition = true};
        g_array_append_val(r->stop_states, s);
    }
    send(f, r, EPOCH);
    assert_int_equal(first_error(f), KERR_NONE);
    assert_int_equal(view(f, "t", 0).dir, -2);
    destroy(f);
}

/* ---- StopReplica ---- */

static void stop_epochs(void **state)
{
    struct fixture *f = ready();

    live(f, "12");
    leader_and_isr(f, (struct want){.leader = ME, .leader_epoch = 5, .is_new = true});
    assert_int_equal(stop_replica(f, "t", 4, true), KERR_FENCED_LEADER_EPOCH);
    assert_int_equal(view(f, "t", 0).role, REPLICA_LEADER);
    assert_int_equal(stop_replica(f, "t", 5, false), KERR_NONE); /* KAFKA-13972 */
    assert_int_equal(view(f, "t", 0).role, REPLICA_NONE);
    assert_int_equal(view(f, "t", 0).dir, 0);                                   /* the log stays */
    assert_int_equal(stop_replica(f, "t", 4, false), KERR_FENCED_LEADER_EPOCH); /* and so does the epoch */
    assert_int_equal(stop_replica(f, "t", LEADER_EPOCH_NONE, false), KERR_NONE);
    assert_int_equal(stop_replica(f, "t", 6, true), KERR_NONE);
    assert_int_equal(view(f, "t", 0).dir, -2);
    assert_string_equal(f->topics->str, "+t -t ");
    assert_int_equal(stop_replica(f, "t", EPOCH_DURING_DELETE, true), KERR_NONE); /* not hosted */
    destroy(f);
}

static void a_log_from_before_is_cleaned(void **state)
{
    struct fixture *f = make("");
    int other;

    assert_int_equal(broker_log_found(f->b, 0, "t", 0, ID_A, false, &other), 0);
    broker_loaded(f->b, 1);
    assert_int_equal(stop_replica(f, "t", 0, true), KERR_NONE);
    assert_int_equal(view(f, "t", 0).dir, -2);
    destroy(f);
}

static void a_deletion_that_fails(void **state)
{
    struct fixture *f = ready();

    leader_and_isr(f, (struct want){.leader = ME, .leader_epoch = 5, .is_new = true});
    f->fail_err = -EXDEV;
    assert_int_equal(stop_replica(f, "t", EPOCH_DURING_DELETE, true), KERR_KAFKA_STORAGE_ERROR);
    assert_true(broker_dir_online(f->b, 0));
    assert_true(strstr(f->errors->str, "/d/0/t-0") != NULL);
    assert_int_equal(stop_replica(f, "t", EPOCH_DURING_DELETE, true), KERR_NONE); /* asked again, it works */
    assert_int_equal(view(f, "t", 0).dir, -2);
    leader_and_isr(f, (struct want){.leader = ME, .leader_epoch = 5, .is_new = true});
    f->fail_dir = "busy";
    assert_int_equal(stop_replica(f, "t", EPOCH_DURING_DELETE, true), KERR_KAFKA_STORAGE_ERROR);
    assert_false(broker_dir_online(f->b, 0));
    assert_int_equal(view(f, "t", 0).role, REPLICA_OFFLINE);
    destroy(f);
}

/* ---- metadata ---- */

static void metadata(void **state)
{
    struct fixture *f = ready();
    struct control_request *r = request(API_UPDATE_METADATA, 5);

    for (int p = 4; p >= 0; p--)
        g_ptr_array_add(r->partition_states, state_of((struct want){.partition = p, .leader = 2, .leader_epoch = p}));
    g_ptr_array_add(r->partition_states, state_of((struct want){.topic = "u", .leader = 1}));
    send(f, r, EPOCH);
    const struct metadata_cache *c = broker_metadata(f->b);
    g_autoptr(GArray) parts = metadata_cache_partitions(c, "t");
    assert_int_equal(parts->len, 5);
    for (int p = 0; p < 5; p++)
        assert_int_equal(g_array_index(parts, int32_t, p), p);
    assert_int_equal(metadata_cache_partition(c, "t", 3)->leader_epoch, 3);
    g_autofree char *json = metadata_cache_json(c, "t", 3);
    assert_string_equal(json, "{\"topic\":\"t\",\"topic_id\":\"" ID_A "\",\"partition\":3,\"controller_epoch\":5,"
                              "\"leader\":2,\"leader_epoch\":3,\"isr\":[1,2],\"zk_version\":0,\"replicas\":[1,2],"
                              "\"offline_replicas\":[]}");
    /* merged, in any mixture */
    r = request(API_UPDATE_METADATA, 5);
    g_ptr_array_add(r->partition_states, state_of((struct want){.partition = 7, .leader = 1}));
    g_ptr_array_add(r->partition_states, state_of((struct want){.partition = 5, .leader = 1}));
    g_ptr_array_add(r->partition_states, state_of((struct want){.partition = 0, .leader = LEADER_DURING_DELETE}));
    g_ptr_array_add(r->partition_states, state_of((struct want){.partition = 3, .leader = 9}));
    g_ptr_array_add(r->partition_states, state_of((struct want){.partition = 6, .leader = LEADER_DURING_DELETE}));
    send(f, r, EPOCH);
    assert_null(metadata_cache_partition(c, "t", 0));
    assert_null(metadata_cache_partition(c, "t", 6));
    assert_int_equal(metadata_cache_partition(c, "t", 3)->leader, 9);
    g_autoptr(GArray) mixed = metadata_cache_partitions(c, "t");
    assert_int_equal(mixed->len, 6);
    /* the last partition takes the topic with it */
    r = request(API_UPDATE_METADATA, 5);
    for (int p = 0; p < 8; p++)
        g_ptr_array_add(r->partition_states, state_of((struct want){.partition = p, .leader = LEADER_DURING_DELETE}));
    send(f, r, EPOCH);
    g_autoptr(GPtrArray) topics = metadata_cache_topics(c);
    assert_int_equal(topics->len, 1);
    assert_string_equal(g_ptr_array_index(topics, 0), "u");
    assert_null(metadata_cache_partitions(c, "t"));
    assert_null(metadata_cache_json(c, "t", 3));
    /* a full one: what it does not name is not there */
    r = request(API_UPDATE_METADATA, 5);
    r->full = true;
    g_ptr_array_add(r->partition_states, state_of((struct want){.topic = "v", .leader = 2}));
    send(f, r, EPOCH);
    assert_null(metadata_cache_partitions(c, "u"));
    assert_non_null(metadata_cache_partition(c, "v", 0));
    /* live brokers are replaced */
    live(f, "13");
    assert_true(metadata_cache_has_broker(c, 3));
    live(f, "1");
    assert_false(metadata_cache_has_broker(c, 3));
    destroy(f);
}

static void metadata_against_a_model(void **state)
{
    struct metadata_cache *c = metadata_cache_new();
    g_autoptr(GRand) rand = g_rand_new_with_seed(4711);
    struct topic_ref *t = topic_ref_new("t", ID_A);
    int32_t model[64];

    memset(model, 0xff, sizeof model);
    for (int round = 0; round < 3000; round++) {
        struct control_request *r = request(API_UPDATE_METADATA, 1);
        int n = g_rand_int_range(rand, 0, 20), count = 0;
        for (int i = 0; i < n; i++) {
            int p = g_rand_int_range(rand, 0, 64);
            struct partition_state *s = partition_state_new(t, p);
            s->leader = g_rand_int_range(rand, 0, 3) == 0 ? LEADER_DURING_DELETE : round;
            model[p] = s->leader == LEADER_DURING_DELETE ? -1 : round;
            g_ptr_array_add(r->partition_states, s);
        }
        metadata_cache_update(c, r);
        control_request_unref(r);
        for (int p = 0; p < 64; p++) {
            const struct partition_state *s = metadata_cache_partition(c, "t", p);
            assert_int_equal(s ? s->leader : -1, model[p]);
            count += model[p] >= 0;
        }
        g_autoptr(GArray) parts = metadata_cache_partitions(c, "t");
        assert_int_equal(parts ? (int)parts->len : 0, count);
    }
    topic_ref_unref(t);
    metadata_cache_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(fencing),
            cmocka_unit_test(fencing_from_the_start),
            cmocka_unit_test(requests_wait_for_loading_and_each_other),
            cmocka_unit_test(ends_in_the_middle),
            cmocka_unit_test(roles),
            cmocka_unit_test(leader_epochs),
            cmocka_unit_test(another_state_of_the_same_epoch),
            cmocka_unit_test(says_its_leader_epoch),
            cmocka_unit_test(topic_ids),
            cmocka_unit_test(a_topic_id_of_the_tree),
            cmocka_unit_test(a_topic_id_alone_is_news),
            cmocka_unit_test(named_twice),
            cmocka_unit_test(stop_epochs),
            cmocka_unit_test(a_log_from_before_is_cleaned),
            cmocka_unit_test(a_deletion_that_fails),
            cmocka_unit_test(metadata),
            cmocka_unit_test(metadata_against_a_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
