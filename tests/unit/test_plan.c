/* Plain ZooKeeper's answer to a request, on a memory store. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include "fs/policy.h"
#include "fs/store/store.h"

static struct mirror *mirror;
static struct store *store;
static struct plan plan;

static int64_t now_ms(void *ctx)
{
    return 1000;
}

static void feed(void *ctx, struct commit *commit)
{
    mirror_apply(mirror, commit);
}

static int rc;

static void done(struct txn *txn, void *arg)
{
    rc = txn->rc;
    txn_free(txn);
}

/* Commits what is planned; the store's answer. */
static int commit(void)
{
    assert_int_equal(plan.type, PLAN_TXN);
    plan.txn->done = done;
    store_submit(store, plan.txn);
    plan.txn = NULL;
    store_step(store);
    return rc;
}

static void ask(const struct request *request)
{
    plan_clear(&plan);
    plan_default(mirror, request, &plan);
}

static struct bytes *value(const char *text)
{
    static struct bytes *last; /* one reference is kept until the next */
    bytes_unref(last);
    return last = text ? bytes_from_string(text) : NULL;
}

static void make(const char *path, const char *text)
{
    if (text)
        ask(&(struct request){.type = REQ_CREATE, .path = path, .value = value(text)});
    else
        ask(&(struct request){.type = REQ_MKDIR, .path = path});
    assert_int_equal(commit(), ZOK);
}

static void holds(const char *path, const char *text)
{
    struct bytes *data = NULL;
    assert_int_equal(mirror_get(mirror, path, &data, NULL), ZOK);
    assert_true(bytes_equal(data, value(text)));
    bytes_unref(data);
}

static void refused(int err)
{
    assert_int_equal(plan.type, PLAN_REFUSE);
    assert_int_equal(plan.err, err);
}

static int setup(void **state)
{
    mirror = mirror_new(NULL, NULL);
    const struct store_config config = {.now_ms = now_ms, .feed = feed};
    assert_int_equal(store_open_memory(&config, &store), 0);
    return 0;
}

static int teardown(void **state)
{
    plan_clear(&plan);
    value(NULL);
    store_close(store);
    mirror_free(mirror);
    return 0;
}

static void test_make_set_remove(void **state)
{
    make("/d", NULL);
    holds("/d", NULL);
    make("/d/f", "");
    holds("/d/f", "");
    ask(&(struct request){.type = REQ_SET, .path = "/d/f", .value = value("x")});
    assert_int_equal(commit(), ZOK);
    holds("/d/f", "x");
    ask(&(struct request){.type = REQ_SET, .path = "/d/f"});
    assert_int_equal(commit(), ZOK);
    holds("/d/f", NULL);
    ask(&(struct request){.type = REQ_RMDIR, .path = "/d"});
    assert_int_equal(commit(), ZNOTEMPTY);
    ask(&(struct request){.type = REQ_UNLINK, .path = "/d/f"});
    assert_int_equal(commit(), ZOK);
    ask(&(struct request){.type = REQ_RMDIR, .path = "/d"});
    assert_int_equal(commit(), ZOK);
    assert_false(mirror_exists(mirror, "/d"));
    ask(&(struct request){.type = REQ_MKDIR, .path = "/no/d"});
    assert_int_equal(commit(), ZNONODE);
    ask(&(struct request){.type = REQ_TOUCH, .path = "/d"});
    assert_int_equal(plan.type, PLAN_NOTHING);
}

static void test_append(void **state)
{
    ask(&(struct request){.type = REQ_APPEND, .path = "/f", .value = value("a\n")});
    assert_int_equal(commit(), ZOK);
    ask(&(struct request){.type = REQ_APPEND, .path = "/f", .value = value("b\n")});
    assert_true(plan.judge_again);
    assert_int_equal(commit(), ZOK);
    holds("/f", "a\nb\n");
}

static void test_rename(void **state)
{
    make("/d", NULL);
    make("/f", "one");
    make("/g", "two");
    ask(&(struct request){.type = REQ_RENAME, .path = "/d", .new_path = "/e"});
    refused(EPERM);
    ask(&(struct request){.type = REQ_RENAME, .path = "/no", .new_path = "/e"});
    refused(ENOENT);
    ask(&(struct request){.type = REQ_RENAME, .path = "/f", .new_path = "/g"});
    refused(EEXIST);
    ask(&(struct request){.type = REQ_RENAME, .path = "/f", .new_path = "/d", .replace = true});
    refused(EISDIR);
    ask(&(struct request){.type = REQ_RENAME, .path = "/f", .new_path = "/d/f"});
    assert_int_equal(commit(), ZOK);
    assert_false(mirror_exists(mirror, "/f"));
    holds("/d/f", "one");
    ask(&(struct request){.type = REQ_RENAME, .path = "/d/f", .new_path = "/g", .replace = true});
    assert_int_equal(commit(), ZOK);
    holds("/g", "one");
    assert_false(mirror_exists(mirror, "/d/f"));
    /* a private file over a name, and to a new one */
    ask(&(struct request){.type = REQ_RENAME, .new_path = "/g", .value = value("three"), .replace = true});
    assert_int_equal(commit(), ZOK);
    holds("/g", "three");
    ask(&(struct request){.type = REQ_RENAME, .new_path = "/h", .value = value("four")});
    assert_int_equal(commit(), ZOK);
    holds("/h", "four");
}

/* What the plan was based on has changed: the transaction fails, and the plan says that it may be judged again. */
static void test_rename_conflict(void **state)
{
    make("/f", "one");
    ask(&(struct request){.type = REQ_RENAME, .path = "/f", .new_path = "/g"});
    struct plan early = plan;
    plan = (struct plan){0};
    ask(&(struct request){.type = REQ_SET, .path = "/f", .value = value("newer")});
    assert_int_equal(commit(), ZOK);
    plan = early;
    assert_true(plan.judge_again);
    assert_int_equal(commit(), ZBADVERSION);
    holds("/f", "newer");
    assert_false(mirror_exists(mirror, "/g"));
}

/* Another node by that name has the versions of the one before: it is not the one that was looked at. */
static void test_made_again_meanwhile(void **state)
{
    struct bytes *more = bytes_from_string("more");
    const struct request requests[] = {
            {.type = REQ_RENAME, .path = "/f", .new_path = "/g"},
            {.type = REQ_RENAME, .new_path = "/f", .value = more, .replace = true},
            {.type = REQ_APPEND, .path = "/f", .value = more},
    };
    make("/f", "one");
    for (size_t i = 0; i < G_N_ELEMENTS(requests); i++) {
        ask(&requests[i]);
        struct plan early = plan;
        plan = (struct plan){0};
        ask(&(struct request){.type = REQ_UNLINK, .path = "/f"});
        assert_int_equal(commit(), ZOK);
        make("/f", "two");
        plan = early;
        assert_true(plan.judge_again);
        assert_int_equal(commit(), ZBADVERSION);
        holds("/f", "two");
        assert_false(mirror_exists(mirror, "/g"));
    }
    bytes_unref(more);
}

static void test_refuse(void **state)
{
    plan_clear(&plan);
    plan_refuse(&plan, EINVAL, "%s is %d", "it", 7);
    refused(EINVAL);
    assert_string_equal(plan.reason, "it is 7");
    plan_clear(&plan);
    assert_null(plan.reason);
    plan_clear(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup_teardown(test_make_set_remove, setup, teardown),
            cmocka_unit_test_setup_teardown(test_append, setup, teardown),
            cmocka_unit_test_setup_teardown(test_rename, setup, teardown),
            cmocka_unit_test_setup_teardown(test_rename_conflict, setup, teardown),
            cmocka_unit_test_setup_teardown(test_made_again_meanwhile, setup, teardown),
            cmocka_unit_test_setup_teardown(test_refuse, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
