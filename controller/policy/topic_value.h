#pragma once
/*
 * What a written topic assignment does to what is stored (kafka.zk.TopicZNode, AdminZkClient): a new topic, or new
 * partitions of one; never fewer partitions or other replicas of one that exists, which is a reassignment. The user's
 * text is stored as it is unless something Kafka needs has to be put in: the topic's id, a reassignment in progress.
 */
#include <cjson/cJSON.h>
#include "controller/json/codec.h"
#include "controller/policy/placement.h"
#include "controller/policy/topic_index.h"

struct topic_value_env {
    struct topic_index *topics;
    uint32_t (*random)(void *ctx);
    void *ctx;
};

/* A first assignment. `doc` has passed check_topic() and belongs to the caller, `text` is what it was parsed from. An
 * id of another topic is replaced by a new one. 0 with the value to be stored (one new reference), or EINVAL. */
int topic_value_first(const struct topic_value_env *env, const char *topic, cJSON *doc, const struct bytes *text,
        struct bytes **ret, char **ret_why);
/* A later one, over `old`. */
int topic_value_next(const struct topic_value_env *env, const char *topic, const struct topic_assignment *old,
        cJSON *doc, const struct bytes *text, struct bytes **ret, char **ret_why);
/* The replicas for one more partition, number `a->partitions->len`: as many as partition 0 has, or `factor` for the
 * first. EAGAIN with a reason when there are too few live brokers, EINVAL when only some of them have a rack. */
int topic_value_place(const struct topic_value_env *env, const struct topic_assignment *a, int64_t factor,
        const struct placement_broker *brokers, size_t n_brokers, struct broker_ids **ret, char **ret_why);
/* What is stored (may be NULL or empty; `a` is what it says) with that partition in it. One new reference. */
struct bytes *topic_value_grown(const struct bytes *stored, struct topic_assignment *a, struct broker_ids *replicas);
