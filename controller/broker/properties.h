#pragma once
/*
 * A broker's static configuration: a Kafka server.properties file (java.util.Properties syntax). Unknown keys are kept
 * and ignored, as Kafka does; last of two equal keys wins. Pure but for reading the file. Immutable after loading.
 */
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include "controller/requests.h"

struct broker_config {
    char *file;          /* where it was read from */
    int32_t broker_id;   /* -1: to be generated (broker.id.generation.enable), or taken from meta.properties */
    GPtrArray *log_dirs; /* char*, absolute, in order */
    struct broker_endpoint *endpoints; /* advertised */
    size_t n_endpoints;
    char *rack; /* NULL: none */
    bool delete_topic_enable, auto_leader_rebalance_enable, unclean_leader_election_enable, controlled_shutdown_enable;
    int32_t num_partitions, default_replication_factor;
    int32_t leader_imbalance_per_broker_percentage;
    int64_t leader_imbalance_check_interval_seconds;
    int32_t controlled_shutdown_max_retries;
    int64_t controlled_shutdown_retry_backoff_ms;
    int64_t file_delete_delay_ms; /* log.segment.delete.delay.ms; 0 here by default (Kafka: 60000) */
    int32_t reserved_broker_max_id;
    bool broker_id_generation_enable;
    int ibp_major, ibp_minor; /* inter.broker.protocol.version, 3.9 if unset */
    int ibp_iv;               /* the IVn suffix; INT_MAX without one (the last of that release) */
                              /* before 1.0 the minor is 100 * x + y of 0.x.y: 0.10.2 is major 0, minor 1002 */
    GHashTable *values;       /* every key of the file -> value, trimmed (char* -> char*) */
};

/* 0, or -errno with one line that names file, line or key: -ENOENT, -EINVAL (bad value, no log dir, ...). */
int broker_config_load(const char *file, struct broker_config **ret, char **ret_why);
/* The same from text; `file` is only a name. */
int broker_config_parse(const char *file, const char *text, size_t len, struct broker_config **ret, char **ret_why);
struct broker_config *broker_config_free(struct broker_config *c);
const char *broker_config_value(const struct broker_config *c, const char *key); /* NULL if the file has no such key */
/* Is the protocol version at least major.minor-IVn? */
bool broker_config_ibp_at_least(const struct broker_config *c, int major, int minor, int iv);
/* java.util.Properties: fills `ret` (char* -> char*); used for meta.properties too. 0 or -EINVAL with the line. */
int properties_parse(const char *text, size_t len, GHashTable *ret, char **ret_why);
