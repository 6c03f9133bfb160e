#pragma once
/*
 * The namespace policy: all that fs/ does not know, since it knows no Kafka. controller/policy provides one, main.c
 * wires it. Every function is called on the FUSE thread and must not wait, unless it says otherwise.
 *
 * Paths are znode paths. Virtual paths (the subtree `.state`) start with "/.state". fs/ serves `.state/settled`,
 * `.state/errors` and `.state/events` itself and asks the policy for everything else below it.
 */
#include <stdbool.h>
#include <sys/types.h>
#include "fs/tree/mirror.h"
#include "fs/tree/txn.h"

/* What a whole value of a node is, and so when a value that is being written is complete. */
enum node_format {
    FORMAT_OPAQUE, /* exactly the bytes written; each open with truncation, write and truncate is one change */
    FORMAT_JSON,   /* one JSON document; applied at the write that completes it; shown with one final newline */
    FORMAT_NUMBER, /* digits; complete at a newline or at close; shown with one final newline */
    FORMAT_CONFIG, /* a JSON document, or `key=value` lines that are checked one by one and applied together at close;
                      with O_APPEND each finished line is a change of its own */
};

enum request_type {
    REQ_MKDIR,  /* make `path` with null data */
    REQ_CREATE, /* make `path` with `value` (never NULL; empty for an empty file) */
    REQ_SET,    /* new value of an existing `path`; `value` NULL: null data (`rm .data`) */
    REQ_APPEND, /* FORMAT_CONFIG: one finished line, `value`, for an existing or new `path` */
    REQ_UNLINK, /* rm of a file */
    REQ_RMDIR,
    REQ_RENAME, /* `path` to `new_path`; `replace`: the target may exist. `value` is set, and `path` NULL, for a private
                   temporary file that is renamed over a name */
    REQ_TOUCH,  /* touch of an existing node (utimensat to now) */
};

struct request {
    enum request_type type;
    const char *path;
    const char *new_path;
    const struct bytes *value; /* as written, whole; the policy strips a final newline where the format says so */
    bool replace;
    bool raw; /* the mount is `-o raw` */
    pid_t pid;
};

enum plan_type {
    PLAN_REFUSE,  /* fails with `err` (positive errno); a `reason` goes to `.state/errors` */
    PLAN_NOTHING, /* succeeds, nothing is to be done */
    PLAN_TXN,     /* commit `txn`; the request succeeds with it */
    PLAN_COMMAND, /* hand the request to command(); it succeeds or fails with the answer */
};

struct plan {
    enum plan_type type;
    int err;
    char *reason;     /* owned by the plan */
    bool of_source;   /* of REQ_RENAME: the reason is about `path`, not about `new_path` */
    struct txn *txn;  /* taken over by fs/, which sets origin, generation, `done` */
    size_t result_op; /* PLAN_TXN of REQ_MKDIR and REQ_CREATE: the operation whose result_path is the new node */
    /* The transaction contains checks of what the plan was based on: if one fails, plan again on the new tree. Without
     * this a failure is the result of the request (zerr_errno). */
    bool judge_again;
};

/* A question about `.state`, parked until answered. Answered exactly once, from any thread. The answers copy. */
struct state_question;
enum state_kind { STATE_DIRECTORY, STATE_FILE, STATE_WRITABLE_FILE, STATE_LINK };
void state_answer_error(struct state_question *q, int err);
void state_answer_kind(struct state_question *q, enum state_kind kind);
void state_answer_bytes(struct state_question *q, const void *data, size_t len); /* content, or a link's target */
struct state_entry {
    const char *name;
    enum state_kind kind;
};
void state_answer_list(struct state_question *q, const struct state_entry *entries, size_t n);
void state_answer_done(struct state_question *q); /* a write was accepted */

enum state_query {
    STATE_LOOKUP,   /* what kind of thing is `path`? -> kind, or error ENOENT */
    STATE_LIST,     /* -> list */
    STATE_READ,     /* whole content -> bytes */
    STATE_READLINK, /* -> bytes */
    STATE_WRITE,    /* `value`, whole -> done; called at the write that ends with a newline, or at close */
};

struct policy {
    void *ctx;

    /* ---- shape; pure functions of the path, any thread ---- */
    bool (*always_directory)(void *ctx, const char *path);
    enum node_format (*format)(void *ctx, const char *path); /* of the node's data, file or `.data` */
    /* Is it an action of its own to create the node empty, although its format needs a value (touch brokers/ids/B)?
     * Then REQ_CREATE comes with an empty value: at the open (touch), or, if it was opened as if a value would follow
     * (`>`, cp), at the close. A value that does come is offered as REQ_CREATE too, to be refused. Otherwise REQ_CREATE
     * comes with the first whole value. */
    bool (*created_empty)(void *ctx, const char *path);
    /* Is the node, which has no format, a request that goes when it is done? Then what is still written to one that has
     * gone is no error. NULL: no node is. */
    bool (*is_request)(void *ctx, const char *path);
    /* The prefix whose exact name under `parent` makes the next sequential node ("config_change_"), or NULL. */
    const char *(*sequential_prefix)(void *ctx, const char *parent);
    /* Secrets may be in there: readable by the owner only (0600 and 0700 instead of 0644 and 0755). */
    bool (*sensitive)(void *ctx, const char *path);

    /* ---- changes ---- */
    /* Can the data of `path` be written at all (`creates`: as a new node)? Asked before the first bytes of a value are
     * staged, so that every shell sees it where plan() would refuse at the close. 0, or an errno with a reason to be
     * freed. Not asked in a raw mount. */
    int (*may_write)(void *ctx, const char *path, bool creates, char **ret_reason);
    /* Is `line` good as one line of a FORMAT_CONFIG value for `path`, after the lines `before` that have been accepted
     * on the same handle (a key twice is refused)? 0, or an errno with a reason to be freed. */
    int (*check_line)(void *ctx, const char *path, const char *before, size_t before_len, const char *line, size_t len,
            char **ret_reason);
    /* Judges a request against the tree as the mirror has it now, and says what to do. Fills in `ret`. Whatever has no
     * rule of its own gets plan_default(). Also on the store thread (judge_again). */
    void (*plan)(void *ctx, const struct request *request, struct plan *ret);
    /* PLAN_COMMAND: starts it; `answer(arg, err)` comes once, from any thread, err 0 or a positive errno (the reason
     * has then been written to `.state/errors`). The request is copied. `gen` is held by the caller until the answer.
     */
    void (*command)(void *ctx, const struct request *request, gen_t gen, void (*answer)(void *arg, int err), void *arg);

    /* ---- `.state` ---- */
    /* `settled` is being opened: what has happened outside the tree by now is to be work, and held, when this returns.
     * NULL: nothing does. */
    void (*settling)(void *ctx);
    void (*ask)(void *ctx, enum state_query query, const char *path, const struct bytes *value, gen_t gen,
            struct state_question *q);
};

/* Plain ZooKeeper: create, set, delete; a rename is create + delete of a leaf in one transaction (EPERM for a
 * directory; EEXIST, or a set, where the target exists). fs/plan.c. */
void plan_default(struct mirror *m, const struct request *request, struct plan *ret);
/* Fills `ret` as a refusal. */
void plan_refuse(struct plan *ret, int err, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Frees what the plan still owns. */
void plan_clear(struct plan *plan);
