#include <string.h>
#include "controller/config/throttle.h"
#include "controller/config/value.h"

static bool parse_id(const char *text, int32_t *ret)
{
    int64_t n;
    if (!*text || strspn(text, "0123456789") != strlen(text) || !config_parse_long(text, &n) || n > INT32_MAX)
        return false;
    *ret = (int32_t)n;
    return true;
}

/* One item, stripped: false if it is no pair. */
static bool parse_pair(char *item, int32_t *ret_partition, int32_t *ret_broker)
{
    char *colon = strchr(item, ':');
    if (!colon)
        return false;
    *colon = '\0';
    return parse_id(item, ret_partition) && parse_id(colon + 1, ret_broker);
}

/* All pairs as an array of int32_t[2]; NULL if the list is bad. `*ret_all`: it is the literal `*`. */
static GArray *parse_list(const char *text, bool *ret_all)
{
    g_auto(GStrv) items = g_strsplit(text, ",", -1);
    GArray *pairs = g_array_new(FALSE, FALSE, sizeof(int32_t[2]));
    size_t n = 0, stars = 0;
    for (size_t i = 0; items[i]; i++) {
        int32_t pair[2];
        if (!*g_strstrip(items[i]))
            continue;
        n++;
        if (strcmp(items[i], "*") == 0) {
            stars++;
        } else if (parse_pair(items[i], &pair[0], &pair[1])) {
            g_array_append_val(pairs, pair);
        } else {
            g_array_unref(pairs);
            return NULL;
        }
    }
    *ret_all = stars > 0;
    if (stars == 0 || n == 1)
        return pairs;
    g_array_unref(pairs);
    return NULL;
}

bool throttle_list_valid(const char *text)
{
    bool all;
    GArray *pairs = parse_list(text, &all);
    if (!pairs)
        return false;
    g_array_unref(pairs);
    return true;
}

static int compare_ids(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

char *throttle_list_own(const char *text, int32_t broker_id)
{
    bool all;
    g_autoptr(GArray) pairs = parse_list(text, &all);
    if (!pairs)
        return NULL;
    if (all)
        return g_strdup("*");
    g_array_sort(pairs, compare_ids);
    GString *own = g_string_new(NULL);
    int32_t last = -1;
    for (guint i = 0; i < pairs->len; i++) {
        const int32_t *pair = (const int32_t *)(void *)(pairs->data + i * sizeof(int32_t[2]));
        if (pair[1] != broker_id || pair[0] == last)
            continue;
        g_string_append_printf(own, "%s%d", own->len ? "," : "", pair[0]);
        last = pair[0];
    }
    return g_string_free(own, own->len == 0);
}
