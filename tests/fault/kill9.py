#!/usr/bin/env python3
"""kill -9 of the mounted daemon under several clients, again and again; then: is every acknowledged change there, no
change half done, and does every deletion that was asked for end?

    kill9.py KAFKAFS KILLS [SEED]
    kill9.py KAFKAFS KILLS SEED --control=forged      the audit gets an acknowledgement that never came: must fail
    kill9.py KAFKAFS KILLS SEED --control=pretend     a disk that swallows commits before the kill: must fail

An acknowledgement is a system call that returned. A call that failed because the daemon died may have happened or not:
both are right, but nothing between. Each client owns its names, so what it expects is exact.
"""
import json
import multiprocessing
import os
import random
import sys
import time

import lib

CLIENTS, ACKS = 4, 520  # acknowledgements before a kill, on average
DEAD = (107, 103, 5)  # ENOTCONN, ECONNABORTED, EIO: the daemon is gone


class Client:
    """One process of the load. `values` maps a name to what it holds, `topics` to its assignment; None is absent. The
    step that was under way when the daemon died is `open`: (kind, name, before, after)."""

    def __init__(self, cluster, number, rng):
        self.cluster, self.n, self.rng = cluster, number, rng
        self.home = f'app/client{number}'
        self.values, self.topics = {}, {}
        self.open, self.acks, self.serial = None, 0, 0

    def step(self):
        """One change; raises OSError when it fails."""
        kind = self.rng.choices(['write', 'remove', 'rename', 'config', 'topic', 'delete'], [8, 3, 3, 3, 2, 2])[0]
        getattr(self, kind)()

    def change(self, table, name, after, call, *args):
        before = table.get(name)
        self.open = (table is self.topics, name, before, after)
        call(*args)
        table[name] = after
        self.open = None
        self.acks += 1

    def value(self):
        self.serial += 1
        return f'{self.n}:{self.serial}:' + 'x' * self.rng.choice([0, 10, 3000])

    def write(self):
        name = f'{self.home}/f{self.rng.randrange(12)}'
        value = self.value()
        path, flags = self.cluster.path(name), 0
        if self.values.get(name) is None:
            # creation is a change of its own, and an empty file its result
            self.change(self.values, name, '', lambda: os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)))
        # without truncation, which would be one change more: longer than anything before
        value = value.ljust(3100)
        self.change(self.values, name, value, lib.write_once, path, value.encode(), flags)

    def remove(self):
        names = [n for n, v in self.values.items() if v is not None]
        if names:
            name = self.rng.choice(names)
            self.change(self.values, name, None, os.unlink, self.cluster.path(name))

    def rename(self):
        names = [n for n, v in self.values.items() if v is not None and n.startswith('app/')]
        if not names:
            return
        name, new = self.rng.choice(names), f'{self.home}/r{self.rng.randrange(12)}'
        if name == new:
            return
        old_new = self.values.get(new)
        self.open = ('rename', (name, new), (self.values[name], old_new), (None, self.values[name]))
        os.rename(self.cluster.path(name), self.cluster.path(new))
        self.values[name], self.values[new] = None, self.values[name]
        self.open = None
        self.acks += 1

    def config(self):
        name = f'config/topics/c{self.n}.{self.rng.randrange(4)}'
        self.serial += 1
        value = json.dumps({'version': 1, 'config': {'retention.ms': str(self.serial)}}, separators=(',', ':')) + '\n'
        self.change(self.values, name, value, lib.write_once, self.cluster.path(name), value.encode())

    def topic(self):
        name = f't{self.n}.{self.serial}'
        self.serial += 1
        partitions = {p: self.rng.sample([1, 2, 3], 2) for p in range(self.rng.randint(1, 3))}
        text = json.dumps({'version': 1, 'partitions': partitions}) + '\n'
        self.change(self.topics, name, partitions, lib.write_once, self.cluster.path('brokers/topics', name), text.encode())

    def delete(self):
        names = [n for n, v in self.topics.items() if v is not None]
        if names:
            name = self.rng.choice(names)
            self.change(self.topics, name, None, os.mkdir, self.cluster.path('admin/delete_topics', name))

    # ---- after the kill ----

    def read(self, name):
        try:
            with open(self.cluster.path(name)) as f:
                return f.read()
        except FileNotFoundError:
            return None

    def audit(self):
        """Compares all that is there with what was acknowledged; takes over which way the open step went."""
        faults, undecided = [], self.open
        self.open = None
        if undecided and undecided[0] == 'rename':
            _, names, before, after = undecided
            have = tuple(self.read(n) for n in names)
            if have not in (before, after):
                faults.append(f'half a rename: {names} holds {have}, want {before} or {after}')
            self.values.update(zip(names, have))
        elif undecided:
            is_topic, name, before, after = undecided
            table = self.topics if is_topic else self.values
            table[name] = after if self.happened(is_topic, name, before, after) else before
        for name, value in self.values.items():
            have = self.read(name)
            if have != value:
                faults.append(f'{name}: acknowledged {str(value)[:40]!r}, found {str(have)[:40]!r}')
                self.values[name] = have
        for name, partitions in self.topics.items():
            faults += self.cluster.topic_faults(name, partitions or {}, partitions is not None)
        # what is gone for good need not be looked at for ever
        self.topics = {n: p for n, p in self.topics.items() if p is not None}
        return faults

    def happened(self, is_topic, name, before, after):
        if is_topic:
            there = os.path.lexists(self.cluster.path('brokers/topics', name))
            return there == (after is not None)
        return self.read(name) == after and after != before


def load(client, done, results):
    """The client's process: steps until the daemon is gone; `done[n]` counts what it has been told to be done."""
    lib.die_with_parent()
    started, already = time.monotonic(), client.acks
    unexpected = None
    try:
        while True:
            client.step()
            done[client.n] = client.acks - already
    except OSError as e:
        if e.errno not in DEAD:
            unexpected = f'client {client.n}: {e}'
    results.put((client.n, client.values, client.topics, client.open, client.acks, client.serial, unexpected,
                 time.monotonic() - started))


def kill_round(cluster, clients, rng, kill, least=0, before=lambda done: None):
    """Load, kill() amid it, wait for the clients; returns faults (calls that failed for no reason). The kill comes after a
    random number of acknowledgements (`least` or more), not after a time: a busy machine gets as many."""
    faults, results, done = [], multiprocessing.Queue(), multiprocessing.Array('q', len(clients), lock=False)
    for c in clients:
        c.rng = random.Random(rng.random())
    workers = [multiprocessing.Process(target=load, args=(c, done, results)) for c in clients]
    for w in workers:
        w.start()
    wait_for(done, least + rng.randrange(2 * ACKS))
    before(done)
    try:
        kill()
    except lib.Stuck as e:
        faults.append(str(e))
    for _ in workers:
        n, values, topics, undecided, acks, serial, unexpected, _ = results.get(timeout=60)
        c = clients[n]
        c.values, c.topics, c.open, c.acks, c.serial = values, topics, undecided, acks, serial
        faults += [unexpected] if unexpected else []
    for w in workers:
        w.join(30)
    return faults


def wait_for(done, acks):
    """Until the clients have got so many acknowledgements, at most a minute."""
    limit = time.monotonic() + 60
    while sum(done) < acks and time.monotonic() < limit:
        time.sleep(0.001)


def swallow(shim, done):
    """From now on commits reach no disk; some are acknowledged before the kill comes, more than were under way."""
    shim['pretend'] = 1
    wait_for(done, sum(done) + 5 * CLIENTS)


def campaign(kafkafs, kills, seed, control):
    rng = random.Random(seed)
    cluster = lib.Cluster(kafkafs)
    shim = lib.Shim(f'{cluster.w}/shim') if control == 'pretend' else None
    faults, clients, slowest, done = [], [Client(cluster, n, rng) for n in range(CLIENTS)], 0.0, 0
    try:
        cluster.start(shim)
        for c in clients:
            os.makedirs(cluster.path(c.home))
        for k in lib.rounds(kills):
            done = k + 1
            found = kill_round(cluster, clients, rng, cluster.kill,
                               before=lambda acks: swallow(shim, acks) if shim else None)
            if control == 'forged' and k == kills - 1:
                clients[0].values[f'{clients[0].home}/never'] = 'written'
            if shim:
                shim.disarm()
            started = time.monotonic()
            cluster.start(shim)
            slowest = max(slowest, time.monotonic() - started)
            cluster.settle()
            for c in clients:
                found += c.audit()
            found += cluster.broker_faults()
            found += cluster.said() if found else []
            faults += [f'kill {k + 1}: {f}' for f in found]
            if found and not control:
                break
        status = cluster.stop()
        faults += [f'exit status {status} at the end'] if status else []
        faults += [f for f in [cluster.check_store()] if f]
    except lib.NotReady as e:
        faults.append(str(e))
    finally:
        cluster.remove()
    return faults, f'{done} kills, {sum(c.acks for c in clients)} acks, slowest restart {slowest:.2f} s, seed {seed}'


def main():
    args = [a for a in sys.argv[1:] if not a.startswith('--')]
    control = ([a.partition('=')[2] for a in sys.argv[1:] if a.startswith('--control=')] or [None])[0]
    kafkafs, kills, seed = args[0], int(args[1]), int(args[2]) if len(args) > 2 else int(time.time())
    faults, text = campaign(kafkafs, kills, seed, control)
    if control:
        # the audit must see what is wrong here
        missed = [] if any('acknowledged' in f or 'lost' in f for f in faults) else ['the audit found nothing']
        return lib.report(f'kill9-control-{control}', f'{text}; {len(faults)} faults found', missed)
    return lib.report('kill9', f'{text}; {len(faults)} faults', faults)


if __name__ == '__main__':
    sys.exit(main())
