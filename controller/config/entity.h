#pragma once
/* The entities of dynamic configuration, the nodes below /config (kafka.server.ConfigType and ConfigEntityName). Pure.
 */
#include <glib.h>
#include "controller/config/definition.h"

#define ENTITY_DEFAULT "<default>"

enum entity_kind { ENTITY_TOPIC, ENTITY_CLIENT, ENTITY_USER, ENTITY_PAIR, ENTITY_BROKER, ENTITY_IP, N_ENTITY_KINDS };

struct config_entity {
    enum entity_kind kind;
    char *path;   /* below /config: topics/t, users/u/clients/c */
    char *name;   /* the topic, client, user, broker or ip */
    char *client; /* ENTITY_PAIR; NULL otherwise */
};

/* Takes `<type>/<name...>` apart. 0, or -EINVAL with the reason: unknown type, or a name that none of its kind has. */
int config_entity_parse(const char *path, struct config_entity *ret, char **ret_why);
void config_entity_clear(struct config_entity *e);
/* The keys it can have; NULL for a broker (config_def_broker()). */
const struct config_table *config_entity_table(enum entity_kind kind);
/* The definition of a key of that entity; NULL: Kafka knows no such key there. */
const struct config_def *config_entity_def(const struct config_entity *e, const char *key);
/* Quotas only: may the key be set for this entity (no SCRAM credential for a default user or a pair)? */
bool config_entity_has_key(const struct config_entity *e, const char *key);
/* One value as validate.c judges it: 0 with the value as Kafka prints it (a key without definition: as it is), or
 * -EINVAL with the reason. Outputs may be NULL. */
int config_entity_parse_value(
        const struct config_entity *e, const char *key, const char *value, char **ret, char **ret_why);
