/* Partition states that a hand has removed, set back or copied: brokers may have later ones, others may not be theirs.
 * Whatever it was, the partition goes on, and so does what waits for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "tests/unit/controller_env.h"

#define STATE_OF_A0 "/brokers/topics/a/partitions/0/state"

/* a-0 on 1 and 2, whose leader epoch has been raised a few times. */
static struct world *world_of_some_age(void)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2]}");
    world_settle(w);
    for (int i = 0; i < 3; i++) {
        world_kill(w, 2);
        world_settle(w);
        world_start(w, 2);
        world_settle(w);
    }
    expect_state(w, "a", 0, "leader 1 epoch 3 isr 1,2");
    return w;
}

static void expect_hosted(struct world *w, int broker, const char *name, int32_t leader, int32_t leader_epoch)
{
    const struct hosted *h = g_hash_table_lookup(w->broker[broker].replicas, name);
    assert_non_null(h);
    assert_int_equal(h->leader, leader);
    assert_int_equal(h->leader_epoch, leader_epoch);
}

static void remove_state(struct world *w)
{
    world_delete(w, STATE_OF_A0);
    world_delete(w, "/controller");
    world_settle(w);
}

static void set_state(struct world *w, int leader, int leader_epoch, const char *isr)
{
    g_autofree char *text =
            g_strdup_printf("{\"version\":1,\"leader\":%d,\"leader_epoch\":%d,\"controller_epoch\":1,\"isr\":[%s]}",
                    leader, leader_epoch, isr);
    world_set(w, STATE_OF_A0, text);
    world_settle(w);
}

/* ---- leader epochs ---- */

static void removed_and_made_again(void **state)
{
    struct world *w = world_of_some_age();
    remove_state(w);
    expect_state(w, "a", 0, "leader 1 epoch 4 isr 1,2");
    expect_said(w->event_log, "partition a-0 broker 1 has leader epoch 3");
    expect_hosted(w, 1, "a-0", 1, 4);
    expect_hosted(w, 2, "a-0", 1, 4);
    world_free(w);
}

/* It waits for a reassignment, and that for brokers which know better than the new state. */
static void a_deletion_after_it(void **state)
{
    struct world *w = world_of_some_age();
    world_kill(w, 3);
    world_settle(w);
    world_reassign(w, "a 0 2,3");
    world_settle(w);
    remove_state(w);
    world_mark(w, "a");
    world_settle(w);
    assert_true(world_exists(w, REASSIGN));
    world_start(w, 3);
    world_settle(w);
    assert_false(world_exists(w, REASSIGN));
    expect_gone(w, "a");
    world_free(w);
}

/* The deletion waits for a reassignment that waits for a dead broker; then the state is removed, and nothing else
 * happens. */
static void removed_while_a_deletion_waits(void **state)
{
    struct world *w = world_of_some_age();
    world_kill(w, 3);
    world_settle(w);
    world_reassign(w, "a 0 1,2,3");
    world_settle(w);
    world_mark(w, "a");
    world_settle(w);
    expect_asked(w, "/.state/topics/a/deletion",
            "ineligible: broker 3 is not running (replica a-0); a-0 is being reassigned\n");
    world_delete(w, STATE_OF_A0);
    world_settle(w);
    expect_asked(w, "/.state/topics/a/deletion", "ineligible: broker 3 is not running (replica a-0)\n");
    world_free(w);
}

/* A replica that is called off again goes with the topic, although there is no epoch that could say so. */
static void removed_while_a_replica_is_called_off(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1]}");
    world_settle(w);
    world_reassign(w, "a 0 3,2");
    world_kill(w, 2);
    world_settle(w);
    expect_state(w, "a", 0, "leader 1 epoch 1 isr 1,3");
    world_kill(w, 3);
    world_settle(w);
    world_delete(w, STATE_OF_A0);
    world_reassign(w, "a 0 1,2");
    world_mark(w, "a");
    world_settle(w);
    world_start(w, 2);
    world_settle(w);
    world_start(w, 3);
    world_settle(w);
    expect_gone(w, "a");
    world_free(w);
}

/* In one step, however far it is. */
static void far_behind(void **state)
{
    struct world *w = world_of_some_age();
    set_state(w, 1, 1000000, "1,2");
    g_string_truncate(w->write_log, 0);
    remove_state(w);
    expect_state(w, "a", 0, "leader 1 epoch 1000001 isr 1,2");
    expect_hosted(w, 2, "a-0", 1, 1000001);
    const char *first = strstr(w->write_log->str, "set " STATE_OF_A0);
    assert_non_null(first);
    assert_null(strstr(first + 1, "set " STATE_OF_A0));
    world_free(w);
}

static void set_back(void **state)
{
    struct world *w = world_of_some_age();
    set_state(w, 2, 0, "1,2");
    expect_state(w, "a", 0, "leader 2 epoch 4 isr 1,2");
    expect_hosted(w, 1, "a-0", 2, 4);
    world_free(w);
}

static void another_leader_of_the_same_epoch(void **state)
{
    struct world *w = world_of_some_age();
    set_state(w, 2, 3, "1,2");
    expect_state(w, "a", 0, "leader 2 epoch 4 isr 1,2");
    expect_hosted(w, 1, "a-0", 2, 4);
    world_free(w);
}

/* It has the same epochs as the one that was removed, and fewer members: the leader must not take the others for in
 * sync. */
static void made_again_with_the_same_epochs(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2]}");
    world_settle(w);
    world_delete(w, STATE_OF_A0);
    world_kill(w, 2);
    world_settle(w);
    world_delete(w, "/controller");
    world_settle(w);
    expect_state(w, "a", 0, "leader 1 epoch 1 isr 1");
    world_start(w, 2);
    world_settle(w);
    expect_state(w, "a", 0, "leader 1 epoch 1 isr 1,2");
    world_free(w);
}

/* The same epochs and members, and a replica more: the leader has to know it, or takes it in never. */
static void made_again_with_another_replica(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1]}");
    world_settle(w);
    set_state(w, 1, 1, "1");
    world_delete(w, STATE_OF_A0);
    world_reassign(w, "a 0 1,3");
    world_settle(w);
    world_delete(w, "/controller");
    world_settle(w);
    expect_data(w, STATE_OF_A0, "\"isr\":\\[1,3\\]");
    assert_false(world_exists(w, REASSIGN));
    world_free(w);
}

/* Broker `broker` refuses what it was told of a-0. */
static void refuse(struct world *w, enum kafka_error error, int broker, int32_t leader, int32_t leader_epoch,
        int32_t partition_epoch, int32_t held)
{
    g_autofree char *data = world_get(w, "/brokers/topics/a");
    char id[23];
    g_strlcpy(id, strstr(data, "topic_id") + strlen("topic_id\":\""), sizeof(id));
    struct topic_ref *t = topic_ref_new("a", id);
    struct partition_state *s = partition_state_new(t, 0);
    topic_ref_unref(t);
    s->leader = leader;
    s->leader_epoch = leader_epoch;
    s->partition_epoch = partition_epoch;
    struct controller_event *e = controller_event_new(EVENT_CONTROL_RESPONSE);
    e->broker_id = broker;
    e->broker_epoch = w->broker[broker].epoch;
    e->request = control_request_new(API_LEADER_AND_ISR);
    e->request->controller_epoch = controller_epoch(world_active(w));
    g_ptr_array_add(e->request->partition_states, s);
    e->response = control_response_new(KERR_NONE);
    g_array_set_size(e->response->partition_errors, 1);
    control_response_fence(e->response, 0, error, held);
    world_tell(w, e);
    world_settle(w);
}

/* What counts is what the controller has when it hears of it. */
static void refused_and_changed_since(void **state)
{
    struct world *w = world_of_some_age();
    expect_state(w, "a", 0, "leader 1 epoch 3 isr 1,2"); /* version 6: 2 has come back */
    refuse(w, KERR_FENCED_LEADER_EPOCH, 1, 1, 3, 5, 3);  /* the leader has changed it itself */
    refuse(w, KERR_FENCED_LEADER_EPOCH, 2, 1, 1, 1, 2);  /* raised since */
    refuse(w, KERR_FENCED_LEADER_EPOCH, 2, 1, 2, 2, 3);  /* what it says is what the controller has now */
    expect_state(w, "a", 0, "leader 1 epoch 3 isr 1,2");
    refuse(w, KERR_NOT_LEADER_OR_FOLLOWER, 2, 1, 3, 5, 3); /* another leader: whatever members have come since */
    expect_state(w, "a", 0, "leader 1 epoch 4 isr 1,2");
    refuse(w, KERR_FENCED_LEADER_EPOCH, 2, 1, 0, 0, 9); /* a later epoch */
    expect_state(w, "a", 0, "leader 1 epoch 10 isr 1,2");
    /* the leader itself has another one, and the state has been rewritten since */
    refuse(w, KERR_NOT_LEADER_OR_FOLLOWER, 1, 1, 10, 0, 10);
    expect_state(w, "a", 0, "leader 1 epoch 11 isr 1,2");
    world_free(w);
}

/* There is no epoch above the last one: it is said, and nobody tries for ever. */
static void the_last_epoch(void **state)
{
    struct world *w = world_of_some_age();
    set_state(w, 1, INT32_MAX, "1,2");
    set_state(w, 2, INT32_MAX, "1,2");
    expect_said(w->error_log, "there is no leader epoch above that of broker 1");
    expect_state(w, "a", 0, "leader 2 epoch 2147483647 isr 1,2");
    world_mark(w, "a");
    world_settle(w);
    expect_gone(w, "a");
    world_free(w);
}

/* The raise finds no room: the next event does it. */
static void no_space_for_it(void **state)
{
    struct world *w = world_of_some_age();
    world_delete(w, STATE_OF_A0);
    world_delete(w, "/controller");
    while (!strstr(w->event_log->str, "ready epoch 2")) {
        assert_true(world_step(w));
    }
    world_arm(w, FAULT_FAIL, 1, ZSTORENOSPACE);
    while (!strstr(w->event_log->str, "has leader epoch 3")) {
        assert_true(world_step(w));
    }
    expect_state(w, "a", 0, "leader 1 epoch 0 isr 1,2");
    world_settle(w);
    expect_state(w, "a", 0, "leader 1 epoch 4 isr 1,2");
    world_free(w);
}

/* Brokers that have not heard of the raise still answer to what was before: once is enough. */
static void raised_once(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2,3]}");
    world_settle(w);
    set_state(w, 1, 7, "1,2,3");
    remove_state(w);
    expect_state(w, "a", 0, "leader 1 epoch 8 isr 1,2,3");
    world_free(w);
}

/* ---- what leaders propose ---- */

static enum kafka_error propose(
        struct world *w, const struct alter_partition *entries, size_t n, struct alter_partition *ret)
{
    struct broker_request *r = g_new0(struct broker_request, 1);
    r->api = API_ALTER_PARTITION;
    r->broker_id = 1;
    r->broker_epoch = w->broker[1].epoch;
    r->partitions = g_memdup2(entries, n * sizeof(*entries));
    r->n_partitions = n;
    return world_request(w, r, ret);
}

static struct alter_partition entry(const char *topic, int partition, int leader_epoch, int partition_epoch)
{
    static const int32_t one[] = {1};
    return (struct alter_partition){.topic = topic_ref_new(topic, ""),
            .partition = partition,
            .leader_epoch = leader_epoch,
            .partition_epoch = partition_epoch,
            .new_isr = broker_ids_new(one, 1)};
}

/* A leader that knows a later state: the partition goes on above it. */
static void a_leader_that_is_ahead(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2]}");
    world_settle(w);
    struct alter_partition answer, ahead = entry("a", 0, 5, 0);
    assert_int_equal(propose(w, &ahead, 1, &answer), KERR_NONE);
    assert_int_equal(answer.error, KERR_NOT_CONTROLLER);
    world_settle(w);
    expect_state(w, "a", 0, "leader 1 epoch 6 isr 1,2");
    struct alter_partition same_epoch = entry("a", 0, 6, 99);
    assert_int_equal(propose(w, &same_epoch, 1, &answer), KERR_NONE);
    assert_int_equal(answer.error, KERR_NOT_CONTROLLER);
    world_settle(w);
    expect_state(w, "a", 0, "leader 1 epoch 7 isr 1,2");
    struct alter_partition former = entry("a", 0, 6, 99); /* and not for ever */
    propose(w, &former, 1, &answer);
    world_settle(w);
    expect_state(w, "a", 0, "leader 1 epoch 7 isr 1,2");
    world_free(w);
}

/* The state of one partition is gone: those that are proposed with it are not held up. */
static void proposed_with_one_that_is_gone(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2],\"1\":[1,2],\"2\":[1,2]}");
    world_settle(w);
    world_delete(w, "/brokers/topics/a/partitions/1/state");
    world_settle(w);
    struct alter_partition answer, all[] = {entry("a", 0, 0, 0), entry("a", 1, 0, 0), entry("a", 2, 0, 0)};
    assert_int_equal(propose(w, all, G_N_ELEMENTS(all), &answer), KERR_NONE);
    assert_int_equal(answer.error, KERR_NONE);
    expect_said(w->event_log, "partition a-0 leader 1 epoch 0 isr 1\n");
    expect_said(w->event_log, "partition a-2 leader 1 epoch 0 isr 1\n");
    world_free(w);
}

/* ---- members that are no replicas ---- */

static void make_b(struct world *w, const char *pstate)
{
    world_create(w, "/brokers/topics/b", NULL);
    world_create(w, "/brokers/topics/b/partitions", NULL);
    world_create(w, "/brokers/topics/b/partitions/0", NULL);
    world_create(w, "/brokers/topics/b/partitions/0/state", pstate);
    world_settle(w);
}

/* What an earlier topic of that name has left. */
static void states_of_another_topic(void **state)
{
    struct world *w = world_of_three(NULL);
    make_b(w, "{\"version\":1,\"leader\":1,\"leader_epoch\":0,\"controller_epoch\":1,\"isr\":[1,2,3]}");
    world_set(w, "/brokers/topics/b", "{\"version\":1,\"partitions\":{\"0\":[2]}}");
    world_settle(w);
    expect_state(w, "b", 0, "leader 2 epoch 2 isr 2");
    world_reassign(w, "b 0 1");
    world_settle(w);
    assert_false(world_exists(w, REASSIGN));
    world_free(w);
}

static void states_of_other_brokers(void **state)
{
    struct world *w = world_of_three(NULL);
    make_b(w, "{\"version\":1,\"leader\":3,\"leader_epoch\":4,\"controller_epoch\":1,\"isr\":[3]}");
    world_set(w, "/brokers/topics/b", "{\"version\":1,\"partitions\":{\"0\":[1,2]}}");
    world_settle(w);
    expect_state(w, "b", 0, "leader 1 epoch 6 isr 1,2");
    world_free(w);
}

static void a_stranger_by_hand(void **state)
{
    struct world *w = world_of_some_age();
    set_state(w, 1, 4, "1,3");
    expect_state(w, "a", 0, "leader 1 epoch 5 isr 1,2");
    set_state(w, 3, 6, "3,2");
    expect_state(w, "a", 0, "leader 2 epoch 8 isr 2,1");
    world_free(w);
}

/* The topic's node was written, and its controller died; the next one may have no room to write that 3 is out. Until
 * that is written 3 keeps its directory. */
static void no_space_to_expel(void **state)
{
    for (uint64_t call = 1; call <= 60; call++) {
        struct world *w = world_of_three(NULL);
        world_topic(w, "a", "{\"0\":[1,3]}");
        world_settle(w);
        g_autofree char *topic = world_get(w, "/brokers/topics/a");
        g_autoptr(GRegex) replicas = g_regex_new("\\[1,3\\]", 0, 0, NULL);
        g_autofree char *moved = g_regex_replace_literal(replicas, topic, -1, 0, "[1,2]", 0, NULL);
        world_set(w, "/brokers/topics/a", moved);
        world_settle(w);
        world_arm(w, FAULT_FAIL, call, ZSTORENOSPACE);
        world_delete(w, "/controller");
        while (world_step(w)) {
            g_autofree char *now = world_get(w, STATE_OF_A0);
            bool in_sync = strstr(now, "\"isr\":[1,3]") || strstr(now, "\"isr\":[3]");
            assert_true(!in_sync || g_hash_table_contains(w->broker[3].replicas, "a-0"));
        }
        world_arm(w, FAULT_NONE, 0, 0);
        world_kill(w, 2);
        world_settle(w);
        world_start(w, 2);
        world_settle(w);
        expect_data(w, STATE_OF_A0, "\"isr\":\\[1,2\\]");
        expect_dirs(w, "1: a-0; 2: a-0");
        world_free(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(removed_and_made_again),
            cmocka_unit_test(a_deletion_after_it),
            cmocka_unit_test(removed_while_a_deletion_waits),
            cmocka_unit_test(removed_while_a_replica_is_called_off),
            cmocka_unit_test(far_behind),
            cmocka_unit_test(set_back),
            cmocka_unit_test(another_leader_of_the_same_epoch),
            cmocka_unit_test(made_again_with_the_same_epochs),
            cmocka_unit_test(made_again_with_another_replica),
            cmocka_unit_test(refused_and_changed_since),
            cmocka_unit_test(the_last_epoch),
            cmocka_unit_test(no_space_for_it),
            cmocka_unit_test(raised_once),
            cmocka_unit_test(a_leader_that_is_ahead),
            cmocka_unit_test(proposed_with_one_that_is_gone),
            cmocka_unit_test(states_of_another_topic),
            cmocka_unit_test(states_of_other_brokers),
            cmocka_unit_test(a_stranger_by_hand),
            cmocka_unit_test(no_space_to_expel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
