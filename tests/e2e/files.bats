# The tree under ordinary tools.
load ../lib/mount

@test "the root shows Kafka's own paths, and .state is opened by name only" {
    for name in admin brokers cluster config consumers controller controller_epoch isr_change_notification \
        latest_producer_id_block log_dir_event_notification; do
        ls "$M" | grep -qx $name || fail "no $name"
    done
    is "$(ls -A "$M" | grep -c '^\.')" 0
    [ -d "$M/.state" ]
    is "$(ls "$M/brokers" | xargs)" "ids seqid topics"
    is "$(ls "$M/config" | xargs)" "brokers changes clients ips topics users"
    [ -d "$M/admin/delete_topics" ]
    [ -f "$M/controller" ]
    is "$(field "$M/cluster/id" .version)" 1
}

@test "find, grep -r, tar, diff -r, cp -r see the tree alone, and whole" {
    topic t '{"0":[1],"1":[2]}'
    put_line "$M/config/topics/t" '{"version":1,"config":{"retention.ms":"5"}}'
    settle
    is "$(find "$M/brokers/topics" -name state | wc -l)" 2
    is "$(find "$M" -path '*/.state*' | wc -l)" 0
    is "$(grep -rl retention.ms "$M")" "$M/config/topics/t"
    cp -r "$M" "$W/copy"
    diff -r "$M" "$W/copy"
    tar -C "$M" -cf "$W/tree.tar" .
    mkdir "$W/untarred"
    tar -C "$W/untarred" -xf "$W/tree.tar"
    diff -r "$M" "$W/untarred"
    diff -r "$M/brokers/topics/t" "$W/copy/brokers/topics/t"
    [ -s "$W/copy/brokers/topics/t/.data" ]
}

@test "mkdir, rmdir, rm, rm -r below a directory of one's own" {
    mkdir -p "$M/app/a/b/c"
    touch "$M/app/a/file"
    refused "Directory not empty" rmdir "$M/app/a"
    refused "Is a directory" rm "$M/app/a"
    refused "Not a directory" rmdir "$M/app/a/file"
    refused "$EEXIST" mkdir "$M/app/a"
    refused "$ENOENT" mkdir "$M/app/x/y"
    rmdir "$M/app/a/b/c"
    rm "$M/app/a/file"
    is "$(ls -A "$M/app/a")" b
    rm -r "$M/app"
    [ ! -e "$M/app" ]
}

@test "cp: into the tree, within it, and out of it" {
    echo hello >"$W/hello"
    mkdir -p "$M/app/d"
    cp "$W/hello" "$M/app/d/"
    cp "$M/app/d/hello" "$M/app/again"
    cp -p "$M/app/again" "$W/out"
    cmp "$W/hello" "$W/out"
    cp -r "$M/app/d" "$M/app/e"
    diff -r "$M/app/d" "$M/app/e"
    echo other | cp /dev/stdin "$M/app/again"
    is "$(cat "$M/app/again")" other
    dd if=/dev/urandom of="$W/big" bs=1k count=300 status=none
    cp "$W/big" "$M/app/big"
    cmp "$W/big" "$M/app/big"
}

@test "a copied topic works like the original" {
    topic t '{"0":[1,2]}'
    settle
    cp -r "$M/brokers/topics/t" "$M/brokers/topics/u" || true
    settle
    [[ $(leader u 0) =~ ^[12]$ ]]
    is "$(replicas_on_disk u)" "1/u-0 2/u-0"
    [ "$(field "$M/brokers/topics/u/.data" .topic_id)" != "$(field "$M/brokers/topics/t/.data" .topic_id)" ]
}

@test "JSON and numbers end with one newline, so read, while read and jq do what one expects" {
    read -r epoch <"$M/controller_epoch"
    is "$epoch" 1
    n=0
    while read -r _; do n=$((n + 1)); done <"$M/controller"
    is $n 1
    is "$(jq -r .brokerid "$M/controller")" 1
    is "$(tail -c 1 "$M/brokers/ids/1" | od -An -c | tr -d ' ')" '\n'
    is "$(stat -c %s "$M/brokers/ids/1")" "$(wc -c <"$M/brokers/ids/1")"
}

@test "rm -r of the whole mount empties what may be emptied and harms nothing else" {
    topic t '{"0":[1]}'
    mkdir -p "$M/app/x/y"
    settle
    rm -rf "$M"/* 2>/dev/null || true
    settle
    [ ! -e "$M/app" ]
    [ ! -e "$M/brokers/topics/t" ]
    [ -d "$M/brokers/topics" ]
    [ -d "$M/config/changes" ]
    # the brokers' own nodes went too: they are dead
    for b in 1 2 3; do start_broker $b; done
    is "$(cat "$M/controller_epoch")" "$(cat "$M/.state/controller/epoch")"
    topic u '{"0":[2]}'
    settle
    is "$(leader u 0)" 2
}
