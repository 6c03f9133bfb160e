#pragma once
/*
 * Names of users and clients in the tree, percent-encoded (org.apache.kafka.common.utils.Sanitizer): letters, digits,
 * `.`, `-` and `_` stand for themselves, every other byte of the UTF-8 name is `%XX`. Pure.
 */
#include <stdbool.h>
#include <stddef.h>

/* Newly allocated. The name may contain NUL bytes. */
char *sanitizer_sanitize(const char *name, size_t len);
/* Decodes form-URL-encoding, so a raw `+` is a space; false if a `%` is not followed by two hex digits. `*ret` is newly
 * allocated, ended by a NUL that `*ret_len` does not count. */
bool sanitizer_desanitize(const char *text, char **ret, size_t *ret_len);
/* The one form Kafka would write for what `text` decodes to: equal for equal names. NULL if it cannot be decoded.
 * `<default>` stays as it is: it is no name, and the user of that name is `%3Cdefault%3E`. */
char *sanitizer_canonical(const char *text);
