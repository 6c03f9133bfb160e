# Deletions that have to wait, and what lets them go on.
load ../lib/mount

waits() { # waits TOPIC: the deletion is halted, and says why
    [[ $(cat "$M/.state/topics/$1/deletion") == "ineligible: "?* ]] || fail "deletion: $(cat "$M/.state/topics/$1/deletion")"
    [ -d "$M/brokers/topics/$1" ]
    [ -e "$M/admin/delete_topics/$1" ]
}

@test "a dead broker: live replicas go, the request waits, and ends when the broker is back" {
    topic t '{"0":[1,3],"1":[2,3]}'
    settle
    kill_broker 3
    delete_topic t
    settle
    waits t
    is "$(replicas_on_disk t)" "3/t-0 3/t-1"
    [[ $(replica_state t 0 3) =~ ^(OfflineReplica|ReplicaDeletionIneligible)$ ]]
    is "$(replica_state t 0 1)" ReplicaDeletionSuccessful
    refused "$EEXIST" mkdir "$M/admin/delete_topics/t"
    refused "$EEXIST" mkdir "$M/brokers/topics/t"
    # other topics go on
    topic other '{"0":[1]}'
    settle
    delete_topic other
    settle
    gone other
    start_broker 3
    gone t
}

@test "inotifywait -e delete_self returns when the topic is gone" {
    topic t '{"0":[1,3]}'
    settle
    kill_broker 3
    delete_topic t
    settle
    timeout 20 inotifywait -e delete_self "$M/admin/delete_topics/t" >"$W/said" 2>"$W/ready" 3>&- &
    until grep -q established "$W/ready"; do sleep 0.02; done
    touch "$M/brokers/ids/3"
    wait $!
    grep -q DELETE_SELF "$W/said"
    gone t
    run ! inotifywait -e delete_self "$M/admin/delete_topics/t"
}

@test "something is mounted in the way: it waits, also when asked again, and ends after the repair" {
    topic t '{"0":[1,2]}'
    settle
    mount -t tmpfs -o size=1m none "$D/2/t-0"
    touch "$D/2/t-0/precious"
    delete_topic t
    settle
    waits t
    is "$(replicas_on_disk t)" 2/t-0
    [ -e "$D/2/t-0/precious" ]
    touch "$M/admin/delete_topics/t"
    settle
    waits t
    umount "$D/2/t-0"
    # such a failure takes the log dir offline, as Kafka does it, and with the only one the broker
    start_broker 2
    gone t
}

@test "what it waits for is true and says what to do, also of a controller that has just been elected" {
    topic t '{"0":[1,3],"1":[1,2]}'
    topic u '{"0":[2,1]}'
    settle
    kill_broker 3
    delete_topic t
    rm "$M/controller"
    settle
    why='ineligible: broker 3 is not running (replica t-0)'
    is "$(cat "$M/.state/topics/t/deletion")" "$why"
    is "$(grep -o 'deletion ineligible.*' "$M/.state/events" | sort -u)" "deletion $why"
    mkdir "$D/2/u-0/in"
    mount -t tmpfs -o size=1m none "$D/2/u-0/in"
    delete_topic u
    settle
    reason "EXDEV $D/2/u-0: the replica's directory could not be removed: something is mounted in it"
    is "$(cat "$M/.state/topics/u/deletion")" "ineligible: broker 2 could not delete u-0: KAFKA_STORAGE_ERROR; \
touch its entry in admin/delete_topics to try again"
    umount "$D/2/u-0/in"
    touch "$M/admin/delete_topics/u"
    settle
    gone u
    start_broker 3
    gone t
}

@test "the controller dies meanwhile: the next one ends it" {
    topic t '{"0":[1,2,3]}'
    settle
    kill_broker 3
    delete_topic t
    kill_broker "$(field "$M/controller" .brokerid)"
    waits t
    start_broker 1
    start_broker 3
    gone t
}

@test "kafkafs is killed meanwhile: it goes on after the next mount" {
    topic t '{"0":[1,2,3]}'
    settle
    kill_broker 3
    delete_topic t
    settle
    kill_kafkafs
    start_kafkafs
    gone t
}
