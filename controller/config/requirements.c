#include <string.h>
#include "controller/config/requirements.h"
#include "controller/config/value.h"

enum { CODECS = 5, CLEANER_BYTES_PER_THREAD = 1024 * 1024 };

/* ---- one value ---- */

static const char *check_unlimited_or_positive(const char *value)
{
    int64_t n;
    return config_parse_long(value, &n) && n == 0 ? "must be unlimited (-1) or, greater than or equal to 1" : NULL;
}

static const char *check_positive(const char *value)
{
    int64_t n;
    return config_parse_long(value, &n) && n < 1 ? "must be greater than or equal to 1" : NULL;
}

static const char *check_not_negative(const char *value)
{
    int64_t n;
    return config_parse_long(value, &n) && n < 0 ? "must be greater than or equal to 0" : NULL;
}

static const char *check_codec(const char *value)
{
    int64_t n;
    return config_parse_long(value, &n) && (n < 0 || n >= CODECS) ? "is no compression type" : NULL;
}

static const char *check_protocols(const char *value)
{
    g_auto(GStrv) items = g_strsplit(value, ",", -1);
    return g_strv_contains((const char *const *)items, "classic") ? NULL : "the classic protocol cannot be disabled";
}

/* Csv.parseCsvMap and Utils.validHostPattern: `host:count`, separated by commas; String.split() drops empty ends. */
static const char *check_overrides(const char *value)
{
    g_auto(GStrv) items = g_strsplit(value, ",", -1);
    guint n = g_strv_length(items);
    while (n > 0 && !*items[n - 1])
        n--;
    for (guint i = 0; i < n; i++) {
        char *colon = strrchr(g_strstrip(items[i]), ':');
        int64_t count;
        if (!colon || !config_parse_long(colon + 1, &count) || count < INT32_MIN || count > INT32_MAX)
            return "must be host:count, separated by commas";
        *colon = '\0';
        for (const char *p = g_strchomp(items[i]); *p; p++)
            if (!g_ascii_isalnum(*p) && !strchr("-%._:", *p))
                return "contains an invalid address";
    }
    return NULL;
}

static const struct {
    const char *key;
    const char *(*check)(const char *value);
} of_values[] = {
        {"group.coordinator.rebalance.protocols", check_protocols},
        {"log.retention.hours", check_unlimited_or_positive},
        {"log.retention.minutes", check_unlimited_or_positive},
        {"log.retention.ms", check_unlimited_or_positive},
        {"log.roll.jitter.hours", check_not_negative},
        {"log.roll.jitter.ms", check_not_negative},
        {"log.roll.ms", check_positive},
        {"max.connections.per.ip.overrides", check_overrides},
        {"offsets.topic.compression.codec", check_codec},
};

const char *requirement_of_value(const char *key, const char *value)
{
    for (size_t i = 0; i < G_N_ELEMENTS(of_values); i++)
        if (strcmp(of_values[i].key, key) == 0)
            return of_values[i].check(value);
    return NULL;
}

/* ---- a broker ---- */

struct check {
    const struct dynamic_broker *b;
    requirement_missed missed;
    void *arg;
};

static int64_t number(const struct check *c, const char *key)
{
    return dynamic_broker_number(c->b, key, 0);
}

/* Of several names of one setting only the first that is set counts. */
static bool hidden_by_another_name(const struct check *c, const char *key)
{
    static const char *const names[][3] = {{"log.retention.ms", "log.retention.minutes", "log.retention.hours"},
            {"log.roll.jitter.ms", "log.roll.jitter.hours"}};
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        for (size_t k = 1; k < G_N_ELEMENTS(names[i]) && names[i][k]; k++) {
            if (strcmp(names[i][k], key) != 0)
                continue;
            for (size_t before = 0; before < k; before++) {
                g_autofree char *value = dynamic_broker_value(c->b, names[i][before]);
                if (value)
                    return true;
            }
        }
    return false;
}

static void check_values(const struct check *c)
{
    for (size_t i = 0; i < G_N_ELEMENTS(of_values); i++) {
        const char *key = of_values[i].key;
        g_autofree char *value = dynamic_broker_value(c->b, key);
        const char *why = value && !hidden_by_another_name(c, key) ? of_values[i].check(value) : NULL;
        if (why)
            c->missed(c->arg, key, why);
    }
}

static const struct {
    const char *less, *more;
} ordered[] = {
        {"group.consumer.heartbeat.interval.ms", "group.consumer.max.heartbeat.interval.ms"},
        {"group.consumer.min.heartbeat.interval.ms", "group.consumer.heartbeat.interval.ms"},
        {"group.consumer.min.heartbeat.interval.ms", "group.consumer.max.heartbeat.interval.ms"},
        {"group.consumer.min.session.timeout.ms", "group.consumer.max.session.timeout.ms"},
        {"group.consumer.min.session.timeout.ms", "group.consumer.session.timeout.ms"},
        {"group.consumer.session.timeout.ms", "group.consumer.max.session.timeout.ms"},
        {"group.share.heartbeat.interval.ms", "group.share.max.heartbeat.interval.ms"},
        {"group.share.min.heartbeat.interval.ms", "group.share.heartbeat.interval.ms"},
        {"group.share.min.heartbeat.interval.ms", "group.share.max.heartbeat.interval.ms"},
        {"group.share.min.record.lock.duration.ms", "group.share.record.lock.duration.ms"},
        {"group.share.min.session.timeout.ms", "group.share.max.session.timeout.ms"},
        {"group.share.min.session.timeout.ms", "group.share.session.timeout.ms"},
        {"group.share.record.lock.duration.ms", "group.share.max.record.lock.duration.ms"},
        {"group.share.session.timeout.ms", "group.share.max.session.timeout.ms"},
        {"offsets.commit.required.acks", "offsets.topic.replication.factor"},
        {"replica.fetch.wait.max.ms", "replica.lag.time.max.ms"},
        {"replica.fetch.wait.max.ms", "replica.socket.timeout.ms"},
};

static void check_order(const struct check *c)
{
    for (size_t i = 0; i < G_N_ELEMENTS(ordered); i++) {
        int64_t less = number(c, ordered[i].less), more = number(c, ordered[i].more);
        if (less <= more)
            continue;
        g_autofree char *why = g_strdup_printf(
                "%" G_GINT64_FORMAT " is more than %s, which is %" G_GINT64_FORMAT, less, ordered[i].more, more);
        c->missed(c->arg, ordered[i].less, why);
    }
}

static void check_connections(const struct check *c)
{
    static const char per_ip[] = "max.connections.per.ip", overrides[] = "max.connections.per.ip.overrides";
    static const char queued[] = "queued.max.request.bytes", delay[] = "connection.failed.authentication.delay.ms";
    g_autofree char *list = dynamic_broker_value(c->b, overrides);
    int64_t idle = number(c, "connections.max.idle.ms");
    if (number(c, per_ip) == 0 && (!list || !*list))
        c->missed(c->arg, per_ip, "can be 0 only with max.connections.per.ip.overrides");
    if (number(c, queued) > 0 && number(c, queued) < number(c, "socket.request.max.bytes"))
        c->missed(c->arg, queued, "must be larger or equal to socket.request.max.bytes");
    if (idle >= 0 && number(c, delay) >= idle)
        c->missed(c->arg, delay, "must be less than connections.max.idle.ms");
}

void requirements_of_broker(const struct dynamic_broker *b, requirement_missed missed, void *arg)
{
    static const char buffer[] = "log.cleaner.dedupe.buffer.size", acks[] = "offsets.commit.required.acks";
    struct check c = {.b = b, .missed = missed, .arg = arg};
    int64_t threads = number(&c, "log.cleaner.threads");
    check_values(&c);
    check_order(&c);
    check_connections(&c);
    if (number(&c, acks) < -1)
        missed(arg, acks, "must be at least -1");
    if (threads == 0)
        missed(arg, "log.cleaner.threads", "must be at least 1");
    else if (number(&c, buffer) / threads <= CLEANER_BYTES_PER_THREAD)
        missed(arg, buffer, "must be at least 1MB per cleaner thread");
}

/* ---- retention ---- */

/* What is kept here, of all that is kept: -1 is unlimited, -2 is "the same". */
static bool local_retention_fits(int64_t local, int64_t total)
{
    return local == -2 || total == -1 || (local != -1 && local <= total);
}

/* KafkaConfig.logRetentionTimeMillis */
static int64_t retention_ms(const struct check *c)
{
    static const struct {
        const char *key;
        int64_t factor;
    } names[] = {{"log.retention.ms", 1}, {"log.retention.minutes", 60000}, {"log.retention.hours", 3600000}};
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *value = dynamic_broker_value(c->b, names[i].key);
        int64_t n;
        if (value && config_parse_long(value, &n))
            return n < 0 ? -1 : n * names[i].factor;
    }
    return -1;
}

void requirements_of_logs(const struct dynamic_broker *b, requirement_missed missed, void *arg)
{
    static const char local_ms[] = "log.local.retention.ms", local_bytes[] = "log.local.retention.bytes";
    struct check c = {.b = b, .missed = missed, .arg = arg};
    if (!local_retention_fits(number(&c, local_ms), retention_ms(&c)))
        missed(arg, local_ms, "must not be above log.retention.ms");
    if (!local_retention_fits(number(&c, local_bytes), number(&c, "log.retention.bytes")))
        missed(arg, local_bytes, "must not be above log.retention.bytes");
}

/* ---- a topic ---- */

/* The number in the configuration, or false. */
static bool given(GHashTable *config, const char *key, int64_t *ret)
{
    const char *value = g_hash_table_lookup(config, key);
    return value && config_parse_long(value, ret);
}

const char *requirements_of_topic(GHashTable *config)
{
    int64_t a, b;
    if (given(config, "min.compaction.lag.ms", &a) && given(config, "max.compaction.lag.ms", &b) && a > b)
        return "min.compaction.lag.ms must not be above max.compaction.lag.ms";
    if (given(config, "local.retention.ms", &a) && given(config, "retention.ms", &b) && !local_retention_fits(a, b))
        return "local.retention.ms must not be above retention.ms";
    if (given(config, "local.retention.bytes", &a) && given(config, "retention.bytes", &b) &&
            !local_retention_fits(a, b))
        return "local.retention.bytes must not be above retention.bytes";
    return NULL;
}
