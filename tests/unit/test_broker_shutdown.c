/* The broker core: controlled shutdown. */
#include "tests/unit/broker_fixture.h"

static void shuts_down(void **state)
{
    struct fixture *f = ready();

    live(f, "12");
    broker_shutdown(f->b, 1);
    struct broker_request *r = take_asked(f);
    assert_int_equal(r->api, API_CONTROLLED_SHUTDOWN);
    r->remaining = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(r->remaining, g_strdup("t-0"));
    broker_answered(f->b, r, 1);
    assert_int_equal(f->shut_down, 0);
    assert_int_equal(f->timers[BROKER_TIMER_CONTROLLED_SHUTDOWN], 5000);
    broker_timer(f->b, BROKER_TIMER_CONTROLLED_SHUTDOWN, 1);
    broker_answered(f->b, take_asked(f), 1);
    assert_int_equal(f->shut_down, 1);
    broker_shutdown(f->b, 1);
    assert_int_equal(f->shut_down, 1);
    destroy(f);
}

static void one_that_stops_does_not_come_back(void **state)
{
    struct fixture *f = ready();

    live(f, "12");
    leader_and_isr(f, (struct want){.leader = ME, .is_new = true});
    broker_shutdown(f->b, 1);
    assert_int_equal(leader_and_isr(f, (struct want){.leader = 2, .leader_epoch = 1, .isr = "2", .partition_epoch = 1}),
            KERR_NONE);
    assert_int_equal(view(f, "t", 0).role, REPLICA_FOLLOWER);
    assert_true(g_queue_is_empty(&f->fetches));
    destroy(f);
}

static void gives_up_after_its_retries(void **state)
{
    struct fixture *f = make("controlled.shutdown.max.retries=2");

    broker_loaded(f->b, 1);
    broker_shutdown(f->b, 1); /* no controller is known: that counts */
    assert_int_equal(f->shut_down, 0);
    live(f, "12");
    broker_timer(f->b, BROKER_TIMER_CONTROLLED_SHUTDOWN, 1);
    struct broker_request *r = take_asked(f);
    r->error = KERR_NOT_CONTROLLER;
    broker_answered(f->b, r, 1);
    assert_int_equal(f->shut_down, 1);
    destroy(f);
    f = make("controlled.shutdown.enable=false");
    broker_loaded(f->b, 1);
    broker_shutdown(f->b, 1);
    assert_int_equal(f->shut_down, 1);
    destroy(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(shuts_down),
            cmocka_unit_test(one_that_stops_does_not_come_back),
            cmocka_unit_test(gives_up_after_its_retries),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
