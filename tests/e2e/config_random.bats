# Random writes, notifications, deaths of brokers and of the daemon: at each settle every broker has in force what it
# was told by a notification or read at its start, and nothing else.
load ../lib/mount

# phase SEED: 60 random steps with a check after each; the model is kept in $W/model.
phase() {
    python3 - "$M" "$W/model" "$1" <<'P'
import json, os, random, sys
M, model, rnd = sys.argv[1], sys.argv[2], random.Random(int(sys.argv[3]))
ENTITIES = {'topics/a': ['retention.ms', 'min.insync.replicas'], 'topics/b': ['retention.ms', 'min.insync.replicas'],
    'brokers/<default>': ['log.retention.ms', 'min.insync.replicas'], 'brokers/1': ['log.retention.ms'],
    'brokers/2': ['log.retention.ms'], 'brokers/3': ['log.retention.ms', 'min.insync.replicas'],
    'clients/k': ['producer_byte_rate'], 'users/u': ['producer_byte_rate'], 'users/u/clients/k': ['producer_byte_rate']}

try:
    with open(model) as f: tree = json.load(f)
except FileNotFoundError: tree = {e: {} for e in ENTITIES}
told = {b: dict(tree) for b in '123'}  # every broker has just started

def node(entity):
    path = f'{M}/config/{entity}'
    return path + '/.data' if os.path.isdir(path) else path

def once(path, text):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try: os.write(fd, text.encode())
    finally: os.close(fd)

def lines(path):
    with open(f'{M}/.state/brokers/{path}') as f: return dict(line.rstrip('\n').split('=', 1) for line in f)

def expected(own, levels, default):
    for source, value in [('DYNAMIC_TOPIC_CONFIG', own), *levels]:
        if value is not None: return value, source
    return default, 'DEFAULT_CONFIG'

def check(b, know):
    def levels(key): return [('DYNAMIC_BROKER_CONFIG', know[f'brokers/{b}'].get(key)), ('DYNAMIC_DEFAULT_BROKER_CONFIG', know['brokers/<default>'].get(key))]
    for topic in 'ab':
        values, sources = lines(f'{b}/config/topics/{topic}'), lines(f'{b}/config_source/topics/{topic}')
        for key, broker_key, default in ('retention.ms', 'log.retention.ms', '604800000'), ('min.insync.replicas', 'min.insync.replicas', '1'):
            want = expected(know[f'topics/{topic}'].get(key), levels(broker_key), default)
            assert (values[key], sources[key]) == want, (b, topic, key, values[key], sources[key], want)
    pair = [know[e].get('producer_byte_rate') for e in ('users/u/clients/k', 'users/u', 'clients/k')]
    want = next((v for v in pair if v is not None), None)
    assert lines(f'{b}/quotas/u/k').get('producer_byte_rate') == want, (b, lines(f'{b}/quotas/u/k'), want)

for step in range(60):
    what, entity, b = rnd.randrange(10), rnd.choice(list(ENTITIES)), rnd.choice('123')
    if what < 4:
        tree[entity] = {k: str(rnd.randrange(1, 90)) for k in ENTITIES[entity] if rnd.random() < 0.7}
        once(node(entity), json.dumps({'version': 1, 'config': tree[entity]}))
    elif what < 9:
        once(f'{M}/config/changes/config_change_', json.dumps({'version': 2, 'entity_path': entity}))
        for know in told.values(): know[entity] = tree[entity]
    elif b in told and len(told) > 1:
        os.unlink(f'{M}/brokers/ids/{b}')
        del told[b]
    elif b not in told:
        once(f'{M}/brokers/ids/{b}', '')
        told[b] = dict(tree)
    with open(f'{M}/.state/settled') as f: f.read()
    for b, know in told.items(): check(b, know)
with open(model, 'w') as f: json.dump(tree, f)
P
}

@test "every broker has in force what it was told, nothing else" {
    mkdir -p "$M/config/users/u/clients"
    topic a '{"0":[1,2,3]}'
    topic b '{"0":[3,1,2]}'
    settle
    for seed in 1 2 3 4; do
        phase $seed
        kill_kafkafs
        umount -l "$M"
        start_kafkafs
    done
    phase 5
}
