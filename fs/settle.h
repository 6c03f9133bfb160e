#pragma once
/*
 * The barrier behind `.state/settled`: is everything that follows from earlier changes done?
 *
 * Work carries the generation of its cause: a client's request takes the current one, and every event, transaction,
 * request, disk job and kernel notice that follows from it takes the same. Opening `settled` starts a new generation;
 * its read returns when no piece of work of an older one is outstanding. So it ends even while others keep the system
 * busy. A cause is released only after its consequences are held. All functions may be called by any thread.
 */
#include <stdint.h>

typedef uint64_t gen_t;
struct settle;

struct settle *settle_new(void);
void settle_free(struct settle *s);

/* Work from outside arrives: holds the current generation and returns it. */
gen_t settle_hold_now(struct settle *s);
/* One more piece of work of generation `gen`, which the caller knows to be held now. */
void settle_hold(struct settle *s, gen_t gen);
void settle_release(struct settle *s, gen_t gen);

/* Starts a new generation; the wait is for all that is older than the value returned. */
gen_t settle_begin(struct settle *s);
/* Calls `settled(arg)` once, as soon as nothing older than `bound` is held: at once on the caller's thread, or later on
 * the thread of the last release; it must not block. */
struct settle_waiter;
struct settle_waiter *settle_wait(struct settle *s, gen_t bound, void (*settled)(void *arg), void *arg);
/* Takes a waiter back. True: it will not be called any more. False: it has been, or is being, called. Either way the
 * waiter is gone afterwards; call exactly once for each settle_wait(), also after `settled`. */
int settle_cancel(struct settle *s, struct settle_waiter *w);
