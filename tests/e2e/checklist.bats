# The rest of the security checklist (tests/security.md): what security.bats, names.bats, users.bats and others leave.
load ../lib/mount

setup() {
    new_cluster
    case $BATS_TEST_DESCRIPTION in
    "S3"* | "S23"* | "S30"*) ;;
    "S11"*) sed -i '$a log.segment.delete.delay.ms=60000' "$C"/server-*.properties && start_kafkafs ;;
    "S12"*) start_kafkafs -o raw ;;
    "S18"*) start_kafkafs -o allow_other ;;
    *) start_kafkafs ;;
    esac
}

@test "S3: names that cannot be file names are refused with the line's number, and the others can be listed" {
    long=$(printf 'x%.0s' {1..300})
    for name in . .. '' 'a/../b' 'nul\x00' 'bad\xff' 'tab\x09'; do
        printf '/\n/app\n/app/%s\n' "$name" >"$W/text"
        run ! "$KAFKAFS" --load "$C" <"$W/text"
        [[ $output == *"line 3"* ]] || fail "$name: $output"
        [ ! -e "$C/metadata/data.mdb" ]
    done
    # longer than a file's name may be, but a znode's: not to be seen, and in nobody's way
    printf '/\n/app\n/app/.data data=one\n/app/.state data=two\n/app/%%2Edata data=three\n/app/a\\x20b data=four\n/app/%s\n' "$long" |
        "$KAFKAFS" --load "$C"
    start_kafkafs
    is "$(ls -A "$M/app" | LC_ALL=C sort | tr '\n' '|')" '%252Edata|%2Edata|%2Estate|a b|'
    is "$(cat "$M/app/%252Edata" "$M/app/%2Edata" "$M/app/%2Estate" "$M/app/a b")" threeonetwofour
    stop_kafkafs
    is "$("$KAFKAFS" --dump "$C" | grep -c "^/app/$long ")" 1
}

@test "S7: a directory under a replica's name that holds other things is set aside, whole" {
    topic t '{"0":[1,2]}'
    settle
    mv "$D/1/t-0" "$W/real"
    mkdir "$D/1/t-0"
    echo precious >"$D/1/t-0/thesis.txt"
    delete_topic t
    settle
    gone_but_for=$(cd "$D/1" && find . -name thesis.txt)
    [[ $gone_but_for == ./t-0*/thesis.txt ]] || fail "found: $gone_but_for"
    is "$(cat "$D/1/$gone_but_for")" precious
    is "$(replicas_on_disk t | grep -c 2/)" 0
}

@test "S10: many files in a replica directory, with few descriptors, while others are served" {
    topic t '{"0":[1]}'
    settle
    (cd "$D/1/t-0" && seq -f '%020.0f.log' 1000000 1004999 | xargs touch)
    open_before=$(ls "/proc/$DAEMON/fd" | wc -l)
    delete_topic t
    [ "$(ls "/proc/$DAEMON/fd" | wc -l)" -le $((open_before + 20)) ]
    topic u '{"0":[2]}'
    settle
    is "$(leader u 0)" 2
    gone t
}

@test "S11: what is renamed away is never a live name, and goes after a death" {
    topic t '{"0":[1,2]}'
    settle
    delete_topic t
    settle
    topic t '{"0":[1,2]}'
    settle
    is "$(cd "$D" && ls -d [12]/t-0.*-delete | wc -l)" 2
    kill_kafkafs
    sed -i s/delay.ms=60000/delay.ms=100/ "$C"/server-*.properties
    start_kafkafs
    while compgen -G "$D/*/t-0.*-delete" >/dev/null; do sleep 0.1; done
    is "$(replicas_on_disk t)" "1/t-0 2/t-0"
    is "$(leader t 0)" 1
}

@test "S12: values that never end are bounded, all together too, and hold up nobody" {
    # raw: a value is kept until its file is closed
    mkdir "$M/app"
    cat >"$W/hoard.py" <<'P'
import errno, os, sys
m, held, refused, value = sys.argv[1], [], None, b'x' * 900000
while not refused and len(held) < 400:
    held.append(os.open(f'{m}/app/hoard{len(held)}', os.O_CREAT | os.O_WRONLY))
    try:
        for at in range(0, len(value), 100000):
            os.write(held[-1], value[at:at + 100000])
    except OSError as e:
        refused = e.errno
assert refused in (errno.ENOSPC, errno.ENOMEM), refused
os.mkdir(f'{m}/app/others')
print('held', flush=True)
sys.stdin.read()
os._exit(0)
P
    python3 "$W/hoard.py" "$M" < <(until [ -e "$W/enough" ]; do sleep 0.05; done) >"$W/held" 3>&- &
    until grep -q held "$W/held"; do kill -0 $!; sleep 0.05; done
    touch "$M/admin/delete_topics/nothing"
    settle
    [ "$(awk '/^VmHWM/ { print $2 }' "/proc/$DAEMON/status")" -lt 600000 ]
    touch "$W/enough"
    wait $!
    # what was held is free again
    head -c 900000 /dev/zero >"$M/app/f"
    is "$(stat -c %s "$M/app/f")" 900000
}

@test "S13: big and foreign attributes are not stored" {
    big=$(head -c 65000 /dev/zero | tr '\0' a)
    for name in user.big user.zk.data trusted.x security.capability system.posix_acl_access; do
        run ! setfattr -n $name -v "$big" "$M/brokers"
    done
    run ! setcap cap_net_raw+ep "$M/controller"
    is "$(getfattr -d -m - "$M/brokers" 2>/dev/null | grep -c 'aaaa')" 0
}

@test "S14: flat bombs, twins, what follows, NUL in a string: soon, and without much memory" {
    topic t '{"0":[1]}'
    put_line "$M/config/topics/t" '{"version":1,"config":{"retention.ms":"1000"}}'
    settle
    base=$(awk '/^VmHWM/ { print $2 }' "/proc/$DAEMON/status")
    python3 - "$M/config/topics/t" <<'P'
import errno, os, sys, time
def refused(text):
    fd = os.open(sys.argv[1], os.O_WRONLY | os.O_TRUNC)
    try:
        started = time.process_time()
        for at in range(0, len(text), 131072):
            os.write(fd, text[at:at + 131072])
        raise SystemExit(f'{text[:60]} was taken')
    except OSError as e:
        assert e.errno == errno.EINVAL, (text[:60], e)
    finally:
        os.close(fd)
flat = b'[' + b'1,' * 480000 + b'1]'
refused(flat + b'\n')
refused(b'{"version":1,"config":{' + b','.join(b'"k%d":"v"' % (i // 2) for i in range(60000)) + b'}}\n')
refused(b'{"version":1,"config":{"retention.ms":"1"}} x\n')
refused(b'{"version":1,"config":{"retention.ms":"1"}}{}\n')
refused(b'{"version":1,"config":{"retention.ms":"1\\u00002"}}\n')
refused(b'{"version":NaN,"config":{}}\n')
refused(b'{"version":1,"config":{"retention.ms":"9"}\x00}\n')
P
    is "$(field "$M/config/topics/t" '.config["retention.ms"]')" 1000
    [ "$(awk '/^VmHWM/ { print $2 }' "/proc/$DAEMON/status")" -lt $((base + 100000)) ]
}

@test "S18: root of a user namespace is still the user who made it" {
    runuser -u nobody -- unshare -Ur true || skip "no user namespaces for ordinary users here"
    local dir=$W
    while [ "$dir" != / ] && [ ! -k "$dir" ]; do
        chmod o+x "$dir"
        dir=$(dirname "$dir")
    done
    runuser -u nobody -- unshare -Ur id -u | grep -qx 0
    refused "$EACCES" runuser -u nobody -- unshare -Ur ls "$M/config/users"
    refused "$EACCES" runuser -u nobody -- unshare -Ur rm "$M/controller"
    refused "$EACCES" runuser -u nobody -- unshare -Ur mkdir "$M/brokers/topics/t"
    is "$(cat "$M/controller_epoch")" 1
}

@test "S20: a store that others may write, or behind a directory that they may, is not opened" {
    stop_kafkafs
    for what in metadata/data.mdb metadata/lock metadata; do
        mode=$(stat -c %a "$C/$what")
        chmod 777 "$C/$what"
        run ! timeout 20 "$KAFKAFS" "$C" "$M"
        [[ $output == *metadata* ]] || fail "$output"
        chmod "$mode" "$C/$what"
    done
    start_kafkafs
}

@test "S22: 2,000 files held by one process: another one is served, and the store is not held" {
    mkdir "$M/app"
    put "$M/app/f" data
    python3 - "$M/app" 3>&- >"$W/held" <<'P' &
import os, resource, signal, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
held = [os.open(f'{sys.argv[1]}/f', os.O_RDWR) for _ in range(1000)]
held += [os.open(sys.argv[1], os.O_RDONLY) for _ in range(1000)]
for fd in held[:1000]: os.read(fd, 2)
for fd in held[1000:]: os.listdir(fd)
print('held', flush=True)
signal.pause()
P
    holder=$!
    until grep -q held "$W/held"; do sleep 0.05; done
    for i in {1..300}; do head -c 20000 /dev/zero >"$M/app/g"; done
    is "$(stat -c %s "$M/app/g")" 20000
    # pages of old values are used again: nobody keeps them
    [ "$(stat -c %s "$C/metadata/data.mdb")" -lt 4000000 ]
    kill $holder
    wait $holder || true
}

@test "S23: 64 MiB of memory: it starts and works, or is killed whole, and all is there" {
    group=/sys/fs/cgroup/memory/kafkafs-test.$$
    mkdir "$group" 2>/dev/null || skip "no memory cgroups (v1) here"
    echo $((64 << 20)) >"$group/memory.limit_in_bytes" || { rmdir "$group"; skip "no limit can be set"; }
    KAFKAFS_WRAPPER=(bash -c "echo \$\$ >'$group/cgroup.procs' && exec \"\$@\"" --)
    start_kafkafs
    for i in {1..20}; do topic "t$i" '{"0":[1,2,3]}'; done
    mkdir "$M/app"
    for i in {1..10}; do head -c 500000 /dev/zero >"$M/app/$i" || break; done 2>"$W/err"
    n=$(ls "$M/app" 2>/dev/null | wc -l)
    ls "$M" >/dev/null 2>&1 || { wait "$DAEMON" || true; DAEMON=; }
    [ -n "$DAEMON" ] || { KAFKAFS_WRAPPER=(); start_kafkafs; }
    settle
    for i in {1..20}; do is "$(leader "t$i" 0)" 1; done
    [ "$(ls "$M/app" | wc -l)" -ge "$n" ]
    stop_kafkafs
    rmdir "$group"
}

@test "S29: umount -l or an abort of the connection during deletions: it ends, the next mount goes on" {
    mkdir "$W/outside"
    echo precious >"$W/outside/f"
    for way in detach abort; do
        for i in {1..30}; do topic "$way$i" '{"0":[1,2,3],"1":[2,3,1]}'; done
        settle
        ln -s "$W/outside" "$D/1/${way}1-0/link"
        mkdir "$M"/admin/delete_topics/"$way"{1..30}
        if [ $way = detach ]; then
            umount -l "$M"
            daemon_ends 0
        else
            connection=/sys/fs/fuse/connections/$(($(stat -c %d "$M") & 0xff | ($(stat -c %d "$M") >> 12 & 0xfff00)))
            [ -w "$connection/abort" ] || mount -t fusectl none /sys/fs/fuse/connections
            echo 1 >"$connection/abort"
            wait "$DAEMON" || true
            DAEMON=
        fi
        start_kafkafs
        for i in 1 15 30; do gone "$way$i"; done
        is "$(ls "$M/brokers/topics" "$M/admin/delete_topics" | grep -c "$way")" 0
        is "$(cat "$W/outside/f")" precious
    done
}

@test "S30: the clock jumps a day ahead and two back: timers, sessions and order do not care" {
    faketime=$(ls /usr/lib/*/faketime/libfaketimeMT.so.1 2>/dev/null) || skip "no libfaketime"
    sed -i '$a log.segment.delete.delay.ms=1000' "$C"/server-*.properties
    echo +0 >"$W/clock"
    KAFKAFS_WRAPPER=(env LD_PRELOAD="$faketime" FAKETIME_TIMESTAMP_FILE="$W/clock" FAKETIME_NO_CACHE=1
        DONT_FAKE_MONOTONIC=1 FAKETIME_DONT_FAKE_MONOTONIC=1)
    start_kafkafs
    mkdir "$M/app"
    zxid=0 n=0
    for clock in +1d -2d +0 -30d +400d; do
        echo "$clock" >"$W/clock.new"
        mv "$W/clock.new" "$W/clock"
        put "$M/app/f" "$clock"
        # the daemon does see another time
        year=$(date -d "@$(stat -c %Y "$M/app/f")" +%s)
        skew=$((year - $(date +%s)))
        case $clock in
        +0) [ ${skew#-} -lt 100 ] ;;
        *) [ ${skew#-} -gt 80000 ] || fail "the clock did not jump: $skew" ;;
        esac
        next=$(getfattr --only-values -n user.zk.mzxid "$M/app/f")
        [ "$next" -gt "$zxid" ]
        zxid=$next
        topic "t$n" '{"0":[1,2,3]}'
        settle
        is "$(leader "t$n" 0)" 1
        is "$(ls "$M/brokers/ids" | xargs)" "1 2 3"
        echo stopped >"$M/.state/brokers/3/state"
        until [ "$(broker_state 3)" = stopped ]; do sleep 0.05; done
        start_broker 3
        is "$(in_sync "t$n" 0)" 1,2,3
        delete_topic "t$n"
        settle
        # not a day later: the limit is that of the test
        while compgen -G "$D/*/t$n-0*" >/dev/null; do sleep 0.1; done
        n=$((n + 1))
    done
    is "$(cat "$M/controller_epoch")" 1
    stop_kafkafs
}
