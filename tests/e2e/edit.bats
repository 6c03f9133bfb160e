# Editors, private temporary files, and mv.
load ../lib/mount

version() { getfattr --only-values -n user.zk.version "$1"; }
setup() {
    new_cluster
    start_kafkafs
    F=$M/config/topics/t
    put_line "$F" '{"version":1,"config":{"retention.ms":"1000"}}'
    V=$(version "$F")
}

@test "sed -i and perl -pi: one change of the node, and no temporary node" {
    sed -i s/1000/2000/ "$F"
    is "$(field "$F" '.config["retention.ms"]')" 2000
    is "$(version "$F")" $((V + 1))
    perl -pi -e s/2000/3000/ "$F"
    is "$(field "$F" '.config["retention.ms"]')" 3000
    is "$(version "$F")" $((V + 2))
    is "$(ls -A "$M/config/topics")" t
    is "$(grep -c 'topics/sed' "$M/.state/events")" 0
}

@test "sed -i that would make the JSON bad fails at the rename, and the old value stays" {
    refused "$EINVAL" sed -i 's/}}/}/' "$F"
    reason config/topics/t
    is "$(field "$F" '.config["retention.ms"]')" 1000
    is "$(ls -A "$M/config/topics")" t
}

@test "vi" {
    # the swap file is one more private file
    printf ':%%s/1000/4000/\n:wq\n' | vi -e -s "$F"
    is "$(field "$F" '.config["retention.ms"]')" 4000
    is "$(ls -A "$M/config/topics")" t
}

@test "a file made as mkstemp does is private: found by name, not listed, gone at unlink" {
    f=$(mktemp "$M/config/topics/tmp.XXXXXX")
    echo anything at all, no JSON >"$f"
    is "$(cat "$f")" "anything at all, no JSON"
    is "$(ls -A "$M/config/topics")" t
    rm "$f"
    [ ! -e "$f" ]
    f=$(mktemp "$M/config/topics/tmp.XXXXXX")
    put_line "$f" '{"version":1,"config":{"retention.ms":"6000"}}'
    mv "$f" "$F"
    [ ! -e "$f" ]
    is "$(field "$F" '.config["retention.ms"]')" 6000
    is "$(version "$F")" $((V + 1))
}

@test "under a umask of 077 a file that is made with mode 0666 is no private one" {
    (umask 077; python3 -c 'import sys; open(sys.argv[1], "x+").write("kept")' "$M/kept")
    is "$(version "$M/kept")" 1
    [[ $(ls "$M") == *kept* ]]
    stop_kafkafs
    start_kafkafs
    is "$(cat "$M/kept")" kept
}

@test "a directory takes the private files in it along, and their memory" {
    for i in {1..40}; do
        mkdir "$M/d"
        f=$(mktemp "$M/d/tmp.XXXXXX")
        head -c 10000000 /dev/zero >"$f"
        rm -r "$M/d"
        [ ! -e "$f" ]
    done
    f=$(mktemp "$M/tmp.XXXXXX")
    head -c 10000000 /dev/zero >"$f"
    rm "$f"
}

@test "mv of a file is one change; onto an existing name it replaces the value" {
    mv "$F" "$M/config/topics/u"
    is "$(ls "$M/config/topics")" u
    put_line "$F" '{"version":1,"config":{"retention.ms":"5"}}'
    mv "$F" "$M/config/topics/u"
    is "$(ls "$M/config/topics")" u
    is "$(field "$M/config/topics/u" '.config["retention.ms"]')" 5
    refused "No such file" mv "$F" "$M/config/topics/v"
    mkdir "$M/app"
    put_line "$M/app/f" 'no configuration'
    run ! mv "$M/app/f" "$M/config/topics/u"
    reason 'EINVAL /config/topics/u: '
    run ! mv "$M/controller" "$M/app/c"
    reason 'EPERM /controller: '
}

@test "mv to and from another filesystem" {
    echo text >"$W/f"
    mkdir "$M/app"
    mv "$W/f" "$M/app/f"
    is "$(cat "$M/app/f")" text
    mv "$M/app/f" "$W/back"
    is "$(cat "$W/back")" text
    [ ! -e "$M/app/f" ]
}

@test "mv of a directory is refused and changes nothing" {
    topic t '{"0":[1,2]}'
    settle
    refused "$EPERM" mv "$M/brokers/topics/t" "$M/brokers/topics/t9"
    mkdir -p "$M/app/d"
    refused "$EPERM" mv "$M/app/d" "$M/app/e"
    [ -d "$M/app/d" ]
    [ ! -e "$M/app/e" ]
    [ ! -e "$M/brokers/topics/t9" ]
    is "$(replicas_on_disk t)" "1/t-0 2/t-0"
}

@test "who keeps a private file open over its renaming is told that it is no more his" {
    run -0 python3 - "$F" <<'END'
import errno, os, sys
target = sys.argv[1]
f = os.open(target + ".new", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
os.write(f, b'{"version":1,"config":{"retention.ms":"7"}}')
os.rename(target + ".new", target)
with open(target) as now: # at once, before anything else can have told the kernel
    print(now.read())
for late in lambda: os.write(f, b" "), lambda: os.ftruncate(f, 0):
    try:
        late()
    except OSError as e:
        print(errno.errorcode[e.errno])
END
    is "$output" $'{"version":1,"config":{"retention.ms":"7"}}\n\nESTALE\nESTALE'
    is "$(version "$F")" $((V + 1))
}
