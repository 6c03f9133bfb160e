# Deletion switched off, and deletion with a delay before the files go: the -delete names.
load ../lib/mount

setup() { :; }

@test "deletion disabled: the request vanishes, the topic stays, also for the next controller" {
    new_cluster delete.topic.enable=false
    start_kafkafs
    topic keep '{"0":[1,2]}'
    settle
    delete_topic keep
    settle
    is "$(ls "$M/admin/delete_topics")" ""
    is "$(replicas_on_disk keep)" "1/keep-0 2/keep-0"
    for b in 1 2 3; do stop_broker $b; done
    touch "$M/admin/delete_topics/keep"
    for b in 1 2 3; do sed -i s/delete.topic.enable=false/delete.topic.enable=true/ "$C/server-$b.properties"; done
    sed -i s/delete.topic.enable=true/delete.topic.enable=false/ "$C/server-1.properties"
    for b in 1 2 3; do start_broker $b; done
    is "$(ls "$M/admin/delete_topics")" ""
    [ "$(leader keep 0)" != -1 ]
}

@test "log.segment.delete.delay.ms: renamed first, the tree does not wait, the files go later" {
    # what broker 1 has renamed stays as long as this test runs; what broker 2 has goes meanwhile
    new_cluster log.segment.delete.delay.ms=600000
    sed -i s/delay.ms=600000/delay.ms=3000/ "$C/server-2.properties"
    start_kafkafs
    topic t '{"0":[1,2]}'
    settle
    delete_topic t
    settle
    [ ! -e "$M/brokers/topics/t" ]
    [ ! -e "$M/admin/delete_topics/t" ]
    is "$(replicas_on_disk t)" ""
    is "$(cd "$D" && ls -d 1/t-0.*-delete | sed -E 's/\.[0-9a-f]{32}-/.HEX-/')" 1/t-0.HEX-delete
    # a new topic of that name is not harmed when the old files go
    topic t '{"0":[2]}'
    settle
    echo new >"$D/2/t-0/new"
    while compgen -G "$D/2/t-0.*-delete" >/dev/null; do sleep 0.1; done
    is "$(cat "$D/2/t-0/new")" new
    is "$(leader t 0)" 2
    compgen -G "$D/1/t-0.*-delete" >/dev/null
}

@test "a name of 249 characters is cut so that its -delete name fits" {
    new_cluster log.segment.delete.delay.ms=600000
    start_kafkafs
    name=$(printf 'x%.0s' {1..249})
    topic "$name" '{"0":[1,2]}'
    settle
    [ -d "$D/1/$name-0" ]
    delete_topic "$name"
    settle
    [ ! -e "$M/brokers/topics/$name" ]
    for dir in "$D"/[12]/xxx*; do
        [[ $dir == *-delete ]]
        [ "$(basename "$dir" | tr -d '\n' | wc -c)" = 255 ]
    done
    sed -i s/delay.ms=600000/delay.ms=100/ "$C/server-2.properties"
    kill_broker 2
    start_broker 2
    is "$(broker_state 2)" running
    while compgen -G "$D/2/xxx*" >/dev/null; do sleep 0.1; done
}

@test "-delete directories found at the start are removed, and are no replicas" {
    new_cluster log.segment.delete.delay.ms=300
    mkdir "$D/1/old-0.0123456789abcdef0123456789abcdef-delete"
    touch "$D/1/old-0.0123456789abcdef0123456789abcdef-delete/00000000000000000000.log"
    start_kafkafs
    is "$(broker_state 1)" running
    [ ! -e "$M/brokers/topics/old" ]
    while compgen -G "$D/1/old-0*" >/dev/null; do sleep 0.1; done
}
