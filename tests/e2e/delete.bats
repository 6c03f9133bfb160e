# Deleting topics: from the metadata caches, the disks and the tree.
load ../lib/mount

@test "a topic is gone from all three places, with its configuration and the request itself" {
    topic t '{"0":[1,2,3],"1":[3,1,2]}'
    put_line "$M/config/topics/t" '{"version":1,"config":{"retention.ms":"60000"}}'
    settle
    is "$(replicas_on_disk t | wc -w)" 6
    grep -q leader "$M/.state/brokers/2/metadata/t/0"
    is "$(cat "$M/.state/topics/t/deletion")" none
    delete_topic t
    settle
    gone t
    refused "$ENOENT" cat "$M/.state/topics/t/0/state"
}

@test "mkdir, touch and an empty file are all the same request" {
    for way in mkdir touch 'cp /dev/null'; do
        topic t '{"0":[1,2]}'
        settle
        $way "$M/admin/delete_topics/t"
        settle
        gone t
    done
}

@test "whatever is written into the request, even after it is done" {
    for i in {1..60}; do topic "t$i" '{"0":[1]}'; done
    settle
    for i in {1..60}; do put_line "$M/admin/delete_topics/t$i" "{\"version\":1,\"topics\":[\"t$i\"]}"; done
    topic late '{"0":[1]}'
    settle
    exec 7>"$M/admin/delete_topics/late"
    settle
    gone late
    echo text >&7
    exec 7>&-
    [ ! -e "$M/admin/delete_topics/late" ]
}

@test "only that topic: others with similar names stay" {
    for name in a a-1 a-1-0 a.1 aa a_2; do topic $name '{"0":[1,2],"1":[2]}'; done
    settle
    kept=$(cd "$D" && ls -d ./*/a-1-[01] ./*/a-1-0-[01] ./*/a.1-[01] ./*/aa-[01] ./*/a_2-[01])
    delete_topic a
    settle
    gone_from_tree=$(ls "$M/brokers/topics" | xargs)
    is "$gone_from_tree" "a-1 a-1-0 a.1 a_2 aa"
    is "$(cd "$D" && ls -d ./*/a*-[0-9]*)" "$kept" "directories"
}

@test "the request for an unknown topic vanishes, and is said" {
    touch "$M/admin/delete_topics/ghost"
    settle
    [ ! -e "$M/admin/delete_topics/ghost" ]
    grep -q ghost "$M/.state/errors"
}

@test "a name can be used again: new id, old configuration and data do not come back" {
    topic t '{"0":[1,2]}'
    put_line "$M/config/topics/t" '{"version":1,"config":{"retention.ms":"7"}}'
    settle
    id=$(field "$M/brokers/topics/t/.data" .topic_id)
    echo old >"$D/1/t-0/old"
    delete_topic t
    settle
    topic t '{"0":[2,1]}'
    settle
    is "$(leader t 0)" 2
    [ "$(field "$M/brokers/topics/t/.data" .topic_id)" != "$id" ]
    [ ! -e "$D/1/t-0/old" ]
    [ ! -e "$M/config/topics/t" ]
    rm "$M/controller"
    settle
    is "$(leader t 0)" 2
}

@test "consumers' offsets are not touched" {
    mkdir -p "$M/consumers/g/offsets/t"
    put "$M/consumers/g/offsets/t/0" 42
    topic t '{"0":[1]}'
    settle
    delete_topic t
    settle
    gone t
    is "$(cat "$M/consumers/g/offsets/t/0")" 42
}

@test "forty topics at once" {
    for i in {1..40}; do topic "t$i" '{"0":[1,2],"1":[2,3],"2":[3,1]}'; done
    settle
    is "$(find "$D" -mindepth 2 -maxdepth 2 -type d | wc -l)" 240
    touch "$M"/admin/delete_topics/t{1..40}
    settle
    is "$(ls "$M/brokers/topics" "$M/admin/delete_topics" | grep -c '^t')" 0
    is "$(find "$D" -mindepth 2 -maxdepth 2 -type d | wc -l)" 0
}

@test "no checkpoint keeps an offset of a topic that is gone, those of its neighbours stay" {
    topic t '{"0":[1],"1":[1]}'
    topic u '{"0":[1]}'
    settle
    stop_kafkafs
    for f in cleaner recovery-point replication log-start; do
        printf '0\n3\nt 0 77\nt 1 0\nu 0 5\n' >"$D/1/$f-offset-checkpoint"
    done
    start_kafkafs
    delete_topic t
    settle
    for f in cleaner recovery-point replication log-start; do
        is "$(cat "$D/1/$f-offset-checkpoint" | xargs)" "0 1 u 0 5" "$f"
    done
}
