#pragma once
/*
 * The configuration in force of one topic on one broker (LogConfig): the topic's overrides over the broker's values by
 * its synonyms over Kafka's defaults. Pure.
 */
#include "controller/config/dynamic_broker.h"

/* All values of a topic's entity, parsed: `*ret` maps key -> value as Kafka prints it (an unknown key: as it is). 0, or
 * -EINVAL with the first reason: then nothing of it is good. */
int topic_config_parse(GHashTable *config, GHashTable **ret, char **ret_why);
/* The same for a log that has no old configuration to keep: what is bad is left out, with a reason each (char*). */
GPtrArray *topic_config_parse_lenient(GHashTable *config, GHashTable **ret);

/* The value in force, newly allocated; NULL: unknown key. `overrides` may be NULL. */
char *topic_config_value(const struct dynamic_broker *broker, GHashTable *overrides, const char *key);
const char *topic_config_source(const struct dynamic_broker *broker, GHashTable *overrides, const char *key);
/* All keys to be shown, sorted: Kafka's, and unknown ones of the overrides. */
GPtrArray *topic_config_keys(GHashTable *overrides);
/* What Kafka warns of when it applies the overrides (char*, usually none): a message format that it ignores, a
 * retention below the limit of the timestamp difference. */
GPtrArray *topic_config_warnings(const struct broker_config *config, GHashTable *overrides);
