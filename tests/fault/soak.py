#!/usr/bin/env python3
"""A big tree under mixed work for a long time: memory, descriptors, threads and the store stay as they are.

    soak.py KAFKAFS SECONDS ZNODES [SEED]
    soak.py KAFKAFS SECONDS ZNODES SEED --control    a program that leaks, a client that litters: all must be seen

The work goes in rounds, each of which ends where it began: topics are made and deleted, configurations changed and
notified, brokers killed, shut down and started, partitions reassigned, values written, renamed and read, directories
listed, the controller is elected anew, events followed, watches set. After each round `.state/settled` is read, and then
the daemon is measured. A slow machine takes longer than SECONDS, until there are rounds enough to judge. The first half of
the time warms up. Of the second half, the line through the samples (the median of all slopes, which no single spike moves)
may not rise by more than the limit.
"""
import ctypes
import itertools
import json
import os
import random
import select
import statistics
import subprocess
import sys
import threading
import time

import lib

FOLDER = 1000  # znodes a directory
TOPICS, CLIENT_FILES, FIXED = 12, 40, 6
ROUNDS = 20  # the least that can be judged: a line through ten samples
MIB = 1 << 20


# ---- what is measured ------------------------------------------------------------------------------------------------

def measure(cluster):
    """One sample of the daemon: name -> number."""
    pid = cluster.daemon.pid
    with open(f'/proc/{pid}/status') as f:
        status = dict(line.split(':', 1) for line in f)
    return {'memory': int(status['RssAnon'].split()[0]) * 1024,
            'descriptors': len(os.listdir(f'/proc/{pid}/fd')),
            'threads': int(status['Threads']),
            'store': lib.store_used(f'{cluster.c}/metadata/data.mdb'),
            'log dirs': sum(len(os.listdir(f'{cluster.d}/{b}')) for b in cluster.ids)}


def limit(name, level, hours):
    """How much the line may rise over `hours`: 1 % an hour, or what one round more or less explains; and of memory what caches
    with a bound may still take where a slow machine makes few rounds (the store keeps 8,192 nodes, events 1 MiB)."""
    slack = {'memory': 3 * MIB, 'store': MIB}.get(name, 1)
    return max(slack, level * 0.01 * hours)


def rise(samples):
    """Of [(seconds, number)], over the whole time: by the median of the slopes between any two (Theil and Sen)."""
    step = max(1, len(samples) // 300)
    some = samples[::step]
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in itertools.combinations(some, 2) if b[0] > a[0]]
    return statistics.median(slopes) * (some[-1][0] - some[0][0])


def judge(samples):
    """samples: [(seconds, {name: number})]. Returns {name: (level, rise, limit)} of the second half."""
    half = [s for s in samples if s[0] >= samples[-1][0] / 2]
    hours = (half[-1][0] - half[0][0]) / 3600
    table = {}
    for name in half[0][1]:
        series = [(t, values[name]) for t, values in half]
        level = statistics.median(v for _, v in series)
        table[name] = (level, rise(series), limit(name, level, hours))
    return table


def rule_faults():
    """Is the rule itself right? Series made up: noise and single spikes are flat, a slow rise below them is none."""
    rng = random.Random(1)
    noisy = [(t, 200 * MIB + rng.gauss(0, 2 * MIB) + (50 * MIB if rng.random() < 0.05 else 0)) for t in range(3600)]
    flat, rising = ([(t, {'memory': v + t * slope}) for t, v in noisy] for slope in (0, 4 * MIB / 1800))
    wrong = []
    for samples, grows in ((flat, False), (rising, True)):
        level, more, most = judge(samples)['memory']
        if (more > most) != grows:
            wrong.append(f'the rule: {level:.0f} rising by {more:.0f} is taken for {"flat" if grows else "growth"}')
    return wrong


# ---- the work --------------------------------------------------------------------------------------------------------

class Work:
    """The parts of a round. Each is run by a thread of its own, all at the same time, and undoes what it does."""

    def __init__(self, cluster, znodes, rng, litter):
        self.cluster, self.znodes, self.rng, self.litter = cluster, znodes, rng, litter
        self.counts, self.round = {}, 0
        self.inotify = ctypes.CDLL(None, use_errno=True)

    def path(self, *names):
        return self.cluster.path(*names)

    def did(self, what, n=1):
        self.counts[what] = self.counts.get(what, 0) + n

    def prepare(self):
        for i in range(FIXED):
            lib.write_once(self.path('brokers/topics', f'fixed{i}'), b'{"version":1,"partitions":{"0":[1,2],"1":[2,3]}}\n')
        os.makedirs(self.path('app/work'))
        self.cluster.settle()
        # everything is looked up once, so that the kernel knows as many inodes from the start as it ever will
        subprocess.run(['find', self.cluster.m, '-size', '+1000000'], check=True, stdout=subprocess.DEVNULL)

    def make_topics(self):
        names = [f'soak{self.round}.{i}' for i in range(TOPICS)]
        for i, name in enumerate(names):
            partitions = {str(p): [1 + (i + p) % 3, 1 + (i + p + 1) % 3] for p in range(3)}
            text = json.dumps({'version': 1, 'partitions': partitions}) + '\n'
            lib.write_once(self.path('brokers/topics', name), text.encode())
            lib.write_once(self.path('config/topics', name), b'{"version":1,"config":{"retention.ms":"1000"}}\n')
        for name in names:
            os.mkdir(self.path('admin/delete_topics', name))
        self.did('topics', TOPICS)

    def change_configs(self):
        for i in range(FIXED):
            value = b'{"version":1,"config":{"retention.ms":"%d"}}\n' % (self.round * 10 + i)
            lib.write_once(self.path('config/topics', f'fixed{i}'), value)
            lib.write_once(self.path('config/changes/config_change_'),
                           b'{"version":2,"entity_path":"topics/fixed%d"}\n' % i)
        lib.write_once(self.path('config/brokers/1'), b'{"version":1,"config":{"log.retention.ms":"%d"}}\n' % (1000 + self.round))
        lib.write_once(self.path('config/changes/config_change_'), b'{"version":2,"entity_path":"brokers/1"}\n')
        self.did('configs', FIXED + 1)

    def bounce_broker(self):
        broker = 1 + self.round % 3
        state = self.path('.state/brokers', str(broker), 'state')
        if self.round % 2:
            os.unlink(self.path('brokers/ids', str(broker)))
        else:
            lib.write_once(state, b'stopped\n', 0)
            # a controlled shutdown may be tried again by a timer, which nothing that can be read waits for
            while self.read(state) == b'stopping\n':
                time.sleep(0.005)
        self.cluster.settle()
        lib.write_once(state, b'running\n', 0)
        self.did('brokers')

    def reassign(self):
        partitions = [{'topic': f'fixed{i}', 'partition': 0, 'replicas': [[2, 3], [3, 1], [1, 2]][self.round % 3]}
                      for i in range(FIXED)]
        text = json.dumps({'version': 1, 'partitions': partitions}) + '\n'
        lib.write_once(self.path('admin/reassign_partitions'), text.encode())
        self.did('reassignments', FIXED)

    def elect(self):
        if self.round % 5 == 4:
            try:
                os.unlink(self.path('controller'))
                self.did('elections')
            except FileNotFoundError:  # the broker that was it is down
                pass

    def write_values(self):
        files = [self.path('app/work', f'f{i}') for i in range(CLIENT_FILES)]
        for name in files:
            lib.write_once(name, b'x' * self.rng.choice([1, 100, 5000] if not self.litter else [20000]))
        for name in files:
            os.rename(name, name + '.new')
        for name in files[:CLIENT_FILES - self.litter]:
            os.unlink(name + '.new')
        for name in files[CLIENT_FILES - self.litter:]:
            # to leave something behind for good
            os.rename(name + '.new', f'{name}.{self.round}.left')
        self.did('values', 3 * CLIENT_FILES)

    def read(self, path):
        with open(path, 'rb') as f:
            return f.read()

    def read_values(self):
        for _ in range(200):
            n = self.rng.randrange(self.znodes)
            path = self.path('big', str(n // FOLDER), str(n))
            if self.read(path) != b'value %d' % n or os.stat(path).st_nlink != 1:
                raise RuntimeError(f'{path} holds something else')
        folder = self.rng.randrange(self.znodes // FOLDER)
        if len(os.listdir(self.path('big', str(folder)))) != FOLDER:
            raise RuntimeError(f'big/{folder} is not whole')
        for name in ('metrics', 'controller/epoch', 'topics/fixed0/0/state', 'brokers/1/config/topics/fixed0'):
            try:
                self.read(self.path('.state', name))
            except FileNotFoundError:  # of a broker that is down
                pass
        self.did('reads', 200)

    def watch(self):
        """A watcher of its own each round: inotify on some directories, and the events from the start."""
        fd = self.inotify.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            for name in ('admin/delete_topics', 'brokers/topics', 'brokers/ids', 'app/work'):
                self.inotify.inotify_add_watch(fd, self.path(name).encode(), 0x3c6)
            select.select([fd], [], [], 5)
            self.did('lines of events', self.read(self.path('.state/events')).count(b'\n'))
        finally:
            os.close(fd)

    PARTS = (make_topics, change_configs, bounce_broker, reassign, elect, write_values, read_values, watch)

    def run_round(self):
        """All parts at once; returns what went wrong."""
        wrong = []

        def run(part):
            try:
                part(self)
            except (OSError, RuntimeError) as e:
                wrong.append(f'round {self.round}, {part.__name__}: {e}')
        threads = [threading.Thread(target=run, args=(part,)) for part in self.PARTS]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.cluster.settle()
        wrong += self.not_ended()
        self.round += 1
        return wrong

    def not_ended(self):
        wrong = [f'{t} is left' for t in self.cluster.topics() if not t.startswith('fixed')]
        wrong += [f'deletion of {t} is left' for t in os.listdir(self.path('admin/delete_topics'))]
        if os.path.lexists(self.path('admin/reassign_partitions')):
            wrong.append('the reassignment has not ended')
        return [f'round {self.round}: {w}' for w in wrong]


# ---- the campaign ----------------------------------------------------------------------------------------------------

def load_tree(cluster, znodes):
    """The big part of the tree, before the first mount."""
    with subprocess.Popen([cluster.kafkafs, '--load', cluster.c], stdin=subprocess.PIPE, text=True) as load:
        load.stdin.write('/\n/app\n/big\n')
        for folder in range(znodes // FOLDER):
            load.stdin.write(f'/big/{folder}\n')
            load.stdin.writelines(f'/big/{folder}/{n} data=value {n}\n' for n in range(folder * FOLDER, (folder + 1) * FOLDER))
        load.stdin.close()
        if load.wait():
            raise lib.NotReady('--load failed')


def campaign(kafkafs, seconds, znodes, seed, control):
    cluster = lib.Cluster(kafkafs)
    samples, faults = [], []
    work = Work(cluster, znodes, random.Random(seed), CLIENT_FILES // 2 if control else 0)
    if control:
        os.environ.update(KAFKAFS_LEAK='100', LD_PRELOAD=os.environ['LEAK_LIBRARY'])
    try:
        load_tree(cluster, znodes)
        cluster.start(options=['-o', 'config_change_expiry=5'])
        os.environ.pop('LD_PRELOAD', None)
        work.prepare()
        begun = time.monotonic()
        for _ in lib.rounds(sys.maxsize):
            faults += work.run_round()
            samples.append((time.monotonic() - begun, measure(cluster)))
            if faults or (time.monotonic() > begun + seconds and work.round >= ROUNDS):
                break
        faults += [f'exit status {status}' for status in [cluster.stop()] if status]
        faults += [x for x in [cluster.check_store()] if x]
    except (lib.NotReady, lib.Stuck, OSError) as e:
        faults.append(f'{type(e).__name__}: {e}')
    finally:
        cluster.remove()
    return samples, faults, work


def main():
    args = [a for a in sys.argv[1:] if not a.startswith('--')]
    kafkafs, seconds, znodes = args[0], float(args[1]), int(args[2]) // FOLDER * FOLDER
    seed, control = int(args[3]) if len(args) > 3 else int(time.time()), '--control' in sys.argv
    lib.mounts_of_its_own()
    samples, faults, work = campaign(kafkafs, seconds, znodes, seed, control)
    table = judge(samples) if len(samples) >= ROUNDS else {}
    if not table and not faults:
        faults.append(f'only {len(samples)} rounds')
    grown = [name for name, (_, more, most) in table.items() if more > most]
    for name, (level, more, most) in table.items():
        print(f'    {name:12} {level:12.0f}, rises by {more:10.1f} (limit {most:.0f})')
    counts = ', '.join(f'{n} {what}' for what, n in work.counts.items())
    text = f'{samples[-1][0] if samples else 0:.0f} s, {znodes} znodes, {work.round} rounds: {counts}; seed {seed}'
    if control:
        missed = [f'{name} grows and is not seen' for name in ('memory', 'descriptors', 'threads', 'store') if name not in grown]
        return lib.report('soak-control', f'{text}; grows: {", ".join(grown)}', faults + missed + rule_faults())
    return lib.report('soak', text, faults + [f'{name} grows' for name in grown])


if __name__ == '__main__':
    sys.exit(main())
