#pragma once
/*
 * Which replicas a broker has, and in which log dir each lives (the maps of kafka.server.ReplicaManager and
 * kafka.log.LogManager in one). Part of the broker core; pure.
 */
#include "controller/broker/broker.h"

struct isr_upkeep;

/* A replica: a log, a partition object, or both. */
struct replica {
    struct topic_ref *topic; /* owned reference; its id is the log's, "" if the log has none */
    int32_t partition;
    int16_t dir;        /* log dir of the log, -1: no log */
    int16_t future_dir; /* log dir of its `-future` log, -1: none */
    enum replica_role role;
    bool hosted;      /* a partition object exists: a LeaderAndIsr has named it */
    bool present;     /* the directory is made, completely */
    bool removed;     /* somebody removed the directory */
    bool busy;        /* the request in work is about it */
    bool out_of_sync; /* a follower that is not known to be in the ISR */
    bool fenced;      /* a leader of an epoch that is over: it proposes nothing until it is told of the next; isr.c */
    /* ---- of the last state applied; before: LEADER_EPOCH_NONE, -1, LEADER_NONE, -1, NULL ---- */
    int32_t leader_epoch, partition_epoch, leader, controller_epoch;
    struct broker_ids *replicas; /* owned reference */
    struct broker_ids *isr;      /* a leader's: owned reference */
    struct isr_upkeep *upkeep;   /* a leader's, while followers are out of sync; isr.c */
};

struct replica_manager {
    GHashTable *replicas; /* set of struct replica */
    GHashTable *topics;   /* name -> struct hosted_topic */
    size_t n_dirs;
    struct log_dir_info {
        bool online;
        size_t n_logs; /* current and future */
    } * dirs;
};

void replica_manager_init(struct replica_manager *m, size_t n_dirs);
/* Every replica must be without upkeep. */
void replica_manager_clear(struct replica_manager *m);
struct replica *replica_manager_find(const struct replica_manager *m, const char *topic, int32_t partition);
/* Makes one without log and role. `*ret_first`: it is the first of its topic; the others share its reference, if that
 * says the same. */
struct replica *replica_manager_add(
        struct replica_manager *m, struct topic_ref *topic, int32_t partition, bool *ret_first);
/* Frees it. True: it was the last one of its topic. */
bool replica_manager_remove(struct replica_manager *m, struct replica *r);
/* Gives the replica's log a dir (-1: takes it away) and keeps the counts. */
void replica_manager_place(struct replica_manager *m, struct replica *r, int dir);
void replica_manager_place_future(struct replica_manager *m, struct replica *r, int dir);
/* No state has been applied to it, as far as it knows. */
void replica_forget_state(struct replica *r);
/* The live dir with the fewest logs, the first of equals (LogManager.nextLogDirs); -1: none. */
int replica_manager_next_dir(const struct replica_manager *m);
bool replica_manager_any_dir_offline(const struct replica_manager *m);
bool replica_manager_any_dir_online(const struct replica_manager *m);
