# --check, --dump and --load: the embedded store without a mount.
load ../lib/mount

setup() {
    new_cluster
    start_kafkafs
    topic t '{"0":[1,2],"1":[3]}'
    put_line "$M/config/topics/t" '{"version":1,"config":{"retention.ms":"5"}}'
    mkdir -p "$M/app/null"
    : >"$M/app/empty"
    printf 'a\\b\n\001\377' >"$M/app/bytes"
    put "$M/app/with space" x
    settle
}

@test "a healthy store checks, a mounted one is refused" {
    run ! "$KAFKAFS" --check "$C"
    stop_kafkafs
    run -0 "$KAFKAFS" --check "$C"
    run ! "$KAFKAFS" --check "$W/none"
    run ! "$KAFKAFS" --dump "$W/none"
}

@test "straight after umount: they wait until the daemon has ended" {
    umount "$M"
    run -0 "$KAFKAFS" --dump "$C"
    daemon_ends 0
    start_kafkafs
    fusermount3 -u "$M"
    run -0 "$KAFKAFS" --check "$C"
    daemon_ends 0
}

@test "dump and load give the same tree" {
    stop_kafkafs
    "$KAFKAFS" --dump "$C" >"$W/dump"
    is "$(grep -c . "$W/dump")" "$(wc -l <"$W/dump")" "lines"
    grep -q /brokers/topics/t "$W/dump"
    mkdir "$W/again"
    "$KAFKAFS" --load "$W/again" <"$W/dump"
    "$KAFKAFS" --dump "$W/again" >"$W/dump2"
    # ephemeral nodes are not loaded; their going counts as a change of their parents' children
    run ! grep -q ephemeralOwner "$W/dump2"
    diff <(grep -v ephemeralOwner= "$W/dump" | sed 's/ cversion=[0-9]*//') <(sed 's/ cversion=[0-9]*//' "$W/dump2")
    "$KAFKAFS" --check "$W/again"
    # mounted without brokers: the same files
    mkdir "$W/mnt2"
    rm "$C"/*.properties
    "$KAFKAFS" "$C" "$M" 3>&- 4>&-
    "$KAFKAFS" "$W/again" "$W/mnt2" 3>&- 4>&-
    diff -r "$M" "$W/mnt2"
    [ -f "$W/mnt2/app/empty" ]
    [ -d "$W/mnt2/app/null" ]
    umount "$M" "$W/mnt2"
}

@test "load is refused over a store that exists, and of text that is no dump" {
    stop_kafkafs
    "$KAFKAFS" --dump "$C" >"$W/dump"
    run ! "$KAFKAFS" --load "$C" <"$W/dump"
    run -0 "$KAFKAFS" --check "$C"
    mkdir "$W/again"
    run ! "$KAFKAFS" --load "$W/again" <<<"no dump"
    [ ! -e "$W/again/metadata/data.mdb" ]
    head -c 200 "$W/dump" >"$W/cut"
    run ! "$KAFKAFS" --load "$W/again" <"$W/cut"
    run ! "$KAFKAFS" --load "$W/again" </dev/null
    [ ! -e "$W/again/metadata/data.mdb" ]
}

@test "damage is found by --check, and a mount of it fails with one line" {
    stop_kafkafs
    store=$C/metadata/data.mdb
    [ -f "$store" ]
    cp "$store" "$W/good"
    # one byte of our value, in every page where it stands
    for at in $(grep -abo 'retention.ms' "$store" | cut -d: -f1); do
        printf 'X' | dd of="$store" bs=1 seek="$at" conv=notrunc status=none
    done
    run -1 "$KAFKAFS" --check "$C"
    [[ $output == */config/topics/t* ]]
    run ! --separate-stderr timeout 20 "$KAFKAFS" "$C" "$M"
    is "${#stderr_lines[@]}" 1
    for keep in 3 2 1; do
        head -c $((keep * 4096 - 100)) "$W/good" >"$store"
        run ! --separate-stderr timeout 20 "$KAFKAFS" "$C" "$M"
        is "${#stderr_lines[@]}" 1 "after a truncation to $keep pages"
        [ "$status" -lt 128 ]
    done
    cat "$W/good" >"$store"
    start_kafkafs
    is "$(leader t 0)" 1
}
