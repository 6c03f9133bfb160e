# Quotas of clients, users and their pairs; ips; credentials.
load ../lib/mount

setup() {
    new_cluster
    start_kafkafs
    mkdir -p "$M/config/users/<default>/clients" "$M/config/users/u/clients"
}
notify() {
    put_line "$M/config/changes/config_change_" "{\"version\":2,\"entity_path\":\"$1\"}"
    settle
}
# quota ENTITY VALUE: written and notified; VALUE empty removes.
quota() {
    local file=$M/config/$1
    [ ! -d "$file" ] || file=$file/.data
    put_line "$file" "{\"version\":1,\"config\":{${2:+\"producer_byte_rate\":\"$2\"}}}"
    notify "$1"
}
in_force() { sed -n 's/^producer_byte_rate=//p' "$M/.state/brokers/${3-1}/quotas/$1/$2"; }

LEVELS=('users/u/clients/c' 'users/u/clients/<default>' users/u 'users/<default>/clients/c'
    'users/<default>/clients/<default>' 'users/<default>' clients/c 'clients/<default>')

@test "eight levels, most specific first; removal falls back" {
    local i want
    for i in {7..0}; do quota "${LEVELS[i]}" $((i + 10)); done
    is "$(in_force u c) $(in_force u x) $(in_force v c) $(in_force v x)" "10 11 13 14"
    for i in {0..7}; do
        is "$(in_force u c)" $((i + 10))
        quota "${LEVELS[i]}" ''
    done
    is "$(in_force u c)" ''
    is "$(cat "$M/.state/brokers/2/quotas/u/c")" ''
}

@test "any pair may be asked; names are percent-encoded" {
    quota clients/a%20b 5
    quota users/CN%3Dx%2CO%3Dy 6
    quota users/%3Cdefault%3E 7
    is "$(in_force nobody a%20b)" 5
    is "$(in_force CN%3Dx%2CO%3Dy whatever 3)" 6
    is "$(in_force %3Cdefault%3E c)" 7
    is "$(in_force nobody c)" ''
    refused "$EINVAL" put_line "$M/config/clients/%zz" '{"version":1,"config":{}}'
}

@test "unknown keys and wrong values are refused" {
    local F=$M/config/clients/c
    refused "$EINVAL" put_line "$F" '{"version":1,"config":{"no.such.quota":"1"}}'
    reason no.such.quota
    refused "$EINVAL" put_line "$F" '{"version":1,"config":{"producer_byte_rate":"fast"}}'
    refused "$EINVAL" put_line "$M/config/ips/10.0.0.1" '{"version":1,"config":{"connection_creation_rate":"-1"}}'
    refused "$EINVAL" put_line "$M/config/ips/10.0.0.1" '{"version":1,"config":{"producer_byte_rate":"1"}}'
    [ ! -e "$F" ]
}

@test "ips fall back to their default" {
    echo connection_creation_rate=10 >"$M/config/ips/<default>"
    echo connection_creation_rate=20 >"$M/config/ips/10.0.0.1"
    echo '{"version":1,"config":{}}' >"$M/config/ips/10.0.0.2"
    notify 'ips/<default>'
    notify ips/10.0.0.1
    grep -qx connection_creation_rate=20 "$M/.state/brokers/1/config/ips/10.0.0.1"
    grep -qx connection_creation_rate=10 "$M/.state/brokers/1/config/ips/10.0.0.2"
}

@test "credentials of a user are kept and hidden" {
    put_line "$M/config/users/u/.data" \
        '{"version":1,"config":{"SCRAM-SHA-256":"salt=dG9w,stored_key=dG9w,server_key=dG9w,iterations=4096","producer_byte_rate":"9"}}'
    notify users/u
    grep -qxF 'SCRAM-SHA-256=[hidden]' "$M/.state/brokers/1/config/users/u"
    is "$(in_force u c)" 9
    refused "$EINVAL" put_line "$M/config/users/u/.data" '{"version":1,"config":{"SCRAM-SHA-256":"topsecret"}}'
    refused "$EINVAL" put_line "$M/config/users/<default>/.data" \
        '{"version":1,"config":{"SCRAM-SHA-256":"salt=dG9w,stored_key=dG9w,server_key=dG9w,iterations=4096"}}'
    local text
    for text in 'SCRAM-SHA-256: topsecret' 'SCRAM-SHA-256 topsecret' '{"config":{"SCRAM-SHA-256":["topsecret"]}}' \
        '{"config":"topsecret"}' '"topsecret"'; do
        refused "$EINVAL" put_line "$M/config/users/u/.data" "$text"
    done
    run -1 grep -e dG9w -e topsecret "$M/.state/events" "$M/.state/errors"
}

@test "read at the start, nested ones too" {
    for i in {7..0}; do quota "${LEVELS[i]}" $((i + 10)); done
    kill_broker 2
    start_broker 2
    is "$(in_force u c 2) $(in_force u x 2) $(in_force v c 2) $(in_force v x 2)" "10 11 13 14"
    stop_kafkafs
    start_kafkafs
    is "$(in_force u c) $(in_force u x) $(in_force v c) $(in_force v x)" "10 11 13 14"
}
