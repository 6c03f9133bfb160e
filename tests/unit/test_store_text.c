/* --check, --dump and --load. */
#include "store_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <lmdb.h>

struct text {
    char *text;
    size_t len;
    int rc;
    char *why;
};

static struct text run(int (*tool)(const char *dir, FILE *out, char **ret_why), const char *dir)
{
    struct text t = {0};
    FILE *out = open_memstream(&t.text, &t.len);
    t.rc = tool(dir, out, &t.why);
    fclose(out);
    return t;
}

static void clear(struct text *t)
{
    free(t->text);
    g_free(t->why);
}

static int load(const char *dir, const char *text, char **ret_why)
{
    FILE *in = fmemopen((void *)text, strlen(text), "r");
    int rc = store_load_text(dir, in, ret_why);
    fclose(in);
    return rc;
}

static void expect_no_fault(const char *dir)
{
    struct text t = run(store_check, dir);
    if (t.rc != 0)
        fail_msg("check: %d %s %s", t.rc, t.why ? t.why : "", t.text);
    clear(&t);
}

/* A small tree with all kinds of data; no ephemerals unless asked. */
static void make_tree(const char *dir)
{
    struct fixture f;
    fixture_open_lmdb(&f, dir);
    assert_int_equal(fixture_create(&f, "/b", NULL), ZOK);
    assert_int_equal(fixture_create(&f, "/a", ""), ZOK);
    assert_int_equal(fixture_create(&f, "/b/json", "{\"a\": [1, 2]}"), ZOK);
    assert_int_equal(fixture_create(&f, "/b/with space", "back\\slash\nline\ttab"), ZOK);
    assert_int_equal(fixture_create(&f, "/b/a%00\\x", "\xff\xfe ü"), ZOK);
    assert_int_equal(fixture_create(&f, "/gone", "x"), ZOK);
    struct txn *txn = txn_new(TXN_CLIENT);
    txn_delete(txn, "/gone", -1);
    txn_set(txn, "/a", bytes_new("\0z", 2), -1);
    assert_int_equal(fixture_run(&f, txn), ZOK);
    fixture_close(&f);
}

static void test_round_trip(void **state)
{
    char *dir = fixture_dir(), *copy = fixture_dir(), *why = NULL;
    make_tree(dir);
    expect_no_fault(dir);
    struct text first = run(store_dump, dir);
    assert_int_equal(first.rc, 0);
    if (load(copy, first.text, &why) != 0)
        fail_msg("load: %s", why);
    expect_no_fault(copy);
    struct text second = run(store_dump, copy);
    assert_int_equal(second.rc, 0);
    assert_string_equal(first.text, second.text);

    struct fixture a, b;
    fixture_open_lmdb(&a, dir);
    fixture_open_lmdb(&b, copy);
    g_autofree char *tree_a = fixture_tree(&a, true), *tree_b = fixture_tree(&b, true);
    assert_string_equal(tree_a, tree_b);
    fixture_close(&a);
    fixture_close(&b);
    clear(&first);
    clear(&second);
    fixture_remove(dir);
    fixture_remove(copy);
}

static void test_form(void **state)
{
    char *dir = fixture_dir();
    make_tree(dir);
    struct text t = run(store_dump, dir);
    assert_string_equal(t.text,
            "/ czxid=0 mzxid=0 pzxid=7 ctime=0 mtime=0 version=0 cversion=4\n"
            "/a czxid=2 mzxid=7 pzxid=2 ctime=1000 mtime=1000 version=1 cversion=0 data=\\x00z\n"
            "/b czxid=1 mzxid=1 pzxid=5 ctime=1000 mtime=1000 version=0 cversion=3\n"
            "/b/a%00\\\\x czxid=5 mzxid=5 pzxid=5 ctime=1000 mtime=1000 version=0 cversion=0 data=\\xff\\xfe ü\n"
            "/b/json czxid=3 mzxid=3 pzxid=3 ctime=1000 mtime=1000 version=0 cversion=0 data={\"a\": [1, 2]}\n"
            "/b/with\\x20space czxid=4 mzxid=4 pzxid=4 ctime=1000 mtime=1000 version=0 cversion=0 "
            "data=back\\\\slash\\nline\\x09tab\n");
    clear(&t);
    fixture_remove(dir);
}

static void test_bad_lines(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
            {"/a\n/b/c\n", "line 2: its parent is not before it"},
            {"/a\n/a data=x\n", "line 2: a path that was there before"},
            {"/a\n\n", "line 2: not a valid path"},
            {"/a czxid=x\n", "line 1: not a number"},
            {"/a czxid=9223372036854775808\n", "line 1: not a number"},
            {"/a mzxid=9223372036854775807\n", "line 1: not a number"},
            {"/a pzxid=-1\n", "line 1: not a number"},
            {"/a version=2147483648\n", "line 1: not a number"},
            {"/a colour=1\n", "line 1: an unknown field"},
            {"/a czxid\n", "line 1: a field without `=`"},
            {"/a data=\\q\n", "line 1: a backslash that begins no escape"},
            {"/a data=\\x0\n", "line 1: a backslash that begins no escape"},
            {"/a\\x00b\n", "line 1: not a valid path"},
            {"/a/../b\n", "line 1: not a valid path"},
            {"relative\n", "line 1: not a valid path"},
            {"/a\n/\n", "line 2: the root after other nodes"},
            {"/ ephemeralOwner=3\n", "line 1: the root cannot be ephemeral"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        char *dir = fixture_dir(), *why = NULL;
        assert_int_equal(load(dir, cases[i].text, &why), -EINVAL);
        assert_string_equal(why, cases[i].why);
        g_free(why);
        why = NULL;
        struct text t = run(store_dump, dir); /* nothing was made */
        assert_int_equal(t.rc, -ENOENT);
        clear(&t);
        assert_int_equal(load(dir, "/a data=1\n", &why), 0);
        fixture_remove(dir);
    }
}

static void test_load_refuses_a_store(void **state)
{
    char *dir = fixture_dir(), *why = NULL;
    make_tree(dir);
    assert_int_equal(load(dir, "/x\n", &why), -EEXIST);
    g_free(why);
    fixture_remove(dir);
}

static void test_hand_written(void **state)
{
    char *dir = fixture_dir(), *why = NULL;
    assert_int_equal(load(dir, "/a data=\n/a/b cversion=1\n/a/b/c\n/a/b/d data=last\n", &why), 0);
    /* a text that was cut in a line */
    g_autofree char *cut = fixture_dir(), *cut_why = NULL;
    assert_int_equal(load(cut, "/a\n/b data=la", &cut_why), -EINVAL);
    assert_non_null(strstr(cut_why, "line 2"));
    expect_no_fault(dir);
    struct fixture f;
    fixture_open_lmdb(&f, dir);
    struct zstat stat;
    struct bytes *data;
    assert_int_equal(mirror_get(f.mirror, "/a/b/d", &data, NULL), ZOK);
    assert_string_equal(data->data, "last");
    bytes_unref(data);
    assert_int_equal(mirror_get(f.mirror, "/a/b", NULL, &stat), ZOK);
    assert_int_equal(stat.cversion, 2); /* two children were created, whatever the line said */
    fixture_close(&f);
    fixture_remove(dir);
}

static void keep(struct txn *txn, void *arg)
{
}

/* Ephemeral nodes are dumped, with their owner, and not loaded; sequence numbers go on as if their sessions had ended.
 */
static void test_ephemerals(void **state)
{
    char *dir = fixture_dir(), *copy = fixture_dir(), *why = NULL;
    struct fixture f;
    fixture_open_lmdb(&f, dir);
    int64_t session = store_session_open(f.store);
    struct txn *txn = txn_new(TXN_CLIENT);
    txn->session = session;
    txn->done = keep;
    txn_create(txn, "/seq", NULL, 0);
    txn_create(txn, "/seq/n-", bytes_from_string("e"), CREATE_SEQUENTIAL | CREATE_EPHEMERAL);
    txn_create(txn, "/seq/n-", bytes_from_string("p"), CREATE_SEQUENTIAL);
    store_submit(f.store, txn);
    store_step(f.store);
    assert_int_equal(txn->rc, ZOK);
    txn_free(txn);
    fixture_close(&f); /* as a crash: nobody ends the session */
    expect_no_fault(dir);
    struct text t = run(store_dump, dir);
    assert_int_equal(t.rc, 0);
    assert_non_null(strstr(t.text, "/seq/n-0000000000 czxid=1"));
    assert_non_null(strstr(t.text, "ephemeralOwner="));
    assert_int_equal(load(copy, t.text, &why), 0);
    clear(&t);
    expect_no_fault(copy);
    fixture_open_lmdb(&f, copy);
    assert_false(mirror_exists(f.mirror, "/seq/n-0000000000"));
    assert_true(mirror_exists(f.mirror, "/seq/n-0000000001"));
    txn = txn_new(TXN_CLIENT);
    txn_create(txn, "/seq/n-", NULL, CREATE_SEQUENTIAL);
    assert_int_equal(fixture_run(&f, txn), ZOK);
    assert_true(mirror_exists(f.mirror, "/seq/n-0000000002"));
    fixture_close(&f);
    fixture_remove(dir);
    fixture_remove(copy);
}

/* ---- damage ---- */

/* Changes one byte of the record whose value contains `marker`. */
static void damage(const char *dir, const char *marker)
{
    g_autofree char *file = g_build_filename(dir, "data.mdb", NULL), *content = NULL;
    gsize len;
    assert_true(g_file_get_contents(file, &content, &len, NULL));
    int fd = open(file, O_WRONLY), n = 0;
    for (char *p = content; (p = memmem(p, len - (gsize)(p - content), marker, strlen(marker))); p++, n++)
        assert_int_equal(pwrite(fd, "!", 1, p - content), 1); /* also in pages that are free now */
    close(fd);
    assert_true(n > 0);
}

static void test_damaged_record(void **state)
{
    char *dir = fixture_dir(), *why = NULL;
    struct fixture f;
    fixture_open_lmdb(&f, dir);
    assert_int_equal(fixture_create(&f, "/top", "marker-top"), ZOK);
    assert_int_equal(fixture_create(&f, "/top/child", "marker-child"), ZOK);
    assert_int_equal(fixture_create(&f, "/top/child/leaf", "leaf"), ZOK);
    assert_int_equal(fixture_create(&f, "/other", "other"), ZOK);
    fixture_close(&f);
    damage(dir, "marker-child");

    struct text t = run(store_check, dir);
    assert_true(t.rc > 0);
    assert_non_null(strstr(t.text, "/top/child: record damaged (checksum)\n"));
    assert_non_null(strstr(t.text, "(node 3)/leaf: has no parent"));
    clear(&t);
    t = run(store_dump, dir);
    assert_int_equal(t.rc, -EUCLEAN);
    assert_non_null(strstr(t.text, "/other "));
    assert_null(strstr(t.text, "/top/child "));
    assert_non_null(strstr(t.why, "left out 1 damaged places, and 1 records"));
    clear(&t);

    struct store_config config = {0};
    struct store *store;
    f = (struct fixture){.now = 1};
    config = fixture_config(&f);
    int err = store_open_lmdb(dir, true, false, &config, &store, &why);
    if (err == 0) {
        f.mirror = mirror_new(NULL, NULL);
        err = store_load(store, (void *)mirror_load, f.mirror, &why);
        store_close(store);
        mirror_free(f.mirror);
    }
    assert_int_equal(err, -EUCLEAN);
    assert_non_null(strstr(why, "/top/child: record damaged"));
    g_free(why);
    fixture_remove(dir);
}

static void test_no_meta_record(void **state)
{
    char *dir = fixture_dir(), *why = NULL;
    struct record_key key;
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    assert_int_equal(load(dir, "/a data=1\n", &why), 0);
    record_key_make(&key, 0, "");
    MDB_val name = {.mv_size = key.len, .mv_data = key.bytes};
    assert_int_equal(mdb_env_create(&env), 0);
    assert_int_equal(mdb_env_open(env, dir, MDB_NOLOCK, 0600), 0);
    assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
    assert_int_equal(mdb_dbi_open(txn, NULL, 0, &dbi), 0);
    assert_int_equal(mdb_del(txn, dbi, &name, NULL), 0);
    assert_int_equal(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
    struct text t = run(store_check, dir);
    assert_int_equal(t.rc, 1);
    assert_string_equal(t.text, "the meta record: missing\n");
    clear(&t);
    fixture_remove(dir);
}

static void test_not_there(void **state)
{
    char *dir = fixture_dir();
    struct text t = run(store_check, dir);
    assert_int_equal(t.rc, -ENOENT);
    assert_non_null(t.why);
    clear(&t);
    fixture_remove(dir);
}

static void test_in_use(void **state)
{
    char *dir = fixture_dir();
    struct fixture f;
    fixture_open_lmdb(&f, dir);
    struct text t = run(store_check, dir);
    assert_int_equal(t.rc, -EBUSY);
    g_autofree char *pid = g_strdup_printf("process %d", getpid());
    assert_non_null(strstr(t.why, pid));
    clear(&t);
    fixture_close(&f);
    expect_no_fault(dir);
    fixture_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_round_trip),
            cmocka_unit_test(test_form),
            cmocka_unit_test(test_bad_lines),
            cmocka_unit_test(test_load_refuses_a_store),
            cmocka_unit_test(test_hand_written),
            cmocka_unit_test(test_ephemerals),
            cmocka_unit_test(test_damaged_record),
            cmocka_unit_test(test_no_meta_record),
            cmocka_unit_test(test_not_there),
            cmocka_unit_test(test_in_use),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
