#pragma once
/*
 * What values must be beyond their type and range, alone and next to each other (KafkaConfig.validateValues,
 * DynamicLogConfig.validateReconfiguration, LogConfig.validateValues). Pure.
 */
#include "controller/config/dynamic_broker.h"

typedef void (*requirement_missed)(void *arg, const char *key, const char *why);

/* One value of a broker's key, as Kafka prints it: NULL, or why no broker can have it (static). */
const char *requirement_of_value(const char *key, const char *value);
/* What a broker has in force: calls `missed` for each thing that Kafka would not start with. */
void requirements_of_broker(const struct dynamic_broker *b, requirement_missed missed, void *arg);
/* The defaults of its logs, once one of them has changed: Kafka lets a broker start with what it refuses here. */
void requirements_of_logs(const struct dynamic_broker *b, requirement_missed missed, void *arg);
/* A topic's overrides (char* -> char*): NULL, or why they cannot be together (static). */
const char *requirements_of_topic(GHashTable *config);
