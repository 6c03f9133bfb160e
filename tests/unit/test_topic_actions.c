/* What is asked of topics: making them, assignments, partitions; and the index of ids and names. */
#include "tests/unit/actions_fixture.h"

static void test_topics(void **state)
{
    static const struct expectation table[] = {
            {.type = REQ_MKDIR, T "t", NULL, "create " T "t null"},
            {.type = REQ_MKDIR, T "a b", NULL, "EINVAL: the name \"a b\" is not possible here..."},
            {.type = REQ_MKDIR, T "a_b", NULL, "EEXIST: the name collides with topic a.b..."},
            {.type = REQ_MKDIR, T "dying", NULL, "EEXIST: a topic of this name is being deleted..."},
            {.type = REQ_CREATE,
                    T "dying",
                    "{\"partitions\":{\"0\":[1]}}",
                    "EEXIST: a topic of this name is being deleted..."},
            {.type = REQ_CREATE,
                    T "__consumer_offsets",
                    "{\"partitions\":{\"0\":[1]}}\n",
                    "create " T "__consumer_offsets {\"partitions\":{\"0\":[1]}}"},
            {.type = REQ_CREATE,
                    T "t",
                    "{\"version\":1,\"partitions\":{\"1\":[2],\"0\":[99,1]}, \"x\":[]}\n",
                    "create " T "t {\"version\":1,\"partitions\":{\"1\":[2],\"0\":[99,1]}, \"x\":[]}"},
            {.type = REQ_CREATE,
                    T "t",
                    "{\"partitions\":{\"0\":[1],\"2\":[1]}}",
                    "EINVAL: partitions: the numbers have a hole..."},
            {.type = REQ_CREATE,
                    T "t",
                    "{\"partitions\":{\"1\":[1]}}",
                    "EINVAL: partitions: the numbers have a hole..."},
            {.type = REQ_CREATE, T "t", "", "EINVAL: this entry needs a value"},
            /* an id that another topic has is replaced */
            {.type = REQ_CREATE,
                    T "t",
                    "{\"version\":3,\"partitions\":{\"0\":[1]},\"topic_id\":\"" ID_A "\"}",
                    "create " T "t {\"version\":3,\"partitions\":{\"0\":[1]},\"topic_id\":\"..."},
            {.type = REQ_CREATE,
                    T "t",
                    "{\"version\":3,\"partitions\":{\"0\":[1]},\"topic_id\":\"AAAAAAAAAAAAAAAAAAAAAg\"}",
                    "create " T "t {\"version\":3,\"partitions\":{\"0\":[1]},\"topic_id\":\"AAAAAAAAAAAAAAAAAAAAAg\"}"},
            {.type = REQ_UNLINK, T "full/partitions/0/state", NULL, "delete " T "full/partitions/0/state"},
            {.type = REQ_RMDIR, T "full", NULL, "delete " T "full"},
            {.type = REQ_SET, T "full", NULL, "set " T "full null"},
            {.type = REQ_CREATE, T "full/partitions", "", "EISDIR: ..."},
            {.type = REQ_CREATE, T "full/partitions/0/state", STATE_VALUE, "EPERM: the controller makes the state..."},
            {.type = REQ_SET,
                    T "full/partitions/0/state",
                    STATE_VALUE "\n",
                    "set " T "full/partitions/0/state " STATE_VALUE},
            {.type = REQ_SET, T "full/partitions/0/state", "{}", "EINVAL: leader is missing"},
    };
    EXPECT_ALL(table, false);
}

static void test_foreign_id_is_replaced(void **state)
{
    struct bytes *value = bytes_from_string("{\"partitions\":{\"0\":[1]},\"topic_id\":\"" ID_A "\"}");
    struct request request = {.type = REQ_CREATE, .path = T "t", .value = value};
    struct plan plan;
    actions_plan(&actions, &request, &plan);
    assert_int_equal(plan.type, PLAN_TXN);
    struct topic_assignment *a;
    assert_true(topic_assignment_decode(plan.txn->ops[0].data, &a, NULL));
    assert_string_not_equal(a->topic_id, ID_A);
    assert_true(uuid_valid(a->topic_id));
    topic_assignment_free(a);
    plan_clear(&plan);
    bytes_unref(value);
}

static void test_assignments(void **state)
{
    static const struct expectation table[] = {
            {.type = REQ_SET,
                    T "empty",
                    "{\"version\":1,\"partitions\":{\"0\":[2]}}",
                    "set " T "empty@3 {\"version\":1,\"partitions\":{\"0\":[2]}} (again)"},
            {.type = REQ_SET,
                    T "bad",
                    "{\"partitions\":{\"0\":[2]}}",
                    "set " T "bad@1 {\"partitions\":{\"0\":[2]}} (again)"},
            {.type = REQ_SET,
                    T "empty",
                    "{\"partitions\":{\"1\":[2]}}",
                    "EINVAL: partitions: the numbers have a hole..."},
            {.type = REQ_SET, T "full", "", "nothing"},
            {.type = REQ_SET,
                    T "full",
                    "{\"partitions\":{\"0\":[2,1]}}",
                    "EINVAL: partitions[\"0\"]: the replicas of a partition that exists are changed through "
                    "admin/reassign_partitions"},
            {.type = REQ_SET, T "full", "{\"partitions\":{}}", "EINVAL: partitions: partition 0 is missing..."},
            {.type = REQ_SET,
                    T "full",
                    "{\"partitions\":{\"0\":[1,2],\"2\":[1]}}",
                    "EINVAL: partitions: the numbers have a hole..."},
            /* partitions are added; the id comes back */
            {.type = REQ_SET,
                    T "full",
                    "{\"version\":1,\"partitions\":{\"0\":[1,2],\"1\":[3]}}",
                    "set " T "full@4 {\"version\":3,\"partitions\":{\"0\":[1,2],\"1\":[3]},\"topic_id\":\"" ID_A
                    "\",\"adding_replicas\":{},\"removing_replicas\":{}} (again)"},
            {.type = REQ_SET,
                    T "full",
                    "{\"version\":3,\"partitions\":{\"0\":[1,2]},\"adding_replicas\":{},\"removing_replicas\":{},"
                    "\"topic_id\":\"" ID_B "\"}",
                    "set " T "full@4 {\"version\":3,\"partitions\":{\"0\":[1,2]},\"adding_replicas\":{},"
                    "\"removing_replicas\":{},\"topic_id\":\"" ID_A "\"} (again)"},
            {.type = REQ_SET,
                    T "full",
                    "{\"topic_id\":\"" ID_A "\",  \"partitions\":{\"0\":[1,2]}}\n",
                    "set " T "full@4 {\"topic_id\":\"" ID_A "\",  \"partitions\":{\"0\":[1,2]}} (again)"},
            /* a reassignment in progress stays */
            {.type = REQ_SET,
                    T "moving",
                    "{\"version\":1,\"partitions\":{\"0\":[3,1],\"1\":[2]}}",
                    "set " T
                    "moving@6 {\"version\":3,\"partitions\":{\"0\":[3,1],\"1\":[2]},\"adding_replicas\":{\"0\":[3]},"
                    "\"removing_replicas\":{\"0\":[1]},\"topic_id\":\"" ID_B "\"} (again)"},
            {.type = REQ_SET, T "none", "{\"partitions\":{\"0\":[1]}}", "ENOENT: there is no topic none"},
    };
    EXPECT_ALL(table, false);
}

static void test_partitions(void **state)
{
    static const struct expectation table[] = {
            /* the row that [1,2] began goes on; fields of others stay */
            {.type = REQ_MKDIR,
                    T "full/partitions/1",
                    NULL,
                    "set " T "full@4 {\"version\":3,\"partitions\":{\"0\":[1,2],\"1\":[2,3]},\"adding_replicas\":{},"
                    "\"removing_replicas\":{},\"topic_id\":\"" ID_A "\",\"mine\":7}; create " T
                    "full/partitions/1 null (again)"},
            {.type = REQ_MKDIR, T "full/partitions/0", NULL, "EEXIST: topic full has partition 0 already"},
            {.type = REQ_MKDIR,
                    T "full/partitions/2",
                    NULL,
                    "EINVAL: partition 2 is out of turn: the next one of topic full is 1"},
            {.type = REQ_MKDIR, T "full/partitions/x", NULL, "EINVAL: the name \"x\" is not possible here..."},
            {.type = REQ_MKDIR, T "full/partitions/01", NULL, "EINVAL: the name \"01\" is not possible here..."},
            {.type = REQ_MKDIR,
                    T "empty/partitions/0",
                    NULL,
                    "set " T "empty@3 {\"removing_replicas\":{},\"partitions\":{\"0\":[2,3]},..."},
            {.type = REQ_MKDIR, T "bad/partitions/0", NULL, "EINVAL: the assignment of topic bad cannot be read..."},
            {.type = REQ_MKDIR, T "dying/partitions/0", NULL, "EBUSY: topic dying is being deleted"},
            {.type = REQ_MKDIR, T "none/partitions/0", NULL, "ENOENT: there is no topic none"},
    };
    EXPECT_ALL(table, false);

    factor = 4;
    expect(&(struct expectation){.type = REQ_MKDIR,
                   T "empty/partitions/0",
                   NULL,
                   "EAGAIN: replication factor 4 is larger than the number of live brokers, 3"},
            false);
    factor = 1;
    broker(4, "rack");
    expect(&(struct expectation){.type = REQ_MKDIR,
                   T "empty/partitions/0",
                   NULL,
                   "EINVAL: not all live brokers have a rack: broker 1 has none"},
            false);
}

/* ---- the index behind ids and collisions ---- */

static void feed(enum change_type type, const char *path, const char *data)
{
    struct bytes *b = data ? bytes_from_string(data) : NULL;
    struct change change = {.type = type, .path = path, .data = b};
    topic_index_feed(actions.topics.topics, &(struct commit){.changes = &change, .n_changes = 1});
    bytes_unref(b);
}

static char *owner(const char *id)
{
    return topic_index_owner_of_id(actions.topics.topics, id, "");
}

static void test_index(void **state)
{
    struct topic_index *x = actions.topics.topics;
    g_autofree char *before = owner(ID_A), *same = topic_index_owner_of_id(x, ID_A, "full");
    assert_string_equal(before, "full");
    assert_null(same);
    feed(NODE_DATA_CHANGED, T "full", "{\"partitions\":{}}");
    assert_null(owner(ID_A));
    feed(NODE_CREATED, T "new_one", "{\"partitions\":{},\"topic_id\":\"" ID_A "\"}");
    g_autofree char *after = owner(ID_A);
    assert_string_equal(after, "new_one");
    feed(NODE_CREATED, T "new.one", NULL);
    feed(NODE_DELETED, T "new_one", NULL);
    assert_null(owner(ID_A));
    g_autofree char *alike = topic_index_colliding(x, "new_one"), *self = topic_index_colliding(x, "new.one");
    assert_string_equal(alike, "new.one");
    assert_null(self);
    feed(NODE_DELETED, T "new.one", NULL);
    feed(NODE_DELETED, T "never.seen", NULL);
    assert_null(topic_index_colliding(x, "new_one"));
    assert_null(topic_index_colliding(x, "plain"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(test_topics, setup, teardown),
            cmocka_unit_test_setup_teardown(test_foreign_id_is_replaced, setup, teardown),
            cmocka_unit_test_setup_teardown(test_assignments, setup, teardown),
            cmocka_unit_test_setup_teardown(test_partitions, setup, teardown),
            cmocka_unit_test_setup_teardown(test_index, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
