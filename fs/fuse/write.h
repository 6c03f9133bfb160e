#pragma once
/*
 * Writing znodes: when is what has been written a value, and when is it applied? By the node's format:
 *
 *   opaque   each truncation and each write is a change of its own, made from the node's data as it is
 *   JSON     staged by handle; applied at the write that completes it; a close means nothing, the last close drops
 *   number   the same; complete with a newline, or at a close
 *   config   JSON, or lines: each is checked at its write, all are applied at a close; with O_APPEND one by one
 *
 * and under `-o raw`: staged by handle, applied at each close after a write (raw.c).
 * All on the FUSE thread; each answers the request. The handle is open for writing, its inode a znode's or staged.
 */
#include "fs/fuse/edit.h"

void write_data(fuse_req_t req, struct handle *h, const char *data, size_t len, off_t off);
void write_truncate(fuse_req_t req, struct handle *h, size_t len);
void write_flush(fuse_req_t req, struct handle *h);
/* The last close; does not answer. */
void write_release(fuse_req_t req, struct handle *h);

/* Does a new node of this path wait for its first value? */
bool must_be_staged(struct mount *m, const char *path);
/* The inode for what a request has made at `path`: the znode's own if it has the shape that was asked for, else a
 * staged one for `asked`. A new reference with one lookup. */
struct inode *enter_made(struct mount *m, const char *path, const char *asked, bool directory);

/* ---- among write*.c and raw.c ---- */
enum answer { ANSWER_WRITE, ANSWER_FLUSH, ANSWER_ATTR, ANSWER_NONE };
/* Path of the znode behind a handle; to be freed. */
char *path_of(struct mount *m, const struct handle *h);
/* Makes sure that there is something to write into: the node's value as it is shown, or nothing if the file has been
 * truncated. 0 or -errno. */
int stage(struct mount *m, struct handle *h);
/* Applies what is staged. The handle is busy until it is answered. */
void commit_staged(fuse_req_t req, struct handle *h, enum answer answer, size_t count);
/* Was this process killed by a signal, and is it closing its files for that reason? */
bool process_killed(pid_t pid);

void raw_write(fuse_req_t req, struct handle *h, const char *data, size_t len, off_t off);
void raw_truncate(fuse_req_t req, struct handle *h, size_t len);
void raw_flush(fuse_req_t req, struct handle *h);
void raw_release(fuse_req_t req, struct handle *h);

/* Lines of FORMAT_CONFIG. */
bool lines_are_json(const struct handle *h);
void lines_append(fuse_req_t req, struct handle *h, const char *data, size_t len);
void lines_append_rest(fuse_req_t req, struct handle *h);
/* Checks the lines that have been finished since the last call. 0, or an errno with a reason to be freed. */
int lines_check(struct mount *m, struct handle *h, char **ret_why);
/* Checks the last line, which has no end. */
int lines_check_last(struct mount *m, struct handle *h, char **ret_why);
