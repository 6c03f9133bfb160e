#pragma once
/*
 * What Kafka knows about each configuration key: type, default, valid values, synonyms and update mode. The tables are
 * generated at build time from kafka-<version>.json (generate.py). Pure, any thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum config_type {
    TYPE_BOOLEAN,
    TYPE_STRING,
    TYPE_SHORT,
    TYPE_INT,
    TYPE_LONG,
    TYPE_DOUBLE,
    TYPE_LIST,
    TYPE_CLASS,
    TYPE_PASSWORD,
};

enum config_rule {
    RULE_NONE,
    RULE_RANGE,       /* min..max (min_double..max_double for a DOUBLE), and `also` if has_also */
    RULE_ONE_OF,      /* one of `words`; each item of a LIST */
    RULE_ONE_OF_FOLD, /* the same, case does not matter */
    RULE_NON_EMPTY,
    RULE_METADATA_VERSION,   /* a release Kafka knows: 2.8, 2.8-IV1, 2.8.1 */
    RULE_THROTTLED_REPLICAS, /* throttle.h */
    RULE_SCRAM,              /* salt=..,stored_key=..,server_key=..,iterations=N; a secret */
};

enum config_update { UPDATE_READ_ONLY, UPDATE_PER_BROKER, UPDATE_CLUSTER_WIDE };

struct config_synonym {
    const char *key; /* NULL ends the list */
    int64_t factor;  /* what 1 of its unit is worth */
};

struct config_def {
    const char *name;
    enum config_type type;
    const char *value; /* the default as Kafka prints it; NULL: null */
    enum config_rule rule;
    int64_t min, max, also;
    double min_double, max_double;
    bool has_also;
    const char *const *words; /* ends with NULL */
    enum config_update update;
    const struct config_synonym *synonyms; /* of a topic key: broker keys in order; NULL: none */
    const char *replaced_by; /* of a broker key: set dynamically, that one hides the static value of this one */
    const char *older;       /* of a broker key: what a topic falls back to while this one has its default */
    bool listener_only;      /* dynamic only behind `listener.name.<listener>.` */
    bool mechanism;          /* may stand behind `listener.name.<listener>.<mechanism>.` */
    bool internal;           /* shown only if it is set */
};

struct config_table {
    const struct config_def *defs; /* sorted by name */
    size_t n;
};
extern const struct config_table config_table_topic, config_table_broker;
extern const struct config_table config_table_quota_client, config_table_quota_user, config_table_quota_ip;
extern const struct config_table config_table_quota_broker; /* the replication throttle rates, dynamic only */
extern const char *const config_metadata_versions[];        /* oldest first, ends with NULL */

/* NULL: no such key. */
const struct config_def *config_def_find(const struct config_table *table, const char *key);
/* A broker key: its own definition, a throttle rate's, or that of the key behind a listener prefix
 * (`listener.name.<listener>.[<mechanism>.]<key>`). NULL: a custom key. */
const struct config_def *config_def_broker(const char *key);
/* What follows `listener.name.<listener>.`, inside `key`; NULL without such a prefix. */
const char *config_listener_key(const char *key);
/* Must the value stay hidden? PASSWORD types and SCRAM credentials. */
bool config_def_is_secret(const struct config_def *def);
