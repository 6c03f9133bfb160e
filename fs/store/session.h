#pragma once
/* Who is alive, and which ephemeral nodes are whose, as committed. One thread. */
#include <glib.h>
#include <stdbool.h>
#include "fs/tree/change.h"

struct sessions;

struct sessions *sessions_new(void);
void sessions_free(struct sessions *s);
void sessions_open(struct sessions *s, int64_t session);
bool sessions_is_open(const struct sessions *s, int64_t session);
/* Keeps the index of ephemerals after a commit. */
void sessions_follow(struct sessions *s, const struct commit *commit);
/* The session accepts nothing any more; its ephemerals stay known until they are gone. */
void sessions_end(struct sessions *s, int64_t session);
/* Appends the deletion of all its ephemerals. */
void sessions_append_deletes(const struct sessions *s, int64_t session, struct txn *txn);
