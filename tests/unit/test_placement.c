/* Placement against the examples that describe Kafka's algorithm (AdminUtils), and its rules on every shape of cluster.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <glib.h>
#include "controller/policy/placement.h"

static void assert_row(const struct placement *p, uint32_t start, uint32_t shift, int32_t first, int32_t partition,
        const int32_t *want, size_t factor)
{
    int32_t row[8];
    placement_replicas(p, start, shift, first, partition, factor, row);
    for (size_t i = 0; i < factor; i++)
        assert_int_equal(row[i], want[i]);
}

static struct placement *plain(int n)
{
    struct placement_broker brokers[16];
    int32_t rackless;
    for (int i = 0; i < n; i++) /* in no order */
        brokers[(i * 7) % n] = (struct placement_broker){.id = i};
    if (n % 7 == 0)
        for (int i = 0; i < n; i++)
            brokers[i] = (struct placement_broker){.id = n - 1 - i};
    struct placement *p = placement_new(brokers, (size_t)n, &rackless);
    assert_non_null(p);
    return p;
}

/* Five brokers, ten partitions, three replicas, start 0, shift 0. */
static void test_plain_table(void **state)
{
    static const int32_t table[10][3] = {{0, 1, 2}, {1, 2, 3}, {2, 3, 4}, {3, 4, 0}, {4, 0, 1}, {0, 2, 3}, {1, 3, 4},
            {2, 4, 0}, {3, 0, 1}, {4, 1, 2}};
    struct placement *p = plain(5);
    for (int32_t i = 0; i < 10; i++)
        assert_row(p, 0, 0, 0, i, table[i], 3);
    placement_free(p);
}

/* Brokers 0..5 in racks 1,3,3,2,2,1: visited as 0,3,1,5,4,2. */
static void test_rack_table(void **state)
{
    static const char *const racks[] = {"rack1", "rack3", "rack3", "rack2", "rack2", "rack1"};
    static const int32_t table[8][3] = {
            {0, 3, 1}, {3, 1, 5}, {1, 5, 4}, {5, 4, 2}, {4, 2, 0}, {2, 0, 3}, {0, 4, 2}, {3, 2, 0}};
    struct placement_broker brokers[6];
    int32_t rackless;
    for (int i = 0; i < 6; i++)
        brokers[i] = (struct placement_broker){i, racks[i]};
    struct placement *p = placement_new(brokers, 6, &rackless);
    for (int32_t i = 0; i < 8; i++)
        assert_row(p, 0, 0, 0, i, table[i], 3);
    placement_free(p);
}

/* Added partitions: the shift grows only at multiples among those that are placed. */
static void test_added(void **state)
{
    struct placement *p = plain(3);
    assert_int_equal(placement_start_for_added(p, 1), 1);
    assert_int_equal(placement_start_for_added(p, 9), 0);
    assert_row(p, 1, 1, 4, 4, (int32_t[]){2, 1}, 2); /* no multiple of 3 in 4..4 */
    assert_row(p, 1, 1, 4, 6, (int32_t[]){1, 2}, 2); /* one */
    assert_row(p, 1, 1, 6, 6, (int32_t[]){1, 2}, 2); /* the first itself counts */
    placement_free(p);
}

static void test_mixed_racks(void **state)
{
    struct placement_broker brokers[] = {{3, NULL}, {1, "a"}, {2, NULL}};
    int32_t rackless = -1;
    assert_null(placement_new(brokers, 3, &rackless));
    assert_int_equal(rackless, 2);
}

static int rack_of(const struct placement_broker *brokers, size_t n, int32_t id)
{
    for (size_t i = 0; i < n; i++)
        if (brokers[i].id == id)
            return brokers[i].rack ? atoi(brokers[i].rack) : 0;
    fail_msg("broker %d is unknown", id);
    return -1;
}

/* Replicas differ, use as many racks as they can, and are found again from partition 0's. */
static void check_shape(size_t n, size_t racks, size_t factor, uint32_t start, uint32_t shift)
{
    static const char *const names[] = {"0", "1", "2", "3"};
    struct placement_broker brokers[9];
    int32_t row[9], zero[9], again[9], rackless, leads[9] = {0};
    for (size_t i = 0; i < n; i++)
        brokers[i] = (struct placement_broker){(int32_t)(i + 100), racks ? names[i % racks] : NULL};
    struct placement *p = placement_new(brokers, n, &rackless);
    uint32_t found_start, found_shift;
    placement_replicas(p, start, shift, 0, 0, factor, zero);
    assert_true(placement_infer(p, zero, factor, &found_start, &found_shift));
    for (int32_t partition = 0; partition < (int32_t)n * 2; partition++) {
        placement_replicas(p, start, shift, 0, partition, factor, row);
        unsigned seen_racks = 0;
        for (size_t i = 0; i < factor; i++) {
            seen_racks |= 1u << rack_of(brokers, n, row[i]);
            for (size_t j = 0; j < i; j++)
                assert_int_not_equal(row[i], row[j]);
        }
        assert_int_equal(__builtin_popcount(seen_racks), racks ? MIN(racks, factor) : 1);
        leads[row[0] - 100]++;
        if (factor > 1 && !racks) {
            placement_replicas(p, found_start, found_shift, 0, partition, factor, again);
            assert_memory_equal(row, again, factor * sizeof(*row));
        }
    }
    for (size_t i = 0; i < n; i++)
        assert_int_equal(leads[i], 2);
    placement_free(p);
}

static void test_shapes(void **state)
{
    for (size_t n = 1; n <= 9; n++)
        for (size_t racks = 0; racks <= MIN(n, 4); racks++)
            for (size_t factor = 1; factor <= n; factor++)
                for (uint32_t start = 0; start < 3; start++)
                    for (uint32_t shift = 0; shift < 3; shift++)
                        check_shape(n, racks, factor, start, shift);
}

static void test_not_inferred(void **state)
{
    struct placement *p = plain(3);
    uint32_t start, shift;
    assert_false(placement_infer(p, (int32_t[]){7, 0}, 2, &start, &shift));
    assert_false(placement_infer(p, (int32_t[]){0, 1, 2, 3}, 4, &start, &shift));
    assert_true(placement_infer(p, (int32_t[]){2, 1}, 2, &start, &shift));
    assert_int_equal(start, 2);
    assert_int_equal(shift, 1);
    placement_free(p);
    assert_null(placement_free(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_plain_table),
            cmocka_unit_test(test_rack_table),
            cmocka_unit_test(test_added),
            cmocka_unit_test(test_mixed_racks),
            cmocka_unit_test(test_shapes),
            cmocka_unit_test(test_not_inferred),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
