#pragma once
/*
 * The value that is being written through one handle: the bytes as the writer sees them, on their way to become a whole
 * value. Nothing of it is visible to others. It starts from the node's value, or from nothing if the file was truncated
 * or is new. Pure; one owner at a time.
 */
#include <glib.h>
#include <stdatomic.h>
#include <stdbool.h>
#include "fs/fuse/judge.h"

/* Memory for all that is staged in a mount. */
struct staging_budget {
    atomic_size_t used;
    size_t max;
};

struct staging;

/* `max`: the most bytes it may hold. The budget is borrowed. */
struct staging *staging_new(struct staging_budget *budget, size_t max);
void staging_free(struct staging *s);

/* Replaces the content. 0, -EFBIG or -ENOSPC (the budget). */
int staging_set(struct staging *s, const void *data, size_t len);
/* A write at `offset`; a gap is filled with zero bytes. 0, -EFBIG or -ENOSPC, and then nothing has changed. */
int staging_write(struct staging *s, size_t offset, const void *data, size_t len);
/* Cuts, or fills up with zero bytes. Errors as above. */
int staging_truncate(struct staging *s, size_t len);
/* Takes back the last staging_write() or staging_truncate(), once. */
void staging_undo(struct staging *s);

/* Borrowed until the next change; never NULL, not terminated. */
const char *staging_data(const struct staging *s);
size_t staging_len(const struct staging *s);

/* What the content is as JSON. If the last write did not reach the end of the content, its writer may be about to go
 * on, or to cut: then a text that is impossible as a whole counts as a prefix while what lies before the end of the
 * write is one, or a document. `*ret_why`: what is wrong, with line and column, if impossible; to be freed. */
enum verdict staging_judge_json(struct staging *s, char **ret_why);
/* At the last judgement, was there a document, and behind it what it did not overwrite? */
bool staging_uncut(const struct staging *s);
/* Digits, with a sign at most, and one newline: complete with the newline, else a prefix. `*ret_why` as above. */
enum verdict staging_judge_number(const struct staging *s, char **ret_why);
