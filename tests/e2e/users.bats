# Other users: kept out, or let in by allow_other, under the modes that stat shows.
load ../lib/mount

nobody() { runuser -u nobody -- "$@"; }
setup() {
    new_cluster
    # the way to the mount point must not be what refuses
    local dir=$W
    while [ "$dir" != / ] && [ ! -k "$dir" ]; do
        chmod o+x "$dir"
        dir=$(dirname "$dir")
    done
}

@test "S17: without allow_other another user is refused" {
    start_kafkafs
    refused "$EACCES" nobody ls "$M"
    refused "$EACCES" nobody cat "$M/controller"
}

@test "S17: with allow_other the modes are obeyed; secrets are the owner's" {
    start_kafkafs -o allow_other
    nobody ls "$M/brokers/topics"
    is "$(nobody cat "$M/controller_epoch")" 1
    nobody cat "$M/.state/settled"
    refused "$EACCES" nobody mkdir "$M/brokers/topics/t"
    refused "$EACCES" nobody rm "$M/controller"
    refused "$EACCES" nobody rm "$M/brokers/ids/2"
    refused "$EACCES" nobody sh -c "echo stopped >'$M/.state/brokers/2/state'"
    refused "$EACCES" nobody sh -c "echo x >'$M/config/topics/t'"
    mkdir "$M/config/users/u"
    put_line "$M/config/users/u/.data" '{"version":1,"config":{"SCRAM-SHA-256":"salt=c2VjcmV0,stored_key=eA==,server_key=eQ==,iterations=4096"}}'
    put_line "$M/config/brokers/1" '{"version":1,"config":{"listener.name.a.ssl.keystore.password":"secret"}}'
    refused "$EACCES" nobody ls "$M/config/users"
    refused "$EACCES" nobody cat "$M/config/users/u/.data"
    refused "$EACCES" nobody cat "$M/config/brokers/1"
    settle
    run ! grep -rqE 'c2VjcmV0|password=secret' "$M/.state/errors" "$M/.state/events" "$W/daemon.log"
}

@test "S16: mounted nosuid and nodev" {
    start_kafkafs
    [[ $(findmnt -no OPTIONS "$M") == *nosuid* ]]
    [[ $(findmnt -no OPTIONS "$M") == *nodev* ]]
}

@test "an ordinary user mounts a cluster of his own" {
    chown -R nobody "$C" "$D" "$M" "$W"
    nobody test -w /dev/fuse || skip "/dev/fuse is not for ordinary users here"
    nobody test -x "$KAFKAFS" || skip "an ordinary user cannot reach $KAFKAFS"
    nobody "$KAFKAFS" "$C" "$M" 3>&- 4>&-
    nobody mkdir -p "$M/brokers/topics/t/partitions/0"
    nobody cat "$M/.state/settled"
    is "$(nobody stat -c %U "$M/brokers")" nobody
    is "$(replicas_on_disk t | wc -w)" 1
    nobody fusermount3 -u "$M"
}

@test "S21: the store is locked, and so are the log dirs" {
    start_kafkafs
    mkdir "$W/c2" "$W/m2"
    run ! timeout 20 "$KAFKAFS" "$C" "$W/m2"
    cp "$C/server-1.properties" "$W/c2/"
    "$KAFKAFS" "$W/c2" "$W/m2" 3>&- 4>&-
    [[ $(cat "$W/m2/.state/brokers/1/state") == "failed: "* ]]
    is "$(broker_state 1)" running
    umount "$W/m2"
}
