#!/usr/bin/env python3
"""Somebody swaps replica directories for symbolic links while their topics are being deleted. Nothing outside the log dir
may be touched.

    swap.py KAFKAFS DELETIONS

The control deletes by path, as a naive program does, under the same attack: that one must lose the files outside.
"""
import ctypes
import multiprocessing
import os
import sys
import time

import lib

LIBC = ctypes.CDLL(None, use_errno=True)
AT_FDCWD, EXCHANGE = -100, 2


def exchange(a, b):
    return LIBC.renameat2(AT_FDCWD, a.encode(), AT_FDCWD, b.encode(), EXCHANGE) == 0


class Outside:
    """The directory that the links point to."""

    def __init__(self, where):
        self.dir = os.path.join(where, 'outside')
        os.makedirs(self.dir)
        self.fill()

    # some have the names that a log has: what is deleted by name only would hit these
    NAMES = ('00000000000000000000.log', 'leader-epoch-checkpoint', 'partition.metadata', 'precious')

    def fill(self):
        for name in self.NAMES:
            with open(os.path.join(self.dir, name), 'w') as f:
                f.write('precious')

    def lost(self):
        return len(set(self.NAMES) - set(os.listdir(self.dir)))


def attack(outside, scratch, paths, stop, swaps):
    """Exchanges whatever of `paths` is there with a link to the outside, back and forth, until told to stop."""
    lib.die_with_parent()
    link = os.path.join(scratch, f'link{os.getpid()}')
    os.symlink(outside, link)
    while not stop.is_set():
        for path in paths:
            if exchange(path, link):
                swaps.value += 1
                exchange(path, link)
    os._exit(0)


class Attack:
    """A process that swaps `paths`, from the first swap to the end of the block."""

    def __init__(self, outside, scratch, paths):
        self.stop, self.swaps = multiprocessing.Event(), multiprocessing.Value('q', 0, lock=False)
        self.process = multiprocessing.Process(target=attack, args=(outside.dir, scratch, paths, self.stop, self.swaps))

    def __enter__(self):
        self.process.start()
        return self

    def wait_for_swaps(self, n):
        """Until it is at work; False if it cannot."""
        limit = time.monotonic() + 30
        while self.swaps.value < n and time.monotonic() < limit:
            time.sleep(0.001)
        return self.swaps.value >= n

    def __exit__(self, *_):
        self.stop.set()
        self.process.join()


def naive_delete(path):
    """By path, in the steps that leave room for a swap."""
    try:
        if os.path.islink(path):
            return
        time.sleep(0.001)
        for name in os.listdir(path):
            os.unlink(os.path.join(path, name))
        os.rmdir(path)
    except OSError:
        pass


def control(scratch):
    outside = Outside(os.path.join(scratch, 'control'))
    victim = os.path.join(scratch, 'control', 'victim-0')
    with Attack(outside, scratch, [victim]):
        limit = time.monotonic() + 30
        while not outside.lost() and time.monotonic() < limit:
            os.makedirs(victim, exist_ok=True)
            naive_delete(victim)
    return outside.lost() > 0


def refused_again(cluster, topics):
    """A deletion that met a swap may have been refused. Now that nobody swaps, another try must end it: the topics that
    are left all the same."""
    for t in topics:
        if os.path.lexists(cluster.path('admin/delete_topics', t)):
            os.utime(cluster.path('admin/delete_topics', t))
    cluster.settle()
    return [t for t in topics if os.path.lexists(cluster.path('brokers/topics', t))]


def deletions(cluster, outside, n):
    """n deletions under attack, twenty topics at a time; returns faults, swaps and deletions."""
    faults, swaps, done, batch = [], 0, 0, 20
    for first in (batch * i for i in lib.rounds(-(-n // batch))):
        topics = [f't{i}' for i in range(first, min(n, first + batch))]
        for t in topics:
            lib.write_once(cluster.path('brokers/topics', t), b'{"version":1,"partitions":{"0":[1]}}\n')
        cluster.settle()
        with Attack(outside, cluster.w, [f'{cluster.d}/1/{t}-0' for t in topics]) as attacker:
            if not attacker.wait_for_swaps(1):
                faults.append(f'nothing to swap: {topics[0]} to {topics[-1]} have no directories')
            for t in topics:
                os.mkdir(cluster.path('admin/delete_topics', t))
            cluster.settle()
        swaps += attacker.swaps.value
        # a disk whose entries somebody moves has not failed, nor has its broker
        faults += cluster.broker_faults()
        faults += [f'{t} is still there' for t in refused_again(cluster, topics)]
        if outside.lost():
            faults.append(f'{outside.lost()} files outside are gone, deleting {topics[0]} to {topics[-1]}')
        done += len(topics)
        if faults:
            # what follows from it would only hide it
            return cluster.said() + faults, swaps, done
    return faults, swaps, done


def main():
    kafkafs, n = sys.argv[1], int(sys.argv[2])
    cluster, swaps, done = lib.Cluster(kafkafs, brokers=1), 0, 0
    try:
        faults = [] if control(cluster.w) else ['the control lost nothing: the attack does not work']
        outside = Outside(cluster.w)
        cluster.start()
        found, swaps, done = deletions(cluster, outside, n)
        faults += found
        faults += [f'exit status {s}' for s in [cluster.stop()] if s]
    finally:
        cluster.remove()
    return lib.report('swap', f'{done} deletions while {swaps} swaps, {len(faults)} faults', faults)


if __name__ == '__main__':
    sys.exit(main())
