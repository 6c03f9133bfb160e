# Elections of the controller.
load ../lib/mount

elected() { field "$M/controller" .brokerid; }

@test "the lowest id is the first controller, with epoch 1" {
    is "$(elected)" 1
    is "$(cat "$M/controller_epoch")" 1
    is "$(cat "$M/.state/controller/epoch")" 1
    is "$(cat "$M/.state/controller/broker")" 1
}

@test "rm controller: another election, epoch + 1, healthy partitions untouched" {
    topic t '{"0":[1,2]}'
    settle
    before=$(cat "$M/brokers/topics/t/partitions/0/state")
    for epoch in 2 3 4; do
        rm "$M/controller"
        settle
        is "$(cat "$M/controller_epoch")" $epoch
        [ -e "$M/brokers/ids/$(elected)" ]
    done
    is "$(cat "$M/brokers/topics/t/partitions/0/state")" "$before"
}

@test "the controller's broker dies: another one takes over and does the work" {
    kill_broker 1
    [ "$(elected)" != 1 ]
    is "$(cat "$M/controller_epoch")" 2
    topic t '{"0":[3,2]}'
    settle
    is "$(leader t 0)" 3
    is "$(partition t 0 controller_epoch)" 2
}

@test "work asked for during an election is done" {
    topic t '{"0":[3]}'
    settle
    rm "$M/controller"
    delete_topic t
    topic u '{"0":[2]}'
    settle
    gone t
    is "$(leader u 0)" 2
}

@test "no broker, no controller; the first one that starts is it" {
    for b in 1 2 3; do rm "$M/brokers/ids/$b"; done
    settle
    [ ! -e "$M/controller" ]
    topic t '{"0":[2]}'
    settle
    touch "$M/brokers/ids/2"
    settle
    is "$(elected)" 2
    is "$(leader t 0)" 2
}

@test "controller_epoch cannot be written or removed" {
    refused "$EPERM" put_line "$M/controller_epoch" 50
    refused "$EPERM" rm "$M/controller_epoch"
    is "$(cat "$M/controller_epoch")" 1
}

@test "topics without data or with a wrong shape harm nobody, and can be repaired and deleted" {
    mkdir "$M"/brokers/topics/{empty,bad}
    refused "$EINVAL" put_line "$M/brokers/topics/bad/.data" '{"version":1,"partitions":{"0":["one"]}}'
    refused "$EINVAL" put_line "$M/brokers/topics/bad/.data" '{"version":1,"partitions":{"x":[1]}}'
    topic good '{"0":[1]}'
    rm "$M/controller"
    settle
    is "$(leader good 0)" 1
    put_line "$M/brokers/topics/empty/.data" '{"version":1,"partitions":{"0":[2]}}'
    settle
    is "$(leader empty 0)" 2
    delete_topic bad
    settle
    [ ! -e "$M/brokers/topics/bad" ]
}
