/* The broker core: in-sync sets. */
#include "tests/unit/broker_fixture.h"

/* ---- in-sync sets ---- */

static struct fixture *leading(const char *isr)
{
    struct fixture *f = ready();

    live(f, "123");
    assert_int_equal(leader_and_isr(f, (struct want){.leader = ME,
                                               .leader_epoch = 2,
                                               .isr = isr,
                                               .replicas = "123",
                                               .partition_epoch = 10,
                                               .is_new = true}),
            KERR_NONE);
    return f;
}

static void a_follower_comes_back(void **state)
{
    struct fixture *f = leading("1");

    fetch(f, 2, 55, 1); /* an old epoch: fenced */
    fetch(f, 4, 55, 2); /* no replica */
    assert_true(g_queue_is_empty(&f->asked));
    fetch(f, 2, 55, 2);
    struct broker_request *r = take_asked(f);
    assert_int_equal(r->api, API_ALTER_PARTITION);
    assert_int_equal(r->broker_epoch, EPOCH);
    assert_int_equal(r->n_partitions, 1);
    assert_int_equal(r->partitions[0].leader_epoch, 2);
    assert_int_equal(r->partitions[0].partition_epoch, 10);
    assert_int_equal(r->partitions[0].new_isr->n, 2);
    assert_int_equal(r->partitions[0].new_isr->id[1], 2);
    assert_int_equal(r->partitions[0].new_isr_epochs[0], EPOCH);
    assert_int_equal(r->partitions[0].new_isr_epochs[1], 55);
    fetch(f, 3, 66, 2); /* while one is in flight */
    assert_true(g_queue_is_empty(&f->asked));
    grant(f, r);
    assert_int_equal(view(f, "t", 0).partition_epoch, 11);
    r = take_asked(f);
    assert_int_equal(r->partitions[0].new_isr->n, 3);
    assert_int_equal(r->partitions[0].partition_epoch, 11);
    grant(f, r);
    assert_int_equal(view(f, "t", 0).isr->n, 3);
    fetch(f, 2, 55, 2); /* in it already */
    assert_true(g_queue_is_empty(&f->asked));
    assert_true(broker_idle(f->b));
    destroy(f);
}

static void only_live_followers_are_proposed(void **state)
{
    struct fixture *f = leading("1");

    live(f, "13");
    fetch(f, 2, 55, 2);
    assert_true(g_queue_is_empty(&f->asked));
    live(f, "123");
    broker_answered(f->b, take_asked(f), 1); /* granted as asked: no result list */
    assert_int_equal(view(f, "t", 0).isr->n, 2);
    destroy(f);
    f = leading("1");
    live(f, "13");
    fetch(f, 2, 55, 2);
    live(f, "3");
    live(f, "13");
    fetch(f, 3, 66, 2);
    struct broker_request *r = take_asked(f);
    assert_int_equal(r->partitions[0].new_isr->n, 2);
    live(f, "1");
    live(f, "123"); /* 2 came back, but has not fetched again */
    r->partitions[0].error = KERR_INELIGIBLE_REPLICA;
    broker_answered(f->b, r, 1);
    live(f, "12");
    assert_int_equal(f->held, 0);
    destroy(f);
}

static void the_controller_changes(void **state)
{
    struct fixture *f = leading("1");

    fetch(f, 2, 55, 2);
    struct broker_request *r = take_asked(f);
    r->error = KERR_NOT_CONTROLLER;
    broker_answered(f->b, r, 1);
    assert_true(g_queue_is_empty(&f->asked));
    assert_int_equal(f->timers[BROKER_TIMER_ALTER_PARTITION], 50);
    assert_int_equal(f->held, 0); /* nobody waits for that */
    fetch(f, 3, 66, 2);
    assert_true(g_queue_is_empty(&f->asked));
    /* the timer */
    broker_timer(f->b, BROKER_TIMER_ALTER_PARTITION, 1);
    r = take_asked(f);
    assert_int_equal(r->partitions[0].new_isr->n, 2); /* the same proposal: it may have been done */
    /* its answer is lost, and another controller makes itself known */
    live_at(f, "123", 6);
    struct broker_request *again = take_asked(f);
    assert_int_equal(again->partitions[0].new_isr->n, 2);
    broker_answered(f->b, r, 1); /* late: of no use */
    assert_int_equal(view(f, "t", 0).isr->n, 1);
    grant(f, again);
    grant(f, take_asked(f));
    assert_int_equal(view(f, "t", 0).isr->n, 3);
    destroy(f);
}

static void refused_proposals(void **state)
{
    static const struct {
        enum kafka_error error;
        bool again;
    } cases[] = {{KERR_INVALID_UPDATE_VERSION, false}, {KERR_UNKNOWN_TOPIC_OR_PARTITION, false},
            {KERR_UNKNOWN_TOPIC_ID, false}, {KERR_INVALID_REQUEST, false}, {KERR_INELIGIBLE_REPLICA, false},
            {KERR_OPERATION_NOT_ATTEMPTED, false}, {KERR_NOT_CONTROLLER, true}, {KERR_UNKNOWN_SERVER_ERROR, true}};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct fixture *f = leading("1");
        f->timers[BROKER_TIMER_ALTER_PARTITION] = -1;
        fetch(f, 2, 55, 2);
        struct broker_request *r = take_asked(f);
        r->partitions[0].error = cases[i].error;
        broker_answered(f->b, r, 1);
        assert_int_equal(view(f, "t", 0).isr->n, 1);
        assert_int_equal(f->timers[BROKER_TIMER_ALTER_PARTITION], cases[i].again ? 50 : -1);
        assert_int_equal(f->held, 0);
        /* it asks again with the follower's next fetch */
        if (!cases[i].again) {
            fetch(f, 2, 56, 2);
            r = take_asked(f);
            assert_int_equal(r->partitions[0].new_isr_epochs[1], 56);
            grant(f, r);
            assert_int_equal(view(f, "t", 0).isr->n, 2);
        }
        destroy(f);
    }
}

/* A leader whose epoch is over asks for nothing until it hears of the next, however often its followers fetch. */
static void fenced_leader(void **state)
{
    struct fixture *f = leading("1");

    fetch(f, 2, 55, 2);
    struct broker_request *r = take_asked(f);
    fetch(f, 3, 66, 2);
    r->partitions[0].error = KERR_FENCED_LEADER_EPOCH;
    broker_answered(f->b, r, 1);
    fetch(f, 2, 55, 2);
    live(f, "123");
    assert_true(g_queue_is_empty(&f->asked));
    assert_true(broker_idle(f->b));
    struct want next = {.leader = ME, .leader_epoch = 3, .isr = "1", .replicas = "123", .partition_epoch = 11};
    assert_int_equal(leader_and_isr(f, next), KERR_NONE);
    fetch(f, 2, 55, 3);
    r = take_asked(f);
    assert_int_equal(r->partitions[0].leader_epoch, 3);
    grant(f, r);
    assert_int_equal(view(f, "t", 0).isr->n, 2);
    destroy(f);
}

/* A follower that the controller does not take (its log dir has failed) does not hold up the others. */
static void one_refused_follower(void **state)
{
    struct fixture *f = leading("1");

    fetch(f, 2, 55, 2);
    struct broker_request *r = take_asked(f);
    r->partitions[0].error = KERR_INELIGIBLE_REPLICA;
    broker_answered(f->b, r, 1);
    live(f, "123"); /* what the controller sends after each AlterPartition: nothing new */
    assert_true(g_queue_is_empty(&f->asked));
    fetch(f, 3, 66, 2);
    r = take_asked(f);
    assert_int_equal(r->partitions[0].new_isr->n, 2);
    assert_int_equal(r->partitions[0].new_isr->id[1], 3);
    /* one that comes while another is refused is not forgotten with it, nor the next incarnation of that one */
    fetch(f, 3, 67, 2);
    fetch(f, 2, 55, 2);
    r->partitions[0].error = KERR_INELIGIBLE_REPLICA;
    broker_answered(f->b, r, 1);
    r = take_asked(f);
    assert_int_equal(r->partitions[0].new_isr->n, 3);
    assert_int_equal(r->partitions[0].new_isr_epochs[1], 67);
    grant(f, r);
    assert_true(broker_idle(f->b));
    destroy(f);
}

static void update(struct fixture *f, struct want w)
{
    struct control_request *u = request(API_UPDATE_METADATA, 5);
    struct live_broker l[] = {{.id = 1}, {.id = 2}, {.id = 3}};

    g_array_append_vals(u->live_brokers, l, 3);
    g_ptr_array_add(u->partition_states, state_of(w));
    send(f, u, EPOCH);
    assert_int_equal(whole_error(f), KERR_NONE);
}

/* Moved away by a reassignment whose StopReplica was lost with its controller. */
static void no_replica_any_more(void **state)
{
    struct fixture *f = leading("1");

    fetch(f, 2, 55, 2);
    broker_request_free(take_asked(f));
    update(f, (struct want){.leader = 2, .leader_epoch = 1, .isr = "2", .replicas = "2"}); /* of an older epoch */
    update(f, (struct want){.leader = 2, .leader_epoch = 3, .isr = "2", .replicas = "2", .id = ID_B});
    assert_int_equal(view(f, "t", 0).role, REPLICA_LEADER);
    update(f, (struct want){.leader = 2, .leader_epoch = 3, .isr = "2", .replicas = "2"});
    assert_int_equal(view(f, "t", 0).role, REPLICA_NONE);
    assert_int_equal(view(f, "t", 0).dir, 0); /* its log stays */
    assert_true(broker_idle(f->b));
    fetch(f, 3, 66, 2);
    assert_true(g_queue_is_empty(&f->asked));
    /* it is given back */
    assert_int_equal(
            leader_and_isr(f, (struct want){.leader = 2, .leader_epoch = 4, .isr = "2", .partition_epoch = 12}),
            KERR_NONE);
    assert_int_equal(view(f, "t", 0).role, REPLICA_FOLLOWER);
    assert_false(broker_idle(f->b));
    update(f, (struct want){.leader = 2, .leader_epoch = 5, .isr = "2", .replicas = "2"});
    assert_int_equal(view(f, "t", 0).role, REPLICA_NONE);
    assert_true(broker_idle(f->b)); /* it does not fetch for ever */
    /* the topic is to be deleted: said without an epoch */
    assert_int_equal(
            leader_and_isr(f, (struct want){.leader = 2, .leader_epoch = 6, .isr = "2", .partition_epoch = 14}),
            KERR_NONE);
    update(f, (struct want){.leader = LEADER_DURING_DELETE, .isr = "2"});
    assert_int_equal(view(f, "t", 0).role, REPLICA_FOLLOWER);
    update(f, (struct want){.leader = LEADER_DURING_DELETE, .isr = "2", .replicas = "2"});
    assert_int_equal(view(f, "t", 0).role, REPLICA_NONE);
    destroy(f);
}

/* A controller that cannot write refuses, and sends its metadata all the same: that must not become a loop. */
static void refused_by_a_controller_that_goes_on_talking(void **state)
{
    static const int64_t waits[] = {50, 100, 200, 400, 800, 1600, 3200, 3200};
    struct fixture *f = leading("1");

    fetch(f, 2, 55, 2);
    for (size_t i = 0; i < G_N_ELEMENTS(waits); i++) {
        struct broker_request *r = take_asked(f);
        r->partitions[0].error = KERR_UNKNOWN_SERVER_ERROR;
        broker_answered(f->b, r, 1);
        live(f, "123");
        assert_true(g_queue_is_empty(&f->asked));
        assert_int_equal(f->timers[BROKER_TIMER_ALTER_PARTITION], waits[i]);
        assert_int_equal(f->held, 0); /* nobody waits for that */
        broker_timer(f->b, BROKER_TIMER_ALTER_PARTITION, 1);
    }
    struct broker_request *late = take_asked(f);
    live_at(f, "123", 6); /* another controller */
    grant(f, take_asked(f));
    broker_answered(f->b, late, 1);
    assert_int_equal(view(f, "t", 0).isr->n, 2);
    /* from the start again */
    fetch(f, 3, 66, 2);
    struct broker_request *r = take_asked(f);
    r->error = KERR_NOT_CONTROLLER;
    broker_answered(f->b, r, 1);
    assert_int_equal(f->timers[BROKER_TIMER_ALTER_PARTITION], 50);
    live_at(f, "123", 7);
    grant(f, take_asked(f));
    assert_int_equal(view(f, "t", 0).isr->n, 3);
    destroy(f);
}

static void a_new_state_ends_a_proposal(void **state)
{
    struct fixture *f = leading("1");

    fetch(f, 2, 55, 2);
    struct broker_request *r = take_asked(f);
    assert_int_equal(
            leader_and_isr(f,
                    (struct want){
                            .leader = ME, .leader_epoch = 3, .isr = "1", .replicas = "123", .partition_epoch = 11}),
            KERR_NONE);
    grant(f, r);
    assert_int_equal(view(f, "t", 0).isr->n, 1);
    assert_int_equal(view(f, "t", 0).partition_epoch, 11);
    fetch(f, 2, 55, 3);
    r = take_asked(f);
    assert_int_equal(r->partitions[0].leader_epoch, 3);
    stop_replica(f, "t", EPOCH_DURING_DELETE, true);
    grant(f, r); /* the replica is gone */
    destroy(f);
}

static void followers_fetch(void **state)
{
    struct fixture *f = ready();

    live(f, "12");
    /* in the ISR: nothing to say */
    leader_and_isr(f, (struct want){.leader = 2, .leader_epoch = 1, .isr = "21", .is_new = true});
    assert_true(g_queue_is_empty(&f->fetches));
    leader_and_isr(f, (struct want){.leader = 2, .leader_epoch = 2, .isr = "2", .partition_epoch = 1});
    struct fetch_request *r = g_queue_pop_head(&f->fetches);
    assert_int_equal(f->fetched_from, 2);
    assert_int_equal(r->replica_id, ME);
    assert_int_equal(r->replica_epoch, EPOCH);
    assert_int_equal(g_array_index(r->partitions, struct fetch_partition, 0).leader_epoch, 2);
    fetch_request_free(r);
    assert_false(broker_idle(f->b));
    /* lost: the timer */
    assert_int_equal(f->timers[BROKER_TIMER_FETCH], 1000);
    broker_timer(f->b, BROKER_TIMER_FETCH, 1);
    fetch_request_free(g_queue_pop_head(&f->fetches));
    /* the leader was away and is back */
    live(f, "1");
    assert_true(g_queue_is_empty(&f->fetches));
    live(f, "12");
    fetch_request_free(g_queue_pop_head(&f->fetches));
    /* told the same again, and then that another one was taken in */
    update(f, (struct want){.leader = 2, .leader_epoch = 2, .isr = "2", .partition_epoch = 1});
    assert_true(g_queue_is_empty(&f->fetches));
    update(f, (struct want){.leader = 2, .leader_epoch = 2, .isr = "23", .partition_epoch = 2});
    fetch_request_free(g_queue_pop_head(&f->fetches));
    update(f, (struct want){.leader = 2, .leader_epoch = 2, .isr = "23", .partition_epoch = 2});
    assert_true(g_queue_is_empty(&f->fetches));
    /* a new controller says the same: the leader may be another incarnation, to which nobody has said anything */
    assert_int_equal(
            leader_and_isr(f, (struct want){.leader = 2, .leader_epoch = 2, .isr = "23", .partition_epoch = 2}),
            KERR_STALE_CONTROLLER_EPOCH);
    assert_int_equal(f->fetches.length, 1);
    fetch_request_free(g_queue_pop_head(&f->fetches));
    /* taken in */
    struct control_request *u = request(API_UPDATE_METADATA, 5);
    struct live_broker l[] = {{.id = 1}, {.id = 2}};
    g_array_append_vals(u->live_brokers, l, 2);
    g_ptr_array_add(u->partition_states, state_of((struct want){.leader = 2, .leader_epoch = 2, .isr = "21"}));
    send(f, u, EPOCH);
    assert_true(broker_idle(f->b));
    broker_timer(f->b, BROKER_TIMER_FETCH, 1);
    assert_true(g_queue_is_empty(&f->fetches));
    destroy(f);
}

/* ---- IBP < 2.7 ---- */

static struct fixture *leading_old(void)
{
    struct fixture *f = make("inter.broker.protocol.version=2.6");

    broker_loaded(f->b, 1);
    live(f, "123");
    f->registered[2] = 55;
    f->registered[3] = 66;
    assert_int_equal(leader_and_isr(f, (struct want){.leader = ME,
                                               .leader_epoch = 2,
                                               .isr = "1",
                                               .replicas = "123",
                                               .partition_epoch = 10,
                                               .is_new = true}),
            KERR_NONE);
    return f;
}

static void the_leader_writes_itself(void **state)
{
    struct fixture *f = leading_old();

    fetch(f, 2, 54, 2); /* of a former life: no controller would refuse it */
    assert_true(g_queue_is_empty(&f->txns));
    fetch(f, 2, 55, 2);
    assert_true(g_queue_is_empty(&f->asked));
    struct txn *txn = g_queue_pop_head(&f->txns);
    assert_int_equal(txn->ops[0].type, OP_SET);
    assert_string_equal(txn->ops[0].path, "/brokers/topics/t/partitions/0/state");
    assert_int_equal(txn->ops[0].version, 10);
    struct leader_and_isr l;
    assert_true(leader_and_isr_decode(txn->ops[0].data, &l, NULL));
    assert_int_equal(l.leader, ME);
    assert_int_equal(l.leader_epoch, 2);
    assert_int_equal(l.controller_epoch, 5);
    assert_int_equal(l.isr->n, 2);
    leader_and_isr_clear(&l);
    txn->rc = ZOK;
    txn->ops[0].stat.version = 11;
    broker_txn_done(f->b, txn, 1);
    assert_int_equal(view(f, "t", 0).isr->n, 2);
    assert_int_equal(view(f, "t", 0).partition_epoch, 11);
    txn = g_queue_pop_head(&f->txns);
    assert_string_equal(txn->ops[0].path, "/isr_change_notification/isr_change_");
    assert_string_equal(txn->ops[0].data->data, "{\"version\":1,\"partitions\":[{\"topic\":\"t\",\"partition\":0}]}");
    broker_txn_done(f->b, txn, 1);
    destroy(f);
}

/* The partitions that it is about are not forgotten, and what changes meanwhile is a note of its own. */
static void a_note_without_room_is_written_again(void **state)
{
    static const char note_of_t[] = "{\"version\":1,\"partitions\":[{\"topic\":\"t\",\"partition\":0}]}";
    struct fixture *f = leading_old();

    fetch(f, 2, 55, 2);
    answer_txn(f, ZOK); /* the state */
    answer_txn(f, ZSTORENOSPACE);
    assert_int_equal(f->timers[BROKER_TIMER_NOTE], 50);
    assert_true(g_queue_is_empty(&f->txns));
    fetch(f, 3, 66, 2);
    answer_txn(f, ZOK);
    answer_txn(f, ZSTORENOSPACE); /* waits with the first one, which has set the timer */
    assert_int_equal(f->timers[BROKER_TIMER_NOTE], 50);
    broker_timer(f->b, BROKER_TIMER_NOTE, 1);
    assert_int_equal(g_queue_get_length(&f->txns), 2);
    for (int i = 0; i < 2; i++) {
        const struct txn *txn = g_queue_peek_head(&f->txns);
        assert_int_equal(txn->rc, ZOK); /* forgotten, as the store needs it */
        assert_string_equal(txn->ops[0].path, "/isr_change_notification/isr_change_");
        assert_string_equal(txn->ops[0].data->data, note_of_t);
        answer_txn(f, ZOK);
    }
    broker_timer(f->b, BROKER_TIMER_NOTE, 1);
    assert_true(g_queue_is_empty(&f->txns));
    destroy(f);
}

static void a_note_that_is_taken_ends_the_wait(void **state)
{
    struct fixture *f = leading_old();

    fetch(f, 2, 55, 2);
    answer_txn(f, ZOK); /* the state */
    answer_txn(f, ZSTORENOSPACE);
    broker_timer(f->b, BROKER_TIMER_NOTE, 1);
    answer_txn(f, ZSTORENOSPACE);
    assert_int_equal(f->timers[BROKER_TIMER_NOTE], 100);
    broker_timer(f->b, BROKER_TIMER_NOTE, 1);
    answer_txn(f, ZOK);
    fetch(f, 3, 66, 2);
    answer_txn(f, ZOK);
    answer_txn(f, ZSTORENOSPACE);
    assert_int_equal(f->timers[BROKER_TIMER_NOTE], 50);
    destroy(f);
}

static void a_lost_answer_is_recognized(void **state)
{
    struct fixture *f = leading_old();

    fetch(f, 2, 55, 2);
    struct txn *txn = g_queue_pop_head(&f->txns);
    g_hash_table_replace(f->tree, g_strdup(txn->ops[0].path), bytes_ref(txn->ops[0].data));
    f->tree_version = 17;
    txn->rc = ZBADVERSION;
    broker_txn_done(f->b, txn, 1);
    assert_int_equal(view(f, "t", 0).isr->n, 2);
    assert_int_equal(view(f, "t", 0).partition_epoch, 17);
    txn_free(g_queue_pop_head(&f->txns));
    /* a value of this leader and epoch by another hand is taken too, and the proposal follows it */
    fetch(f, 3, 66, 2);
    txn = g_queue_pop_head(&f->txns);
    f->tree_version = 19;
    txn->rc = ZBADVERSION;
    broker_txn_done(f->b, txn, 1);
    assert_int_equal(view(f, "t", 0).isr->n, 2);
    assert_int_equal(view(f, "t", 0).partition_epoch, 19);
    txn_free(g_queue_pop_head(&f->txns)); /* the controller is told */
    txn = g_queue_pop_head(&f->txns);
    assert_int_equal(txn->ops[0].version, 19);
    /* one of another epoch is not */
    g_hash_table_replace(f->tree, g_strdup(txn->ops[0].path),
            bytes_from_string("{\"controller_epoch\":1,\"leader\":1,\"version\":1,\"leader_epoch\":99,\"isr\":[1]}"));
    txn->rc = ZBADVERSION;
    broker_txn_done(f->b, txn, 1);
    assert_int_equal(view(f, "t", 0).partition_epoch, 19);
    destroy(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_follower_comes_back),
            cmocka_unit_test(only_live_followers_are_proposed),
            cmocka_unit_test(the_controller_changes),
            cmocka_unit_test(refused_by_a_controller_that_goes_on_talking),
            cmocka_unit_test(refused_proposals),
            cmocka_unit_test(fenced_leader),
            cmocka_unit_test(one_refused_follower),
            cmocka_unit_test(no_replica_any_more),
            cmocka_unit_test(a_new_state_ends_a_proposal),
            cmocka_unit_test(followers_fetch),
            cmocka_unit_test(the_leader_writes_itself),
            cmocka_unit_test(a_note_without_room_is_written_again),
            cmocka_unit_test(a_note_that_is_taken_ends_the_wait),
            cmocka_unit_test(a_lost_answer_is_recognized),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
