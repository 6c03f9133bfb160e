/* Requests on a tree in memory, and what becomes of them: transaction, command or refusal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include "controller/policy/actions.h"
#include "controller/policy/policy.h"

#define ID_A "MDEyMzQ1Njc4OWFiY2RlZg"
#define ID_B "ZmVkY2JhOTg3NjU0MzIxMA"
#define T "/brokers/topics/"
#define STATE_VALUE "{\"leader\":1,\"leader_epoch\":0,\"controller_epoch\":1,\"isr\":[1]}"

static struct mirror *mirror;
static struct actions actions;
static int64_t factor;

static int64_t default_int(void *ctx, const char *key, int64_t fallback)
{
    assert_string_equal(key, "default.replication.factor");
    return factor;
}

static uint32_t no_chance(void *ctx)
{
    return 0x01020304;
}

/* `data` NULL: null. */
static void node(const char *path, const char *data, int32_t version, int64_t owner)
{
    struct zstat stat = {.version = version, .ephemeral_owner = owner};
    struct bytes *b = data ? bytes_from_string(data) : NULL;
    mirror_load(mirror, path, b, &stat);
    bytes_unref(b);
}

static void broker(int id, const char *rack)
{
    g_autofree char *path = g_strdup_printf("/brokers/ids/%d", id);
    g_autofree char *data =
            g_strdup_printf("{\"version\":5,\"host\":\"h\",\"port\":9092,\"endpoints\":[\"PLAINTEXT://h:9092\"],"
                            "\"listener_security_protocol_map\":{\"PLAINTEXT\":\"PLAINTEXT\"},"
                            "\"features\":{},\"jmx_port\":-1,\"timestamp\":\"1\"%s%s%s}",
                    rack ? ",\"rack\":\"" : "", rack ? rack : "", rack ? "\"" : "");
    node(path, data, 1, 100 + id);
}

static int setup(void **state)
{
    static const char *const containers[] = {"/admin", "/admin/delete_topics", "/brokers", "/brokers/ids",
            "/brokers/topics", "/cluster", "/config", "/config/changes", "/config/topics", "/consumers", "/notes"};
    mirror = mirror_new(kafka_always_directory, NULL);
    node("/", NULL, 0, 0);
    for (size_t i = 0; i < G_N_ELEMENTS(containers); i++)
        node(containers[i], NULL, 0, 0);
    node("/controller", "{\"version\":1,\"brokerid\":1,\"timestamp\":\"1\"}", 0, 101);
    node("/controller_epoch", "1", 1, 0);
    node("/cluster/id", "{\"version\":\"1\",\"id\":\"x\"}", 0, 0);
    broker(1, NULL);
    broker(3, NULL);
    broker(2, NULL);
    node(T "full",
            "{\"version\":3,\"partitions\":{\"0\":[1,2]},\"adding_replicas\":{},\"removing_replicas\":{},"
            "\"topic_id\":\"" ID_A "\",\"mine\":7}",
            4, 0);
    node(T "full/partitions", NULL, 0, 0);
    node(T "full/partitions/0", NULL, 0, 0);
    node(T "full/partitions/0/state", STATE_VALUE, 2, 0);
    node(T "empty", NULL, 3, 0);
    node(T "bad", "rubbish", 1, 0);
    node(T "moving",
            "{\"version\":3,\"partitions\":{\"0\":[3,1]},\"adding_replicas\":{\"0\":[3]},"
            "\"removing_replicas\":{\"0\":[1]},\"topic_id\":\"" ID_B "\"}",
            6, 0);
    node(T "a.b", NULL, 0, 0);
    node(T "dying", NULL, 0, 0);
    node("/admin/delete_topics/dying", "", 0, 0);
    node("/config/topics/full", "{\"version\":1,\"config\":{\"x\":\"1\"}}", 5, 0);
    node("/notes/file", "text\n", 8, 0);
    node("/notes/json", "{\"version\":1,\"config\":{}}\n", 2, 0);
    factor = 2;
    actions = (struct actions){
            .mirror = mirror,
            .topics = {.topics = topic_index_new(mirror), .random = no_chance},
            .default_int = default_int,
    };
    return 0;
}

static int teardown(void **state)
{
    topic_index_free(actions.topics.topics);
    mirror_free(mirror);
    return 0;
}

/* ---- a plan as text ---- */

static void describe_op(GString *out, const struct op *op)
{
    static const char *const names[] = {
            [OP_CREATE] = "create", [OP_SET] = "set", [OP_DELETE] = "delete", [OP_CHECK] = "check"};
    g_string_append_printf(out, "%s%s %s", out->len ? "; " : "", names[op->type], op->path);
    if (op->type != OP_CREATE && op->version >= 0)
        g_string_append_printf(out, "@%d", op->version);
    if (op->type == OP_CREATE && op->flags & CREATE_SEQUENTIAL)
        g_string_append(out, "#");
    if (op->type == OP_CREATE || op->type == OP_SET)
        g_string_append_printf(out, " %s", op->data ? op->data->data : "null");
}

/* "create /x value; delete /y@3 (again)", "command", "nothing", "EPERM: reason" */
static char *describe(const struct plan *plan)
{
    GString *out = g_string_new(NULL);
    switch (plan->type) {
    case PLAN_REFUSE:
        g_string_append_printf(out, "%s: %s", strerrorname_np(plan->err), plan->reason ? plan->reason : "");
        break;
    case PLAN_NOTHING:
        g_string_append(out, "nothing");
        break;
    case PLAN_COMMAND:
        g_string_append(out, "command");
        break;
    case PLAN_TXN:
        for (size_t i = 0; i < plan->txn->n_ops; i++)
            describe_op(out, &plan->txn->ops[i]);
        if (plan->judge_again)
            g_string_append(out, " (again)");
        break;
    }
    return g_string_free(out, FALSE);
}

struct expectation {
    enum request_type type;
    const char *path, *value, *want; /* `want`: the beginning is enough where it ends with "..." */
    const char *new_path;
    bool replace;
};

static void expect(const struct expectation *e, bool raw)
{
    struct bytes *value = e->value ? bytes_from_string(e->value) : NULL;
    struct request request = {.type = e->type,
            .path = e->path,
            .new_path = e->new_path,
            .value = value,
            .replace = e->replace,
            .raw = raw};
    struct plan plan;
    actions_plan(&actions, &request, &plan);
    g_autofree char *got = describe(&plan);
    size_t len = strlen(e->want);
    bool open_end = g_str_has_suffix(e->want, "...");
    if (open_end ? strncmp(got, e->want, len - 3) != 0 : strcmp(got, e->want) != 0)
        fail_msg("%s %s:\n got  %s\n want %s", e->path ? e->path : e->new_path, e->value ? e->value : "", got, e->want);
    plan_clear(&plan);
    bytes_unref(value);
}

#define EXPECT_ALL(table, raw)                                                                                         \
    for (size_t i_ = 0; i_ < G_N_ELEMENTS(table); i_++)                                                                \
    expect(&(table)[i_], raw)

/* ---- topics ---- */

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
            cmocka_unit_test_setup_teardown(test_markers, setup, teardown),
            cmocka_unit_test_setup_teardown(test_brokers_and_controller, setup, teardown),
            cmocka_unit_test_setup_teardown(test_command_kinds, setup, teardown),
            cmocka_unit_test_setup_teardown(test_protected, setup, teardown),
            cmocka_unit_test(test_may_write),
            cmocka_unit_test_setup_teardown(test_configuration, setup, teardown),
            cmocka_unit_test_setup_teardown(test_renames, setup, teardown),
            cmocka_unit_test_setup_teardown(test_index, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
