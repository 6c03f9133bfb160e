/* Another client writes at the moment in which the controller does: states, topics, the controller epoch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <string.h>
#include "tests/unit/controller_env.h"

#define STATE_OF_A0 "/brokers/topics/a/partitions/0/state"

static void two_topics(struct world *w)
{
    world_topic(w, "a", "{\"0\":[1,2],\"1\":[2,3]}");
    world_topic(w, "b", "{\"0\":[3,1]}");
    world_create(w, "/config/topics/a", "{\"version\":1,\"config\":{}}");
    world_settle(w);
}

/* One replica on 1, and the reassignment to 3 and 2 is half done: 2 is down, 3 in sync. */
static struct world *world_half_moved(void)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1]}");
    world_settle(w);
    world_kill(w, 2);
    world_reassign(w, "a 0 3,2");
    world_settle(w);
    expect_state(w, "a", 0, "leader 1 epoch 1 isr 1,3");
    return w;
}

static int times;

/* Rewrites the state that the controller is about to write. */
static void rewrite_state(struct world *w, struct txn **txns, size_t n)
{
    for (size_t i = 0; i < n && times > 0; i++) {
        for (size_t k = 0; k < txns[i]->n_ops; k++) {
            const struct op *op = &txns[i]->ops[k];
            if (op->type == OP_SET && g_str_has_suffix(op->path, "/state") && times > 0) {
                g_autofree char *now = world_get(w, op->path);
                times--;
                world_set(w, op->path, now);
            }
        }
    }
}

static void states_written_at_the_same_time(void **state)
{
    struct world *w = world_of_three(NULL);
    two_topics(w);
    times = 6;
    w->before_run = rewrite_state;
    world_kill(w, 2);
    world_settle(w);
    assert_int_equal(times, 0);
    expect_state(w, "a", 0, "leader 1 epoch 1 isr 1");
    expect_state(w, "a", 1, "leader 3 epoch 1 isr 3");
    world_free(w);
}

/* While the controller does this for the first time ... */
static const char *moment_path, *moment_text;
/* ... a hand writes that state of a-0. */
static const char *hand_state;

static void rewrite_by_hand(struct world *w, struct txn **txns, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; hand_state && k < txns[i]->n_ops; k++) {
            const struct op *op = &txns[i]->ops[k];
            if (op->type == OP_SET && strcmp(op->path, moment_path) == 0 && strstr(op->data->data, moment_text)) {
                world_set(w, STATE_OF_A0, hand_state);
                hand_state = NULL;
            }
        }
    }
}

/* The leader is about to move to the target when a hand takes the target out of the in-sync set: what is to be removed
 * has the only data, and stays until the target is in sync again. */
static void the_target_leaves_the_in_sync_set(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1]}");
    world_settle(w);
    moment_path = STATE_OF_A0;
    moment_text = "\"leader\":3";
    hand_state = "{\"version\":1,\"leader\":1,\"leader_epoch\":1,\"controller_epoch\":1,\"isr\":[1]}";
    w->before_run = rewrite_by_hand;
    world_reassign(w, "a 0 3");
    world_settle(w);
    assert_null(hand_state);
    expect_data(w, STATE_OF_A0, "\"isr\":\\[3\\].*\"leader\":3|\"leader\":3.*\"isr\":\\[3\\]");
    expect_dirs(w, "3: a-0");
    assert_false(world_exists(w, REASSIGN));
    world_free(w);
}

/* A new replica is in sync before its first step is done. */
static void in_sync_before_it_is_new(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1]}");
    world_settle(w);
    moment_path = "/brokers/topics/a";
    moment_text = "\"adding_replicas\":{\"0\":[3]}";
    hand_state = "{\"version\":1,\"leader\":1,\"leader_epoch\":0,\"controller_epoch\":1,\"isr\":[1,3]}";
    w->before_run = rewrite_by_hand;
    world_reassign(w, "a 0 1,3");
    world_settle(w);
    assert_null(hand_state);
    expect_asked(w, "/.state/topics/a/0/replicas/3", "OnlineReplica\n");
    expect_not_said(w->event_log, "refused");
    expect_dirs(w, "1: a-0; 3: a-0");
    world_free(w);
}

/* The reassignment is called off, and the leader, which has not heard of it, takes in one that it had added. */
static void in_sync_when_it_is_dropped(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1]}");
    world_settle(w);
    world_kill(w, 3);
    world_reassign(w, "a 0 1,3");
    world_settle(w);
    expect_state(w, "a", 0, "leader 1 epoch 1 isr 1");
    moment_path = STATE_OF_A0;
    moment_text = "\"leader_epoch\":2";
    hand_state = "{\"version\":1,\"leader\":1,\"leader_epoch\":1,\"controller_epoch\":1,\"isr\":[1,3]}";
    w->before_run = rewrite_by_hand;
    world_reassign(w, "a 0 1");
    world_settle(w);
    assert_null(hand_state);
    expect_state(w, "a", 0, "leader 1 epoch 3 isr 1");
    expect_asked(w, "/.state/topics/a/0/replicas", "1");
    assert_false(world_exists(w, REASSIGN));
    world_free(w);
}

/* The first step of its reassignment has no room, and a new replica leads already when it comes to it: it is a replica
 * all the same, and goes with its topic. */
static void leads_before_it_is_new(void **state)
{
    struct world *w = world_of_three("unclean.leader.election.enable=true");
    world_topic(w, "a", "{\"0\":[2]}");
    world_settle(w);
    world_kill(w, 2);
    world_settle(w);
    world_arm(w, FAULT_FAIL, 2, ZSTORENOSPACE);
    world_reassign(w, "a 0 3");
    world_settle(w);
    expect_said(w->error_log, "/brokers/topics/a/partitions/0/state: the partition state could not be written");
    expect_data(w, STATE_OF_A0, "\"leader\":3");
    expect_asked(w, "/.state/topics/a/0/replicas/3", "OnlineReplica\n");
    world_mark(w, "a");
    world_settle(w);
    expect_gone(w, "a");
    world_free(w);
}

/* A request is called off, and what it had added is the only one in sync: a hand has just written so, and the
 * controller has not heard of it. It keeps what it has until another one is in sync. */
static void the_origin_has_left_the_in_sync_set(void **state)
{
    struct world *w = world_half_moved();
    w->broker[1].silent = true;
    world_reassign(w, "a 0 1");
    world_set(w, STATE_OF_A0, "{\"version\":1,\"leader\":3,\"leader_epoch\":2,\"controller_epoch\":1,\"isr\":[3]}");
    world_settle(w);
    expect_dirs(w, "1: a-0; 3: a-0");
    w->broker[1].silent = false;
    world_kill(w, 1);
    world_settle(w);
    world_start(w, 1);
    world_settle(w);
    expect_data(w, STATE_OF_A0, "\"leader\":1,.*\"isr\":\\[1\\]");
    expect_dirs(w, "1: a-0");
    assert_false(world_exists(w, REASSIGN));
    world_free(w);
}

/* The same in the very moment in which it is to go. */
static void the_last_in_sync_is_dropped(void **state)
{
    struct world *w = world_half_moved();
    moment_path = "/brokers/topics/a";
    moment_text = "\"removing_replicas\":{}";
    hand_state = "{\"version\":1,\"leader\":3,\"leader_epoch\":2,\"controller_epoch\":1,\"isr\":[3]}";
    w->before_run = rewrite_by_hand;
    world_reassign(w, "a 0 1");
    world_settle(w);
    assert_null(hand_state);
    expect_dirs(w, "1: a-0; 3: a-0");
    world_free(w);
}

/* Adds a partition to the topic whose node the controller is about to write. */
static void add_partition(struct world *w, struct txn **txns, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < txns[i]->n_ops; k++) {
            const struct op *op = &txns[i]->ops[k];
            if (op->type == OP_SET && strcmp(op->path, "/brokers/topics/a") == 0 && times > 0) {
                times--;
                world_set(w, op->path, "{\"version\":1,\"partitions\":{\"0\":[1,2],\"1\":[2,3],\"2\":[3]}}");
            }
        }
    }
}

static void partitions_added_at_the_same_time(void **state)
{
    struct world *w = world_of_three(NULL);
    times = 1;
    w->before_run = add_partition;
    two_topics(w);
    expect_state(w, "a", 1, "leader 2 epoch 0 isr 2,3");
    expect_state(w, "a", 2, "leader 3 epoch 0 isr 3");
    times = 1;
    world_reassign(w, "a 0 3");
    world_settle(w);
    assert_int_equal(times, 0);
    expect_data(w, "/brokers/topics/a", "\"partitions\":\\{\"0\":\\[3\\],\"1\":\\[2,3\\],\"2\":\\[3\\]\\}");
    assert_false(world_exists(w, REASSIGN));
    world_free(w);
}

/* Removes, or makes, nodes of a topic that the controller is about to delete or create. */
static void meddle(struct world *w, struct txn **txns, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < txns[i]->n_ops; k++) {
            const struct op *op = &txns[i]->ops[k];
            if (times > 0 && op->type == OP_DELETE && strcmp(op->path, STATE_OF_A0) == 0) {
                times--;
                world_delete(w, op->path);
                world_create(w, "/brokers/topics/a/partitions/1/note", "by hand");
            } else if (times > 0 && op->type == OP_CREATE && strcmp(op->path, "/brokers/topics/a/partitions/1") == 0) {
                times--;
                world_create(w, "/brokers/topics/a/partitions", NULL);
                world_create(w, "/brokers/topics/a/partitions/1", NULL);
            }
        }
    }
}

static void nodes_come_and_go(void **state)
{
    struct world *w = world_of_three(NULL);
    times = 1;
    w->before_run = meddle;
    two_topics(w);
    assert_int_equal(times, 0);
    expect_state(w, "a", 0, "leader 1 epoch 0 isr 1,2");
    expect_state(w, "a", 1, "leader 2 epoch 0 isr 2,3");
    times = 1;
    world_mark(w, "a");
    world_settle(w);
    assert_int_equal(times, 0);
    expect_gone(w, "a");
    world_free(w);
}

/* The topic goes while it is being created. */
static void remove_topic(struct world *w, struct txn **txns, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < txns[i]->n_ops; k++) {
            if (times > 0 && g_str_has_prefix(txns[i]->ops[k].path, "/brokers/topics/a")) {
                times--;
                world_delete_tree(w, "/brokers/topics/a");
            }
        }
    }
}

static void topic_goes_while_it_is_created(void **state)
{
    struct world *w = world_of_three(NULL);
    times = 1;
    w->before_run = remove_topic;
    two_topics(w);
    expect_state(w, "b", 0, "leader 3 epoch 0 isr 3,1");
    expect_asked(w, "/.state/topics", "b");
    world_free(w);
}

/* Makes the topic whose node is about to be written again, as another one; its node has the same version. */
static void make_again(struct world *w, struct txn **txns, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < txns[i]->n_ops; k++) {
            const struct op *op = &txns[i]->ops[k];
            if (times > 0 && op->type == OP_SET && strcmp(op->path, "/brokers/topics/a") == 0) {
                times--;
                world_delete_tree(w, "/brokers/topics/a");
                world_create(w, "/brokers/topics/a", "{\"version\":1,\"partitions\":{\"0\":[3]}}");
            }
        }
    }
}

static void topic_is_made_again_meanwhile(void **state)
{
    struct world *w = world_of_three(NULL);
    times = 1;
    w->before_run = make_again;
    two_topics(w);
    assert_int_equal(times, 0);
    expect_data(w, "/brokers/topics/a", "\"partitions\":\\{\"0\":\\[3\\]\\}");
    expect_state(w, "a", 0, "leader 3 epoch 0 isr 3");
    assert_false(world_exists(w, "/brokers/topics/a/partitions/1"));
    world_free(w);
}

/* Somebody else is elected in the middle: nothing more is written by the old one. */
static void usurp(struct world *w, struct txn **txns, size_t n)
{
    if (times-- == 1) {
        world_set(w, "/controller_epoch", "40");
    }
}

static void fenced_in_the_middle(void **state)
{
    for (int at = 1; at < 12; at++) {
        struct world *w = world_of_three(NULL);
        two_topics(w);
        times = at;
        w->before_run = usurp;
        world_kill(w, 2);
        world_mark(w, "b");
        world_settle(w);
        w->before_run = NULL;
        world_start(w, 2);
        world_settle(w);
        expect_gone(w, "b");
        expect_data(w, "/brokers/topics/a/partitions/1/state", "\"leader\":3,.*\"isr\":\\[3,2\\]");
        world_free(w);
    }
}

/* The epoch is removed and made again, and its node has the version that it had. */
static void usurp_with_the_same_version(struct world *w, struct txn **txns, size_t n)
{
    if (times-- == 1) {
        world_delete(w, "/controller_epoch");
        world_create(w, "/controller_epoch", "39");
        world_set(w, "/controller_epoch", "40");
        assert_int_equal(txns[0]->ops[0].version, 1);
    }
}

static void fenced_from_another_epoch_of_that_version(void **state)
{
    struct world *w = world_of_three(NULL);
    two_topics(w);
    times = 1;
    w->before_run = usurp_with_the_same_version;
    world_kill(w, 2);
    world_settle(w);
    expect_data(w, "/controller_epoch", "^41$");
    expect_data(w, "/brokers/topics/a/partitions/1/state", "\"controller_epoch\":41,");
    world_free(w);
}

/* Many partitions of one topic wait for a broker, and the topic's deletion for them: what is read when the broker comes
 * grows with their number, not with its square. */
static void deletion_behind_many_reassignments(void **state)
{
    enum { PARTITIONS = 300 };
    struct world *w = world_of_three(NULL);
    g_autoptr(GString) partitions = g_string_new("{"), entries = g_string_new(NULL);
    for (int i = 0; i < PARTITIONS; i++) {
        g_string_append_printf(partitions, "%s\"%d\":[1,2]", i ? "," : "", i);
        g_string_append_printf(entries, "%sa %d 1,3", i ? "; " : "", i);
    }
    g_string_append_c(partitions, '}');
    world_topic(w, "a", partitions->str);
    world_kill(w, 3);
    world_settle(w);
    world_reassign(w, entries->str);
    world_settle(w);
    world_mark(w, "a");
    world_settle(w);
    w->reads = 0;
    world_start(w, 3);
    world_settle(w);
    expect_gone(w, "a");
    if (w->reads > 100 * PARTITIONS) {
        fail_msg("%" PRIu64 " reads", w->reads);
    }
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(states_written_at_the_same_time),
            cmocka_unit_test(the_target_leaves_the_in_sync_set),
            cmocka_unit_test(in_sync_before_it_is_new),
            cmocka_unit_test(in_sync_when_it_is_dropped),
            cmocka_unit_test(leads_before_it_is_new),
            cmocka_unit_test(the_origin_has_left_the_in_sync_set),
            cmocka_unit_test(the_last_in_sync_is_dropped),
            cmocka_unit_test(partitions_added_at_the_same_time),
            cmocka_unit_test(nodes_come_and_go),
            cmocka_unit_test(topic_goes_while_it_is_created),
            cmocka_unit_test(topic_is_made_again_meanwhile),
            cmocka_unit_test(fenced_in_the_middle),
            cmocka_unit_test(fenced_from_another_epoch_of_that_version),
            cmocka_unit_test(deletion_behind_many_reassignments),
    };
    return cmocka_run_group_tests_name("controller clients", tests, NULL, NULL);
}
