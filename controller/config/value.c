#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include "controller/config/throttle.h"
#include "controller/config/value.h"

enum { CLIP_BYTES = 100 };

char *config_clip(const char *text)
{
    size_t len = strlen(text);
    if (len <= CLIP_BYTES)
        return g_strdup(text);
    size_t end = CLIP_BYTES;
    while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80)
        end--;
    return g_strdup_printf("%.*s...", (int)end, text);
}

/* Sets the reason as Kafka's ConfigException words it. */
static int invalid(const struct config_def *def, const char *text, char **ret_why, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
static int invalid(const struct config_def *def, const char *text, char **ret_why, const char *fmt, ...)
{
    if (!ret_why)
        return -EINVAL;
    va_list ap;
    va_start(ap, fmt);
    g_autofree char *what = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    g_autofree char *clipped = config_def_is_secret(def) ? g_strdup("[hidden]") : config_clip(text);
    *ret_why = g_strdup_printf("Invalid value %s for configuration %s: %s", clipped, def->name, what);
    return -EINVAL;
}

static const char *type_name(enum config_type type)
{
    static const char *const names[] = {
            "BOOLEAN", "STRING", "SHORT", "INT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD"};
    return names[type];
}

/* String.trim(): everything up to U+0020 at both ends. */
static char *trim(const char *text)
{
    while (*text && (unsigned char)*text <= ' ')
        text++;
    size_t len = strlen(text);
    while (len > 0 && (unsigned char)text[len - 1] <= ' ')
        len--;
    return g_strndup(text, len);
}

bool config_parse_long(const char *text, int64_t *ret)
{
    g_autofree char *t = trim(text);
    const char *p = t;
    bool negative = *p == '-';
    if (*p == '-' || *p == '+')
        p++;
    if (!*p)
        return false;
    int64_t n = 0; /* counted down, since INT64_MIN has no positive twin */
    for (; *p; p++)
        if (!g_ascii_isdigit(*p) || __builtin_mul_overflow(n, 10, &n) || __builtin_sub_overflow(n, *p - '0', &n))
            return false;
    if (!negative && __builtin_sub_overflow((int64_t)0, n, &n))
        return false;
    *ret = n;
    return true;
}

static const char *skip_digits(const char *p)
{
    while (g_ascii_isdigit(*p))
        p++;
    return p;
}

/* Double.parseDouble() without hexadecimal forms and NaN, which mean nothing here. */
static bool parse_double(const char *text, double *ret)
{
    const char *p = text;
    if (*p == '-' || *p == '+')
        p++;
    const char *whole = p, *whole_end = p = skip_digits(p);
    size_t digits = (size_t)(whole_end - whole);
    if (*p == '.') {
        const char *fraction = p + 1;
        p = skip_digits(fraction);
        digits += (size_t)(p - fraction);
    }
    if (digits == 0)
        return false;
    if (*p == 'e' || *p == 'E') {
        p++;
        if (*p == '-' || *p == '+')
            p++;
        const char *exponent = p;
        p = skip_digits(p);
        if (p == exponent)
            return false;
    }
    if (*p && strchr("dDfF", *p))
        p++;
    if (*p)
        return false;
    *ret = g_ascii_strtod(text, NULL);
    return isfinite(*ret);
}

/* The digits of the shortest decimal that reads back as `value` (> 0), without trailing zeros, and its exponent. */
static void shortest_digits(double value, char digits[32], int *ret_exponent)
{
    char text[64], format[16];
    for (int precision = 1; precision <= 17; precision++) {
        g_snprintf(format, sizeof(format), "%%.%de", precision - 1);
        g_ascii_formatd(text, sizeof(text), format, value);
        if (g_ascii_strtod(text, NULL) == value)
            break;
    }
    size_t n = 0;
    char *p = text;
    for (; *p && *p != 'e'; p++)
        if (g_ascii_isdigit(*p))
            digits[n++] = *p;
    *ret_exponent = (int)g_ascii_strtoll(p + 1, NULL, 10);
    while (n > 1 && digits[n - 1] == '0')
        n--;
    digits[n] = '\0';
}

char *config_format_double(double value)
{
    GString *s = g_string_new(signbit(value) ? "-" : "");
    value = fabs(value);
    if (value == 0) {
        g_string_append(s, "0.0");
        return g_string_free(s, FALSE);
    }
    char digits[32];
    int exponent;
    shortest_digits(value, digits, &exponent);
    int n = (int)strlen(digits);
    if (value < 1e-3 || value >= 1e7) {
        g_string_append_printf(s, "%c.%sE%d", digits[0], n > 1 ? digits + 1 : "0", exponent);
    } else if (exponent < 0) {
        g_string_append(s, "0.");
        for (int i = -1; i > exponent; i--)
            g_string_append_c(s, '0');
        g_string_append(s, digits);
    } else {
        for (int i = 0; i <= exponent || i < n; i++) {
            if (i == exponent + 1)
                g_string_append_c(s, '.');
            g_string_append_c(s, i < n ? digits[i] : '0');
        }
        if (n <= exponent + 1)
            g_string_append(s, ".0");
    }
    return g_string_free(s, FALSE);
}

static bool word_allowed(const struct config_def *def, const char *word)
{
    for (size_t i = 0; def->words[i]; i++)
        if (def->rule == RULE_ONE_OF_FOLD ? g_ascii_strcasecmp(def->words[i], word) == 0
                                          : strcmp(def->words[i], word) == 0)
            return true;
    return false;
}

static int check_word(const struct config_def *def, const char *text, const char *word, char **ret_why)
{
    if (word_allowed(def, word))
        return 0;
    g_autofree char *all = g_strjoinv(", ", (char **)def->words);
    return invalid(def, text, ret_why, "String must be one of: %s", all);
}

/* MetadataVersion.fromVersionString(): the first two parts of the number (three of 0.x) decide. */
static bool known_version(const char *text)
{
    const char *end = text;
    for (int parts = g_str_has_prefix(text, "0.") ? 3 : 2; parts > 0 && end; parts--) {
        end = strchr(end, '.');
        if (end && parts > 1)
            end++;
    }
    g_autofree char *key = end ? g_strndup(text, (size_t)(end - text)) : g_strdup(text);
    for (size_t i = 0; config_metadata_versions[i]; i++) {
        const char *known = config_metadata_versions[i], *iv = strstr(known, "-IV");
        if (strcmp(known, key) == 0 || (iv && strlen(key) == (size_t)(iv - known) && g_str_has_prefix(known, key)))
            return true;
    }
    return false;
}

static bool base64_valid(const char *text)
{
    size_t len = strlen(text), body = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
    return len > 0 && len % 4 == 0 && len - body <= 2 && strspn(text + body, "=") == len - body;
}

/* ScramCredentialUtils: four fields, each once, in any order. */
static bool scram_valid(const char *text)
{
    static const char *const fields[] = {"salt=", "stored_key=", "server_key=", "iterations="};
    g_auto(GStrv) parts = g_strsplit(text, ",", 5);
    unsigned seen = 0;
    if (g_strv_length(parts) != G_N_ELEMENTS(fields))
        return false;
    for (size_t i = 0; parts[i]; i++)
        for (size_t f = 0; f < G_N_ELEMENTS(fields); f++) {
            if (!g_str_has_prefix(parts[i], fields[f]))
                continue;
            const char *value = parts[i] + strlen(fields[f]);
            int64_t n;
            bool good = f == 3 ? config_parse_long(value, &n) && n > 0 && n <= INT32_MAX : base64_valid(value);
            seen |= good ? 1U << f : 0;
        }
    return seen == 15;
}

static int parse_number(const struct config_def *def, const char *text, char **ret, char **ret_why)
{
    int64_t low = def->type == TYPE_SHORT ? INT16_MIN : def->type == TYPE_INT ? INT32_MIN : INT64_MIN;
    int64_t high = def->type == TYPE_SHORT ? INT16_MAX : def->type == TYPE_INT ? INT32_MAX : INT64_MAX, n;
    if (!config_parse_long(text, &n) || n < low || n > high)
        return invalid(def, text, ret_why, "Not a number of type %s", type_name(def->type));
    if (def->rule == RULE_RANGE && !(def->has_also && n == def->also)) {
        if (n < def->min)
            return invalid(def, text, ret_why, "Value must be at least %" G_GINT64_FORMAT, def->min);
        if (n > def->max)
            return invalid(def, text, ret_why, "Value must be no more than %" G_GINT64_FORMAT, def->max);
    }
    *ret = g_strdup_printf("%" G_GINT64_FORMAT, n);
    return 0;
}

static int parse_real(const struct config_def *def, const char *text, char **ret, char **ret_why)
{
    double d;
    if (!parse_double(text, &d))
        return invalid(def, text, ret_why, "Not a number of type DOUBLE");
    if (def->rule == RULE_RANGE && (d < def->min_double || d > def->max_double)) {
        g_autofree char *limit = config_format_double(d < def->min_double ? def->min_double : def->max_double);
        return invalid(
                def, text, ret_why, "Value must be %s %s", d < def->min_double ? "at least" : "no more than", limit);
    }
    *ret = config_format_double(d);
    return 0;
}

static int parse_list(const struct config_def *def, const char *text, char **ret, char **ret_why)
{
    g_auto(GStrv) items = *text ? g_strsplit(text, ",", -1) : g_new0(char *, 1);
    for (size_t i = 0; items[i]; i++) {
        g_strstrip(items[i]);
        int r = def->rule == RULE_ONE_OF ? check_word(def, text, items[i], ret_why) : 0;
        if (r < 0)
            return r;
    }
    if (def->rule == RULE_THROTTLED_REPLICAS && !throttle_list_valid(text))
        return invalid(def, text, ret_why,
                "Must be the literal '*' or a list of replicas in the following format: "
                "[partitionId]:[brokerId],[partitionId]:[brokerId],...");
    *ret = g_strjoinv(",", items);
    return 0;
}

static int parse_string(const struct config_def *def, const char *text, char **ret, char **ret_why)
{
    int r = 0;
    switch (def->rule) {
    case RULE_ONE_OF:
    case RULE_ONE_OF_FOLD:
        r = check_word(def, text, text, ret_why);
        break;
    case RULE_NON_EMPTY:
        r = *text ? 0 : invalid(def, text, ret_why, "String must be non-empty");
        break;
    case RULE_METADATA_VERSION:
        r = known_version(text) ? 0 : invalid(def, text, ret_why, "Version is not a valid version");
        break;
    case RULE_SCRAM:
        r = scram_valid(text) ? 0
                              : invalid(def, text, ret_why,
                                        "Must be salt=..,stored_key=..,server_key=..,iterations=N, the first three in "
                                        "base64");
        break;
    default:
        break;
    }
    if (r == 0)
        *ret = g_strdup(text);
    return r;
}

int config_value_parse(const struct config_def *def, const char *text, char **ret, char **ret_why)
{
    g_autofree char *t = trim(text), *value = NULL;
    int r;
    switch (def->type) {
    case TYPE_BOOLEAN:
        if (g_ascii_strcasecmp(t, "true") != 0 && g_ascii_strcasecmp(t, "false") != 0)
            return invalid(def, t, ret_why, "Expected value to be either true or false");
        value = g_ascii_strdown(t, -1);
        r = 0;
        break;
    case TYPE_SHORT:
    case TYPE_INT:
    case TYPE_LONG:
        r = parse_number(def, t, &value, ret_why);
        break;
    case TYPE_DOUBLE:
        r = parse_real(def, t, &value, ret_why);
        break;
    case TYPE_LIST:
        r = parse_list(def, t, &value, ret_why);
        break;
    default:
        r = parse_string(def, t, &value, ret_why);
        break;
    }
    if (r == 0 && ret)
        *ret = g_steal_pointer(&value);
    return r;
}
