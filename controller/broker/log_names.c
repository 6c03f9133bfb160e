#include "controller/broker/log_names.h"
#include <errno.h>
#include <glib.h>
#include <stdbool.h>
#include <string.h>
#include <sys/random.h>

/* A partition as Kafka writes it: "7", neither "07" nor "+7". */
static bool parse_partition(const char *text, int32_t *ret)
{
    int64_t v = 0;

    if (!g_ascii_isdigit(*text) || (*text == '0' && text[1] != '\0'))
        return false;
    for (; g_ascii_isdigit(*text); text++) {
        v = v * 10 + (*text - '0');
        if (v > INT32_MAX)
            return false;
    }
    if (*text != '\0')
        return false;
    *ret = (int32_t)v;
    return true;
}

enum log_name_kind log_name_parse(const char *name, char *topic, int32_t *partition)
{
    static const struct {
        const char *suffix;
        enum log_name_kind kind;
    } suffixes[] = {{"-delete", LOG_DELETED}, {"-future", LOG_FUTURE}, {"-stray", LOG_STRAY}};
    enum log_name_kind kind = LOG_CURRENT;
    char base[NAME_MAX + 1];
    int32_t p;

    if (strlen(name) > NAME_MAX)
        return LOG_UNKNOWN;
    if (strcmp(name, "__cluster_metadata-0") == 0)
        return LOG_SKIPPED;
    strcpy(base, name);
    for (size_t i = 0; i < G_N_ELEMENTS(suffixes); i++) {
        if (!g_str_has_suffix(name, suffixes[i].suffix))
            continue;
        kind = suffixes[i].kind;
        /* at the last dot: topics may have dots of their own (KAFKA-5232) */
        char *dot = strrchr(base, '.');
        if (!dot || strlen(dot) <= strlen(suffixes[i].suffix) + 1)
            return LOG_UNKNOWN;
        *dot = '\0';
    }
    char *dash = strrchr(base, '-');
    if (!dash || dash == base || !parse_partition(dash + 1, &p))
        return LOG_UNKNOWN;
    *dash = '\0';
    strcpy(topic, base);
    *partition = p;
    return kind;
}

int log_name_current(const char *topic, int32_t partition, char ret[NAME_MAX + 1])
{
    int n = g_snprintf(ret, NAME_MAX + 1, "%s-%d", topic, partition);

    return n > NAME_MAX ? -ENAMETOOLONG : 0;
}

void log_name_unique(const char *topic, int32_t partition, const char *suffix, char ret[NAME_MAX + 1])
{
    char tail[80];
    uint64_t random[2];

    /* names must differ from those that lie there already, no more: whatever getrandom() leaves undone is no harm */
    if (getrandom(random, sizeof random, 0) != sizeof random) {
        random[0] = (uint64_t)g_get_real_time();
        random[1] = (uint64_t)(uintptr_t)tail ^ (uint64_t)g_get_monotonic_time();
    }
    int n = g_snprintf(tail, sizeof tail, "-%d.%016" G_GINT64_MODIFIER "x%016" G_GINT64_MODIFIER "x-%s", partition,
            random[0], random[1], suffix);
    g_snprintf(ret, NAME_MAX + 1, "%.*s%s", NAME_MAX - n, topic, tail);
}
