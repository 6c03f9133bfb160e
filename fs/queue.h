#pragma once
/*
 * The unbounded queue between two threads: many senders, one receiver. Sending never blocks.
 *
 * Two lanes: items, in order, each with the generation of its cause (settle.h); and questions ("asks"), which are
 * answered between two items, ahead of the line. A question is a function that runs on the receiver's thread, so what
 * it reads there needs no lock and is always true.
 */
#include <stdbool.h>
#include <stdint.h>
#include "fs/settle.h"

struct queue;

/* Items embed this as their first member. */
struct queue_item {
    struct queue_item *next;
    gen_t gen;
};

/* With `settle`, queue_push() holds the item's generation, and the receiver releases it with queue_done(). NULL: no
 * accounting (tests). */
struct queue *queue_new(struct settle *settle);
/* The queue must be empty of items. */
void queue_free(struct queue *q);

/* `gen` is held by the caller at this moment. After queue_close() items are refused: false, and the caller keeps it. */
bool queue_push(struct queue *q, struct queue_item *item, gen_t gen);
/* Runs `fn(arg)` on the receiver's thread soon. False after queue_close(): it will never run. */
bool queue_ask(struct queue *q, void (*fn)(void *arg), void *arg);

/* Receiver: runs pending questions, then returns the next item, waiting for one until CLOCK_MONOTONIC reaches
 * `deadline_ms` (-1: no limit). NULL: the deadline passed, or the queue has ended (queue_ended()). */
struct queue_item *queue_pop(struct queue *q, int64_t deadline_ms);
/* Receiver: the item has been dealt with, and everything that follows from it is held elsewhere. */
void queue_done(struct queue *q, gen_t gen);
/* Wakes the receiver for the end; what is queued is still delivered. */
void queue_close(struct queue *q);
/* Receiver: is it closed, and everything delivered? */
bool queue_ended(struct queue *q);
