# Little of everything: descriptors, stack, file size, room for the store.
load ../lib/mount

setup() { new_cluster; }
limited() { KAFKAFS_WRAPPER=(bash -c "ulimit $1 && exec \"\$@\"" --); }

# works: topics come and go
works() {
    topic t '{"0":[1,2,3],"1":[2,3,1]}'
    settle
    is "$(leader t 0)" 1
    delete_topic t
    settle
    gone t
}

@test "S23: 64 descriptors: it works, or says in one line why not" {
    limited "-n 64"
    if "${KAFKAFS_WRAPPER[@]}" "$KAFKAFS" "$C" "$M" 2>"$W/err" 3>&- 4>&-; then
        works
        mkdir "$M/app"
        for i in {1..100}; do exec {fd}<"$M/app"; done
        topic u '{"0":[1]}'
        settle
        is "$(leader u 0)" 1
        while [ "$fd" -ge 10 ]; do exec {fd}<&-; fd=$((fd - 1)); done
        umount "$M"
    else
        is "$(wc -l <"$W/err")" 1
    fi
}

@test "S23: a stack of 128 KiB" {
    limited "-s 128"
    start_kafkafs
    works
    refused "$EINVAL" put_line "$M/config/topics/t" "$(printf '[%.0s' {1..5000})$(printf ']%.0s' {1..5000})"
}

@test "S23: files may not grow over 8 MiB: the change is refused, the rest goes on" {
    limited "-f 8192"
    start_kafkafs
    mkdir "$M/app"
    for i in {1..40}; do head -c 500000 /dev/zero >"$M/app/$i" 2>/dev/null || break; done
    [ "$i" -lt 40 ]
    head -c 100 "$M/app/1" >"$W/head"
    stop_kafkafs
    KAFKAFS_WRAPPER=()
    start_kafkafs
    works
    is "$(stat -c %s "$M/app/1")" 500000
}

@test "no room for the store: ENOSPC, everything stays usable, and goes on when there is room" {
    mkdir "$W/disk"
    mount -t tmpfs -o size=3m none "$W/disk"
    mv "$C"/*.properties "$W/disk"
    C=$W/disk
    start_kafkafs
    mkdir "$M/app"
    for i in {1..40}; do head -c 200000 /dev/urandom >"$M/app/$i" 2>"$W/err" || break; done
    [ "$i" -lt 40 ]
    grep -q 'No space left' "$W/err"
    is "$(stat -c %s "$M/app/1")" 200000
    ls -lR "$M" >"$W/ls"
    mount -o remount,size=20m "$W/disk"
    put "$M/app/more" data
    works
    stop_kafkafs
    start_kafkafs
    is "$(cat "$M/app/more")" data
}

@test "a store on a read-only disk: one line, or a mount that reads" {
    start_kafkafs
    topic t '{"0":[1]}'
    settle
    stop_kafkafs
    mount --bind "$C" "$C"
    mount -o remount,bind,ro "$C"
    run ! --separate-stderr timeout 20 "$KAFKAFS" "$C" "$M"
    is "${#stderr_lines[@]}" 1
    "$KAFKAFS" -o ro "$C" "$M" 3>&- 4>&-
    is "$(field "$M/brokers/topics/t/.data" '.partitions["0"]')" 1
    umount "$M"
}

@test "S7: a directory with the name of a replica and another topic's id is no replica of it" {
    start_kafkafs
    topic t '{"0":[2,1]}'
    settle
    kill_broker 2
    printf 'version: 0\ntopic_id: %s' AAAAAAAAAAAAAAAAAAAAAQ >"$D/2/t-0/partition.metadata"
    echo precious >"$D/2/t-0/precious"
    start_broker 2
    delete_topic t
    settle
    # set aside, or kept where it is: what is another topic's is not deleted
    is "$(cat "$D"/2/t-0*/precious)" precious
}
