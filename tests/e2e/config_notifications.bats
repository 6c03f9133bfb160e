# /config/changes: versions, bad ones, who was down, what was killed, expiry.
load ../lib/mount

setup() {
    new_cluster
    start_kafkafs -o config_change_expiry=2
    topic t '{"0":[1,2,3]}'
    settle
    N=$M/config/changes
}
note() { put_line "$N/config_change_" "$1"; }
notify() {
    note "{\"version\":2,\"entity_path\":\"$1\"}"
    settle
}
effective() { sed -n "s/^$2=//p" "$M/.state/brokers/$1/config/topics/t"; }

@test "versions 1 and 2" {
    echo retention.ms=11 >"$M/config/topics/t"
    note '{"version":1,"entity_type":"topics","entity_name":"t"}'
    settle
    is "$(effective 3 retention.ms)" 11
    echo retention.ms=12 >"$M/config/topics/t"
    notify topics/t
    is "$(effective 3 retention.ms)" 12
}

@test "a bad one is a line of errors and blocks nothing" {
    stop_kafkafs
    start_kafkafs -o raw,config_change_expiry=2
    put "$M/config/topics/t" '{"version":1,"config":{"retention.ms":"13"}}'
    local bad n=0
    for bad in '"t"' t '{"version":9}' '{"version":2,"entity_path":"nosuch/x"}' '{"version":2,"entity_path":"t"}' \
        '{"version":2}' '{"version":2,"entity_path":"users/u/clients"}' '{"version":2,"entity_path":"topics/"}' '[]' \
        '{"version":1,"entity_type":"users","entity_name":"u"}'; do
        put "$N/config_change_" "$bad"
    done
    : >"$N/config_change_"
    put "$N/not_a_number_at_all" '{"version":2,"entity_path":"topics/t"}'
    put "$N/config_change_" '{"version":2,"entity_path":"topics/t"}'
    settle
    is "$(effective 1 retention.ms)" 13
    is "$(grep -c 'broker 1: notification skipped' "$M/.state/errors")" 12
}

@test "a broker that was down misses nothing" {
    kill_broker 2
    echo retention.ms=14 >"$M/config/topics/t"
    notify topics/t
    is "$(effective 1 retention.ms)" 14
    start_broker 2
    is "$(effective 2 retention.ms)" 14
}

@test "killed between the value and its notification: in force after the start" {
    echo retention.ms=15 >"$M/config/topics/t"
    kill_kafkafs
    umount -l "$M"
    start_kafkafs
    for b in 1 2 3; do is "$(effective $b retention.ms)" 15; done
}

@test "1000 notifications at once, the last value counts" {
    # in one process: bats takes its time for every command
    python3 - "$M/config/topics/t" "$N/config_change_" <<'P'
import sys
for i in range(1, 1001):
    if i % 10 == 0:
        with open(sys.argv[1], "w") as f: f.write(f"retention.ms={i}\n")
    with open(sys.argv[2], "w") as f: f.write('{"version":2,"entity_path":"topics/t"}')
P
    settle
    for b in 1 2 3; do is "$(effective $b retention.ms)" 1000; done
}

@test "old ones go when the next one comes, bad ones too" {
    stop_kafkafs
    start_kafkafs -o raw,config_change_expiry=3
    first=$(date +%s)
    put "$N/config_change_" rubbish
    : >"$N/config_change_"
    put "$N/config_change_" '{"version":2,"entity_path":"topics/t"}'
    settle
    there=$(ls "$N" | wc -l)
    # a machine so busy that the first was old when the third came says nothing
    [ "$there" = 3 ] || [ $(($(date +%s) - first)) -ge 3 ]
    sleep 3.1
    is "$(ls "$N" | wc -l)" "$there" "none goes by itself"
    put "$N/config_change_" '{"version":2,"entity_path":"topics/t"}'
    settle
    is "$(ls "$N" | wc -l)" 1
}

@test "an entity that does not exist, or exists no more, is nothing; the next one is handled" {
    notify topics/nosuch
    notify clients/nobody
    notify users/nobody/clients/none
    notify brokers/77
    notify ips/10.9.8.7
    echo retention.ms=16 >"$M/config/topics/t"
    notify topics/t
    is "$(effective 1 retention.ms)" 16
    is "$(grep -c 'notification skipped' "$M/.state/errors")" 0
}
