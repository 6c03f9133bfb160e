#pragma once
/* The actions under /brokers/topics: a topic, its assignment, its partitions. For actions.c. */
#include <cjson/cJSON.h>
#include "controller/policy/actions.h"

/* REQ_MKDIR of a topic. */
void plan_new_topic(const struct actions *a, const struct request *r, struct plan *ret);
/* REQ_CREATE or REQ_SET of a topic with an assignment that is possible by itself: `stored`, parsed in `doc` (which may
 * be changed). Both stay the caller's. */
void plan_topic_value(
        const struct actions *a, const struct request *r, cJSON *doc, struct bytes *stored, struct plan *ret);
/* REQ_MKDIR of a partition: its replicas are placed, and it joins the assignment in the same transaction. */
void plan_new_partition(const struct actions *a, const struct request *r, struct plan *ret);
