# Where mkdir of a partition puts its replicas: as Kafka's admin tools do.
load ../lib/mount

setup() { :; }

@test "as many replicas as default.replication.factor, leaders and followers spread" {
    new_cluster default.replication.factor=2
    start_kafkafs
    mkdir -p "$M"/brokers/topics/t/partitions/{0..5}
    settle
    for p in 0 1 2 3 4 5; do is "$(assigned t $p | tr , '\n' | sort -u | wc -l)" 2 "replicas of $p"; done
    for b in 1 2 3; do
        is "$(jq "[.partitions[][0] | select(. == $b)] | length" "$M/brokers/topics/t/.data")" 2 "led by $b"
        is "$(jq "[.partitions[][] | select(. == $b)] | length" "$M/brokers/topics/t/.data")" 4 "replicas on $b"
    done
}

@test "racks: the replicas of a partition are in different ones" {
    new_cluster default.replication.factor=2
    echo broker.rack=east >>"$C/server-1.properties"
    for b in 2 3; do echo broker.rack=west >>"$C/server-$b.properties"; done
    start_kafkafs
    mkdir -p "$M"/brokers/topics/t/partitions/{0..7}
    settle
    is "$(field "$M/brokers/ids/1" .rack)" east
    for p in {0..7}; do [[ ,$(assigned t $p), == *,1,* ]] || fail "partition $p is on $(assigned t $p)"; done
}

@test "more replicas asked for than there are brokers is refused" {
    new_cluster default.replication.factor=4
    start_kafkafs
    run ! mkdir -p "$M/brokers/topics/t/partitions/0"
    reason 4
}

@test "a topic made while a broker is down: its replica follows when it returns" {
    new_cluster
    start_kafkafs
    kill_broker 2
    topic t '{"0":[2,1],"1":[2]}'
    settle
    is "$(leader t 0)" 1
    is "$(isr t 0)" 1
    is "$(cat "$M/.state/topics/t/1/state")" NewPartition
    start_broker 2
    is "$(in_sync t 0)" 1,2
    is "$(leader t 1)" 2
}
