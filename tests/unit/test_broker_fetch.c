/* The broker core: fetches that reach a leader before it is one. They count when it becomes the leader of that epoch,
 * but not those of a topic that is gone, or of a broker that has left since. */
#include "tests/unit/broker_fixture.h"

static void a_fetch_may_come_early(void **state)
{
    struct fixture *f = ready();

    live(f, "12");
    fetch(f, 2, 55, 2);
    assert_int_equal(
            leader_and_isr(f, (struct want){.leader = ME, .leader_epoch = 2, .isr = "1", .is_new = true}), KERR_NONE);
    grant(f, take_asked(f));
    assert_int_equal(view(f, "t", 0).isr->n, 2);
    /* but not for the wrong epoch */
    fetch(f, 2, 55, 3);
    assert_int_equal(
            leader_and_isr(f, (struct want){.leader = ME, .leader_epoch = 4, .isr = "1", .partition_epoch = 20}),
            KERR_NONE);
    assert_true(g_queue_is_empty(&f->asked));
    /* earlier than two of them: a new controller sends what it finds, and then what it changes */
    fetch(f, 2, 55, 6);
    assert_int_equal(
            leader_and_isr(f, (struct want){.leader = ME, .leader_epoch = 5, .isr = "1", .partition_epoch = 21}),
            KERR_NONE);
    assert_true(g_queue_is_empty(&f->asked));
    assert_int_equal(
            leader_and_isr(f, (struct want){.leader = ME, .leader_epoch = 6, .isr = "1", .partition_epoch = 22}),
            KERR_NONE);
    grant(f, take_asked(f));
    assert_int_equal(view(f, "t", 0).isr->n, 2);
    destroy(f);
}

/* A follower has fetched from the leader of a topic that was deleted, and the new topic of that name is in the same
 * leader epoch. */
static void a_fetch_of_the_topic_before(void **state)
{
    struct fixture *f = ready();
    struct want of_new = {.id = ID_B, .leader = ME, .isr = "1", .is_new = true};

    live(f, "12");
    fetch(f, 2, 55, 0);
    assert_int_equal(leader_and_isr(f, of_new), KERR_NONE);
    assert_true(g_queue_is_empty(&f->asked));
    fetch(f, 2, 55, 0); /* it was under way for a long time */
    assert_true(g_queue_is_empty(&f->asked));
    destroy(f);
}

/* Without ids only the deletion tells one from the other. */
static void a_fetch_during_the_deletion(void **state)
{
    struct fixture *f = ready();
    struct want w = {.id = "", .leader = ME, .isr = "1", .is_new = true};

    live(f, "12");
    assert_int_equal(leader_and_isr(f, w), KERR_NONE);
    f->manual = true;
    stop_replica(f, "t", EPOCH_DURING_DELETE, true);
    fetch(f, 2, 55, 0);
    f->manual = false;
    do_disk(f);
    assert_int_equal(first_error(f), KERR_NONE);
    assert_int_equal(view(f, "t", 0).dir, -2);
    assert_int_equal(leader_and_isr(f, w), KERR_NONE);
    assert_true(g_queue_is_empty(&f->asked));
    fetch(f, 2, 55, 0);
    grant(f, take_asked(f));
    destroy(f);
}

/* It was under way when the topic had been deleted, and made again: only the topic's node tells. */
static void a_late_fetch_without_an_id(void **state)
{
    struct fixture *f = ready();
    struct want w = {.id = "", .leader = ME, .leader_epoch = 1, .isr = "1", .is_new = true};

    live(f, "12");
    fetch_without_id(f, 2, 1);
    g_hash_table_insert(f->tree, g_strdup("/brokers/topics/t"), bytes_from_string("{}"));
    f->tree_czxid = 7;
    assert_int_equal(leader_and_isr(f, w), KERR_NONE);
    assert_true(g_queue_is_empty(&f->asked));
    fetch_without_id(f, 2, 2);
    f->tree_czxid = 8;
    w.leader_epoch = 2;
    assert_int_equal(leader_and_isr(f, w), KERR_NONE);
    assert_true(g_queue_is_empty(&f->asked));
    stop_replica(f, "t", EPOCH_DURING_DELETE, true);
    /* of this one it is early, also where nothing is yet */
    w.leader_epoch = 1;
    fetch_without_id(f, 2, 1);
    assert_int_equal(leader_and_isr(f, w), KERR_NONE);
    grant(f, take_asked(f));
    fetch_without_id(f, 2, 2);
    w.leader_epoch = 2;
    w.partition_epoch = 1;
    assert_int_equal(leader_and_isr(f, w), KERR_NONE);
    grant(f, take_asked(f));
    destroy(f);
}

/* It may come back without what it had. */
static void a_follower_leaves_after_its_fetch(void **state)
{
    struct fixture *f = ready();

    live(f, "123");
    fetch(f, 2, 55, 2);
    fetch(f, 3, 66, 2);
    f->registered[2] = 54;
    live(f, "13");
    live(f, "123");
    assert_int_equal(
            leader_and_isr(
                    f, (struct want){.leader = ME, .leader_epoch = 2, .isr = "1", .replicas = "123", .is_new = true}),
            KERR_NONE);
    struct broker_request *r = take_asked(f);
    assert_int_equal(r->partitions[0].new_isr->n, 2);
    assert_int_equal(r->partitions[0].new_isr->id[1], 3);
    grant(f, r);
    destroy(f);
}

/* It was bounced, and its new incarnation is faster than the news of it: its fetch counts, or nobody would know of it
 * until its next one, a second later. */
static void news_of_a_death_come_after_the_next_life(void **state)
{
    struct fixture *f = ready();

    live(f, "123");
    f->registered[2] = 55;
    fetch(f, 2, 55, 2); /* early */
    live(f, "13");
    assert_int_equal(
            leader_and_isr(
                    f, (struct want){.leader = ME, .leader_epoch = 2, .isr = "1", .replicas = "123", .is_new = true}),
            KERR_NONE);
    assert_true(g_queue_is_empty(&f->asked));
    live(f, "1");
    live(f, "12");
    struct broker_request *r = take_asked(f);
    assert_int_equal(r->partitions[0].new_isr->id[1], 2);
    assert_int_equal(r->partitions[0].new_isr_epochs[1], 55);
    grant(f, r);
    destroy(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_fetch_may_come_early),
            cmocka_unit_test(a_fetch_of_the_topic_before),
            cmocka_unit_test(a_fetch_during_the_deletion),
            cmocka_unit_test(a_late_fetch_without_an_id),
            cmocka_unit_test(a_follower_leaves_after_its_fetch),
            cmocka_unit_test(news_of_a_death_come_after_the_next_life),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
