/* The store's records: key, length, value, cut from the input; and what is encoded reads the same. */
#include <string.h>
#include "fs/store/record.h"
#include "tests/fuzz/fuzz.h"

static void decode(const uint8_t *key, size_t key_len, const uint8_t *value, size_t len)
{
    struct node node = {0};
    struct meta meta;
    uint64_t parent;
    char name[RECORD_NAME_MAX + 1];

    if (record_key_parse(key, key_len, &parent, name) == 0)
        FUZZ_CHECK(strlen(name) <= RECORD_NAME_MAX);
    if (record_decode(key, key_len, value, len, &node) == 0)
        node_clear(&node);
    (void)meta_decode(key, key_len, value, len, &meta);
}

static void round_trip(const uint8_t *input, size_t size)
{
    struct node node = {.id = 2, .data = bytes_new(input, size)}, again = {0};
    struct record_key key;
    g_autofree uint8_t *value = NULL;
    size_t len;

    record_key_make(&key, 1, "name");
    len = record_size(&node);
    value = g_malloc(len);
    record_encode(&key, &node, value);
    FUZZ_CHECK(record_decode(key.bytes, key.len, value, len, &again) == 0);
    FUZZ_CHECK(bytes_equal(again.data, node.data));
    node_clear(&again);
    /* one bit of it */
    if (size > 1) {
        value[(input[0] | (size_t)input[1] << 8) % len] ^= 1;
        FUZZ_CHECK(record_decode(key.bytes, key.len, value, len, &again) != 0);
    }
    node_clear(&node);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    size_t key_len;

    if (size < 2)
        return 0;
    key_len = (size_t)input[0] * 3 < size - 1 ? (size_t)input[0] * 3 : size - 1;
    decode(input + 1, key_len, input + 1 + key_len, size - 1 - key_len);
    round_trip(input, size);
    return 0;
}
