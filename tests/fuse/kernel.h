#pragma once
/*
 * The other side of the FUSE device, over a socket: a test is the kernel. It sends requests byte for byte, gets each
 * answer once, and sees every notice. No mount, no root, no /dev/fuse.
 *
 * The mount under test stands on a memory store without a thread: whoever waits for an answer lets the store work, so
 * a test decides what is committed before what (`hold`). The policy is plain ZooKeeper with a few rules of its own,
 * told by the names: *.json, *.num, *.cfg have a format; *.dir is always a directory; *.cmd is a command; below /seq
 * the name `n-` makes the next node; below /secret all is private; /fixed cannot be written.
 */
#include <glib.h>
#include <linux/fuse.h>
#include <stdbool.h>
#include <stdint.h>
#include "fs/fuse/fusefs.h"
#include "fs/store/store.h"

struct kernel {
    struct mirror *mirror;
    struct store *store;
    struct settle *settle;
    struct journal *events, *errors;
    struct policy policy;
    struct mount *mount;
    pthread_t loop;
    int fd;
    uint64_t unique;
    GHashTable *answers;    /* &struct answer.unique -> struct answer, not yet taken */
    GQueue notices;         /* struct notice_seen, not yet taken */
    GHashTable *asked;      /* uniques whose answer is due */
    GHashTable *interrupts; /* of interrupts: libfuse may answer EAGAIN to one that came too early */
    bool hold;              /* the store does not work */
    /* the policy's */
    GQueue questions; /* struct asked_question: parked */
    pthread_mutex_t lock;
    int command_err;
    unsigned commands;
    void (*command_answer)(void *arg, int err); /* the last command's, if it is not answered at once */
    void *command_arg;
    bool hold_commands;
};

struct answer {
    uint64_t unique;
    int err; /* positive */
    size_t len;
    char body[];
};

struct notice_seen {
    int code; /* enum fuse_notify_code */
    uint64_t ino, parent;
    int64_t off;
    char name[256];
};

struct asked_question {
    enum state_query query;
    char *path, *value;
    struct state_question *q;
};

/* policy.c */
struct policy kernel_policy(struct kernel *k);

struct kernel *kernel_new(bool raw);
/* Ends the mount in order; every answer due must have come. */
void kernel_free(struct kernel *k);

/* Sends a request; the body is put together from two parts. */
uint64_t kernel_send(
        struct kernel *k, uint32_t opcode, uint64_t ino, const void *a, size_t a_len, const void *b, size_t b_len);
/* As `pid`. */
uint64_t kernel_send_as(struct kernel *k, pid_t pid, uint32_t opcode, uint64_t ino, const void *a, size_t a_len,
        const void *b, size_t b_len);
/* Raw bytes, for the fuzzer. */
void kernel_send_raw(struct kernel *k, const void *message, size_t len);
/* Waits for an answer; to be freed. Fails the test after some seconds. */
struct answer *kernel_wait(struct kernel *k, uint64_t unique);
/* Has the answer come? Takes in what has. */
bool kernel_has(struct kernel *k, uint64_t unique);
/* All that has been sent so far has been handled (not: answered). */
void kernel_sync(struct kernel *k);
/* Lets the store work off what is queued. */
void kernel_commit(struct kernel *k);
/* Takes in what comes for up to `ms`. */
void kernel_pump(struct kernel *k, int ms);
/* The next notice; fails the test if none comes. */
struct notice_seen kernel_notice(struct kernel *k);
/* Waits until every cause so far has had its effect (the barrier), then drops the notices; true if one of them was
 * this. */
bool kernel_told(struct kernel *k, int code, uint64_t parent_or_ino, const char *name);
void kernel_settle(struct kernel *k);
void kernel_forget_notices(struct kernel *k);

/* ---- requests: positive errno, or 0 with the result ---- */
int k_lookup(struct kernel *k, uint64_t parent, const char *name, struct fuse_entry_out *ret);
/* The inode of a path that is there. */
uint64_t k_walk(struct kernel *k, const char *path);
void k_forget(struct kernel *k, uint64_t ino, uint64_t n);
int k_getattr(struct kernel *k, uint64_t ino, struct fuse_attr_out *ret);
int k_mkdir(struct kernel *k, uint64_t parent, const char *name, struct fuse_entry_out *ret);
int k_unlink(struct kernel *k, uint64_t parent, const char *name);
int k_rmdir(struct kernel *k, uint64_t parent, const char *name);
int k_rename(
        struct kernel *k, uint64_t parent, const char *name, uint64_t new_parent, const char *new_name, unsigned flags);
int k_create(struct kernel *k, uint64_t parent, const char *name, int flags, unsigned mode, struct fuse_entry_out *ret,
        uint64_t *ret_fh);
int k_open(struct kernel *k, uint64_t ino, int flags, uint64_t *ret_fh);
int k_opendir(struct kernel *k, uint64_t ino, uint64_t *ret_fh);
/* Number of bytes read, or -errno. */
ssize_t k_read(struct kernel *k, uint64_t ino, uint64_t fh, char *buf, size_t size, uint64_t off);
ssize_t k_write(struct kernel *k, uint64_t ino, uint64_t fh, const char *text, uint64_t off);
int k_flush(struct kernel *k, uint64_t ino, uint64_t fh);
int k_flush_as(struct kernel *k, pid_t pid, uint64_t ino, uint64_t fh);
int k_release(struct kernel *k, uint64_t ino, uint64_t fh);
int k_truncate(struct kernel *k, uint64_t ino, uint64_t fh, uint64_t size); /* fh 0: by path */
int k_touch(struct kernel *k, uint64_t ino);
/* Names of a whole directory, sorted, joined by blanks; to be freed. */
char *k_list(struct kernel *k, uint64_t ino);
char *k_xattr(struct kernel *k, uint64_t ino, const char *name); /* to be freed; NULL: an error */

/* ---- helpers over them ---- */
/* `echo -n TEXT > PATH`, as bash does it: open or create, FLUSH, WRITE, FLUSH, RELEASE. The first errno. */
int sh_write(struct kernel *k, const char *path, const char *text);
int sh_append(struct kernel *k, const char *path, const char *text);
/* What `cat` prints; to be freed; NULL: it cannot be opened. */
char *sh_cat(struct kernel *k, const char *path);
/* Somebody else's change, by the store. */
void other_create(struct kernel *k, const char *path, const char *data);
void other_set(struct kernel *k, const char *path, const char *data);
void other_delete(struct kernel *k, const char *path);
/* The znode's data; "" for null; NULL if absent. To be freed. */
char *stored(struct kernel *k, const char *path);
int32_t stored_version(struct kernel *k, const char *path);
/* The last line of `.state/errors`, to be freed. */
char *last_error(struct kernel *k);
/* It says so somewhere. */
void assert_last_error(struct kernel *k, const char *text);
void assert_cat(struct kernel *k, const char *path, const char *text);

#define assert_stored(k, path, text)                                                                                   \
    do {                                                                                                               \
        g_autofree char *stored_ = stored(k, path);                                                                    \
        assert_non_null(stored_);                                                                                      \
        assert_string_equal(stored_, text);                                                                            \
    } while (0)
