#pragma once
/* The process: background, readiness, signals. */
#include <stdbool.h>
#include <sys/types.h>

/* Fills those of stdin, stdout and stderr that the caller has closed, so that no file of ours gets their numbers. First
 * of all. 0 or -errno. */
int daemon_fill_standard_files(void);
/* Goes to the background: the parent waits until daemon_ready() or daemon_fail() and exits with 0 or 1; only the child
 * returns. Before there are threads. 0 or -errno. */
int daemon_begin(void);
/* Tells the parent, if there is one, that all is well; gives up stdin, stdout and stderr. */
void daemon_ready(void);
/* One line on stderr, which is the parent's too: "kafkafs: <why>". */
void daemon_fail(const char *why);

/* Blocks all signals that would end the process, in this thread and those it starts. */
void signals_block(void);
/* A thread that calls `stop(arg)` at each SIGTERM, SIGINT, SIGHUP or SIGQUIT. */
int signals_start(void (*stop)(void *arg), void *arg);
/* Ends the thread; no call of `stop` is under way afterwards. */
void signals_end(void);

/* Waits until a process has ended; false after `timeout_ms`. */
bool process_wait_end(pid_t pid, int timeout_ms);
/* Has the process been killed, though it may not have closed its files yet? Its main thread is dead. */
bool process_dying(pid_t pid);
