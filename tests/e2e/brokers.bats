# Brokers that die, stop, start and bounce.
load ../lib/mount

@test "kill: the leader moves, the in-sync set shrinks; start: it grows again" {
    topic t '{"0":[2,1],"1":[3,2]}'
    settle
    kill_broker 2
    is "$(leader t 0)" 1
    is "$(isr t 0)" 1
    is "$(isr t 1)" 3
    [ ! -e "$M/brokers/ids/2" ]
    is "$(broker_state 2)" stopped
    is "$(replica_state t 1 2)" OfflineReplica
    start_broker 2
    is "$(broker_state 2)" running
    is "$(in_sync t 0)" 1,2
    is "$(in_sync t 1)" 2,3
    is "$(replica_state t 1 2)" OnlineReplica
    is "$(leader t 0)" 1 "leader (not moved back by itself)"
}

@test "the only replica's broker dies, also with the controller: every metadata cache says so" {
    topic t '{"0":[2]}'
    topic u '{"0":[1],"1":[1,2]}'
    settle
    kill_broker 2
    for b in 1 3; do is "$(field "$M/.state/brokers/$b/metadata/t/0" '.leader, .leader_epoch' | xargs)" "-1 1" "t-0 at $b"; done
    is "$(cat "$M/.state/controller/broker")" 1
    kill_broker 1
    for p in u/0 u/1 t/0; do is "$(field "$M/.state/brokers/3/metadata/$p" .leader)" -1 "$p"; done
    start_broker 2
    for b in 2 3; do is "$(field "$M/.state/brokers/$b/metadata/t/0" .leader)" 2 "t-0 at $b"; done
    stop_broker 2
    is "$(field "$M/.state/brokers/3/metadata/t/0" .leader)" -1
}

@test "controlled shutdown moves leaders first; running starts the broker again" {
    topic t '{"0":[2,1],"1":[1,2]}'
    settle
    stop_broker 2
    is "$(leader t 0)" 1
    is "$(isr t 0)" 1
    is "$(isr t 1)" 1
    [ ! -e "$M/brokers/ids/2" ]
    [ -e "$D/2/.kafka_cleanshutdown" ]
    echo running >"$M/.state/brokers/2/state"
    settle
    is "$(broker_state 2)" running
    is "$(in_sync t 1)" 1,2
    refused "$EINVAL" put_line "$M/.state/brokers/2/state" sleeping
}

@test "all replicas die one after the other: no leader, the last in-sync one is kept and leads again" {
    topic t '{"0":[1,2]}'
    settle
    kill_broker 2
    kill_broker 1
    is "$(leader t 0)" -1
    is "$(isr t 0)" 1
    is "$(cat "$M/.state/topics/t/0/state")" OfflinePartition
    rm "$M/controller"
    settle
    is "$(leader t 0)" -1
    start_broker 2
    is "$(leader t 0)" -1 "leader, while only the out-of-sync replica lives"
    start_broker 1
    is "$(leader t 0)" 1
    is "$(in_sync t 0)" 1,2
}

@test "bounced ten times: every replica online and in sync" {
    topic t '{"0":[2,1],"1":[1,2]}'
    settle
    for _ in {1..10}; do
        rm "$M/brokers/ids/2"
        touch "$M/brokers/ids/2"
    done
    settle
    for p in 0 1; do
        is "$(replica_state t $p 2)" OnlineReplica
        is "$(in_sync t $p)" 1,2
    done
    is "$(leader t 1)" 1
}

@test "each broker bounced, the controller too, while topics come, move and go: one settle, all in sync" {
    for round in {1..4}; do
        for b in 2 3 1; do
            rm "$M/brokers/ids/$b"
            touch "$M/brokers/ids/$b"
            topic "t$round$b" '{"0":[1,2,3],"1":[3,2]}'
            put_line "$M/admin/reassign_partitions" \
                "{\"version\":1,\"partitions\":[{\"topic\":\"t$round$b\",\"partition\":1,\"replicas\":[1,2]}]}"
        done
        delete_topic "t${round}2"
    done
    settle
    for t in "$M"/brokers/topics/*; do
        t=${t##*/}
        is "$(in_sync "$t" 0)" 1,2,3 "$t-0"
        is "$(in_sync "$t" 1)" "$(field "$M/brokers/topics/$t/.data" '.partitions["1"] | sort')" "$t-1"
    done
}

@test "a broker's file is read anew when it starts" {
    echo broker.rack=north >>"$C/server-2.properties"
    kill_broker 2
    start_broker 2
    is "$(field "$M/brokers/ids/2" .rack)" north
    echo 'log.dirs=' >>"$C/server-3.properties"
    kill_broker 3
    run ! touch "$M/brokers/ids/3"
    [[ $(broker_state 3) == "failed: "?* ]]
    [ ! -e "$M/brokers/ids/3" ]
}

@test "node.id is another name of broker.id" {
    is "$(grep node.id "$M"/.state/brokers/3/config{,_source}/brokers/3 | sed 's/.*://' | xargs)" \
        "node.id=3 node.id=STATIC_BROKER_CONFIG"
    kill_broker 3
    sed -i s/^broker.id=/node.id=/ "$C/server-3.properties"
    start_broker 3
    is "$(broker_state 3)" running
    is "$(sed -n s/^broker.id=//p "$M/.state/brokers/3/config/brokers/3")" 3
    kill_broker 3
    echo broker.id=4 >>"$C/server-3.properties"
    run ! touch "$M/brokers/ids/3"
    [[ $(broker_state 3) == "failed: "?* ]]
}

@test "an id without a file gets one with defaults; touching a running broker changes nothing" {
    touch "$M/brokers/ids/4"
    settle
    [ -s "$C/server-4.properties" ]
    is "$(broker_state 4)" running
    topic t '{"0":[4]}'
    settle
    is "$(leader t 0)" 4
    unchanged touch "$M/brokers/ids/1"
    run ! touch "$M/brokers/ids/x"
    run ! touch "$M/brokers/ids/-1"
}

@test "a registration with a value is refused and starts nothing; an empty one is touch" {
    cp "$M/brokers/ids/1" "$W/registration"
    refused "$EPERM" put_line "$M/brokers/ids/4" x
    reason "EPERM /brokers/ids/4: "
    refused "$EPERM" cp "$W/registration" "$M/brokers/ids/4"
    refused "$EPERM" dd status=none if="$W/registration" of="$M/brokers/ids/4" oflag=append conv=notrunc
    settle
    is "$(ls "$M/brokers/ids" | xargs)" "1 2 3"
    [ ! -e "$C/server-4.properties" ]
    : >"$M/brokers/ids/4"
    is "$(ls "$M/brokers/ids" | xargs)" "1 2 3 4"
    python3 -c 'import sys; open(sys.argv[1], "w").close()' "$M/brokers/ids/5" # one close: not waited for
    settle
    is "$(ls "$M/brokers/ids" | xargs)" "1 2 3 4 5"
}
