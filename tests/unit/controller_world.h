#pragma once
/* What the files of the small cluster share: controller_env.c, controller_world.c, controller_world_brokers.c,
 * controller_world_view.c. */
#include "tests/unit/controller_env.h"

struct queued {
    struct controller_event *event;
    int32_t broker; /* of the candidate; 0: a watch event, for whom it concerns */
};

struct sent {
    int32_t controller, broker;
    int64_t epoch;
    struct control_request *request;
};

/* ---- controller_env.c ---- */
/* Gives a broker its candidate. */
void candidate_start(struct scripted_broker *b);
/* An event for that candidate alone. */
void candidate_post(struct scripted_broker *b, struct controller_event *event);

/* ---- controller_world.c ---- */
void world_txn_done(struct txn *txn, void *arg);
/* A client's transaction, for world_run(). */
struct txn *world_txn(void);

/* ---- controller_world_brokers.c ---- */
void broker_init(struct scripted_broker *b);
/* A control request has come; the answer is an event, or none. */
void broker_handle(struct world *w, struct sent *sent);
/* The first leader with a replica that has caught up asks for a larger in-sync set; false: there is none. */
bool brokers_propose(struct world *w);
/* The controller's answer to it. */
void broker_take_answer(struct world *w, struct broker_request *r);
