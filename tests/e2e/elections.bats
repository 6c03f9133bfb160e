# Elections of partition leaders: preferred, automatic, unclean.
load ../lib/mount

E() { echo "$M/admin/preferred_replica_election"; }

@test "preferred election moves the leader back, and the request goes" {
    topic t '{"0":[2,1],"1":[1,2]}'
    settle
    kill_broker 2
    start_broker 2
    is "$(leader t 0)" 1
    put_line "$(E)" '{"version":1,"partitions":[{"topic":"t","partition":0},{"topic":"ghost","partition":0}]}'
    settle
    is "$(leader t 0)" 2
    is "$(leader t 1)" 1
    [ ! -e "$(E)" ]
    grep -q ghost "$M/.state/errors"
}

@test "the preferred replica is out of sync: nothing changes, the request goes" {
    topic t '{"0":[2,1]}'
    settle
    kill_broker 2
    state=$(cat "$M/brokers/topics/t/partitions/0/state")
    put_line "$(E)" '{"version":1,"partitions":[{"topic":"t","partition":0}]}'
    settle
    is "$(cat "$M/brokers/topics/t/partitions/0/state")" "$state"
    [ ! -e "$(E)" ]
}

@test "automatic rebalance" {
    stop_kafkafs
    for b in 1 2 3; do
        sed -i s/auto.leader.rebalance.enable=false/auto.leader.rebalance.enable=true/ "$C/server-$b.properties"
        echo leader.imbalance.check.interval.seconds=1 >>"$C/server-$b.properties"
    done
    start_kafkafs
    topic t '{"0":[2,1]}'
    settle
    kill_broker 2
    start_broker 2
    # the first run comes 5 s after the election of the controller
    until [ "$(leader t 0)" = 2 ]; do sleep 0.1; done
}

@test "unclean election, switched on for a topic, takes effect at once" {
    topic t '{"0":[1,2]}'
    settle
    kill_broker 2
    kill_broker 1
    start_broker 2
    is "$(leader t 0)" -1
    put_line "$M/config/topics/t" '{"version":1,"config":{"unclean.leader.election.enable":"true"}}'
    put_line "$M/config/changes/config_change_" '{"version":2,"entity_path":"topics/t"}'
    settle
    is "$(leader t 0)" 2
    is "$(isr t 0)" 2
}

@test "a state written by hand is taken up" {
    topic t '{"0":[1,2]}'
    settle
    S=$M/brokers/topics/t/partitions/0/state
    jq -c '.leader = 2 | .leader_epoch += 1' "$S" >"$W/state"
    cat "$W/state" >"$S"
    settle
    for b in 1 2 3; do
        is "$(field "$M/.state/brokers/$b/metadata/t/0" .leader)" "$(leader t 0)" "leader in the cache of $b"
    done
    rm "$S"
    settle
    rm "$M/controller"
    settle
    [ "$(leader t 0)" != -1 ]
}

@test "a state removed or set back by hand: the partition goes on above what its brokers have" {
    topic t '{"0":[1,2]}'
    settle
    S=$M/brokers/topics/t/partitions/0/state
    kill_broker 2
    start_broker 2
    epoch=$(leader_epoch t 0)
    [ "$epoch" != 0 ]
    rm "$S"
    rm "$M/controller"
    settle
    [ "$(leader_epoch t 0)" -gt "$epoch" ]
    is "$(in_sync t 0)" 1,2
    epoch=$(leader_epoch t 0)
    jq -c '.leader = 2 | .leader_epoch = 0' "$S" >"$W/state"
    cat "$W/state" >"$S"
    settle
    [ "$(leader_epoch t 0)" -gt "$epoch" ]
    is "$(leader t 0)" 2
    kill_broker 1
    start_broker 1
    is "$(in_sync t 0)" 1,2
}

@test "states of brokers that are no replicas, from another topic of that name" {
    topic t '{"0":[1,2],"1":[3]}'
    settle
    cat "$M/brokers/topics/t/partitions/0/state" >"$W/0"
    cat "$M/brokers/topics/t/partitions/1/state" >"$W/1"
    stop_kafkafs
    start_kafkafs -o raw
    mkdir -p "$M/brokers/topics/u/partitions/0" "$M/brokers/topics/u/partitions/1"
    cp "$W/0" "$M/brokers/topics/u/partitions/0/state"
    cp "$W/1" "$M/brokers/topics/u/partitions/1/state"
    put_line "$M/brokers/topics/u/.data" '{"version":1,"partitions":{"0":[2,3],"1":[2]}}'
    settle
    is "$(leader u 1)" 2
    is "$(leader u 0)" 2
    is "$(in_sync u 0)" 2,3
}

@test "the last log dir of a leader fails: a new leader, by way of the notification" {
    topic t '{"0":[2,1],"1":[2]}'
    settle
    mv "$D/2" "$D/away"
    settle
    is "$(leader t 0)" 1
    is "$(leader t 1)" -1
    is "$(ls "$M/log_dir_event_notification")" ""
    grep -Eqi '^[a-z_]*offline_?partitions_?count[^ ]* 1(\.0)?$' "$M/.state/metrics"
    mv "$D/away" "$D/2"
    start_broker 2
    is "$(leader t 1)" 2
    grep -Eqi '^[a-z_]*offline_?partitions_?count[^ ]* 0(\.0)?$' "$M/.state/metrics"
}
