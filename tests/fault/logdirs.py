#!/usr/bin/env python3
"""Everything that can be wrong with a log dir, times everything that a broker does there.

    logdirs.py KAFKAFS [FAULT[:WORK]...]
    logdirs.py KAFKAFS --control    cells that must be found wrong: a disk that answers every rename and removal with
                                    success and does nothing, and faults that are never repaired

In each cell broker 2's log dir has the fault while the work is asked for. Right is: brokers 1 and 3 go on, nothing is
said to be done that is not, nothing foreign is touched, and after the repair and a start of the broker the work ends.

JOBS (2): cells at once.
"""
import fcntl
import json
import os
import shutil
import struct
import subprocess
import sys
import time
import traceback

import lib


def sh(*args):
    subprocess.run(args, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


class Fault:
    """The log dir is `dir`, its parent `logs`. `tools`: programs that it needs. setup() before the start, break_it() with the replica at `replica` (which
    may not exist yet), repair() afterwards, cleanup() at the end."""
    tools = ()

    def __init__(self, cluster):
        self.cluster, self.logs, self.dir = cluster, cluster.d, f'{cluster.d}/2'
        self.away, self.elsewhere = f'{cluster.w}/away', f'{cluster.w}/elsewhere'
        self.replica = self.work = None

    def setup(self):
        pass

    def cleanup(self):
        subprocess.run(['umount', '-l', self.dir], stderr=subprocess.DEVNULL, check=False)

    def harmed(self):
        """What was touched that is not Kafka's."""
        return []


class Full(Fault):
    def setup(self):
        sh('mount', '-t', 'tmpfs', '-o', 'size=4m', 'none', self.dir)

    def break_it(self, replica):
        try:
            with open(f'{self.dir}/filler', 'wb', buffering=0) as f:
                while True:
                    f.write(bytes(4096))
        except OSError:
            pass

    def repair(self, replica):
        os.unlink(f'{self.dir}/filler')


class NoInodes(Fault):
    def setup(self):
        sh('mount', '-t', 'tmpfs', '-o', 'size=4m,nr_inodes=60', 'none', self.dir)

    def break_it(self, replica):
        self.n = 0
        try:
            while True:
                open(f'{self.dir}/filler{self.n}', 'w').close()
                self.n += 1
        except OSError:
            pass

    def repair(self, replica):
        for i in range(self.n):
            os.unlink(f'{self.dir}/filler{i}')


class OnDisk(Fault):
    """The log dir is a file system of its own, on a loop device."""
    OPTIONS = 'loop'
    tools = ('mkfs.ext4', 'losetup')

    def setup(self):
        self.image = f'{self.cluster.w}/image'
        with open(self.image, 'wb') as f:
            f.truncate(16 << 20)
        sh('mkfs.ext4', '-qF', '-O', '^has_journal', self.image)
        self.mount()

    def mount(self):
        sh('mount', '-o', self.OPTIONS, self.image, self.dir)
        shutil.rmtree(f'{self.dir}/lost+found', ignore_errors=True)

    def check_and_mount(self):
        # lazily: the broker may not have noticed yet, if nothing was asked of it; then it looks and lets go
        sh('umount', '-l', self.dir)
        self.cluster.settle()
        limit = time.monotonic() + 60
        while True:
            done = subprocess.run(['e2fsck', '-fy', self.image], capture_output=True, text=True, check=False)
            if done.returncode <= 2:
                return self.mount()
            if time.monotonic() > limit:
                raise lib.Stuck(f'the disk is still in use after 60 s: {done.stdout}{done.stderr}')
            time.sleep(0.1)


class Immutable(OnDisk):
    FLAG = 'i'
    tools = OnDisk.tools + ('chattr',)

    def break_it(self, replica):
        self.what = replica if os.path.exists(replica) else self.dir
        sh('chattr', f'+{self.FLAG}', self.what)

    def repair(self, replica):
        sh('chattr', f'-{self.FLAG}', self.what)


class AppendOnly(Immutable):
    FLAG = 'a'


class ReadOnly(OnDisk):
    """The filesystem has found an error and turned read-only; the repair is e2fsck."""
    OPTIONS = 'loop,errors=remount-ro'
    tools = OnDisk.tools + ('findmnt', 'e2fsck')

    def break_it(self, replica):
        device = subprocess.run(['findmnt', '-no', 'SOURCE', self.dir], check=True, capture_output=True, text=True).stdout
        with open(f'/sys/fs/ext4/{os.path.basename(device.strip())}/trigger_fs_error', 'w') as f:
            f.write('1')

    def repair(self, replica):
        self.check_and_mount()


class Dead(OnDisk):
    """Every access fails with EIO; nothing that was not synced is there afterwards."""
    tools = OnDisk.tools + ('e2fsck',)
    SHUTDOWN = 0x8004587d  # EXT4_IOC_SHUTDOWN

    def break_it(self, replica):
        fd = os.open(self.dir, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, self.SHUTDOWN, struct.pack('I', 2))
        finally:
            os.close(fd)

    def repair(self, replica):
        self.check_and_mount()


class Busy(Fault):
    """Something is mounted on the replica's directory, or on one that is in the way of it."""

    def break_it(self, replica):
        os.makedirs(replica, exist_ok=True)
        sh('mount', '-t', 'tmpfs', '-o', 'size=1m', 'none', replica)
        with open(f'{replica}/precious', 'w') as f:
            f.write('precious')

    def harmed(self):
        gone = os.path.ismount(self.replica) and not os.path.exists(f'{self.replica}/precious')
        return ['the mounted filesystem was emptied'] if gone else []

    def repair(self, replica):
        sh('umount', replica)
        # an empty directory that was only in the way
        if not os.listdir(replica):
            os.rmdir(replica)


class Missing(Fault):
    def break_it(self, replica):
        os.rename(self.dir, self.away)

    def repair(self, replica):
        # a broker that was started meanwhile has made a new one, as Kafka does
        shutil.rmtree(self.dir, ignore_errors=True)
        os.rename(self.away, self.dir)


class Link(Missing):
    """The log dir was moved, and a link to somewhere else is in its place."""

    def break_it(self, replica):
        super().break_it(replica)
        self.target = os.path.join(self.elsewhere, os.path.basename(replica))
        os.makedirs(self.target)
        with open(f'{self.target}/precious', 'w') as f:
            f.write('precious')
        os.symlink(self.elsewhere, self.dir)

    def harmed(self):
        # a broker that starts takes the link for its log dir, as it may; what lies there is not deleted all the same
        found = os.listdir(self.target)
        good = 'precious' in found and (self.work is Restart or len(found) == 1)
        return [] if good else [f'behind the link there is {found}']

    def repair(self, replica):
        os.unlink(self.dir)
        super().repair(replica)


class Unmounted(Fault):
    """The disk goes, and its empty mount point stays."""

    def setup(self):
        os.mkdir(self.away)
        sh('mount', '-t', 'tmpfs', '-o', 'size=4m', 'none', self.away)
        sh('mount', '--bind', self.away, self.dir)

    def break_it(self, replica):
        sh('umount', '-l', self.dir)

    def harmed(self):
        # a broker that starts finds an empty log dir, and cannot know better
        empty = self.work is Restart or os.path.ismount(self.dir) or not os.listdir(self.dir)
        return [] if empty else [f'{os.listdir(self.dir)} written into the empty mount point']

    def repair(self, replica):
        sh('mount', '--bind', self.away, self.dir)

    def cleanup(self):
        super().cleanup()
        sh('umount', '-l', self.away)


class Foreign(Fault):
    """Files that are not Kafka's beside the replicas and in them."""

    def break_it(self, replica):
        os.makedirs(f'{self.elsewhere}/kept')
        with open(f'{self.elsewhere}/kept/precious', 'w') as f:
            f.write('precious')
        with open(f'{self.dir}/notes.txt', 'w') as f:
            f.write('mine')
        if os.path.isdir(replica):
            os.symlink(f'{self.elsewhere}/kept', f'{replica}/link')
            os.mkfifo(f'{replica}/pipe')

    def harmed(self):
        kept = os.path.exists(f'{self.elsewhere}/kept/precious') and os.path.exists(f'{self.dir}/notes.txt')
        return [] if kept else ['foreign files are gone']

    def repair(self, replica):
        pass


FAULTS = [Full, NoInodes, ReadOnly, Dead, Immutable, AppendOnly, Busy, Missing, Link, Unmounted, Foreign]


# ---- the work --------------------------------------------------------------------------------------------------------

def write_topic(cluster, name, replicas):
    lib.write_once(cluster.path('brokers/topics', name), json.dumps({'version': 1, 'partitions': {'0': replicas}}).encode() + b'\n')


class Create:
    replicas, final = [2, 1], [2, 1]

    def prepare(self, cluster):
        pass

    def ask(self, cluster):
        write_topic(cluster, 't', self.replicas)

    def again(self, cluster):
        pass

    def faults(self, cluster):
        found = cluster.topic_faults('t', {0: self.final}, True)
        with open(cluster.path('brokers/topics/t/partitions/0/state')) as f:
            isr = sorted(json.load(f)['isr'])
        return found + ([] if isr == sorted(self.final) else [f'in-sync set {isr}'])


class Restart(Create):
    def prepare(self, cluster):
        write_topic(cluster, 't', self.replicas)

    def ask(self, cluster):
        kill_broker(cluster)
        start_broker(cluster)


class Delete(Restart):
    def ask(self, cluster):
        os.mkdir(cluster.path('admin/delete_topics/t'))

    def again(self, cluster):
        if os.path.exists(cluster.path('admin/delete_topics/t')):
            os.utime(cluster.path('admin/delete_topics/t'))

    def faults(self, cluster):
        return cluster.topic_faults('t', {}, False)


class Reassign(Create):
    final = [2, 3]

    def prepare(self, cluster):
        write_topic(cluster, 't', [1, 3])

    def ask(self, cluster):
        request = {'version': 1, 'partitions': [{'topic': 't', 'partition': 0, 'replicas': self.final}]}
        lib.write_once(cluster.path('admin/reassign_partitions'), json.dumps(request).encode())

    def faults(self, cluster):
        left = os.path.exists(cluster.path('admin/reassign_partitions'))
        return super().faults(cluster) + (['the request is still there'] if left else []) + \
            (['the old replica is left on 1'] if os.path.exists(f'{cluster.d}/1/t-0') else [])


class Vacate(Reassign):
    """The other way: the replica on broker 2 is the one that goes. A directory that could not be removed stays, as in
    Kafka, whose controller does not ask twice; but whole, and never as anything else."""
    final = [1, 3]

    def prepare(self, cluster):
        write_topic(cluster, 't', [2, 3])

    def faults(self, cluster):
        return Create.faults(self, cluster) + [f'{x} is left' for x in cluster.directories('t')
                                               if x not in ('1/t-0', '2/t-0', '3/t-0')]


WORK = [Create, Restart, Delete, Reassign, Vacate]


def kill_broker(cluster):
    """rm; its disk may have ended it already."""
    try:
        os.unlink(cluster.path('brokers/ids/2'))
    except FileNotFoundError:
        pass


def start_broker(cluster):
    """touch; that it cannot start is an answer too."""
    try:
        os.close(os.open(cluster.path('brokers/ids/2'), os.O_CREAT | os.O_WRONLY, 0o644))
    except OSError:
        pass


def others_go_on(cluster):
    """A topic on brokers 1 and 3 comes and goes."""
    write_topic(cluster, 'other', [1, 3])
    cluster.settle()
    found = cluster.topic_faults('other', {0: [1, 3]}, True)
    os.mkdir(cluster.path('admin/delete_topics/other'))
    cluster.settle()
    return [f'meanwhile: {x}' for x in found + cluster.topic_faults('other', {}, False)]


def is_done(work_kind, cluster):
    """Does the tree say so?"""
    if work_kind is Delete:
        return not os.path.exists(cluster.path('admin/delete_topics/t'))
    return False


def cell(kafkafs, fault_kind, work_kind, lying=False, repaired=True):
    """Returns what is wrong. `lying`: the disk changes no names; else `repaired` False: it stays broken."""
    cluster = lib.Cluster(kafkafs, in_memory=True)
    shim = lib.Shim(f'{cluster.w}/shim') if lying else None
    fault, work, found = fault_kind(cluster), work_kind(), []
    replica = f'{fault.dir}/t-0'
    try:
        fault.setup()
        cluster.start(shim)
        work.prepare(cluster)
        cluster.settle()
        fault.replica, fault.work = replica, work_kind
        fault.break_it(replica)
        if lying:
            shim['pretend'] = 3
        work.ask(cluster)
        cluster.settle()
        found += others_go_on(cluster) if not lying else []
        found += fault.harmed()
        if is_done(work_kind, cluster):
            found += [f'said to be done: {x}' for x in work.faults(cluster)]
        if repaired:
            fault.repair(replica)
        kill_broker(cluster)
        start_broker(cluster)
        work.again(cluster)
        cluster.settle()
        found += work.faults(cluster) + fault.harmed()
        found += [f'exit status {s}' for s in [cluster.stop()] if s]
    except Exception:  # pylint: disable=broad-except; what a cell cannot finish is wrong, and the others go on
        found += [traceback.format_exc(), cluster.last_words()]
    finally:
        cluster.remove_mount()
        fault.cleanup()
        cluster.remove()
    return found


def work(unit):
    kafkafs, fault_kind, work_kind, how = unit
    return fault_kind, work_kind, cell(kafkafs, fault_kind, work_kind, **how)


def can_run(fault_kind):
    missing = [x for x in fault_kind.tools if not shutil.which(x)]
    if missing:
        print(f'skipped logdirs {fault_kind.__name__}: no {", ".join(missing)}')
    return not missing


def units_of(names):
    for f in FAULTS:
        for w in WORK:
            name = f'{f.__name__}:{w.__name__}'
            if not names or f.__name__ in names or name in names:
                yield f, w, {}


def control_units():
    """What is left where it lies is not said to be gone; and what needs the disk is not done without it (where a broker
    cannot make a new one, and there is something to repair)."""
    for f in FAULTS:
        yield f, Delete, {'lying': True}
        if f not in (Missing, Foreign):
            yield f, Create, {'repaired': False}


def main():
    kafkafs, names = sys.argv[1], sys.argv[2:]
    control = names == ['--control']
    able = [f for f in FAULTS if can_run(f)]
    units = [(kafkafs, f, w, how) for f, w, how in (control_units() if control else units_of(names)) if f in able]
    results = lib.in_parallel(work, units)
    wrong = [(f'{f.__name__} x {w.__name__}', found) for f, w, found in results if found]
    if control:
        missed = [f'{f.__name__} x {w.__name__}: found right' for f, w, found in results if not found]
        return lib.report('logdirs-control', f'{len(units)} cells broken on purpose, {len(wrong)} found wrong', missed)
    kinds = ', '.join(sorted({w.__name__.lower() for _, _, w, _ in units}))
    return lib.report('logdirs', f'{len(units)} cells ({kinds}), {len(wrong)} wrong',
                      [f'{name}: {x}' for name, found in wrong for x in found])


if __name__ == '__main__':
    sys.exit(main())
