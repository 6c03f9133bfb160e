/* The settings of a broker that matter here, from its server.properties (kafka.server.KafkaConfig). */
#include "controller/broker/properties.h"
#include "controller/broker/listeners.h"
#include "controller/config/manager.h"
#include <errno.h>
#include <limits.h>
#include <string.h>

#define PROPERTIES_MAX_SIZE (1 << 20)

struct parse {
    struct broker_config *c;
    char *why; /* set at the first error */
};

const char *broker_config_value(const struct broker_config *c, const char *key)
{
    return g_hash_table_lookup(c->values, key);
}

static void refuse(struct parse *p, const char *key, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void refuse(struct parse *p, const char *key, const char *fmt, ...)
{
    va_list ap;

    if (p->why)
        return;
    va_start(ap, fmt);
    g_autofree char *text = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    p->why = g_strdup_printf("%s: %s: %s", p->c->file, key, text);
}

static int64_t get_int(struct parse *p, const char *key, int64_t fallback, int64_t min, int64_t max)
{
    const char *text = broker_config_value(p->c, key);
    char *end;

    if (!text)
        return fallback;
    errno = 0;
    int64_t v = g_ascii_strtoll(text, &end, 10);
    if (*text == '\0' || *end != '\0' || errno) {
        refuse(p, key, "'%s' is no number", text);
        return fallback;
    }
    if (v < min || v > max) {
        refuse(p, key, "%s is not from %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT, text, min, max);
        return fallback;
    }
    return v;
}

static bool get_bool(struct parse *p, const char *key, bool fallback)
{
    const char *text = broker_config_value(p->c, key);

    if (!text)
        return fallback;
    if (g_ascii_strcasecmp(text, "true") == 0)
        return true;
    if (g_ascii_strcasecmp(text, "false") == 0)
        return false;
    refuse(p, key, "'%s' is neither true nor false", text);
    return fallback;
}

/* log.dirs, or log.dir; relative names start at the directory of the file. */
static void get_log_dirs(struct parse *p)
{
    const char *key = broker_config_value(p->c, "log.dirs") ? "log.dirs" : "log.dir";
    const char *text = broker_config_value(p->c, key);
    g_auto(GStrv) items = g_strsplit(text ? text : "", ",", -1);
    g_autofree char *base = g_path_get_dirname(p->c->file);

    for (char **i = items; *i; i++) {
        if (*g_strstrip(*i) == '\0')
            continue;
        g_autofree char *dir = g_canonicalize_filename(*i, g_path_is_absolute(base) ? base : NULL);
        for (guint k = 0; k < p->c->log_dirs->len; k++)
            if (strcmp(g_ptr_array_index(p->c->log_dirs, k), dir) == 0)
                refuse(p, key, "%s is given twice", dir);
        g_ptr_array_add(p->c->log_dirs, g_steal_pointer(&dir));
    }
    if (p->c->log_dirs->len == 0)
        refuse(p, "log.dirs", "no log dir");
}

static void get_listeners(struct parse *p)
{
    const char *advertised = broker_config_value(p->c, "advertised.listeners");
    const char *listeners = broker_config_value(p->c, "listeners");
    const char *map = broker_config_value(p->c, "listener.security.protocol.map");
    bool own = advertised && *advertised;
    struct broker_endpoint *bound;
    size_t n;
    g_autofree char *why = NULL;

    if (own && listeners && *listeners) { /* not advertised, and bound all the same */
        if (listeners_parse(listeners, map && *map ? map : NULL, "", true, &bound, &n, &why) < 0) {
            refuse(p, "listeners", "%s", why);
            return;
        }
        broker_endpoints_free(bound, n);
    }
    if (listeners_advertised(advertised, listeners, map, &p->c->endpoints, &p->c->n_endpoints, &why) < 0)
        refuse(p, own ? "advertised.listeners" : "listeners", "%s", why);
}

/* "2.6", "2.6-IV0", "0.10.2-IV0": see properties.h for how a release before 1.0 is kept. */
static bool parse_ibp(const char *text, int *ret_major, int *ret_minor, int *ret_iv)
{
    int v[3] = {0}, n = 0, iv = INT_MAX;
    const char *at = text;

    for (;;) {
        char *end;
        if (n == 3 || !g_ascii_isdigit(*at))
            return false;
        gint64 x = g_ascii_strtoll(at, &end, 10);
        if (x > 99)
            return false;
        v[n++] = (int)x;
        at = end;
        if (*at != '.')
            break;
        at++;
    }
    if (g_str_has_prefix(at, "-IV") && g_ascii_isdigit(at[3])) {
        char *end;
        gint64 x = g_ascii_strtoll(at + 3, &end, 10);
        if (x > 99)
            return false;
        iv = (int)x;
        at = end;
    }
    if (*at != '\0' || n < 2)
        return false;
    if (v[0] == 0) {
        if (v[1] < 8 || v[1] > 11)
            return false;
        v[1] = v[1] * 100 + v[2];
    } else if (v[0] > 3 || (v[0] == 3 && v[1] > 9) || (v[0] == 2 && v[1] > 8) || (v[0] == 1 && v[1] > 1)) {
        return false;
    }
    *ret_major = v[0];
    *ret_minor = v[1];
    *ret_iv = iv;
    return true;
}

static void get_ibp(struct parse *p)
{
    const char *key = "inter.broker.protocol.version";
    const char *text = broker_config_value(p->c, key);

    p->c->ibp_major = 3;
    p->c->ibp_minor = 9;
    p->c->ibp_iv = INT_MAX;
    if (text && !parse_ibp(text, &p->c->ibp_major, &p->c->ibp_minor, &p->c->ibp_iv))
        refuse(p, key, "'%s' is no version of a Kafka with ZooKeeper", text);
}

/* Two names of one setting: each is taken for the other (KafkaConfig.populateSynonyms). */
static void join_ids(struct parse *p)
{
    static const char broker_id[] = "broker.id", node_id[] = "node.id";
    const char *broker = broker_config_value(p->c, broker_id);
    const char *node = broker_config_value(p->c, node_id);

    if (broker && !node)
        g_hash_table_insert(p->c->values, g_strdup(node_id), g_strdup(broker));
    else if (node && !broker)
        g_hash_table_insert(p->c->values, g_strdup(broker_id), g_strdup(node));
    else if (broker && get_int(p, node_id, -1, INT32_MIN, INT32_MAX) != get_int(p, broker_id, -1, INT32_MIN, INT32_MAX))
        refuse(p, node_id, "%s is not broker.id (%s)", node, broker);
}

static void get_settings(struct parse *p)
{
    struct broker_config *c = p->c;

    join_ids(p);
    c->reserved_broker_max_id = (int32_t)get_int(p, "reserved.broker.max.id", 1000, 0, INT32_MAX);
    c->broker_id_generation_enable = get_bool(p, "broker.id.generation.enable", true);
    c->broker_id = (int32_t)get_int(p, "broker.id", -1, INT32_MIN, INT32_MAX);
    if (c->broker_id < (c->broker_id_generation_enable ? -1 : 0))
        refuse(p, "broker.id", "must be 0 or more%s", c->broker_id_generation_enable ? ", or -1 to have one made" : "");
    if (c->broker_id_generation_enable && c->broker_id > c->reserved_broker_max_id)
        refuse(p, "broker.id", "%d is above reserved.broker.max.id (%d)", c->broker_id, c->reserved_broker_max_id);
    const char *rack = broker_config_value(c, "broker.rack");
    c->rack = rack && *rack ? g_strdup(rack) : NULL;
    c->delete_topic_enable = get_bool(p, "delete.topic.enable", true);
    c->auto_leader_rebalance_enable = get_bool(p, "auto.leader.rebalance.enable", true);
    c->unclean_leader_election_enable = get_bool(p, "unclean.leader.election.enable", false);
    c->controlled_shutdown_enable = get_bool(p, "controlled.shutdown.enable", true);
    c->num_partitions = (int32_t)get_int(p, "num.partitions", 1, 1, INT32_MAX);
    c->default_replication_factor = (int32_t)get_int(p, "default.replication.factor", 1, 1, INT16_MAX);
    c->leader_imbalance_per_broker_percentage =
            (int32_t)get_int(p, "leader.imbalance.per.broker.percentage", 10, 0, INT32_MAX);
    c->leader_imbalance_check_interval_seconds =
            get_int(p, "leader.imbalance.check.interval.seconds", 300, 1, INT32_MAX);
    c->controlled_shutdown_max_retries = (int32_t)get_int(p, "controlled.shutdown.max.retries", 3, 0, INT32_MAX);
    c->controlled_shutdown_retry_backoff_ms = get_int(p, "controlled.shutdown.retry.backoff.ms", 5000, 0, INT32_MAX);
    /* 0 where Kafka has 60000: whoever waits for a deletion here sees it finished */
    c->file_delete_delay_ms = get_int(p, "log.segment.delete.delay.ms", 0, 0, INT64_MAX);
    get_log_dirs(p);
    get_listeners(p);
    get_ibp(p);
}

static void trim_values(GHashTable *values)
{
    GHashTableIter it;
    gpointer v;

    g_hash_table_iter_init(&it, values);
    while (g_hash_table_iter_next(&it, NULL, &v))
        g_strstrip(v);
}

int broker_config_parse(const char *file, const char *text, size_t len, struct broker_config **ret, char **ret_why)
{
    struct parse p = {.c = g_new0(struct broker_config, 1)};
    g_autofree char *why = NULL;

    p.c->file = g_strdup(file);
    p.c->log_dirs = g_ptr_array_new_with_free_func(g_free);
    p.c->values = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    if (properties_parse(text, len, p.c->values, &why) < 0) {
        p.why = g_strdup_printf("%s: %s", file, why);
    } else {
        trim_values(p.c->values);
        get_settings(&p);
        if (!p.why && config_static_validate(p.c, &why) != 0)
            p.why = g_strdup_printf("%s: %s", file, why);
    }
    if (p.why) {
        broker_config_free(p.c);
        if (ret_why)
            *ret_why = p.why;
        else
            g_free(p.why);
        return -EINVAL;
    }
    *ret = p.c;
    return 0;
}

int broker_config_load(const char *file, struct broker_config **ret, char **ret_why)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;
    gsize len;

    while (!g_file_get_contents(file, &text, &len, &error) && g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_INTR))
        g_clear_error(&error);
    if (!text) {
        if (ret_why)
            *ret_why = g_strdup_printf("%s: cannot be read: %s", file, error->message);
        return g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_NOENT)   ? -ENOENT
               : g_error_matches(error, G_FILE_ERROR, G_FILE_ERROR_ACCES) ? -EACCES
                                                                          : -EIO;
    }
    if (len > PROPERTIES_MAX_SIZE) {
        if (ret_why)
            *ret_why = g_strdup_printf("%s: larger than %d bytes", file, PROPERTIES_MAX_SIZE);
        return -EFBIG;
    }
    return broker_config_parse(file, text, len, ret, ret_why);
}

struct broker_config *broker_config_free(struct broker_config *c)
{
    if (!c)
        return NULL;
    g_free(c->file);
    g_ptr_array_unref(c->log_dirs);
    broker_endpoints_free(c->endpoints, c->n_endpoints);
    g_free(c->rack);
    g_hash_table_unref(c->values);
    g_free(c);
    return NULL;
}

bool broker_config_ibp_at_least(const struct broker_config *c, int major, int minor, int iv)
{
    if (c->ibp_major != major)
        return c->ibp_major > major;
    if (c->ibp_minor != minor)
        return c->ibp_minor > minor;
    return c->ibp_iv >= iv;
}
