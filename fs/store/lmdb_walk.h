#pragma once
/* The records of an embedded file, damaged or not, read without LMDB. */
#include "fs/store/backend.h"

/* Visits what lies in the file, in the order of keys: records, the meta record first, and damaged pages. Until `visit`
 * returns non-zero; returns that, or -errno if the file cannot be read. */
int lmdb_walk(int fd, int (*visit)(void *arg, const struct record_view *view), void *arg);
