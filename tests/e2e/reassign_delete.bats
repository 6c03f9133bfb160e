# Moves and deletions of the same topic, in both orders.
load ../lib/mount

R() { echo "$M/admin/reassign_partitions"; }
move() { put_line "$(R)" "{\"version\":1,\"partitions\":[{\"topic\":\"$1\",\"partition\":$2,\"replicas\":[$3]}]}"; }

@test "a deletion asked for during a move waits for its end" {
    topic t '{"0":[1]}'
    settle
    kill_broker 3
    move t 0 3
    settle
    delete_topic t
    settle
    [[ $(cat "$M/.state/topics/t/deletion") == "ineligible: "* ]]
    is "$(replicas_on_disk t)" 1/t-0
    start_broker 3
    gone t
    [ ! -e "$(R)" ]
}

@test "a move asked for while the topic is being deleted is dropped" {
    topic t '{"0":[1,3]}'
    settle
    kill_broker 3
    delete_topic t
    settle
    move t 0 2
    settle
    [ ! -e "$(R)" ]
    [ ! -e "$D/2/t-0" ]
    grep -q t-0 "$M/.state/errors"
    start_broker 3
    gone t
}

@test "the state is removed by hand while the topic is moved: the next controller ends the move, and then the topic" {
    topic t '{"0":[1,2]}'
    settle
    kill_broker 2
    start_broker 2
    kill_broker 3
    move t 0 2,3
    settle
    rm "$M/brokers/topics/t/partitions/0/state"
    rm "$M/controller"
    settle
    delete_topic t
    settle
    [[ $(cat "$M/.state/topics/t/deletion") == "ineligible: "* ]]
    start_broker 3
    gone t
    [ ! -e "$(R)" ]
}

@test "the topic is removed by hand while it is moved" {
    topic t '{"0":[1]}'
    topic other '{"0":[1,2]}'
    settle
    kill_broker 3
    move t 0 3
    settle
    rm -r "$M/brokers/topics/t" || true
    settle
    start_broker 3
    rm -f "$(R)"
    move other 0 2,3
    settle
    is "$(assigned other 0)" 2,3
}

@test "rm of the request" {
    topic t '{"0":[1,2]}'
    settle
    kill_broker 3
    move t 0 3,2
    settle
    rm "$(R)"
    settle
    [[ $(leader t 0) =~ ^[12]$ ]]
    start_broker 3
    # what the controller has accepted stands in the topic node, and ends
    is "$(assigned t 0)" 3,2
}
