# .state/events and .state/errors.
load ../lib/mount

E() { echo "$M/.state/events"; }

@test "every state change is a line, oldest first" {
    topic t '{"0":[1,2]}'
    settle
    grep -q 't-0.*OnlinePartition\|OnlinePartition.*t-0\|t.*0.*OnlinePartition' "$(E)"
    delete_topic t
    settle
    [ "$(grep -n OnlineReplica "$(E)" | tail -n 1 | cut -d: -f1)" -lt \
        "$(grep -n ReplicaDeletionSuccessful "$(E)" | tail -n 1 | cut -d: -f1)" ]
}

@test "tail -f shows what happens next" {
    timeout 20 tail -n 0 -f "$(E)" >"$W/seen" 3>&- &
    tail=$!
    n=0
    until grep -q fresh "$W/seen"; do
        # tail may not have begun: each topic is one more chance
        topic "fresh$((n++))" '{"0":[1]}'
        settle
        [ $n -lt 100 ]
    done
    kill $tail
    wait $tail || true # it has the file open until then
}

@test "poll wakes when there is something to read" {
    cat >"$W/poll.py" <<'P'
import os, select, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
while os.read(fd, 65536): pass
p = select.poll()
p.register(fd, select.POLLIN)
print("waiting", flush=True)
assert p.poll(20000), "no wake-up"
data = os.read(fd, 65536)
assert data.endswith(b"\n"), data
P
    python3 "$W/poll.py" "$(E)" >"$W/out" 3>&- &
    until grep -q waiting "$W/out"; do sleep 0.02; done
    topic t '{"0":[1]}'
    wait $!
}

@test "a reader that never reads holds up nobody, and is told what it lost" {
    exec 7<"$(E)"
    for i in {1..120}; do
        topic "t$i" '{"0":[1,2,3],"1":[1,2,3],"2":[1,2,3],"3":[1,2,3],"4":[1,2,3],"5":[1,2,3],"6":[1,2,3],"7":[1,2,3]}'
    done
    touch "$M"/admin/delete_topics/t{1..120}
    settle
    is "$(ls "$M/brokers/topics" | grep -c ^t)" 0
    grep -qE '^lost [0-9]+$' <&7
    exec 7<&-
    [ "$(wc -c <"$(E)")" -le 1100000 ]
}

@test "errors: time, errno, path, reason; newest last; names cannot forge a line" {
    run ! put_line "$M/config/topics/t" '{"version":1,"config":7}'
    [[ $(tail -n 1 "$M/.state/errors") =~ ^[0-9]{4}-[0-9]{2}-[0-9]{2}T[^\ ]+\ EINVAL\ /config/topics/t:\ .+ ]]
    n=$(wc -l <"$M/.state/errors")
    run ! mkdir "$M/brokers/topics/"$'two\nlines \e[31m'
    is "$(wc -l <"$M/.state/errors")" $((n + 1))
    is "$(tail -n 1 "$M/.state/errors" | tr -d '[:print:]\n' | wc -c)" 0
}
