/* What a real Kafka does, step by step (scenarios of our own after its manner): states, directories, marks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "tests/unit/controller_env.h"

static void first_election(void **state)
{
    struct world *w = world_of_three(NULL);
    expect_data(w, "/controller", "\"brokerid\":1");
    expect_data(w, "/controller_epoch", "^1$");
    expect_data(w, "/feature", "\"status\":1");
    expect_asked(w, "/.state/controller/broker", "1\n");
    expect_asked(w, "/.state/controller/epoch", "1\n");
    world_free(w);
}

static void create_topics(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2],\"1\":[2,3]}");
    world_settle(w);
    expect_state(w, "a", 0, "leader 1 epoch 0 isr 1,2");
    expect_state(w, "a", 1, "leader 2 epoch 0 isr 2,3");
    expect_data(w, "/brokers/topics/a", "\"topic_id\":\"[A-Za-z0-9_-]{22}\"");
    expect_dirs(w, "1: a-0; 2: a-0 a-1; 3: a-1");
    expect_asked(w, "/.state/topics", "a");
    expect_asked(w, "/.state/topics/a", "deletion 0 1");
    expect_asked(w, "/.state/topics/a/0/state", "OnlinePartition\n");
    expect_asked(w, "/.state/topics/a/1/replicas/3", "OnlineReplica\n");
    expect_asked(w, "/.state/topics/a/1/assignment", "2,3\n");
    expect_asked(w, "/.state/topics/a/deletion", "none\n");
    expect_asked(w, "/.state/topics/b/deletion", "No such file or directory");
    assert_string_equal(w->error_log->str, "");
    world_free(w);
}

static void broker_fails_and_returns(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2],\"1\":[2,1],\"2\":[3,2,1]}");
    world_settle(w);
    world_kill(w, 2);
    world_settle(w);
    expect_state(w, "a", 0, "leader 1 epoch 1 isr 1");
    expect_state(w, "a", 1, "leader 1 epoch 1 isr 1");
    expect_state(w, "a", 2, "leader 3 epoch 1 isr 3,1");
    expect_asked(w, "/.state/topics/a/0/replicas/2", "OfflineReplica\n");
    world_start(w, 2);
    world_settle(w);
    expect_state(w, "a", 0, "leader 1 epoch 1 isr 1,2");
    expect_state(w, "a", 1, "leader 1 epoch 1 isr 1,2");
    expect_state(w, "a", 2, "leader 3 epoch 1 isr 3,1,2");
    assert_string_equal(w->error_log->str, "");
    world_free(w);
}

static void bounce_in_one_event(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[2,1],\"1\":[1,2]}");
    world_settle(w);
    world_kill(w, 2);
    world_start(w, 2);
    world_settle(w);
    expect_state(w, "a", 0, "leader 1 epoch 1 isr 1,2");
    expect_state(w, "a", 1, "leader 1 epoch 1 isr 1,2");
    expect_asked(w, "/.state/topics/a/0/replicas/2", "OnlineReplica\n");
    world_free(w);
}

static void all_replicas_fail(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2]}");
    world_settle(w);
    world_kill(w, 2);
    world_settle(w);
    world_kill(w, 1);
    world_settle(w);
    expect_data(w, "/controller", "\"brokerid\":3");
    expect_state(w, "a", 0, "leader -1 epoch 2 isr 1");
    expect_asked(w, "/.state/topics/a/0/state", "OfflinePartition\n");
    world_start(w, 2);
    world_settle(w);
    expect_state(w, "a", 0, "leader -1 epoch 2 isr 1");
    world_start(w, 1);
    world_settle(w);
    expect_state(w, "a", 0, "leader 1 epoch 3 isr 1,2");
    world_free(w);
}

static void dead_at_creation(void **state)
{
    struct world *w = world_of_three(NULL);
    world_kill(w, 3);
    world_settle(w);
    world_topic(w, "b", "{\"0\":[3,1],\"1\":[3]}");
    world_settle(w);
    expect_state(w, "b", 0, "leader 1 epoch 0 isr 1");
    expect_state(w, "b", 1, "none");
    expect_asked(w, "/.state/topics/b/1/state", "NewPartition\n");
    world_start(w, 3);
    world_settle(w);
    expect_state(w, "b", 0, "leader 1 epoch 0 isr 1,3");
    expect_state(w, "b", 1, "leader 3 epoch 0 isr 3");
    world_free(w);
}

static void cluster_restarts_one_by_one(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2],\"1\":[2,3]}");
    world_settle(w);
    for (int i = 3; i >= 1; i--) {
        world_kill(w, i);
    }
    world_start(w, 1);
    world_settle(w);
    expect_state(w, "a", 0, "leader 1 epoch 1 isr 1");
    expect_state(w, "a", 1, "leader -1 epoch 2 isr 3");
    world_start(w, 2);
    world_settle(w);
    world_start(w, 3);
    world_settle(w);
    expect_state(w, "a", 0, "leader 1 epoch 1 isr 1,2");
    expect_state(w, "a", 1, "leader 3 epoch 3 isr 3,2");
    world_free(w);
}

static void broker_stops(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2],\"1\":[2,1],\"2\":[2,3,1]}");
    world_settle(w);
    world_stop(w, 2);
    expect_state(w, "a", 0, "leader 1 epoch 1 isr 1");
    expect_state(w, "a", 1, "leader 1 epoch 1 isr 1");
    expect_state(w, "a", 2, "leader 3 epoch 1 isr 3,1");
    world_settle(w);
    expect_state(w, "a", 0, "leader 1 epoch 1 isr 1");
    world_start(w, 2);
    world_settle(w);
    expect_state(w, "a", 2, "leader 3 epoch 1 isr 3,1,2");
    world_free(w);
}

static void expand(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2]}");
    world_settle(w);
    g_autofree char *before = world_get(w, "/brokers/topics/a");
    world_set(w, "/brokers/topics/a", "{\"version\":1,\"partitions\":{\"0\":[1,2],\"1\":[2,3],\"2\":[3,1]}}");
    world_settle(w);
    expect_state(w, "a", 1, "leader 2 epoch 0 isr 2,3");
    expect_state(w, "a", 2, "leader 3 epoch 0 isr 3,1");
    g_autofree char *id = g_strndup(strstr(before, "\"topic_id\""), 35);
    expect_data(w, "/brokers/topics/a", id); /* the one it had */
    world_free(w);
}

static void reelection(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2]}");
    world_settle(w);
    world_delete(w, "/controller");
    world_settle(w);
    assert_true(world_exists(w, "/controller"));
    expect_data(w, "/controller_epoch", "^2$");
    expect_state(w, "a", 0, "leader 1 epoch 0 isr 1,2");
    world_free(w);
}

/* A new controller reads the states that are its partitions', under their own names. */
static void reelection_among_strange_nodes(void **state)
{
    static const char *const names[] = {"00", "+0", "-0", "x", "2", "4294967296"};
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"1\":[1,2],\"0\":[2,1]}");
    world_settle(w);
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_strconcat("/brokers/topics/a/partitions/", names[i], NULL);
        g_autofree char *state_path = g_strconcat(path, "/state", NULL);
        world_create(w, path, NULL);
        world_create(
                w, state_path, "{\"controller_epoch\":1,\"leader\":3,\"version\":1,\"leader_epoch\":9,\"isr\":[3]}");
    }
    world_set(w, "/brokers/topics/a/partitions/1/state", "broken");
    world_delete(w, "/controller");
    world_settle(w);
    expect_state(w, "a", 0, "leader 2 epoch 0 isr 2,1");
    expect_asked(w, "/.state/topics/a/0/state", "OnlinePartition\n");
    expect_asked(w, "/.state/topics/a/1/state", "NewPartition\n");
    assert_int_equal(GPOINTER_TO_INT(g_hash_table_lookup(w->broker[3].metadata, "a-0")), 2);
    expect_said(w->error_log, "/brokers/topics/a/partitions/1/state");
    world_free(w);
}

/* More replicas than lie inside the partition. */
static void five_replicas(void **state)
{
    struct world *w = world_new(5, NULL);
    world_start_all(w);
    world_topic(w, "a", "{\"0\":[1,2,3,4,5]}");
    world_settle(w);
    world_kill(w, 4);
    world_settle(w);
    expect_state(w, "a", 0, "leader 1 epoch 1 isr 1,2,3,5");
    world_delete(w, "/controller");
    world_settle(w);
    expect_asked(w, "/.state/topics/a/0/replicas", "1 2 3 4 5");
    expect_asked(w, "/.state/topics/a/0/replicas/4", "OfflineReplica\n");
    expect_asked(w, "/.state/topics/a/0/replicas/5", "OnlineReplica\n");
    world_start(w, 4);
    world_mark(w, "a");
    world_settle(w);
    expect_gone(w, "a");
    expect_dirs(w, "");
    world_free(w);
}

static void delete_topic(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2],\"1\":[2,3]}");
    world_topic(w, "b", "{\"0\":[1]}");
    world_create(w, "/config/topics/a", "{\"version\":1,\"config\":{}}");
    world_settle(w);
    g_string_truncate(w->request_log, 0);
    world_mark(w, "a");
    world_settle(w);
    expect_gone(w, "a");
    expect_dirs(w, "1: b-0");
    expect_said(w->event_log, "topic a deletion started");
    expect_said(w->event_log, "topic a deletion completed");
    const char *metadata = strstr(w->request_log->str, "UpdateMetadata to 1: a-0 leader -2 a-1 leader -2");
    const char *stop = strstr(w->request_log->str, "StopReplica to 1: a-0 epoch -2\n");
    const char *delete = strstr(w->request_log->str, "StopReplica to 1: a-0 epoch -2 delete");
    assert_true(metadata && stop && delete &&metadata < stop && stop < delete);
    expect_not_said(w->request_log, "LeaderAndIsr");
    for (int i = 1; i <= 3; i++) {
        assert_false(g_hash_table_contains(w->broker[i].metadata, "a-0"));
        assert_true(g_hash_table_contains(w->broker[i].metadata, "b-0"));
    }
    assert_string_equal(w->error_log->str, "");
    world_free(w);
}

static void delete_waits_for_a_dead_broker(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,3],\"1\":[2,3]}");
    world_settle(w);
    world_kill(w, 3);
    world_settle(w);
    world_mark(w, "a");
    world_settle(w);
    expect_state(w, "a", 0, "leader -1 epoch 2 isr 1");
    expect_state(w, "a", 1, "leader -1 epoch 2 isr 2");
    expect_dirs(w, "3: a-0 a-1");
    expect_asked(w, "/.state/topics/a/deletion", "ineligible: broker 3 is not running (replicas a-0, a-1)\n");
    expect_asked(w, "/.state/topics/a/0/replicas/1", "ReplicaDeletionSuccessful\n");
    expect_asked(w, "/.state/topics/a/0/replicas/3", "OfflineReplica\n");
    expect_asked(w, "/.state/topics/a/0/state", "NonExistentPartition\n");
    /* A new controller sends LeaderAndIsr for what it finds, and a replica without a leader is made all the same
     * (KAFKA-1647): empty, and gone with the others. */
    world_delete(w, "/controller");
    world_settle(w);
    expect_state(w, "a", 0, "leader -1 epoch 2 isr 1");
    expect_dirs(w, "1: a-0; 2: a-1; 3: a-0 a-1");
    expect_asked(w, "/.state/topics/a/deletion", "ineligible: broker 3 is not running (replicas a-0, a-1)\n");
    world_start(w, 3);
    world_settle(w);
    expect_gone(w, "a");
    expect_dirs(w, "");
    world_free(w);
}

static void delete_disabled_and_unknown(void **state)
{
    struct world *w = world_of_three("delete.topic.enable=false");
    world_topic(w, "a", "{\"0\":[1,2]}");
    world_settle(w);
    world_mark(w, "a");
    world_mark(w, "ghost");
    world_settle(w);
    assert_false(world_exists(w, "/admin/delete_topics/a"));
    assert_false(world_exists(w, "/admin/delete_topics/ghost"));
    assert_true(world_exists(w, "/brokers/topics/a"));
    expect_said(w->error_log, "delete.topic.enable");
    expect_said(w->error_log, "ghost");
    /* on takeover too */
    world_mark(w, "a");
    world_delete(w, "/controller");
    world_settle(w);
    assert_false(world_exists(w, "/admin/delete_topics/a"));
    world_free(w);
}

static void delete_half_gone(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2],\"1\":[2,3]}");
    world_topic(w, "b", "{\"0\":[1]}");
    world_create(w, "/config/topics/b", "{\"version\":1,\"config\":{}}");
    world_settle(w);
    for (int i = 1; i <= 3; i++) {
        world_kill(w, i);
    }
    world_delete_tree(w, "/brokers/topics/a/partitions/1");
    world_mark(w, "a");
    world_delete_tree(w, "/brokers/topics/b");
    world_mark(w, "b");
    world_start_all(w);
    expect_gone(w, "a");
    expect_gone(w, "b");
    expect_dirs(w, "");
    world_free(w);
}

static void delete_and_make_again(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2]}");
    world_settle(w);
    world_mark(w, "a");
    world_settle(w);
    world_topic(w, "a", "{\"0\":[2,3],\"1\":[3,1]}");
    world_settle(w);
    expect_state(w, "a", 0, "leader 2 epoch 0 isr 2,3");
    expect_state(w, "a", 1, "leader 3 epoch 0 isr 3,1");
    expect_dirs(w, "1: a-1; 2: a-0; 3: a-0 a-1");
    world_free(w);
}

static void a_disk_refuses(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2]}");
    world_settle(w);
    g_hash_table_add(w->broker[2].undeletable, g_strdup("a-0"));
    world_mark(w, "a");
    world_settle(w);
    expect_dirs(w, "2: a-0");
    expect_asked(w, "/.state/topics/a/deletion",
            "ineligible: broker 2 could not delete a-0: KAFKA_STORAGE_ERROR; touch its entry in admin/delete_topics to "
            "try again\n");
    expect_asked(w, "/.state/topics/a/0/replicas/1", "ReplicaDeletionSuccessful\n");
    g_hash_table_remove_all(w->broker[2].undeletable);
    struct controller_event *retry = controller_event_new(EVENT_TOPIC_DELETION_RETRY);
    retry->names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_hash_table_add(retry->names, g_strdup("a"));
    world_push(w, retry);
    world_settle(w);
    expect_gone(w, "a");
    world_free(w);
}

static void partitions_added_to_a_deleted_topic(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,3]}");
    world_settle(w);
    world_kill(w, 3);
    world_settle(w);
    world_mark(w, "a");
    world_settle(w);
    world_set(w, "/brokers/topics/a", "{\"version\":1,\"partitions\":{\"0\":[1,3],\"1\":[2]}}");
    world_settle(w);
    expect_data(w, "/brokers/topics/a", "\"partitions\":\\{\"0\":\\[1,3\\]\\}.*topic_id");
    expect_said(w->error_log, "being deleted");
    world_start(w, 3);
    world_settle(w);
    expect_gone(w, "a");
    world_free(w);
}

static void removed_by_hand(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2]}");
    world_settle(w);
    world_delete_tree(w, "/brokers/topics/a");
    world_settle(w);
    expect_asked(w, "/.state/topics", "");
    world_topic(w, "a", "{\"0\":[2,3]}");
    world_settle(w);
    expect_state(w, "a", 0, "leader 2 epoch 0 isr 2,3");
    /* both in one event */
    world_delete_tree(w, "/brokers/topics/a");
    world_topic(w, "a", "{\"0\":[3,1]}");
    world_settle(w);
    expect_state(w, "a", 0, "leader 3 epoch 0 isr 3,1");
    expect_asked(w, "/.state/topics/a/0/assignment", "3,1\n");
    world_free(w);
}

static void malformed_topics(void **state)
{
    struct world *w = world_of_three(NULL);
    world_create(w, "/brokers/topics/bad", "{\"vers");
    world_create(w, "/brokers/topics/worse", "{\"version\":1,\"partitions\":{\"0\":[\"one\"]}}");
    world_create(w, "/brokers/topics/empty", NULL);
    world_topic(w, "good", "{\"0\":[1]}");
    world_settle(w);
    expect_state(w, "good", 0, "leader 1 epoch 0 isr 1");
    expect_said(w->error_log, "/brokers/topics/bad");
    expect_said(w->error_log, "/brokers/topics/worse");
    expect_not_said(w->error_log, "/brokers/topics/empty");
    world_delete(w, "/controller");
    world_settle(w);
    assert_non_null(world_active(w));
    world_set(w, "/brokers/topics/empty", "{\"version\":1,\"partitions\":{\"0\":[2]}}");
    world_set(w, "/brokers/topics/worse", "{\"version\":1,\"partitions\":{\"0\":[2]}}");
    world_settle(w);
    expect_state(w, "empty", 0, "leader 2 epoch 0 isr 2");
    expect_state(w, "worse", 0, "leader 2 epoch 0 isr 2");
    expect_data(w, "/brokers/topics/empty", "topic_id");
    world_mark(w, "bad");
    world_settle(w);
    expect_gone(w, "bad");
    world_free(w);
}

static void impossible_assignments(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,1],\"1\":[],\"2\":[-4],\"3\":[2]}");
    world_settle(w);
    expect_asked(w, "/.state/topics/a", "deletion 3");
    expect_state(w, "a", 3, "leader 2 epoch 0 isr 2");
    expect_said(w->error_log, "partition 0 is left out: its replicas are [1,1]");
    expect_said(w->error_log, "partition 1 is left out");
    expect_said(w->error_log, "partition 2 is left out");
    world_delete(w, "/controller");
    world_settle(w);
    expect_state(w, "a", 3, "leader 2 epoch 0 isr 2");
    world_mark(w, "a");
    world_settle(w);
    expect_gone(w, "a");
    world_free(w);
}

/* Only additions act; the rest stays as written, until a reassignment writes it or the next controller reads it. */
static void assignment_edited_by_hand(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2],\"1\":[3]}");
    world_settle(w);
    world_set(w, "/brokers/topics/a", "{\"version\":1,\"partitions\":{\"0\":[2,3],\"2\":[3]}}");
    world_settle(w);
    expect_data(w, "/brokers/topics/a", "\"partitions\":\\{\"0\":\\[2,3\\],\"2\":\\[3\\]\\},\"topic_id\"");
    expect_state(w, "a", 2, "leader 3 epoch 0 isr 3");
    expect_asked(w, "/.state/topics/a/0/assignment", "1,2\n");
    expect_asked(w, "/.state/topics/a/1/assignment", "3\n");
    expect_said(w->error_log, "ignored for 2 partitions");
    world_reassign(w, "a 2 1");
    world_settle(w);
    expect_data(w, "/brokers/topics/a", "\"partitions\":\\{\"0\":\\[1,2\\],\"1\":\\[3\\],\"2\":\\[1\\]\\}");
    world_set(w, "/brokers/topics/a", "{\"version\":1,\"partitions\":{\"0\":[3,1],\"1\":[3],\"2\":[1]}}");
    world_settle(w);
    world_delete(w, "/controller");
    world_settle(w);
    expect_asked(w, "/.state/topics/a/0/assignment", "3,1\n");
    world_free(w);
}

static void a_copied_topic(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2]}");
    world_settle(w);
    g_autofree char *data = world_get(w, "/brokers/topics/a");
    g_autofree char *pstate = world_get(w, "/brokers/topics/a/partitions/0/state");
    world_create(w, "/brokers/topics/b", NULL);
    world_settle(w);
    world_create(w, "/brokers/topics/b/partitions", NULL);
    world_create(w, "/brokers/topics/b/partitions/0", NULL);
    world_create(w, "/brokers/topics/b/partitions/0/state", pstate);
    world_settle(w);
    world_set(w, "/brokers/topics/b", data);
    world_settle(w);
    expect_state(w, "b", 0, "leader 1 epoch 1 isr 1,2");
    expect_dirs(w, "1: a-0 b-0; 2: a-0 b-0");
    g_autofree char *copy = world_get(w, "/brokers/topics/b");
    assert_string_not_equal(strstr(copy, "topic_id"), strstr(data, "topic_id"));
    world_free(w);
}

/* The controller finds out at its next write, steps down, and the next election goes above what was written. */
static void epoch_edited(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2]}");
    world_settle(w);
    world_set(w, "/controller_epoch", "57");
    world_settle(w);
    expect_data(w, "/controller_epoch", "^57$");
    world_topic(w, "b", "{\"0\":[2]}");
    world_settle(w);
    expect_data(w, "/controller_epoch", "^58$");
    expect_state(w, "b", 0, "leader 2 epoch 0 isr 2");
    expect_data(w, "/brokers/topics/b/partitions/0/state", "\"controller_epoch\":58");
    world_delete(w, "/controller_epoch");
    world_topic(w, "c", "{\"0\":[3]}");
    world_settle(w);
    expect_data(w, "/controller_epoch", "^59$");
    expect_data(w, "/brokers/topics/c/partitions/0/state", "\"controller_epoch\":59");
    world_free(w);
}

static void epoch_set_back(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2]}");
    for (int i = 0; i < 5; i++) {
        world_settle(w);
        world_delete(w, "/controller");
    }
    world_settle(w);
    world_topic(w, "b", "{\"0\":[2,3]}");
    world_settle(w);
    expect_data(w, "/brokers/topics/b/partitions/0/state", "\"controller_epoch\":6");
    /* by hand, while nobody who remembers is there */
    for (int i = 1; i <= 3; i++) {
        world_kill(w, i);
    }
    world_set(w, "/controller_epoch", "2");
    world_start_all(w);
    expect_data(w, "/controller_epoch", "^7$");
    world_kill(w, 2);
    world_settle(w);
    expect_state(w, "b", 0, "leader 3 epoch 1 isr 3");
    /* a state that came from elsewhere */
    world_set(w, "/brokers/topics/a/partitions/0/state",
            "{\"controller_epoch\":30,\"leader\":1,\"version\":1,\"leader_epoch\":5,\"isr\":[1]}");
    world_settle(w);
    expect_data(w, "/controller_epoch", "^31$");
    world_start(w, 2);
    world_settle(w);
    expect_data(w, "/brokers/topics/a/partitions/0/state", "\"leader\":1,.*\"isr\":\\[1,2\\]");
    /* and one that is nothing but damage: it stands alone */
    world_set(w, "/brokers/topics/a/partitions/0/state",
            "{\"controller_epoch\":2147483647,\"leader\":1,\"version\":1,\"leader_epoch\":5,\"isr\":[1]}");
    world_settle(w);
    expect_data(w, "/controller_epoch", "^31$");
    world_topic(w, "c", "{\"0\":[2]}");
    world_settle(w);
    expect_state(w, "c", 0, "leader 2 epoch 0 isr 2");
    /* no epoch is left above this one: nobody is the controller, until it is put right */
    world_set(w, "/controller_epoch", "2147483647");
    world_topic(w, "d", "{\"0\":[2]}");
    world_settle(w);
    world_set(w, "/controller_epoch", "100");
    world_settle(w);
    expect_data(w, "/controller_epoch", "^101$");
    expect_state(w, "d", 0, "leader 2 epoch 0 isr 2");
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(first_election),
            cmocka_unit_test(create_topics),
            cmocka_unit_test(broker_fails_and_returns),
            cmocka_unit_test(bounce_in_one_event),
            cmocka_unit_test(all_replicas_fail),
            cmocka_unit_test(dead_at_creation),
            cmocka_unit_test(cluster_restarts_one_by_one),
            cmocka_unit_test(broker_stops),
            cmocka_unit_test(expand),
            cmocka_unit_test(reelection),
            cmocka_unit_test(reelection_among_strange_nodes),
            cmocka_unit_test(five_replicas),
            cmocka_unit_test(delete_topic),
            cmocka_unit_test(delete_waits_for_a_dead_broker),
            cmocka_unit_test(delete_disabled_and_unknown),
            cmocka_unit_test(delete_half_gone),
            cmocka_unit_test(delete_and_make_again),
            cmocka_unit_test(a_disk_refuses),
            cmocka_unit_test(partitions_added_to_a_deleted_topic),
            cmocka_unit_test(removed_by_hand),
            cmocka_unit_test(malformed_topics),
            cmocka_unit_test(impossible_assignments),
            cmocka_unit_test(assignment_edited_by_hand),
            cmocka_unit_test(a_copied_topic),
            cmocka_unit_test(epoch_edited),
            cmocka_unit_test(epoch_set_back),
    };
    return cmocka_run_group_tests_name("controller scenarios", tests, NULL, NULL);
}
