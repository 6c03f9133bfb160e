#pragma once
/*
 * The engine thread: every broker of this daemon, as state machines that never block. It owns sessions, registrations,
 * replica managers, metadata caches, log managers and their disk workers. Functions may be called by any thread and
 * never block, unless they say otherwise.
 */
#include "controller/broker/properties.h"
#include "controller/requests.h"
#include "fs/journal.h"
#include "fs/queue.h"
#include "fs/store/store.h"

struct engine;
struct controller_thread;
struct state_question;

struct engine_config {
    struct store *store;
    struct mirror *mirror;
    struct settle *settle;
    struct journal *events, *errors;
    struct controller_thread *controller; /* where registrations, answers and broker requests go */
    const char *cluster_dir;              /* C, absolute; NULL for a source without one */
    int64_t config_change_expiry_ms;
};
struct engine *engine_new(const struct engine_config *config);
/* Hosts a broker: `config` is taken over. Before engine_start(). -EEXIST: that id is there already. */
int engine_add_broker(struct engine *e, struct broker_config *config, char **ret_why);
/* A properties file that could not be read: a broker that shows as `failed: <why>`, if the id can be told. */
void engine_add_failed_broker(struct engine *e, int32_t broker_id, const char *file, const char *why);
/* Starts thread and brokers: persistent roots and cluster id, log dirs checked and locked and loaded, all usable
 * brokers registered in one transaction, then their candidates in ascending order of id. `gen` is held by the caller
 * until the first election and all that follows from it can be waited for with settle. Without any broker file the tree
 * stays as it is until one is started. 0 or -errno: no thread. */
int engine_start(struct engine *e, gen_t gen);
/* Orderly end at unmount: no controlled shutdown (unmounting is no event for the cluster), logs closed, checkpoints and
 * .kafka_cleanshutdown written, locks released. Blocks until done. */
void engine_stop(struct engine *e);
void engine_free(struct engine *e);

/* Store thread, for each commit, after the mirror has applied it (config changes, registrations). */
void engine_feed(struct engine *e, const struct commit *commit);

/* From the controller thread (broker_link). A broker that does not run drops it: no answer. */
void engine_request(struct engine *e, int32_t controller_id, int32_t broker_id, int64_t broker_epoch,
        struct control_request *request, gen_t gen);
void engine_respond(struct engine *e, struct broker_request *request, gen_t gen);

/* ---- commands of the shell; `answer(arg, err)` once, 0 or a positive errno (reason in `.state/errors`) ---- */
/* touch brokers/ids/B: the properties file is read anew and the broker starts; answered when it has registered or
 * cannot. Running already: 0. In a cluster directory an id without a file gets one with defaults. */
void engine_start_broker(struct engine *e, int32_t broker_id, gen_t gen, void (*answer)(void *arg, int err), void *arg);
/* rm brokers/ids/B: dies, nothing is tidied up; answered when its ephemerals are gone. */
void engine_kill_broker(struct engine *e, int32_t broker_id, gen_t gen, void (*answer)(void *arg, int err), void *arg);

/* What others have done to the log dirs by now is work, and held, when this returns: a barrier begins. Does not wait
 * for the disks. */
void engine_look(struct engine *e);

/* Parks a question about `.state/brokers/...`, writes of brokers/B/state included. controller/broker/state.c. */
void engine_state_ask(
        struct engine *e, int query, const char *path, const struct bytes *value, gen_t gen, struct state_question *q);

/* For the policy, any thread, from the files as last read: the integer value of a broker-level key
 * (`default.replication.factor`) of the lowest broker id, or `fallback`. */
int64_t engine_default_int(struct engine *e, const char *key, int64_t fallback);
