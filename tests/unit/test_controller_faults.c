/* Whatever call of the environment fails or is the last one, and whoever writes at the same time: in the end the tree
 * and the disks are as if nothing had happened. Each scenario is run once to count its calls, then once for each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <string.h>
#include "tests/unit/controller_env.h"

#define REASSIGN "/admin/reassign_partitions"

struct scenario {
    const char *name;
    void (*prepare)(struct world *w);
    void (*act)(struct world *w);
    void (*mend)(struct world *w); /* what an operator would do then; may be NULL */
};

/* ---- the scenarios ---- */

static void two_topics(struct world *w)
{
    world_topic(w, "a", "{\"0\":[1,2],\"1\":[2,3]}");
    world_topic(w, "b", "{\"0\":[3,1]}");
    world_create(w, "/config/topics/a", "{\"version\":1,\"config\":{}}");
    world_settle(w);
}

static void nothing(struct world *w)
{
}

static void create(struct world *w)
{
    two_topics(w);
}

static void delete_one(struct world *w)
{
    world_mark(w, "a");
    world_settle(w);
}

static void expand(struct world *w)
{
    world_set(w, "/brokers/topics/b", "{\"version\":1,\"partitions\":{\"0\":[3,1],\"1\":[1],\"2\":[2,1]}}");
    world_settle(w);
}

static void fail_and_return(struct world *w)
{
    world_kill(w, 2);
    world_settle(w);
    world_start(w, 2);
    world_settle(w);
}

static void reelect(struct world *w)
{
    world_delete(w, "/controller");
    world_settle(w);
}

static void reassign(struct world *w)
{
    world_create(w, REASSIGN,
            "{\"version\":1,\"partitions\":[{\"topic\":\"a\",\"partition\":0,\"replicas\":[3,2]},"
            "{\"topic\":\"b\",\"partition\":0,\"replicas\":[2]}]}");
    world_settle(w);
}

static void reassign_and_delete(struct world *w)
{
    world_kill(w, 3);
    world_settle(w);
    world_create(w, REASSIGN, "{\"version\":1,\"partitions\":[{\"topic\":\"a\",\"partition\":0,\"replicas\":[3,2]}]}");
    world_mark(w, "a");
    world_settle(w);
    world_start(w, 3);
    world_settle(w);
}

static void delete_with_dead_broker(struct world *w)
{
    world_kill(w, 3);
    world_settle(w);
    world_mark(w, "a");
    world_settle(w);
    world_start(w, 3);
    world_settle(w);
}

static void prefer(struct world *w)
{
    world_kill(w, 2);
    world_settle(w);
    world_start(w, 2);
    world_settle(w);
    world_create(w, "/admin/preferred_replica_election",
            "{\"version\":1,\"partitions\":[{\"topic\":\"a\",\"partition\":1},{\"topic\":\"a\",\"partition\":0}]}");
    world_settle(w);
}

/* Every broker once more: what could not be written is done at the latest now. */
static void bounce_all(struct world *w)
{
    for (int i = 1; i <= 3; i++) {
        world_kill(w, i);
        world_settle(w);
        world_start(w, i);
        world_settle(w);
    }
}

static const struct scenario scenarios[] = {
        {"create", nothing, create, bounce_all},
        {"delete", two_topics, delete_one, bounce_all},
        {"expand", two_topics, expand, bounce_all},
        {"fail and return", two_topics, fail_and_return, bounce_all},
        {"reelect", two_topics, reelect, bounce_all},
        {"reassign", two_topics, reassign, bounce_all},
        {"reassign and delete", two_topics, reassign_and_delete, bounce_all},
        {"delete with a dead broker", two_topics, delete_with_dead_broker, bounce_all},
        {"prefer", two_topics, prefer, bounce_all},
};

/* ---- running them ---- */

/* Everything that has to be the same: the tree but for what an extra election changes (leaders and order of in-sync
 * sets), and the directories. */
static char *outcome(struct world *w)
{
    g_autofree char *tree = world_tree(w);
    g_autofree char *dirs = world_dirs(w);
    g_autoptr(GRegex) leader = g_regex_new("\"leader\":[0-9]+", 0, 0, NULL);
    g_autoptr(GRegex) one = g_regex_new("\"isr\":\\[[0-9,]*\\]", 0, 0, NULL);
    g_autofree char *no_leader = g_regex_replace(leader, tree, -1, 0, "\"leader\":*", 0, NULL);
    g_autofree char *text = g_regex_replace(one, no_leader, -1, 0, "\"isr\":*", 0, NULL);
    return g_strdup_printf("%s%s\n", text, dirs);
}

static uint64_t run_clean(const struct scenario *s, char **ret_outcome)
{
    struct world *w = world_of_three(NULL);
    s->prepare(w);
    world_arm(w, FAULT_FAIL, UINT64_MAX, 0); /* counts only */
    s->act(w);
    uint64_t calls = w->calls;
    world_arm(w, FAULT_NONE, 0, 0);
    s->mend(w);
    *ret_outcome = outcome(w);
    expect_not_said(w->error_log, "could not");
    world_free(w);
    return calls;
}

static void run_with(const struct scenario *s, enum fault fault, uint64_t call, int rc, const char *want)
{
    struct world *w = world_of_three(NULL);
    s->prepare(w);
    world_arm(w, fault, call, rc);
    s->act(w);
    world_arm(w, FAULT_NONE, 0, 0);
    s->mend(w);
    g_autofree char *got = outcome(w);
    if (strcmp(got, want) != 0) {
        g_printerr("%s\nwanted:\n%s\nevents:\n%s\nerrors:\n%s\n", got, want, w->event_log->str, w->error_log->str);
        fail_msg("%s, fault %d rc %d at call %" PRIu64, s->name, fault, rc, call);
    }
    assert_non_null(world_active(w));
    world_free(w);
}

static void each_call(enum fault fault, int rc)
{
    for (size_t i = 0; i < G_N_ELEMENTS(scenarios); i++) {
        char *want = NULL;
        uint64_t calls = run_clean(&scenarios[i], &want);
        assert_in_range(calls, 1, 10000);
        for (uint64_t call = 1; call <= calls; call++) {
            run_with(&scenarios[i], fault, call, rc, want);
        }
        g_free(want);
    }
}

static void crash_after_each_call(void **state)
{
    each_call(FAULT_CRASH, 0);
}

static void no_space_at_each_call(void **state)
{
    each_call(FAULT_FAIL, ZSTORENOSPACE);
}

static void lost_answer_at_each_call(void **state)
{
    each_call(FAULT_FAIL, ZCONNECTIONLOSS);
}

static void conflict_at_each_call(void **state)
{
    each_call(FAULT_FAIL, ZBADVERSION);
}

/* A controller that steps down and cannot remove /controller, for want of space or because the answer is lost, does so
 * as soon as anything happens; nobody else could be elected. */
static void not_given_back(void **state)
{
    static const int errors[] = {ZSTORENOSPACE, ZCONNECTIONLOSS};
    for (size_t i = 0; i < G_N_ELEMENTS(errors); i++) {
        struct world *w = world_of_three(NULL);
        two_topics(w);
        world_set(w, "/controller_epoch", "20");
        world_settle(w);
        world_topic(w, "c", "{\"0\":[1]}");
        world_arm(w, FAULT_FAIL, 2, errors[i]); /* the first is the topic's, and fenced off */
        world_settle(w);
        expect_said(w->error_log, "cannot give it back");
        world_kill(w, 3);
        world_settle(w);
        assert_non_null(world_active(w));
        expect_data(w, "/controller_epoch", "^21$");
        expect_data(w, "/brokers/topics/a/partitions/1/state", "\"isr\":\\[2\\]");
        world_free(w);
    }
}

/* ---- another client ---- */

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
                world_set(w, "/brokers/topics/a/partitions/0/state", hand_state);
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
    moment_path = "/brokers/topics/a/partitions/0/state";
    moment_text = "\"leader\":3";
    hand_state = "{\"version\":1,\"leader\":1,\"leader_epoch\":1,\"controller_epoch\":1,\"isr\":[1]}";
    w->before_run = rewrite_by_hand;
    world_create(w, REASSIGN, "{\"version\":1,\"partitions\":[{\"topic\":\"a\",\"partition\":0,\"replicas\":[3]}]}");
    world_settle(w);
    assert_null(hand_state);
    expect_data(
            w, "/brokers/topics/a/partitions/0/state", "\"isr\":\\[3\\].*\"leader\":3|\"leader\":3.*\"isr\":\\[3\\]");
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
    world_create(w, REASSIGN, "{\"version\":1,\"partitions\":[{\"topic\":\"a\",\"partition\":0,\"replicas\":[1,3]}]}");
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
    world_create(w, REASSIGN, "{\"version\":1,\"partitions\":[{\"topic\":\"a\",\"partition\":0,\"replicas\":[1,3]}]}");
    world_settle(w);
    expect_state(w, "a", 0, "leader 1 epoch 1 isr 1");
    moment_path = "/brokers/topics/a/partitions/0/state";
    moment_text = "\"leader_epoch\":2";
    hand_state = "{\"version\":1,\"leader\":1,\"leader_epoch\":1,\"controller_epoch\":1,\"isr\":[1,3]}";
    w->before_run = rewrite_by_hand;
    world_set(w, REASSIGN, "{\"version\":1,\"partitions\":[{\"topic\":\"a\",\"partition\":0,\"replicas\":[1]}]}");
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
    world_create(w, REASSIGN, "{\"version\":1,\"partitions\":[{\"topic\":\"a\",\"partition\":0,\"replicas\":[3]}]}");
    world_settle(w);
    expect_said(w->error_log, "/brokers/topics/a/partitions/0/state: the partition state could not be written");
    expect_data(w, "/brokers/topics/a/partitions/0/state", "\"leader\":3");
    expect_asked(w, "/.state/topics/a/0/replicas/3", "OnlineReplica\n");
    world_mark(w, "a");
    world_settle(w);
    expect_gone(w, "a");
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
    world_create(w, REASSIGN, "{\"version\":1,\"partitions\":[{\"topic\":\"a\",\"partition\":0,\"replicas\":[3]}]}");
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
            if (times > 0 && op->type == OP_DELETE && strcmp(op->path, "/brokers/topics/a/partitions/0/state") == 0) {
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
    delete_one(w);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(crash_after_each_call),
            cmocka_unit_test(no_space_at_each_call),
            cmocka_unit_test(lost_answer_at_each_call),
            cmocka_unit_test(conflict_at_each_call),
            cmocka_unit_test(not_given_back),
            cmocka_unit_test(states_written_at_the_same_time),
            cmocka_unit_test(the_target_leaves_the_in_sync_set),
            cmocka_unit_test(leads_before_it_is_new),
            cmocka_unit_test(in_sync_before_it_is_new),
            cmocka_unit_test(in_sync_when_it_is_dropped),
            cmocka_unit_test(partitions_added_at_the_same_time),
            cmocka_unit_test(nodes_come_and_go),
            cmocka_unit_test(topic_goes_while_it_is_created),
            cmocka_unit_test(topic_is_made_again_meanwhile),
            cmocka_unit_test(fenced_in_the_middle),
            cmocka_unit_test(fenced_from_another_epoch_of_that_version),
    };
    return cmocka_run_group_tests_name("controller faults", tests, NULL, NULL);
}
