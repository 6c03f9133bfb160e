#!/usr/bin/env python3
"""Bits flip and files are cut in the embedded store: no silent wrong value, no signal, a clear message.

    corruption.py KAFKAFS FLIPS CUTS [SEED]

Right is: the damage is found (--check names it), or it hit bytes that hold nothing, and then everything reads as before.
--dump and a mount say why they do not show a value, or show what was written. Most damage to the pages' own structure is
seen by --check only; a mount may then refuse with one line, or run, but show no wrong value.
"""
import errno
import os
import random
import subprocess
import sys
import time

import lib


def make_store(cluster):
    """A store with something in it; returns its dump, and what some files hold."""
    cluster.start()
    values = {}
    for i in range(60):
        name = f'topic{i}'
        lib.write_once(cluster.path('brokers/topics', name), b'{"version":1,"partitions":{"0":[1,2],"1":[2,1]}}\n')
        values[f'config/topics/{name}'] = b'{"version":1,"config":{"retention.ms":"%d"}}\n' % i
    os.mkdir(cluster.path('app'))
    values['app/big'] = bytes(range(256)) * 200
    for name, value in values.items():
        lib.write_once(cluster.path(name), value)
    cluster.settle()
    cluster.stop()
    return dump(cluster), values


def run(cluster, *args):
    return subprocess.run([cluster.kafkafs, *args], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)


def dump(cluster):
    r = run(cluster, '--dump', cluster.c)
    return r.stdout if r.returncode == 0 else None


def mount_faults(cluster, values):
    """A mount of the damaged store: refused with a reason, or every value is the one that was written, or an error."""
    try:
        cluster.start()
    except lib.NotReady as e:
        cluster.remove_mount()
        died = str(e).startswith('ended with -') or 'not ready' in str(e)
        return [f'a mount: {e}'] if died or 'kafkafs: ' not in str(e) else []
    wrong = []
    try:
        for name, value in values.items():
            try:
                with open(cluster.path(name), 'rb') as f:
                    if f.read() != value:
                        wrong.append(f'mounted, {name} has a wrong value')
            except OSError as e:
                if e.errno in (errno.ENOTCONN, errno.ECONNABORTED):
                    return [f'mounted, the daemon died reading {name}: {cluster.log_tail()}']
                wrong += [] if e.errno == errno.EIO else [f'mounted, {name}: {e}']
        status = cluster.stop()
        wrong += [f'exit status {status} after the mount'] if status else []
    except subprocess.CalledProcessError as e:
        wrong.append(str(e))
    finally:
        cluster.remove_mount()
    return wrong


def judge(cluster, good, values, where):
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
    faults += mount_faults(cluster, values)
    return [f'{where}: {f}' for f in faults], checked.returncode != 0


def main():
    kafkafs, flips, cuts = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rng = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else int(time.time()))
    lib.mounts_of_its_own()
    cluster = lib.Cluster(kafkafs, brokers=2)
    faults, found, extent, done = [], 0, 0, {'flip': 0, 'cut': 0}
    try:
        good, values = make_store(cluster)
        store = f'{cluster.c}/metadata/data.mdb'
        with open(store, 'rb') as f:
            original = f.read()
        extent = lib.store_used(store)
        kinds = ['flip'] * flips + ['cut'] * cuts
        rng.shuffle(kinds)
        for i in lib.rounds(flips + cuts):
            damaged = bytearray(original)
            done[kinds[i]] += 1
            if kinds[i] == 'flip':
                at = rng.randrange(extent * 8)
                damaged[at // 8] ^= 1 << at % 8
                where = f'bit {at}'
            else:
                del damaged[rng.randrange(extent):]
                where = f'cut to {len(damaged)}'
            with open(store, 'r+b') as f:
                f.truncate(0)
                f.write(damaged)
            wrong, seen = judge(cluster, good, values, where)
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
        _, seen = judge(cluster, good, values, 'control')
        faults += [] if seen else ['control: a changed value was not found']
    finally:
        cluster.remove()
    return lib.report('corruption', f'{done["flip"]} bit flips and {done["cut"]} cuts in {extent} bytes, {found} found by --check, '
                      f'the rest harmless, {len(faults)} faults', faults)


if __name__ == '__main__':
    sys.exit(main())
