#pragma once
/*
 * What a request on a path of Kafka's tree means: a transaction, a command to brokers or controller, or a refusal with
 * its reason. Reads the mirror; FUSE thread and store thread.
 */
#include "controller/policy/topic_value.h"
#include "fs/policy.h"

struct actions {
    struct mirror *mirror;
    struct topic_value_env topics;
    /* A broker-level integer of the broker files (`default.replication.factor`). */
    int64_t (*default_int)(void *ctx, const char *key, int64_t fallback);
    void *ctx;
};

void actions_plan(const struct actions *a, const struct request *request, struct plan *ret);
/* Can `path` be written at all, or be created? 0, or an errno with a reason to be freed. Pure. */
int actions_may_write(const char *path, bool creates, char **ret_why);

/* Which command a PLAN_COMMAND is; `ret_broker` or `ret_topic` (inside `path`) is set. */
enum action_command { COMMAND_START_BROKER, COMMAND_KILL_BROKER, COMMAND_RETRY_DELETION };
enum action_command actions_command(const struct request *request, int32_t *ret_broker, const char **ret_topic);
