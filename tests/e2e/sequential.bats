# Sequential nodes: a prefix makes the next one, a full name makes that one.
load ../lib/mount

NOTE='{"version":2,"entity_path":"topics/t"}'

@test "the exact prefix makes the next node, ten digits, in ascending order" {
    for _ in 1 2 3; do put_line "$M/config/changes/config_change_" "$NOTE"; done
    mapfile -t names < <(ls "$M/config/changes")
    is ${#names[@]} 3
    for name in "${names[@]}"; do [[ $name =~ ^config_change_[0-9]{10}$ ]]; done
    is "$(printf '%s\n' "${names[@]}" | sort -u | wc -l)" 3
    is "$(cat "$M/config/changes/${names[0]}")" "$NOTE"
    [ ! -e "$M/config/changes/config_change_" ]
}

@test "the real name of the node just made is user.zk.path of what was opened" {
    exec 7>"$M/config/changes/config_change_"
    printf '%s' "$NOTE" >&7
    path=$(python3 -c 'import os; print(os.getxattr(7, "user.zk.path").decode())')
    exec 7>&-
    [[ $path =~ ^/config/changes/config_change_[0-9]{10}$ ]]
    is "$(cat "$M$path")" "$NOTE"
}

@test "a full name makes that node" {
    put_line "$M/config/changes/config_change_0000000042" "$NOTE"
    is "$(ls "$M/config/changes")" config_change_0000000042
    set -C
    run ! put_line "$M/config/changes/config_change_0000000042" "$NOTE"
    set +C
}

@test "the other sequential parents" {
    topic t '{"0":[1,2]}'
    settle
    # both are read by the controller, and removed
    put_line "$M/isr_change_notification/isr_change_" '{"version":1,"partitions":[{"topic":"t","partition":0}]}'
    put_line "$M/log_dir_event_notification/log_dir_event_" '{"version":1,"broker":2,"event":1}'
    settle
    is "$(ls "$M/isr_change_notification")$(ls "$M/log_dir_event_notification")" ""
    is "$(leader t 0)" 1
}

@test "four writers at once: every note becomes a node of its own" {
    writers=()
    for w in 1 2 3 4; do
        (for _ in {1..25}; do put_line "$M/config/changes/config_change_" "$NOTE"; done) 3>&- &
        writers+=($!)
    done
    for pid in "${writers[@]}"; do wait "$pid"; done
    is "$(ls "$M/config/changes" | wc -l)" 100
}
