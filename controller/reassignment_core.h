#pragma once
/* What the steps of a reassignment share; reassignment.c says what they are. Controller thread (or the simulation). */
#include "controller/core.h"

/* ---- the assignment as it was ---- */
struct before {
    struct partition *p;
    struct broker_ids *replicas, *adding, *removing; /* references, owned by the list */
    enum topic_unsaved unsaved;                      /* its topic's */
    bool told;                                       /* step B: the leader knows the new list, or there is none */
};
GArray *reassignment_before_new(void);
void reassignment_before_add(GArray *all, struct partition *p);
/* As if the request had not been made. */
void reassignment_roll_back(struct controller *c, struct before *r);

/* Writes the nodes of their topics; `unsaved` of a topic then says TOPIC_REASSIGNED if it could not be written. */
void reassignment_save_topics(struct controller *c, GPtrArray *partitions);
/* Replicas to be added that have no state yet become NewReplica. */
void reassignment_to_new(struct controller *c, GPtrArray *partitions);

/* ---- reassignment_update.c: step U ---- */
/* Those whose new assignment is in the tree then are added to `taken`; the others wait for a retry. */
void reassignment_update(struct controller *c, GPtrArray *partitions, GPtrArray *targets, GPtrArray *taken);

/* ---- reassignment_drop.c: replicas that the assignment has no more ---- */
/* They have a state still: it could not be written yet that they are out. */
bool reassignment_has_dropped(const struct partition *p);
void reassignment_add_dropped(struct partition *p, GArray *replicas);
/* Out of the in-sync set, and all that are out are deleted. */
void reassignment_drop(struct controller *c, GArray *dropped);
/* From OfflineReplica on. */
void reassignment_delete(struct controller *c, GArray *replicas);
