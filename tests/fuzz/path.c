/* Names of files and paths of znodes, back and forth. */
#include <glib.h>
#include <string.h>
#include "fs/fuse/name.h"
#include "fs/tree/path.h"
#include "fs/tree/text.h"
#include "tests/fuzz/fuzz.h"

static void name(const char *text)
{
    char a[NAME_MAX_BYTES + 1], b[NAME_MAX_BYTES + 1];
    const char *shown = name_encode(text, a);

    /* one to one, for every znode that can be shown */
    if (shown && strlen(text) > 0) {
        const char *meant = name_decode(shown, b);

        FUZZ_CHECK(meant && strcmp(meant, text) == 0);
    }
    if (strlen(text) <= NAME_MAX_BYTES)
        (void)name_decode(text, b);
    (void)path_valid_name(text);
}

static void path(const char *text)
{
    g_autofree char *parent = NULL, *joined = NULL;

    if (!path_valid(text))
        return;
    for (size_t i = 0; i <= path_depth(text); i++)
        g_free(path_component(text, i));
    FUZZ_CHECK(path_is_under(text, "/"));
    FUZZ_CHECK(path_matches(text, text) || strchr(text, '*'));
    if (path_depth(text) == 0)
        return;
    parent = path_parent(text);
    joined = path_join(parent, path_name(text));
    FUZZ_CHECK(strcmp(joined, text) == 0);
    FUZZ_CHECK(path_child_of(text, parent) != NULL);
    FUZZ_CHECK(path_valid(parent) && path_valid_name(path_name(text)));
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    g_autofree char *text = g_strndup((const char *)input, size);
    g_autoptr(GString) printable = g_string_new(NULL);

    name(text);
    path(text);
    text_append_printable(printable, (const char *)input, size);
    for (gsize i = 0; i < printable->len; i++)
        FUZZ_CHECK((unsigned char)printable->str[i] >= ' ' && printable->str[i] != 127);
    return 0;
}
