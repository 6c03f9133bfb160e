#pragma once
/*
 * LMDB's file, data version 1, read without LMDB. LMDB trusts every byte: a flipped bit in a page makes it crash, lose
 * records, or go back to an older tree without a word. So the file is proved to be sound before LMDB maps it, and a
 * damaged one is read as far as it can be.
 */
#include <stddef.h>
#include <stdint.h>

struct lmdb_scan {
    /* Each record in the order of keys; the pointers are good during the call. May be NULL. */
    int (*record)(void *arg, const void *key, size_t key_len, const void *value, size_t len);
    /* A page that makes no sense; its records, which would begin at about `key` (NULL: at the first), are skipped. */
    int (*fault)(void *arg, const void *key, size_t key_len, const char *what);
    void *arg;
};

/* NULL, or what is wrong with the headers of a file of `size` bytes; size: not shorter than they say. */
const char *lmdb_header_fault(int fd, uint64_t size);
/* Walks the newest tree, and the list of free pages, of a file whose headers are sound. Each page must be well-formed
 * and in one place only, keys in order, counts right. Returns 0, the first non-zero that a callback returned, or -errno
 * if the file cannot be read. */
int lmdb_scan(int fd, const struct lmdb_scan *scan);
