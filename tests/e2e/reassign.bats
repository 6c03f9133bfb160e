# Moving replicas: /admin/reassign_partitions.
load ../lib/mount

R() { echo "$M/admin/reassign_partitions"; }
# reassign "TOPIC PARTITION REPLICAS"...
reassign() {
    local entry topic partition replicas list=
    for entry; do
        read -r topic partition replicas <<<"$entry"
        list+="${list:+,}{\"topic\":\"$topic\",\"partition\":$partition,\"replicas\":[$replicas]}"
    done
    put_line "$(R)" "{\"version\":1,\"partitions\":[$list]}"
}

@test "a replica moves: new directory, new leader, old directory gone, the request too" {
    topic t '{"0":[1,2]}'
    settle
    epoch=$(leader_epoch t 0)
    reassign "t 0 3,2"
    settle
    is "$(assigned t 0)" 3,2
    is "$(in_sync t 0)" 2,3
    [[ $(leader t 0) =~ ^[23]$ ]]
    [ "$(leader_epoch t 0)" -gt "$epoch" ]
    is "$(replicas_on_disk t)" "2/t-0 3/t-0"
    is "$(field "$M/brokers/topics/t/.data" '.adding_replicas, .removing_replicas | length' | xargs)" "0 0"
    [ ! -e "$(R)" ]
}

@test "several at once, the order of replicas is kept" {
    topic t '{"0":[1],"1":[2,3],"2":[3]}'
    topic u '{"0":[1,2,3]}'
    settle
    reassign "t 0 3,1,2" "t 1 3,2" "u 0 2"
    settle
    is "$(assigned t 0) $(assigned t 1) $(assigned t 2) $(assigned u 0)" "3,1,2 3,2 3 2"
    is "$(replicas_on_disk u)" 2/u-0
    is "$(leader u 0)" 2
}

@test "a broker that is down is waited for, across a new controller; progress is shown" {
    topic t '{"0":[1,2]}'
    settle
    kill_broker 3
    reassign "t 0 3,2"
    settle
    [ -e "$(R)" ]
    [[ $(leader t 0) =~ ^[12]$ ]]
    is "$(replicas_on_disk t)" "1/t-0 2/t-0"
    is "$(cat "$M/.state/topics/t/0/adding")" 3
    is "$(cat "$M/.state/topics/t/0/removing")" 1
    rm "$M/controller"
    settle
    is "$(field "$M/brokers/topics/t/.data" '.adding_replicas["0"]')" 3
    start_broker 3
    is "$(assigned t 0)" 3,2
    is "$(replicas_on_disk t)" "2/t-0 3/t-0"
    [ ! -e "$(R)" ]
}

@test "written again, it replaces the request; the first place can be had back" {
    topic t '{"0":[1,2]}'
    settle
    reassign "t 0 99,2"
    settle
    [[ $(leader t 0) =~ ^[12]$ ]]
    reassign "t 0 1,2"
    settle
    is "$(assigned t 0)" 1,2
    is "$(in_sync t 0)" 1,2
    [ ! -e "$(R)" ]
}

@test "each bad entry is said and left out, the good ones go on" {
    topic t '{"0":[1]}'
    settle
    reassign "ghost 0 1" "t 7 2" "t 0 2"
    settle
    is "$(assigned t 0)" 2
    grep -q ghost "$M/.state/errors"
    grep -q 't-7' "$M/.state/errors"
    [ ! -e "$(R)" ]
    for replicas in '' 1,1 -1; do run ! reassign "t 0 $replicas"; done
    is "$(assigned t 0)" 2
}

@test "kafkafs is killed while a move waits: it goes on after the next mount" {
    topic t '{"0":[1,2]}'
    settle
    kill_broker 3
    reassign "t 0 3,2"
    settle
    kill_kafkafs
    start_kafkafs
    is "$(assigned t 0)" 3,2
    is "$(replicas_on_disk t)" "2/t-0 3/t-0"
}

# State of t-0, written by hand: LEADER EPOCH ISR
put_state() {
    put_line "$M/brokers/topics/t/partitions/0/state" \
        "{\"version\":1,\"leader\":$1,\"leader_epoch\":$2,\"controller_epoch\":1,\"isr\":[$3]}"
}

@test "a replica is added to a partition whose state was removed by hand: the next controller ends it" {
    topic t '{"0":[1]}'
    settle
    put_state 1 1 1
    settle
    rm "$M/brokers/topics/t/partitions/0/state"
    settle
    reassign "t 0 1,3"
    settle
    grep -q 't/partitions/0/state: .*the next controller makes the state again' "$M/.state/errors"
    grep -q 't-0 is left out: its state was removed' "$M/.state/errors"
    [ ! -e "$(R)" ]
    reassign "t 0 1,3"
    settle
    [ ! -e "$(R)" ]
    # it has the same numbers as the one before, which broker 1 still has
    rm "$M/controller"
    settle
    is "$(in_sync t 0)" 1,3
    [ ! -e "$(R)" ]
}

@test "a move is called off, and by hand what it has added is the only one in sync: nothing is lost" {
    topic t '{"0":[1]}'
    settle
    kill_broker 2
    reassign "t 0 3,2"
    settle
    is "$(in_sync t 0)" 1,3
    put_state 3 9 3
    reassign "t 0 1"
    settle
    is "$(assigned t 0) $(in_sync t 0) $(leader t 0)" "1 1 1"
    is "$(replicas_on_disk t)" 1/t-0
    [ ! -e "$(R)" ]
}

@test "fields that are not Kafka's stay: in the request while it is worked off, and in the topic" {
    topic t '{"0":[1,2],"1":[2]}'
    put_line "$M/brokers/topics/u" '{"version":1,"partitions":{"0":[1]},"owner":{"team":"ops"}}'
    settle
    is "$(field "$M/brokers/topics/u/.data" .owner.team)" ops "after its topic id"
    put_line "$(R)" '{"version":1,"by":"me","partitions":[{"topic":"t","partition":0,"replicas":[9,2],"log_dirs":["any","any"]},
        {"topic":"t","partition":1,"replicas":[3],"why":"full"},{"topic":"u","partition":0,"replicas":[2]},
        {"topic":"ghost","partition":0,"replicas":[2]}]}'
    settle
    is "$(assigned t 1) $(assigned u 0)" "3 2"
    is "$(cat "$(R)")" \
        '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[9,2],"log_dirs":["any","any"]}],"by":"me"}'
    is "$(field "$M/brokers/topics/u/.data" .owner.team)" ops "after a reassignment"
    put_line "$M/brokers/topics/u/.data" '{"version":1,"partitions":{"0":[2],"1":[1]},"owner":"we"}'
    settle
    is "$(leader u 1) $(field "$M/brokers/topics/u/.data" .owner)" "1 we"
}
