#include "controller/policy/config_text.h"
#include <cjson/cJSON.h>
#include <errno.h>
#include <string.h>
#include "controller/config/manager.h"
#include "controller/json/codec.h"
#include "controller/policy/document.h"
#include "controller/policy/schema.h"
#include "controller/policy/values.h"
#include "fs/tree/path.h"

bool config_entity_of_path(const char *path, char **ret_kind, char **ret_entity)
{
    if (!path_is_under(path, "/config") || path_depth(path) < 3)
        return false;
    const char *kind = path + strlen("/config/"), *slash = strchr(kind, '/');
    *ret_kind = g_strndup(kind, (size_t)(slash - kind));
    *ret_entity = g_strdup(slash + 1);
    return true;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Newly allocated, without the spaces around it. */
static char *trimmed(const char *text, const char *end)
{
    while (text < end && is_space(*text))
        text++;
    while (end > text && is_space(end[-1]))
        end--;
    return g_strndup(text, (size_t)(end - text));
}

/* ---- one line ---- */

struct line {
    char *key; /* NULL: blank or a comment */
    char *value;
};

static void line_clear(struct line *l)
{
    g_free(l->key);
    g_free(l->value);
}

static int refuse(char **ret_why, char *reason)
{
    *ret_why = reason;
    return EINVAL;
}

/* May a reason quote what was written there? What is neither JSON nor key=value may be a secret all the same. */
static bool may_quote(const char *path)
{
    return !kafka_sensitive(NULL, path);
}

static char *quoted(const char *text, bool quote)
{
    return quote ? shown_text(text) : g_strdup("[hidden]");
}

static int split_line(const char *text, size_t len, bool quote, struct line *ret, char **ret_why)
{
    while (len > 0 && (is_space(*text))) {
        text++;
        len--;
    }
    if (len == 0 || *text == '#')
        return 0;
    if (!g_utf8_validate_len(text, (gssize)len, NULL))
        return refuse(ret_why, g_strdup("the line is not UTF-8 text"));
    const char *end = text + len, *equals = memchr(text, '=', len);
    if (!equals) {
        g_autofree char *line = g_strndup(text, len), *shown = quoted(line, quote);
        return refuse(ret_why, g_strdup_printf("\"%s\" is neither JSON nor key=value", shown));
    }
    char *key = trimmed(text, equals);
    if (*key == '\0' || strpbrk(key, " \t\"")) {
        g_autofree char *shown = quoted(key, quote);
        g_free(key);
        return refuse(ret_why, g_strdup_printf("\"%s\" is not a key", shown));
    }
    ret->key = key;
    ret->value = trimmed(equals + 1, end);
    return 0;
}

static int check_entity(const char *path, GHashTable *config, char **ret_why)
{
    g_autofree char *kind = NULL, *entity = NULL;
    return config_entity_of_path(path, &kind, &entity) ? config_entity_validate(kind, entity, config, ret_why) : 0;
}

static int check_one(const char *path, const struct line *l, char **ret_why)
{
    g_autofree char *kind = NULL, *entity = NULL;
    if (*l->value == '\0' || !config_entity_of_path(path, &kind, &entity))
        return 0;
    return config_value_validate(kind, entity, l->key, l->value, ret_why);
}

/* Does one of the whole lines of `before` set `key`? */
static bool sets_key(const char *before, size_t len, const char *key)
{
    size_t key_len = strlen(key);
    const char *end = before + len, *at = before;
    while ((at = memmem(at, (size_t)(end - at), key, key_len))) {
        const char *start = at, *after = at + key_len;
        while (start > before && is_space(start[-1]))
            start--;
        while (after < end && is_space(*after))
            after++;
        if ((start == before || start[-1] == '\n') && after < end && *after == '=')
            return true;
        at++;
    }
    return false;
}

static int refuse_twice(char **ret_why, const char *key)
{
    g_autofree char *shown = shown_text(key);
    return refuse(ret_why, g_strdup_printf("the key %s is there twice", shown));
}

int config_text_check_line(
        const char *path, const char *before, size_t before_len, const char *line, size_t len, char **ret_why)
{
    __attribute__((cleanup(line_clear))) struct line l = {0};
    if (len > 0 && line[len - 1] == '\n')
        len--;
    int err = split_line(line, len, may_quote(path), &l, ret_why);
    if (err != 0 || !l.key)
        return err;
    if (before_len > 0 && sets_key(before, before_len, l.key))
        return refuse_twice(ret_why, l.key);
    return check_one(path, &l, ret_why);
}

/* ---- whole values ---- */

/* The keys of a document that check_config() has accepted. */
static GHashTable *config_of_document(const cJSON *doc)
{
    GHashTable *config = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(doc, "config"))
            g_hash_table_insert(config, g_strdup(item->string), g_strdup(item->valuestring));
    return config;
}

static int parse_lines(const char *text, size_t len, bool quote, GHashTable **ret, char **ret_why)
{
    g_autoptr(GHashTable) config = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    const char *end = text + len;
    for (unsigned number = 1; text < end; number++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text)), *stop = newline ? newline : end;
        __attribute__((cleanup(line_clear))) struct line l = {0};
        g_autofree char *why = NULL;
        int err = split_line(text, (size_t)(stop - text), quote, &l, &why);
        if (err == 0 && l.key && !g_hash_table_add(seen, g_strdup(l.key)))
            err = refuse_twice(&why, l.key);
        if (err != 0) {
            *ret_why = g_strdup_printf("line %u: %s", number, why);
            return err;
        }
        if (l.key && *l.value != '\0')
            g_hash_table_insert(config, g_steal_pointer(&l.key), g_steal_pointer(&l.value));
        text = newline ? newline + 1 : end;
    }
    *ret = g_steal_pointer(&config);
    return 0;
}

/* JSON of another kind than an object is refused as JSON, so that the reason speaks of it. */
static bool looks_like_json(const char *text, size_t len)
{
    while (len > 0 && (is_space(*text) || *text == '\n')) {
        text++;
        len--;
    }
    return len > 0 && strchr("{[\"", *text);
}

static int parse_document(const char *text, size_t len, bool quote, cJSON **ret, char **ret_why)
{
    cJSON *doc = json_parse(text, len, ret_why);
    if (!doc)
        return EINVAL;
    if (!check_config(doc, quote, ret_why)) {
        cJSON_Delete(doc);
        return EINVAL;
    }
    *ret = doc;
    return 0;
}

int config_text_whole(const char *path, const struct bytes *value, struct bytes **ret_stored, char **ret_why)
{
    size_t len = value->len;
    if (len > 0 && value->data[len - 1] == '\n')
        len--;
    g_autoptr(GHashTable) config = NULL;
    bool json = looks_like_json(value->data, len);
    if (json) {
        cJSON *doc = NULL;
        int err = parse_document(value->data, len, may_quote(path), &doc, ret_why);
        if (err != 0)
            return err;
        config = config_of_document(doc);
        cJSON_Delete(doc);
    } else {
        int err = parse_lines(value->data, len, may_quote(path), &config, ret_why);
        if (err != 0)
            return err;
    }
    int err = check_entity(path, config, ret_why);
    if (err == 0)
        *ret_stored = json ? bytes_new(value->data, len) : config_entity_encode(config);
    return err;
}

/* ---- one line into what is stored ---- */

static cJSON *new_document(void)
{
    cJSON *doc = cJSON_CreateObject();
    cJSON_AddNumberToObject(doc, "version", 1);
    cJSON_AddObjectToObject(doc, "config");
    return doc;
}

/* Sets, or removes, the key; false if nothing changes. */
static bool set_key(cJSON *doc, const struct line *l)
{
    cJSON *config = cJSON_GetObjectItemCaseSensitive(doc, "config");
    bool had = config && cJSON_GetObjectItemCaseSensitive(config, l->key);
    if (*l->value == '\0') {
        if (had)
            cJSON_DeleteItemFromObjectCaseSensitive(config, l->key);
        return had;
    }
    if (!config)
        config = cJSON_AddObjectToObject(doc, "config");
    if (had)
        cJSON_ReplaceItemInObjectCaseSensitive(config, l->key, cJSON_CreateString(l->value));
    else
        cJSON_AddStringToObject(config, l->key, l->value);
    return true;
}

static int apply(const char *path, cJSON *doc, const struct line *l, struct bytes **ret_stored, char **ret_why)
{
    g_autoptr(GHashTable) before = config_of_document(doc);
    if (!set_key(doc, l)) {
        *ret_stored = NULL;
        return 0;
    }
    /* What is there already may be bad (it came from elsewhere); that must not stand in the way of its repair. */
    g_autoptr(GHashTable) after = config_of_document(doc);
    g_autofree char *ignored = NULL;
    int err = check_entity(path, after, ret_why);
    if (err != 0 && check_entity(path, before, &ignored) != 0) {
        g_clear_pointer(ret_why, g_free);
        err = 0;
    }
    if (err == 0)
        *ret_stored = document_print(doc);
    return err;
}

int config_text_apply_line(const char *path, const struct bytes *stored, const struct bytes *line,
        struct bytes **ret_stored, char **ret_why)
{
    __attribute__((cleanup(line_clear))) struct line l = {0};
    size_t len = line->len;
    if (len > 0 && line->data[len - 1] == '\n')
        len--;
    if (memchr(line->data, '\n', len))
        return refuse(ret_why, g_strdup("`>>` takes one line at a time"));
    int err = split_line(line->data, len, may_quote(path), &l, ret_why);
    if (err == 0 && l.key)
        err = check_one(path, &l, ret_why);
    if (err != 0)
        return err;
    if (!l.key) {
        *ret_stored = NULL;
        return 0;
    }

    cJSON *doc = NULL;
    g_autofree char *why = NULL;
    if (!stored || stored->len == 0) {
        doc = new_document();
    } else if (parse_document(stored->data, stored->len, may_quote(path), &doc, &why) != 0) {
        return refuse(ret_why, g_strdup_printf("a line cannot be added to what is stored (%s): write it whole", why));
    }
    err = apply(path, doc, &l, ret_stored, ret_why);
    cJSON_Delete(doc);
    return err;
}
