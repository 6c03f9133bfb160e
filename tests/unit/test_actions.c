/* Requests on a tree in memory, and what becomes of them: transaction, command or refusal. Topics:
 * test_topic_actions.c. */
#include "tests/unit/actions_fixture.h"

static void test_markers(void **state)
{
    static const struct expectation table[] = {
            {.type = REQ_MKDIR, "/admin/delete_topics/full", NULL, "create /admin/delete_topics/full null"},
            {.type = REQ_CREATE, "/admin/delete_topics/unknown", "", "create /admin/delete_topics/unknown "},
            {.type = REQ_CREATE, "/admin/delete_topics/a b", "", "EINVAL: the name..."},
            {.type = REQ_TOUCH, "/admin/delete_topics/dying", NULL, "command"},
            {.type = REQ_UNLINK, "/admin/delete_topics/dying", NULL, "delete /admin/delete_topics/dying"},
    };
    EXPECT_ALL(table, false);
}

static void test_brokers_and_controller(void **state)
{
    node("/brokers/ids/7", "planted", 0, 0);
    static const struct expectation both[] = {
            {.type = REQ_CREATE, "/brokers/ids/4", "", "command"},
            {.type = REQ_CREATE, "/brokers/ids/4", "{}", "EPERM: a broker registers itself..."},
            {.type = REQ_MKDIR, "/brokers/ids/4", NULL, "EPERM: a broker registers itself..."},
            {.type = REQ_TOUCH, "/brokers/ids/1", NULL, "command"}, /* it may be dying */
            {.type = REQ_TOUCH, "/brokers/ids/7", NULL, "nothing"},
            {.type = REQ_UNLINK, "/brokers/ids/1", NULL, "command"},
            {.type = REQ_UNLINK, "/brokers/ids/7", NULL, "delete /brokers/ids/7"},
            {.type = REQ_RENAME, "/notes/file", NULL, "EPERM: a broker registers itself...", "/brokers/ids/4"},
            {.type = REQ_RENAME, "/brokers/ids/1", NULL, "EPERM: a broker registers itself...", "/notes/b"},
            {.type = REQ_UNLINK, "/controller", NULL, "delete /controller"},
            {.type = REQ_CREATE, "/controller", "{}", "EPERM: the controller is elected..."},
            {.type = REQ_MKDIR, "/controller", NULL, "EPERM: the controller is elected..."},
            {.type = REQ_RENAME, NULL, "{}", "EPERM: the controller is elected...", "/controller", true},
            {.type = REQ_TOUCH, "/controller", NULL, "nothing"},
    };
    EXPECT_ALL(both, false);
    EXPECT_ALL(both, true);
    static const struct expectation judged[] = {
            {.type = REQ_CREATE, "/brokers/ids/two", "", "EINVAL: the name..."},
            {.type = REQ_SET,
                    "/controller",
                    "{\"version\":1,\"brokerid\":2,\"timestamp\":\"1\"}",
                    "EPERM: the controller is..."},
            {.type = REQ_RENAME, "/controller", NULL, "EPERM: an ephemeral entry cannot be moved", "/notes/c"},
            {.type = REQ_SET, "/brokers/ids/1", "{}", "EINVAL: version is missing"},
    };
    EXPECT_ALL(judged, false);
}

static void test_command_kinds(void **state)
{
    int32_t id;
    const char *topic;
    struct request request = {.type = REQ_CREATE, .path = "/brokers/ids/12"};
    assert_int_equal(actions_command(&request, &id, &topic), COMMAND_START_BROKER);
    assert_int_equal(id, 12);
    request.type = REQ_UNLINK;
    assert_int_equal(actions_command(&request, &id, &topic), COMMAND_KILL_BROKER);
    request = (struct request){.type = REQ_TOUCH, .path = "/admin/delete_topics/t"};
    assert_int_equal(actions_command(&request, &id, &topic), COMMAND_RETRY_DELETION);
    assert_string_equal(topic, "t");
}

static void test_protected(void **state)
{
    static const struct expectation table[] = {
            {.type = REQ_SET, "/controller_epoch", "51", "EPERM: the cluster needs..."},
            {.type = REQ_UNLINK, "/controller_epoch", NULL, "EPERM: the cluster needs..."},
            {.type = REQ_UNLINK, "/cluster/id", NULL, "EPERM: the cluster needs..."},
            {.type = REQ_RMDIR, "/brokers/topics", NULL, "EPERM: the cluster needs..."},
            {.type = REQ_RMDIR, "/brokers", NULL, "EPERM: the cluster needs..."},
            {.type = REQ_SET, "/config/topics", "x", "EPERM: the cluster needs..."},
            {.type = REQ_MKDIR, "/config/ips", NULL, "create /config/ips null"},
            {.type = REQ_CREATE, "/latest_producer_id_block", "{}", "EPERM: the cluster needs..."},
            {.type = REQ_RENAME, "/notes/file", NULL, "EPERM: the cluster needs...", "/controller_epoch", true},
            {.type = REQ_RENAME, "/controller_epoch", NULL, "EPERM: the cluster needs...", "/notes/x"},
    };
    EXPECT_ALL(table, false);
    static const struct expectation raw[] = {
            {.type = REQ_SET, "/controller_epoch", "51\n", "set /controller_epoch 51\n"},
            {.type = REQ_RMDIR, "/brokers/topics", NULL, "delete /brokers/topics"},
            {.type = REQ_MKDIR, T "dying", NULL, "create " T "dying null"},
            {.type = REQ_CREATE, T "t", "rubbish\n", "create " T "t rubbish\n"},
            {.type = REQ_CREATE, T "full/partitions/0/state", "x", "create " T "full/partitions/0/state x"},
            {.type = REQ_SET, "/controller", "x", "set /controller x"},
            {.type = REQ_SET, "/brokers/ids/1", "x", "set /brokers/ids/1 x"},
            {.type = REQ_CREATE, "/config/changes/config_change_", "x", "create /config/changes/config_change_# x"},
            {.type = REQ_CREATE, "/config/changes/foo", "x", "create /config/changes/foo x"},
            {.type = REQ_MKDIR, T "full/partitions/5", NULL, "create " T "full/partitions/5 null"},
            {.type = REQ_TOUCH, "/admin/delete_topics/dying", NULL, "command"},
    };
    EXPECT_ALL(raw, true);
}

static void test_may_write(void **state)
{
    static const struct {
        const char *path;
        bool creates;
        int err;
    } table[] = {
            {"/controller_epoch", false, EPERM},
            {"/cluster/id", true, EPERM},
            {"/controller", true, EPERM},
            {"/brokers/ids/4", true, EPERM},
            {"/brokers/ids/1", false, 0},
            {T "full", false, 0},
            {T "t", true, 0},
            {T "a b", true, EINVAL},
            {T "full/partitions/1/state", true, EPERM},
            {T "full/partitions/0/state", false, 0},
            {"/config/topics/a b", true, EINVAL},
            {"/config/changes/config_change_", true, 0},
            {"/notes/x", true, 0},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(table); i++) {
        char *why = NULL;
        if (actions_may_write(table[i].path, table[i].creates, &why) != table[i].err || !why != (table[i].err == 0))
            fail_msg("%s", table[i].path);
        g_free(why);
    }
}

static void test_configuration(void **state)
{
    static const struct expectation table[] = {
            {.type = REQ_CREATE,
                    "/config/topics/t",
                    "a=1\n",
                    "create /config/topics/t {\"version\":1,\"config\":{\"a\":\"1\"}}"},
            {.type = REQ_SET, "/config/topics/full", "{\"config\":{}}\n", "set /config/topics/full {\"config\":{}}"},
            {.type = REQ_SET, "/config/topics/full", "", "nothing"},
            {.type = REQ_SET, "/config/topics/full", "{\"config\":{\"retention.ms\":\"abc\"}}", "EINVAL: ..."},
            {.type = REQ_APPEND,
                    "/config/topics/full",
                    "y=2\n",
                    "set /config/topics/full@5 {\"version\":1,\"config\":{\"x\":\"1\",\"y\":\"2\"}} (again)"},
            {.type = REQ_APPEND,
                    "/config/topics/full",
                    "x=\n",
                    "set /config/topics/full@5 {\"version\":1,\"config\":{}} (again)"},
            {.type = REQ_APPEND, "/config/topics/full", "z=\n", "nothing"},
            {.type = REQ_APPEND,
                    "/config/topics/new",
                    "y=2\n",
                    "create /config/topics/new {\"version\":1,\"config\":{\"y\":\"2\"}} (again)"},
            {.type = REQ_APPEND, "/config/topics/a b", "y=2\n", "EINVAL: the name..."},
            {.type = REQ_APPEND, "/config/topics/full", "y\n", "EINVAL: \"y\" is neither..."},
            {.type = REQ_CREATE, "/config/topics/a b", "a=1\n", "EINVAL: the name..."},
            {.type = REQ_UNLINK, "/config/topics/full", NULL, "delete /config/topics/full"},
            {.type = REQ_CREATE,
                    "/config/changes/config_change_",
                    "{\"version\":2,\"entity_path\":\"topics/t\"}\n",
                    "create /config/changes/config_change_# {\"version\":2,\"entity_path\":\"topics/t\"}"},
            {.type = REQ_CREATE,
                    "/config/changes/config_change_0000000042",
                    "{\"version\":2,\"entity_path\":\"topics/t\"}",
                    "create /config/changes/config_change_0000000042 {\"version\":2,\"entity_path\":\"topics/t\"}"},
            {.type = REQ_CREATE, "/config/changes/config_change_", "\"t1\"", "EINVAL: \"t1\" is not a JSON object"},
            {.type = REQ_MKDIR, "/config/changes/config_change_", NULL, "create /config/changes/config_change_# null"},
    };
    EXPECT_ALL(table, false);
}

static void test_renames(void **state)
{
    static const struct expectation table[] = {
            {.type = REQ_RENAME,
                    "/notes/file",
                    NULL,
                    "create /notes/new text\n; delete /notes/file@8 (again)",
                    "/notes/new"},
            {.type = REQ_RENAME, "/notes/file", NULL, "EEXIST: ...", "/notes/json"},
            {.type = REQ_RENAME,
                    "/notes/file",
                    NULL,
                    "set /notes/json text\n; delete /notes/file@8 (again)",
                    "/notes/json",
                    true},
            {.type = REQ_RENAME, "/notes/none", NULL, "ENOENT: ...", "/notes/new"},
            {.type = REQ_RENAME, T "full", NULL, "EPERM: a directory cannot be moved", T "full9"},
            {.type = REQ_RENAME,
                    "/config/topics/full",
                    NULL,
                    "create /config/topics/full2 {\"version\":1,\"config\":{\"x\":\"1\"}}; delete "
                    "/config/topics/full@5 (again)",
                    "/config/topics/full2"},
            /* a value is judged where it arrives */
            {.type = REQ_RENAME,
                    "/notes/json",
                    NULL,
                    "create /config/topics/j {\"version\":1,\"config\":{}}; delete /notes/json@2 (again)",
                    "/config/topics/j"},
            {.type = REQ_RENAME,
                    "/notes/file",
                    NULL,
                    "EINVAL: line 1: \"text\" is neither JSON nor key=value",
                    "/config/topics/j"},
            {.type = REQ_RENAME, "/notes/file", NULL, "EPERM: the controller makes...", T "empty/partitions/0/state"},
            /* an editor's private file */
            {.type = REQ_RENAME,
                    NULL,
                    "a=1\n",
                    "set /config/topics/full {\"version\":1,\"config\":{\"a\":\"1\"}}",
                    "/config/topics/full",
                    true},
            {.type = REQ_RENAME,
                    NULL,
                    "",
                    "EINVAL: an empty value is no value for /config/topics/full",
                    "/config/topics/full",
                    true},
            {.type = REQ_RENAME, NULL, "{}", "EINVAL: version is missing", "/config/changes/config_change_"},
            {.type = REQ_RENAME,
                    NULL,
                    "{\"partitions\":{\"0\":[1,2]}}",
                    "set " T "full@4 {\"partitions\":{\"0\":[1,2]},\"version\":3,\"topic_id\":\"" ID_A "\"...",
                    T "full",
                    true},
    };
    EXPECT_ALL(table, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(test_markers, setup, teardown),
            cmocka_unit_test_setup_teardown(test_brokers_and_controller, setup, teardown),
            cmocka_unit_test_setup_teardown(test_command_kinds, setup, teardown),
            cmocka_unit_test_setup_teardown(test_protected, setup, teardown),
            cmocka_unit_test(test_may_write),
            cmocka_unit_test_setup_teardown(test_configuration, setup, teardown),
            cmocka_unit_test_setup_teardown(test_renames, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
