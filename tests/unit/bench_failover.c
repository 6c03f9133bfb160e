/* A new controller: how long until it is ready, and how much memory a partition takes beyond its znodes. By hand, or
 * from tests/bench:  bench_failover [PARTITIONS...]  Prints a line for each number of partitions. */
#include <malloc.h>
#include <stdlib.h>
#include <time.h>
#include "controller/json/codec.h"
#include "tests/unit/controller_env.h"

#define PARTITIONS_A_TOPIC 10
#define BROKERS 3

static double now_s(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static size_t heap_bytes(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

static void add_partition(struct txn *txn, const char *topic, int32_t p)
{
    int32_t replicas[BROKERS];
    for (int i = 0; i < BROKERS; i++) {
        replicas[i] = 1 + (p + i) % BROKERS;
    }
    struct leader_and_isr l = {.leader = replicas[0], .controller_epoch = 1, .isr = broker_ids_new(replicas, BROKERS)};
    g_autofree char *path = g_strdup_printf("/brokers/topics/%s/partitions/%d", topic, p);
    g_autofree char *state = g_strconcat(path, "/state", NULL);
    txn_create(txn, path, NULL, 0);
    txn_create(txn, state, leader_and_isr_encode(&l), 0);
    leader_and_isr_clear(&l);
}

static void add_topic(struct world *w, int number)
{
    g_autofree char *name = g_strdup_printf("topic-%06d", number);
    g_autofree char *path = g_strconcat("/brokers/topics/", name, NULL);
    g_autofree char *parent = g_strconcat(path, "/partitions", NULL);
    struct topic_assignment *a = topic_assignment_new();
    g_snprintf(a->topic_id, sizeof(a->topic_id), "bench-topic-id-%07d", number);
    struct txn *txn = txn_new(TXN_CLIENT);
    for (int32_t p = 0; p < PARTITIONS_A_TOPIC; p++) {
        int32_t replicas[BROKERS];
        for (int i = 0; i < BROKERS; i++) {
            replicas[i] = 1 + (p + i) % BROKERS;
        }
        topic_assignment_add(a, p, broker_ids_new(replicas, BROKERS), NULL, NULL);
    }
    txn_create(txn, path, topic_assignment_encode(a), 0);
    txn_create(txn, parent, NULL, 0);
    for (int32_t p = 0; p < PARTITIONS_A_TOPIC; p++) {
        add_partition(txn, name, p);
    }
    topic_assignment_free(a);
    world_run(w, txn);
}

/* The requests that it sends are freed at once: brokers keep what they keep. */
static void measure(int partitions)
{
    struct world *w = world_new(BROKERS, NULL);
    for (int i = 0; i < partitions / PARTITIONS_A_TOPIC; i++) {
        add_topic(w, i);
    }
    world_create(w, "/controller_epoch", "1");
    w->quiet = true;
    world_start(w, 1);
    world_start(w, 2);
    world_start(w, 3);
    size_t before = heap_bytes();
    double begin = now_s(CLOCK_MONOTONIC), cpu = now_s(CLOCK_PROCESS_CPUTIME_ID);
    while (!world_active(w)) {
        world_step(w); /* nothing, until the first candidate elects */
    }
    double ready = now_s(CLOCK_MONOTONIC) - begin;
    cpu = now_s(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    world_drop_requests(w);
    size_t after = heap_bytes();
    g_print("failover of %d partitions: %.3f s (%.3f s of processor), %zu bytes a partition\n", partitions, ready, cpu,
            (after - before) / (size_t)partitions);
    world_free(w);
}

int main(int argc, char **argv)
{
    static const int standard[] = {10000, 100000, 200000};
    if (argc > 1) {
        for (int i = 1; i < argc; i++) {
            measure(atoi(argv[i]));
        }
        return 0;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(standard); i++) {
        measure(standard[i]);
    }
    return 0;
}
