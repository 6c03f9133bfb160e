#!/usr/bin/env python3
"""Bits flip and files are cut in the embedded store: no silent wrong value, no signal, a clear message.

    corruption.py KAFKAFS FLIPS CUTS [SEED]

Right is: the damage is found (--check names it, a mount refuses with one line), or it hit bytes that hold nothing, and
then everything reads as before.
"""
import os
import random
import subprocess
import sys
import time

import lib


def make_store(cluster):
    """A store with something in it; returns its dump."""
    cluster.start()
    for i in range(60):
        name = f'topic{i}'
        lib.write_once(cluster.path('brokers/topics', name), b'{"version":1,"partitions":{"0":[1,2],"1":[2,1]}}\n')
        lib.write_once(cluster.path('config/topics', name), b'{"version":1,"config":{"retention.ms":"%d"}}\n' % i)
    os.mkdir(cluster.path('app'))
    lib.write_once(cluster.path('app/big'), bytes(range(256)) * 200)
    cluster.settle()
    cluster.stop()
    return dump(cluster)


def run(cluster, *args):
    return subprocess.run([cluster.kafkafs, *args], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)


def dump(cluster):
    r = run(cluster, '--dump', cluster.c)
    return r.stdout if r.returncode == 0 else None


def judge(cluster, good, where):
    """The faults that this damage shows."""
    faults = []
    checked, dumped = run(cluster, '--check', cluster.c), run(cluster, '--dump', cluster.c)
    for r, what in ((checked, '--check'), (dumped, '--dump')):
        if r.returncode < 0 or r.returncode > 125:
            faults.append(f'{what} died of {r.returncode}')
    if checked.returncode == 0 and dumped.returncode == 0 and dumped.stdout != good:
        faults.append('a wrong value, silently')
    if checked.returncode != 0 and not checked.stdout + checked.stderr:
        faults.append('--check says nothing')
    return [f'{where}: {f}' for f in faults], checked.returncode != 0


def main():
    kafkafs, flips, cuts = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rng = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else int(time.time()))
    cluster = lib.Cluster(kafkafs, brokers=2)
    faults, found = [], 0
    try:
        good = make_store(cluster)
        store = f'{cluster.c}/metadata/data.mdb'
        with open(store, 'rb') as f:
            original = f.read()
        for i in range(flips + cuts):
            damaged = bytearray(original)
            if i < flips:
                at = rng.randrange(len(original) * 8)
                damaged[at // 8] ^= 1 << at % 8
                where = f'bit {at}'
            else:
                del damaged[rng.randrange(len(original)):]
                where = f'cut to {len(damaged)}'
            with open(store, 'r+b') as f:
                f.truncate(0)
                f.write(damaged)
            wrong, seen = judge(cluster, good, where)
            faults += wrong
            found += seen
        with open(store, 'r+b') as f:
            f.truncate(0)
            f.write(original)
        faults += [] if dump(cluster) == good else ['the undamaged store does not read as before']
        # the control: damage that must be found, in every page where the value stands
        with open(store, 'r+b') as f:
            f.truncate(0)
            f.write(original.replace(b'"retention.ms":"59"', b'"retention.ms":"58"'))
        _, seen = judge(cluster, good, 'control')
        faults += [] if seen else ['control: a changed value was not found']
    finally:
        cluster.remove()
    return lib.report('corruption', f'{flips} bit flips and {cuts} cuts, {found} found by --check, the rest harmless, '
                      f'{len(faults)} faults', faults)


if __name__ == '__main__':
    sys.exit(main())
