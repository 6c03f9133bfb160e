#pragma once
/* Walks a backend as a tree of paths, and finds what is not one. One thread. */
#include "fs/store/backend.h"

/* Visits every znode, parents first, siblings in the order of their creation, the root first. -EUCLEAN with a line in
 * `*ret_why` if a record is damaged, has no parent, or is missing. */
int load_tree(struct backend *b,
        void (*visit)(void *arg, const char *path, struct bytes *data, const struct zstat *stat), void *arg,
        char **ret_why);
/* For messages: a record's path as far as it is known, or its key in hex. Newly allocated. `parent` is its parent's
 * path, or NULL. */
char *load_describe(const struct record_view *view, const char *parent);
