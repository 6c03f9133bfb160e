#pragma once
/* What manager.c, the handlers and views.c share. Not for others: they use manager.h. */
#include "controller/config/dynamic_broker.h"
#include "controller/config/entity.h"
#include "controller/config/manager.h"
#include "controller/config/notification.h"
#include "controller/config/quota.h"
#include "controller/config/topic_config.h"
#include "controller/json/codec.h"

/* A topic whose configuration this broker has read. */
struct topic_state {
    GHashTable *overrides; /* in force, as topic_config_parse() gives them */
    bool hosted;           /* a replica was created here; otherwise it was only read at the start */
    int64_t czxid;         /* of the topic when it was read, 0 if there was none: tells a topic from its successor */
    int64_t mzxid;         /* of the configuration when it was read, 0 likewise */
};

/* The replication throttle of a topic on this broker: "*", partitions, or NULL. */
struct topic_throttle {
    char *leader, *follower;
    int64_t czxid; /* as above */
};

struct config_manager {
    const struct broker_config *config;
    int64_t change_expiry_ms;
    struct config_manager_env env;
    struct dynamic_broker *broker;
    GHashTable *topics;    /* name -> struct topic_state */
    GHashTable *throttles; /* topic -> struct topic_throttle; none is empty */
    GHashTable *entities;  /* path of a client, user, pair or ip -> its configuration in force (char* -> char*) */
    struct quota_table *quotas;
    struct notification_listener *listener;
    bool running; /* start-up is over: changes are events */
};

/* The configuration that the tree has for an entity; false if it cannot be taken at all (said in errors). A node that
 * is missing, empty or no JSON object reads as no configuration, as in Kafka. */
bool manager_read(struct config_manager *m, const char *path, GHashTable **ret);
/* A line of `.state/errors` about an entity. */
void manager_complain(struct config_manager *m, int err, const char *path, const char *what);
/* One line each, of char*; a document of 900 KB gets no more than a few. */
void manager_complain_all(struct config_manager *m, int err, const char *path, GPtrArray *what);
/* A line of `.state/events` if a value in force changed; NULL is none. Takes both over. */
void manager_changed(struct config_manager *m, const char *path, const char *key, char *old, char *now);
/* Of the topic's node and of its configuration's; 0 if there is none. */
int64_t manager_topic_czxid(struct config_manager *m, const char *topic);
int64_t manager_topic_mzxid(struct config_manager *m, const char *topic);

/* One entity is read and applied; `start`: the broker starts, so there is nothing old to keep. */
void topic_handler_apply(struct config_manager *m, const struct config_entity *e, bool start);
void broker_handler_apply(struct config_manager *m, const struct config_entity *e, bool start);
void quota_handler_apply(struct config_manager *m, const struct config_entity *e, bool start);

/* The state of a topic that is still the one it was read from; NULL: none. */
struct topic_state *topic_state_find(struct config_manager *m, const char *topic);
struct topic_throttle *topic_throttle_find(struct config_manager *m, const char *topic);
void topic_state_free(void *state);
void topic_throttle_free(void *throttle);
