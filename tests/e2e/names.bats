# Topic names and other names: Kafka's rule, ZooKeeper's rule, and the encoding of what cannot be a file name.
load ../lib/mount

long() { printf "$1%.0s" $(seq "$2"); }

@test "impossible topic names are refused, whichever way they come" {
    for name in 'a b' 'a:b' $'a\nb' 'ü' $'\xff' 'a%2Fb' 'a*' "$(long x 250)"; do
        run ! mkdir "$M/brokers/topics/$name"
        run ! topic "$name" '{"0":[1]}'
    done
    run ! mkdir "$M/brokers/topics/%2E"
    settle
    is "$(ls -A "$M/brokers/topics")" ""
    is "$(find "$D" -mindepth 2 -type d)" ""
}

@test "possible topic names: 249 characters, a leading dash, dots and underscores" {
    for name in "$(long x 249)" -rf a.b_c-1 __consumer_offsets; do
        topic "$name" '{"0":[1]}'
        settle
        is "$(leader "$name" 0)" 1 "leader of $name"
        [ -d "$D/1/$name-0" ]
    done
}

@test "names of 256 to 4,000 bytes are too long, to look up and to make" {
    for n in 256 1000 4000; do
        refused "$ENAMETOOLONG" mkdir "$M/consumers/$(long y $n)"
        refused "$ENAMETOOLONG" stat "$M/consumers/$(long y $n)"
    done
}

@test "so is a path of more than 4,095" {
    mkdir "$M/deep"
    cd "$M/deep"
    for i in {1..20}; do
        mkdir "$(long d 200)"
        cd "$(long d 200)"
    done
    refused "$ENAMETOOLONG" mkdir "$(long d 200)"
    refused "$ENAMETOOLONG" bash -c 'echo x >"$0"' "$(long f 100)"
    echo x >f
    cd /
    rm -r "$M/deep"
}

@test ".data, .state and what looks like an encoding are percent-encoded" {
    mkdir "$M/app"
    put "$M/app/%2Edata" one
    put "$M/app/%2Estate" two
    put "$M/app/%252Edata" three
    put "$M/app/100%" four
    is "$(ls -A "$M/app" | sort | xargs)" "%252Edata %2Edata %2Estate 100%"
    is "$(getfattr --only-values -n user.zk.path "$M/app/%2Edata")" /app/.data
    is "$(getfattr --only-values -n user.zk.path "$M/app/%252Edata")" /app/%2Edata
    is "$(getfattr --only-values -n user.zk.path "$M/app/100%")" /app/100%
    is "$(cat "$M"/app/%2E*)" onetwo
    # the directory's own data is a third thing
    put "$M/app/.data" own
    is "$(cat "$M/app/.data" "$M/app/%2Edata")" ownone
}

@test "names of any characters that ZooKeeper takes are shown as they are" {
    for name in 'with space' 'ümläut' '*?[]' "quote'\"" '-dash' '<default>' '~'; do
        mkdir "$M/consumers/$name"
        [ -d "$M/consumers/$name" ]
        ls "$M/consumers" | grep -qxF -- "$name"
    done
    refused "$EINVAL" mkdir "$M/consumers/$(printf 'a\001b')"
    refused "$EINVAL" mkdir "$M/consumers/$(printf 'a\377b')"
    refused "$EINVAL" mkdir "$M/consumers/"$'a\nb'
}
