# Broker files and log dirs that are wrong: that broker says why and does not start, the others do.
load ../lib/mount

setup() { new_cluster; }

# fails ID TEXT: that broker has failed, saying TEXT, and broker 1 works
fails() {
    local other=1
    [[ $(broker_state "$1") == "failed: "*$2* ]] || fail "broker $1: $(broker_state "$1"), want $2"
    [ ! -e "$M/brokers/ids/$1" ]
    topic "probe$1" "{\"0\":[$other]}"
    settle
    is "$(leader "probe$1" 0)" "$other"
}

@test "two files with the same id" {
    sed -i s/broker.id=3/broker.id=2/ "$C/server-3.properties"
    start_kafkafs
    is "$(ls "$M/brokers/ids" | grep -c '^1$')" 1
    grep -q 2 "$M/.state/errors"
}

@test "a half-written file, an impossible id, a key with a bad value" {
    printf 'broker.id=2\nlog.dirs=%s\nnum.partitions=many\n' "$D/2" >"$C/server-2.properties"
    printf 'log.di' >"$C/server-3.properties"
    start_kafkafs
    fails 2 num.partitions
    is "$(broker_state 1)" running
}

@test "the lock of a log dir is held; a lock file alone is no lock" {
    : >"$D/1/.lock"
    : >"$D/2/.lock"
    python3 -c 'import fcntl, signal, sys
f = open(sys.argv[1], "a"); fcntl.lockf(f, fcntl.LOCK_EX); print("held", flush=True); signal.pause()' \
        "$D/2/.lock" >"$W/held" 3>&- &
    holder=$!
    until grep -qs held "$W/held"; do sleep 0.02; done
    start_kafkafs
    is "$(broker_state 1)" running
    fails 2 lock
    run ! touch "$M/brokers/ids/2"
    kill $holder
    wait $holder || true
    start_broker 2
    is "$(broker_state 2)" running
    # and ours is held too, in the way that Kafka asks
    run ! python3 -c 'import fcntl, sys; fcntl.lockf(open(sys.argv[1], "a"), fcntl.LOCK_EX | fcntl.LOCK_NB)' "$D/1/.lock"
}

@test "meta.properties of another broker or cluster; none is written anew" {
    start_kafkafs
    id=$(field "$M/cluster/id" .id)
    for b in 1 2 3; do grep -qx "broker.id=$b" "$D/$b/meta.properties"; grep -qxF "cluster.id=$id" "$D/$b/meta.properties"; done
    stop_kafkafs
    sed -i s/broker.id=2/broker.id=9/ "$D/2/meta.properties"
    sed -i s/^cluster.id=.*/cluster.id=AAAAAAAAAAAAAAAAAAAAAA/ "$D/3/meta.properties"
    rm "$D/1/meta.properties"
    start_kafkafs
    is "$(broker_state 1)" running
    grep -qxF "cluster.id=$id" "$D/1/meta.properties"
    fails 2 9
    fails 3 AAAAAAAAAAAAAAAAAAAAAA
    grep -q AAAAAAAA "$D/3/meta.properties"
}

@test "a directory that is no replica stops that broker, and is left alone" {
    mkdir "$D/2/lost+found"
    echo x >"$D/2/lost+found/f"
    start_kafkafs
    fails 2 lost+found
    is "$(cat "$D/2/lost+found/f")" x
    rm -r "$D/2/lost+found"
    start_broker 2
    is "$(broker_state 2)" running
}

@test "one log dir for two brokers, a log dir that is a file, unknown keys" {
    sed -i "s|^log.dirs=.*|log.dirs=$D/1|" "$C/server-2.properties"
    rmdir "$D/3"
    : >"$D/3"
    echo "no.such.key=kept and ignored" >>"$C/server-1.properties"
    start_kafkafs
    is "$(broker_state 1)" running
    [[ $(broker_state 2) == "failed: "* ]]
    [[ $(broker_state 3) == "failed: "* ]]
}

@test "corrupt checkpoints, files and leftovers of Kafka's own in a log dir stop no broker" {
    start_kafkafs
    topic t '{"0":[2,1]}'
    settle
    stop_broker 2
    for f in recovery-point-offset log-start-offset replication-offset cleaner-offset; do
        printf 'rubbish\n\n-1' >"$D/2/$f-checkpoint"
    done
    head -c 100 /dev/urandom >"$D/2/t-0/leader-epoch-checkpoint"
    : >"$D/2/README"
    mkdir "$D/2/"{v-1.0123456789abcdef0123456789abcdef-future,u-0.0123456789abcdef0123456789abcdef-stray}
    start_broker 2
    is "$(broker_state 2)" running
    is "$(in_sync t 0)" 1,2
    delete_topic t
    settle
    gone t
    [ -d "$D/2/u-0.0123456789abcdef0123456789abcdef-stray" ]
    [ -e "$D/2/README" ]
}
