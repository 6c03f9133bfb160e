#pragma once
/* Lists of throttled replicas: `*`, or `partition:broker` pairs (ThrottledReplicaListValidator). Pure. */
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* `*` alone (KAFKA-10460), or pairs of non-negative 32-bit numbers separated by commas; spaces around items and empty
 * items are allowed. The empty list is valid. */
bool throttle_list_valid(const char *text);
/* What a valid list means for one broker: "*", its partitions in ascending order ("0,2"), or NULL for none. Newly
 * allocated. */
char *throttle_list_own(const char *text, int32_t broker_id);
