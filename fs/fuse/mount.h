#pragma once
/* The filesystem over FUSE, from mount to unmount. Everything else in fs/fuse/ is behind this. */
#include "fs/journal.h"
#include "fs/policy.h"
#include "fs/settle.h"
#include "fs/store/store.h"

struct mount;

struct mount_config {
    const char *source;      /* shown in the mount table */
    const char *mountpoint;  /* absolute */
    GPtrArray *fuse_options; /* strings for -o, already without our own */
    bool read_only, raw;
    struct store *store;
    struct mirror *mirror;
    struct settle *settle;
    struct journal *events, *errors;
    const struct policy *policy;
};

/* Detaches a dead mount of ours that is in the way, mounts, and prepares the session. 0 or -errno with one line. The
 * store's feed must call mount_feed() from here on. */
int mount_open(const struct mount_config *config, struct mount **ret, char **ret_why);
/* Serves until unmounted or mount_stop(). Starts the notify thread. 0 for a clean end. */
int mount_serve(struct mount *m);
/* Ends mount_serve(): refuses new work, answers what is parked. Any thread (not a signal handler). */
void mount_stop(struct mount *m);
/* Store thread, after mirror_apply(), for each commit: queues the kernel notices. */
void mount_feed(struct mount *m, const struct commit *commit);
/* Unmounts if still mounted, frees. */
void mount_close(struct mount *m);
