/* The broker core: which log dir a replica lives in, and log dirs that fail. */
#include "tests/unit/broker_fixture.h"

/* ---- log dirs ---- */

static void the_next_dir_is_tried(void **state)
{
    struct fixture *f = ready();

    f->fail_dir = "disk on fire";
    assert_int_equal(leader_and_isr(f, (struct want){.leader = ME, .is_new = true}), KERR_NONE);
    assert_int_equal(view(f, "t", 0).dir, 1);
    assert_false(broker_dir_online(f->b, 0));
    assert_int_equal(f->halted, 0);
    struct txn *txn = g_queue_peek_head(&f->txns);
    assert_string_equal(txn->ops[0].path, "/log_dir_event_notification/log_dir_event_");
    assert_int_equal(txn->ops[0].flags, CREATE_SEQUENTIAL);
    /* and then there is none: no answer either */
    f->manual = true;
    leader_and_isr(f, (struct want){.leader = ME, .partition = 1, .is_new = true, .topic = "u"});
    f->fail_dir = "disk on fire";
    finish_batch(f, g_queue_pop_head(&f->batches));
    assert_true(g_queue_is_empty(&f->responses));
    assert_int_equal(f->halted, 1);
    destroy(f);
}

/* Recorded from a Kafka: the logs of those it leads come first, then the followers', each in the request's order. */
static void leaders_choose_a_dir_first(void **state)
{
    struct fixture *f = ready();
    struct control_request *r = request(API_LEADER_AND_ISR, 5);

    live(f, "12");
    for (int p = 0; p < 4; p++)
        g_ptr_array_add(r->partition_states,
                state_of((struct want){.partition = p, .leader = p == 0 || p == 3 ? 2 : ME, .is_new = true}));
    send(f, r, EPOCH);
    assert_int_equal(first_error(f), KERR_NONE);
    assert_int_equal(view(f, "t", 1).dir, 0);
    assert_int_equal(view(f, "t", 2).dir, 1);
    assert_int_equal(view(f, "t", 0).dir, 0);
    assert_int_equal(view(f, "t", 3).dir, 1);
    destroy(f);
}

static void one_bad_task_is_no_bad_dir(void **state)
{
    struct fixture *f = ready();

    f->fail_err = -EMFILE;
    assert_int_equal(leader_and_isr(f, (struct want){.leader = ME, .is_new = true}), KERR_KAFKA_STORAGE_ERROR);
    assert_true(broker_dir_online(f->b, 0));
    assert_int_equal(view(f, "t", 0).dir, -2);
    assert_string_equal(f->topics->str, "+t -t ");
    assert_int_equal(leader_and_isr(f, (struct want){.leader = ME, .is_new = true}), KERR_NONE); /* tried again */
    destroy(f);
}

static void a_failed_dir(void **state)
{
    struct fixture *f = ready();

    live(f, "12");
    leader_and_isr(f, (struct want){.leader = ME, .is_new = true});
    leader_and_isr(f, (struct want){.leader = ME, .partition = 1, .is_new = true});
    broker_dir_failed(f->b, 0, "gone", 1);
    broker_dir_failed(f->b, 0, "gone", 1);
    assert_int_equal(g_queue_get_length(&f->txns), 1); /* once */
    assert_int_equal(view(f, "t", 0).role, REPLICA_OFFLINE);
    assert_int_equal(view(f, "t", 1).role, REPLICA_LEADER);
    assert_int_equal(leader_and_isr(f, (struct want){.leader = ME, .leader_epoch = 1}), KERR_KAFKA_STORAGE_ERROR);
    for (int i = 0; i < 2; i++) /* KAFKA-7313 */
        assert_int_equal(stop_replica(f, "t", EPOCH_DURING_DELETE, true), KERR_KAFKA_STORAGE_ERROR);
    /* what is not new may live in the dir that is away */
    assert_int_equal(leader_and_isr(f, (struct want){.topic = "u", .leader = ME}), KERR_KAFKA_STORAGE_ERROR);
    assert_int_equal(leader_and_isr(f, (struct want){.topic = "u", .leader = ME, .leader_epoch = 1, .is_new = true}),
            KERR_KAFKA_STORAGE_ERROR);
    assert_int_equal(stop_replica(f, "unknown", EPOCH_DURING_DELETE, true), KERR_KAFKA_STORAGE_ERROR);
    assert_int_equal(stop_replica(f, "unknown", EPOCH_DURING_DELETE, false), KERR_NONE);
    assert_int_equal(leader_and_isr(f, (struct want){.topic = "new", .leader = ME, .is_new = true}), KERR_NONE);
    assert_int_equal(view(f, "new", 0).dir, 1);
    broker_dir_failed(f->b, 1, "gone", 1);
    assert_int_equal(f->halted, 1);
    destroy(f);
}

static void expect_dir_note(struct fixture *f)
{
    struct txn *txn = g_queue_peek_head(&f->txns);

    assert_int_equal(g_queue_get_length(&f->txns), 1);
    assert_int_equal(txn->n_ops, 1);
    assert_int_equal(txn->ops[0].type, OP_CREATE);
    assert_int_equal(txn->ops[0].flags, CREATE_SEQUENTIAL);
    assert_string_equal(txn->ops[0].path, "/log_dir_event_notification/log_dir_event_");
    assert_string_equal(txn->ops[0].data->data, "{\"version\":1,\"broker\":1,\"event\":1}");
}

/* A disk that is full may be that of the store and of the log dir. */
static void a_note_without_room_is_written_again(void **state)
{
    static const int waits[] = {50, 100, 200, 400, 800, 1600, 3200, 3200};
    struct fixture *f = ready();

    live(f, "12");
    broker_dir_failed(f->b, 0, "gone", 1);
    g_string_truncate(f->errors, 0);
    for (size_t i = 0; i < G_N_ELEMENTS(waits); i++) {
        expect_dir_note(f);
        answer_txn(f, ZSTORENOSPACE);
        assert_true(g_queue_is_empty(&f->txns)); /* not at once */
        assert_false(broker_idle(f->b));
        assert_int_equal(f->timers[BROKER_TIMER_NOTE], waits[i]);
        f->timers[BROKER_TIMER_NOTE] = -1;
        broker_timer(f->b, BROKER_TIMER_NOTE, 1);
    }
    expect_dir_note(f);
    answer_txn(f, ZOK);
    assert_true(broker_idle(f->b));
    assert_int_equal(f->timers[BROKER_TIMER_NOTE], -1);
    broker_timer(f->b, BROKER_TIMER_NOTE, 1);
    assert_true(g_queue_is_empty(&f->txns)); /* once */
    assert_string_equal(f->errors->str,      /* said once, too */
            "/log_dir_event_notification/log_dir_event_: broker 1 could not write it: ZSTORENOSPACE; it tries again "
            "until there is room\n");
    destroy(f);
}

static void other_refusals_are_final(void **state)
{
    static const int codes[] = {ZNOTREADONLY, ZSTOREIO, ZSESSIONEXPIRED, ZNONODE};

    for (size_t i = 0; i < G_N_ELEMENTS(codes); i++) {
        struct fixture *f = ready();
        broker_dir_failed(f->b, 0, "gone", 1);
        answer_txn(f, codes[i]);
        assert_non_null(strstr(f->errors->str, "broker 1 could not write it: "));
        assert_null(strstr(f->errors->str, "tries again"));
        assert_int_equal(f->timers[BROKER_TIMER_NOTE], 0);
        broker_timer(f->b, BROKER_TIMER_NOTE, 1);
        assert_true(g_queue_is_empty(&f->txns));
        destroy(f);
    }
}

static void one_that_halts_writes_no_more(void **state)
{
    struct fixture *f = ready();

    broker_dir_failed(f->b, 0, "gone", 1);
    answer_txn(f, ZSTORENOSPACE);
    broker_dir_failed(f->b, 1, "gone", 1);
    assert_int_equal(f->halted, 1);
    broker_timer(f->b, BROKER_TIMER_NOTE, 1);
    assert_true(g_queue_is_empty(&f->txns));
    destroy(f);
}

/* The end waits for the answer: the controller hears which replicas are gone and which are not. */
static void the_last_dir_fails_in_a_deletion(void **state)
{
    struct fixture *f = ready();
    struct control_request *r = request(API_STOP_REPLICA, 5);

    broker_dir_failed(f->b, 0, "gone", 1);
    for (int i = 0; i < 2; i++) {
        leader_and_isr(f, (struct want){.leader = ME, .partition = i, .is_new = true});
        struct stop_replica_state s = {.topic = topic_ref_new("t", ID_A),
                .partition = i,
                .leader_epoch = EPOCH_DURING_DELETE,
                .delete_partition = true};
        g_array_append_val(r->stop_states, s);
    }
    f->manual = true;
    send(f, r, EPOCH);
    struct disk_batch *batch = g_queue_pop_head(&f->batches);
    assert_int_equal(g_array_index(batch->tasks, struct log_task, 0).partition, 1);
    disk_batch_fail(batch, 1, -EBUSY, g_strdup("t-0 is busy"));
    broker_disk_done(f->b, batch, 1);
    assert_int_equal(f->halted, 1);
    struct control_response *answer = take_response(f);
    assert_int_equal(g_array_index(answer->partition_errors, enum kafka_error, 0), KERR_KAFKA_STORAGE_ERROR);
    assert_int_equal(g_array_index(answer->partition_errors, enum kafka_error, 1), KERR_NONE);
    control_response_free(answer);
    destroy(f);
}

static void before_1_0_one_dir_is_all(void **state)
{
    struct fixture *f = make("inter.broker.protocol.version=0.11.0");

    broker_loaded(f->b, 1);
    broker_dir_failed(f->b, 0, "gone", 1);
    assert_int_equal(f->halted, 1);
    destroy(f);
}

static void dirs_are_filled_evenly(void **state)
{
    struct fixture *f = make("");
    int other, n[2] = {0};

    for (int i = 0; i < 3; i++)
        assert_int_equal(broker_log_found(f->b, 0, "a", i, ID_A, false, &other), 0);
    broker_future_found(f->b, 1, "a", 0);
    broker_loaded(f->b, 1);
    for (int i = 0; i < 6; i++) {
        leader_and_isr(f, (struct want){.topic = "b", .partition = i, .leader = ME, .is_new = true});
        n[view(f, "b", i).dir]++;
    }
    assert_int_equal(n[0], 2);
    assert_int_equal(n[1], 4);
    /* the future log goes with its replica: one task in each dir */
    f->manual = true;
    stop_replica(f, "a", EPOCH_DURING_DELETE, true);
    assert_int_equal(g_queue_get_length(&f->batches), 2);
    f->manual = false;
    do_disk(f);
    assert_int_equal(first_error(f), KERR_NONE);
    assert_int_equal(view(f, "a", 0).dir, -2);
    destroy(f);
}

static void torn_ones_are_made_again(void **state)
{
    struct fixture *f = make("");
    int other;

    assert_int_equal(broker_log_found(f->b, 1, "t", 0, "", true, &other), 0);
    broker_loaded(f->b, 1);
    f->manual = true;
    leader_and_isr(f, (struct want){.leader = ME});
    struct disk_batch *batch = g_queue_peek_head(&f->batches);
    assert_int_equal(batch->dir, 1); /* in place */
    f->manual = false;
    do_disk(f);
    assert_int_equal(first_error(f), KERR_NONE);
    destroy(f);
}

static void put_topic(struct fixture *f, const char *topic, const char *id)
{
    g_autofree char *text = g_strdup_printf("{\"version\":3,\"topic_id\":\"%s\",\"partitions\":{\"0\":[1]},"
                                            "\"adding_replicas\":{},\"removing_replicas\":{}}",
            id);

    g_hash_table_replace(f->tree, g_strdup_printf("/brokers/topics/%s", topic), bytes_from_string(text));
}

static void a_torn_one_gives_way(void **state)
{
    struct fixture *f = make("");
    int other;

    assert_int_equal(broker_log_found(f->b, 0, "t", 0, "", true, &other), 0);
    assert_int_equal(broker_log_found(f->b, 1, "t", 0, ID_A, false, &other), 0);
    assert_int_equal(broker_log_found(f->b, 1, "t", 1, ID_A, false, &other), 0);
    assert_int_equal(broker_log_found(f->b, 0, "t", 1, "", true, &other), 0);
    assert_int_equal(broker_log_found(f->b, 0, "t", 1, ID_A, false, &other), -EEXIST);
    put_topic(f, "t", ID_B); /* and on top of it the topic is another one now */
    broker_loaded(f->b, 1);
    assert_int_equal(g_queue_get_length(&f->batches), 2);
    struct disk_batch *batch = g_queue_peek_head(&f->batches);
    assert_int_equal(batch->work, DISK_DELETE);
    assert_int_equal(batch->dir, 0);
    assert_int_equal(batch->tasks->len, 2);
    batch = g_queue_pop_tail(&f->batches);
    assert_int_equal(batch->work, DISK_STRAY);
    finish_batch(f, batch);
    do_disk(f);
    assert_int_equal(view(f, "t", 0).dir, -2);
    live(f, "12");
    assert_int_equal(leader_and_isr(f, (struct want){.id = ID_B, .leader = ME}), KERR_NONE);
    destroy(f);
}

static void strays_are_set_aside_at_start(void **state)
{
    struct fixture *f = make("");
    int other;

    put_topic(f, "same", ID_A);
    put_topic(f, "other", ID_B);
    assert_int_equal(broker_log_found(f->b, 0, "same", 0, ID_A, false, &other), 0);
    assert_int_equal(broker_log_found(f->b, 0, "other", 0, ID_A, false, &other), 0);
    assert_int_equal(broker_log_found(f->b, 0, "nowhere", 0, ID_A, false, &other), 0);
    broker_loaded(f->b, 1);
    struct disk_batch *batch = g_queue_peek_head(&f->batches);
    assert_int_equal(batch->work, DISK_STRAY);
    assert_int_equal(batch->tasks->len, 1);
    send(f, request(API_UPDATE_METADATA, 5), EPOCH);
    assert_int_equal(whole_error(f), KERR_NONE);
    assert_int_equal(view(f, "other", 0).dir, -2);
    assert_int_equal(view(f, "same", 0).dir, 0);
    assert_int_equal(view(f, "nowhere", 0).dir, 0);
    assert_true(strstr(f->errors->str, "other-0") != NULL);
    destroy(f);
}

static void removed_by_hand(void **state)
{
    struct fixture *f = ready();

    leader_and_isr(f, (struct want){.leader = ME, .is_new = true});
    broker_log_removed(f->b, 1, "t", 0); /* another dir: no news */
    assert_string_equal(f->errors->str, "");
    broker_log_removed(f->b, 0, "t", 0);
    broker_log_removed(f->b, 0, "t", 0);
    broker_log_removed(f->b, 0, "unknown", 0);
    assert_int_equal(view(f, "t", 0).role, REPLICA_LEADER); /* it goes on, as Kafka's */
    char *first = strchr(f->errors->str, '\n');
    assert_non_null(first);
    assert_string_equal(first, "\n"); /* said once */
    /* not made again before the next start */
    f->manual = true;
    leader_and_isr(f, (struct want){.leader = ME, .leader_epoch = 1});
    assert_int_equal(g_queue_get_length(&f->batches), 0);
    assert_int_equal(first_error(f), KERR_NONE);
    destroy(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_next_dir_is_tried),
            cmocka_unit_test(leaders_choose_a_dir_first),
            cmocka_unit_test(one_bad_task_is_no_bad_dir),
            cmocka_unit_test(a_failed_dir),
            cmocka_unit_test(a_note_without_room_is_written_again),
            cmocka_unit_test(other_refusals_are_final),
            cmocka_unit_test(one_that_halts_writes_no_more),
            cmocka_unit_test(the_last_dir_fails_in_a_deletion),
            cmocka_unit_test(before_1_0_one_dir_is_all),
            cmocka_unit_test(dirs_are_filled_evenly),
            cmocka_unit_test(torn_ones_are_made_again),
            cmocka_unit_test(a_torn_one_gives_way),
            cmocka_unit_test(strays_are_set_aside_at_start),
            cmocka_unit_test(removed_by_hand),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
