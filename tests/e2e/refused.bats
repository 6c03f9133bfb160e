# Values that are refused: EINVAL at the write, the old value stays, the reason is the last line of .state/errors.
load ../lib/mount

setup() {
    new_cluster
    start_kafkafs
    F=$M/config/topics/t OLD='{"version":1,"config":{"retention.ms":"1000"}}'
    put_line "$F" "$OLD"
}
bad() { # bad FILE TEXT: is refused with a reason, and changes nothing
    local was
    was=$(cat "$1" 2>/dev/null || echo absent)
    refused "$EINVAL" put_line "$1" "$2"
    reason "EINVAL /${1#"$M/"}: "
    is "$(cat "$1" 2>/dev/null || echo absent)" "$was" "value after $2"
}

@test "broken JSON" {
    for text in '{"version":1,"config":{"a":}}' '{"version":1,}' 'nothing}' '[1,2' '{"version":1 "config":{}}' \
        "{'version':1}" '{"version":01}' $'{"a":"\x01"}' $'{"a":"\xff"}' $'\xef\xbb\xbf{}' '{"a":"\uD800"}' ']'; do
        # an unfinished list is no error until the file is closed
        [ "$text" = '[1,2' ] && continue
        bad "$F" "$text"
    done
}

@test "wrong shapes of a topic configuration" {
    for text in '[]' '"x"' 'null' '{"version":1,"config":[]}' '{"version":1,"config":{"retention.ms":5}}' \
        '{"version":1,"config":{"retention.ms":"1"},"config":{}}' \
        '{"version":1,"config":{"retention.ms":"1","retention.ms":"2"}}' \
        '{"version":1,"config":{"retention.ms":"abc"}}' 'retention.ms' 'retention.ms=abc'; do
        bad "$F" "$text"
    done
}

@test "impossible assignments" {
    for partitions in '{"0":[]}' '{"0":[1,1]}' '{"0":[-1]}' '{"0":["1"]}' '{"0":[1.5]}' '{"0":[1e999]}' \
        '{"0":[99999999999]}' '{"x":[1]}' '{"-1":[1]}' '{"01":[1]}' '{"1":[1]}' '{"0":[1],"2":[1]}' \
        '{"0":[1],"0":[2]}' '[[1]]' '{"0":1}' '{"2147483648":[1]}'; do
        bad "$M/brokers/topics/new" "{\"version\":1,\"partitions\":$partitions}"
        [ ! -e "$M/brokers/topics/new" ]
    done
    bad "$M/brokers/topics/new" '{"version":1}'
    bad "$M/brokers/topics/new" '{"version":1,"partitions":{"0":[1]},"topic_id":"short"}'
}

@test "the other nodes that Kafka defines" {
    bad "$M/admin/reassign_partitions" '{"version":1}'
    bad "$M/admin/reassign_partitions" '{"version":1,"partitions":{"t":[2]}}'
    bad "$M/admin/reassign_partitions" '{"version":1,"partitions":[{"topic":"t"}]}'
    bad "$M/admin/preferred_replica_election" '{"version":1,"partitions":[{"topic":"t","partition":"0"}]}'
    topic t '{"0":[1,2]}'
    settle
    bad "$M/brokers/topics/t/partitions/0/state" '{"version":1,"leader":1}'
    refused "$EPERM" put_line "$M/cluster/id" '{"version":"1","id":"AAAAAAAAAAAAAAAAAAAAAA"}'
    for root in brokers brokers/topics config/changes admin/delete_topics consumers; do
        run ! rmdir "$M/$root"
        [ -d "$M/$root" ]
    done
}

@test "bombs: nesting, size, numbers; quickly, and without much memory" {
    before=$(cpu_seconds)
    refused "" sh -c "head -c 100000 /dev/zero | tr '\0' '[' >'$F'"
    refused "$EINVAL" sh -c "python3 -c 'print(\"[\" * 100000 + \"]\" * 100000)' | dd of='$F' bs=200001 iflag=fullblock status=none"
    refused "$EFBIG" sh -c "python3 -c 'print(\"[\" + \"1,\" * 1000000 + \"1]\")' | dd of='$F' bs=2097152 iflag=fullblock status=none"
    bad "$F" '{"version":1e999,"config":{}}'
    is "$(cat "$F")" "$OLD"
    [ $(($(cpu_seconds) - before)) -lt 20 ]
    [ "$(awk '/^VmHWM/ { print $2 }' "/proc/$DAEMON/status")" -lt 2000000 ]
}
