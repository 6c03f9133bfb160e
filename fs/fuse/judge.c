#include "fs/fuse/judge.h"

#include <glib.h>
#include <stdbool.h>
#include <string.h>
#include <yajl/yajl_parse.h>

struct judge {
    yajl_handle parser;
    unsigned depth;
    bool complete, seen; /* a document has ended; something but white space has come */
    bool number_at_top;  /* the parser says nothing of a number before it sees its end */
    size_t fed;
    /* the UTF-8 character that has begun: bytes still to come, and the range of the next of them */
    unsigned char utf8_left, utf8_low, utf8_high;
    char *why; /* set: impossible */
    size_t error_at;
};

static int value_ended(struct judge *j)
{
    j->complete = j->depth == 0;
    return 1;
}

static int on_null(void *arg)
{
    return value_ended(arg);
}

static int on_boolean(void *arg, int value)
{
    return value_ended(arg);
}

static int on_text(void *arg, const char *text, size_t len)
{
    return value_ended(arg);
}

static int on_string(void *arg, const unsigned char *text, size_t len)
{
    return value_ended(arg);
}

static int on_start(void *arg)
{
    struct judge *j = arg;
    if (++j->depth <= JUDGE_MAX_DEPTH)
        return 1;
    j->why = g_strdup_printf("nested deeper than %d levels", JUDGE_MAX_DEPTH);
    return 0;
}

static int on_end(void *arg)
{
    struct judge *j = arg;
    j->depth--;
    return value_ended(j);
}

static const yajl_callbacks callbacks = {
        .yajl_null = on_null,
        .yajl_boolean = on_boolean,
        .yajl_number = on_text,
        .yajl_string = on_string,
        .yajl_start_map = on_start,
        .yajl_end_map = on_end,
        .yajl_start_array = on_start,
        .yajl_end_array = on_end,
};

struct judge *judge_new(void)
{
    struct judge *j = g_new0(struct judge, 1);
    j->parser = yajl_alloc(&callbacks, NULL, j);
    g_assert(j->parser);
    return j;
}

void judge_free(struct judge *j)
{
    if (!j)
        return;
    yajl_free(j->parser);
    g_free(j->why);
    g_free(j);
}

size_t judge_fed(const struct judge *j)
{
    return j->fed;
}

const char *judge_why(const struct judge *j)
{
    return j->why;
}

/* Unicode, table 3-7: the first byte says how many follow, and what the second may be. */
static bool utf8_begin(struct judge *j, unsigned char c)
{
    j->utf8_low = 0x80;
    j->utf8_high = 0xbf;
    if (c >= 0xc2 && c <= 0xdf)
        j->utf8_left = 1;
    else if (c >= 0xe0 && c <= 0xef)
        j->utf8_left = 2;
    else if (c >= 0xf0 && c <= 0xf4)
        j->utf8_left = 3;
    else
        return c < 0x80;
    if (c == 0xe0)
        j->utf8_low = 0xa0;
    else if (c == 0xed)
        j->utf8_high = 0x9f;
    else if (c == 0xf0)
        j->utf8_low = 0x90;
    else if (c == 0xf4)
        j->utf8_high = 0x8f;
    return true;
}

/* Returns the offset of the first byte that is wrong, or `len`. */
static size_t utf8_feed(struct judge *j, const unsigned char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (j->utf8_left == 0) {
            if (!utf8_begin(j, data[i]))
                return i;
        } else if (data[i] >= j->utf8_low && data[i] <= j->utf8_high) {
            j->utf8_left--;
            j->utf8_low = 0x80;
            j->utf8_high = 0xbf;
        } else {
            return i;
        }
    }
    return len;
}

static bool is_space(unsigned char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* yajl's own words, without its "lexical error: " and newline. */
static char *parser_error(struct judge *j, const unsigned char *data, size_t len)
{
    unsigned char *text = yajl_get_error(j->parser, 0, data, len);
    const char *words = text ? (const char *)text : "no JSON";
    const char *colon = strstr(words, ": ");
    char *why = g_strchomp(g_strdup(colon ? colon + 2 : words));
    if (text)
        yajl_free_error(j->parser, text);
    return why;
}

static void look_at_first(struct judge *j, const unsigned char *text, size_t len)
{
    for (size_t i = 0; i < len && !j->seen; i++) {
        j->seen = !is_space(text[i]);
        j->number_at_top = j->seen && (text[i] == '-' || g_ascii_isdigit(text[i]));
    }
}

static void parse(struct judge *j, const unsigned char *text, size_t len)
{
    size_t good = utf8_feed(j, text, len);
    if (yajl_parse(j->parser, text, good) != yajl_status_ok) {
        if (!j->why) /* a callback that stops the parser has said why */
            j->why = parser_error(j, text, good);
        j->error_at = j->fed + MIN(yajl_get_bytes_consumed(j->parser), good);
    } else if (good < len) {
        j->why = g_strdup("not UTF-8");
        j->error_at = j->fed + good;
    }
}

enum verdict judge_feed(struct judge *j, const void *data, size_t len)
{
    look_at_first(j, data, len);
    if (!j->why)
        parse(j, data, len);
    j->fed += len;
    if (j->why)
        return VERDICT_IMPOSSIBLE;
    if (!j->seen)
        return VERDICT_EMPTY;
    return j->complete || j->number_at_top ? VERDICT_COMPLETE : VERDICT_PREFIX;
}

size_t judge_error_at(const struct judge *j)
{
    return j->error_at;
}
