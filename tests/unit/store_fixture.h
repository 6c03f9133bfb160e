#pragma once
/* A store without its thread, with a mirror behind it and its feed kept as text, for the tests of the store. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <glib.h>
#include "fs/store/backend.h"
#include "fs/store/lmdb.h"
#include "fs/store/store.h"
#include "fs/tree/mirror.h"

struct fixture {
    struct store *store;
    struct mirror *mirror;
    int64_t now;
    GString *feed; /* one line a change */
    size_t n_commits;
    char *failure; /* what `failed` was told */
    int64_t n_failures;
};

/* On a backend, or NULL for memory. Loads the mirror. */
void fixture_open(struct fixture *f, struct backend *b);
void fixture_open_lmdb(struct fixture *f, const char *dir);
void fixture_close(struct fixture *f);
struct store_config fixture_config(struct fixture *f);

/* Submits, steps, and returns the result; the transaction is freed. */
int fixture_run(struct fixture *f, struct txn *txn);
int fixture_create(struct fixture *f, const char *path, const char *data);
/* The tree as text: path, data, all of the stat but the times if `times` is false. */
char *fixture_tree(struct fixture *f, bool times);
/* A new directory, and its removal with all that is in it. */
char *fixture_dir(void);
void fixture_remove(char *dir);

/* Submits with this as `done`: the transaction stays with the caller. */
void fixture_keep(struct txn *txn, void *arg);
