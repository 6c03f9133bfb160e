# stat, extended attributes, modes; links and devices.
load ../lib/mount

zk() { getfattr --only-values -n "user.zk.$1" "$2"; }

@test "extended attributes are the znode's stat" {
    mkdir "$M/app"
    put "$M/app/f" one
    touch "$M/app/g"
    is "$(zk version "$M/app/g")" 0
    is "$(zk czxid "$M/app/g")" "$(zk mzxid "$M/app/g")"
    is "$(zk dataLength "$M/app/f")" 3
    created=$(zk czxid "$M/app/f")
    put "$M/app/f" three
    [ "$(zk version "$M/app/f")" -gt 0 ]
    is "$(zk dataLength "$M/app/f")" 5
    is "$(zk czxid "$M/app/f")" "$created"
    [ "$(zk mzxid "$M/app/f")" != "$created" ]
    is "$(zk numChildren "$M/app")" 2
    is "$(zk cversion "$M/app")" 2
    is "$(zk path "$M/app/g")" /app/g
    for name in version cversion czxid mzxid pzxid ctime mtime ephemeralOwner dataLength numChildren; do
        getfattr -d -m user.zk "$M/app/f" 2>/dev/null | grep -q "user.zk.$name=" || fail "no user.zk.$name"
    done
    [[ $(zk ephemeralOwner "$M/brokers/ids/1") != "$(zk ephemeralOwner "$M/app/f")" ]]
}

@test "extended attributes are read-only" {
    refused "$EPERM" setfattr -n user.zk.version -v 9 "$M/controller"
    run ! setfattr -n user.mine -v 9 "$M/controller"
    run ! setfattr -n security.mine -v 9 "$M/controller"
    run ! setfattr -x user.zk.version "$M/controller"
}

@test "times and sizes of stat" {
    mkdir "$M/app"
    put "$M/app/f" 12345
    is "$(stat -c %s "$M/app/f")" 5
    is "$(stat -c %Y "$M/app/f")" "$(($(zk mtime "$M/app/f") / 1000))"
    before=$(stat -c %Y.%y "$M/app")
    touch "$M/app/g"
    [ "$(stat -c %Y.%y "$M/app")" != "$before" ]
    mkdir "$M"/app/{d,e}
    is "$(stat -c %h "$M/app")" 4
    is "$(stat -c %h "$M/app/f")" 1
    is "$(stat -f -c %T "$M")" fuseblk || is "$(stat -f -c %t "$M")" 65735546
}

@test "touch and chmod of what exists change no data and cause no event" {
    mkdir "$M/app"
    put "$M/app/f" x
    topic t '{"0":[1]}'
    put_line "$M/config/topics/t" '{"version":1,"config":{}}'
    settle
    for f in "$M/app/f" "$M/config/topics/t" "$M/controller" "$M/brokers/topics/t" "$M/brokers/topics/t/.data"; do
        v=$(zk mzxid "$f")
        unchanged touch "$f"
        unchanged chmod 600 "$f"
        is "$(zk mzxid "$f")" "$v" "mzxid of $f"
    done
    is "$(cat "$M/app/f")" x
}

@test "owner and modes are those of the mount; secrets are the owner's" {
    is "$(stat -c %u:%g "$M" "$M/controller" "$M/brokers" | sort -u)" "$(id -u):$(id -g)"
    is "$(stat -c %a "$M/brokers")" 755
    is "$(stat -c %a "$M/controller")" 644
    is "$(stat -c %a "$M/config/users" "$M/config/brokers" | sort -u)" 700
}

@test "links and devices are refused" {
    mkdir "$M/app"
    put "$M/app/f" x
    refused "$EPERM" ln -s /etc/passwd "$M/app/l"
    refused "$EPERM" ln "$M/app/f" "$M/app/l"
    refused "$EPERM" mkfifo "$M/app/l"
    refused "$EPERM" mknod "$M/app/l" c 1 3
    is "$(ls "$M/app")" f
}

@test "statfs answers" {
    df "$M"
    df -i "$M"
}
