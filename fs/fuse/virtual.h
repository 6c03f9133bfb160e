#pragma once
/*
 * The subtree `.state`: the policy's answers as files, and the three files that fs/ serves itself: `settled` (a read of
 * it is the barrier), `errors` and `events` (journals). Found by name in the root, never listed there.
 */
#include "fs/fuse/fusefs.h"

#define STATE_ROOT "/.state"

struct virtual_entry {
    char *name;
    enum virtual_kind kind;
};

/* What the callers of these have found out: the inode is INODE_VIRTUAL. Each answers the request. */
void virtual_lookup_root(fuse_req_t req);
void virtual_lookup(fuse_req_t req, struct inode *dir, const char *name);
void virtual_open(fuse_req_t req, struct inode *i, int flags);
void virtual_read(fuse_req_t req, struct handle *h, size_t size, off_t off);
void virtual_write(fuse_req_t req, struct handle *h, const char *data, size_t len);
void virtual_flush(fuse_req_t req, struct handle *h);
void virtual_readdir(fuse_req_t req, struct inode *dir, size_t size, off_t off, bool plus);
void virtual_readlink(fuse_req_t req, struct inode *i);
/* Is there something new in the journal for this handle? */
bool virtual_has_news(struct handle *h);

/* ---- question.c ---- */
/* Puts a question to the policy. What the answer is used for follows from the query: an entry, a listing of `dir`
 * (from `off`, at most `size`), the content of `h`, a link's target, `count` bytes written (0: the answer to a flush).
 */
struct question {
    enum state_query query;
    const char *path;
    const struct bytes *value;
    struct handle *h;
    struct inode *dir;
    size_t size, count;
    off_t off;
    bool plus;
};
void question_ask(fuse_req_t req, const struct question *question);

/* ---- listing.c ---- */
/* The listings of one virtual directory that somebody is reading. */
struct listings *listings_new(void);
void listings_free(struct listings *all);
/* Entries: a GPtrArray of struct virtual_entry. */
GPtrArray *listing_entries_new(void);
void listing_entries_add(GPtrArray *entries, const char *name, enum virtual_kind kind);
/* Keeps them until the end has been read (a reference is taken); returns the listing's number. Any thread. */
uint32_t listings_add(struct listings *all, GPtrArray *entries);
uint32_t listing_number(off_t cookie);
/* The listing that a cookie belongs to: a reference, or NULL. */
GPtrArray *listings_find(struct listings *all, off_t cookie);
/* Answers with what comes after the cookie. Takes the reference over, and lets go of it before the answer: with that,
 * the next reader on another thread may be the last one. */
void listings_reply(fuse_req_t req, struct listings *all, GPtrArray *entries, uint32_t number, off_t cookie,
        size_t size, bool plus);
