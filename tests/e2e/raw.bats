# -o raw: bytes and nodes exactly as ZooKeeper has them.
load ../lib/mount

setup() {
    new_cluster
    start_kafkafs -o raw
}
version() { getfattr --only-values -n user.zk.version "$1"; }

@test "no newline is added or stripped, nothing is checked" {
    is "$(tail -c 1 "$M/controller")" "}"
    put_line "$M/config/topics/t" 'not json at all'
    is "$(od -An -c "$M/config/topics/t" | tr -d ' \n')" 'notjsonatall\n'
    mkdir "$M/brokers/topics/empty"
    [ ! -e "$M/brokers/topics/empty/.data" ]
    put_line "$M/brokers/topics/empty/.data" '{'
    settle
    rm -r "$M/brokers/topics/empty"
}

@test "a new node comes with its data in one change" {
    mkdir "$M/app"
    put "$M/app/f" 'whole value'
    is "$(version "$M/app/f")" 0
    { printf one; printf two; } >"$M/app/g"
    is "$(version "$M/app/g")" 0
    is "$(cat "$M/app/g")" onetwo
    : >"$M/app/h"
    [ -f "$M/app/h" ]
    touch "$M/app/i"
    [ -f "$M/app/i" ]
    put "$M/app/f" second
    is "$(version "$M/app/f")" 1
}

@test "a topic by hand: the controller works as always" {
    put "$M/brokers/topics/t" '{"version":1,"partitions":{"0":[2,1]}}'
    settle
    is "$(leader t 0)" 2
    is "$(replicas_on_disk t)" "1/t-0 2/t-0"
    : >"$M/admin/delete_topics/t"
    settle
    gone t
}

@test "a broker is started by touch, and its registration stays as it made it" {
    rm "$M/brokers/ids/2"
    settle
    touch "$M/brokers/ids/2"
    settle
    is "$(version "$M/brokers/ids/2")" 1
    is "$(jq .version "$M/brokers/ids/2")" 5
    rm "$M/brokers/ids/2"
    python3 -c 'import os, sys; os.close(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT))' "$M/brokers/ids/2"
    settle
    is "$(version "$M/brokers/ids/2")" 1
}

@test "every node can be written and removed" {
    put "$M/cluster/id" '{"version":"1","id":"AAAAAAAAAAAAAAAAAAAAAA"}'
    rm "$M/cluster/id"
    rmdir "$M/latest_producer_id_block" || rm "$M/latest_producer_id_block"
    rmdir "$M/config/ips"
    [ ! -e "$M/config/ips" ]
}

@test "a backup, and its restoration" {
    put "$M/brokers/topics/t" '{"version":1,"partitions":{"0":[2,1]}}'
    put "$M/config/topics/t" '{"version":1,"config":{"retention.ms":"1"}}'
    settle
    cp -r "$M/config" "$M/brokers" "$W/" 2>/dev/null
    rm "$M/config/topics/t"
    cp -r "$W/config" "$M/"
    diff -r "$W/config" "$M/config"
}

@test "a controller or a broker cannot be planted; touch and rm act as always" {
    rm "$M/controller"
    settle
    epoch=$(cat "$M/controller_epoch")
    is "$epoch" 2
    kill_broker 1
    # a value is taken at the close, and so is refused there
    put "$W/broker" '{"version":1,"host":"x","port":1,"jmx_port":-1,"timestamp":"0"}'
    refused "$EPERM" cp "$W/broker" "$M/brokers/ids/1"
    kill_broker 2
    kill_broker 3
    put "$W/controller" '{"version":1,"brokerid":7,"timestamp":"0"}'
    refused "$EPERM" cp "$W/controller" "$M/controller"
    [ ! -e "$M/brokers/ids/1" ]
    [ ! -e "$M/controller" ]
    start_broker 1
    is "$(field "$M/controller" .brokerid)" 1
}

@test "the sequential prefixes act as always" {
    put "$M/config/changes/config_change_" 'anything'
    is "$(ls "$M/config/changes" | grep -cE '^config_change_[0-9]{10}$')" 1
}
