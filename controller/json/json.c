#include "controller/json/json.h"

#include <string.h>

bool json_fail(char **ret_why, const char *fmt, ...)
{
    if (ret_why != NULL) {
        va_list args;
        va_start(args, fmt);
        *ret_why = g_strdup_vprintf(fmt, args);
        va_end(args);
    }
    return false;
}

const char *json_clip(const char *text)
{
    enum { SHOWN = 80 };
    static _Thread_local char buffers[4][SHOWN + 4];
    static _Thread_local unsigned next;
    size_t len = strnlen(text, SHOWN + 1);
    if (len <= SHOWN)
        return text;
    char *buf = buffers[next++ % G_N_ELEMENTS(buffers)];
    len = SHOWN;
    while (len > 0 && ((unsigned char)text[len] & 0xC0) == 0x80)
        len--;
    memcpy(buf, text, len);
    memcpy(buf + len, "...", 4);
    return buf;
}

/* ---- reading ---- */

cJSON *json_document(const struct bytes *data, char **ret_why)
{
    if (data == NULL || data->len == 0) {
        json_fail(ret_why, data == NULL ? "no data" : "empty data");
        return NULL;
    }
    cJSON *root = json_parse(data->data, data->len, ret_why);
    if (root != NULL && !cJSON_IsObject(root)) {
        cJSON_Delete(root);
        json_fail(ret_why, "not a JSON object");
        return NULL;
    }
    return root;
}

bool json_field_int32(const cJSON *object, const char *key, int32_t *ret, char **ret_why)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    int64_t value;
    if (item == NULL)
        return json_fail(ret_why, "\"%s\" is missing", key);
    if (!json_integer(item, INT32_MIN, INT32_MAX, &value))
        return json_fail(ret_why, "\"%s\" is not a 32-bit integer", key);
    *ret = (int32_t)value;
    return true;
}

bool json_field_string(const cJSON *object, const char *key, const char **ret, char **ret_why)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (item == NULL)
        return json_fail(ret_why, "\"%s\" is missing", key);
    if (!cJSON_IsString(item))
        return json_fail(ret_why, "\"%s\" is not a string", key);
    *ret = item->valuestring;
    return true;
}

bool json_field_array(const cJSON *object, const char *key, const cJSON **ret, char **ret_why)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (item == NULL)
        return json_fail(ret_why, "\"%s\" is missing", key);
    if (!cJSON_IsArray(item))
        return json_fail(ret_why, "\"%s\" is not a list", key);
    *ret = item;
    return true;
}

bool json_broker_ids(const cJSON *item, const char *where, struct broker_ids **ret, char **ret_why)
{
    if (!cJSON_IsArray(item))
        return json_fail(ret_why, "%s is not a list of broker ids", where);
    g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(int32_t));
    for (const cJSON *e = item->child; e != NULL; e = e->next) {
        int64_t id;
        if (!json_integer(e, INT32_MIN, INT32_MAX, &id))
            return json_fail(ret_why, "%s: entry %u is not a broker id", where, ids->len + 1);
        int32_t id32 = (int32_t)id;
        g_array_append_val(ids, id32);
    }
    *ret = broker_ids_new((const int32_t *)(void *)ids->data, ids->len);
    return true;
}

char *json_unknown_members(const cJSON *object, const char *const *known)
{
    GString *out = NULL;
    for (const cJSON *item = object->child; item != NULL; item = item->next) {
        if (g_strv_contains(known, item->string))
            continue;
        if (out == NULL)
            out = g_string_new(NULL);
        char *value = cJSON_PrintUnformatted(item);
        g_string_append_c(out, ',');
        json_append_string(out, item->string);
        g_string_append_printf(out, ":%s", value);
        cJSON_free(value);
    }
    return out != NULL ? g_string_free(out, FALSE) : NULL;
}

bool json_decimal(const char *text, size_t len, int64_t min, int64_t max, int64_t *ret)
{
    bool negative = len > 0 && text[0] == '-';
    size_t i = negative ? 1 : 0;
    int64_t value = 0; /* kept negative: that side reaches further */
    if (i == len)
        return false;
    for (; i < len; i++) {
        if (!g_ascii_isdigit(text[i]) || __builtin_mul_overflow(value, 10, &value) ||
                __builtin_sub_overflow(value, text[i] - '0', &value))
            return false;
    }
    if (!negative && __builtin_sub_overflow(0, value, &value))
        return false;
    if (value < min || value > max)
        return false;
    *ret = value;
    return true;
}

/* ---- writing ---- */

void json_append_string(GString *out, const char *text)
{
    g_string_append_c(out, '"');
    for (const char *run = text;;) {
        const char *p = run;
        while ((unsigned char)*p >= 0x20 && *p != '"' && *p != '\\')
            p++;
        g_string_append_len(out, run, p - run);
        if (*p == '\0')
            break;
        static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
        const char *found = strchr(from, *p);
        if (found != NULL) {
            g_string_append_c(out, '\\');
            g_string_append_c(out, to[found - from]);
        } else {
            g_string_append_printf(out, "\\u%04X", (unsigned char)*p);
        }
        run = p + 1;
    }
    g_string_append_c(out, '"');
}

void json_append_int(GString *out, int64_t value)
{
    char digits[24], *p = digits + sizeof(digits);
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do
        *--p = (char)('0' + left % 10);
    while ((left /= 10) != 0);
    if (value < 0)
        *--p = '-';
    g_string_append_len(out, p, digits + sizeof(digits) - p);
}

void json_append_ids(GString *out, const struct broker_ids *ids)
{
    g_string_append_c(out, '[');
    for (uint32_t i = 0; ids != NULL && i < ids->n; i++) {
        if (i > 0)
            g_string_append_c(out, ',');
        json_append_int(out, ids->id[i]);
    }
    g_string_append_c(out, ']');
}

struct bytes *json_take(GString *out)
{
    struct bytes *data = bytes_new(out->str, out->len);
    g_string_free(out, TRUE);
    return data;
}

/* ---- scanning ---- */

bool json_scan_int32(struct json_scan *s, int32_t *ret)
{
    const char *p = s->p;
    bool negative = *p == '-';
    if (negative)
        p++;
    const char *first = p;
    int64_t value = 0;
    while (g_ascii_isdigit(*p) && p - first < 10)
        value = value * 10 + (*p++ - '0');
    if (p == first || (*first == '0' && p - first > 1) || g_ascii_isdigit(*p))
        return false;
    value = negative ? -value : value;
    if (*p == '.' || *p == 'e' || *p == 'E' || value < INT32_MIN || value > INT32_MAX)
        return false;
    *ret = (int32_t)value;
    s->p = p;
    return true;
}

bool json_scan_string(struct json_scan *s, const char **ret, size_t *ret_len)
{
    const char *p = s->p;
    if (*p++ != '"')
        return false;
    const char *start = p;
    while (*p >= 0x20 && *p != '"' && *p != '\\' && *p != 0x7F) /* ASCII only: no need to check UTF-8 */
        p++;
    if (*p != '"')
        return false;
    *ret = start;
    *ret_len = (size_t)(p - start);
    s->p = p + 1;
    return true;
}

bool json_scan_ids(struct json_scan *s, struct broker_ids **ret)
{
    enum { USUAL = 32 };
    int32_t ids[USUAL];
    size_t n = 0;
    if (!json_scan_char(s, '['))
        return false;
    if (!json_scan_char(s, ']')) {
        do {
            if (n == USUAL || !json_scan_int32(s, &ids[n++]))
                return false;
        } while (json_scan_char(s, ','));
        if (!json_scan_char(s, ']'))
            return false;
    }
    *ret = broker_ids_new(ids, n);
    return true;
}
