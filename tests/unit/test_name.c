/* File names of znodes: one to one, whatever the znode is called. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include "fs/fuse/name.h"

static void check(const char *znode, const char *shown)
{
    char buf[NAME_MAX_BYTES + 1], back[NAME_MAX_BYTES + 1];
    const char *got = name_encode(znode, buf);
    assert_string_equal(got, shown);
    assert_string_equal(name_decode(got, back), znode);
}

static void test_encoding(void **state)
{
    check("topics", "topics");
    check(".data", "%2Edata");
    check(".state", "%2Estate");
    check("%2Edata", "%252Edata");
    check("%252Edata", "%25252Edata");
    check("%2Estate", "%252Estate");
    /* these look like nothing of ours */
    check("%2edata", "%2edata");
    check("%2Edata2", "%2Edata2");
    check("a%2Edata", "a%2Edata");
    check("100%", "100%");
    check("%", "%");
    check("%25", "%25");
    check("<default>", "<default>");
    check("user%40host", "user%40host");
    check("data", "data");
    check("..data", "..data");
}

static void test_reserved(void **state)
{
    char buf[NAME_MAX_BYTES + 1];
    assert_null(name_decode(".data", buf));
    assert_null(name_decode(".state", buf));
}

static void test_length(void **state)
{
    char name[300], buf[NAME_MAX_BYTES + 1];
    memset(name, 'x', sizeof name);
    name[255] = '\0';
    assert_ptr_equal(name_encode(name, buf), name);
    name[255] = 'x';
    name[256] = '\0';
    assert_null(name_encode(name, buf));
    /* an encoding that would be too long: %2525...252Edata */
    memset(name, 0, sizeof name);
    strcpy(name, "%");
    while (strlen(name) < 246)
        strcat(name, "25");
    strcat(name, "2Edata");
    assert_in_range(strlen(name), 252, 255);
    const char *shown = name_encode(name, buf);
    if (strlen(name) + 2 > 255)
        assert_null(shown);
    else
        assert_int_equal(strlen(shown), strlen(name) + 2);
}

/* Every string over a hostile alphabet: no two znodes share a file name, and what is decoded encodes to the same. */
static void test_one_to_one(void **state)
{
    static const char *const parts[] = {"%", "25", "2E", "data", ".data", "state", ".", "x"};
    enum { N = sizeof parts / sizeof parts[0] };
    char name[64], buf[NAME_MAX_BYTES + 1], back[NAME_MAX_BYTES + 1];
    for (int code = 0; code < N * N * N * N * N; code++) {
        name[0] = '\0';
        for (int rest = code, i = 0; i < 5; i++, rest /= N)
            strcat(name, parts[rest % N]);
        const char *shown = name_encode(name, buf);
        assert_non_null(shown);
        assert_string_equal(name_decode(shown, back), name);
        const char *znode = name_decode(name, back);
        if (znode)
            assert_string_equal(name_encode(znode, buf), name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_encoding),
            cmocka_unit_test(test_reserved),
            cmocka_unit_test(test_length),
            cmocka_unit_test(test_one_to_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
