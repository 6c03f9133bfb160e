# Log directories that change, fail or come back.
load ../lib/mount

two_dirs() { # broker 2 gets two log dirs
    mkdir -p "$D/2/a" "$D/2/b"
    sed -i "s|^log.dirs=.*|log.dirs=$D/2/a,$D/2/b|" "$C/server-2.properties"
}
setup() {
    new_cluster
    case $BATS_TEST_DESCRIPTION in
    *"two log dirs"*) two_dirs ;;
    *"own disk"*) mount -t tmpfs -o size=8m none "$D/2" ;;
    *"own ext4"*)
        truncate -s 16M "$W/image"
        mkfs.ext4 -qF "$W/image"
        mount -o loop,errors=remount-ro "$W/image" "$D/2"
        rmdir "$D/2/lost+found"
        ;;
    esac
    start_kafkafs
}

@test "two log dirs: a replica goes to the emptier one" {
    topic t '{"0":[2],"1":[2],"2":[2],"3":[2]}'
    settle
    is "$(ls -d "$D"/2/a/t-* | wc -l)" 2
    is "$(ls -d "$D"/2/b/t-* | wc -l)" 2
    is "$(ls "$M/.state/brokers/2/log_dirs" | xargs)" "0 1"
    delete_topic t
    settle
    is "$(ls -d "$D"/2/?/t-* 2>/dev/null | wc -l)" 0
}

@test "two log dirs: those it leads get theirs first, as in Kafka" {
    topic t '{"0":[1,2],"1":[2,1],"2":[2],"3":[2]}'
    settle
    is "$(cd "$D/2"; echo a/t-* b/t-*)" "a/t-1 a/t-3 b/t-0 b/t-2"
}

@test "one of two log dirs is gone: its replicas go offline, the others go on" {
    topic t '{"0":[2,1],"1":[2,1]}'
    settle
    mv "$D/2/b" "$D/2/lost"
    lost=$(basename "$(ls -d "$D"/2/lost/t-*)") kept=$(basename "$(ls -d "$D"/2/a/t-*)")
    settle
    is "$(readlink "$M"/.state/brokers/2/offline_log_dirs/*)" "$D/2/b"
    is "$(leader t "${lost#t-}")" 1
    is "$(isr t "${lost#t-}")" 1
    is "$(leader t "${kept#t-}")" 2
    is "$(broker_state 2)" running
    # back, and the broker started again: all is well
    mv "$D/2/lost" "$D/2/b"
    stop_broker 2
    start_broker 2
    is "$(in_sync t "${lost#t-}")" 1,2
    is "$(ls "$M/.state/brokers/2/offline_log_dirs")" ""
}

@test "the only log dir is gone: the broker fails, the cluster goes on, it comes back" {
    topic t '{"0":[2,1]}'
    settle
    mv "$D/2" "$D/away"
    settle
    [ ! -e "$M/brokers/ids/2" ]
    is "$(leader t 0)" 1
    [[ $(broker_state 2) == "failed: "* ]]
    mv "$D/away" "$D/2"
    start_broker 2
    is "$(in_sync t 0)" 1,2
}

@test "a log dir removed with all it has: the next settle knows" {
    topic t '{"0":[2,1]}'
    for _ in {1..4}; do
        settle
        is "$(in_sync t 0)" 1,2
        rm -r "$D/2"
        settle
        is "$(isr t 0)" 1
        [ ! -e "$M/brokers/ids/2" ]
        touch "$M/brokers/ids/2"
    done
}

@test "own disk unmounted under a broker: noticed, and mended by mounting and starting" {
    topic t '{"0":[2,1]}'
    settle
    mkdir "$W/kept"
    mount --bind "$D/2" "$W/kept"
    umount -l "$D/2"
    settle
    is "$(leader t 0)" 1
    is "$(ls -A "$D/2")" "" "what was written into the empty mount point"
    mount --bind "$W/kept" "$D/2"
    start_broker 2
    is "$(in_sync t 0)" 1,2
}

@test "a replica directory removed by hand is said, and made again at the next start" {
    topic t '{"0":[2,1]}'
    settle
    rm -r "$D/2/t-0"
    settle
    grep -q t-0 "$M/.state/errors"
    stop_broker 2
    start_broker 2
    [ -e "$D/2/t-0/00000000000000000000.log" ]
    is "$(in_sync t 0)" 1,2
    rm -r "$D/2/t-0"
    delete_topic t
    settle
    gone t
}

@test "own disk is full: the topic goes on elsewhere, and here when there is room" {
    fallocate -l 100m "$D/2/filler" 2>/dev/null || dd if=/dev/zero of="$D/2/filler" bs=64k status=none || true
    topic t '{"0":[2,1]}'
    settle
    is "$(leader t 0)" 1
    rm "$D/2/filler"
    stop_broker 2 || true
    start_broker 2
    is "$(in_sync t 0)" 1,2
}

@test "own ext4 finds an error and turns read-only: the deletion waits, and goes on after the repair" {
    topic t '{"0":[2,1]}'
    settle
    fault=/sys/fs/ext4/$(basename "$(findmnt -no SOURCE "$D/2")")/trigger_fs_error
    [ -w "$fault" ] || skip "no $fault"
    echo 1 >"$fault"
    delete_topic t
    settle
    [ -e "$M/admin/delete_topics/t" ]
    is "$(replicas_on_disk t)" 2/t-0
    [[ $(broker_state 2) == "failed: "* ]]
    # nothing holds the disk any more
    umount "$D/2"
    e2fsck -fy "$W/image" || [ $? = 1 ]
    mount -o loop "$W/image" "$D/2"
    # e2fsck wants its directory back, a broker none that is foreign
    rmdir "$D/2/lost+found"
    start_broker 2
    gone t
}

@test "a directory of another topic of that name is set aside, and never deleted" {
    topic t '{"0":[2,1]}'
    settle
    stop_broker 2
    cp -r "$D/2/t-0" "$D/2/u-0"
    echo precious >"$D/2/u-0/precious"
    start_broker 2
    is "$(broker_state 2)" running
    topic u '{"0":[2]}'
    settle
    is "$(leader u 0)" 2
    [ ! -e "$D/2/u-0/precious" ]
    is "$(cat "$D"/2/u-0.*-stray/precious)" precious
    grep -q "$D/2/u-0: .*-stray" "$M/.state/errors"
    delete_topic u
    settle
    is "$(cat "$D"/2/u-0.*-stray/precious)" precious
    is "$(in_sync t 0)" 1,2
    # exchanged under the running broker: said, too, when the deletion meets it
    topic v '{"0":[2]}'
    settle
    cp "$D/2/t-0/partition.metadata" "$D/2/v-0/partition.metadata"
    delete_topic v
    settle
    [ ! -e "$M/admin/delete_topics/v" ]
    [ -d "$D"/2/v-0.*-stray ]
    reason "$D/2/v-0: was not this topic's: set aside with the suffix -stray"
}
