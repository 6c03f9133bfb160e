#pragma once
/* What the codecs of controller/json share. Not for others: they use codec.h. */
#include "controller/json/codec.h"

/* Sets `*ret_why` (if wanted) and returns false, so that a decoder can `return json_fail(...)`. */
bool json_fail(char **ret_why, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Untrusted text for a reason: at most 80 bytes, cut at a character. The result is one of a few static buffers of the
 * thread, good until the fourth call. */
const char *json_clip(const char *text);

/* Data as a JSON object, or NULL with the reason (null, empty, broken, no object). */
cJSON *json_document(const struct bytes *data, char **ret_why);
/* Required fields of an object. */
bool json_field_int32(const cJSON *object, const char *key, int32_t *ret, char **ret_why);
bool json_field_string(const cJSON *object, const char *key, const char **ret, char **ret_why); /* borrowed */
bool json_field_array(const cJSON *object, const char *key, const cJSON **ret, char **ret_why);
/* An array of 32-bit integers. `where` names it in the reason. */
bool json_broker_ids(const cJSON *item, const char *where, struct broker_ids **ret, char **ret_why);
/* Decimal digits with an optional minus sign, nothing else. */
bool json_decimal(const char *text, size_t len, int64_t min, int64_t max, int64_t *ret);

/* The members of `object` that are none of `known` (ended by NULL), as `,"name":value,...` to be written back; NULL:
 * none. */
char *json_unknown_members(const cJSON *object, const char *const *known);

/* ---- writing ---- */
/* A JSON string as Jackson writes it: quotes, backslash and control characters are escaped, the rest is UTF-8. */
void json_append_string(GString *out, const char *text);
void json_append_ids(GString *out, const struct broker_ids *ids); /* [1,2,3]; NULL: [] */
void json_append_int(GString *out, int64_t value);
struct bytes *json_take(GString *out); /* frees the string */

/* ---- scanning the compact form of a few hot values without building a tree; anything else is left to cJSON ---- */
struct json_scan {
    const char *p; /* text that ends with NUL */
};
static inline bool json_scan_char(struct json_scan *s, char c)
{
    if (*s->p != c)
        return false;
    s->p++;
    return true;
}
bool json_scan_int32(struct json_scan *s, int32_t *ret);
/* A string without escapes; `*ret` points into the text. */
bool json_scan_string(struct json_scan *s, const char **ret, size_t *ret_len);
bool json_scan_ids(struct json_scan *s, struct broker_ids **ret);
