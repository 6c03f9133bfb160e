# Nodes without a format: exactly the bytes written, as in a file on a disk. Null and empty data.
load ../lib/mount

setup() {
    new_cluster
    start_kafkafs
    mkdir "$M/app"
    F=$M/app/bytes
}
bytes() { od -An -c "$F" | tr -d ' \n'; }

@test "overwritten, appended, written in the middle, truncated, padded" {
    put "$F" '{"version":1,"long":"0123456789"}'
    put "$F" '{}'
    is "$(bytes)" '{}'
    is "$(stat -c %s "$F")" 2
    put_line "$F" x
    is "$(bytes)" 'x\n'
    put "$F" a
    printf b >>"$F"
    printf c >>"$F"
    is "$(bytes)" abc
    put "$F" abcdef
    printf ZZ | dd of="$F" bs=1 seek=2 conv=notrunc status=none
    is "$(bytes)" abZZef
    truncate -s 3 "$F"
    is "$(bytes)" abZ
    truncate -s 5 "$F"
    is "$(bytes)" 'abZ\0\0'
    : >"$F"
    is "$(stat -c %s "$F")" 0
}

@test "any bytes, up to the limit of a znode; beyond it EFBIG and the old value stays" {
    head -c 100000 /dev/urandom >"$W/random"
    cat "$W/random" >"$F"
    cmp "$W/random" "$F"
    head -c 900000 /dev/zero >"$F"
    is "$(stat -c %s "$F")" 900000
    put "$F" small
    refused "$EFBIG" dd if=/dev/zero of="$F" bs=1100000 count=1 status=none
    refused "$EFBIG" truncate -s 2M "$F"
    refused "$EFBIG" dd if=/dev/zero of="$F" bs=1 count=1 seek=4611686018427387904 conv=notrunc status=none
    settle
    [ "$(stat -c %s "$F")" -le 1048576 ]
}

@test "O_EXCL creates only once" {
    set -C
    put "$F" one
    run ! put "$F" two
    set +C
    is "$(cat "$F")" one
}

@test "each open, write and truncation is a change of its own, seen at once by others" {
    put "$F" old
    exec 7>"$F"
    is "$(stat -c %s "$F")" 0
    printf one >&7
    is "$(cat "$F")" one
    printf two >&7
    is "$(cat "$F")" onetwo
    exec 7>&-
}

@test "an open file reads one value" {
    seq 1 20000 >"$F"
    exec 7<"$F"
    read -r -u 7 first
    seq 30001 50000 >"$F"
    is "$(cat <&7 | tail -n 1)" 20000
    exec 7<&-
    is "$(head -n 1 "$F")" 30001
}

@test "a file is not another one that has its name: what still writes to it gets ESTALE" {
    echo old >"$F"
    exec 7>>"$F"
    rm "$F"
    refused "Stale file handle" bash -c 'echo more >&7'
    [ ! -e "$F" ]
    echo new >"$F"
    refused "Stale file handle" bash -c 'echo more >&7'
    is "$(cat "$F")" new
    exec 7>&-
    # moved away and replaced, as logs are
    exec 7>>"$F"
    mv "$F" "$F.1"
    echo newest >"$F"
    refused "Stale file handle" bash -c 'echo more >&7'
    exec 7>&-
    is "$(cat "$F" "$F.1")" $'newest\nnew'
}

@test "null data is a directory, empty data a file; .data sets it, and rm of .data sets null" {
    mkdir "$M/app/d"
    [ -d "$M/app/d" ]
    [ ! -e "$M/app/d/.data" ]
    is "$(ls -A "$M/app/d")" ""
    put "$M/app/d/.data" own
    is "$(ls -A "$M/app/d")" .data
    is "$(cat "$M/app/d/.data")" own
    rm "$M/app/d/.data"
    [ ! -e "$M/app/d/.data" ]
    [ -d "$M/app/d" ]
    : >"$M/app/empty"
    [ -f "$M/app/empty" ]
    stop_kafkafs
    start_kafkafs
    [ -d "$M/app/d" ]
    [ -f "$M/app/empty" ]
}

@test "a file that gets a child becomes a directory, and stays one" {
    put "$F" data
    refused "Not a directory" mkdir "$F/child"
    is "$(cat "$F")" data
}
