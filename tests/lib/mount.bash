# Loaded by every file of tests/e2e. A test gets a cluster of three brokers on real log directories:
#   W  its scratch directory        M  the mount point
#   C  the cluster directory        D  the parent of the brokers' log dirs, $D/1 to $D/3
# The default setup mounts it, the default teardown unmounts it and looks at the daemon's exit status and at the
# reports of the sanitizers. A file with other needs defines setup of its own, from the same pieces.
bats_require_minimum_version 1.5.0
export LC_ALL=C
: "${KAFKAFS:=$(realpath "$BATS_TEST_DIRNAME/../../build/kafkafs")}"
export BATS_TEST_TIMEOUT=${BATS_TEST_TIMEOUT:-60}

setup() {
    new_cluster
    start_kafkafs
}
teardown() {
    end_cluster
}

# ---- a cluster -------------------------------------------------------------------------------------------------------

# new_cluster [KEY=VALUE...]: three server.properties files with these settings beside the usual ones; nothing runs yet.
new_cluster() {
    local b
    W=$BATS_TEST_TMPDIR M=$W/mnt C=$W/cluster D=$W/logs DAEMON=
    mkdir -p "$M" "$C" "$D"
    for b in 1 2 3; do
        mkdir -p "$D/$b"
        broker_file "$b" "$@" >"$C/server-$b.properties"
    done
    # what a sanitizer has to say goes to files: a daemonized kafkafs has no stderr
    export ASAN_OPTIONS=log_path=$W/sanitizer UBSAN_OPTIONS=print_stacktrace=1:log_path=$W/sanitizer
    export TSAN_OPTIONS=log_path=$W/sanitizer:halt_on_error=0
}

# broker_file ID [KEY=VALUE...]: a server.properties on stdout.
broker_file() {
    local b=$1
    shift
    printf '%s\n' "broker.id=$b" "log.dirs=$D/$b" "listeners=PLAINTEXT://127.0.0.1:$((9090 + b))" \
        auto.leader.rebalance.enable=false unclean.leader.election.enable=false \
        controlled.shutdown.retry.backoff.ms=100 "$@"
}

# start_kafkafs [OPTION...]: mounts $C at $M in the foreground and returns when the controller is ready.
start_kafkafs() {
    local limit=$((SECONDS + 50))
    "${KAFKAFS_WRAPPER[@]}" "$KAFKAFS" -f "$@" "$C" "$M" >>"$W/daemon.log" 2>&1 </dev/null 3>&- 4>&- &
    DAEMON=$!
    until [ -e "$M/.state/controller/epoch" ]; do
        kill -0 "$DAEMON" 2>/dev/null || fail "kafkafs ended: $(tail -n 5 "$W/daemon.log")"
        [ $SECONDS -lt $limit ] || fail "kafkafs is not ready after 50 s: $(tail -n 5 "$W/daemon.log")"
        sleep 0.02
    done
    settle
}
KAFKAFS_WRAPPER=()

# stop_kafkafs: unmounts, and fails unless the daemon ends with status 0.
stop_kafkafs() {
    local status=0
    fusermount3 -u "$M" || { fuser -vm "$M"; return 1; }
    daemon_ends 0
}

# daemon_ends STATUS: waits until the daemon has ended by itself, with this status.
daemon_ends() {
    local status=0
    timeout 30 tail --pid="$DAEMON" -f /dev/null || { where_it_hangs; kill -9 "$DAEMON"; fail "kafkafs does not end"; }
    wait "$DAEMON" || status=$?
    DAEMON=
    is "$status" "$1" "exit status of kafkafs"
}
where_it_hangs() {
    local task
    for task in /proc/"$DAEMON"/task/*; do
        echo "$(cat "$task/comm"): $(cat "$task/wchan")"
    done
}

# kill_kafkafs: kill -9; the mount stays, dead.
kill_kafkafs() {
    kill -9 "$DAEMON"
    wait "$DAEMON" || true
    DAEMON=
}

end_cluster() {
    local status=0 mounted
    if [ -z "${BATS_TEST_COMPLETED-}${BATS_TEST_SKIPPED-}" ]; then
        echo "--- daemon.log"
        tail -n 20 "$W/daemon.log" 2>/dev/null
        [ -z "$DAEMON" ] || { echo "--- .state/errors"; timeout 5 tail -n 10 "$M/.state/errors"; }
    fi
    cd /
    if [ -n "$DAEMON" ]; then
        if timeout 10 fusermount3 -u "$M"; then
            daemon_ends 0 || status=1
        else
            where_it_hangs
            kill -9 "$DAEMON"
            wait "$DAEMON"
            status=1
        fi
    fi
    # innermost first; a path holds no white space here
    for mounted in $(awk -v w="$W/" 'index($5, w) == 1 { print $5 }' /proc/self/mountinfo | tac); do
        umount -l "$mounted"
    done
    if compgen -G "$W/sanitizer.*" >/dev/null; then
        head -n 60 "$W"/sanitizer.*
        status=1
    fi
    return $status
}

# ---- asserting -------------------------------------------------------------------------------------------------------

fail() {
    echo "$*" >&2
    return 1
}

# is GOT WANT [WHAT]
is() {
    [ "$1" = "$2" ] || fail "${3:-value}: got '$1', want '$2'"
}

# refused TEXT COMMAND...: the command must fail, saying TEXT (strerror, mostly).
refused() {
    local text=$1 said
    shift
    if said=$("$@" 2>&1); then fail "succeeded: $*"; else
        [[ $said == *"$text"* ]] || fail "$*: said '$said', want '$text'"
    fi
}
EINVAL='Invalid argument' EEXIST='File exists' EPERM='Operation not permitted' ENOENT='No such file or directory'
EFBIG='File too large' EROFS='Read-only file system' EACCES='Permission denied' ENAMETOOLONG='File name too long'

# put FILE TEXT: writes with one write(2), without a newline; put_line: with one.
put() {
    printf '%s' "$2" >"$1"
}
put_line() {
    printf '%s\n' "$2" >"$1"
}

# reason TEXT: the last line of .state/errors says so.
reason() {
    local line
    line=$(tail -n 1 "$M/.state/errors")
    [[ $line == *"$1"* ]] || fail "the last line of .state/errors is '$line', want '$1'"
}

# unchanged COMMAND...: the command makes no state change: nothing is added to .state/events.
unchanged() {
    local before after
    settle
    before=$(wc -l <"$M/.state/events")
    "$@"
    settle
    after=$(wc -l <"$M/.state/events")
    is "$after" "$before" "lines of .state/events after $*"
}

# ---- the tree --------------------------------------------------------------------------------------------------------

settle() {
    cat "$M/.state/settled" >/dev/null
}

# topic NAME PARTITIONS: creates a topic with an assignment, such as '{"0":[1,2]}'.
topic() {
    put_line "$M/brokers/topics/$1" "{\"version\":1,\"partitions\":$2}"
}
# delete_topic NAME: asks for it.
delete_topic() {
    mkdir "$M/admin/delete_topics/$1"
}
# field FILE FILTER: one value of a JSON file; lists without brackets.
field() {
    jq -r "$2 | if type == \"array\" then map(tostring) | join(\",\") else tostring end" "$1"
}
partition() {
    field "$M/brokers/topics/$1/partitions/$2/state" ".$3"
}
leader() {
    partition "$1" "$2" leader
}
isr() {
    partition "$1" "$2" isr
}
# in_sync T P: the in-sync set in ascending order, since its order has no meaning.
in_sync() {
    field "$M/brokers/topics/$1/partitions/$2/state" '.isr | sort'
}
leader_epoch() {
    partition "$1" "$2" leader_epoch
}
assigned() {
    field "$M/brokers/topics/$1/.data" ".partitions[\"$2\"]"
}
replica_state() {
    cat "$M/.state/topics/$1/$2/replicas/$3"
}
broker_state() {
    cat "$M/.state/brokers/$1/state"
}
# replicas_on_disk T: every replica directory of the topic in the log dirs, such as "1/t-0 2/t-0".
replicas_on_disk() {
    (cd "$D" && find . -mindepth 2 -maxdepth 2 -type d -regex "\./[0-9]+/$1-[0-9]+" | sed 's/^..//' | sort | xargs)
}
# cpu_seconds: what the daemon has used so far; on a busy machine, too, this is its own.
cpu_seconds() {
    awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print int(($12 + $13) / hz) }' "/proc/$DAEMON/stat"
}
# gone T: nothing of the topic is left: tree, request, configuration, directories, metadata caches.
gone() {
    local b
    for b in "$M/brokers/topics/$1" "$M/admin/delete_topics/$1" "$M/config/topics/$1" "$M"/.state/brokers/[123]/metadata/"$1"; do
        [ ! -e "$b" ] || fail "$b is still there" || return 1
    done
    is "$(cd "$D" && find . -mindepth 2 -maxdepth 2 -name "$1-*" | xargs)" "" "directories of $1"
}

# ---- brokers ---------------------------------------------------------------------------------------------------------

start_broker() {
    touch "$M/brokers/ids/$1"
    settle
}
kill_broker() {
    rm "$M/brokers/ids/$1"
    settle
}
# stop_broker ID: controlled shutdown; returns when it is down.
stop_broker() {
    local state
    echo stopped >"$M/.state/brokers/$1/state"
    settle
    # a controlled shutdown may be retried by a timer, which the barrier does not wait for
    while state=$(broker_state "$1") && [ "$state" = stopping ]; do sleep 0.05; done
    is "$state" stopped "state of broker $1"
    settle
}
