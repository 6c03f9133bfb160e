/* Failed log dirs: what brokers tell of them, and what they answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "tests/unit/controller_env.h"

#define EVENT "/log_dir_event_notification/log_dir_event_0000000000"

static void tell_of_disk(struct world *w, int32_t broker)
{
    g_autofree char *text = g_strdup_printf("{\"version\":1,\"broker\":%d,\"event\":1}", broker);
    world_create(w, EVENT, text);
    world_settle(w);
}

static void log_dir_fails_and_comes_back(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[2,1],\"1\":[2,3]}");
    world_topic(w, "b", "{\"0\":[2,1]}");
    world_settle(w);
    g_hash_table_add(w->broker[2].broken, g_strdup("a-0"));
    tell_of_disk(w, 2);
    assert_false(world_exists(w, EVENT));
    expect_state(w, "a", 0, "leader 1 epoch 1 isr 1");
    expect_state(w, "a", 1, "leader 2 epoch 0 isr 2,3");
    expect_asked(w, "/.state/topics/a/0/replicas/2", "OfflineReplica\n");
    world_mark(w, "a");
    world_settle(w);
    expect_asked(w, "/.state/topics/a/deletion", "ineligible: broker 2 has a failed log dir (replica a-0)\n");
    g_hash_table_remove_all(w->broker[2].broken);
    world_kill(w, 2);
    world_settle(w);
    world_start(w, 2);
    world_settle(w);
    expect_gone(w, "a");
    expect_state(w, "b", 0, "leader 1 epoch 1 isr 1,2");
    world_free(w);
}

/* A replica that is being added leads, by an unclean election, when its log dir fails. */
static void log_dir_of_a_new_leader_fails(void **state)
{
    struct world *w = world_of_three("unclean.leader.election.enable=true");
    world_topic(w, "a", "{\"0\":[2]}");
    world_settle(w);
    w->broker[3].silent = w->broker[1].silent = true;
    world_reassign(w, "a 0 3,1");
    world_settle(w);
    world_kill(w, 2);
    world_settle(w);
    expect_state(w, "a", 0, "leader 3 epoch 2 isr 3");
    expect_asked(w, "/.state/topics/a/0/replicas/3", "NewReplica\n");
    w->broker[3].silent = false;
    g_hash_table_add(w->broker[3].broken, g_strdup("a-0"));
    tell_of_disk(w, 3);
    expect_state(w, "a", 0, "leader 1 epoch 3 isr 1");
    expect_asked(w, "/.state/topics/a/0/replicas/3", "OfflineReplica\n");
    world_free(w);
}

/* Broker `broker` answers that a-0 is in a failed log dir. */
static void answer_storage_error(struct world *w, int32_t broker)
{
    g_autofree char *data = world_get(w, "/brokers/topics/a");
    char id[23];
    g_strlcpy(id, strstr(data, "topic_id") + strlen("topic_id\":\""), sizeof(id));
    struct topic_ref *t = topic_ref_new("a", id);
    struct controller_event *e = controller_event_new(EVENT_CONTROL_RESPONSE);
    e->broker_id = broker;
    e->broker_epoch = w->broker[broker].epoch;
    e->request = control_request_new(API_LEADER_AND_ISR);
    e->request->controller_epoch = controller_epoch(world_active(w));
    g_ptr_array_add(e->request->partition_states, partition_state_new(t, 0));
    e->response = control_response_new(KERR_NONE);
    g_array_set_size(e->response->partition_errors, 1);
    g_array_index(e->response->partition_errors, enum kafka_error, 0) = KERR_KAFKA_STORAGE_ERROR;
    topic_ref_unref(t);
    world_tell(w, e);
    world_settle(w);
}

/* The replica has moved away before its broker answers: the deletion of its topic is not held up by what is not
 * there. */
static void log_dir_of_a_replica_that_has_moved(void **state)
{
    struct world *w = world_of_three(NULL);
    world_topic(w, "a", "{\"0\":[1,2]}");
    world_settle(w);
    w->broker[1].silent = true;
    world_mark(w, "a");
    world_settle(w);
    answer_storage_error(w, 3);
    expect_asked(w, "/.state/topics/a/deletion", "started\n");
    answer_storage_error(w, 1); /* the control: this one is to be deleted */
    expect_asked(w, "/.state/topics/a/deletion", "ineligible: broker 1 has a failed log dir (replica a-0)\n");
    world_free(w);
}

/* There was no room just then, and nothing happens any more but an answer. */
static void no_space_for_a_failed_log_dir(void **state)
{
    for (uint64_t call = 1; call <= 6; call++) {
        struct world *w = world_of_three(NULL);
        world_topic(w, "a", "{\"0\":[2]}");
        world_settle(w);
        g_hash_table_add(w->broker[2].broken, g_strdup("a-0"));
        world_arm(w, FAULT_FAIL, call, ZSTORENOSPACE);
        tell_of_disk(w, 2);
        expect_state(w, "a", 0, "leader -1 epoch 1 isr 2");
        world_free(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(log_dir_fails_and_comes_back),
            cmocka_unit_test(log_dir_of_a_new_leader_fails),
            cmocka_unit_test(log_dir_of_a_replica_that_has_moved),
            cmocka_unit_test(no_space_for_a_failed_log_dir),
    };
    return cmocka_run_group_tests_name("controller disks", tests, NULL, NULL);
}
