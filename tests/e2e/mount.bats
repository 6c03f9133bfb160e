# The life of a mount.
load ../lib/mount

@test "a remount is no event for the cluster" {
    topic t '{"0":[2,1],"1":[3,2]}'
    settle
    stop_broker 2
    start_broker 2
    before=$(cat "$M"/brokers/topics/t/partitions/*/state)
    epoch=$(cat "$M/controller_epoch")
    stop_kafkafs
    start_kafkafs
    is "$(cat "$M"/brokers/topics/t/partitions/*/state)" "$before"
    is "$(cat "$M/controller_epoch")" $((epoch + 1))
    is "$(field "$M/controller" .brokerid)" 1
    kill_kafkafs
    start_kafkafs
    is "$(cat "$M"/brokers/topics/t/partitions/*/state)" "$before" "after kill -9"
}

@test "everything acknowledged survives kill -9" {
    topic t '{"0":[1]}'
    mkdir "$M/app"
    put "$M/app/f" data
    kill_kafkafs
    start_kafkafs
    is "$(cat "$M/app/f")" data
    is "$(leader t 0)" 1
    rm "$M/app/f"
    kill_kafkafs
    start_kafkafs
    [ ! -e "$M/app/f" ]
}

@test "a dead mount answers with an error, can be unmounted, and is mounted over" {
    ls -lR "$M" >/dev/null
    kill_kafkafs
    refused "not connected" timeout 5 ls "$M"
    start_kafkafs
    is "$(grep -c " $M " /proc/self/mountinfo)" 1
    stop_kafkafs
    is "$(grep -c " $M " /proc/self/mountinfo)" 0
}

@test "a second mount of the same source is refused with the pid of the first" {
    mkdir "$W/mnt2"
    run ! --separate-stderr timeout 20 "$KAFKAFS" "$C" "$W/mnt2"
    [[ $stderr == *"$DAEMON"* ]]
    is "${#stderr_lines[@]}" 1
    run ! mountpoint -q "$W/mnt2"
    run ! timeout 20 "$KAFKAFS" --brokers=1 "$W" "$M"
    topic t '{"0":[1]}'
    settle
    is "$(leader t 0)" 1
}

@test "SIGTERM and SIGINT end it cleanly, under load too" {
    for signal in TERM INT; do
        mkdir -p "$M/app"
        load=()
        for w in 1 2 3; do
            (while mkdir "$M/app/$BASHPID" 2>/dev/null && rmdir "$M/app/$BASHPID"; do :; done) 3>&- 2>/dev/null &
            load+=($!)
        done
        until [ "$(ls -A "$M/app" | wc -l)" -gt 0 ]; do :; done
        kill -$signal "$DAEMON"
        daemon_ends 0
        wait "${load[@]}"
        run ! mountpoint -q "$M"
        start_kafkafs
    done
}

@test "umount is refused while the mount is in use, and works afterwards" {
    exec 7<"$M/controller"
    refused busy umount "$M"
    exec 7<&-
    umount "$M"
    daemon_ends 0
}

@test "-o ro: everything can be read, nothing written" {
    topic t '{"0":[1]}'
    settle
    stop_kafkafs
    start_kafkafs -o ro
    is "$(leader t 0)" 1
    refused "$EROFS" mkdir "$M/app"
    refused "$EROFS" rm "$M/cluster/id"
    refused "$EROFS" put_line "$M/config/topics/t" '{}'
}

@test "mount -t fuse.kafkafs, as an fstab line would" {
    stop_kafkafs
    [ ! -e /usr/local/bin/kafkafs ] || skip "a kafkafs is installed here"
    ln -s "$KAFKAFS" /usr/local/bin/kafkafs
    mount -t fuse.kafkafs -o config_change_expiry=60,nofail "$C" "$M" 3>&- 4>&- || { rm /usr/local/bin/kafkafs; fail "mount"; }
    rm /usr/local/bin/kafkafs
    is "$(findmnt -no FSTYPE,SOURCE "$M" | xargs)" "fuse.kafkafs $C"
    is "$(cat "$M/.state/controller/broker")" 1
    [[ $(findmnt -no OPTIONS "$M") == *nosuid,nodev* ]]
    umount "$M"
}

@test "the guardian: one process, gone with the daemon however that ends, and the daemon does without it" {
    guardian() { pgrep -P "$DAEMON" -x kafkafs-guard; }
    g=$(guardian)
    stop_kafkafs
    [ ! -e "/proc/$g" ]
    start_kafkafs
    g=$(guardian)
    # a client that waits for a daemon that is killed
    kill -STOP "$DAEMON"
    timeout 20 ls "$M/brokers" 2>"$W/said" &
    client=$!
    kill_kafkafs
    run wait "$client"
    [[ $(cat "$W/said") == *"not connected"* || $(cat "$W/said") == *"connection abort"* ]]
    timeout 20 tail --pid="$g" -f /dev/null
    start_kafkafs
    kill -9 "$(guardian)"
    topic t '{"0":[1]}'
    settle
    is "$(leader t 0)" 1
    stop_kafkafs
}

@test "closed standard files are nobody's" {
    stop_kafkafs
    "$KAFKAFS" "$C" "$M" <&- >&- 2>&- 3>&- 4>&-
    settle
    umount "$M"
}
