# What the controller and others change shows at once, whatever the kernel has cached.
load ../lib/mount

@test "new leaders and sizes, after the state file has been read before" {
    topic t '{"0":[1,2]}'
    settle
    S=$M/brokers/topics/t/partitions/0/state
    for _ in {1..5}; do
        ls -l "$M/brokers/topics/t/partitions/0" "$M/brokers/topics" >"$W/ls"
        kill_broker 1
        is "$(leader t 0)" 2
        is "$(stat -c %s "$S")" "$(wc -c <"$S")"
        start_broker 1
        is "$(in_sync t 0)" 1,2
        is "$(stat -c %s "$S")" "$(wc -c <"$S")"
    done
}

@test "names that were looked up before they existed, and names that are gone" {
    run ! stat "$M/brokers/topics/late"
    run ! stat "$M/brokers/topics/late/partitions/0/state"
    topic late '{"0":[1]}'
    settle
    is "$(leader late 0)" 1
    is "$(ls "$M/brokers/topics")" late
    delete_topic late
    settle
    is "$(ls "$M/brokers/topics" "$M/admin/delete_topics" | grep -c late)" 0
    run ! stat "$M/brokers/topics/late"
    topic late '{"0":[2]}'
    settle
    is "$(leader late 0)" 2
}

@test "cat controller works right through elections" {
    (while [ ! -e "$W/stop" ]; do cat "$M/controller_epoch" "$M/controller" 2>&1 >/dev/null | grep -v 'No such file' >>"$W/errors" || true; done) 3>&- &
    for _ in {1..10}; do rm "$M/controller"; settle; done
    touch "$W/stop"
    wait $!
    is "$(cat "$W/errors")" ""
    is "$(cat "$M/controller_epoch")" 11
}

@test "a shell that stands in a topic's directory sees it go" {
    topic t '{"0":[1]}'
    settle
    cd "$M/brokers/topics/t/partitions"
    is "$(ls)" 0
    delete_topic t
    settle
    run ! mkdir 1
    cd /
    gone t
}

@test "a signal does not turn a change that was made into an error" {
    mkdir "$M/app"
    cat >"$W/signals.py" <<'P'
import os, signal, sys
signal.signal(signal.SIGALRM, lambda *a: None)
signal.siginterrupt(signal.SIGALRM, True)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
for i in range(300):
    os.mkdir(f"{sys.argv[1]}/{i}")
signal.setitimer(signal.ITIMER_REAL, 0)
assert len(os.listdir(sys.argv[1])) == 300
P
    python3 "$W/signals.py" "$M/app"
}
