#include "fs/tree/text.h"

#include <stdbool.h>

void text_append_printable(GString *out, const char *text, size_t len)
{
    const char *end = text + len;
    while (text < end) {
        gunichar c = g_utf8_get_char_validated(text, end - text);
        bool bad = c == (gunichar)-1 || c == (gunichar)-2;
        size_t n = bad ? 1 : (size_t)(g_utf8_next_char(text) - text);
        if (bad || c < 0x20 || (c >= 0x7f && c <= 0x9f)) {
            for (size_t i = 0; i < n; i++)
                g_string_append_printf(out, "\\x%02x", (unsigned char)text[i]);
        } else {
            g_string_append_len(out, text, (gssize)n);
        }
        text += n;
    }
}
