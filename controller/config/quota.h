#pragma once
/*
 * Client quotas in force (ClientQuotaManager): set per entity, found for a (user, client) pair by the eight-level
 * precedence. Pure.
 */
#include <glib.h>
#include "controller/config/entity.h"

struct quota_table;

struct quota_table *quota_table_new(void);
void quota_table_free(struct quota_table *t);
/* All quotas of a user, client or pair: what is not in `values` (char* -> char*, may be NULL) is removed (KAFKA-4158).
 */
void quota_table_set(struct quota_table *t, const struct config_entity *e, GHashTable *values);
/* The value of one quota for a pair; names as under /config/users, either may be NULL for "none". Borrowed; NULL: not
 * set. `*ret_where` (may be NULL): the entity that it comes from, below /config; borrowed. */
const char *quota_table_find(
        const struct quota_table *t, const char *user, const char *client, const char *key, const char **ret_where);
/* The quota keys, sorted, ends with NULL. */
extern const char *const quota_keys[];
