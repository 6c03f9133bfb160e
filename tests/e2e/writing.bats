# Writing JSON, numbers and key=value lines: one whole value is one change.
load ../lib/mount

setup() {
    new_cluster
    start_kafkafs
    F=$M/config/topics/t
    OLD='{"version":1,"config":{"retention.ms":"1000"}}'
    put_line "$F" "$OLD"
}
version() { getfattr --only-values -n user.zk.version "$1"; }
value() { field "$F" ".config[\"$1\"]"; }

@test "with or without a newline, in one write or in many, it is one change" {
    v=$(version "$F")
    put "$F" '{"version":1,"config":{"retention.ms":"2"}}'
    is "$(version "$F")" $((v + 1))
    printf '{\n "version": 1,\n "config": {\n "retention.ms": "3"\n}\n}\n' >"$F"
    is "$(version "$F")" $((v + 2))
    is "$(value retention.ms)" 3
    { printf '{"version":1,' | cat; printf '"config":{"retention.ms":"4"' | cat; printf '}}' | cat; } >"$F"
    is "$(version "$F")" $((v + 3))
    is "$(value retention.ms)" 4
    printf '%s' '{"version":1,"config":{"retention.ms":"5"}}' | dd of="$F" bs=1 status=none
    is "$(version "$F")" $((v + 4))
    is "$(value retention.ms)" 5
}

@test "the value is applied at the write that completes it, before the file is closed" {
    exec 7>"$F"
    printf '{"version":1,"config":' >&7
    is "$(cat "$F")" "$OLD"
    printf '{"retention.ms":"8"}}' >&7
    is "$(value retention.ms)" 8
    exec 7>&-
}

@test "a value that never completes changes nothing, and is said" {
    printf '{"version":1,"config":{' >"$F"
    is "$(cat "$F")" "$OLD"
    reason config/topics/t
    (printf '{"version":1,' && kill -9 "$BASHPID") >"$F" || true
    is "$(cat "$F")" "$OLD"
    : >"$F"
    is "$(cat "$F")" "$OLD" "value after a mere truncation"
    printf '{"version":1,' >"$M/config/topics/new"
    [ ! -e "$M/config/topics/new" ]
}

@test "two documents at once: the second is refused" {
    refused "$EINVAL" put "$F" '{"version":1,"config":{}} x'
    is "$(cat "$F")" "$OLD"
}

@test "a document that is read, changed and written back through one open file" {
    cat >"$W/change.py" <<'P'
import json, sys
with open(sys.argv[1], "r+") as f:
    value = json.load(f)
    value["config"] = {"retention.ms": sys.argv[2]}
    f.seek(0)
    json.dump(value, f)
    f.truncate()
P
    v=$(version "$F")
    for ms in 20000000 7 42; do
        python3 "$W/change.py" "$F" $ms
        is "$(value retention.ms)" $ms
    done
    is "$(version "$F")" $((v + 3))
    # without the truncation it is no value
    echo '{}' >"$W/short"
    was=$(cat "$F")
    refused "$EINVAL" dd if="$W/short" of="$F" conv=notrunc status=none
    reason 'EINVAL /config/topics/t: '
    is "$(cat "$F")" "$was"
}

@test "a large document, many writes" {
    python3 -c 'import json
print(json.dumps({"version":1,"partitions":{str(i):[1+i%3] for i in range(20000)}}, indent=1))' >"$W/big"
    mkdir "$M/app"
    cat "$W/big" >"$M/app/copy"
    cmp "$W/big" "$M/app/copy"
    python3 -c 'print("{\"version\":1,\"config\":{" + "".join("\"unknown.key.%d\":\"%050d\"," % (i, i) for i in range(1, 5001))
        + "\"retention.ms\":\"9\"}}", end="")' >"$W/config"
    cat "$W/config" >"$F"
    is "$(value retention.ms)" 9
    is "$(value unknown.key.5000)" "$(printf %050d 5000)"
}

@test "key=value lines are stored as JSON; >> sets one key alone, an empty value removes it" {
    printf 'retention.ms=60000\ncleanup.policy=compact\n' >"$F"
    is "$(value retention.ms)" 60000
    is "$(value cleanup.policy)" compact
    echo retention.ms=70000 >>"$F"
    is "$(value retention.ms)" 70000
    is "$(value cleanup.policy)" compact
    echo cleanup.policy= >>"$F"
    is "$(field "$F" '.config | keys')" retention.ms
    echo segment.bytes=1048576 >>"$M/config/topics/fresh"
    is "$(field "$M/config/topics/fresh" '.config["segment.bytes"]')" 1048576
}

@test "what is only not so now is accepted" {
    topic t '{"0":[77]}'
    settle
    is "$(assigned t 0)" 77
    grep -q 77 "$M/.state/errors"
}
