#pragma once
/* Kafka's listener lists (kafka.cluster.EndPoint, CoreUtils.listenerListToEndPoints). Pure. */
#include "controller/requests.h"

/* `NAME://host:port,...`; `protocol_map`: `NAME:PROTOCOL,...` or NULL for Kafka's default. Names are
 * upper-cased. An empty host becomes `default_host`. What is `bound` needs different ports; what is advertised may be
 * one balancer's. 0 or -EINVAL with the reason. */
int listeners_parse(const char *list, const char *protocol_map, const char *default_host, bool bound,
        struct broker_endpoint **ret, size_t *ret_n, char **ret_why);
/* What a broker advertises: `advertised` if it is given, else `listeners`, else Kafka's default; either may be NULL or
 * empty. What listens everywhere is advertised under this host's name. */
int listeners_advertised(const char *advertised, const char *listeners, const char *protocol_map,
        struct broker_endpoint **ret, size_t *ret_n, char **ret_why);
struct broker_endpoint *listeners_copy(const struct broker_endpoint *endpoints, size_t n);
