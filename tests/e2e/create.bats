# Creating topics: with mkdir, with a JSON assignment, by the .data of an empty topic.
load ../lib/mount

T() { echo "$M/brokers/topics/$1"; }

@test "mkdir -p of partitions makes a topic, with leaders and directories on the disks" {
    mkdir -p "$(T orders)"/partitions/{0..5}
    settle
    is "$(ls "$(T orders)/partitions" | xargs)" "0 1 2 3 4 5"
    for p in 0 1 2 3 4 5; do
        is "$(cat "$M/.state/topics/orders/$p/state")" OnlinePartition
        is "$(leader orders $p)" "$(assigned orders $p)" "leader of the only replica"
    done
    # one replica each, spread evenly
    is "$(replicas_on_disk orders | wc -w)" 6
    for b in 1 2 3; do is "$(find "$D/$b" -maxdepth 1 -name 'orders-*' | wc -l)" 2 "replicas on broker $b"; done
}

@test "a JSON assignment makes a topic: leader, in-sync set, epochs, topic id" {
    topic t '{"0":[2,1],"1":[3]}'
    settle
    is "$(leader t 0)" 2
    is "$(isr t 0)" 2,1
    is "$(leader_epoch t 0)" 0
    is "$(partition t 0 controller_epoch)" "$(cat "$M/controller_epoch")"
    is "$(leader t 1)" 3
    is "$(replicas_on_disk t)" "1/t-0 2/t-0 3/t-1"
    [[ $(field "$(T t)/.data" .topic_id) =~ ^[A-Za-z0-9_-]{22}$ ]]
    is "$(cat "$M/.state/topics/t/0/assignment")" 2,1
}

@test "a replica directory holds what a broker leaves in an empty log" {
    topic t '{"0":[1]}'
    settle
    is "$(ls "$D/1/t-0" | xargs)" "00000000000000000000.index 00000000000000000000.log 00000000000000000000.timeindex \
leader-epoch-checkpoint partition.metadata"
    is "$(cat "$D/1/t-0/partition.metadata")" "$(printf 'version: 0\ntopic_id: %s' "$(field "$(T t)/.data" .topic_id)")"
}

@test "mkdir of a topic, then its .data" {
    mkdir "$(T empty)"
    settle
    is "$(ls -A "$(T empty)" | grep -v '^partitions$' | xargs)" "" "what an empty topic shows"
    put_line "$(T empty)/.data" '{"version":1,"partitions":{"0":[3,2]}}'
    settle
    is "$(leader empty 0)" 3
}

@test "partitions come in turn, and one that exists is EEXIST" {
    mkdir -p "$(T t)/partitions/0"
    run ! mkdir "$(T t)/partitions/2"
    reason t
    refused "$EEXIST" mkdir "$(T t)/partitions/0"
    topic u '{"0":[1],"1":[2]}'
    settle
    refused "$EEXIST" mkdir "$(T u)/partitions/1"
    mkdir "$(T t)/partitions/1"
    settle
    [ "$(leader t 1)" != -1 ]
    run ! mkdir "$(T t)/partitions/x"
    run ! mkdir "$(T t)/partitions/02"
}

@test "partitions are added by a new assignment, and never taken away or moved" {
    topic t '{"0":[1,2]}'
    settle
    id=$(field "$(T t)/.data" .topic_id)
    put_line "$(T t)/.data" '{"version":1,"partitions":{"0":[1,2],"1":[3]}}'
    settle
    is "$(leader t 1)" 3
    is "$(field "$(T t)/.data" .topic_id)" "$id" "topic id"
    refused "$EINVAL" put_line "$(T t)/.data" '{"version":1,"partitions":{"0":[1,2]}}'
    refused "$EINVAL" put_line "$(T t)/.data" '{"version":1,"partitions":{"0":[2,3],"1":[3]}}'
    reason t
    is "$(assigned t 0)" 1,2
}

@test "a topic id that another topic has is replaced" {
    topic t '{"0":[1]}'
    settle
    cat "$(T t)/.data" >"$(T copy)"
    settle
    is "$(leader copy 0)" 1
    [ "$(field "$(T copy)/.data" .topic_id)" != "$(field "$(T t)/.data" .topic_id)" ]
}
