/* The tree in memory: what FUSE relies on (numbers, order, directories), and that nothing is slow in large ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "fs/tree/mirror.h"
#include "fs/tree/path.h"

static int64_t zxid;

static struct change apply(struct mirror *m, enum change_type type, const char *path, const char *data)
{
    struct change ch = {.type = type, .path = path, .data = data ? bytes_from_string(data) : NULL};
    zxid++;
    ch.stat = (struct zstat){.czxid = zxid, .mzxid = zxid, .pzxid = zxid, .mtime = 5000 + zxid, .ctime = 5000 + zxid};
    ch.stat.version = (int32_t)zxid;
    ch.parent_pzxid = zxid;
    ch.parent_cversion = (int32_t)zxid;
    struct commit c = {.zxid = zxid, .time_ms = 5000 + zxid, .changes = &ch, .n_changes = 1};
    mirror_apply(m, &c);
    bytes_unref(ch.data);
    return ch;
}

static struct change create(struct mirror *m, const char *path, const char *data)
{
    return apply(m, NODE_CREATED, path, data);
}

static struct change removed(struct mirror *m, const char *path)
{
    return apply(m, NODE_DELETED, path, NULL);
}

static struct change set(struct mirror *m, const char *path, const char *data)
{
    return apply(m, NODE_DATA_CHANGED, path, data);
}

static bool topics_are_directories(void *arg, const char *path)
{
    return path_matches(path, arg);
}

static void expect_children(struct mirror *m, const char *path, const char *expected)
{
    g_autoptr(GPtrArray) names = mirror_children(m, path);
    g_autoptr(GString) all = g_string_new(NULL);
    for (guint i = 0; i < names->len; i++)
        g_string_append_printf(all, "%s ", (char *)g_ptr_array_index(names, i));
    assert_string_equal(all->str, expected);
}

static void test_basics(void **state)
{
    struct mirror *m = mirror_new(NULL, NULL);
    struct zstat stat;
    struct bytes *data = NULL;
    zxid = 0;
    assert_int_equal(znode_ino(mirror_root(m)), 1);
    assert_true(znode_is_directory(mirror_root(m)));
    create(m, "/a", "1");
    create(m, "/a/b", "");
    create(m, "/c", NULL);
    assert_int_equal(mirror_count(m), 3);
    assert_int_equal(mirror_zxid(m), 3);
    assert_int_equal(mirror_get(m, "/a", &data, &stat), ZOK);
    assert_string_equal(data->data, "1");
    assert_int_equal(stat.czxid, 1);
    assert_int_equal(stat.pzxid, 2);
    assert_int_equal(stat.cversion, 2);
    bytes_unref(data);
    assert_int_equal(mirror_get(m, "/c", &data, NULL), ZOK);
    assert_null(data);
    assert_int_equal(mirror_get(m, "/a/x", &data, &stat), ZNONODE);
    assert_int_equal(mirror_get(m, "/a/b/c", NULL, NULL), ZNONODE);
    assert_false(mirror_exists(m, "/x"));
    assert_null(mirror_children(m, "/x"));
    expect_children(m, "/", "a c ");
    removed(m, "/a/b");
    expect_children(m, "/a", "");
    assert_int_equal(mirror_count(m), 2);
    mirror_free(m);
    mirror_free(NULL);
}

static void test_below(void **state)
{
    struct mirror *m = mirror_new(NULL, NULL);
    zxid = 0;
    create(m, "/p", NULL);
    create(m, "/p/1", NULL);
    create(m, "/p/1/other", "no");
    create(m, "/p/1/state", "one");
    create(m, "/p/empty", NULL);
    create(m, "/p/0", NULL);
    create(m, "/p/0/state", NULL);
    create(m, "/p/state", "not below a child");
    set(m, "/p/1/state", "two");
    g_autoptr(GArray) all = mirror_below(m, "/p", "state"), none = mirror_below(m, "/x", "state");
    mirror_free(m);
    assert_int_equal(none->len, 0);
    assert_int_equal(all->len, 2);
    const struct node_below *b = &g_array_index(all, struct node_below, 0);
    assert_string_equal(b[0].child, "1");
    assert_string_equal(b[0].data->data, "two");
    assert_int_equal(b[0].version, 9); /* of the ninth commit here */
    assert_string_equal(b[1].child, "0");
    assert_null(b[1].data);
}

static void test_file_becomes_directory(void **state)
{
    struct mirror *m = mirror_new(NULL, NULL);
    zxid = 0;
    struct change a = create(m, "/a", "x"), b = create(m, "/b", "x");
    assert_true(a.ino % 2 == 0 && b.ino > a.ino);
    assert_int_equal(a.parent_ino, 1);
    assert_int_equal(a.parent_old_ino, 0);
    assert_false(znode_is_directory(mirror_find(m, "/a")));
    assert_int_equal(znode_num_directories(mirror_root(m)), 0);

    struct change c = create(m, "/a/c", "x"); /* by its first child */
    assert_int_equal(c.parent_old_ino, a.ino);
    assert_true(c.parent_ino > b.ino && c.parent_ino != c.ino);
    assert_int_equal(znode_ino(mirror_find(m, "/a")), c.parent_ino);
    expect_children(m, "/", "b a ");
    assert_int_equal(znode_num_directories(mirror_root(m)), 1);
    assert_int_equal(create(m, "/a/d", "x").parent_old_ino, 0);

    struct change n = set(m, "/b", NULL); /* by null data */
    assert_false(n.was_null);
    assert_int_equal(n.old_ino, b.ino);
    assert_true(n.ino > c.ino);
    expect_children(m, "/", "a b ");
    n = set(m, "/b", "again"); /* and it stays one */
    assert_true(n.was_null);
    assert_int_equal(n.old_ino, 0);
    assert_true(znode_is_directory(mirror_find(m, "/b")));
    removed(m, "/a/c");
    removed(m, "/a/d");
    assert_true(znode_is_directory(mirror_find(m, "/a")));
    assert_int_equal(znode_num_directories(mirror_root(m)), 2);
    removed(m, "/a");
    assert_int_equal(znode_num_directories(mirror_root(m)), 1);
    create(m, "/a", "x"); /* a new life */
    assert_false(znode_is_directory(mirror_find(m, "/a")));
    mirror_free(m);
}

static void test_always_directory(void **state)
{
    struct mirror *m = mirror_new(topics_are_directories, (void *)"/t/*");
    zxid = 0;
    create(m, "/t", NULL);
    create(m, "/t/x", "data");
    create(m, "/u", "data");
    assert_true(znode_is_directory(mirror_find(m, "/t/x")));
    assert_false(znode_is_directory(mirror_find(m, "/u")));
    assert_int_equal(create(m, "/t/x/y", "z").parent_old_ino, 0);
    mirror_free(m);
}

static void test_removed_node(void **state)
{
    struct mirror *m = mirror_new(NULL, NULL);
    zxid = 0;
    create(m, "/a", NULL);
    create(m, "/a/b", NULL);
    struct change c = create(m, "/a/b/c", "data");
    mirror_rdlock(m);
    struct znode *n = znode_ref(mirror_find(m, "/a/b/c"));
    mirror_unlock(m);
    assert_int_equal(removed(m, "/a/b/c").ino, c.ino);
    removed(m, "/a/b");
    removed(m, "/a");
    assert_true(znode_removed(n));
    assert_null(znode_parent(n));
    assert_string_equal(znode_data(n)->data, "data");
    assert_int_equal(znode_ino(n), c.ino);
    g_autofree char *path = znode_path(n);
    assert_string_equal(path, "/a/b/c");
    assert_true(create(m, "/a", NULL).ino > c.ino); /* no number comes twice */
    mirror_free(m);
    assert_null(znode_unref(n));
    assert_null(znode_unref(NULL));
}

static void test_load(void **state)
{
    struct mirror *m = mirror_new(NULL, NULL);
    struct zstat stat = {.czxid = 3, .mzxid = 9, .pzxid = 4, .ctime = 100, .mtime = 200, .version = 6};
    struct bytes *data = bytes_from_string("x");
    mirror_load(m, "/", NULL, &(struct zstat){.pzxid = 12, .cversion = 7});
    mirror_load(m, "/a", data, &stat);
    mirror_load(m, "/b", data, &stat);
    mirror_load(m, "/a/c", NULL, &(struct zstat){.ctime = 300});
    mirror_load(m, "/b/d", data, &stat);
    mirror_load(m, "/a/e", data, &stat);
    bytes_unref(data);
    assert_int_equal(mirror_zxid(m), 12);
    assert_int_equal(mirror_count(m), 5);
    expect_children(m, "/", "a b "); /* nobody has seen them as files: they keep their places */
    expect_children(m, "/a", "c e ");
    assert_true(znode_is_directory(mirror_find(m, "/a")));
    assert_int_equal(znode_num_directories(mirror_root(m)), 2);
    assert_int_equal(znode_changed_ms(mirror_find(m, "/a")), 300);
    assert_int_equal(znode_changed_ms(mirror_find(m, "/b")), 200);
    struct zstat got;
    assert_int_equal(mirror_get(m, "/", NULL, &got), ZOK);
    assert_int_equal(got.cversion, 7);
    mirror_free(m);
}

static void test_changed_time(void **state)
{
    struct mirror *m = mirror_new(NULL, NULL);
    zxid = 0;
    create(m, "/a", NULL);
    assert_int_equal(znode_changed_ms(mirror_find(m, "/a")), 5001);
    create(m, "/a/b", NULL);
    assert_int_equal(znode_changed_ms(mirror_find(m, "/a")), 5002);
    set(m, "/a", "x");
    assert_int_equal(znode_changed_ms(mirror_find(m, "/a")), 5003);
    removed(m, "/a/b");
    assert_int_equal(znode_changed_ms(mirror_find(m, "/a")), 5004);
    assert_int_equal(znode_stat(mirror_find(m, "/a"))->mtime, 5003);
    mirror_free(m);
}

/* Random creations and removals in one directory, against a plain array in order of creation. */
static void test_order(void **state)
{
    struct mirror *m = mirror_new(NULL, NULL);
    g_autoptr(GPtrArray) model = g_ptr_array_new_with_free_func(g_free);
    unsigned seed = getenv("SEED") ? (unsigned)strtoul(getenv("SEED"), NULL, 10) : g_random_int();
    GRand *chance = g_rand_new_with_seed(seed);
    print_message("seed %u\n", seed);
    for (int i = 0; i < 20000; i++) {
        bool grow = i / 2000 % 2 == 0 ? g_rand_int_range(chance, 0, 3) > 0 : g_rand_int_range(chance, 0, 3) == 0;
        if (grow || model->len == 0) {
            g_autofree char *path = g_strdup_printf("/n%d", i);
            create(m, path, "x");
            g_ptr_array_add(model, g_strdup(path + 1));
        } else {
            guint at = g_rand_int_range(chance, 0, 4) == 0 ? 0 : (guint)g_rand_int_range(chance, 0, (gint)model->len);
            g_autofree char *path = path_join("/", g_ptr_array_index(model, at));
            removed(m, path);
            g_ptr_array_remove_index(model, at);
        }
        if (i % 97 != 0)
            continue;
        struct znode *root = mirror_root(m);
        assert_int_equal(znode_num_children(root), model->len);
        uint64_t after = 0;
        for (guint k = 0; k < model->len; k++) {
            struct znode *n = znode_next_child(root, after);
            if (!n || strcmp(znode_name(n), g_ptr_array_index(model, k)) != 0)
                fail_msg("seed %u, step %d: child %u", seed, i, k);
            assert_ptr_equal(znode_child(m, root, znode_name(n)), n);
            assert_ptr_equal(znode_next_child(root, znode_ino(n) - 1), n);
            after = znode_ino(n);
        }
        assert_null(znode_next_child(root, after));
    }
    g_rand_free(chance);
    mirror_free(m);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

#define MANY 100000

/* Removal of a large directory from the front, the back, and the middle, with a look at the first child each time. */
static void test_large_directory(void **state)
{
    static char paths[MANY][16];
    for (int i = 0; i < MANY; i++)
        snprintf(paths[i], sizeof paths[i], "/n%d", i);
    for (int order = 0; order < 3; order++) {
        struct mirror *m = mirror_new(NULL, NULL);
        double start = seconds();
        for (int i = 0; i < MANY; i++)
            create(m, paths[i], "x");
        for (int i = 0; i < MANY; i++) {
            int at = order == 0 ? i : order == 1 ? MANY - 1 - i : (int)(i * 7919L % MANY);
            removed(m, paths[at]);
            assert_true(znode_next_child(mirror_root(m), 0) != NULL || i == MANY - 1);
        }
        assert_int_equal(mirror_count(m), 0);
        double took = seconds() - start;
        print_message("order %d: %.2f s\n", order, took);
        assert_true(took < 30); /* a quadratic one takes minutes */
        mirror_free(m);
    }
}

/* ---- threads ---- */

static atomic_bool stop;

static void *reader(void *arg)
{
    struct mirror *m = arg;
    while (!atomic_load(&stop)) {
        mirror_rdlock(m);
        struct znode *a = mirror_find(m, "/d/a"), *b = mirror_find(m, "/d/b");
        assert_int_equal(a != NULL, b != NULL); /* a commit is seen whole or not at all */
        struct znode *held = a ? znode_ref(a) : NULL;
        mirror_unlock(m);
        if (held) {
            g_autofree char *path = znode_path(held);
            assert_string_equal(path, "/d/a");
            znode_unref(held);
        }
        g_autoptr(GPtrArray) names = mirror_children(m, "/d");
        assert_true(names->len == 0 || names->len == 2);
    }
    return NULL;
}

static void apply_pair(struct mirror *m, enum change_type type, const char *first, const char *second)
{
    struct bytes *data = type == NODE_CREATED ? bytes_from_string("x") : NULL;
    struct change changes[2] = {
            {.type = type, .path = first, .data = data}, {.type = type, .path = second, .data = data}};
    struct commit c = {.zxid = ++zxid, .changes = changes, .n_changes = 2};
    mirror_apply(m, &c);
    bytes_unref(data);
}

static void test_threads(void **state)
{
    struct mirror *m = mirror_new(NULL, NULL);
    pthread_t threads[3];
    zxid = 0;
    create(m, "/d", NULL);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, reader, m), 0);
    for (int i = 0; i < 5000; i++) {
        apply_pair(m, NODE_CREATED, "/d/a", "/d/b");
        apply_pair(m, NODE_DELETED, "/d/b", "/d/a");
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    mirror_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_basics),
            cmocka_unit_test(test_below),
            cmocka_unit_test(test_file_becomes_directory),
            cmocka_unit_test(test_always_directory),
            cmocka_unit_test(test_removed_node),
            cmocka_unit_test(test_load),
            cmocka_unit_test(test_changed_time),
            cmocka_unit_test(test_order),
            cmocka_unit_test(test_large_directory),
            cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
