#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <glib.h>
#include "fs/tree/txn.h"

static void test_bytes(void **state)
{
    struct bytes *null = NULL, *empty = bytes_new(NULL, 0), *a = bytes_new("a\0b", 3), *b = bytes_new("a\0c", 3);
    assert_int_equal(a->len, 3);
    assert_int_equal(a->data[3], 0);
    assert_true(bytes_equal(null, NULL));
    assert_false(bytes_equal(null, empty));
    assert_false(bytes_equal(empty, null));
    assert_false(bytes_equal(a, b));
    assert_false(bytes_equal(a, empty));
    struct bytes *copy = bytes_new("a\0b", 3);
    assert_true(bytes_equal(a, copy));
    assert_ptr_equal(bytes_ref(a), a);
    assert_int_equal(a->refs, 2);
    assert_null(bytes_unref(a));
    assert_int_equal(a->refs, 1);
    assert_null(bytes_ref(NULL));
    assert_null(bytes_unref(NULL));
    bytes_unref(empty);
    bytes_unref(a);
    bytes_unref(b);
    bytes_unref(copy);
}

static void test_build(void **state)
{
    struct txn *txn = txn_new(TXN_INTERNAL);
    char path[8] = "/a";
    assert_int_equal(txn_create(txn, path, bytes_from_string("12345"), CREATE_SEQUENTIAL), 0);
    path[1] = 'b'; /* it was copied */
    assert_int_equal(txn_set(txn, path, NULL, 7), 1);
    assert_int_equal(txn_delete(txn, "/c", -1), 2);
    assert_int_equal(txn_check(txn, "/d", 3), 3);
    for (int i = 0; i < 100; i++)
        txn_check(txn, "/", -1);
    assert_int_equal(txn->n_ops, 104);
    assert_string_equal(txn->ops[0].path, "/a");
    assert_int_equal(txn->ops[0].flags, CREATE_SEQUENTIAL);
    assert_string_equal(txn->ops[1].path, "/b");
    assert_int_equal(txn->ops[1].version, 7);
    assert_int_equal(txn->ops[2].type, OP_DELETE);
    assert_int_equal(txn_size(txn), 2 + 5 + 2 + 2 + 2 + 100);
    txn->rc = ZNONODE;
    txn->zxid = 9;
    txn->ops[0].rc = ZNODEEXISTS;
    txn->ops[0].result_path = g_strdup("/a0");
    txn_reset(txn);
    assert_int_equal(txn->rc, ZOK);
    assert_int_equal(txn->zxid, 0);
    assert_int_equal(txn->ops[0].rc, ZOK);
    assert_null(txn->ops[0].result_path);
    assert_string_equal(txn->ops[0].data->data, "12345");
    assert_int_equal(txn->origin, TXN_INTERNAL);
    txn_free(txn);
    txn_free(NULL);
}

static void test_errors(void **state)
{
    assert_string_equal(zerr_name(ZNODEEXISTS), "ZNODEEXISTS");
    assert_string_equal(zerr_name(-9999), "unknown error");
    assert_int_equal(zerr_errno(ZOK), 0);
    assert_int_equal(zerr_errno(ZNONODE), ENOENT);
    assert_int_equal(zerr_errno(ZBADVERSION), ESTALE);
    assert_int_equal(zerr_errno(ZNOTREADONLY), EROFS);
    assert_int_equal(zerr_errno(ZSTORENOSPACE), ENOSPC);
    assert_int_equal(zerr_errno(ZTOOLARGE), EFBIG);
    assert_int_equal(zerr_errno(ZNAMETOOLONG), ENAMETOOLONG);
    assert_int_equal(zerr_errno(-9999), EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_bytes),
            cmocka_unit_test(test_build),
            cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
