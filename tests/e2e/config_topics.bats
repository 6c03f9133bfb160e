# Topic configuration: written, notified, applied; key=value lines; what is refused; throttle lists.
load ../lib/mount

setup() {
    new_cluster
    start_kafkafs
    topic t '{"0":[1,2],"1":[2,1]}'
    settle
    F=$M/config/topics/t
}
notify() {
    put_line "$M/config/changes/config_change_" "{\"version\":2,\"entity_path\":\"$1\"}"
    settle
}
# effective B KEY: of topic t; source B KEY.
effective() { sed -n "s/^$2=//p" "$M/.state/brokers/$1/config/topics/t"; }
source_of() { sed -n "s/^$2=//p" "$M/.state/brokers/$1/config_source/topics/t"; }
throttled() { cat "$M/.state/brokers/$1/throttled/$2/t" 2>/dev/null || true; }

@test "the text alone changes nothing; the notification applies it on every broker" {
    put_line "$F" '{"version":1,"config":{"retention.ms":"7000","cleanup.policy":"compact"}}'
    settle
    for b in 1 2; do is "$(effective $b retention.ms)" 604800000; done
    notify topics/t
    for b in 1 2 3; do
        is "$(effective $b retention.ms) $(source_of $b retention.ms)" "7000 DYNAMIC_TOPIC_CONFIG"
        is "$(effective $b cleanup.policy)" compact
        is "$(effective $b segment.bytes) $(source_of $b segment.bytes)" "1073741824 DEFAULT_CONFIG"
    done
    grep -q 'broker 2 config topics/t retention.ms=7000 (was 604800000)' "$M/.state/events"
    put_line "$F" '{"version":1,"config":{}}'
    notify topics/t
    is "$(effective 1 retention.ms) $(source_of 1 retention.ms)" "604800000 DEFAULT_CONFIG"
    rm "$F"
    unchanged notify topics/t
}

@test "key=value lines become JSON; >> changes one key and keeps the others" {
    printf 'retention.ms=1000\n# a comment\n\nsegment.bytes = 2000\n' >"$F"
    is "$(jq -c .config "$F")" '{"retention.ms":"1000","segment.bytes":"2000"}'
    echo cleanup.policy=compact >>"$F"
    echo retention.ms=3000 >>"$F"
    is "$(jq -cS .config "$F")" '{"cleanup.policy":"compact","retention.ms":"3000","segment.bytes":"2000"}'
    echo segment.bytes= >>"$F"
    is "$(jq -cS .config "$F")" '{"cleanup.policy":"compact","retention.ms":"3000"}'
    (head -c 200000 /dev/zero | tr '\0' '\n'; echo segment.bytes=4000) >>"$F"
    is "$(jq -cS .config "$F")" '{"cleanup.policy":"compact","retention.ms":"3000","segment.bytes":"4000"}'
    echo segment.bytes= >>"$F"
    printf 'retention.ms=1\nretention.ms=2\n' >"$W/twice"
    refused "$EINVAL" cp "$W/twice" "$F"
    is "$(jq -cS .config "$F")" '{"cleanup.policy":"compact","retention.ms":"3000"}'
    notify topics/t
    is "$(effective 1 retention.ms)" 3000
}

@test "an impossible value is refused with the reason, and the old one stays" {
    echo retention.ms=5000 >"$F"
    local before
    before=$(cat "$F")
    for bad in retention.ms=soon retention.ms=-2 retention.ms=9223372036854775808 cleanup.policy=shrink \
        message.timestamp.type=Foo preallocate=yes min.cleanable.dirty.ratio=1.5 segment.bytes=1 \
        leader.replication.throttled.replicas=none 'follower.replication.throttled.replicas=*,0:1'; do
        refused "$EINVAL" bash -c "echo '$bad' >>'$F'"
        reason "${bad%%=*}"
        refused "$EINVAL" bash -c "echo '$bad' >'$F'"
        refused "$EINVAL" put_line "$F" "{\"version\":1,\"config\":{\"${bad%%=*}\":\"${bad#*=}\"}}"
    done
    refused "$EINVAL" put_line "$F" '{"version":1,"config":{"retention.ms":5}}'
    refused "$EINVAL" put_line "$F" '{"version":1,"config":{"min.compaction.lag.ms":"9","max.compaction.lag.ms":"3"}}'
    is "$(cat "$F")" "$before"
    echo no.such.key=kept >>"$F"
    is "$(jq -r '.config["no.such.key"]' "$F")" kept
}

@test "throttle lists: a broker takes its own pairs, * all, an empty one removes" {
    local K=leader.replication.throttled.replicas L=follower.replication.throttled.replicas
    put_line "$F" "{\"version\":1,\"config\":{\"$K\":\" 1:1 , 0:1,1:2\",\"$L\":\"*\"}}"
    notify topics/t
    is "$(throttled 1 leader) $(throttled 2 leader) $(throttled 1 follower)" '0,1 1 *'
    put_line "$F" "{\"version\":1,\"config\":{\"$K\":\"\",\"$L\":\"0:2\"}}"
    notify topics/t
    is "$(throttled 1 leader)$(throttled 2 leader)$(throttled 1 follower)" ''
    is "$(throttled 2 follower)" 0
    is "$(ls "$M/.state/brokers/2/throttled/follower")" t
    delete_topic t
    settle
    is "$(ls "$M/.state/brokers/2/throttled/follower")" ''
}

@test "a topic that is created again starts from its new configuration" {
    echo retention.ms=1111 >"$F"
    notify topics/t
    delete_topic t
    settle
    gone t
    unchanged notify topics/t
    echo segment.bytes=2222 >"$F"
    topic t '{"0":[1,2]}'
    settle
    for b in 1 2; do is "$(effective $b retention.ms) $(effective $b segment.bytes)" "604800000 2222"; done
}

@test "unclean election is allowed by a topic's override, at once" {
    topic u '{"0":[1,2]}'
    settle
    kill_broker 2
    kill_broker 1
    start_broker 2
    is "$(leader u 0)" -1
    echo unclean.leader.election.enable=true >"$M/config/topics/u"
    notify topics/u
    is "$(leader u 0)" 2
}

@test "a document of 900 KB of keys" {
    python3 -c 'import json; print(json.dumps({"version":1,"config":{**{"key.%05d" % i: "v" * 20 for i in range(20000)}, "retention.ms": "77"}}))' >"$W/big"
    cat "$W/big" >"$F"
    notify topics/t
    is "$(effective 1 retention.ms)" 77
    is "$(grep -c '^key\.' "$M/.state/brokers/1/config/topics/t")" 20000
}
