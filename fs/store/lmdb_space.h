#pragma once
/* Space on the disk for a commit, so that it does not run out half-way, and so that a full disk can be cleared. */
#include <lmdb.h>
#include "fs/store/backend.h"

struct lmdb_space {
    MDB_env *env;
    int fd; /* of the file */
    uint32_t page_size;
    uint64_t reserved_end; /* the file has blocks up to here */
};

/* Makes sure of the space before anything is written: 0 or -ENOSPC. When the disk is full, what removes something may
 * use the last pages that are reserved for it, and what does not may only use pages that are free; `*ret_short` then
 * says that the commit may still find none. */
int lmdb_space_ensure(
        struct lmdb_space *s, MDB_txn *txn, MDB_dbi dbi, const struct record_write *writes, size_t n, bool *ret_short);
/* LMDB counts a page as in use that lies beyond the end of the file, if nobody ever wrote to it; the next open takes
 * that for truncation. Makes the file as long as LMDB says. */
int lmdb_space_cover(struct lmdb_space *s);
