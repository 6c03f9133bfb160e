/* The store over a backend that can fail: batches, sessions, results, what is published and what is not. */
#include "store_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

/* ---- memory that counts commits, and fails on demand ---- */

struct faulty {
    struct backend base;
    struct backend *inner;
    int commits, reads;
    int (*fault)(struct faulty *f, const struct record_write *writes, size_t n); /* 0 or -errno */
    int get_error;
    int delay_us;
};

static int faulty_get(struct backend *b, uint64_t parent_id, const char *name, struct node *ret)
{
    struct faulty *f = (struct faulty *)b;
    f->reads++;
    return f->get_error ? f->get_error : f->inner->ops->get(f->inner, parent_id, name, ret);
}

static int faulty_commit(struct backend *b, const struct record_write *writes, size_t n, const struct meta *meta)
{
    struct faulty *f = (struct faulty *)b;
    int err = f->fault ? f->fault(f, writes, n) : 0;
    if (err < 0)
        return err;
    if (f->delay_us)
        g_usleep((gulong)f->delay_us);
    f->commits++;
    err = f->inner->ops->commit(f->inner, writes, n, meta);
    b->meta = f->inner->meta;
    return err;
}

static void faulty_reset(struct backend *b)
{
    struct faulty *f = (struct faulty *)b;
    f->inner->ops->reset(f->inner);
}

static int faulty_walk(struct backend *b, int (*visit)(void *arg, const struct record_view *view), void *arg)
{
    struct faulty *f = (struct faulty *)b;
    return f->inner->ops->walk(f->inner, visit, arg);
}

static void faulty_usage(struct backend *b, struct store_usage *ret)
{
    struct faulty *f = (struct faulty *)b;
    f->inner->ops->usage(f->inner, ret);
}

static void faulty_close(struct backend *b)
{
    struct faulty *f = (struct faulty *)b;
    f->inner->ops->close(f->inner);
    g_free(f);
}

static const struct backend_ops faulty_ops = {
        "faulty store", faulty_get, faulty_commit, faulty_reset, faulty_walk, faulty_usage, faulty_close};

static struct faulty *open_faulty(struct fixture *f)
{
    struct faulty *b = g_new0(struct faulty, 1);
    b->inner = backend_new_memory();
    b->base = (struct backend){.ops = &faulty_ops, .meta = b->inner->meta};
    fixture_open(f, &b->base);
    b->commits = 0;
    return b;
}

static struct txn *submit_create(struct fixture *f, const char *path, size_t size, int *n_done)
{
    struct txn *txn = txn_new(TXN_CLIENT);
    g_autofree char *data = g_strnfill(size, 'x');
    txn_create(txn, path, bytes_from_string(data), 0);
    txn->done = fixture_keep;
    txn->arg = n_done;
    store_submit(f->store, txn);
    return txn;
}

/* ---- batches ---- */

static void test_one_commit_for_all_that_is_queued(void **state)
{
    struct fixture f;
    struct faulty *b = open_faulty(&f);
    struct txn *txns[50];
    int n_done = 0;
    for (int i = 0; i < 50; i++) {
        g_autofree char *path = g_strdup_printf("/n%d", i);
        txns[i] = submit_create(&f, i % 5 == 4 ? "/n0" : path, 1, &n_done);
    }
    assert_int_equal(n_done, 0);
    assert_int_equal(store_step(f.store), 50);
    assert_int_equal(n_done, 50);
    assert_int_equal(b->commits, 1);
    assert_int_equal(f.n_commits, 40);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(txns[i]->rc, i % 5 == 4 ? ZNODEEXISTS : ZOK);
        txn_free(txns[i]);
    }
    assert_int_equal(mirror_zxid(f.mirror), 40); /* the failed ones took none */
    fixture_close(&f);
}

static void test_batches_are_limited(void **state)
{
    struct fixture f;
    struct faulty *b = open_faulty(&f);
    GPtrArray *txns = g_ptr_array_new_with_free_func((GDestroyNotify)txn_free);
    for (int i = 0; i < 2500; i++) {
        g_autofree char *path = g_strdup_printf("/n%d", i);
        g_ptr_array_add(txns, submit_create(&f, path, 1, NULL));
    }
    store_step(f.store);
    assert_int_equal(b->commits, 3); /* of at most 1000 operations */
    b->commits = 0;
    for (int i = 0; i < 10; i++) {
        g_autofree char *path = g_strdup_printf("/large%d", i);
        g_ptr_array_add(txns, submit_create(&f, path, 1000000, NULL));
    }
    store_step(f.store);
    assert_int_equal(b->commits, 3); /* of at most 4 MiB */
    g_ptr_array_unref(txns);
    fixture_close(&f);
}

static void test_checks_alone_write_nothing(void **state)
{
    struct fixture f;
    struct faulty *b = open_faulty(&f);
    struct txn *txn = txn_new(TXN_CLIENT);
    txn_check(txn, "/", 0);
    assert_int_equal(fixture_run(&f, txn), ZOK);
    assert_int_equal(fixture_run(&f, txn_new(TXN_CLIENT)), ZOK); /* an empty multi is fine in ZooKeeper, too */
    txn = txn_new(TXN_CLIENT);
    txn_check(txn, "/", 1);
    assert_int_equal(fixture_run(&f, txn), ZBADVERSION);
    assert_int_equal(b->commits, 0);
    assert_int_equal(mirror_zxid(f.mirror), 0);
    fixture_close(&f);
}

static int check_missing(struct fixture *f, int i)
{
    g_autofree char *path = g_strdup_printf("/missing-%d", i);
    struct txn *txn = txn_new(TXN_CLIENT);
    txn_check(txn, path, -1);
    return fixture_run(f, txn);
}

/* What has been looked for is not kept for ever, though nothing is ever committed. */
static void test_refusals_do_not_pile_up(void **state)
{
    struct fixture f;
    struct faulty *b = open_faulty(&f);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(check_missing(&f, i), ZNONODE);
    int reads = b->reads;
    assert_int_equal(check_missing(&f, 0), ZNONODE);
    assert_int_not_equal(b->reads, reads);
    assert_int_equal(b->commits, 0);
    fixture_close(&f);
}

/* ---- rules that the model's random operations do not reach ---- */

static void test_set_of_one_creation(void **state)
{
    struct fixture f;
    fixture_open(&f, NULL);
    fixture_create(&f, "/a", "1");
    struct zstat old;
    assert_int_equal(mirror_get(f.mirror, "/a", NULL, &old), ZOK);
    struct txn *txn = txn_new(TXN_CLIENT);
    txn_delete(txn, "/a", -1);
    assert_int_equal(fixture_run(&f, txn), ZOK);
    fixture_create(&f, "/a", "2");
    struct zstat now;
    assert_int_equal(mirror_get(f.mirror, "/a", NULL, &now), ZOK);
    assert_int_equal(now.version, old.version);
    for (int i = 0; i < 2; i++) {
        txn = txn_new(TXN_CLIENT);
        txn_set(txn, "/a", NULL, now.version);
        txn->ops[0].czxid = i == 0 ? old.czxid : now.czxid;
        assert_int_equal(fixture_run(&f, txn), i == 0 ? ZBADVERSION : ZOK);
    }
    fixture_close(&f);
}

static void test_arguments(void **state)
{
    struct fixture f;
    fixture_open(&f, NULL);
    g_autofree char *name503 = g_strnfill(503, 'n'), *name504 = g_strnfill(504, 'n');
    g_autofree char *good = g_strconcat("/", name503, NULL), *bad = g_strconcat("/", name504, NULL);
    g_autoptr(GString) deep = g_string_new(NULL);
    while (deep->len < 4094)
        g_string_append(deep, "/d");
    assert_int_equal(fixture_create(&f, good, "x"), ZOK);
    assert_int_equal(fixture_create(&f, bad, "x"), ZNAMETOOLONG);
    assert_int_equal(fixture_create(&f, deep->str, "x"), ZNONODE);
    g_string_append(deep, "/d");
    assert_int_equal(fixture_create(&f, deep->str, "x"), ZNAMETOOLONG);
    assert_int_equal(fixture_create(&f, "/", "x"), ZNODEEXISTS);
    assert_int_equal(fixture_create(&f, "relative", "x"), ZBADARGUMENTS);
    assert_int_equal(fixture_create(&f, "/a/", "x"), ZBADARGUMENTS);

    struct txn *txn = txn_new(TXN_CLIENT);
    txn_set(txn, bad, NULL, -1);
    assert_int_equal(fixture_run(&f, txn), ZNONODE);
    txn = txn_new(TXN_CLIENT);
    txn_delete(txn, "/", -1);
    assert_int_equal(fixture_run(&f, txn), ZBADARGUMENTS);
    txn = txn_new(TXN_CLIENT);
    txn_create(txn, "/a", bytes_from_string("x"), 0);
    txn_create(txn, "/a/", NULL, CREATE_SEQUENTIAL); /* an empty prefix */
    assert_int_equal(fixture_run(&f, txn), ZOK);
    assert_true(mirror_exists(f.mirror, "/a/0000000000"));
    txn = txn_new(TXN_CLIENT);
    txn_create(txn, "/e", NULL, CREATE_EPHEMERAL); /* whose? */
    assert_int_equal(fixture_run(&f, txn), ZSESSIONEXPIRED);
    fixture_close(&f);
}

static void test_size_limit(void **state)
{
    struct fixture f;
    fixture_open(&f, NULL);
    g_autofree char *largest = g_strnfill(ZNODE_MAX_DATA, 'x'), *larger = g_strnfill(ZNODE_MAX_DATA + 1, 'x');
    assert_int_equal(fixture_create(&f, "/a", largest), ZOK);
    assert_int_equal(fixture_create(&f, "/b", larger), ZTOOLARGE);
    struct txn *txn = txn_new(TXN_CLIENT);
    txn_set(txn, "/a", bytes_from_string(larger), -1);
    assert_int_equal(fixture_run(&f, txn), ZTOOLARGE);
    fixture_close(&f);
}

static void test_result_codes_of_a_multi(void **state)
{
    struct fixture f;
    fixture_open(&f, NULL);
    struct txn *txn = txn_new(TXN_CLIENT);
    txn_create(txn, "/a", NULL, 0);
    txn_set(txn, "/nothing", NULL, -1);
    txn_create(txn, "/b", NULL, 0);
    txn->done = fixture_keep;
    store_submit(f.store, txn);
    store_step(f.store);
    assert_int_equal(txn->rc, ZNONODE);
    assert_int_equal(txn->ops[0].rc, ZOK);
    assert_int_equal(txn->ops[1].rc, ZNONODE);
    assert_int_equal(txn->ops[2].rc, ZRUNTIMEINCONSISTENCY);
    assert_false(mirror_exists(f.mirror, "/a"));
    txn_reset(txn); /* and the same transaction again, on another tree */
    assert_int_equal(fixture_create(&f, "/nothing", ""), ZOK);
    store_submit(f.store, txn);
    store_step(f.store);
    assert_int_equal(txn->rc, ZOK);
    assert_string_equal(txn->ops[0].result_path, "/a");
    assert_int_equal(txn->ops[0].stat.czxid, txn->zxid);
    assert_int_equal(txn->ops[1].stat.version, 1);
    txn_free(txn);
    fixture_close(&f);
}

/* ---- sessions ---- */

static void count_done(void *arg)
{
    ++*(int *)arg;
}

static struct txn *ephemeral(struct fixture *f, const char *path, int64_t session, int *n_done)
{
    struct txn *txn = txn_new(TXN_CLIENT);
    txn_create(txn, path, bytes_from_string("e"), CREATE_EPHEMERAL);
    txn->session = session;
    txn->done = fixture_keep;
    txn->arg = n_done;
    store_submit(f->store, txn);
    return txn;
}

static void test_session_end(void **state)
{
    struct fixture f;
    fixture_open(&f, NULL);
    int64_t mine = store_session_open(f.store), other = store_session_open(f.store);
    assert_int_not_equal(mine, other);
    int closed = 0;
    struct txn *txns[] = {
            ephemeral(&f, "/b", mine, NULL), ephemeral(&f, "/a", mine, NULL), ephemeral(&f, "/c", other, NULL)};
    store_session_close(f.store, mine, 0, count_done, &closed);
    struct txn *late = ephemeral(&f, "/late", mine, NULL);
    store_step(f.store);
    assert_int_equal(closed, 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(txns[i]->rc, ZOK);
        txn_free(txns[i]);
    }
    assert_int_equal(late->rc, ZSESSIONEXPIRED);
    assert_int_equal(late->ops[0].rc, ZSESSIONEXPIRED);
    txn_free(late);
    assert_false(mirror_exists(f.mirror, "/a"));
    assert_false(mirror_exists(f.mirror, "/b"));
    assert_true(mirror_exists(f.mirror, "/c"));
    assert_int_equal(mirror_zxid(f.mirror), 4); /* the end is one commit */
    assert_non_null(strstr(f.feed->str, "4 deleted /a"));
    assert_non_null(strstr(f.feed->str, "4 deleted /b"));
    store_session_close(f.store, mine, 0, count_done, &closed);
    store_session_close(f.store, 12345, 0, NULL, NULL);
    store_step(f.store);
    assert_int_equal(closed, 2);
    fixture_close(&f);
}

/* An ephemeral that has gone by other hands, and one that was made again by another session. */
static void test_session_index_follows(void **state)
{
    struct fixture f;
    fixture_open(&f, NULL);
    int64_t mine = store_session_open(f.store), other = store_session_open(f.store);
    struct txn *a = ephemeral(&f, "/a", mine, NULL);
    store_step(f.store);
    struct txn *txn = txn_new(TXN_CLIENT);
    txn_delete(txn, "/a", -1);
    assert_int_equal(fixture_run(&f, txn), ZOK);
    struct txn *again = ephemeral(&f, "/a", other, NULL);
    store_step(f.store);
    store_session_close(f.store, mine, 0, NULL, NULL);
    store_step(f.store);
    assert_true(mirror_exists(f.mirror, "/a"));
    store_session_close(f.store, other, 0, NULL, NULL);
    store_step(f.store);
    assert_false(mirror_exists(f.mirror, "/a"));
    txn_free(a);
    txn_free(again);
    fixture_close(&f);
}

/* ---- faults ---- */

static int fail_with_eio(struct faulty *f, const struct record_write *writes, size_t n)
{
    return -EIO;
}

static int no_space(struct faulty *f, const struct record_write *writes, size_t n)
{
    return -ENOSPC;
}

static int no_space_for_large(struct faulty *f, const struct record_write *writes, size_t n)
{
    size_t size = 0;
    for (size_t i = 0; i < n; i++)
        size += writes[i].node ? record_size(writes[i].node) : 0;
    return size > 1000 ? -ENOSPC : 0;
}

static void test_io_error_is_for_good(void **state)
{
    struct fixture f;
    struct faulty *b = open_faulty(&f);
    assert_int_equal(fixture_create(&f, "/before", "x"), ZOK);
    int64_t session = store_session_open(f.store);
    b->fault = fail_with_eio;
    assert_int_equal(fixture_create(&f, "/lost", "x"), ZSTOREIO);
    assert_int_equal(f.n_failures, 1);
    assert_non_null(strstr(f.failure, "Input/output error"));
    assert_false(mirror_exists(f.mirror, "/lost"));
    b->fault = NULL; /* the disk is well again: it is too late, nobody knows what it holds */
    assert_int_equal(fixture_create(&f, "/after", "x"), ZNOTREADONLY);
    int closed = 0;
    store_session_close(f.store, session, 0, count_done, &closed);
    store_step(f.store);
    assert_int_equal(closed, 1);
    assert_int_equal(f.n_failures, 1);
    assert_int_equal(b->commits, 1);
    assert_int_equal(f.n_commits, 1);
    fixture_close(&f);
}

static void test_damaged_record_is_for_good(void **state)
{
    struct fixture f;
    struct faulty *b = open_faulty(&f);
    b->get_error = -EUCLEAN;
    assert_int_equal(fixture_create(&f, "/lost", "x"), ZSTOREIO);
    assert_int_equal(f.n_failures, 1);
    b->get_error = 0;
    assert_int_equal(fixture_create(&f, "/after", "x"), ZNOTREADONLY);
    fixture_close(&f);
}

static void test_full_disk_is_not(void **state)
{
    struct fixture f;
    struct faulty *b = open_faulty(&f);
    b->fault = no_space;
    assert_int_equal(fixture_create(&f, "/a", "x"), ZSTORENOSPACE);
    assert_int_equal(fixture_create(&f, "/a", "x"), ZSTORENOSPACE);
    assert_false(mirror_exists(f.mirror, "/a"));
    b->fault = NULL;
    assert_int_equal(fixture_create(&f, "/a", "x"), ZOK);
    assert_int_equal(mirror_zxid(f.mirror), 1);
    assert_int_equal(f.n_failures, 0);
    fixture_close(&f);
}

static void test_large_one_fails_alone(void **state)
{
    struct fixture f;
    struct faulty *b = open_faulty(&f);
    b->fault = no_space_for_large;
    struct txn *txns[] = {
            submit_create(&f, "/a", 1, NULL),
            submit_create(&f, "/large", 5000, NULL),
            submit_create(&f, "/large/child", 1, NULL),
            submit_create(&f, "/b", 1, NULL),
    };
    int expected[] = {ZOK, ZSTORENOSPACE, ZNONODE, ZOK};
    store_step(f.store);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(txns[i]->rc, expected[i]);
        txn_free(txns[i]);
    }
    g_autofree char *tree = fixture_tree(&f, false);
    assert_int_equal(mirror_count(f.mirror), 2);
    fixture_close(&f);
}

static void test_session_end_without_space_is_done_later(void **state)
{
    struct fixture f;
    struct faulty *b = open_faulty(&f);
    int64_t session = store_session_open(f.store);
    struct txn *a = ephemeral(&f, "/a", session, NULL);
    store_step(f.store);
    int closed = 0;
    b->fault = no_space;
    store_session_close(f.store, session, 0, count_done, &closed);
    store_step(f.store);
    assert_int_equal(closed, 0);
    struct txn *late = ephemeral(&f, "/late", session, NULL);
    store_step(f.store);
    assert_int_equal(late->rc, ZSESSIONEXPIRED);
    b->fault = NULL;
    assert_int_equal(fixture_create(&f, "/b", "x"), ZOK);
    assert_int_equal(closed, 1);
    assert_false(mirror_exists(f.mirror, "/a"));
    txn_free(a);
    txn_free(late);
    fixture_close(&f);
}

/* ---- the thread ---- */

static void test_close_commits_what_is_queued(void **state)
{
    struct fixture f;
    struct faulty *b = open_faulty(&f);
    b->delay_us = 2000;
    assert_int_equal(store_start(f.store), 0);
    struct txn *txns[20];
    int n_done = 0;
    for (int i = 0; i < 20; i++) {
        g_autofree char *path = g_strdup_printf("/n%d", i);
        txns[i] = submit_create(&f, path, 1, &n_done);
    }
    store_close(f.store);
    assert_int_equal(n_done, 20);
    assert_int_equal(mirror_count(f.mirror), 20);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(txns[i]->rc, ZOK);
        txn_free(txns[i]);
    }
    f.store = NULL;
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_one_commit_for_all_that_is_queued),
            cmocka_unit_test(test_batches_are_limited),
            cmocka_unit_test(test_checks_alone_write_nothing),
            cmocka_unit_test(test_refusals_do_not_pile_up),
            cmocka_unit_test(test_set_of_one_creation),
            cmocka_unit_test(test_arguments),
            cmocka_unit_test(test_size_limit),
            cmocka_unit_test(test_result_codes_of_a_multi),
            cmocka_unit_test(test_session_end),
            cmocka_unit_test(test_session_index_follows),
            cmocka_unit_test(test_io_error_is_for_good),
            cmocka_unit_test(test_damaged_record_is_for_good),
            cmocka_unit_test(test_full_disk_is_not),
            cmocka_unit_test(test_large_one_fails_alone),
            cmocka_unit_test(test_session_end_without_space_is_done_later),
            cmocka_unit_test(test_close_commits_what_is_queued),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
