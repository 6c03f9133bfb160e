/* Strict JSON (RFC 8259) into a cJSON tree. cJSON's own parser accepts trailing bytes, leading zeros, control
 * characters, invalid UTF-8 and duplicate keys, and cannot say where a fault is. */
#include "controller/json/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_DEPTH = 64,
    EXACT_DIGITS = 15, /* an integer of so many digits is exact in a double */
};

struct key {
    const char *name;
    const char *at;
};

struct parser {
    const char *text, *p, *end;
    GArray *keys; /* struct key: those of the objects that are open, the innermost last */
    char *why;
};

static bool parse_value(struct parser *ps, int depth, cJSON **ret);

/* Remembers the first fault with its line and column (in characters, from 1). */
static bool fault(struct parser *ps, const char *at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static bool fault(struct parser *ps, const char *at, const char *fmt, ...)
{
    size_t line = 1, column = 1;
    for (const char *c = ps->text; c < at; c++) {
        if (*c == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)*c & 0xC0) != 0x80) {
            column++;
        }
    }
    va_list args;
    va_start(args, fmt);
    g_autofree char *what = g_strdup_vprintf(fmt, args);
    va_end(args);
    ps->why = g_strdup_printf("line %zu, column %zu: %s", line, column, what);
    return false;
}

static void skip_space(struct parser *ps)
{
    while (ps->p < ps->end && (*ps->p == ' ' || *ps->p == '\n' || *ps->p == '\t' || *ps->p == '\r'))
        ps->p++;
}

static bool unexpected(struct parser *ps, const char *wanted)
{
    if (ps->p == ps->end)
        return fault(ps, ps->p, "the text ends where %s is expected", wanted);
    unsigned char c = (unsigned char)*ps->p;
    if (c <= 0x20 || c >= 0x7F)
        return fault(ps, ps->p, "%s is expected, not byte 0x%02X", wanted, c);
    return fault(ps, ps->p, "%s is expected, not '%c'", wanted, c);
}

/* ---- strings ---- */

/* The UTF-16 unit of four digits, or -1. */
static int32_t parse_hex4(struct parser *ps)
{
    int32_t value = 0;
    for (int i = 0; i < 4; i++, ps->p++) {
        int digit = ps->p < ps->end ? g_ascii_xdigit_value(*ps->p) : -1;
        if (digit < 0) {
            unexpected(ps, "a hexadecimal digit");
            return -1;
        }
        value = value * 16 + digit;
    }
    return value;
}

/* After "\u". U+0000 is refused: no value of Kafka's holds it, and it would end a C string early. */
static bool parse_unicode_escape(struct parser *ps, char **out)
{
    const char *at = ps->p - 2;
    int32_t unit = parse_hex4(ps);
    if (unit < 0)
        return false;
    gunichar c = (gunichar)unit;
    if (unit >= 0xD800 && unit <= 0xDBFF) {
        if (ps->end - ps->p < 2 || ps->p[0] != '\\' || ps->p[1] != 'u')
            return fault(ps, at, "half a surrogate pair");
        ps->p += 2;
        int32_t low = parse_hex4(ps);
        if (low < 0)
            return false;
        if (low < 0xDC00 || low > 0xDFFF)
            return fault(ps, at, "half a surrogate pair");
        c = 0x10000 + (gunichar)((unit - 0xD800) << 10 | (low - 0xDC00));
    } else if (unit >= 0xDC00 && unit <= 0xDFFF) {
        return fault(ps, at, "half a surrogate pair");
    } else if (unit == 0) {
        return fault(ps, at, "the character U+0000");
    }
    *out += g_unichar_to_utf8(c, *out);
    return true;
}

static bool parse_escape(struct parser *ps, char **out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    ps->p++; /* the backslash */
    char c = ps->p < ps->end ? *ps->p : '\0';
    if (c == 'u') {
        ps->p++;
        return parse_unicode_escape(ps, out);
    }
    const char *found = c != '\0' ? strchr(from, c) : NULL;
    if (found == NULL)
        return unexpected(ps, "an escape (one of \"\\/bfnrtu)");
    ps->p++;
    *(*out)++ = to[found - from];
    return true;
}

/* Where the string that starts at `p` may end at the latest: its closing quote, or the end of the text. */
static const char *string_end(const char *p, const char *end)
{
    for (; p < end && *p != '"'; p++)
        if (*p == '\\' && p + 1 < end)
            p++;
    return p;
}

/* At the opening quote. `*ret` is allocated for cJSON; decoding never makes a string longer. */
static bool parse_string(struct parser *ps, char **ret)
{
    const char *start = ps->p++;
    char *text = cJSON_malloc((size_t)(string_end(ps->p, ps->end) - ps->p) + 1), *out = text;
    for (;;) {
        if (ps->p == ps->end) {
            fault(ps, start, "a string without its closing quote");
            break;
        }
        unsigned char c = (unsigned char)*ps->p;
        if (c == '"') {
            ps->p++;
            *out = '\0';
            *ret = text;
            return true;
        }
        if (c < 0x20) {
            fault(ps, ps->p, "control character 0x%02X in a string (write \\u%04X)", c, c);
            break;
        }
        if (c != '\\')
            *out++ = *ps->p++;
        else if (!parse_escape(ps, &out))
            break;
    }
    cJSON_free(text);
    return false;
}

/* ---- numbers ---- */

static size_t skip_digits(struct parser *ps)
{
    const char *start = ps->p;
    while (ps->p < ps->end && g_ascii_isdigit(*ps->p))
        ps->p++;
    return (size_t)(ps->p - start);
}

static bool parse_fraction_and_exponent(struct parser *ps)
{
    if (ps->p < ps->end && *ps->p == '.') {
        ps->p++;
        if (skip_digits(ps) == 0)
            return unexpected(ps, "a digit after the decimal point");
    }
    if (ps->p < ps->end && (*ps->p == 'e' || *ps->p == 'E')) {
        ps->p++;
        if (ps->p < ps->end && (*ps->p == '+' || *ps->p == '-'))
            ps->p++;
        if (skip_digits(ps) == 0)
            return unexpected(ps, "a digit of the exponent");
    }
    return true;
}

/* A number that a double cannot hold exactly as an integer keeps its text in `valuestring` (freed by cJSON_Delete()),
 * so that json_integer() is exact and can tell 1.0 from 1, as Jackson does. */
static bool parse_number(struct parser *ps, cJSON **ret)
{
    const char *start = ps->p;
    if (*ps->p == '-')
        ps->p++;
    const char *first = ps->p;
    size_t digits = skip_digits(ps);
    if (digits == 0)
        return unexpected(ps, "a digit");
    if (digits > 1 && *first == '0')
        return fault(ps, start, "a number with a leading zero");
    const char *integer_end = ps->p;
    if (!parse_fraction_and_exponent(ps))
        return false;

    if (ps->p == integer_end && digits <= EXACT_DIGITS) {
        int64_t value = 0;
        for (const char *c = first; c < integer_end; c++)
            value = value * 10 + (*c - '0');
        *ret = cJSON_CreateNumber((double)(*start == '-' ? -value : value));
        return true;
    }
    size_t len = (size_t)(ps->p - start);
    char *text = cJSON_malloc(len + 1);
    memcpy(text, start, len);
    text[len] = '\0';
    double value = g_ascii_strtod(text, NULL);
    if (!isfinite(value)) {
        cJSON_free(text);
        return fault(ps, start, "a number that is too large");
    }
    *ret = cJSON_CreateNumber(value);
    (*ret)->valuestring = text;
    return true;
}

/* ---- containers ---- */

static int compare_keys(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x->at > y->at) - (x->at < y->at);
}

/* Sorting, not hashing: no choice of keys makes it slow. */
static bool check_duplicates(struct parser *ps, guint from)
{
    guint n = ps->keys->len - from;
    struct key *keys = &g_array_index(ps->keys, struct key, from);
    if (n > 1)
        qsort(keys, n, sizeof(*keys), compare_keys);
    for (guint i = 1; i < n; i++)
        if (strcmp(keys[i - 1].name, keys[i].name) == 0)
            return fault(ps, keys[i].at, "duplicate key \"%s\"", json_clip(keys[i].name));
    g_array_set_size(ps->keys, from);
    return true;
}

static bool parse_member(struct parser *ps, int depth, cJSON *object)
{
    char *name;
    cJSON *value;
    skip_space(ps);
    if (ps->p == ps->end || *ps->p != '"')
        return unexpected(ps, "a key in quotes");
    struct key key = {.at = ps->p};
    if (!parse_string(ps, &name))
        return false;
    skip_space(ps);
    if (ps->p == ps->end || *ps->p != ':') {
        cJSON_free(name);
        return unexpected(ps, "':'");
    }
    ps->p++;
    if (!parse_value(ps, depth, &value)) {
        cJSON_free(name);
        return false;
    }
    value->string = name;
    cJSON_AddItemToArray(object, value); /* the same list; AddItemToObject would copy the key */
    key.name = name;
    g_array_append_val(ps->keys, key);
    return true;
}

static bool parse_element(struct parser *ps, int depth, cJSON *array)
{
    cJSON *value;
    if (!parse_value(ps, depth, &value))
        return false;
    cJSON_AddItemToArray(array, value);
    return true;
}

/* After the opening bracket, up to and with the closing one. */
static bool parse_members(struct parser *ps, int depth, cJSON *container, bool object)
{
    char close = object ? '}' : ']';
    guint first_key = ps->keys->len;
    skip_space(ps);
    if (ps->p < ps->end && *ps->p == close) {
        ps->p++;
        return true;
    }
    for (;;) {
        if (!(object ? parse_member(ps, depth, container) : parse_element(ps, depth, container)))
            return false;
        skip_space(ps);
        if (ps->p < ps->end && *ps->p == close)
            break;
        if (ps->p == ps->end || *ps->p != ',')
            return unexpected(ps, object ? "',' or '}'" : "',' or ']'");
        ps->p++;
    }
    ps->p++;
    return !object || check_duplicates(ps, first_key);
}

static bool parse_container(struct parser *ps, int depth, cJSON **ret)
{
    bool object = *ps->p == '{';
    if (depth == MAX_DEPTH)
        return fault(ps, ps->p, "nested deeper than %d", MAX_DEPTH);
    ps->p++;
    cJSON *container = object ? cJSON_CreateObject() : cJSON_CreateArray();
    if (!parse_members(ps, depth + 1, container, object)) {
        cJSON_Delete(container);
        return false;
    }
    *ret = container;
    return true;
}

static bool parse_word(struct parser *ps, cJSON **ret)
{
    size_t left = (size_t)(ps->end - ps->p);
    if (left >= 4 && memcmp(ps->p, "true", 4) == 0) {
        *ret = cJSON_CreateTrue();
        ps->p += 4;
    } else if (left >= 5 && memcmp(ps->p, "false", 5) == 0) {
        *ret = cJSON_CreateFalse();
        ps->p += 5;
    } else if (left >= 4 && memcmp(ps->p, "null", 4) == 0) {
        *ret = cJSON_CreateNull();
        ps->p += 4;
    } else {
        return unexpected(ps, "a value");
    }
    return true;
}

static bool parse_value(struct parser *ps, int depth, cJSON **ret)
{
    skip_space(ps);
    char c = ps->p < ps->end ? *ps->p : '\0';
    if (c == '{' || c == '[')
        return parse_container(ps, depth, ret);
    if (c == '-' || g_ascii_isdigit(c))
        return parse_number(ps, ret);
    if (c != '"')
        return parse_word(ps, ret);
    char *text;
    if (!parse_string(ps, &text))
        return false;
    *ret = cJSON_CreateNull();
    (*ret)->type = cJSON_String;
    (*ret)->valuestring = text;
    return true;
}

static bool parse_document(struct parser *ps, cJSON **ret)
{
    const char *invalid;
    if (!g_utf8_validate_len(ps->text, (size_t)(ps->end - ps->text), &invalid))
        return fault(ps, invalid, *invalid == '\0' ? "a NUL byte" : "not UTF-8");
    if (!parse_value(ps, 0, ret))
        return false;
    skip_space(ps);
    if (ps->p != ps->end) {
        cJSON_Delete(*ret);
        return fault(ps, ps->p, "something follows the value");
    }
    return true;
}

cJSON *json_parse(const char *text, size_t len, char **ret_why)
{
    struct parser ps = {.text = text, .p = text, .end = text + len};
    ps.keys = g_array_new(FALSE, FALSE, sizeof(struct key));
    cJSON *value = NULL;
    if (!parse_document(&ps, &value)) {
        value = NULL;
        if (ret_why != NULL)
            *ret_why = g_steal_pointer(&ps.why);
    }
    g_free(ps.why);
    g_array_unref(ps.keys);
    return value;
}

bool json_integer(const cJSON *item, int64_t min, int64_t max, int64_t *ret)
{
    if (!cJSON_IsNumber(item))
        return false;
    if (item->valuestring != NULL)
        return json_decimal(item->valuestring, strlen(item->valuestring), min, max, ret);
    if (fabs(item->valuedouble) >= 1e15 || item->valuedouble != trunc(item->valuedouble))
        return false;
    int64_t value = (int64_t)item->valuedouble;
    if (value < min || value > max)
        return false;
    *ret = value;
    return true;
}
