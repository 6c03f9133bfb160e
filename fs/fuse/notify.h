#pragma once
/*
 * Telling the kernel what has changed, so that it may keep all else for long.
 *
 * One thread sends, and it may wait in the kernel: for a directory's lock that a request in work holds. So nobody waits
 * for it but the barrier (each notice holds the generation of its cause), and requests in work never depend on it.
 * What the kernel does by itself, since it asked for the change, is not told; only the attributes are, at once and
 * before the answer, which never waits (measured on Linux 6.18).
 */
#include "fs/fuse/fusefs.h"

struct notifier;

struct notifier *notifier_new(struct mount *m);
/* 0 or -errno: no thread. */
int notifier_start(struct notifier *n);
/* Ends the thread, if there is one; what is queued is dropped, and so is what comes later. Any thread, even at once. */
void notifier_stop(struct notifier *n);
void notifier_free(struct notifier *n);

struct mount *notifier_mount(const struct notifier *n);
/* Queues the notices of a commit. Store thread. (feed.c) */
void notify_commit(struct notifier *n, const struct commit *commit);

/* ---- what feed.c queues; `gen` is held by the caller ---- */
/* `name` in `parent` means something else now than the kernel may think. */
void notify_entry(struct notifier *n, uint64_t parent, const char *name, gen_t gen);
/* `child` is gone from there: watchers of it are told. */
void notify_deleted(struct notifier *n, uint64_t parent, uint64_t child, const char *name, gen_t gen);
/* Attributes, pages and listing of `ino`, which stands in `parent` (0: it has none). */
void notify_inode(struct notifier *n, uint64_t parent, uint64_t ino, gen_t gen);
/* The attributes alone, at once. Any thread. */
void notify_attr_now(struct notifier *n, uint64_t ino);

/* The kernel has dropped the name of a znode that was removed, but somebody still watches it. The notify thread then
 * looks the name up, and is answered with the dying inode: a new reference with one lookup more, or NULL for all
 * others. FUSE thread. */
struct inode *notify_find_dying(struct notifier *n, pid_t pid, uint64_t parent, const char *name);

/* Keeps a poll handle until the journal of `h` has news, or `h` is closed. FUSE thread. */
void notify_poll(struct notifier *n, struct handle *h, struct fuse_pollhandle *ph);
void notify_poll_end(struct notifier *n, const struct handle *h);
/* A line has come. Any thread. */
void notify_journals(void *notifier);
