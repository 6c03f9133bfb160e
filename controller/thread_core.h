#pragma once
/* Inside the controller thread: what thread.c (queue, loop, functions for other threads) and thread_env.c (the
 * candidates' environment) share. */
#include <pthread.h>
#include "controller/core.h"
#include "controller/thread.h"

struct candidate {
    struct controller_thread *thread;
    struct controller *controller;
    int32_t broker_id;
    int64_t session;
    const atomic_bool *unclean_default;
    int64_t timers[TIMER_N]; /* CLOCK_MONOTONIC in ms, -1: not armed */
};

struct item;

struct controller_thread {
    struct controller_thread_config config;
    struct queue *queue;
    pthread_t thread;
    bool started;

    /* ---- of the controller thread ---- */
    GPtrArray *candidates; /* struct candidate, in the order in which they came */
    gen_t gen;             /* of the event that is being handled */
    time_t second;         /* for which `second_text` is the text */
    char second_text[24];

    /* ---- a pipeline of transactions that the thread waits for ---- */
    pthread_mutex_t run_lock;
    pthread_cond_t run_done;
    size_t running; /* protected by run_lock */

    /* ---- watch events that are queued, and what waits; protected by lock ---- */
    pthread_mutex_t lock;
    struct item *pending[EVENT_TYPES];
    unsigned waiting[EVENT_TYPES];
    int handling;    /* enum controller_event_type, -1: none */
    bool stopped;    /* the thread has ended */
    GPtrArray *late; /* struct item: came between the closing of the queue and that */
};

int64_t thread_now_ms(void); /* CLOCK_MONOTONIC */
/* The environment of a candidate (controller.h). */
struct controller_env candidate_env(struct candidate *candidate);
/* Is it a transaction of this thread's? */
bool thread_owns(const struct controller_thread *t, const struct txn *txn);
