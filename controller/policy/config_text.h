#pragma once
/*
 * What people write to /config/<type>/<name>: Kafka's JSON, or `key=value` lines that become it. Blank lines and lines
 * that begin with `#` are skipped; spaces around key and value are not part of them; `key=` alone leaves the key out.
 * Functions return 0, or an errno with a reason in words. Pure.
 */
#include <glib.h>
#include <stdbool.h>
#include "fs/tree/bytes.h"

/* The entity of a path: "topics" and "t", "users" and "u/clients/c". False if the path is none. To be freed. */
bool config_entity_of_path(const char *path, char **ret_kind, char **ret_entity);

/* One line, after those in `before`. */
int config_text_check_line(
        const char *path, const char *before, size_t before_len, const char *line, size_t len, char **ret_why);
/* A whole value, as it is to be stored: JSON as it was written, lines as JSON. One new reference. */
int config_text_whole(const char *path, const struct bytes *value, struct bytes **ret_stored, char **ret_why);
/* `stored` (may be NULL or empty) with one line applied; all else in it stays. `*ret_stored` is NULL if that changes
 * nothing. */
int config_text_apply_line(const char *path, const struct bytes *stored, const struct bytes *line,
        struct bytes **ret_stored, char **ret_why);
