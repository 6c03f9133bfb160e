#pragma once
/*
 * Requests that wait for an answer which is no change: questions about `.state`, and `settled`. A parked request is
 * answered once: by whoever takes it first, an interrupt of its process (EINTR) or the end of the mount (ESHUTDOWN).
 * Changes are not parked here, since an interrupt must not turn one that was made into an error.
 */
#include "fs/fuse/fusefs.h"

struct parking;

/* Embedded as the first member of whatever waits. */
struct parked {
    struct parking *parking;
    atomic_uint refs;
    void (*free)(struct parked *p);
    void (*interrupted)(struct parked *p); /* after the EINTR; may be NULL */
    pthread_mutex_t lock;                  /* protects `req` */
    fuse_req_t req;                        /* NULL: answered */
    GList link;                            /* in the parking, while `req` is set */
    bool linked;                           /* the parking's lock */
};

struct parking *parking_new(void);
void parking_free(struct parking *k);
/* Initialises `p` with one reference, which parked_unref() drops. */
void parked_init(struct parking *k, struct parked *p, fuse_req_t req, void (*free)(struct parked *p),
        void (*interrupted)(struct parked *p));
/* From here on an interrupt ends it. FUSE thread. */
void parked_wait(struct parked *p);
/* The request to be answered by the caller, who then calls parked_answered(); or NULL: it has been answered. Any
 * thread.
 */
fuse_req_t parked_take(struct parked *p);
void parked_answered(struct parked *p);
struct parked *parked_ref(struct parked *p);
struct parked *parked_unref(struct parked *p);
/* Answers all that wait, and what comes later at once. When it returns no answer is being given any more. */
void parking_close(struct parking *k);
