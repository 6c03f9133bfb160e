#!/usr/bin/env python3
"""The power goes, again and again: store and log dirs lie on a filesystem of their own (ext4, then xfs) that is shut down
under load, so that what was not synced is gone. Then: the audit of kill9.py.

    powercut.py KAFKAFS ROUNDS [SEED]             half the rounds on each filesystem (--on=KIND: all on that one)
    powercut.py KAFKAFS ROUNDS SEED --control     a disk that does not sync: must lose something, on each

A filesystem that cannot be made or mounted here is named with the reason, as skipped.
"""
import fcntl
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

import kill9
import lib

SHUTDOWN = 0x8004587d  # _IOR('X', 125, u32)
NO_LOG_FLUSH = 2


class Disk:
    """An image file on a loop device; made, mounted, cut off, mounted again."""

    def __init__(self, kind):
        self.dir = tempfile.mkdtemp(prefix='kafkafs-disk.')
        self.image, self.mount_point = f'{self.dir}/image', f'{self.dir}/mnt'
        os.mkdir(self.mount_point)
        with open(self.image, 'wb') as f:
            f.truncate(400 << 20)
        try:
            lib.command(f'mkfs.{kind}', '-q', self.image)
            self.mount()
        except lib.CommandFailed:
            shutil.rmtree(self.dir)
            raise

    def mount(self):
        lib.command('mount', '-o', 'loop', self.image, self.mount_point)

    def unmount(self):
        lib.command('umount', self.mount_point)

    def cut(self):
        fd = os.open(self.mount_point, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, SHUTDOWN, struct.pack('I', NO_LOG_FLUSH))
        finally:
            os.close(fd)

    def remove(self):
        subprocess.run(['umount', self.mount_point], stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(self.dir)


def stands_still(pid):
    """Is every thread stopped, or within a call to the disk, at whose end it stops?"""
    for task in os.listdir(f'/proc/{pid}/task'):
        with open(f'/proc/{pid}/task/{task}/stat') as f:
            if f.read().rpartition(')')[2].split()[0] not in 'TD':
                return False
    return True


def power_cut(cluster, disk):
    """First the daemon stands still, so that no sync can return from a disk that is gone already."""
    os.kill(cluster.daemon.pid, signal.SIGSTOP)
    while not stands_still(cluster.daemon.pid):
        time.sleep(0.001)
    disk.cut()
    cluster.kill()


def rounds_on(kafkafs, disk, kind, rounds, rng, control):
    cluster = lib.Cluster(kafkafs, disk=disk.mount_point)
    # the broker files are ours, not the daemon's to sync
    subprocess.run(['sync', '-f', disk.mount_point], check=True)
    shim = lib.Shim(f'{cluster.w}/shim')
    clients, faults, done = [kill9.Client(cluster, n, rng) for n in range(kill9.CLIENTS)], [], 0
    try:
        cluster.start(shim)
        for c in clients:
            os.makedirs(cluster.path(c.home))
        for r in lib.rounds(rounds):
            done = r + 1
            if control:
                cluster.settle()
                shim['pretend'] = 2
            found = kill9.kill_round(cluster, clients, rng, lambda: power_cut(cluster, disk), least=100 if control else 0)
            disk.unmount()
            disk.mount()
            shim.disarm()
            cluster.start(shim)
            cluster.settle()
            for c in clients:
                found += c.audit()
            found += cluster.broker_faults()
            found += cluster.said() if found else []
            faults += [f'{kind}, round {r + 1}: {x}' for x in found]
            if found:
                break
        cluster.stop()
        faults += [x for x in [cluster.check_store()] if x]
    except (lib.NotReady, OSError) as e:
        faults.append(f'{kind}: {type(e).__name__}: {e}')
    finally:
        cluster.remove()
        disk.remove()
    return faults, done, sum(c.acks for c in clients)


def usable_disks(kinds):
    """A disk with each filesystem; what cannot be had is said."""
    for kind in kinds:
        try:
            yield kind, Disk(kind)
        except lib.CommandFailed as e:
            print(f'    skipped: power cuts on {kind}: {e}', flush=True)


def main():
    args = [a for a in sys.argv[1:] if not a.startswith('--')]
    kafkafs, rounds, seed = args[0], int(args[1]), int(args[2]) if len(args) > 2 else int(time.time())
    control, rng, faults, done = '--control' in sys.argv, random.Random(seed), [], []
    lib.mounts_of_its_own()
    kinds = [a.partition('=')[2] for a in sys.argv[1:] if a.startswith('--on=')] or ['ext4', 'xfs']
    each = rounds // len(kinds)
    for kind, disk in usable_disks(kinds):
        found, cuts, acks = rounds_on(kafkafs, disk, kind, each, rng, control)
        done.append(f'{cuts} power cuts on {kind} with {acks} acks')
        faults += found
        if control and not found:
            return lib.report('powercut-control', f'{done[-1]}, seed {seed}', ['nothing was lost without syncs'])
    text = f'{", ".join(done)}, {len(faults)} faults, seed {seed}'
    if not done:
        faults.append('no filesystem to try it on')
    return lib.report('powercut-control' if control else 'powercut', text, [] if control and done else faults)


if __name__ == '__main__':
    sys.exit(main())
