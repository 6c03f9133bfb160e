# Many entries, many processes at once.
BATS_TEST_TIMEOUT=$((${BATS_TEST_TIMEOUT:-60} * 3))
load ../lib/mount

@test "5,000 entries: complete listings, each once, and one rm -rf" {
    mkdir -p "$M/app/list"
    (cd "$M/app/list" && seq 5000 | xargs touch)
    is "$(ls -f "$M/app/list" | grep -cE '^[0-9]+$')" 5000
    is "$(ls -f "$M/app/list" | sort | uniq -d)" ""
    is "$(find "$M/app/list" -type f | wc -l)" 5000
    is "$(stat -c %h "$M/app/list")" 2
    ls -l "$M/app/list" >"$W/ls"
    rm -rf "$M/app"
    [ ! -e "$M/app" ]
}

@test "a listing while entries go: nothing that stays is missed or doubled" {
    mkdir -p "$M/app/list"
    (cd "$M/app/list" && seq 3000 | xargs touch)
    (cd "$M/app/list" && seq 300 | xargs -n 20 rm) 3>&- &
    for _ in 1 2 3; do
        ls -f "$M/app/list" >"$W/ls"
        is "$(awk '$1 > 300' "$W/ls" | wc -l)" 2700
        is "$(sort "$W/ls" | uniq -d)" ""
    done
    wait $!
}

@test "a storm of mkdir and rmdir by many processes, with the controller at work in the same tree" {
    mkdir "$M/app"
    storm=()
    for w in {1..16}; do
        (
            for i in {1..20}; do mkdir "$M/app/$w-$i" "$M/brokers/topics/s$w-$i"; done
            for i in {1..20}; do rmdir "$M/app/$w-$i"; touch "$M/admin/delete_topics/s$w-$i"; done
        ) 3>&- &
        storm+=($!)
    done
    for i in {1..30}; do topic "t$i" '{"0":[1,2],"1":[2,3]}'; done
    for pid in "${storm[@]}"; do wait "$pid"; done
    settle
    is "$(ls -A "$M/app")" ""
    is "$(ls "$M/brokers/topics" | grep -c ^s)" 0
    for i in {1..30}; do is "$(leader "t$i" 1)" 2; done
}

@test "two hundred topics, a new controller, all deleted" {
    for i in {1..200}; do topic "t$i" '{"0":[1,2,3],"1":[2,3,1]}'; done
    settle
    rm "$M/controller"
    settle
    is "$(find "$M/brokers/topics" -name state | wc -l)" 400
    is "$(find "$D" -mindepth 2 -maxdepth 2 -type d | wc -l)" 1200
    (cd "$M/admin/delete_topics" && seq -f t%g 200 | xargs mkdir)
    settle
    is "$(ls "$M/brokers/topics")" ""
    is "$(find "$D" -mindepth 2 -maxdepth 2 -type d | wc -l)" 0
    [ "$(awk '/^VmRSS/ { print $2 }' "/proc/$DAEMON/status")" -lt 500000 ]
}
