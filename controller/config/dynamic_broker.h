#pragma once
/*
 * The configuration in force of one broker (kafka.server.DynamicBrokerConfig): its own entity over the cluster-wide
 * default entity over the properties file over Kafka's defaults. Pure, single-threaded.
 */
#include <glib.h>
#include "controller/broker/properties.h"
#include "controller/config/definition.h"

struct dynamic_broker;

enum broker_level { LEVEL_DEFAULT, LEVEL_BROKER, N_BROKER_LEVELS };

/* `config` is borrowed. */
struct dynamic_broker *dynamic_broker_new(const struct broker_config *config);
void dynamic_broker_free(struct dynamic_broker *b);
/* A new whole configuration of one level (char* -> char*, borrowed). What can never be is left out key by key. What the
 * levels then say together comes in force as a whole, or nothing of it, if values forbid each other or `running`: a
 * running broker cannot become so (a thread count may only be halved or doubled). The result says what was left out or
 * refused (char*, never NULL, usually empty). */
GPtrArray *dynamic_broker_set(struct dynamic_broker *b, enum broker_level level, GHashTable *config, bool running);

/* The value in force as Kafka prints it, newly allocated; NULL: null, or an unknown key. Secrets in clear. */
char *dynamic_broker_value(const struct dynamic_broker *b, const char *key);
/* The number in force; `fallback` if there is none. */
int64_t dynamic_broker_number(const struct dynamic_broker *b, const char *key, int64_t fallback);
/* Where it comes from, in the words of DescribeConfigs. */
const char *dynamic_broker_source(const struct dynamic_broker *b, const char *key);
/* Does Kafka know the key, or is it set anywhere? */
bool dynamic_broker_has_key(const struct dynamic_broker *b, const char *key);
/* Adds the keys that a level declares or has in force to the set; they are borrowed. */
void dynamic_broker_add_keys(const struct dynamic_broker *b, GHashTable *set);
/* All keys to be shown, sorted; owned by the caller. */
GPtrArray *dynamic_broker_keys(const struct dynamic_broker *b);
/* What is in force of one level (char* -> char*), borrowed. */
GHashTable *dynamic_broker_level(const struct dynamic_broker *b, enum broker_level level);

/* May a level carry this key? If not, why, in a static string (may be NULL if not wanted). */
bool dynamic_broker_key_allowed(const char *key, bool per_broker, const char **ret_why);
/* One value of a dynamic key, with what KafkaConfig.validateValues() requires of it alone. As config_value_parse(). */
int dynamic_broker_parse_value(
        const char *key, const struct config_def *def, const char *value, char **ret, char **ret_why);
