#pragma once
/*
 * Kafka's automatic replica placement (kafka.admin.AdminUtils.assignReplicasToBrokers): leaders go round the brokers
 * from a start index, followers are shifted against them so that one broker's load spreads over all others when it
 * dies. With racks, brokers of different racks alternate and a partition's replicas use as many racks as there are.
 * Pure.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct placement_broker {
    int32_t id;
    const char *rack; /* NULL: none; borrowed */
};

struct placement;

/* `brokers`: the live ones, any order, at least one. With a rack for all of them placement is rack-aware, with none it
 * is not; a mixture is refused, as Kafka does (RackAwareMode.Enforced): NULL, and the id of a broker without a rack. */
struct placement *placement_new(const struct placement_broker *brokers, size_t n, int32_t *ret_rackless);
struct placement *placement_free(struct placement *p);

/* The replicas of `partition` into `ret[factor]`, if partitions are placed from number `first` on: what one call of
 * Kafka's function with startPartitionId `first` gives for it. `factor` is 1 to the number of brokers. */
void placement_replicas(const struct placement *p, uint32_t start, uint32_t shift, int32_t first, int32_t partition,
        size_t factor, int32_t *ret);
/* The start index and shift with which partition 0 gets exactly `replicas`, so that the next partitions continue the
 * row as if all had been placed together. False: no such row (a factor above the number of brokers, a hand-made list).
 */
bool placement_infer(
        const struct placement *p, const int32_t *replicas, size_t factor, uint32_t *ret_start, uint32_t *ret_shift);
/* AdminUtils' start index (and shift) for partitions that are added: the first broker, by id, not below the leader of
 * partition 0; 0 if there is none. */
uint32_t placement_start_for_added(const struct placement *p, int32_t first_replica);
