#pragma once
/*
 * Notices what others do to the log dirs: one thread with an inotify watch on each, and a poll of the mount table,
 * since a disk that is unmounted under a held descriptor tells inotify nothing. It only says where to look; the log
 * dir's own worker looks, in order with its other work.
 */
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

struct watcher;

struct watcher_config {
    void *ctx;
    /* Entries of that log dir were removed or renamed away; the names (char*) are the callee's. */
    void (*removed)(void *ctx, uint64_t key, int dir, GPtrArray *names);
    /* The log dir itself changed (removed, moved, unmounted, its mode). */
    void (*changed)(void *ctx, uint64_t key, int dir);
    /* Events were lost, or the mount table changed: any log dir may be concerned. `lost`: also any entry. */
    void (*look_everywhere)(void *ctx, bool lost);
};
/* All callbacks come on the watcher's thread, or within watcher_read_now(). 0 or -errno. */
int watcher_new(const struct watcher_config *config, struct watcher **ret);
/* Ends the thread and frees; accepts NULL. */
void watcher_free(struct watcher *w);
/* What has been done to entries by now is told before this returns; any thread. (Not the mount table: it has no queue.)
 */
void watcher_read_now(struct watcher *w);
/* Watches the open directory; any thread. A watch descriptor, or -errno (then nothing is noticed by itself there). */
int watcher_add(struct watcher *w, int dir_fd, uint64_t key, int dir);
void watcher_remove(struct watcher *w, int watch);
