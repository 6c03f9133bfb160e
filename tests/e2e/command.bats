# The command line: what is wrong is said in one line, with a non-zero status, and no mount is left.
load ../lib/mount

setup() { new_cluster; }

# wrong TEXT ARGUMENT...
wrong() {
    local text=$1 status=0
    shift
    timeout 20 "$KAFKAFS" "$@" >"$W/out" 2>"$W/err" </dev/null 3>&- || status=$?
    [[ $status -ne 0 && $status -ne 124 ]] || fail "status $status of kafkafs $*"
    is "$(wc -l <"$W/err")" 1 "lines on stderr of kafkafs $*"
    grep -qiE -- "$text" "$W/err" || fail "stderr: $(cat "$W/err"), want $text"
    run ! mountpoint -q "$M"
}

@test "-h and -V" {
    run -0 "$KAFKAFS" -h
    [[ $output == *SOURCE*MOUNTPOINT* ]]
    [[ $output == *--brokers* ]]
    run -0 "$KAFKAFS" -V
    [[ $output =~ [0-9]+\.[0-9]+ ]]
    local option
    for option in -h -V; do
        refused "No space left" bash -c '"$0" "$1" >/dev/full' "$KAFKAFS" $option
    done
}

@test "wrong options and arguments" {
    wrong usage
    wrong usage "$C"
    wrong . "$C" "$M" extra
    wrong no-such --no-such "$C" "$M"
    wrong nonsense -o nonsense "$C" "$M"
    wrong config_change_expiry -o config_change_expiry=soon "$C" "$M"
    wrong brokers --brokers=0 "$C" "$M"
    wrong brokers --brokers=x "$C" "$M"
}

@test "options of mount(8) and FUSE" {
    for o in defaults,relatime,lazytime,nodiratime,nofail,_netdev noatime,sync,allow_other,auto_unmount; do
        "$KAFKAFS" -o $o "$C" "$M" 3>&- 4>&-
        umount "$M"
    done
    wrong 'max_read' -o max_read=65536 "$C" "$M"
    wrong 'Invalid argument' -o context=nonsense "$C" "$M"
}

@test "wrong source or mount point" {
    wrong "$W/none" "$W/none" "$M"
    wrong "$W/none" "$C" "$W/none"
    : >"$W/file"
    wrong "$W/file" "$C" "$W/file"
    wrong . "$W/file" "$M"
    touch "$M/in-the-way"
    wrong "empty" "$C" "$M"
    rm "$M/in-the-way"
    wrong "$W/none.properties" -b "$W/none.properties" "$C" "$M"
}

@test "--brokers=N writes the files of a new cluster, and uses them" {
    mkdir "$W/fresh"
    "$KAFKAFS" --brokers=2 "$W/fresh" "$M" 3>&- 4>&-
    is "$(ls -d "$W"/fresh/*/ "$W"/fresh/*.properties | xargs -n 1 basename | xargs)" \
        "broker-1 broker-2 metadata server-1.properties server-2.properties"
    is "$(ls "$M/brokers/ids" | xargs)" "1 2"
    mkdir -p "$M"/brokers/topics/t/partitions/{0,1}
    settle
    is "$(ls -d "$W"/fresh/broker-[12]/t-[01] | wc -l)" 2
    umount "$M"
}

@test "a path with spaces, a comma, a backslash; relative paths; a link as the mount point" {
    for name in 'a b' 'a,b' 'a\\b' "ü'#=:"; do
        mkdir "$W/$name" "$W/m $name"
        (cd "$W" && "$KAFKAFS" --brokers=1 "$name" "m $name" 3>&- 4>&-)
        touch "$W/m $name/brokers/ids/2"
        mkdir -p "$W/m $name"/brokers/topics/t/partitions/{0,1}
        cat "$W/m $name/.state/settled"
        is "$(ls "$W/$name" | xargs)" "broker-1 broker-2 metadata server-1.properties server-2.properties"
        is "$(readlink "$W/m $name/.state/brokers/2/log_dirs/0")" "$W/$name/broker-2"
        umount "$W/m $name"
    done
    ln -s "$M" "$W/link"
    "$KAFKAFS" "$C" "$W/link/" 3>&- 4>&-
    mountpoint "$M"
    umount "$W/link"
}

@test "without -f the command returns when the mount answers and the controller is ready" {
    "$KAFKAFS" "$C" "$M" 3>&- 4>&-
    is "$(cat "$M/.state/controller/epoch")" 1
    is "$(ls "$M/brokers/ids" | xargs)" "1 2 3"
    umount "$M"
    # the process ends too: the source can be mounted again at once
    "$KAFKAFS" "$C" "$M" 3>&- 4>&-
    is "$(cat "$M/controller_epoch")" 2
    umount "$M"
}

@test "without a properties file the tree alone is mounted, until a broker is started" {
    mkdir "$W/bare"
    "$KAFKAFS" "$W/bare" "$M" 3>&- 4>&-
    is "$(cat "$M/.state/controller/epoch")" 0
    [ ! -e "$M/controller" ]
    touch "$M/brokers/ids/7"
    settle
    is "$(field "$M/controller" .brokerid)" 7
    umount "$M"
}

@test "-b hosts the brokers of the files named" {
    mkdir "$W/other"
    mv "$C/server-1.properties" "$W/one.properties"
    "$KAFKAFS" -b "$W/one.properties" --broker="$C/server-2.properties" "$W/other" "$M" 3>&- 4>&-
    is "$(ls "$M/brokers/ids" | xargs)" "1 2"
    umount "$M"
}

@test "-b with a relative path: its log dirs are beside it, and it is read anew" {
    mkdir "$W/other" "$W/etc"
    printf 'broker.id=5\nlog.dirs=logs\n' >"$W/etc/five.properties"
    (cd "$W" && "$KAFKAFS" -b etc/five.properties other "$M" 3>&- 4>&-)
    is "$(readlink "$M/.state/brokers/5/log_dirs/0")" "$W/etc/logs"
    rm "$M/brokers/ids/5"
    settle
    echo broker.rack=r >>"$W/etc/five.properties"
    touch "$M/brokers/ids/5"
    settle
    is "$(field "$M/brokers/ids/5" .rack)" r
    is "$(readlink "$M/.state/brokers/5/log_dirs/0")" "$W/etc/logs"
    is "$(ls "$W/other")" metadata
    umount "$M"
}
