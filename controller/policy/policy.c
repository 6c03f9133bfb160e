#include "controller/policy/policy.h"
#include <stdatomic.h>
#include <sys/random.h>
#include "controller/broker/engine.h"
#include "controller/policy/actions.h"
#include "controller/policy/config_text.h"
#include "controller/policy/schema.h"
#include "controller/policy/state_view.h"
#include "controller/thread.h"

struct kafka_policy {
    struct policy table; /* first: the table is the object */
    struct actions actions;
    struct state_view state;
    atomic_ullong seed;
};

/* SplitMix64: one atomic addition gives each caller its own number. */
static uint32_t next_random(void *ctx)
{
    struct kafka_policy *p = ctx;
    uint64_t z = atomic_fetch_add(&p->seed, 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (uint32_t)((z ^ (z >> 31)) >> 32);
}

static int64_t default_int(void *ctx, const char *key, int64_t fallback)
{
    struct kafka_policy *p = ctx;
    return engine_default_int(p->state.engine, key, fallback);
}

static int may_write(void *ctx, const char *path, bool creates, char **ret_reason)
{
    return actions_may_write(path, creates, ret_reason);
}

static int check_line(void *ctx, const char *path, const char *before, size_t before_len, const char *line, size_t len,
        char **ret_reason)
{
    return config_text_check_line(path, before, before_len, line, len, ret_reason);
}

static void plan(void *ctx, const struct request *request, struct plan *ret)
{
    struct kafka_policy *p = ctx;
    actions_plan(&p->actions, request, ret);
}

static void command(void *ctx, const struct request *request, gen_t gen, void (*answer)(void *arg, int err), void *arg)
{
    struct kafka_policy *p = ctx;
    int32_t broker;
    const char *topic;
    switch (actions_command(request, &broker, &topic)) {
    case COMMAND_START_BROKER:
        engine_start_broker(p->state.engine, broker, gen, answer, arg);
        break;
    case COMMAND_KILL_BROKER:
        engine_kill_broker(p->state.engine, broker, gen, answer, arg);
        break;
    case COMMAND_RETRY_DELETION:
        controller_thread_retry_deletion(p->state.controller, topic, gen);
        answer(arg, 0);
        break;
    }
}

static void ask(void *ctx, enum state_query query, const char *path, const struct bytes *value, gen_t gen,
        struct state_question *q)
{
    struct kafka_policy *p = ctx;
    state_view_ask(&p->state, query, path, value, gen, q);
}

static void settling(void *ctx)
{
    struct kafka_policy *p = ctx;
    engine_look(p->state.engine);
}

struct policy *kafka_policy_new(const struct kafka_policy_config *config)
{
    struct kafka_policy *p = g_new0(struct kafka_policy, 1);
    p->table = (struct policy){
            .ctx = p,
            .always_directory = kafka_always_directory,
            .format = kafka_format,
            .created_empty = kafka_created_empty,
            .is_request = kafka_is_request,
            .sequential_prefix = kafka_sequential_prefix,
            .sensitive = kafka_sensitive,
            .may_write = may_write,
            .check_line = check_line,
            .plan = plan,
            .command = command,
            .settling = settling,
            .ask = ask,
    };
    p->actions = (struct actions){
            .mirror = config->mirror,
            .topics = {.topics = topic_index_new(config->mirror), .random = next_random, .ctx = p},
            .default_int = default_int,
            .ctx = p,
    };
    p->state.controller = config->controller;
    p->state.engine = config->engine;
    uint64_t seed;
    if (getentropy(&seed, sizeof(seed)) != 0)
        seed = (uint64_t)g_get_real_time();
    atomic_init(&p->seed, seed);
    return &p->table;
}

void kafka_policy_free(struct policy *table)
{
    if (table) {
        struct kafka_policy *p = (struct kafka_policy *)table;
        topic_index_free(p->actions.topics.topics);
        g_free(p);
    }
}

void kafka_policy_feed(struct policy *table, const struct commit *commit)
{
    struct kafka_policy *p = (struct kafka_policy *)table;
    topic_index_feed(p->actions.topics.topics, commit);
}

void kafka_policy_ready(struct policy *table)
{
    struct kafka_policy *p = (struct kafka_policy *)table;
    atomic_store(&p->state.ready, true);
}
