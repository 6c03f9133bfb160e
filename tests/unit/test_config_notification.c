/* The listener of /config/changes: order, once each, bad ones, purge; a bad one blocks nothing (change a5924025126). */
#include "tests/unit/config_fixture.h"
#include <errno.h>
#include "controller/config/notification.h"

enum { EXPIRY_MS = 900000 };

struct fixture {
    struct fake_tree *tree;
    struct notification_listener *l;
    GString *seen; /* entities in the order of processing */
    bool refuse;
};

static int entity(void *arg, const char *path, bool just_read, char **ret_why)
{
    struct fixture *f = arg;
    if (f->refuse) {
        *ret_why = g_strdup("no such entity");
        return -EINVAL;
    }
    if (!just_read)
        g_string_append_printf(f->seen, "%s%s", f->seen->len ? " " : "", path);
    return 0;
}

static void start(struct fixture *f)
{
    struct config_manager_env env = fake_env(f->tree);
    f->l = notification_listener_new(&env, 1, EXPIRY_MS, entity, f);
}

static int setup(void **state)
{
    struct fixture *f = g_new0(struct fixture, 1);
    f->tree = fake_tree_new();
    f->seen = g_string_new(NULL);
    start(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    notification_listener_free(f->l);
    fake_tree_free(f->tree);
    g_string_free(f->seen, TRUE);
    g_free(f);
    return 0;
}

static void put(struct fixture *f, const char *name, const char *text)
{
    g_autofree char *path = g_strconcat("/config/changes/", name, NULL);
    fake_put(f->tree, path, text);
}

static void assert_seen(struct fixture *f, const char *expected)
{
    assert_string_equal(f->seen->str, expected);
    g_string_truncate(f->seen, 0);
}

static unsigned left(struct fixture *f)
{
    g_autoptr(GPtrArray) names = fake_env(f->tree).children(f->tree, "/config/changes");
    return names ? names->len : 0;
}

static void test_no_directory(void **state)
{
    struct fixture *f = *state;
    notification_listener_pass(f->l, false); /* KAFKA-6672 */
    assert_seen(f, "");
    assert_int_equal(f->tree->errors->len, 0);
}

static void test_versions(void **state)
{
    struct fixture *f = *state;
    fake_note(f->tree, "{\"version\":1,\"entity_type\":\"topics\",\"entity_name\":\"one\"}");
    fake_note(f->tree, "{\"version\":2,\"entity_path\":\"users/u/clients/c\",\"more\":[]}");
    notification_listener_pass(f->l, false);
    assert_seen(f, "topics/one users/u/clients/c");
    notification_listener_pass(f->l, false); /* each once */
    assert_seen(f, "");
}

static const char *const malformed[] = {"\"t1\"", "t1", "{\"version\":9}", "{\"version\":2,\"entity_path\":\"t1\"}",
        "{\"version\":2}", "{\"version\":\"2\",\"entity_path\":\"topics/a\"}",
        "{\"version\":3,\"entity_path\":\"topics/a\"}", "[2]", "{\"version\":2",
        "{\"version\":1,\"entity_type\":\"topics\"}", "{\"version\":2,\"entity_path\":5}", "", NULL,
        "{\"version\":1,\"entity_type\":\"brokers\",\"entity_name\":\"1\"}",
        "{\"version\":1,\"entity_type\":\"users\",\"entity_name\":\"u\"}"};

static void test_malformed(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < G_N_ELEMENTS(malformed); i++)
        fake_note(f->tree, malformed[i]);
    fake_notify(f->tree, "topics/good");
    notification_listener_pass(f->l, false);
    assert_seen(f, "topics/good");
    assert_int_equal(f->tree->errors->len, G_N_ELEMENTS(malformed)); /* one line each */
    notification_listener_pass(f->l, false);
    assert_int_equal(f->tree->errors->len, G_N_ELEMENTS(malformed));
}

static void test_refused_entity(void **state)
{
    struct fixture *f = *state;
    f->refuse = true;
    fake_notify(f->tree, "nosuch/x");
    notification_listener_pass(f->l, false);
    f->refuse = false;
    fake_notify(f->tree, "topics/a");
    notification_listener_pass(f->l, false);
    assert_seen(f, "topics/a");
    assert_int_equal(f->tree->errors->len, 1);
}

static void test_names(void **state)
{
    struct fixture *f = *state;
    static const char *const names[] = {"x", "config_change_", "config_change_abc", "config_change_-1",
            "config_change_99999999999999999999", "config_change_1x"};
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
        put(f, names[i], "{\"version\":2,\"entity_path\":\"topics/bad\"}");
    put(f, "config_change_0000000003", "{\"version\":2,\"entity_path\":\"topics/three\"}");
    put(f, "config_change_7", "{\"version\":2,\"entity_path\":\"topics/seven\"}");
    put(f, "config_change_9223372036854775807", "{\"version\":2,\"entity_path\":\"topics/last\"}");
    notification_listener_pass(f->l, false);
    assert_seen(f, "topics/three topics/seven topics/last"); /* by number, not as strings */
    assert_int_equal(f->tree->errors->len, G_N_ELEMENTS(names));
    notification_listener_pass(f->l, false);
    assert_int_equal(f->tree->errors->len, G_N_ELEMENTS(names)); /* said once */
    f->tree->now_ms += EXPIRY_MS + 1;
    notification_listener_pass(f->l, false);
    assert_int_equal(left(f), 0);
}

static void test_order_and_progress(void **state)
{
    struct fixture *f = *state;
    put(f, "config_change_0000000012", "{\"version\":2,\"entity_path\":\"topics/c\"}");
    put(f, "config_change_0000000004", "{\"version\":2,\"entity_path\":\"topics/a\"}");
    put(f, "config_change_0000000009", "{\"version\":2,\"entity_path\":\"topics/b\"}");
    notification_listener_pass(f->l, false);
    assert_seen(f, "topics/a topics/b topics/c");
    put(f, "config_change_0000000010", "{\"version\":2,\"entity_path\":\"topics/late\"}");
    notification_listener_pass(f->l, false);
    assert_seen(f, "");
    assert_int_equal(f->tree->errors->len, 1);
    assert_true(fake_said(f->tree->errors, "number 12 was handled already"));
    put(f, "config_change_012", "{\"version\":2,\"entity_path\":\"topics/again\"}"); /* the same number */
    put(f, "config_change_0000000014", NULL);                                        /* empty, and counted as done */
    notification_listener_pass(f->l, false);
    put(f, "config_change_0000000013", "{\"version\":2,\"entity_path\":\"topics/late\"}");
    notification_listener_pass(f->l, false);
    assert_seen(f, "");
    /* a broker that starts sees them all */
    notification_listener_free(f->l);
    start(f);
    notification_listener_pass(f->l, false);
    assert_seen(f, "topics/a topics/b topics/late topics/c");
}

static void test_many_for_one_entity(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 1000; i++)
        fake_notify(f->tree, i % 2 ? "topics/a" : "topics/b");
    notification_listener_pass(f->l, false);
    assert_seen(f, "topics/b topics/a"); /* the tree is read once, as nothing can be newer */
    fake_notify(f->tree, "topics/a");
    notification_listener_pass(f->l, false);
    assert_seen(f, "topics/a");
}

static void test_created_one_by_one(void **state)
{
    struct fixture *f = *state;
    notification_listener_created(f->l, fake_notify(f->tree, "topics/a"));
    notification_listener_created(f->l, fake_note(f->tree, "rubbish"));
    notification_listener_created(f->l, fake_notify(f->tree, "topics/b"));
    const char *gone = fake_notify(f->tree, "topics/gone");
    g_autofree char *path = g_strconcat("/config/changes/", gone, NULL);
    fake_delete(f->tree, path);
    notification_listener_created(f->l, gone);
    assert_seen(f, "topics/a topics/b");
    assert_int_equal(f->tree->errors->len, 1);
    fake_notify(f->tree, "topics/c");
    notification_listener_pass(f->l, false); /* knows all but the last */
    assert_seen(f, "topics/c");
    notification_listener_created(f->l, "config_change_0000000004"); /* the feed comes after the pass */
    assert_seen(f, "");
    assert_int_equal(f->tree->errors->len, 1);
}

/* Names are not kept for ever where notifications come and go one by one. */
static void test_created_is_bounded(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 20000; i++) {
        f->tree->now_ms += EXPIRY_MS / 2;
        notification_listener_created(f->l, fake_notify(f->tree, "topics/a"));
        assert_true(left(f) <= 3);
    }
    g_string_truncate(f->seen, 0);
    notification_listener_pass(f->l, false);
    assert_seen(f, "");
    assert_int_equal(f->tree->errors->len, 0);
}

static void test_purge_age(void **state)
{
    struct fixture *f = *state;
    fake_notify(f->tree, "topics/a");
    f->tree->now_ms += 1;
    fake_note(f->tree, "rubbish");
    fake_note(f->tree, NULL);
    f->tree->now_ms += EXPIRY_MS - 1;
    notification_listener_pass(f->l, false);
    assert_int_equal(left(f), 3); /* exactly the expiry is not yet too old */
    f->tree->now_ms += 1;
    notification_listener_pass(f->l, false);
    assert_int_equal(left(f), 2);
    f->tree->now_ms += 1;
    notification_listener_created(f->l, fake_notify(f->tree, "topics/b"));
    assert_int_equal(left(f), 1); /* malformed and empty ones too, when the next one comes */
}

/* What the store refused is tried again by a later notification, not by each that comes meanwhile. */
static void test_purge_refused(void **state)
{
    struct fixture *f = *state;
    fake_notify(f->tree, "topics/a");
    notification_listener_pass(f->l, false);
    f->tree->now_ms += EXPIRY_MS + 1;
    f->tree->removes_nothing = true;
    notification_listener_created(f->l, fake_notify(f->tree, "topics/b"));
    f->tree->removes_nothing = false;
    notification_listener_created(f->l, fake_notify(f->tree, "topics/c"));
    assert_int_equal(left(f), 3);
    f->tree->now_ms += 60001;
    notification_listener_created(f->l, fake_notify(f->tree, "topics/d"));
    assert_int_equal(left(f), 3); /* without the first */
    assert_int_equal(f->tree->batches->len, 2);
}

/* Ages are looked at one by one, not up to the first young one. */
static void test_purge_out_of_order(void **state)
{
    struct fixture *f = *state;
    put(f, "config_change_0000000009", "{\"version\":2,\"entity_path\":\"topics/old\"}");
    f->tree->now_ms += EXPIRY_MS;
    put(f, "config_change_0000000001", "{\"version\":2,\"entity_path\":\"topics/young\"}");
    f->tree->now_ms += 1;
    notification_listener_pass(f->l, false);
    assert_seen(f, "topics/young topics/old");
    g_autoptr(GPtrArray) names = fake_env(f->tree).children(f->tree, "/config/changes");
    assert_int_equal(names->len, 1);
    assert_string_equal(names->pdata[0], "config_change_0000000001");
}

static void test_replay(void **state)
{
    struct fixture *f = *state;
    fake_note(f->tree, "old rubbish");
    f->tree->now_ms += EXPIRY_MS + 1;
    fake_note(f->tree, "new rubbish");
    fake_notify(f->tree, "topics/a");
    notification_listener_pass(f->l, true);
    assert_seen(f, ""); /* all entities have just been read */
    assert_int_equal(f->tree->errors->len, 1);
    assert_int_equal(left(f), 2);
    notification_listener_created(f->l, fake_notify(f->tree, "topics/b"));
    assert_seen(f, "topics/b");
}

static void test_many_old_ones(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 1200; i++)
        fake_notify(f->tree, "topics/a");
    f->tree->now_ms += EXPIRY_MS + 1;
    notification_listener_pass(f->l, true);
    assert_int_equal(left(f), 0);
    assert_int_equal(f->tree->batches->len, 3); /* bounded */
    assert_string_equal(f->tree->batches->pdata[0], "500");
    assert_string_equal(f->tree->batches->pdata[2], "200");
    notification_listener_pass(f->l, false);
    assert_int_equal(f->tree->batches->len, 3); /* asked for once */
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
            with_fixture(test_no_directory),
            with_fixture(test_versions),
            with_fixture(test_malformed),
            with_fixture(test_refused_entity),
            with_fixture(test_names),
            with_fixture(test_order_and_progress),
            with_fixture(test_many_for_one_entity),
            with_fixture(test_created_one_by_one),
            with_fixture(test_created_is_bounded),
            with_fixture(test_purge_age),
            with_fixture(test_purge_refused),
            with_fixture(test_purge_out_of_order),
            with_fixture(test_replay),
            with_fixture(test_many_old_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
