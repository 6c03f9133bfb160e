# .state: what is not in the tree. One test a group of files.
load ../lib/mount

S() { echo "$M/.state/$1"; }

@test "settled prints the zxid reached, and returns under load" {
    mkdir "$M/app"
    touch "$M/app/f"
    zxid=$(cat "$(S settled)")
    [[ $zxid =~ ^(0x[0-9a-f]+|[0-9]+)$ ]]
    [ $((zxid)) -ge $(($(getfattr --only-values -n user.zk.czxid "$M/app/f"))) ]
    (while [ ! -e "$W/stop" ]; do touch "$M/app/g"; rm "$M/app/g"; done) 3>&- &
    for _ in {1..20}; do cat "$(S settled)" >"$W/out"; done
    touch "$W/stop"
    wait $!
}

@test "controller and topics" {
    topic t '{"0":[2,1],"1":[3]}'
    settle
    is "$(cat "$(S controller/broker)" "$(S controller/epoch)" | xargs)" "1 1"
    cat "$(S controller/queue)"
    is "$(ls "$(S topics)")" t
    is "$(cat "$(S topics/t/deletion)")" none
    is "$(cat "$(S topics/t/0/state)")" OnlinePartition
    is "$(cat "$(S topics/t/0/assignment)")" 2,1
    is "$(ls "$(S topics/t/0/replicas)" | xargs)" "1 2"
    is "$(cat "$(S topics/t/0/replicas/2)")" OnlineReplica
    for absent in topics/u topics/t/2/state topics/t/0/replicas/3 brokers/9 nothing; do
        refused "$ENOENT" cat "$(S $absent)"
    done
}

@test "brokers: logs, log dirs, metadata" {
    topic t '{"0":[2,1]}'
    settle
    is "$(ls "$(S brokers)" | xargs)" "1 2 3"
    is "$(readlink "$(S brokers/2/logs/t-0)")" "$D/2/t-0"
    [ -e "$(S brokers/2/logs/t-0)/00000000000000000000.log" ]
    is "$(readlink "$(S brokers/2/log_dirs/0)")" "$D/2"
    is "$(ls "$(S brokers/2/offline_log_dirs)")" ""
    is "$(ls "$(S brokers/3/logs)")" ""
    # every broker knows every partition
    for b in 1 2 3; do
        is "$(wc -l <"$(S brokers/$b/metadata/t/0)")" 1
        is "$(field "$(S brokers/$b/metadata/t/0)" .leader)" 2
    done
}

@test "effective configuration, its sources and quotas" {
    topic t '{"0":[1]}'
    echo retention.ms=4321 >"$M/config/topics/t"
    put_line "$M/config/changes/config_change_" '{"version":2,"entity_path":"topics/t"}'
    settle
    for b in 1 2 3; do grep -qx retention.ms=4321 "$(S brokers/$b/config/topics/t)"; done
    grep -qx retention.ms=DYNAMIC_TOPIC_CONFIG "$(S brokers/1/config_source/topics/t)"
    grep -qx cleanup.policy=delete "$(S brokers/1/config/topics/t)"
    grep -qx cleanup.policy=DEFAULT_CONFIG "$(S brokers/1/config_source/topics/t)"
    grep -qx unclean.leader.election.enable=STATIC_BROKER_CONFIG "$(S brokers/2/config_source/brokers/2)"
    is "$(cat "$(S brokers/1/quotas/anybody/anyclient)")" ""
    mkdir -p "$M/config/users/u/clients"
    put_line "$M/config/users/u/clients/c" '{"version":1,"config":{"producer_byte_rate":"77"}}'
    put_line "$M/config/changes/config_change_" '{"version":2,"entity_path":"users/u/clients/c"}'
    settle
    grep -q '^producer_byte_rate=77' "$(S brokers/3/quotas/u/c)"
}

@test "read-only, but for the state of a broker" {
    topic t '{"0":[1]}'
    settle
    for f in settled errors events controller/epoch topics/t/deletion topics/t/0/state metrics; do
        run ! put_line "$(S $f)" x
        run ! rm "$(S $f)"
    done
    run ! mkdir "$(S topics/x)"
    run ! touch "$(S new)"
    run ! rmdir "$(S topics/t)"
}

@test "metrics are Prometheus text" {
    topic t '{"0":[1],"1":[2]}'
    settle
    grep -Eq '^[a-z_]*global_?topic_?count[^ ]* 1(\.0)?$' -i "$(S metrics)"
    grep -Eq '^[a-z_]*active_?controller_?count[^ ]* 1(\.0)?$' -i "$(S metrics)"
    grep -vE '^(#.*|[a-zA-Z_:][a-zA-Z0-9_:]*(\{[^}]*\})? [-+0-9.eInfNa]+)$' "$(S metrics)" && fail "not Prometheus text"
    if command -v promtool >/dev/null; then promtool check metrics <"$(S metrics)"; fi
}
