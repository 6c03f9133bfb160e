# Broker configuration: per broker over cluster-wide over the file over Kafka's defaults.
load ../lib/mount

setup() {
    new_cluster num.io.threads=2 log.retention.hours=24 password.encoder.secret=topsecret
    start_kafkafs
    topic t '{"0":[1,2]}'
    settle
}
config() { put_line "$M/config/brokers/$1" "{\"version\":1,\"config\":$2}"; }
notify() {
    put_line "$M/config/changes/config_change_" "{\"version\":2,\"entity_path\":\"$1\"}"
    settle
}
# broker B KEY, topic_key B KEY: value and source.
broker() { echo "$(sed -n "s/^$2=//p" "$M/.state/brokers/$1/config/brokers/$1") $(sed -n "s/^$2=//p" "$M/.state/brokers/$1/config_source/brokers/$1")"; }
topic_key() { echo "$(sed -n "s/^$2=//p" "$M/.state/brokers/$1/config/topics/t") $(sed -n "s/^$2=//p" "$M/.state/brokers/$1/config_source/topics/t")"; }

@test "the levels, and topics that fall back to them" {
    is "$(broker 1 num.io.threads)" "2 STATIC_BROKER_CONFIG"
    is "$(topic_key 1 retention.ms)" "86400000 DEFAULT_CONFIG"
    config '<default>' '{"log.retention.ms":"5000","num.io.threads":"4"}'
    is "$(broker 1 num.io.threads)" "2 STATIC_BROKER_CONFIG"
    notify 'brokers/<default>'
    config 2 '{"num.io.threads":"3"}'
    notify brokers/2
    is "$(broker 1 num.io.threads)" "4 DYNAMIC_DEFAULT_BROKER_CONFIG"
    is "$(broker 2 num.io.threads)" "3 DYNAMIC_BROKER_CONFIG"
    is "$(topic_key 1 retention.ms)" "5000 DYNAMIC_DEFAULT_BROKER_CONFIG"
    grep -qx log.retention.ms=5000 "$M/.state/brokers/3/config/brokers/<default>"
    config 2 '{}'
    notify brokers/2
    is "$(broker 2 num.io.threads)" "4 DYNAMIC_DEFAULT_BROKER_CONFIG"
    config '<default>' '{"log.segment.bytes":"9000"}'
    notify 'brokers/<default>'
    is "$(topic_key 1 retention.ms)" "86400000 DEFAULT_CONFIG"
    is "$(topic_key 1 segment.bytes)" "9000 DYNAMIC_DEFAULT_BROKER_CONFIG"
}

@test "an unrelated default leaves a topic's own values alone" {
    echo retention.ms=42 >"$M/config/topics/t"
    notify topics/t
    for value in 1000 2000; do
        config '<default>' "{\"log.segment.bytes\":\"$value\"}"
        notify 'brokers/<default>'
        is "$(topic_key 2 retention.ms)" "42 DYNAMIC_TOPIC_CONFIG"
    done
}

@test "wrong values are refused; read-only keys are kept, ignored and said" {
    refused "$EINVAL" config 1 '{"num.io.threads":"many"}'
    reason num.io.threads
    refused "$EINVAL" config 1 '{"log.retention.ms":"0"}'
    refused "$EINVAL" bash -c "echo max.connections.per.ip.overrides=127.0.0.1 >>'$M/config/brokers/1'"
    reason 'max.connections.per.ip.overrides must be host:count'
    refused "$EINVAL" config nobody '{}'
    config 1 '{"broker.rack":"r9","num.io.threads":"4"}'
    notify brokers/1
    is "$(broker 1 broker.rack)" " DEFAULT_CONFIG"
    is "$(broker 1 num.io.threads)" "4 DYNAMIC_BROKER_CONFIG"
    grep -q 'broker 1: broker.rack: is read-only' "$M/.state/errors"
}

@test "one bad value in the tree drops only itself, also at the start" {
    stop_kafkafs
    start_kafkafs -o raw
    put "$M/config/brokers/1" '{"version":1,"config":{"log.retention.ms":"7000","num.io.threads":"abc"}}'
    notify brokers/1
    is "$(broker 1 num.io.threads)" "2 STATIC_BROKER_CONFIG"
    is "$(broker 1 log.retention.ms)" "7000 DYNAMIC_BROKER_CONFIG"
    kill_broker 1
    start_broker 1
    is "$(broker_state 1)" running
    is "$(broker 1 log.retention.ms)" "7000 DYNAMIC_BROKER_CONFIG"
}

@test "the start reads without a notification" {
    config 1 '{"log.cleaner.threads":"2"}'
    is "$(broker 1 log.cleaner.threads)" "1 DEFAULT_CONFIG"
    kill_broker 1
    start_broker 1
    is "$(broker 1 log.cleaner.threads)" "2 DYNAMIC_BROKER_CONFIG"
}

@test "a running thread pool is halved or doubled at most" {
    config 1 '{"num.io.threads":"64"}'
    notify brokers/1
    is "$(broker 1 num.io.threads | cut -d' ' -f1)" 2
    grep -q 'num.io.threads: 64 threads, where 2 run' "$M/.state/errors"
}

@test "a change that cannot be is refused as a whole, and keeps others out until it is mended" {
    config 1 '{"num.io.threads":"64","log.retention.ms":"7000","max.connections":"5"}'
    notify brokers/1
    is "$(broker 1 max.connections)" "2147483647 DYNAMIC_BROKER_CONFIG"
    is "$(broker 1 log.retention.ms)" " DYNAMIC_BROKER_CONFIG"
    is "$(topic_key 1 retention.ms)" "86400000 DYNAMIC_BROKER_CONFIG"
    config '<default>' '{"min.insync.replicas":"3"}'
    notify 'brokers/<default>'
    is "$(broker 1 min.insync.replicas)" "1 DYNAMIC_DEFAULT_BROKER_CONFIG"
    is "$(broker 2 min.insync.replicas)" "3 DYNAMIC_DEFAULT_BROKER_CONFIG"
    echo num.io.threads=4 >>"$M/config/brokers/1"
    notify brokers/1
    is "$(broker 1 max.connections)" "5 DYNAMIC_BROKER_CONFIG"
    is "$(broker 1 min.insync.replicas)" "3 DYNAMIC_DEFAULT_BROKER_CONFIG"
    is "$(topic_key 1 retention.ms)" "7000 DYNAMIC_BROKER_CONFIG"
}

@test "defaults of the logs that forbid each other are refused, and a topic keeps what it has" {
    config '<default>' '{"log.local.retention.ms":"86400000","max.connections":"7"}'
    notify 'brokers/<default>'
    is "$(topic_key 1 local.retention.ms)" "86400000 DYNAMIC_DEFAULT_BROKER_CONFIG"
    config '<default>' '{"log.local.retention.ms":"86400001","max.connections":"8"}'
    notify 'brokers/<default>'
    is "$(topic_key 1 local.retention.ms)" "86400000 DYNAMIC_DEFAULT_BROKER_CONFIG"
    is "$(broker 1 max.connections)" "7 DYNAMIC_DEFAULT_BROKER_CONFIG"
    grep -q 'log.local.retention.ms: must not be above log.retention.ms; the whole change is refused' "$M/.state/errors"
}

@test "a listener has network threads of its own" {
    config 1 '{"listener.name.plaintext.num.network.threads":"6","num.network.threads":"64"}'
    notify brokers/1
    is "$(broker 1 num.network.threads)" "64 DYNAMIC_BROKER_CONFIG"
    config 1 '{"listener.name.plaintext.num.network.threads":"13"}'
    notify brokers/1
    grep -q 'listener.name.plaintext.num.network.threads: 13 threads, where 6 run' "$M/.state/errors"
}

@test "a file that Kafka would not start with: that broker fails and says why" {
    kill_broker 2
    broker_file 2 log.retention.hours=0 >"$C/server-2.properties"
    refused "$EINVAL" touch "$M/brokers/ids/2"
    is "$(broker_state 2)" "failed: $C/server-2.properties: log.retention.hours: must be unlimited (-1) or, greater than or equal to 1"
    is "$(ls "$M/brokers/ids" | xargs)" "1 3"
    broker_file 2 >"$C/server-2.properties"
    start_broker 2
    is "$(broker_state 2)" running
}

@test "secrets are hidden everywhere" {
    config 1 '{"listener.name.x.ssl.key.password":"keyFactoryAlgorithm:a,cipherAlgorithm:b,keyLength:128,salt:c2VjcmV0,iterations:1,encryptedPassword:c2VjcmV0,passwordLength:6,initializationVector:c2VjcmV0"}'
    notify brokers/1
    is "$(broker 1 listener.name.x.ssl.key.password)" "[hidden] DYNAMIC_BROKER_CONFIG"
    is "$(broker 1 password.encoder.secret)" "[hidden] STATIC_BROKER_CONFIG"
    run -1 grep -r -e c2VjcmV0 -e topsecret "$M/.state/brokers/1/config" "$M/.state/events" "$M/.state/errors"
}

@test "unclean election is allowed by the cluster's default, at once" {
    kill_broker 2
    kill_broker 1
    start_broker 2
    is "$(leader t 0)" -1
    config '<default>' '{"unclean.leader.election.enable":"true"}'
    notify 'brokers/<default>'
    is "$(leader t 0)" 2
}

@test "unclean election waits for the notification, and is not allowed by a change that is refused" {
    topic u '{"0":[2,3]}'
    settle
    config 1 '{"unclean.leader.election.enable":"true"}'
    kill_broker 3
    kill_broker 2
    start_broker 3
    is "$(leader u 0)" -1
    config 1 '{"unclean.leader.election.enable":"true","num.io.threads":"64"}'
    notify brokers/1
    is "$(leader u 0)" -1
    config 1 '{"unclean.leader.election.enable":" TRUE ","num.io.threads":"4"}'
    notify brokers/1
    is "$(leader u 0)" 3
}

@test "unclean election is the setting of the controller's broker, unless the topic has one" {
    topic u '{"0":[2,3]}'
    topic v '{"0":[2,3]}'
    echo unclean.leader.election.enable=false >"$M/config/topics/v"
    config 3 '{"unclean.leader.election.enable":"true"}'
    notify brokers/3
    kill_broker 2
    config 2 '{"unclean.leader.election.enable":"true"}'
    kill_broker 3
    start_broker 2
    is "$(leader u 0) $(leader v 0)" "-1 -1"
    stop_broker 1
    is "$(cat "$M/.state/controller/broker")" 2
    is "$(leader u 0) $(leader v 0)" "2 -1"
}
