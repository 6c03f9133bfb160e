#pragma once
/* May a broker's listeners become these? (KafkaConfig.validateValues, DynamicListenerConfig.validateReconfiguration) */
#include "controller/config/dynamic_broker.h"

struct listener_set; /* listeners and advertised listeners in force, with their protocols */

/* NULL with the reason if what is in force is no possible set. */
struct listener_set *listener_set_new(const struct dynamic_broker *b, char **ret_why);
void listener_set_free(struct listener_set *s);
/* `listener.name.<listener>.` of each, newly allocated; none of NULL. */
GPtrArray *listener_set_prefixes(const struct listener_set *s);
/* Is it `listener.name.<one of the listeners>.…`? */
bool listener_set_has_prefix(const struct listener_set *s, const char *key);
/* NULL, or why a running broker cannot go from `old` (NULL: nothing runs) to `now`; newly allocated. */
char *listener_set_why_refused(const struct listener_set *old, const struct listener_set *now);
