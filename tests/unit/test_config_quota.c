/* The eight-level precedence of client quotas, whole; names as Kafka compares them. */
#include "tests/unit/config_fixture.h"
#include "controller/config/quota.h"

static void set(struct quota_table *t, const char *path, const char *value)
{
    struct config_entity e = {0};
    g_autoptr(GHashTable) values = g_hash_table_new(g_str_hash, g_str_equal);
    assert_int_equal(config_entity_parse(path, &e, NULL), 0);
    if (value)
        g_hash_table_insert(values, (char *)"producer_byte_rate", (char *)value);
    quota_table_set(t, &e, values);
    config_entity_clear(&e);
}

static const char *find(struct quota_table *t, const char *user, const char *client)
{
    return quota_table_find(t, user, client, "producer_byte_rate", NULL);
}

/* Most specific first, as the documentation lists them. */
static const char *const levels[] = {"users/u/clients/c", "users/u/clients/<default>", "users/u",
        "users/<default>/clients/c", "users/<default>/clients/<default>", "users/<default>", "clients/c",
        "clients/<default>"};

/* The naive model: the first level that is there and applies to (user, client). */
static const char *expected(unsigned present, bool is_u, bool is_c)
{
    for (unsigned i = 0; i < 8; i++) {
        bool needs_u = i < 3, needs_c = i == 0 || i == 3 || i == 6;
        if ((present & 1U << i) && (is_u || !needs_u) && (is_c || !needs_c))
            return levels[i];
    }
    return NULL;
}

static void check_pattern(struct quota_table *t, unsigned present)
{
    for (unsigned who = 0; who < 4; who++) {
        bool is_u = who & 1, is_c = who & 2;
        const char *got = find(t, is_u ? "u" : "other", is_c ? "c" : "other"), *want = expected(present, is_u, is_c);
        if (g_strcmp0(got, want) != 0)
            fail_msg("levels %02x, user u %d, client c %d: %s, expected %s", present, is_u, is_c, got, want);
    }
}

static void test_every_pattern(void **state)
{
    for (unsigned present = 0; present < 256; present++) {
        struct quota_table *t = quota_table_new();
        for (unsigned i = 0; i < 8; i++)
            if (present & 1U << i)
                set(t, levels[i], levels[i]);
        check_pattern(t, present);
        quota_table_free(t);
    }
}

/* The same patterns reached by setting everything and removing what is too much, in one table. */
static void test_removal_falls_back(void **state)
{
    struct quota_table *t = quota_table_new();
    for (unsigned present = 0; present < 256; present++) {
        for (unsigned i = 0; i < 8; i++)
            set(t, levels[i], levels[i]);
        for (unsigned i = 0; i < 8; i++)
            if (!(present & 1U << i))
                set(t, levels[i], NULL);
        check_pattern(t, present);
    }
    quota_table_free(t);
}

static void test_each_key_alone(void **state)
{
    struct quota_table *t = quota_table_new();
    struct config_entity e = {0};
    g_autoptr(GHashTable) values = g_hash_table_new(g_str_hash, g_str_equal);
    g_hash_table_insert(values, (char *)"request_percentage", (char *)"50.0");
    config_entity_parse("users/u", &e, NULL);
    quota_table_set(t, &e, values);
    config_entity_clear(&e);
    set(t, "clients/c", "7");
    const char *where = NULL;
    assert_string_equal(quota_table_find(t, "u", "c", "producer_byte_rate", &where), "7");
    assert_string_equal(where, "clients/c");
    assert_string_equal(quota_table_find(t, "u", "c", "request_percentage", &where), "50.0");
    assert_string_equal(where, "users/u");
    assert_null(quota_table_find(t, "u", "c", "consumer_byte_rate", NULL));
    quota_table_free(t);
}

static void test_names(void **state)
{
    struct quota_table *t = quota_table_new();
    set(t, "clients/a%20b", "1");
    set(t, "users/CN%3Dx", "2");
    set(t, "users/%3Cdefault%3E", "3");
    set(t, "clients/x%2Fy", "4");
    assert_string_equal(find(t, "who", "a%20b"), "1");
    assert_string_equal(find(t, "who", "a+b"), "1");
    assert_string_equal(find(t, "CN%3dx", "any"), "2");
    assert_string_equal(find(t, "CN=x", "any"), "2");
    assert_string_equal(find(t, "%3Cdefault%3E", "any"), "3"); /* a user of that name is not the default */
    assert_null(find(t, "<default>", "any"));
    assert_string_equal(find(t, "who", "x%2Fy"), "4");
    assert_null(find(t, "%", "any"));
    assert_null(find(t, "who", "%zz"));
    /* two nodes for one client id: the later one counts, and removal by either removes it (as in Kafka) */
    set(t, "clients/a+b", "9");
    assert_string_equal(find(t, "who", "a%20b"), "9");
    set(t, "clients/a%20b", NULL);
    assert_null(find(t, "who", "a+b"));
    quota_table_free(t);
}

static void test_parts_alone(void **state)
{
    struct quota_table *t = quota_table_new();
    for (unsigned i = 0; i < 8; i++)
        set(t, levels[i], levels[i]);
    assert_string_equal(find(t, "u", NULL), "users/u");
    assert_string_equal(find(t, "other", NULL), "users/<default>");
    assert_string_equal(find(t, NULL, "c"), "clients/c");
    assert_string_equal(find(t, NULL, "other"), "clients/<default>");
    assert_string_equal(find(t, "<default>", "<default>"), "users/<default>/clients/<default>");
    quota_table_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_every_pattern),
            cmocka_unit_test(test_removal_falls_back),
            cmocka_unit_test(test_each_key_alone),
            cmocka_unit_test(test_names),
            cmocka_unit_test(test_parts_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
