#include <string.h>
#include "controller/broker/listeners.h"
#include "controller/config/listener_update.h"

struct list {
    struct broker_endpoint *endpoints;
    size_t n;
};

struct listener_set {
    struct list listeners, advertised;
    char *inter_broker; /* name of the listener that brokers use among themselves */
};

static bool parse(const struct dynamic_broker *b, const char *key, bool bound, struct list *ret, char **ret_why)
{
    g_autofree char *text = dynamic_broker_value(b, key);
    g_autofree char *map = dynamic_broker_value(b, "listener.security.protocol.map");
    if (!text) /* nothing else is advertised */
        text = dynamic_broker_value(b, "listeners");
    return listeners_parse(text, map, "", bound, &ret->endpoints, &ret->n, ret_why) == 0;
}

struct listener_set *listener_set_new(const struct dynamic_broker *b, char **ret_why)
{
    struct listener_set *s = g_new0(struct listener_set, 1);
    s->inter_broker = dynamic_broker_value(b, "inter.broker.listener.name");
    if (!s->inter_broker)
        s->inter_broker = dynamic_broker_value(b, "security.inter.broker.protocol");
    if (parse(b, "listeners", true, &s->listeners, ret_why) &&
            parse(b, "advertised.listeners", false, &s->advertised, ret_why))
        return s;
    listener_set_free(s);
    return NULL;
}

void listener_set_free(struct listener_set *s)
{
    if (!s)
        return;
    broker_endpoints_free(s->listeners.endpoints, s->listeners.n);
    broker_endpoints_free(s->advertised.endpoints, s->advertised.n);
    g_free(s->inter_broker);
    g_free(s);
}

static const struct broker_endpoint *find(const struct list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->endpoints[i].listener, name) == 0)
            return &list->endpoints[i];
    return NULL;
}

GPtrArray *listener_set_prefixes(const struct listener_set *s)
{
    GPtrArray *prefixes = g_ptr_array_new_with_free_func(g_free);
    for (size_t i = 0; s && i < s->listeners.n; i++) {
        g_autofree char *lower = g_ascii_strdown(s->listeners.endpoints[i].listener, -1);
        g_ptr_array_add(prefixes, g_strconcat("listener.name.", lower, ".", NULL));
    }
    return prefixes;
}

bool listener_set_has_prefix(const struct listener_set *s, const char *key)
{
    g_autoptr(GPtrArray) prefixes = listener_set_prefixes(s);
    for (guint i = 0; i < prefixes->len; i++)
        if (g_str_has_prefix(key, prefixes->pdata[i]))
            return true;
    return false;
}

char *listener_set_why_refused(const struct listener_set *old, const struct listener_set *now)
{
    for (size_t i = 0; i < now->advertised.n; i++)
        if (!find(&now->listeners, now->advertised.endpoints[i].listener))
            return g_strdup_printf(
                    "%s is advertised, and there is no such listener", now->advertised.endpoints[i].listener);
    if (!find(&now->advertised, now->inter_broker))
        return g_strdup_printf("the inter-broker listener %s must stay advertised", now->inter_broker);
    for (size_t i = 0; old && i < now->listeners.n; i++) {
        const struct broker_endpoint *e = &now->listeners.endpoints[i], *was = find(&old->listeners, e->listener);
        if (was && strcmp(was->security_protocol, e->security_protocol) != 0)
            return g_strdup_printf("the protocol of the existing listener %s cannot be changed", e->listener);
    }
    return NULL;
}
