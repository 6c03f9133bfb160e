#!/usr/bin/env python3
"""The power goes, again and again: store and log dirs lie on a filesystem of their own (ext4, then xfs if it can be made)
that is shut down under load, so that what was not synced is gone. Then: the audit of kill9.py.

    powercut.py KAFKAFS ROUNDS [SEED]
    powercut.py KAFKAFS ROUNDS SEED --control     a disk that does not sync: must lose something
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
        subprocess.run([f'mkfs.{kind}', '-q', self.image], check=True)
        self.mount()

    def mount(self):
        subprocess.run(['mount', '-o', 'loop', self.image, self.mount_point], check=True)

    def unmount(self):
        subprocess.run(['umount', self.mount_point], check=True)

    def cut(self):
        fd = os.open(self.mount_point, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, SHUTDOWN, struct.pack('I', NO_LOG_FLUSH))
        finally:
            os.close(fd)

    def remove(self):
        subprocess.run(['umount', self.mount_point], stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(self.dir)


def power_cut(cluster, disk):
    """First the daemon stands still, so that no sync can return from a disk that is gone already."""
    os.kill(cluster.daemon.pid, signal.SIGSTOP)
    disk.cut()
    cluster.kill()


def rounds_on(kafkafs, kind, rounds, rng, control):
    disk = Disk(kind)
    cluster = lib.Cluster(kafkafs, disk=disk.mount_point)
    # the broker files are ours, not the daemon's to sync
    subprocess.run(['sync', '-f', disk.mount_point], check=True)
    shim = lib.Shim(f'{cluster.w}/shim')
    clients, faults = [kill9.Client(cluster, n, rng) for n in range(kill9.CLIENTS)], []
    try:
        cluster.start(shim)
        for c in clients:
            os.makedirs(cluster.path(c.home))
        for r in range(rounds):
            if control:
                cluster.settle()
                shim['pretend'] = 2
            found = kill9.kill_round(cluster, clients, rng, lambda: power_cut(cluster, disk))
            disk.unmount()
            disk.mount()
            shim.disarm()
            cluster.start(shim)
            cluster.settle()
            for c in clients:
                found += c.audit()
            faults += [f'{kind}, round {r + 1}: {x}' for x in found]
        cluster.stop()
        faults += [x for x in [cluster.check_store()] if x]
    except (lib.NotReady, OSError) as e:
        faults.append(f'{kind}: {type(e).__name__}: {e}')
    finally:
        cluster.remove()
        disk.remove()
    return faults, sum(c.acks for c in clients)


def main():
    args = [a for a in sys.argv[1:] if not a.startswith('--')]
    kafkafs, rounds, seed = args[0], int(args[1]), int(args[2]) if len(args) > 2 else int(time.time())
    control, rng, faults, acks = '--control' in sys.argv, random.Random(seed), [], 0
    kinds = [k for k in ('ext4', 'xfs') if shutil.which(f'mkfs.{k}')]
    for kind in kinds[:1] if control else kinds:
        found, n = rounds_on(kafkafs, kind, rounds // (1 if control else len(kinds)), rng, control)
        faults += found
        acks += n
    text = f'{rounds} power cuts on {" and ".join(kinds)}, {acks} acks, {len(faults)} faults, seed {seed}'
    if control:
        return lib.report('powercut-control', text, [] if faults else ['nothing was lost without syncs'])
    return lib.report('powercut', text, faults)


if __name__ == '__main__':
    sys.exit(main())
