#include <glib.h>
#include <string.h>
#include "controller/config/sanitizer.h"

char *sanitizer_sanitize(const char *name, size_t len)
{
    GString *s = g_string_sized_new(len + 16);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)name[i];
        if (g_ascii_isalnum(c) || c == '.' || c == '-' || c == '_')
            g_string_append_c(s, (char)c);
        else
            g_string_append_printf(s, "%%%02X", c);
    }
    return g_string_free(s, FALSE);
}

bool sanitizer_desanitize(const char *text, char **ret, size_t *ret_len)
{
    g_autoptr(GString) s = g_string_sized_new(strlen(text));
    for (const char *p = text; *p; p++) {
        if (*p != '%') {
            g_string_append_c(s, *p == '+' ? ' ' : *p);
            continue;
        }
        if (!g_ascii_isxdigit(p[1]) || !g_ascii_isxdigit(p[2]))
            return false;
        g_string_append_c(s, (char)(g_ascii_xdigit_value(p[1]) * 16 + g_ascii_xdigit_value(p[2])));
        p += 2;
    }
    *ret_len = s->len;
    *ret = g_string_free(g_steal_pointer(&s), FALSE);
    return true;
}

char *sanitizer_canonical(const char *text)
{
    g_autofree char *name = NULL;
    size_t len;
    if (strcmp(text, "<default>") == 0)
        return g_strdup(text);
    return sanitizer_desanitize(text, &name, &len) ? sanitizer_sanitize(name, len) : NULL;
}
