#pragma once
/*
 * A broker's metadata cache (kafka.server.metadata.ZkMetadataCache): what UpdateMetadata requests have said. It keeps
 * references to the requests' own partition states, so all brokers of a process share one copy.
 */
#include "controller/requests.h"

struct metadata_cache;

struct metadata_cache *metadata_cache_new(void);
void metadata_cache_free(struct metadata_cache *c);
/* Live brokers are replaced, partitions merged; a leader of LEADER_DURING_DELETE removes the partition, and the last
 * one removes the topic. */
void metadata_cache_update(struct metadata_cache *c, const struct control_request *update);

bool metadata_cache_has_broker(const struct metadata_cache *c, int32_t broker_id);
/* Ids of the live brokers; owned by the caller. */
GArray *metadata_cache_brokers(const struct metadata_cache *c);
/* Borrowed; NULL if unknown. */
const struct partition_state *metadata_cache_partition(
        const struct metadata_cache *c, const char *topic, int32_t partition);
/* Names, sorted; owned by the caller. Partitions: ids, sorted; NULL if the topic is unknown. */
GPtrArray *metadata_cache_topics(const struct metadata_cache *c);
GArray *metadata_cache_partitions(const struct metadata_cache *c, const char *topic);
/* One line of JSON, newly allocated; NULL if unknown. */
char *metadata_cache_json(const struct metadata_cache *c, const char *topic, int32_t partition);
