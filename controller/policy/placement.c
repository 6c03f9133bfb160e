#include "controller/policy/placement.h"
#include <glib.h>
#include <string.h>

struct placement {
    size_t n, n_racks; /* n_racks 0: not rack-aware */
    int32_t *sorted;   /* ids */
    int32_t *ids;      /* in the order that placement goes round: sorted, or racks alternating */
    int *rack;         /* of ids[i], as a number from 0 */
};

static int compare_brokers(const void *a, const void *b)
{
    const struct placement_broker *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

static int compare_strings(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Racks in the order of their names; each gives its next lowest broker in turn (getRackAlternatedBrokerList). */
static void alternate_racks(struct placement *p, const struct placement_broker *by_id)
{
    g_autofree const char **names = g_new(const char *, p->n);
    for (size_t i = 0; i < p->n; i++)
        names[i] = by_id[i].rack;
    qsort(names, p->n, sizeof(*names), compare_strings);
    for (size_t i = 0; i < p->n; i++)
        if (i == 0 || strcmp(names[i], names[p->n_racks - 1]) != 0)
            names[p->n_racks++] = names[i];

    g_autofree size_t *next = g_new0(size_t, p->n_racks);
    for (size_t filled = 0, r = 0; filled < p->n; r = (r + 1) % p->n_racks) {
        while (next[r] < p->n && strcmp(by_id[next[r]].rack, names[r]) != 0)
            next[r]++;
        if (next[r] == p->n)
            continue;
        p->ids[filled] = by_id[next[r]++].id;
        p->rack[filled++] = (int)r;
    }
}

struct placement *placement_new(const struct placement_broker *brokers, size_t n, int32_t *ret_rackless)
{
    g_autofree struct placement_broker *by_id = g_memdup2(brokers, n * sizeof(*brokers));
    qsort(by_id, n, sizeof(*by_id), compare_brokers);
    size_t racks = 0;
    int32_t rackless = -1;
    for (size_t i = 0; i < n; i++) {
        racks += by_id[i].rack != NULL;
        if (!by_id[i].rack && rackless < 0)
            rackless = by_id[i].id;
    }
    if (racks > 0 && racks < n) {
        *ret_rackless = rackless;
        return NULL;
    }

    struct placement *p = g_new0(struct placement, 1);
    p->n = n;
    p->sorted = g_new(int32_t, n);
    p->ids = g_new(int32_t, n);
    p->rack = g_new0(int, n);
    for (size_t i = 0; i < n; i++)
        p->sorted[i] = p->ids[i] = by_id[i].id;
    if (racks > 0)
        alternate_racks(p, by_id);
    return p;
}

struct placement *placement_free(struct placement *p)
{
    if (p) {
        g_free(p->sorted);
        g_free(p->ids);
        g_free(p->rack);
        g_free(p);
    }
    return NULL;
}

/* AdminUtils.replicaIndex: where the `k`-th candidate for a follower stands. */
static size_t follower_index(const struct placement *p, size_t leader, uint64_t shift, uint64_t k)
{
    return (leader + 1 + (size_t)((shift + k) % (p->n - 1))) % p->n;
}

struct chosen {
    bool *broker, *rack;
    size_t n_brokers, n_racks;
};

static void choose(const struct placement *p, struct chosen *c, size_t i)
{
    c->n_brokers += !c->broker[i];
    c->broker[i] = true;
    c->n_racks += !c->rack[p->rack[i]];
    c->rack[p->rack[i]] = true;
}

/* A rack that has a replica already is passed over while another has none; so is a broker. */
static bool may_choose(const struct placement *p, const struct chosen *c, size_t i)
{
    return (!c->rack[p->rack[i]] || c->n_racks == p->n_racks) && (!c->broker[i] || c->n_brokers == p->n);
}

static void place_over_racks(const struct placement *p, size_t leader, uint64_t shift, size_t factor, int32_t *ret)
{
    g_autofree bool *brokers = g_new0(bool, p->n), *racks = g_new0(bool, p->n_racks);
    struct chosen chosen = {.broker = brokers, .rack = racks};
    choose(p, &chosen, leader);
    uint64_t k = 0;
    for (size_t j = 1; j < factor; j++) {
        size_t i;
        do
            i = follower_index(p, leader, shift * p->n_racks, k++);
        while (!may_choose(p, &chosen, i));
        choose(p, &chosen, i);
        ret[j] = p->ids[i];
    }
}

void placement_replicas(const struct placement *p, uint32_t start, uint32_t shift, int32_t first, int32_t partition,
        size_t factor, int32_t *ret)
{
    size_t n = p->n;
    size_t leader = ((size_t)partition + start) % n;
    /* The shift grows by one at each number that is a multiple of n, 0 left out, among those placed. */
    size_t before = first > 0 ? (size_t)(first - 1) / n : 0;
    uint64_t shifted = (uint64_t)shift + (size_t)partition / n - before;
    ret[0] = p->ids[leader];
    if (p->n_racks > 0) {
        place_over_racks(p, leader, shifted, factor, ret);
        return;
    }
    for (size_t j = 1; j < factor; j++)
        ret[j] = p->ids[follower_index(p, leader, shifted, j - 1)];
}

bool placement_infer(
        const struct placement *p, const int32_t *replicas, size_t factor, uint32_t *ret_start, uint32_t *ret_shift)
{
    if (factor == 0 || factor > p->n)
        return false;
    size_t start = 0;
    while (start < p->n && p->ids[start] != replicas[0])
        start++;
    if (start == p->n)
        return false;
    g_autofree int32_t *row = g_new(int32_t, factor);
    for (uint32_t shift = 0; shift < p->n; shift++) {
        placement_replicas(p, (uint32_t)start, shift, 0, 0, factor, row);
        if (memcmp(row, replicas, factor * sizeof(*row)) == 0) {
            *ret_start = (uint32_t)start;
            *ret_shift = shift;
            return true;
        }
    }
    return false;
}

uint32_t placement_start_for_added(const struct placement *p, int32_t first_replica)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->sorted[i] >= first_replica)
            return (uint32_t)i;
    return 0;
}
