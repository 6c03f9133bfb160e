/*
 * The syntax of java.util.Properties: comments, continuation lines, escapes, `key=value`, `key:value`, `key value`.
 *
 * One difference is meant: Java reads the bytes as ISO 8859-1, here they are kept as they are, so that a log dir with a
 * UTF-8 name is the directory of that name.
 */
#include "controller/broker/properties.h"
#include <errno.h>

struct reader {
    const char *at, *end;
    int line; /* of `at`, from 1 */
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\f';
}

static bool at_line_end(const struct reader *r)
{
    return r->at == r->end || *r->at == '\n' || *r->at == '\r';
}

static void skip_line_end(struct reader *r)
{
    if (r->at < r->end && *r->at == '\r') {
        r->at++;
        if (r->at < r->end && *r->at == '\n')
            r->at++;
        r->line++;
    } else if (r->at < r->end) {
        r->at++;
        r->line++;
    }
}

static void skip_blanks(struct reader *r)
{
    while (r->at < r->end && is_blank(*r->at))
        r->at++;
}

/* A backslash before a line end joins the next line, without its leading blanks. */
static bool at_continuation(const struct reader *r)
{
    return r->at + 1 < r->end && r->at[0] == '\\' && (r->at[1] == '\n' || r->at[1] == '\r');
}

static void skip_continuation(struct reader *r)
{
    r->at++;
    skip_line_end(r);
    skip_blanks(r);
}

static bool read_hex4(struct reader *r, uint32_t *ret)
{
    uint32_t v = 0;

    if (r->end - r->at < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        int d = g_ascii_xdigit_value(r->at[i]);
        if (d < 0)
            return false;
        v = v << 4 | (uint32_t)d;
    }
    r->at += 4;
    *ret = v;
    return true;
}

/* After `\u`. Two escapes that are a surrogate pair make one character. */
static bool append_unicode(struct reader *r, GString *out)
{
    uint32_t c, low;

    if (!read_hex4(r, &c) || c == 0 || (c >= 0xDC00 && c <= 0xDFFF))
        return false;
    if (c >= 0xD800 && c <= 0xDBFF) {
        if (r->end - r->at < 6 || r->at[0] != '\\' || r->at[1] != 'u')
            return false;
        r->at += 2;
        if (!read_hex4(r, &low) || low < 0xDC00 || low > 0xDFFF)
            return false;
        c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
    }
    g_string_append_unichar(out, c);
    return true;
}

/* At a backslash that is no continuation. */
static bool append_escape(struct reader *r, GString *out)
{
    r->at++;
    if (at_line_end(r)) /* a lone backslash at the end of the file */
        return true;
    char c = *r->at++;
    switch (c) {
    case 't':
        g_string_append_c(out, '\t');
        return true;
    case 'n':
        g_string_append_c(out, '\n');
        return true;
    case 'r':
        g_string_append_c(out, '\r');
        return true;
    case 'f':
        g_string_append_c(out, '\f');
        return true;
    case 'u':
        return append_unicode(r, out);
    default:
        g_string_append_c(out, c);
        return true;
    }
}

/* Reads up to the end of the line, or of the key. */
static bool read_text(struct reader *r, bool key, GString *out)
{
    while (!at_line_end(r)) {
        if (at_continuation(r)) {
            skip_continuation(r);
        } else if (*r->at == '\\') {
            if (!append_escape(r, out))
                return false;
        } else if (key && (*r->at == '=' || *r->at == ':' || is_blank(*r->at))) {
            return true;
        } else if (*r->at == '\0') {
            return false;
        } else {
            g_string_append_c(out, *r->at++);
        }
    }
    return true;
}

/* Between key and value: blanks, at most one `=` or `:`, blanks; any of them may lie across a continuation. */
static void skip_separator(struct reader *r)
{
    bool seen = false;

    for (;;) {
        skip_blanks(r);
        if (at_continuation(r)) {
            skip_continuation(r);
        } else if (!seen && r->at < r->end && (*r->at == '=' || *r->at == ':')) {
            seen = true;
            r->at++;
        } else {
            return;
        }
    }
}

int properties_parse(const char *text, size_t len, GHashTable *ret, char **ret_why)
{
    struct reader r = {.at = text, .end = text + len, .line = 1};
    g_autoptr(GHashTable) all = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);

    while (r.at < r.end) {
        skip_blanks(&r);
        if (at_line_end(&r)) {
            skip_line_end(&r);
            continue;
        }
        if (*r.at == '#' || *r.at == '!') {
            while (!at_line_end(&r))
                r.at++;
            continue;
        }
        int line = r.line;
        g_autoptr(GString) key = g_string_new(NULL);
        g_autoptr(GString) value = g_string_new(NULL);
        bool good = read_text(&r, true, key);
        if (good) {
            skip_separator(&r);
            good = read_text(&r, false, value);
        }
        if (!good) {
            if (ret_why)
                *ret_why = g_strdup_printf("line %d: malformed \\uxxxx escape or NUL byte", line);
            return -EINVAL;
        }
        g_hash_table_replace(all, g_strdup(key->str), g_strdup(value->str));
    }

    GHashTableIter it;
    gpointer k, v;
    g_hash_table_iter_init(&it, all);
    while (g_hash_table_iter_next(&it, &k, &v)) {
        g_hash_table_iter_steal(&it);
        g_hash_table_replace(ret, k, v);
    }
    return 0;
}
