# The security checklist, as far as it concerns the disks: a deletion never leaves the log dir, never follows a link,
# never crosses a mount, never takes what is not Kafka's. (Names: names.bats; bombs: refused.bats; users: users.bats.)
load ../lib/mount

setup() {
    new_cluster
    start_kafkafs
    mkdir "$W/outside"
    echo precious >"$W/outside/f"
    topic t '{"0":[1,2]}'
    settle
}
precious() { is "$(cat "$W/outside/f")" precious; }

@test "S4: a link planted inside a replica directory is removed as a link" {
    ln -s "$W/outside" "$D/1/t-0/link"
    ln -s "$W/outside/f" "$D/1/t-0/00000000000000000001.log"
    delete_topic t
    settle
    precious
    # gone, or kept as foreign: never followed
    [ ! -e "$D/1/t-0" ] || [ -L "$D/1/t-0/link" ]
}

@test "S4: a link in place of a replica directory is not followed" {
    mv "$D/1/t-0" "$W/real"
    ln -s "$W/outside" "$D/1/t-0"
    delete_topic t
    settle
    precious
    is "$(ls "$W/outside")" f
}

@test "S5: the log dir replaced by a link: nothing is touched behind it" {
    mv "$D/1" "$W/moved"
    mkdir -p "$W/elsewhere/t-0"
    echo precious >"$W/elsewhere/t-0/f"
    ln -s "$W/elsewhere" "$D/1"
    delete_topic t
    settle
    is "$(cat "$W/elsewhere/t-0/f")" precious
}

@test "S6: a mount inside a replica directory is not crossed" {
    mkdir "$D/1/t-0/inner"
    mount --bind "$W/outside" "$D/1/t-0/inner"
    delete_topic t
    settle
    precious
    [[ $(cat "$M/.state/topics/t/deletion") == "ineligible: "* ]]
    [ -e "$M/admin/delete_topics/t" ]
}

@test "S9: links, sockets, pipes and devices in a replica directory are removed as names" {
    ln "$W/outside/f" "$D/1/t-0/hard"
    mkfifo "$D/1/t-0/pipe"
    mknod "$D/1/t-0/null" c 1 3
    python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$D/1/t-0/s" 2>/dev/null ||
        (cd "$D/1/t-0" && python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("s")')
    delete_topic t
    settle
    precious
    [ ! -e "$D/1/t-0/hard" ] || [ -e "$M/admin/delete_topics/t" ]
    precious
}

@test "S10: a deep tree in a replica directory ends in success or in a reason, not in a crash" {
    (cd "$D/1/t-0" && mkdir -p "$(printf 'd/%.0s' {1..300})")
    delete_topic t
    settle
    [ ! -e "$D/1/t-0" ] || [[ $(cat "$M/.state/topics/t/deletion") == "ineligible: "* ]]
    is "$(replicas_on_disk t | grep -c 2/)" 0
}

@test "S20: a store that is a link, or belongs to another user, is not opened" {
    stop_kafkafs
    mv "$C/metadata" "$W/store"
    ln -s "$W/store" "$C/metadata"
    run ! timeout 20 "$KAFKAFS" "$C" "$M"
    rm "$C/metadata"
    mv "$W/store" "$C/metadata"
    is "$(stat -c %a "$C/metadata/data.mdb")" 600
    chown nobody "$C/metadata/data.mdb"
    run ! timeout 20 "$KAFKAFS" "$C" "$M"
    chown "$(id -u)" "$C/metadata/data.mdb"
    start_kafkafs
    is "$(leader t 0)" 1
}

@test "S22: 900 open files and directories held" {
    mkdir "$M/app"
    touch "$M/app/f"
    python3 - "$M/app" <<'P'
import os, sys
held = [os.open(sys.argv[1] + "/f", os.O_RDWR) for i in range(500)] + [os.open(sys.argv[1], os.O_RDONLY) for i in range(400)]
for fd in held[500:]: os.listdir(fd)
os.mkdir(sys.argv[1] + "/while-held")
P
    topic u '{"0":[1]}'
    settle
    is "$(leader u 0)" 1
}
