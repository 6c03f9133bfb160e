#pragma once
/* The embedded file: records in LMDB (one database, no sub-databases), one write transaction and one fsync a batch. */
#include "fs/store/backend.h"

struct lmdb_options {
    bool create; /* an empty tree where there is none */
    bool read_only;
    size_t map_size; /* address space to begin with; 0: plenty. It grows when needed */
};

/* Errors as store_open_lmdb(). */
int backend_open_lmdb(const char *dir, const struct lmdb_options *options, struct backend **ret, char **ret_why);

/* A new store without any record, not even the root, under a temporary name; -EEXIST if there is one already.
 * backend_finish_lmdb() gives it its name and closes it; without it close() leaves nothing of meaning behind. */
int backend_build_lmdb(const char *dir, struct backend **ret, char **ret_why);
int backend_finish_lmdb(struct backend *b, char **ret_why);
