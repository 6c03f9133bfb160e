#pragma once
/*
 * A small process beside the daemon, for one case: the daemon is killed (SIGKILL) while its notify thread waits in the
 * kernel for a directory's lock that a client holds, whose request only the daemon could answer. Such a thread cannot
 * be killed, keeps /dev/fuse open, and so the connection would never be aborted: the client and the daemon's parent
 * would wait for ever. The guardian is told by the kernel when the daemon's main thread dies (PR_SET_PDEATHSIG), and
 * aborts the connection of a daemon that does not end by itself.
 */

/* Starts it. Main thread, while there is no other, and before the tree takes memory. 0 or -errno. */
int guardian_begin(void);
/* Tells it which mount it is about: the one on top of `mountpoint` (absolute). 0 or -errno: -ENOENT (no kafkafs is
 * mounted there), -EPIPE (the guardian has died; SIGPIPE must be ignored). Once. */
int guardian_watch(const char *mountpoint);
/* The mount is gone: it is not needed any more. Nothing if there is none. */
void guardian_end(void);
