#pragma once
/*
 * Two questions about all topics that must not cost a walk over all of them for each new topic: does another one have
 * this id, and does another one's name collide (`.` and `_` are the same to Kafka's metric names)?
 *
 * Made at the first question, then kept up to date by the feed. Any thread. It may lag behind the mirror by the commit
 * that is being published, as a question asked a moment earlier would.
 */
#include <stdbool.h>
#include "fs/tree/mirror.h"

struct topic_index;

struct topic_index *topic_index_new(struct mirror *mirror);
struct topic_index *topic_index_free(struct topic_index *x);
/* Store thread, for each commit, after the mirror has applied it. */
void topic_index_feed(struct topic_index *x, const struct commit *commit);

/* A topic other than `topic` whose node carries this id; newly allocated, or NULL. */
char *topic_index_owner_of_id(struct topic_index *x, const char *id, const char *topic);
/* A topic that Kafka takes for the same as `topic` although its name differs (Topic.hasCollision); or NULL. */
char *topic_index_colliding(struct topic_index *x, const char *topic);
