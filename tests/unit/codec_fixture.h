#pragma once
/* Text as znode data, and what a codec makes of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "controller/json/codec.h"

#pragma GCC diagnostic ignored "-Wunused-function" /* each test uses what it needs */

/* Text as data; freed with the test's pool. */
static GPtrArray *pool;
static struct bytes *data(const char *text)
{
    struct bytes *b = bytes_from_string(text);
    g_ptr_array_add(pool, b);
    return b;
}

static void unref_bytes(gpointer b)
{
    bytes_unref(b);
}

static int setup(void **state)
{
    pool = g_ptr_array_new_with_free_func(unref_bytes);
    return 0;
}

static int teardown(void **state)
{
    g_ptr_array_unref(pool);
    return 0;
}

static void assert_encodes(struct bytes *encoded, const char *expected)
{
    assert_string_equal(encoded->data, expected);
    assert_int_equal(encoded->len, strlen(expected));
    bytes_unref(encoded);
}

static void assert_reason(bool decoded, char **why, const char *expected)
{
    assert_false(decoded);
    assert_non_null(*why);
    assert_string_equal(*why, expected);
    *why = (g_free(*why), NULL);
}

static void assert_ids(const struct broker_ids *ids, size_t n, const int32_t *expected)
{
    assert_int_equal(ids->n, n);
    assert_memory_equal(ids->id, expected, n * sizeof(*expected));
}
#define IDS(...)                                                                                                       \
    G_N_ELEMENTS(((int32_t[]){__VA_ARGS__})), (int32_t[])                                                              \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }
