#pragma once
/*
 * Is what has been written so far a whole JSON document, the beginning of one, or nothing that can become one? An
 * incremental parser (yajl) that is fed as the bytes come. RFC 8259: UTF-8 without overlong forms and surrogates,
 * nesting at most JUDGE_MAX_DEPTH, nothing but white space after the document. What only a whole document can show
 * (duplicate keys, the numbers' values) is left to the validator. Pure.
 */
#include <stddef.h>

#define JUDGE_MAX_DEPTH 64

enum verdict {
    VERDICT_EMPTY,      /* white space at most */
    VERDICT_PREFIX,     /* a document may still come of it */
    VERDICT_COMPLETE,   /* a document; a number at the top counts as one wherever it ends */
    VERDICT_IMPOSSIBLE, /* none can come of it */
};

struct judge;

struct judge *judge_new(void);
void judge_free(struct judge *j);
/* The next `len` bytes; the verdict is on all that has been fed. Once impossible, always impossible. */
enum verdict judge_feed(struct judge *j, const void *data, size_t len);
/* Bytes fed. */
size_t judge_fed(const struct judge *j);
/* For VERDICT_IMPOSSIBLE: what is wrong, in words, without position. Borrowed. */
const char *judge_why(const struct judge *j);
/* And where: the offset in all that has been fed at which the parser gave up. */
size_t judge_error_at(const struct judge *j);
