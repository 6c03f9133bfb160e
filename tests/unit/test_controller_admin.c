/* What operators and brokers ask for: reassignment, elections, notifications, failing disks, AlterPartition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "tests/unit/controller_env.h"

#define PREFERRED "/admin/preferred_replica_election"

static void put(struct world *w, const char *path, const char *data)
{
    if (world_create(w, path, data) == ZNODEEXISTS) {
        world_set(w, path, data);
    }
}

static void reassign(struct world *w, const char *entries)
{
    world_reassign(w, entries);
    world_settle(w);
}

/* ---- reassignment ---- */

static void reassign_two(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2],\"1\":[2]}");
    world_settle(w);
    reassign(w, "a 0 3,2; a 1 1");
    assert_false(world_exists(w, REASSIGN));
    expect_state(w, "a", 0, "leader 3 epoch 3 isr 2,3");
    expect_state(w, "a", 1, "leader 1 epoch 3 isr 1");
    expect_data(
            w, "/brokers/topics/a", "\"removing_replicas\":\\{\\},\"partitions\":\\{\"0\":\\[3,2\\],\"1\":\\[1\\]\\}");
    expect_dirs(w, "1: a-1; 2: a-0; 3: a-0");
    expect_asked(w, "/.state/topics/a/0/assignment", "3,2\n");
    expect_asked(w, "/.state/topics/a/0/replicas", "2 3");
    assert_string_equal(w->error_log->str, "");
    world_free(w);
}

static void reassign_waits_for_a_broker(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2]}");
    world_settle(w);
    world_kill(w, 3);
    world_settle(w);
    reassign(w, "a 0 3,2");
    expect_state(w, "a", 0, "leader 1 epoch 1 isr 1,2");
    expect_data(w, "/brokers/topics/a",
            "\\{\"removing_replicas\":\\{\"0\":\\[1\\]\\},\"partitions\":\\{\"0\":\\[3,2,1\\]\\}");
    expect_asked(w, "/.state/topics/a/0/adding", "3\n");
    expect_asked(w, "/.state/topics/a/0/removing", "1\n");
    /* across a takeover */
    world_delete(w, "/controller");
    world_settle(w);
    expect_state(w, "a", 0, "leader 1 epoch 2 isr 1,2");
    world_start(w, 3);
    world_settle(w);
    expect_state(w, "a", 0, "leader 3 epoch 5 isr 2,3");
    expect_asked(w, "/.state/topics/a/0/adding", "");
    expect_dirs(w, "2: a-0; 3: a-0");
    assert_false(world_exists(w, REASSIGN));
    world_free(w);
}

static void reassign_only_the_order(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2,3]}");
    world_settle(w);
    reassign(w, "a 0 3,1,2");
    expect_state(w, "a", 0, "leader 1 epoch 1 isr 1,2,3");
    expect_data(w, "/brokers/topics/a", "\"partitions\":\\{\"0\":\\[3,1,2\\]\\}");
    assert_false(world_exists(w, REASSIGN));
    world_free(w);
}

static void reassign_taken_back(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2]}");
    world_settle(w);
    reassign(w, "a 0 9,2");
    expect_asked(w, "/.state/topics/a/0/adding", "9\n");
    expect_said(w->error_log, "a-0 waits for brokers that are not running: 9");
    assert_true(world_exists(w, REASSIGN));
    world_delete(w, REASSIGN);
    reassign(w, "a 0 1,2");
    expect_data(w, "/brokers/topics/a", "\"partitions\":\\{\"0\":\\[1,2\\]\\}.*\"adding_replicas\":\\{\\}");
    assert_false(world_exists(w, REASSIGN));
    expect_dirs(w, "1: a-0; 2: a-0");
    /* the file written over */
    reassign(w, "a 0 9,2");
    reassign(w, "a 0 3,2");
    assert_false(world_exists(w, REASSIGN));
    expect_dirs(w, "2: a-0; 3: a-0");
    world_free(w);
}

static void reassign_verdicts(void **state)
{
    static const struct {
        const char *entry, *why;
    } table[] = {
            {"ghost 0 1", "ghost-0 is left out"},
            {"a 7 1", "a-7 is left out"},
            {"a 1 ", "a-1 is left out"},
            {"a 1 1,1", "a-1 is left out"},
            {"a 1 -5", "a-1 is left out"},
            {"dying 0 1", "dying-0 is left out: UNKNOWN_TOPIC_OR_PARTITION: the topic is being deleted"},
    };
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1],\"1\":[1]}");
    world_topic(w, "dying", "{\"0\":[3]}");
    world_settle(w);
    world_kill(w, 3);
    world_settle(w);
    world_mark(w, "dying");
    world_settle(w);
    for (size_t i = 0; i < G_N_ELEMENTS(table); i++) {
        int32_t target = i % 2 ? 1 : 2;
        g_autofree char *text = g_strdup_printf("%s; a 0 %d", table[i].entry, target);
        g_autofree char *want = g_strdup_printf("%d\n", target);
        g_string_truncate(w->error_log, 0);
        reassign(w, text);
        expect_said(w->error_log, table[i].why);
        expect_asked(w, "/.state/topics/a/0/assignment", want);
        expect_asked(w, "/.state/topics/a/1/assignment", "1\n");
        assert_false(world_exists(w, REASSIGN));
    }
    world_free(w);
}

static void reassign_broken_text(void **state)
{
    static const char *const bad[] = {"{\"version\":1,\"partitions\":[{\"topic\":\"a\"", "[]", "\"x\"", "null", "",
            "{\"version\":1}", "{\"version\":1,\"partitions\":{\"a\":[2]}}",
            "{\"version\":1,\"partitions\":[{\"topic\":\"a\"}]}"};
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1]}");
    world_settle(w);
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        put(w, REASSIGN, bad[i]);
        world_settle(w);
        expect_asked(w, "/.state/topics/a/0/assignment", "1\n");
        assert_true(world_exists(w, REASSIGN));
        if (i % 2) {
            world_delete(w, REASSIGN);
        }
        int32_t target = 2 + (int32_t)i % 2;
        g_autofree char *text = g_strdup_printf("a 0 %d; a 0 1", target);
        reassign(w, text); /* of two entries the last counts */
        assert_false(world_exists(w, REASSIGN));
        expect_asked(w, "/.state/topics/a/0/assignment", "1\n");
    }
    reassign(w, "a 0 2");
    expect_dirs(w, "2: a-0");
    world_free(w);
}

static void reassign_then_delete(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1]}");
    world_settle(w);
    world_kill(w, 3);
    world_settle(w);
    reassign(w, "a 0 3");
    world_mark(w, "a");
    world_settle(w);
    expect_state(w, "a", 0, "leader 1 epoch 1 isr 1");
    expect_dirs(w, "1: a-0");
    expect_asked(w, "/.state/topics/a/deletion",
            "ineligible: broker 3 is not running (replica a-0); a-0 is being reassigned\n");
    world_start(w, 3);
    world_settle(w);
    expect_gone(w, "a");
    expect_dirs(w, "");
    assert_false(world_exists(w, REASSIGN));
    world_free(w);
}

static void delete_then_takeover_while_reassigning(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1]}");
    world_settle(w);
    world_kill(w, 3);
    world_settle(w);
    reassign(w, "a 0 3");
    world_mark(w, "a");
    world_settle(w);
    world_delete_tree(w, "/brokers/topics/a/partitions"); /* LinkedIn PR 596 */
    world_delete(w, "/controller");
    world_settle(w);
    assert_non_null(world_active(w));
    world_start(w, 3);
    world_settle(w);
    expect_gone(w, "a");
    expect_dirs(w, "");
    assert_false(world_exists(w, REASSIGN));
    world_free(w);
}

static void reassign_a_partition_that_never_started(void **state)
{
    struct world *w = world_of_three(NULL);
    world_kill(w, 3);
    world_settle(w);
    world_topic(w, "a", "{\"0\":[3]}");
    world_settle(w);
    expect_state(w, "a", 0, "none");
    reassign(w, "a 0 1,2");
    expect_state(w, "a", 0, "leader 1 epoch 1 isr 1,2");
    assert_false(world_exists(w, REASSIGN));
    world_free(w);
}

/* The request fails, as in Kafka; the others are carried out, and the next controller ends what it has begun. */
static void reassign_where_the_state_was_removed(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1],\"1\":[1]}");
    world_settle(w);
    world_delete(w, "/brokers/topics/a/partitions/0/state");
    world_settle(w);
    for (int i = 0; i < 2; i++) { /* the second time it has been begun already */
        reassign(w, "a 0 1,3; a 1 2");
        assert_false(world_exists(w, REASSIGN));
        expect_said(w->error_log, "a-0 is left out: its state was removed");
        expect_not_said(w->error_log, "a-1 is left out");
        g_string_truncate(w->error_log, 0);
    }
    expect_state(w, "a", 1, "leader 2 epoch 4 isr 2");
    expect_data(w, "/brokers/topics/a", "\"adding_replicas\":\\{\"0\":\\[3\\]\\}");
    world_delete(w, "/controller");
    world_settle(w);
    expect_state(w, "a", 0, "leader 1 epoch 1 isr 1,3");
    expect_data(w, "/brokers/topics/a", "\"adding_replicas\":\\{\\}");
    world_free(w);
}

static void topic_gone_while_reassigned(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1]}");
    world_topic(w, "b", "{\"0\":[1]}");
    world_settle(w);
    reassign(w, "a 0 9; b 0 8");
    world_delete_tree(w, "/brokers/topics/a");
    world_settle(w);
    expect_data(w, REASSIGN, "\\[\\{\"topic\":\"b\",\"partition\":0,\"replicas\":\\[8\\]\\}\\]");
    world_free(w);
}

/* The request was merged into an event that is queued before that of the topic. */
static void reassign_a_topic_that_is_not_known_yet(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1]}");
    world_settle(w);
    world_create(w, REASSIGN, "{\"version\":1,\"partitions\":[]}");
    world_create(w, PREFERRED, "{\"version\":1,\"partitions\":[]}");
    world_topic(w, "b", "{\"0\":[1]}");
    world_topic(w, "c", "{\"0\":[1]}");
    world_set(w, "/brokers/topics/a", "{\"version\":1,\"partitions\":{\"0\":[1],\"1\":[1]}}");
    world_set(w, PREFERRED, "{\"version\":1,\"partitions\":[{\"topic\":\"c\",\"partition\":0}]}");
    reassign(w, "b 0 2; a 1 3");
    expect_dirs(w, "1: a-0 c-0; 2: b-0; 3: a-1");
    assert_string_equal(w->error_log->str, "");
    world_free(w);
}

/* ---- elections ---- */

static void preferred(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2],\"1\":[2,1],\"2\":[3,1]}");
    world_settle(w);
    world_kill(w, 1);
    world_settle(w);
    expect_state(w, "a", 0, "leader 2 epoch 2 isr 2");
    world_start(w, 1);
    world_settle(w);
    world_kill(w, 3);
    world_settle(w);
    put(w, PREFERRED,
            "{\"version\":1,\"partitions\":[{\"topic\":\"a\",\"partition\":0},{\"topic\":\"a\",\"partition\":1},"
            "{\"topic\":\"a\",\"partition\":2},{\"topic\":\"ghost\",\"partition\":0}]}");
    world_settle(w);
    expect_state(w, "a", 0, "leader 1 epoch 3 isr 2,1");
    expect_state(w, "a", 1, "leader 2 epoch 1 isr 2,1");
    assert_false(world_exists(w, PREFERRED));
    expect_said(w->error_log, "a-2: PREFERRED_LEADER_NOT_AVAILABLE");
    expect_said(w->error_log, "ghost-0: UNKNOWN_TOPIC_OR_PARTITION");
    world_free(w);
}

static void automatic_rebalance(void **state)
{
    struct world *w = world_of_three("leader.imbalance.check.interval.seconds=7");
    world_topic(w, "a", "{\"0\":[1,2],\"1\":[2,1]}");
    world_settle(w);
    assert_int_equal(w->broker[1].timer_ms, 5000);
    world_kill(w, 2);
    world_settle(w);
    world_start(w, 2);
    world_settle(w);
    expect_state(w, "a", 1, "leader 1 epoch 1 isr 1,2");
    world_fire_timer(w);
    expect_state(w, "a", 1, "leader 2 epoch 2 isr 1,2");
    assert_int_equal(w->broker[1].timer_ms, 7000);
    world_free(w);
}

static void rebalance_below_the_limit(void **state)
{
    struct world *w = world_of_three("leader.imbalance.per.broker.percentage=50");
    world_topic(w, "a", "{\"0\":[2,1],\"1\":[2,1]}");
    world_settle(w);
    put(w, "/brokers/topics/a/partitions/0/state",
            "{\"controller_epoch\":1,\"leader\":1,\"version\":1,\"leader_epoch\":1,\"isr\":[2,1]}");
    world_settle(w);
    world_fire_timer(w);
    expect_state(w, "a", 0, "leader 1 epoch 1 isr 2,1"); /* half of them: not more than 50 percent */
    world_free(w);
}

static void unclean_by_topic_and_broker(void **state)
{
    struct world *w = world_of_three("unclean.leader.election.enable=false");
    world_topic(w, "a", "{\"0\":[2,3]}");
    world_topic(w, "b", "{\"0\":[2,3]}");
    world_settle(w);
    world_kill(w, 3);
    world_settle(w);
    world_kill(w, 2);
    world_settle(w);
    world_start(w, 3);
    world_settle(w);
    expect_state(w, "a", 0, "leader -1 epoch 2 isr 2");
    put(w, "/config/topics/a", "{\"version\":1,\"config\":{\"unclean.leader.election.enable\":\"TRUE\"}}");
    struct controller_event *e = controller_event_new(EVENT_UNCLEAN_ELECTION_ENABLE);
    e->names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_hash_table_add(e->names, g_strdup("a"));
    world_push(w, e);
    world_settle(w);
    expect_state(w, "a", 0, "leader 3 epoch 3 isr 3");
    expect_data(w, "/brokers/topics/a/partitions/0/state", "\"leader_recovery_state\":1");
    expect_state(w, "b", 0, "leader -1 epoch 2 isr 2");
    put(w, "/config/brokers/<default>", "{\"version\":1,\"config\":{\"unclean.leader.election.enable\":\"true\"}}");
    world_push(w, controller_event_new(EVENT_UNCLEAN_ELECTION_ENABLE));
    world_settle(w);
    expect_state(w, "b", 0, "leader -1 epoch 2 isr 2"); /* no broker has been told of it */
    w->broker[2].unclean_default = w->broker[3].unclean_default = true;
    world_push(w, controller_event_new(EVENT_UNCLEAN_ELECTION_ENABLE));
    world_settle(w);
    expect_state(w, "b", 0, "leader -1 epoch 2 isr 2"); /* the controller is another broker's */
    w->broker[1].unclean_default = true;
    put(w, "/config/topics/b", "{\"version\":1,\"config\":{\"unclean.leader.election.enable\":\" False\"}}");
    world_push(w, controller_event_new(EVENT_UNCLEAN_ELECTION_ENABLE));
    world_settle(w);
    expect_state(w, "b", 0, "leader -1 epoch 2 isr 2");
    put(w, "/config/topics/b", "{\"version\":1,\"config\":{}}");
    world_push(w, controller_event_new(EVENT_UNCLEAN_ELECTION_ENABLE));
    world_settle(w);
    expect_state(w, "b", 0, "leader 3 epoch 3 isr 3");
    world_free(w);
}

static void unreadable_topic_config(void **state)
{
    struct world *w = world_of_three("unclean.leader.election.enable=true");
    world_topic(w, "a", "{\"0\":[2,3]}");
    world_settle(w);
    put(w, "/config/topics/a", "not json");
    world_kill(w, 3);
    world_settle(w);
    world_kill(w, 2);
    world_settle(w);
    world_start(w, 3);
    world_settle(w);
    expect_state(w, "a", 0, "leader -1 epoch 2 isr 2"); /* that partition fails */
    expect_said(w->error_log, "/config/topics/a");
    world_free(w);
}

/* ---- notifications ---- */

static void isr_notification(void **state)
{
    struct world *w = world_of_three("inter.broker.protocol.version=2.6");
    world_topic(w, "a", "{\"0\":[1,2]}");
    world_settle(w);
    expect_data(w, "/feature", "\"status\":0");
    expect_data(w, "/brokers/topics/a", "^\\{\"version\":1,\"partitions\":\\{\"0\":\\[1,2\\]\\}\\}$"); /* no id */
    put(w, "/brokers/topics/a/partitions/0/state",
            "{\"controller_epoch\":1,\"leader\":1,\"version\":1,\"leader_epoch\":0,\"isr\":[1]}");
    put(w, "/isr_change_notification/isr_change_0000000000",
            "{\"version\":1,\"partitions\":[{\"topic\":\"a\",\"partition\":0}]}");
    g_string_truncate(w->request_log, 0);
    put(w, "/isr_change_notification/isr_change_0000000001", "rubbish");
    world_settle(w);
    expect_said(w->request_log, "UpdateMetadata to 3: a-0 leader 1");
    expect_said(w->error_log, "isr_change_0000000001");
    g_autofree char *left = world_get(w, "/isr_change_notification/isr_change_0000000000");
    assert_null(left);
    assert_false(world_exists(w, "/isr_change_notification/isr_change_0000000001"));
    /* the next change is made on what the leader wrote */
    world_kill(w, 1);
    world_settle(w);
    expect_state(w, "a", 0, "leader -1 epoch 1 isr 1");
    world_free(w);
}

/* ---- AlterPartition ---- */

static struct alter_partition *last_answer;
static struct alter_partition kept;

/* Sends a proposal of broker 1 for a-0 past the scripted brokers and keeps the answer. */
static enum kafka_error propose(struct world *w, int64_t broker_epoch, int leader_epoch, int partition_epoch,
        const int32_t *isr, size_t n, int8_t recovery, const char *topic_id)
{
    struct broker_request *r = g_new0(struct broker_request, 1);
    r->api = API_ALTER_PARTITION;
    r->broker_id = 1;
    r->broker_epoch = broker_epoch;
    r->partitions = g_new0(struct alter_partition, 1);
    r->n_partitions = 1;
    r->partitions[0] = (struct alter_partition){.topic = topic_ref_new("a", topic_id),
            .leader_epoch = leader_epoch,
            .partition_epoch = partition_epoch,
            .new_isr = broker_ids_new(isr, n),
            .leader_recovery_state = recovery};
    enum kafka_error error = world_request(w, r, &kept);
    last_answer = &kept;
    return error ? error : kept.error;
}

static void alter_partition_checks(void **state)
{
    static const int32_t both[] = {1, 2}, one[] = {1}, stranger[] = {1, 3}, dead[] = {1, 2}, headless[] = {2};
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2]}");
    world_settle(w);
    int64_t epoch = w->broker[1].epoch;
    assert_int_equal(propose(w, epoch - 1, 0, 0, one, 1, 0, ""), KERR_STALE_BROKER_EPOCH);
    assert_int_equal(propose(w, epoch, 0, 0, one, 1, 0, "AAAAAAAAAAAAAAAAAAAAAB"), KERR_UNKNOWN_TOPIC_ID);
    assert_int_equal(propose(w, epoch, 0, 0, both, 2, 0, ""), KERR_NONE); /* so already */
    assert_int_equal(propose(w, epoch, 0, 0, both, 2, 1, ""), KERR_INVALID_REQUEST);
    assert_int_equal(propose(w, epoch, 0, 0, one, 1, 1, ""), KERR_INVALID_REQUEST);
    assert_int_equal(propose(w, epoch, 0, 0, headless, 1, 0, ""), KERR_INVALID_REQUEST);
    assert_int_equal(propose(w, epoch, 0, 0, stranger, 2, 0, ""), KERR_INELIGIBLE_REPLICA);
    assert_int_equal(propose(w, epoch, 0, 0, one, 1, 0, ""), KERR_NONE);
    assert_int_equal(last_answer->result_partition_epoch, 1);
    expect_state(w, "a", 0, "leader 1 epoch 0 isr 1");
    assert_int_equal(propose(w, epoch, 0, 0, one, 1, 0, ""), KERR_NONE); /* a retry of what was done */
    assert_int_equal(propose(w, epoch, 0, 0, both, 2, 0, ""), KERR_INVALID_UPDATE_VERSION);
    world_settle(w); /* what the leader missed is told to it with a new epoch */
    expect_state(w, "a", 0, "leader 1 epoch 1 isr 1,2");
    world_kill(w, 2);
    world_settle(w);
    expect_state(w, "a", 0, "leader 1 epoch 2 isr 1");
    assert_int_equal(propose(w, epoch, 2, 4, dead, 2, 0, ""), KERR_INELIGIBLE_REPLICA);
    world_free(w);
}

static void alter_partition_fenced(void **state)
{
    static const int32_t one[] = {1};
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2]}");
    world_settle(w);
    world_kill(w, 2);
    world_settle(w);
    world_start(w, 2);
    world_settle(w);
    assert_int_equal(propose(w, w->broker[1].epoch, 0, 0, one, 1, 0, ""), KERR_FENCED_LEADER_EPOCH);
    world_free(w);
}

/* ---- the partition state rewritten by hand ---- */

static void state_rewritten(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2]}");
    world_settle(w);
    put(w, "/brokers/topics/a/partitions/0/state",
            "{\"controller_epoch\":1,\"leader\":2,\"version\":1,\"leader_epoch\":7,\"isr\":[2,1]}");
    world_settle(w);
    expect_state(w, "a", 0, "leader 2 epoch 7 isr 2,1");
    assert_int_equal(GPOINTER_TO_INT(g_hash_table_lookup(w->broker[3].metadata, "a-0")), 2);
    put(w, "/brokers/topics/a/partitions/0/state",
            "{\"controller_epoch\":1,\"leader\":-1,\"version\":1,\"leader_epoch\":8,\"isr\":[1]}");
    world_settle(w);
    expect_state(w, "a", 0, "leader 1 epoch 9 isr 1,2");
    world_free(w);
}

static void metrics(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,3],\"1\":[3]}");
    world_settle(w);
    world_kill(w, 3);
    world_settle(w);
    world_mark(w, "a");
    world_topic(w, "b", "{\"0\":[3,1]}");
    world_topic(w, "c", "{\"0\":[3]}"); /* never led: a NewPartition, not an offline one */
    world_settle(w);
    g_autofree char *text = world_ask(w, "/.state/metrics");
    static const char *const lines[] = {"\nkafka_controller_kafkacontroller_activecontrollercount 1\n",
            "\nkafka_controller_kafkacontroller_globaltopiccount 3\n",
            "\nkafka_controller_kafkacontroller_topicstodeletecount 1\n",
            "\nkafka_controller_kafkacontroller_topicsineligibletodeletecount 1\n",
            "\nkafka_controller_kafkacontroller_preferredreplicaimbalancecount 1\n",
            "\nkafka_controller_kafkacontroller_offlinepartitionscount 0\n"};
    for (size_t i = 0; i < G_N_ELEMENTS(lines); i++) {
        assert_non_null(strstr(text, lines[i]));
    }
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(reassign_two),
            cmocka_unit_test(reassign_waits_for_a_broker),
            cmocka_unit_test(reassign_only_the_order),
            cmocka_unit_test(reassign_taken_back),
            cmocka_unit_test(reassign_verdicts),
            cmocka_unit_test(reassign_broken_text),
            cmocka_unit_test(reassign_then_delete),
            cmocka_unit_test(delete_then_takeover_while_reassigning),
            cmocka_unit_test(reassign_a_partition_that_never_started),
            cmocka_unit_test(reassign_where_the_state_was_removed),
            cmocka_unit_test(topic_gone_while_reassigned),
            cmocka_unit_test(reassign_a_topic_that_is_not_known_yet),
            cmocka_unit_test(preferred),
            cmocka_unit_test(automatic_rebalance),
            cmocka_unit_test(rebalance_below_the_limit),
            cmocka_unit_test(unclean_by_topic_and_broker),
            cmocka_unit_test(unreadable_topic_config),
            cmocka_unit_test(isr_notification),
            cmocka_unit_test(alter_partition_checks),
            cmocka_unit_test(alter_partition_fenced),
            cmocka_unit_test(state_rewritten),
            cmocka_unit_test(metrics),
    };
    return cmocka_run_group_tests_name("controller admin", tests, NULL, NULL);
}
