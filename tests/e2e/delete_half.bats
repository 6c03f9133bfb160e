# Deletions that a new controller finds half done, and what happens to a topic while it is being deleted.
load ../lib/mount

all() { for b in 1 2 3; do "$1" $b; done; }

@test "partition nodes, or the whole topic node, are gone already" {
    topic t '{"0":[1,2],"1":[2,3]}'
    topic u '{"0":[1]}'
    put_line "$M/config/topics/u" '{"version":1,"config":{}}'
    settle
    all stop_broker
    rm -r "$M/brokers/topics/t/partitions/1" "$M/brokers/topics/u"
    touch "$M/admin/delete_topics/t" "$M/admin/delete_topics/u"
    all start_broker
    gone t
    [ ! -e "$M/brokers/topics/u" ]
    [ ! -e "$M/config/topics/u" ]
    [ ! -e "$M/admin/delete_topics/u" ]
}

@test "all partition states are gone" {
    topic t '{"0":[1,2]}'
    settle
    all kill_broker
    rm -r "$M/brokers/topics/t/partitions"
    touch "$M/admin/delete_topics/t"
    all start_broker
    gone t
}

@test "the directories are gone already" {
    topic t '{"0":[1,2]}'
    settle
    kill_broker 2
    rm -r "$D/2/t-0"
    delete_topic t
    start_broker 2
    gone t
}

@test "partitions added to a topic that is being deleted are taken back" {
    topic t '{"0":[1,3]}'
    settle
    kill_broker 3
    delete_topic t
    settle
    put_line "$M/brokers/topics/t/.data" '{"version":1,"partitions":{"0":[1,3],"1":[1]}}'
    settle
    is "$(field "$M/brokers/topics/t/.data" '.partitions | keys')" 0
    is "$(replicas_on_disk t)" 3/t-0
    start_broker 3
    gone t
}

@test "removing the request does not stop a deletion that has started" {
    topic t '{"0":[1,3]}'
    settle
    kill_broker 3
    delete_topic t
    settle
    rmdir "$M/admin/delete_topics/t"
    start_broker 3
    [ ! -e "$M/brokers/topics/t" ]
    is "$(replicas_on_disk t)" ""
}

@test "no half of the cluster matters: every broker bounced while ten topics wait" {
    for i in {0..9}; do topic t$i '{"0":[1,2,3]}'; done
    settle
    kill_broker 2
    touch "$M"/admin/delete_topics/t{0..9}
    settle
    for b in 3 1; do kill_broker $b; start_broker $b; done
    start_broker 2
    for i in {0..9}; do gone t$i; done
}
