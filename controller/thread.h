#pragma once
/*
 * The controller thread: runs all candidates of this daemon, feeds them with watch events, broker answers and timers,
 * and gives them their environment (controller.h). Every function may be called by any thread, never blocks, and takes
 * the generation of its cause (held by the caller).
 */
#include <stdatomic.h>
#include "controller/controller.h"
#include "fs/journal.h"
#include "fs/queue.h"
#include "fs/store/store.h"

struct controller_thread;

/* Towards the brokers (the engine provides it). Called on the controller thread; never block. */
struct broker_link {
    void *ctx;
    void (*request)(void *ctx, int32_t controller_id, int32_t broker_id, int64_t broker_epoch,
            struct control_request *request, gen_t gen);                   /* takes a reference of its own */
    void (*respond)(void *ctx, struct broker_request *request, gen_t gen); /* takes it over */
};

struct controller_thread_config {
    struct store *store;
    struct mirror *mirror;
    struct settle *settle;
    struct journal *events, *errors;
    struct broker_link link;
};
struct controller_thread *controller_thread_new(const struct controller_thread_config *config);
/* 0 or -errno: no thread. */
int controller_thread_start(struct controller_thread *t);
/* Stops the thread; candidates are freed. */
void controller_thread_stop(struct controller_thread *t);
void controller_thread_free(struct controller_thread *t);

/* A broker has registered with this session: its candidate starts (EVENT_STARTUP). `config` and `unclean_default`
 * (controller_env.unclean_default, which may change meanwhile) are borrowed until the candidate's end. Candidates that
 * start in one go elect in the order of these calls. */
void controller_thread_candidate(struct controller_thread *t, int32_t broker_id, int64_t session,
        const struct broker_config *config, const atomic_bool *unclean_default, gen_t gen);
/* Its session ended (`expired`), or it shuts down in order. `ended(arg)` is called on the controller thread when the
 * candidate is gone and uses neither session nor config any more; may be NULL. */
void controller_thread_candidate_end(
        struct controller_thread *t, int32_t broker_id, bool expired, gen_t gen, void (*ended)(void *arg), void *arg);
/* Calls `passed(arg)` on the controller thread when all that has been queued before is handled, an election and what
 * the new controller does first included. Once the thread has ended, at once and on the caller's. */
void controller_thread_pass(struct controller_thread *t, gen_t gen, void (*passed)(void *arg), void *arg);
/* Store thread, for each commit, after the mirror has applied it. */
void controller_thread_feed(struct controller_thread *t, const struct commit *commit);
/* A broker answered a control request. Takes the references over. */
void controller_thread_response(struct controller_thread *t, int32_t controller_id, int32_t broker_id,
        int64_t broker_epoch, struct control_request *request, struct control_response *response, gen_t gen);
/* A broker asks the controller `controller_id` something; answered through broker_link.respond (KERR_NOT_CONTROLLER if
 * that candidate is not active). Takes the request over. */
void controller_thread_broker_request(
        struct controller_thread *t, int32_t controller_id, struct broker_request *request, gen_t gen);
/* `touch` of an existing marker in /admin/delete_topics. */
void controller_thread_retry_deletion(struct controller_thread *t, const char *topic, gen_t gen);
/* A topic override or broker default allows unclean election now (`topic` NULL: the default). */
void controller_thread_unclean_enabled(struct controller_thread *t, const char *topic, gen_t gen);
/* Parks a question about `.state/controller`, `.state/topics`, `.state/metrics`; see controller_state_ask(). */
void controller_thread_ask(struct controller_thread *t, int query, const char *path, struct state_question *q);
