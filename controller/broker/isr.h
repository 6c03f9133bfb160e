#pragma once
/* What isr.c and isr_write.c share. Not for others. */
#include "controller/broker/broker_core.h"

/* A follower that has fetched with the leader's epoch and is not in the ISR. */
struct isr_follower {
    int32_t id;
    int64_t epoch;
};

enum upkeep_state {
    UPKEEP_WAITING,  /* nobody can be proposed now */
    UPKEEP_QUEUED,   /* to be proposed */
    UPKEEP_PROPOSED, /* in flight */
};

struct isr_upkeep {
    GArray *followers; /* struct isr_follower */
    enum upkeep_state state;
    GList link; /* in the queue of its state; data is the replica */
    struct broker_ids *new_isr;
    int64_t *new_isr_epochs;
    gen_t gen; /* of the cause, while it is held */
    bool held;
};

/* Does this broker ask the controller (IBP >= 2.7-IV2)? */
bool isr_by_request(const struct broker *b);
/* The proposal has been done. */
void isr_committed(struct broker *b, struct replica *r, struct broker_ids *isr, int32_t partition_epoch, gen_t gen);
/* The proposal is given up; the followers stay known. */
void isr_refused(struct broker *b, struct replica *r);
/* The replica whose proposal is in flight, if it still leads with that epoch. */
struct replica *isr_find_proposed(struct broker *b, const char *topic, int32_t partition, int32_t leader_epoch);
/* Takes the next queued one into flight; NULL: none. */
struct replica *isr_next_queued(struct broker *b);
void isr_release_cause(struct broker *b, struct replica *r);

/* ---- isr_write.c ---- */
GArray *isr_changed_new(void);
void isr_changed_free(GArray *changed);
void isr_write_queued(struct broker *b, gen_t gen);
