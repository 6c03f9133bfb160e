#pragma once
/* Text that comes from outside, made fit for one line of a log or journal. Pure. */
#include <glib.h>

/* Appends `text` with every control character (C0, DEL, C1) and every byte that is not UTF-8 as `\xNN`, so that no
 * name can forge a line or drive a terminal. */
void text_append_printable(GString *out, const char *text, size_t len);
