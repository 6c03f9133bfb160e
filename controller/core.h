#pragma once
/*
 * Inside the controller: the object, and what its files offer each other. Names follow Kafka's classes; each function
 * says in its file what rule it keeps. Nothing here is for use outside controller/ (controller.h is).
 *
 * Losing the controllership ("moved"): a fenced transaction whose check of /controller_epoch fails sets `moved`. From
 * then on no transaction is run and no request sent, so the rest of the handler can only waste time; when it returns,
 * the event loop steps down (KafkaController.process, ControllerMovedException). Only loops have to look at it.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include "controller/broker/properties.h"
#include "controller/context.h"
#include "controller/controller.h"

#define EVENT_TYPES (EVENT_SHUTDOWN + 1)

struct controller_metrics { /* ControllerStats, ControllerEventManager */
    uint64_t leader_elections, unclean_leader_elections;
    struct {
        uint64_t events;
        int64_t queue_us, processing_us;
    } kind[EVENT_TYPES];
};

struct batch;

struct controller {
    int32_t broker_id;
    const struct broker_config *config; /* borrowed */
    struct controller_env env;
    bool active;
    bool moved;
    bool retry;   /* something could not be written for want of space: the next event tries again */
    bool retried; /* in vain */
    /* of /controller_epoch, as this controller won it */
    int32_t epoch, epoch_zk_version;
    int64_t epoch_czxid;
    int32_t highest_epoch;    /* seen in any place, ever */
    int64_t correlation_id;   /* of the last request */
    int64_t controller_czxid; /* of the /controller that this candidate made; 0: none */
    struct context ctx;       /* while active */
    struct batch *batch;
    GPtrArray *pending_deletions; /* struct deletion, borrowed: those with `pending` */
    struct controller_metrics metrics;
};

#define emit(c, ...) ((c)->moved ? (void)0 : (c)->env.event((c)->env.ctx, __VA_ARGS__))
#define complain(c, err, path, ...) ((c)->env.error((c)->env.ctx, err, path, __VA_ARGS__))

/* ---- fenced.c: transactions that only the controller of this epoch may do ---- */
/* A new one that begins with the check of /controller_epoch. */
struct txn *fenced_txn(const struct controller *c);
/* Runs them as one pipeline. Each then has rc ZOK or the reason; frees nothing. */
void fenced_run(struct controller *c, GPtrArray *txns);
/* fenced_run() of one, which it frees; its rc. */
int fenced_run_one(struct controller *c, struct txn *txn);
/* Removes the children of `parent` that are named in `names`, or all that there are (NULL). One that is gone already is
 * no error; what else goes wrong is said in `.state/errors`. */
void fenced_delete_children(struct controller *c, const char *parent, GPtrArray *names);
GPtrArray *txn_array_new(void); /* frees its transactions */
/* Should what comes next go into another transaction (ZooKeeper's packet limit)? */
bool txn_is_full(const struct txn *txn);

/* ---- state_node.c (KafkaZkClient.getTopicPartitionState, setTopicPartitionStatesRaw) ---- */
char *topic_path(const char *topic);
char *partition_state_path(const struct partition *p);
/* A partition state as the tree has it now. ZOK, ZNONODE, or ZBADARGUMENTS if it cannot be decoded (said in errors).
 * The caller owns ret->isr. */
int read_partition_state(struct controller *c, const struct partition *p, struct leader_and_isr *ret);

/* The same of data that has been read: ZOK or ZBADARGUMENTS. */
int decode_partition_state(struct controller *c, const struct partition *p, const struct bytes *data, int32_t version,
        struct leader_and_isr *ret);

/* It has not been written yet, or somebody has removed it. */
bool partition_state_is_missing(struct controller *c, const struct partition *p);

struct state_write {
    struct partition *p;
    struct leader_and_isr next; /* partition_epoch: the version it is expected to replace. isr owned by the list */
    int rc;                     /* ZOK: partition_epoch is the new one. ZBADVERSION: read and decide again */
};
GArray *state_writes_new(void);
/* Writes them, those of one topic that follow each other in one transaction; one that fails does not hold up others. */
void write_partition_states(struct controller *c, GArray *writes);
/* How a state is rewritten. `next` is given what the tree has now, or why there is none (rc of read_partition_state());
 * true: it has made the next state of it. `written`: it is in the tree now. Both may take the isr over. */
struct rewrite {
    bool (*next)(struct controller *c, struct partition *p, int rc, struct leader_and_isr *l, void *arg);
    void (*written)(struct controller *c, struct partition *p, struct leader_and_isr *l, void *arg);
    void *arg;
};
/* For each partition; where somebody else was faster, again with what that one wrote. */
void rewrite_partition_states(struct controller *c, GPtrArray *partitions, const struct rewrite *how);

/* ---- election.c (KafkaController.elect, resign) ---- */
void election_elect(struct controller *c);
void election_resign(struct controller *c);
/* /controller is not mine any more (or is it?): resigns if so (maybeResign). */
void election_check(struct controller *c);
/* Fenced off: resign and give /controller back if it is still mine; and elect again. */
void election_give_up(struct controller *c);
void election_step_down(struct controller *c);
/* Is a partition state's controller_epoch above this one's? Then it is not for this controller to go on from, and it
 * has moved, unless that number is mere damage. */
bool election_is_outdated(struct controller *c, const struct partition *p, int32_t epoch);

/* ---- failover.c ---- */
void controller_failover(struct controller *c);

/* ---- channel.c (ControllerBrokerRequestBatch) ---- */
struct batch *batch_new(void);
void batch_free(struct batch *b);
void batch_clear(struct batch *b);
/* LeaderAndIsr for `p` to one broker, and so UpdateMetadata for it to all. No-op without leadership information. */
void batch_leader_and_isr(struct controller *c, struct partition *p, int32_t broker, bool is_new);
void batch_leader_and_isr_all(struct controller *c, struct partition *p, const struct broker_ids *brokers, bool is_new);
void batch_stop_replica(struct controller *c, struct partition *p, int32_t broker, bool delete_partition);
void batch_update_metadata(struct controller *c, struct partition *p);
/* UpdateMetadata goes out even without a partition. */
void batch_update_metadata_empty(struct controller *c);
/* Everything, so that caches forget what is not there: a broker may have missed what a former controller has told. */
void batch_update_metadata_all(struct controller *c);
/* UpdateMetadata of this batch goes only to, or only not to, these. */
void batch_update_metadata_only(struct controller *c, const GArray *brokers, bool only);
/* Sends: all LeaderAndIsr, all UpdateMetadata, all StopReplica. */
void batch_send(struct controller *c);

/* ---- broker_change.c ---- */
/* Reads one registration; NULL if it is gone or cannot be decoded (said in errors). */
struct broker_registration *broker_read(struct controller *c, const char *id, int32_t *ret_id, int64_t *ret_epoch);
void broker_change(struct controller *c);
void broker_modifications(struct controller *c, GHashTable *names);
/* KafkaController.onReplicasBecomeOffline; `replicas`: struct replica_of */
void replicas_become_offline(struct controller *c, GArray *replicas);

/* ---- topic_change.c ---- */
void topic_change(struct controller *c, GHashTable *names);
void partition_modifications(struct controller *c, GHashTable *names);
/* Both, now: a request speaks of these topics, and what was told about them may still be queued behind it. */
void topics_catch_up(struct controller *c, GHashTable *names);
/* Reads a topic's node into the context (without leadership). NULL: no such node. */
struct topic *topic_load(struct controller *c, const char *name);
/* Its deletion was taken back before it started: what was left undone meanwhile, and what brokers were told, is put
 * right. */
void topic_take_up_again(struct controller *c, struct topic *t);
/* Reads the leadership information of its partitions; some may have none. */
void topic_load_leadership(struct controller *c, struct topic *t);
/* Is its node still the one that the context knows? Removed and made again counts as another topic. */
bool topic_is_there(struct controller *c, const struct topic *t);
/* Adds to `txn` the write of the topic's node as it should be: what memory has, and partitions that only the node has
 * (somebody has just added them); if it lacks its id alone, as it is but for that. False: that node is not there any
 * more. */
bool topic_put(struct controller *c, struct txn *txn, const struct topic *t);
/* Writes it; again when somebody else was faster. ZOK, or what is wrong. */
int topic_save(struct controller *c, struct topic *t);
/* Those that are `unsaved`, in one pipeline; what cannot be written stays so. */
void topics_save(struct controller *c, GPtrArray *topics);
void topics_save_all(struct controller *c);

/* ---- replica_state.c (ReplicaStateMachine) ---- */
struct replica_of {
    struct partition *p;
    int32_t broker;
};
GArray *replicas_new(void); /* of struct replica_of */
void replicas_add(GArray *replicas, struct partition *p, int32_t broker);
void replicas_add_all(GArray *replicas, struct partition *p, const struct broker_ids *brokers);
/* All that are assigned to `broker` (replicasOnBrokers). */
void replicas_add_on_broker(struct controller *c, GArray *replicas, int32_t broker);
/* Moves those that may, with all that the transition writes and sends; the batch is sent. Replicas whose partition
 * state could not be written stay what they were. */
void replicas_change_state(struct controller *c, GArray *replicas, enum replica_state target);
void replica_machine_startup(struct controller *c); /* failover: first states, and what follows from them */

/* ---- partition_state.c (PartitionStateMachine) ---- */
enum election_strategy { ELECT_OFFLINE, ELECT_OFFLINE_UNCLEAN, ELECT_REASSIGN, ELECT_PREFERRED, ELECT_SHUTDOWN };
/* To NewPartition, OfflinePartition or NonExistentPartition, those that may: in memory alone. */
void partitions_change_state(struct controller *c, GPtrArray *partitions, enum partition_status target);
/* To OnlinePartition by a strategy. Returns those that have got a leader by it; the caller frees the array. */
GPtrArray *partitions_elect(struct controller *c, GPtrArray *partitions, enum election_strategy strategy);
/* Elects for all New and Offline partitions of topics that are not queued for deletion (`topic` NULL: of all). How many
 * have got a leader. */
size_t partitions_trigger_online(struct controller *c, const char *topic);
void partition_machine_startup(struct controller *c); /* failover: first states, and elections */
/* `l` is what the tree has now, read or written: into memory, unless this controller has moved. Takes its isr over. */
void partition_take_leadership(struct controller *c, struct partition *p, struct leader_and_isr *l);

/* ---- leader_epoch.c ---- */
/* What follows `epoch`: above it, and above what brokers have shown. */
int32_t next_leader_epoch(const struct partition *p, int32_t epoch);
/* Raises the leader epoch and nothing else (updateLeaderEpoch). Those for which it cannot be done leave the array. */
void partitions_bump_leader_epoch(struct controller *c, GPtrArray *partitions);
/* The same, and it is told to all replicas with the next batch_send(): leader and followers take notice of a state or a
 * replica list that they do not know. */
void partitions_renew(struct controller *c, GPtrArray *partitions);
/* A broker has a state of this leader epoch that is not the controller's. If that is not below the controller's, the
 * partition is added to `behind`, to be renewed. */
void leader_epoch_shown(struct controller *c, struct partition *p, int32_t broker, int32_t epoch, GPtrArray *behind);
/* LeaderAndIsr was answered: these states can never be taken. Renews those that are still so. */
void leader_epochs_fenced(struct controller *c, int32_t broker, const struct control_request *request,
        const struct control_response *response);
/* Renews those whose epoch could not be written. */
void leader_epochs_retry(struct controller *c);

/* ---- strangers.c: in-sync members that are no replicas ---- */
bool strangers_are_in_sync(const struct partition *p);
/* At a failover, before the replicas are told anything: those that are out are deleted with the next batch. */
void strangers_startup(struct controller *c);
/* What the store had no room for then, or later. */
void strangers_retry(struct controller *c);
/* Those of these partitions; it is told to all replicas with the next batch_send(). A leader among them leaves the
 * partition offline. */
void strangers_expel(struct controller *c, GPtrArray *partitions);

/* ---- leader_election.c (Election, PartitionLeaderElectionAlgorithms) ---- */
/* Pure. True: `ret` is the next state (its isr a new reference); `*ret_unclean` is set in any case. */
bool elect_leader(const struct controller *c, const struct partition *p, const struct leader_and_isr *now,
        enum election_strategy strategy, bool unclean_allowed, struct leader_and_isr *ret, bool *ret_unclean);
/* Has the partition no in-sync replica that is online, so that the unclean setting matters? */
bool needs_unclean_election(const struct controller *c, const struct partition *p, const struct broker_ids *isr);
/* The setting now in force; false with `*ret_failed` if the configuration of the topic is no possible one. */
bool unclean_election_allowed(struct controller *c, const char *topic, bool *ret_failed);

/* ---- deletion.c (TopicDeletionManager) ---- */
bool deletion_enabled(const struct controller *c);
/* Is it the deletion that decides about the topic's replicas? Not while it waits for the end of a reassignment, which
 * needs leaders and in-sync sets like any other. */
bool deletion_decides(const struct topic *t);
/* Failover: what is queued, before the topics are loaded; what is ineligible, after. */
void deletion_load(struct controller *c);
void deletion_init(struct controller *c);
void deletion_enqueue(struct controller *c, GPtrArray *topics);      /* names (enqueueTopicsForDeletion) */
void deletion_resume_topic(struct controller *c, const char *topic); /* resumeDeletionForTopics; see deletion_run() */
/* The same for the topics of these replicas (struct replica_of), once for those of a topic that stand together: it
 * looks at all partitions. */
void deletion_resume_topics_of(struct controller *c, const GArray *replicas);
void deletion_mark_ineligible(struct controller *c, struct topic *t); /* only a queued topic */
/* Replicas of queued topics that were not deleted (`why`: what their brokers said, NULL: they are dead), or were
 * (failReplicaDeletion, completeReplicaDeletion); then deletion_run(). */
void deletion_fail_replicas(struct controller *c, GArray *replicas, const char *why);
void deletion_complete_replicas(struct controller *c, GArray *replicas);
/* resumeDeletions for the topics that something has happened to. Topics that are done are freed, with their partitions.
 */
void deletion_run(struct controller *c);
void deletion_forget(struct controller *c, struct deletion *d); /* it is not queued any more; frees it */
/* none | queued | started | ineligible: ...; newly allocated */
char *deletion_text(struct controller *c, const char *topic);
/* The events. */
void topic_deletion(struct controller *c, GHashTable *names);
void topic_deletion_retry(struct controller *c, GHashTable *names);
void stop_replica_response(
        struct controller *c, int32_t broker_id, struct control_request *request, struct control_response *response);

/* ---- deletion_client.c (ControllerDeletionClient): the only way out for the deletion manager ---- */
/* Removes the nodes of topics that are done: partition states, partitions, topic, configuration, marker. `names`:
 * char*. `done`: for each, whether it is gone now. */
void deletion_client_delete_topics(struct controller *c, GPtrArray *names, bool *done);
/* Removes markers alone (deleteTopicDeletions). */
void deletion_client_delete_markers(struct controller *c, GPtrArray *names);
/* Puts a marker back that somebody removed too late. */
void deletion_client_restore_marker(struct controller *c, const char *name);
/* UpdateMetadata for all partitions of these topics (struct topic) to all brokers (sendMetadataUpdate). */
void deletion_client_send_metadata(struct controller *c, GPtrArray *topics);

/* ---- reassignment.c: the phases ---- */
/* Takes on new targets (struct broker_ids, one for each partition). */
void reassignment_start(struct controller *c, GPtrArray *partitions, GPtrArray *targets);
/* Goes on with those whose target includes one of the brokers. */
void reassignment_brokers_started(struct controller *c, const GArray *brokers);
/* All that are being reassigned but are not in `started` (a set of struct partition). */
void reassignment_resume_all(struct controller *c, GHashTable *started);
/* Goes on with what could not be written. */
void reassignment_retry(struct controller *c);
/* Finishes those that are complete now. */
void reassignment_check(struct controller *c, GPtrArray *partitions);

/* ---- reassignment_file.c: /admin/reassign_partitions ---- */
void reassignment_file(struct controller *c);   /* it was made or changed */
void reassignment_resume(struct controller *c); /* failover: what it says, then what the topics' nodes say */
/* These are done: their entries leave the file, if they say what has been done. */
void reassignment_file_done(struct controller *c, GPtrArray *partitions);
/* Partitions that a request names and that are not known: takes in what is queued about their topics. */
void requests_catch_up(struct controller *c, const GArray *entries);
/* These topics (char *) are gone. */
void reassignment_forget_topics(struct controller *c, GPtrArray *names);

/* ---- metrics.c ---- */
/* Prometheus text; `c` may be NULL. */
void metrics_append(struct controller *c, GString *out);
const char *controller_event_name(enum controller_event_type type); /* "BrokerChange" */

/* ---- retry.c ---- */
/* What the store had no room for; sets `retry` again where it still has none. */
void retry_writes(struct controller *c);

/* ---- the rest ---- */
void leader_and_isr_response(struct controller *c, int32_t broker_id, struct control_request *request,
        struct control_response *response);                                       /* log_dir_event.c */
void log_dir_event_notification(struct controller *c);                            /* log_dir_event.c */
void isr_change_notification(struct controller *c);                               /* isr_change.c */
void partition_state_change(struct controller *c, GHashTable *names);             /* isr_change.c */
void alter_partition(struct controller *c, struct broker_request *request);       /* alter_partition.c */
void replica_leader_election(struct controller *c);                               /* preferred_election.c */
void auto_preferred_election(struct controller *c);                               /* preferred_election.c */
void unclean_election_enable(struct controller *c, GHashTable *names);            /* preferred_election.c */
void controlled_shutdown(struct controller *c, struct broker_request *request);   /* controlled_shutdown.c */
void allocate_producer_ids(struct controller *c, struct broker_request *request); /* producer_ids.c */
