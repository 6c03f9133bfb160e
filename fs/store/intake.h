#pragma once
/*
 * The queue in front of the store thread, which forms the groups that share one fsync: while one group is being
 * committed, the next one gathers here. A group is limited, so that nobody waits long behind others.
 */
#include "fs/tree/txn.h"

enum store_item_type { ITEM_SESSION_OPEN, ITEM_SESSION_CLOSE, ITEM_TXN };

struct store_item {
    struct store_item *next;
    size_t bytes; /* set by intake_push() */
    enum store_item_type type;
    struct txn *txn; /* ITEM_TXN */
    int64_t session; /* the others */
    gen_t gen;       /* ITEM_SESSION_CLOSE, with these two */
    void (*done)(void *arg);
    void *arg;
};

struct intake;

struct intake *intake_new(void);
void intake_free(struct intake *in);
/* Any thread. Takes the item over; false after intake_close(): then it is still the caller's. */
bool intake_push(struct intake *in, struct store_item *item);
/* The next group, linked by `next`, in order of arrival: changes of sessions first, then transactions, since a session
 * is ended by what is committed of it. Waits up to `timeout_us` (-1: for ever) for the first item, and then, as long as
 * fewer than `n_clients` of the items are what somebody outside waits for, up to `linger_us` for more of those. NULL:
 * nothing came, or closed and empty. */
struct store_item *intake_take(struct intake *in, int64_t timeout_us, size_t n_clients, int64_t linger_us);
/* How many items that somebody outside waits for are queued. */
size_t intake_clients(struct intake *in);
void intake_close(struct intake *in);
bool intake_closed(struct intake *in);
