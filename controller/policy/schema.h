#pragma once
/*
 * What every path of Kafka's tree looks like (kafka.zk.ZkData): directory or file, format, sequential children,
 * secrets, and which values are possible. Pure functions of path and value, any thread.
 */
#include <cjson/cJSON.h>
#include "fs/policy.h"

/* For struct policy; `unused` is its ctx. */
enum node_format kafka_format(void *unused, const char *path);
bool kafka_created_empty(void *unused, const char *path);
bool kafka_is_request(void *unused, const char *path);
const char *kafka_sequential_prefix(void *unused, const char *parent);
bool kafka_sensitive(void *unused, const char *path);

/* The persistent roots with what is above them, `controller_epoch` and `cluster/id`: not to be written or removed. */
bool schema_protected(const char *path);
/* Of those, what Kafka makes with null data: it may be made again, by mkdir. */
bool schema_is_root(const char *path);

/* May a node have this name? 0, or EINVAL with the reason (a topic name, a partition number, a notification). */
int schema_check_name(const char *path, char **ret_why);
/* Is `value` possible for `path` by itself, in the format of the path? 0 with the bytes to be stored (one new
 * reference): JSON as written and numbers without the final newline, configuration as JSON, all else as it is. Or
 * EINVAL or EFBIG with a reason. `ret_doc` (may be NULL): the parsed document of FORMAT_JSON, to be freed. */
int schema_check_value(
        const char *path, const struct bytes *value, struct bytes **ret_stored, cJSON **ret_doc, char **ret_why);
