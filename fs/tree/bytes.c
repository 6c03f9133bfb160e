#include "fs/tree/bytes.h"

#include <glib.h>
#include <string.h>

struct bytes *bytes_new(const void *data, size_t len)
{
    g_assert(len < UINT32_MAX);
    struct bytes *b = g_malloc(sizeof *b + len + 1);
    atomic_init(&b->refs, 1);
    b->len = (uint32_t)len;
    if (len > 0)
        memcpy(b->data, data, len);
    b->data[len] = '\0';
    return b;
}

struct bytes *bytes_from_string(const char *text)
{
    return bytes_new(text, strlen(text));
}

struct bytes *bytes_ref(struct bytes *b)
{
    if (b)
        atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

struct bytes *bytes_unref(struct bytes *b)
{
    if (b && atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) == 1)
        g_free(b);
    return NULL;
}

bool bytes_equal(const struct bytes *a, const struct bytes *b)
{
    if (a == b)
        return true;
    return a && b && a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}
