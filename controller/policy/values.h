#pragma once
/*
 * Is a JSON value possible at all, taken by itself? Stricter than Kafka's readers (controller/json), since this is for
 * writers: types, ranges, duplicates, empty lists, names. What depends on the rest of the cluster (an unknown topic, a
 * broker that is down) is not judged here. Each returns true, or false with a reason that names the place by its key
 * path (`partitions["0"][1]`). Unknown fields are allowed everywhere. Pure.
 */
#include <cjson/cJSON.h>
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef bool (*value_check)(const cJSON *doc, char **ret_why);

bool check_topic(const cJSON *doc, char **ret_why);
bool check_partition_state(const cJSON *doc, char **ret_why);
bool check_controller(const cJSON *doc, char **ret_why);
bool check_registration(const cJSON *doc, char **ret_why);
bool check_cluster_id(const cJSON *doc, char **ret_why);
/* Types only; keys and values are judged by config_entity_validate(). Without `quote` the reason gives no text of the
 * document but its keys: users and brokers keep secrets. */
bool check_config(const cJSON *doc, bool quote, char **ret_why);
bool check_config_change(const cJSON *doc, char **ret_why);
bool check_reassignment(const cJSON *doc, char **ret_why);
/* admin/preferred_replica_election and isr_change_notification */
bool check_partition_list(const cJSON *doc, char **ret_why);
bool check_log_dir_event(const cJSON *doc, char **ret_why);
bool check_producer_id_block(const cJSON *doc, char **ret_why);
bool check_feature(const cJSON *doc, char **ret_why);
bool check_migration(const cJSON *doc, char **ret_why);
bool check_delegation_token(const cJSON *doc, char **ret_why);
bool check_acl(const cJSON *doc, char **ret_why);
bool check_extended_acl_change(const cJSON *doc, char **ret_why);
bool check_consumer(const cJSON *doc, char **ret_why);

/* ---- for the checks themselves ---- */
/* Sets the reason and returns false. */
bool bad_value(char **ret_why, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* An item, or a text, as shown in a reason: cut at 60 bytes. Newly allocated. */
char *shown_item(const cJSON *item);
char *shown_text(const char *text);
bool check_object(const cJSON *doc, char **ret_why);
/* `version` is an integer from 1 to `max` if it is there; required with `required`. */
bool check_version(const cJSON *doc, int max, bool required, char **ret_why);
/* A required field. `where` comes before the key in the reason ("", "partitions[3]."). */
bool check_int(const cJSON *object, const char *where, const char *key, int64_t min, int64_t max, char **ret_why);
bool check_string(const cJSON *object, const char *where, const char *key, char **ret_why);
/* A list of different broker ids; with `ret_sorted` they are given back (int32_t), ascending. */
bool check_broker_ids(const cJSON *list, const char *where, bool may_be_empty, GArray **ret_sorted, char **ret_why);
/* "0", "17": decimal without sign or leading zeros, up to INT32_MAX. */
bool parse_id(const char *text, int32_t *ret);
