#!/usr/bin/env python3
"""Every point at which a protocol (protocols.py) can break: for n = 1, 2, ... the n-th call of the daemon that can suffer it
is where it dies (crash), fails (an errno) or does only half (short), until a run passes that has no n-th call.

    points.py KAFKAFS crash|EIO|ENOSPC|EROFS|EMFILE|ENOMEM|EINTR|short [PROTOCOL[:N]...]
                                              N: only this point
    points.py KAFKAFS recovery [PROTOCOL...]  two deep: dies in the protocol, and dies again at every point of the start
                                              that follows
    points.py KAFKAFS control                 a disk that lies: the audits must see it

After a crash the store must check, the next mount must come up, and what was asked for must be there whole or not at
all: whole if it was acknowledged. After a failure the caller gets an errno that is documented, and then nothing has
happened; or none, and then everything: at once, or where a log dir or a broker went down for it, after the next mount.
The daemon lives and ends with status 0. A call that was only interrupted, or wrote half, is no failure at all.

JOBS (2): clusters at once. LONG=1: recovery from the first and the last call of every name, not from a few.
"""
import errno
import os
import sys
import threading
import traceback

import lib
from protocols import DONE, PROTOCOLS, REFUSED, UNKNOWN

# what the caller may be told when such a call failed inside
DOCUMENTED = {
    'EIO': {errno.EIO, errno.EROFS},
    'ENOSPC': {errno.ENOSPC, errno.EIO, errno.EROFS},
    'EROFS': {errno.EROFS, errno.EIO},
    'EMFILE': {errno.EMFILE, errno.EIO},
    'ENOMEM': {errno.ENOMEM, errno.EIO, errno.EROFS},
    'EINTR': set(),
    # LMDB's word for a write that was cut short
    'short': {errno.EIO, errno.EROFS},
}
# the daemon died under the call
DEAD = {errno.ENOTCONN, errno.ECONNABORTED, errno.EIO}
LIMIT = 4000
# audits that wait for the next mount
PENDING = 8
SECONDS = 60


class Point:
    """One round: what it was about, what the caller was told, and what was wrong."""

    def __init__(self, protocol, kind, n):
        self.where = f'{type(protocol).__name__.lower()}, {kind} at call {n}'
        self.protocol, self.subject, self.done, self.wrong = protocol, None, DONE, []

    def add(self, faults):
        self.wrong += faults

    def faults(self):
        return [f'{self.where}: {x}' for x in self.wrong]

    def hit(self, call):
        self.where += f' ({call})'

    def audit(self):
        try:
            return self.protocol.audit(self.subject, self.done)
        except OSError as e:
            return [f'the audit met {e}']


class Campaign:
    """All points of one protocol and kind, on a cluster of its own."""

    def __init__(self, kafkafs, name, kind):
        self.cluster = lib.Cluster(kafkafs, PROTOCOLS[name].brokers, in_memory=True)
        self.shim = lib.Shim(f'{self.cluster.w}/shim')
        self.protocol = PROTOCOLS[name](self.cluster, self.shim, kind)
        self.kind, self.pending, self.said = kind, [], 0
        self.protocol.setup()

    # ---- the daemon ----

    def start(self):
        self.cluster.start(self.shim)
        self.cluster.settle()
        self.said = len(self.errors())

    def errors(self):
        with open(self.cluster.path('.state/errors')) as f:
            return f.read()

    def remount(self):
        """The audits that have waited for it; returns what is wrong."""
        last = self.pending[-1]
        if self.cluster.daemon:
            status = self.cluster.stop()
            last.add([f'exit status {status}'] if status else [])
        self.start()
        for point in self.pending:
            point.add(point.audit())
        for point in self.pending:
            self.protocol.cleanup(point.subject)
        faults = [x for point in self.pending for x in point.faults()]
        self.pending = []
        return faults

    # ---- one round ----

    def under_fire(self, point):
        """act() and what follows from it."""
        crash = self.kind == 'crash'
        try:
            self.protocol.act(point.subject)
            self.cluster.settle()
        except lib.NotReady as e:
            point.done = UNKNOWN
            # a failing start must say why in one line
            if not crash and ('ended with 1:' not in str(e) or 'kafkafs: ' not in str(e)):
                point.add([str(e)])
        except OSError as e:
            point.done = UNKNOWN if crash else REFUSED
            if e.errno not in (DEAD if crash else DOCUMENTED[self.kind]):
                point.add([f'the caller got {errno.errorcode[e.errno]}'])

    def round(self, n):
        """Returns (reached, point): whether there was an n-th call."""
        protocol, point = self.protocol, Point(self.protocol, self.kind, n)
        self.shim.disarm()
        if not self.cluster.daemon and not protocol.starts:
            self.start()
        point.subject = protocol.prepare()
        self.shim.arm(self.kind, n)
        with Watch(self.cluster, point):
            self.under_fire(point)
        call = self.shim.last()
        self.shim.disarm()
        point.hit(call)
        if self.cluster.daemon and self.kind == 'crash' and call and self.cluster.wait_dead() is None:
            point.add(['the daemon did not die'])
        if self.cluster.daemon and self.cluster.daemon.poll() is not None:
            point.add([f'the daemon ended with {self.cluster.daemon.returncode}'])
            self.cluster.daemon = None
        if not protocol.starts:
            protocol.repair(point.subject)
        return call != '', point

    def judge(self, point):
        """What is wrong after a round, with all that was found of earlier ones."""
        if self.cluster.daemon:
            try:
                self.cluster.settle()
            except OSError as e:
                point.add([f'the mount does not answer: {e}'])
                self.cluster.kill()
        if not self.cluster.daemon:
            point.add([x for x in [self.cluster.check_store()] if x])
            self.pending.append(point)
            return self.remount()
        wrong = point.audit()
        if self.kind == 'EINTR':
            point.add([f'before the next mount: {x}' for x in wrong])
        good = not wrong and len(self.errors()) == self.said and point.done == DONE
        if good and self.protocol.alone:
            self.protocol.cleanup(point.subject)
            return point.faults()
        self.pending.append(point)
        return [] if good and len(self.pending) < PENDING else self.remount()

    def run_one(self, n):
        """Returns (number of points, faults)."""
        reached, point = self.round(n)
        faults = self.judge(point)
        return int(reached), faults + (self.remount() if self.pending else [])

    def run(self):
        """Returns (number of points, faults)."""
        faults, n, missed = [], 0, 0
        # threads may meet in another order: a call that was not there once may come after all
        while missed < 2 and n < LIMIT:
            reached, point = self.round(n + missed + 1)
            faults += self.judge(point)
            if reached:
                n, missed = n + missed + 1, 0
            else:
                missed += 1
        if self.pending:
            faults += self.remount()
        return n, faults + ([f'still calls to hit after {LIMIT}'] if n == LIMIT else [])

    # ---- two deep ----

    def first_deaths(self):
        """The numbers of the calls at which the protocol dies first: (number, name), a few that differ."""
        names, n = {}, 0
        while True:
            reached, point = self.round(n + 1)
            self.judge(point)
            if not reached:
                break
            n += 1
            names.setdefault(point.where.partition('(')[2].split()[0].rstrip(')'), []).append(n)
        if self.pending:
            self.remount()
        if os.environ.get('LONG') == '1':
            return sorted({x for numbers in names.values() for x in (numbers[0], numbers[-1])})
        return sorted({max(1, n * i // 4) for i in (1, 2, 3)})

    def recoveries(self, n):
        """Dies at the n-th call, then at every call of the start. Returns (number of points, faults)."""
        reached, first = self.round(n)
        if not reached:
            return 0, []
        self.cluster.save('dead')
        faults, m = [], 0
        while m < LIMIT:
            second = Point(self.protocol, 'crash', n)
            second.where, second.subject, second.done = f'{first.where}, then at {m + 1}', first.subject, first.done
            if m:
                self.cluster.restore('dead')
            self.shim.arm('crash', m + 1)
            with Watch(self.cluster, second):
                try:
                    self.start()
                except (OSError, lib.NotReady):
                    pass
            call = self.shim.last()
            self.shim.disarm()
            second.hit(call)
            if call:
                if self.cluster.daemon and self.cluster.wait_dead() is None:
                    second.add(['the daemon did not die'])
                self.start()
            second.add(second.audit())
            faults += second.faults()
            self.cluster.kill()
            if not call:
                break
            m += 1
        self.cluster.restore('dead')
        if not self.protocol.starts:
            self.start()
            self.protocol.cleanup(first.subject)
        return m, faults


class Watch:
    """A round that does not come to its end is a fault, and must not hang the campaign."""

    def __init__(self, cluster, point):
        self.cluster, self.point = cluster, point
        self.timer = threading.Timer(SECONDS, self.abort)

    def abort(self):
        self.point.add([f'hung for {SECONDS} s'])
        self.cluster.daemon.kill()
        self.cluster.abort()

    def __enter__(self):
        self.timer.start()

    def __exit__(self, *unused):
        self.timer.cancel()


# ---- many at once ----------------------------------------------------------------------------------------------------

def work(unit):
    """Returns (protocol, number of points, faults)."""
    kafkafs, name, kind, only, first = unit
    campaign = None
    try:
        campaign = Campaign(kafkafs, name, kind)
        n, faults = campaign.recoveries(first) if first else campaign.run_one(only) if only else campaign.run()
        return name, n, faults
    except Exception:  # pylint: disable=broad-except; what it cannot finish is a fault, and the others go on
        return name, 0, [f'{name}, {kind}: {traceback.format_exc()}'] + ([campaign.cluster.last_words()] if campaign else [])
    finally:
        if campaign:
            campaign.cluster.remove()


def first_deaths(unit):
    kafkafs, name = unit
    campaign = Campaign(kafkafs, name, 'crash')
    try:
        return [(kafkafs, name, 'crash', 0, n) for n in campaign.first_deaths()]
    finally:
        campaign.cluster.remove()


def lie(unit):
    """The disk swallows the commits of what is acknowledged, then the daemon dies. Returns the name, and what the audit has
    found."""
    kafkafs, name = unit
    campaign = Campaign(kafkafs, name, 'crash')
    cluster, protocol = campaign.cluster, campaign.protocol
    try:
        campaign.start()
        subject = protocol.prepare()
        campaign.shim['pretend'] = 1
        protocol.act(subject)
        cluster.settle()
        cluster.kill()
        campaign.shim.disarm()
        campaign.start()
        return name, protocol.audit(subject, DONE)
    finally:
        cluster.remove()


def control(kafkafs):
    found = lib.in_parallel(lie, [(kafkafs, name) for name in ('create', 'config', 'reassign', 'delete')])
    missed = [f'{name}: the audit found nothing' for name, faults in found if not faults]
    return lib.report('points-control', f'{len(found)} protocols on a disk that lies, '
                      f'{len(found) - len(missed)} found wrong', missed)


def main():
    kafkafs, kind, names = sys.argv[1], sys.argv[2], sys.argv[3:] or list(PROTOCOLS)
    if kind == 'control':
        return control(kafkafs)
    if kind == 'recovery':
        units = [u for units in lib.in_parallel(first_deaths, [(kafkafs, n) for n in names]) for u in units]
    else:
        units = [(kafkafs, name.partition(':')[0], kind, int(name.partition(':')[2] or 0), 0) for name in names]
    results = lib.in_parallel(work, units)
    counts, faults = {name.partition(':')[0]: 0 for name in names}, []
    for name, n, found in results:
        counts[name] += n
        faults += found
        if n == 0 and not found and kind in ('crash', 'EIO', 'recovery'):
            faults.append(f'{name}: no point was reached')
    text = ', '.join(f'{name} {n}' for name, n in counts.items())
    return lib.report(f'points-{kind}', f'{text}: {sum(counts.values())} points, {len(faults)} faults', faults)


if __name__ == '__main__':
    sys.exit(main())
