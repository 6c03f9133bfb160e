#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include "fs/store/crc32c.h"
#include "fs/store/record.h"

static void test_crc32c(void **state)
{
    uint8_t zeros[32] = {0}, ones[32], up[32];
    memset(ones, 0xff, sizeof ones);
    for (int i = 0; i < 32; i++)
        up[i] = (uint8_t)i;
    assert_int_equal(crc32c(0, "", 0), 0);
    assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283); /* the usual check value */
    assert_int_equal(crc32c(0, zeros, 32), 0x8a9136aa);      /* RFC 3720, B.4 */
    assert_int_equal(crc32c(0, ones, 32), 0x62a8ab43);
    assert_int_equal(crc32c(0, up, 32), 0x46dd794e);
    assert_int_equal(crc32c(crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
    uint8_t data[100];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 37 + 11);
    for (size_t len = 0; len <= sizeof data; len++)
        assert_int_equal(crc32c(7, data, len), crc32c_portable(7, data, len));
}

static void test_round_trip(void **state)
{
    struct record_key key;
    record_key_make(&key, 0x0102030405060708, "name");
    assert_int_equal(key.len, 12);
    assert_memory_equal(key.bytes, "\1\2\3\4\5\6\7\10name", 12);
    struct zstat stat = {.czxid = 1,
            .mzxid = -2,
            .pzxid = INT64_MAX,
            .ctime = 4,
            .mtime = 5,
            .ephemeral_owner = INT64_MIN,
            .version = -7,
            .cversion = INT32_MAX};
    struct bytes *datas[] = {NULL, bytes_new(NULL, 0), bytes_new("a\0b", 3)};
    for (int i = 0; i < 3; i++) {
        struct node node = {.id = 77, .stat = stat, .num_children = 9, .data = datas[i]}, got;
        size_t size = record_size(&node);
        g_autofree uint8_t *out = g_malloc(size);
        record_encode(&key, &node, out);
        assert_int_equal(record_decode(key.bytes, key.len, out, size, &got), 0);
        assert_memory_equal(&got.stat, &stat, sizeof stat);
        assert_int_equal(got.id, 77);
        assert_int_equal(got.num_children, 9);
        assert_true(bytes_equal(got.data, datas[i]));
        node_clear(&got);
        /* any changed bit, a missing byte, another key: not this record */
        for (size_t bit = 0; bit < 8 * size; bit++) {
            out[bit / 8] ^= (uint8_t)(1 << bit % 8);
            assert_int_equal(record_decode(key.bytes, key.len, out, size, &got), -EUCLEAN);
            out[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        for (size_t len = 0; len < size; len++)
            assert_int_equal(record_decode(key.bytes, key.len, out, len, &got), -EUCLEAN);
        key.bytes[11] ^= 1;
        assert_int_equal(record_decode(key.bytes, key.len, out, size, &got), -EUCLEAN);
        key.bytes[11] ^= 1;
        bytes_unref(datas[i]);
    }
}

static void test_layout(void **state)
{
    struct record_key key;
    record_key_make(&key, 0, "");
    struct meta meta = {.zxid = 5, .next_id = 6, .incarnation = 7, .ephemerals = 8}, got;
    uint8_t out[META_SIZE];
    meta_encode(&key, &meta, out);
    assert_int_equal(meta_decode(key.bytes, key.len, out, sizeof out, &got), 0);
    assert_memory_equal(&got, &meta, sizeof meta);
    out[4] = LAYOUT_VERSION + 1;
    uint32_t sum = crc32c(crc32c(0, key.bytes, key.len), out + 4, sizeof out - 4);
    memcpy(out, &sum, 4);
    assert_int_equal(meta_decode(key.bytes, key.len, out, sizeof out, &got), -EPROTO);
}

static void test_keys(void **state)
{
    uint64_t parent;
    char name[RECORD_NAME_MAX + 1];
    assert_int_equal(record_key_parse("\0\0\0\0\0\0\1\2name", 12, &parent, name), 0);
    assert_int_equal(parent, 258);
    assert_string_equal(name, "name");
    assert_int_equal(record_key_parse("\0\0\0\0\0\0\0\0/", 9, &parent, name), 0);
    assert_string_equal(name, ROOT_NAME);
    static const struct {
        const char *key;
        size_t len;
    } bad[] = {
            {"\0\0\0\0\0\0\1", 7},
            {"\0\0\0\0\0\0\0\1", 8},
            {"\0\0\0\0\0\0\0\1a\0b", 11},
            {"\0\0\0\0\0\0\0\1a/b", 11},
            {"\0\0\0\0\0\0\0\1.", 9},
            {"\0\0\0\0\0\0\0\1\xff", 9},
            {"\0\0\0\0\0\0\0\0a", 9},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++)
        assert_int_equal(record_key_parse(bad[i].key, bad[i].len, &parent, name), -EUCLEAN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_crc32c),
            cmocka_unit_test(test_round_trip),
            cmocka_unit_test(test_layout),
            cmocka_unit_test(test_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
