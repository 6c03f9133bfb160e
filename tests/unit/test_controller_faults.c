/* Whatever call of the environment fails or is the last one: in the end the tree and the disks are as if nothing had
 * happened. Each scenario is run once to count its calls, then once for each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "tests/unit/controller_env.h"

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
    world_reassign(w, "a 0 3,2; b 0 2");
    world_settle(w);
}

static void reassign_b(struct world *w)
{
    world_reassign(w, "b 0 2");
    world_settle(w);
}

static void reassign_and_delete(struct world *w)
{
    world_kill(w, 3);
    world_settle(w);
    world_reassign(w, "a 0 3,2");
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

/* The next event is that somebody adds a partition to the topic as he finds it; the controller stays. */
static void expand_b_and_bounce_3(struct world *w)
{
    g_autofree char *found = world_get(w, "/brokers/topics/b");
    g_autoptr(GString) text = g_string_new(found);
    g_string_replace(text, "]},\"topic_id\"", "],\"1\":[1]},\"topic_id\"", 1);
    world_set(w, "/brokers/topics/b", text->str);
    world_settle(w);
    world_kill(w, 3);
    world_settle(w);
    world_start(w, 3);
    world_settle(w);
}

static const struct scenario scenarios[] = {
        {"create", nothing, create, bounce_all},
        {"delete", two_topics, delete_one, bounce_all},
        {"expand", two_topics, expand, bounce_all},
        {"fail and return", two_topics, fail_and_return, bounce_all},
        {"reelect", two_topics, reelect, bounce_all},
        {"reassign", two_topics, reassign, bounce_all},
        {"reassign, then expand", two_topics, reassign_b, expand_b_and_bounce_3},
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

static void no_space_from_each_call_on(void **state)
{
    each_call(FAULT_FULL, ZSTORENOSPACE);
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

/* ---- what is not written yet ---- */

/* Reassigns a-0, whose replica on 3 is not in sync and does not answer, with that call failing for want of space. Until
 * the leader can know that 3 is no replica any more (epoch `epoch`), 3 is not told to remove anything. Later all is as
 * if there had been room. */
static bool removes_only_when_told(struct world *w, const char *entry, int epoch, uint64_t call)
{
    g_autofree char *text = g_strdup_printf("{\"version\":1,\"partitions\":[%s]}", entry);
    bool early = false;
    w->broker[3].silent = true;
    g_string_truncate(w->request_log, 0);
    world_arm(w, FAULT_FAIL, call, ZSTORENOSPACE);
    world_create(w, REASSIGN, text);
    world_set(w, REASSIGN, text);
    while (world_step(w)) {
        g_autofree char *now = world_state(w, "a", 0);
        int leader, written;
        assert_int_equal(sscanf(now, "leader %d epoch %d", &leader, &written), 2);
        early = early || (strstr(w->request_log->str, "StopReplica to 3:") && written < epoch);
    }
    world_arm(w, FAULT_NONE, 0, 0);
    w->broker[3].silent = false;
    world_kill(w, 2);
    world_settle(w);
    world_start(w, 2);
    world_settle(w);
    assert_false(world_exists(w, REASSIGN));
    expect_said(w->request_log, "StopReplica to 3: a-0");
    return !early;
}

/* The end of a reassignment that takes 3 away. */
static void no_space_to_tell_the_leader(void **state)
{
    for (uint64_t call = 1; call <= 12; call++) {
        struct world *w = world_of_three(NULL);
        world_topic(w, "a", "{\"0\":[1,3]}");
        world_settle(w);
        w->broker[3].silent = true;
        g_hash_table_remove_all(w->broker[3].replicas);
        world_set(w, "/brokers/topics/a/partitions/0/state",
                "{\"version\":1,\"leader\":1,\"leader_epoch\":1,\"controller_epoch\":1,\"isr\":[1]}");
        world_settle(w);
        if (!removes_only_when_told(w, "{\"topic\":\"a\",\"partition\":0,\"replicas\":[1]}", 2, call)) {
            fail_msg("call %" PRIu64 ": %s", call, w->event_log->str);
        }
        expect_asked(w, "/.state/topics/a/0/replicas", "1");
        world_free(w);
    }
}

/* The first step of one that replaces another, which had added 3. */
static void no_space_to_tell_of_a_replaced_one(void **state)
{
    for (uint64_t call = 1; call <= 12; call++) {
        struct world *w = world_of_three(NULL);
        world_topic(w, "a", "{\"0\":[1]}");
        world_settle(w);
        w->broker[3].silent = true;
        world_reassign(w, "a 0 1,3");
        world_settle(w);
        world_kill(w, 2);
        world_settle(w);
        expect_state(w, "a", 0, "leader 1 epoch 1 isr 1");
        if (!removes_only_when_told(w, "{\"topic\":\"a\",\"partition\":0,\"replicas\":[1,2]}", 2, call)) {
            fail_msg("call %" PRIu64 ": %s", call, w->event_log->str);
        }
        expect_asked(w, "/.state/topics/a/0/replicas", "1 2");
        world_free(w);
    }
}

/* The end of a reassignment could not be written, nor the next one of its topic, which was then called off: the first
 * is written when there is room. */
static void no_space_for_two_reassignments(void **state)
{
    for (uint64_t call = 1; call <= 10; call++) {
        struct world *w = world_of_three(NULL);
        world_topic(w, "a", "{\"0\":[1,2],\"1\":[1,2]}");
        world_settle(w);
        world_arm(w, FAULT_FULL, call, ZSTORENOSPACE);
        world_reassign(w, "a 0 1");
        world_settle(w);
        world_arm(w, FAULT_FULL, 1, ZSTORENOSPACE);
        world_delete(w, REASSIGN);
        world_reassign(w, "a 1 1");
        world_settle(w);
        world_delete(w, REASSIGN);
        world_arm(w, FAULT_NONE, 0, 0);
        world_kill(w, 3);
        world_settle(w);
        world_start(w, 3);
        world_settle(w);
        g_autofree char *in_memory = world_ask(w, "/.state/topics/a/0/replicas");
        g_autofree char *want =
                g_strdup_printf("\"partitions\":\\{\"0\":\\[%s\\],", strchr(in_memory, '2') ? "1,2" : "1");
        expect_data(w, "/brokers/topics/a", want);
        expect_data(w, "/brokers/topics/a", "\"removing_replicas\":\\{\\}");
        world_free(w);
    }
}

/* The request is not called done, nor impossible: it is carried out when there is room. */
static void no_space_for_a_preferred_election(void **state)
{
    static const char path[] = "/admin/preferred_replica_election";
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2]}");
    world_settle(w);
    world_kill(w, 1);
    world_settle(w);
    world_start(w, 1);
    world_settle(w);
    expect_state(w, "a", 0, "leader 2 epoch 2 isr 2,1");
    world_arm(w, FAULT_FULL, 1, ZSTORENOSPACE);
    world_create(w, path, "{\"version\":1,\"partitions\":[{\"topic\":\"a\",\"partition\":0}]}");
    world_settle(w);
    assert_true(world_exists(w, path));
    expect_said(w->error_log, "the partition state could not be written");
    expect_not_said(w->error_log, "PREFERRED_LEADER_NOT_AVAILABLE");
    world_arm(w, FAULT_NONE, 0, 0);
    world_kill(w, 3);
    world_settle(w);
    expect_state(w, "a", 0, "leader 1 epoch 3 isr 2,1");
    assert_false(world_exists(w, path));
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(crash_after_each_call),
            cmocka_unit_test(no_space_at_each_call),
            cmocka_unit_test(no_space_from_each_call_on),
            cmocka_unit_test(lost_answer_at_each_call),
            cmocka_unit_test(conflict_at_each_call),
            cmocka_unit_test(not_given_back),
            cmocka_unit_test(no_space_to_tell_the_leader),
            cmocka_unit_test(no_space_to_tell_of_a_replaced_one),
            cmocka_unit_test(no_space_for_two_reassignments),
            cmocka_unit_test(no_space_for_a_preferred_election),
    };
    return cmocka_run_group_tests_name("controller faults", tests, NULL, NULL);
}
