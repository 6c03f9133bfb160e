#pragma once
/* `meta.properties`: which broker of which cluster a log dir belongs to (kafka.server.BrokerMetadataCheckpoint). */
#include "controller/broker/log_dir.h"

/* NULL in `*ret` if the log dir has none. 0, -EINVAL (no properties) or the error of the disk. */
int meta_properties_read(struct log_dir *d, GHashTable **ret, char **ret_why);
int meta_properties_write(struct log_dir *d, int32_t broker_id, const char *cluster_id);

/* The rules of ZooKeeper mode, for all log dirs of a broker together: `sets` (GHashTable*, NULL: none) and `paths`
 * belong together. `*broker_id` is the configured one (-1: none) and becomes the stored one, if there is one. 0, or
 * -EINVAL. */
int meta_properties_check(
        const GPtrArray *sets, char *const *paths, const char *cluster_id, int32_t *broker_id, char **ret_why);
