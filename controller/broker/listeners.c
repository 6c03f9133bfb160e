#include "controller/broker/listeners.h"
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

static const char *const default_protocol_map =
        "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL";

static int refuse(char **ret_why, char *why)
{
    if (ret_why)
        *ret_why = why;
    else
        g_free(why);
    return -EINVAL;
}

static bool is_protocol(const char *name)
{
    static const char *const all[] = {"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"};

    for (size_t i = 0; i < G_N_ELEMENTS(all); i++)
        if (strcmp(name, all[i]) == 0)
            return true;
    return false;
}

/* listener name -> security protocol */
static GHashTable *parse_map(const char *text, char **ret_why)
{
    g_autoptr(GHashTable) map = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_auto(GStrv) items = g_strsplit(text, ",", -1);

    for (char **p = items; *p; p++) {
        char *item = g_strstrip(*p);
        char *colon = strrchr(item, ':');
        if (*item == '\0')
            continue;
        if (!colon) {
            refuse(ret_why, g_strdup_printf("listener.security.protocol.map: no protocol in '%s'", item));
            return NULL;
        }
        *colon = '\0';
        g_autofree char *protocol = g_ascii_strup(g_strstrip(colon + 1), -1);
        if (!is_protocol(protocol)) {
            refuse(ret_why, g_strdup_printf("listener.security.protocol.map: unknown protocol '%s'", protocol));
            return NULL;
        }
        g_hash_table_replace(map, g_ascii_strup(g_strstrip(item), -1), g_steal_pointer(&protocol));
    }
    return g_steal_pointer(&map);
}

static bool host_char(char c)
{
    return g_ascii_isalnum(c) || (c && strchr("-%._:", c));
}

/* NAME://host:port, host may stand in brackets */
static bool split_endpoint(const char *text, char **ret_name, char **ret_host, int64_t *ret_port)
{
    const char *sep = strstr(text, "://");
    const char *colon = sep ? strrchr(sep + 3, ':') : NULL;
    const char *host, *host_end;
    char *end;

    if (!sep || sep == text || !colon)
        return false;
    host = sep + 3;
    host_end = colon;
    if (*host == '[') {
        if (host_end == host + 1 || host_end[-1] != ']')
            return false;
        host++;
        host_end--;
    }
    for (const char *p = host; p < host_end; p++)
        if (!host_char(*p))
            return false;
    if (!g_ascii_isdigit(colon[1]) && colon[1] != '-')
        return false;
    *ret_port = g_ascii_strtoll(colon + 1, &end, 10);
    if (end == colon + 1 || *end != '\0')
        return false;
    *ret_name = g_ascii_strup(text, sep - text);
    *ret_host = g_strndup(host, (gsize)(host_end - host));
    return true;
}

struct broker_endpoint *listeners_copy(const struct broker_endpoint *endpoints, size_t n)
{
    struct broker_endpoint *copy = g_new0(struct broker_endpoint, n);

    for (size_t i = 0; i < n; i++)
        copy[i] = (struct broker_endpoint){.listener = g_strdup(endpoints[i].listener),
                .host = g_strdup(endpoints[i].host),
                .security_protocol = g_strdup(endpoints[i].security_protocol),
                .port = endpoints[i].port};
    return copy;
}

static int parse_one(
        const char *item, GHashTable *map, const char *default_host, struct broker_endpoint *ret, char **ret_why)
{
    g_autofree char *name = NULL;
    g_autofree char *host = NULL;
    int64_t port;

    if (!split_endpoint(item, &name, &host, &port))
        return refuse(ret_why, g_strdup_printf("'%s' is no NAME://host:port", item));
    if (port < 0 || port > 65535)
        return refuse(ret_why, g_strdup_printf("'%s': the port must be from 0 to 65535", item));
    const char *protocol = g_hash_table_lookup(map, name);
    if (!protocol)
        return refuse(ret_why, g_strdup_printf("no security protocol defined for listener '%s'", name));
    *ret = (struct broker_endpoint){.listener = g_steal_pointer(&name),
            .host = *host ? g_steal_pointer(&host) : g_strdup(default_host),
            .security_protocol = g_strdup(protocol),
            .port = (int32_t)port};
    return 0;
}

static bool is_address(int family, const char *host)
{
    unsigned char address[sizeof(struct in6_addr)];

    return inet_pton(family, host, address) == 1;
}

/* CoreUtils.listenerListToEndPoints: an IPv4 and an IPv6 address may have the same port. */
static bool one_of_each(const char *a, const char *b)
{
    return (is_address(AF_INET, a) && is_address(AF_INET6, b)) || (is_address(AF_INET6, a) && is_address(AF_INET, b));
}

static bool known_already(const GArray *list, const struct broker_endpoint *e, bool bound, const char **ret_what)
{
    for (guint i = 0; i < list->len; i++) {
        const struct broker_endpoint *o = &g_array_index(list, struct broker_endpoint, i);
        if (strcmp(o->listener, e->listener) == 0) {
            *ret_what = "name";
            return true;
        }
        if (bound && o->port == e->port && o->port != 0 && !one_of_each(o->host, e->host)) {
            *ret_what = "port";
            return true;
        }
    }
    return false;
}

int listeners_parse(const char *list, const char *protocol_map, const char *default_host, bool bound,
        struct broker_endpoint **ret, size_t *ret_n, char **ret_why)
{
    g_autoptr(GHashTable) map = parse_map(protocol_map ? protocol_map : default_protocol_map, ret_why);
    g_auto(GStrv) items = g_strsplit(list, ",", -1);
    GArray *all;
    int r = 0;

    if (!map)
        return -EINVAL;
    all = g_array_new(FALSE, FALSE, sizeof(struct broker_endpoint));
    for (char **p = items; *p && r == 0; p++) {
        struct broker_endpoint e;
        const char *what;
        if (*g_strstrip(*p) == '\0')
            continue;
        r = parse_one(*p, map, default_host, &e, ret_why);
        if (r < 0)
            break;
        bool twice = known_already(all, &e, bound, &what);
        g_array_append_val(all, e);
        if (twice)
            r = refuse(ret_why, g_strdup_printf("'%s': each listener must have a different %s", *p, what));
    }
    if (r == 0 && all->len == 0)
        r = refuse(ret_why, g_strdup("no listener"));
    size_t n = all->len;
    struct broker_endpoint *endpoints = (struct broker_endpoint *)(void *)g_array_free(all, FALSE);
    if (r < 0) {
        broker_endpoints_free(endpoints, n);
        return r;
    }
    *ret = endpoints;
    *ret_n = n;
    return 0;
}

int listeners_advertised(const char *advertised, const char *listeners, const char *protocol_map,
        struct broker_endpoint **ret, size_t *ret_n, char **ret_why)
{
    bool own = advertised && *advertised;
    const char *list = own ? advertised : listeners && *listeners ? listeners : "PLAINTEXT://:9092";
    char host[256] = "localhost";
    struct broker_endpoint *endpoints;
    size_t n;

    (void)gethostname(host, sizeof host - 1);
    int r = listeners_parse(
            list, protocol_map && *protocol_map ? protocol_map : NULL, host, !own, &endpoints, &n, ret_why);
    if (r < 0)
        return r;
    for (size_t i = 0; i < n; i++) {
        if (strcmp(endpoints[i].host, "0.0.0.0") != 0)
            continue;
        if (own) {
            broker_endpoints_free(endpoints, n);
            return refuse(ret_why, g_strdup("0.0.0.0 cannot be advertised"));
        }
        g_free(endpoints[i].host);
        endpoints[i].host = g_strdup(host);
    }
    *ret = endpoints;
    *ret_n = n;
    return 0;
}
