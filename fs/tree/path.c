#include "fs/tree/path.h"

#include <glib.h>
#include <string.h>

/* The characters that PathUtils.validatePath refuses. It looks at UTF-16 units, so everything beyond the basic
 * plane (surrogates) is refused too, and so is the private use area between. */
static bool character_allowed(gunichar c)
{
    return c > 0x1f && !(c >= 0x7f && c <= 0x9f) && !(c >= 0xd800 && c <= 0xf8ff) && c < 0xfff0;
}

static bool component_valid(const char *name, size_t len)
{
    if (len == 0 || (len == 1 && name[0] == '.') || (len == 2 && name[0] == '.' && name[1] == '.'))
        return false;
    if (!g_utf8_validate(name, (gssize)len, NULL))
        return false;
    for (const char *p = name; p < name + len; p = g_utf8_next_char(p))
        if (*p == '/' || !character_allowed(g_utf8_get_char(p)))
            return false;
    return true;
}

bool path_valid_name(const char *name)
{
    return component_valid(name, strlen(name));
}

bool path_valid(const char *path)
{
    if (path[0] != '/')
        return false;
    if (path[1] == '\0')
        return true;
    for (const char *p = path; *p == '/';) {
        size_t len = strcspn(p + 1, "/");
        if (!component_valid(p + 1, len))
            return false;
        p += 1 + len;
    }
    return true;
}

const char *path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

char *path_parent(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        return g_strdup("/");
    return g_strndup(path, (gsize)(slash - path));
}

char *path_join(const char *parent, const char *name)
{
    return g_strconcat(strcmp(parent, "/") == 0 ? "" : parent, "/", name, NULL);
}

const char *path_child_of(const char *path, const char *prefix)
{
    size_t len = strcmp(prefix, "/") == 0 ? 0 : strlen(prefix);
    if (strncmp(path, prefix, len) != 0 || path[len] != '/')
        return NULL;
    const char *name = path + len + 1;
    return *name != '\0' && !strchr(name, '/') ? name : NULL;
}

bool path_is_under(const char *path, const char *top)
{
    size_t len = strcmp(top, "/") == 0 ? 0 : strlen(top);
    return strncmp(path, top, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

size_t path_depth(const char *path)
{
    size_t depth = 0;
    for (const char *p = path; *p; p++)
        if (*p == '/' && p[1] != '\0')
            depth++;
    return depth;
}

char *path_component(const char *path, size_t i)
{
    const char *p = path;
    while (*p == '/') {
        size_t len = strcspn(p + 1, "/");
        if (len == 0)
            return NULL;
        if (i-- == 0)
            return g_strndup(p + 1, len);
        p += 1 + len;
    }
    return NULL;
}

bool path_matches(const char *path, const char *pattern)
{
    while (*path == '/' && *pattern == '/') {
        path++, pattern++;
        size_t path_len = strcspn(path, "/"), pattern_len = strcspn(pattern, "/");
        bool any = pattern_len == 1 && *pattern == '*' && path_len > 0;
        if (!any && (path_len != pattern_len || memcmp(path, pattern, path_len) != 0))
            return false;
        path += path_len, pattern += pattern_len;
    }
    return *path == '\0' && *pattern == '\0';
}
