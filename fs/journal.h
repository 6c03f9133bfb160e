#pragma once
/*
 * Lines for people, in memory, newest last: the files `.state/events` and `.state/errors`. Bounded: the oldest whole
 * lines are dropped, and a reader that missed some is told with a line `lost N` (N lines). Thread-safe; a writer never
 * waits for a reader.
 */
#include <stddef.h>
#include <stdint.h>

struct journal;

struct journal *journal_new(size_t max_bytes);
void journal_free(struct journal *j);
/* Appends one line; control characters in the text are written as \xNN (a name cannot forge a line). No newline is
 * needed. */
void journal_line(struct journal *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Up to `len` bytes from position `*pos` (0: the start; what was dropped since is told); advances `*pos`. Returns the
 * count, 0 at the end. A position is no byte count. With less than 32 bytes a `lost` line may be cut short. */
size_t journal_read(struct journal *j, uint64_t *pos, char *buf, size_t len);
/* Position after the newest line. */
uint64_t journal_end(struct journal *j);
/* The same lines as a file sees them, in bytes counted over all lines ever written: the oldest byte kept, the end; how
 * many lines have been dropped; when the newest came (0: none has). journal_seek(): the position of a byte (of the
 * oldest kept, if it is dropped). */
struct journal_extent {
    uint64_t first, end, lost;
    int64_t newest_ms;
};
struct journal_extent journal_extent(struct journal *j);
uint64_t journal_seek(struct journal *j, uint64_t byte);
/* `changed(arg)` is called on the appending thread after each line (for poll); it must not block. One observer. */
void journal_observe(struct journal *j, void (*changed)(void *arg), void *arg);

/* A line of `.state/errors`: `<time> <errno name> <path>: <what>`, time in UTC with ms. `err` 0 is written as WARN. */
void journal_error(struct journal *errors, int err, const char *path, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
