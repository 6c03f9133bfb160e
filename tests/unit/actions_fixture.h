#pragma once
/* Requests on a tree in memory; a plan as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include "controller/policy/actions.h"
#include "controller/policy/policy.h"

#pragma GCC diagnostic ignored "-Wunused-function" /* each test uses what it needs */

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
