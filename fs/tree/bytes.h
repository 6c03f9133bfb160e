#pragma once
/*
 * The data of a znode: an immutable, reference-counted run of bytes.
 *
 * ZooKeeper keeps null data and empty data apart, and so does everything here: null is a NULL pointer, empty is a
 * `struct bytes` of length 0. The bytes are followed by a NUL that is not counted, so text can be handed to a parser.
 * Any thread may take and drop references; nobody changes the content.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdatomic.h>
#include <stdbool.h>

struct bytes {
    atomic_uint refs;
    uint32_t len;
    char data[];
};

/* A copy of `len` bytes at `data`; the caller owns one reference. */
struct bytes *bytes_new(const void *data, size_t len);
/* bytes_new() of a C string. */
struct bytes *bytes_from_string(const char *text);
/* Both accept NULL. bytes_unref() returns NULL. */
struct bytes *bytes_ref(struct bytes *b);
struct bytes *bytes_unref(struct bytes *b);
/* Both null, or both not null and of the same content. */
bool bytes_equal(const struct bytes *a, const struct bytes *b);
