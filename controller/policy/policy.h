#pragma once
/*
 * Kafka's namespace policy: what its paths look like, which values are possible, what a shell action means. See
 * fs/policy.h for the functions, which thread calls them, and who owns what.
 *
 *   schema.c       shape and format of every path; values.c and values_cluster.c: which values are possible
 *   config_text.c  `key=value` lines and JSON under /config
 *   actions.c      requests -> transactions or commands (rm brokers/ids/2, renames, ...)
 *   topic_actions.c, topic_value.c  topics, their assignments and partitions (mkdir .../partitions/3, ...)
 *   topic_index.c  which topic has this id, or a name that collides
 *   placement.c    Kafka's automatic replica placement (AdminUtils), pure
 *   state_view.c   routes questions about `.state` to the controller thread or the engine
 */
#include "fs/policy.h"
#include "fs/journal.h"

struct controller_thread;
struct engine;

struct kafka_policy_config {
    struct mirror *mirror;
    struct journal *errors;
    struct controller_thread *controller;
    struct engine *engine;
    bool raw;
};
/* The table is owned by the result; free with kafka_policy_free(). */
struct policy *kafka_policy_new(const struct kafka_policy_config *config);
void kafka_policy_free(struct policy *p);
/* Store thread, for each commit, after mirror_apply(). */
void kafka_policy_feed(struct policy *p, const struct commit *commit);
/* The start is done: `.state/controller/epoch` may appear. */
void kafka_policy_ready(struct policy *p);

bool kafka_always_directory(void *unused, const char *path);
