#pragma once
/*
 * DynamicConfigManager of one broker: reads the entities under /config, processes the notifications in
 * /config/changes, and answers what is in force (kafka.server.ZkConfigManager, ConfigHandler, DynamicBrokerConfig).
 * Single-threaded code over an interface; the engine thread owns it. The core needs no disk, no clock and no thread.
 */
#include <glib.h>
#include "controller/broker/properties.h"
#include "fs/tree/txn.h"

struct config_manager;

struct config_manager_env {
    void *ctx;
    int (*get)(void *ctx, const char *path, struct bytes **ret_data, struct zstat *ret_stat); /* ZOK, ZNONODE */
    GPtrArray *(*children)(void *ctx, const char *path);
    int64_t (*now_ms)(void *ctx);
    /* Removes nodes (expired notifications), in bounded transactions, soon; each may be gone already. Takes the names
     * (full paths) over. */
    void (*remove)(void *ctx, GPtrArray *paths);
    void (*event)(void *ctx, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
    void (*error)(void *ctx, int err, const char *path, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
    /* Unclean election is allowed by topic override (`topic`) or by this broker's default (NULL) now, and was not. */
    void (*unclean_enabled)(void *ctx, const char *topic);
    /* The broker's own configuration in force changed; at the start: it is not what the file says. */
    void (*broker_changed)(void *ctx);
};

/* `config`: the static one, borrowed. Allocates only; config_manager_startup() reads. */
struct config_manager *config_manager_new(
        const struct broker_config *config, int64_t change_expiry_ms, const struct config_manager_env *env);
void config_manager_free(struct config_manager *m);
/* Start of the broker, in Kafka's order: dynamic broker configuration, then all entities and all notifications. */
void config_manager_startup(struct config_manager *m);
/* Kafka's way: children of /config/changes have changed, so list them all, process new ones in order, then purge. No
 * broker here needs it, as the feed has no gaps; tests hold the way one by one against it. */
void config_manager_changes(struct config_manager *m);
/* The feed made the child `name` of /config/changes: the same as a pass that finds just that one new, without listing.
 */
void config_manager_change_created(struct config_manager *m, const char *name);
/* The topic's first replica is created here, or was found on the disk: its configuration is read now if it is not what
 * was read before (LogManager.getOrCreateLog); the last replica went: it is forgotten, and so is its throttle. */
void config_manager_topic_created(struct config_manager *m, const char *topic);
void config_manager_topic_removed(struct config_manager *m, const char *topic);

/* ---- views; NULL: no such entity. Text is newly allocated, sorted `key=value` lines. ---- */
/* kind: topics, clients, users, brokers, ips. Entities are named as under /config; users/<u>/clients/<c> as
 * "<u>/clients/<c>". */
GPtrArray *config_manager_entities(struct config_manager *m, const char *kind);
char *config_manager_effective(struct config_manager *m, const char *kind, const char *entity);
char *config_manager_source(struct config_manager *m, const char *kind, const char *entity);
/* Quotas in force for a pair; names percent-encoded as under /config/users. Never NULL. */
char *config_manager_quota(struct config_manager *m, const char *user, const char *client);
/* leader or follower: the topics with a throttle (names), and one topic's partitions: "0,2", "*", or NULL. */
GPtrArray *config_manager_throttled_topics(struct config_manager *m, bool leader);
char *config_manager_throttled(struct config_manager *m, bool leader, const char *topic);
/* One value in force of the broker ("" and defaults included); newly allocated, NULL: unknown key. */
char *config_manager_broker_value(struct config_manager *m, const char *key);

/* ---- for the policy: is a whole value good to be written? Pure. ---- */
/* 0, or EINVAL with a reason. `kind` and `entity` as above. Unknown topic keys are kept (0). */
int config_entity_validate(const char *kind, const char *entity, GHashTable *config, char **ret_why);
/* One key alone; used for `key=value` lines. */
int config_value_validate(const char *kind, const char *entity, const char *key, const char *value, char **ret_why);
/* A properties file's values against type and valid range of every key Kafka knows, and against each other: 0, or
 * EINVAL with the first reason; such a broker does not start. */
int config_static_validate(const struct broker_config *config, char **ret_why);
