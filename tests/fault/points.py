#!/usr/bin/env python3
"""Every point at which a protocol can break: for n = 1, 2, ... the n-th call of the daemon that changes a disk is where
it dies (crash), or what fails (an errno), until a run passes that has no n-th call.

    points.py KAFKAFS crash [PROTOCOL...]
    points.py KAFKAFS EIO|ENOSPC|EROFS|EMFILE|ENOMEM|EINTR [PROTOCOL...]
    points.py KAFKAFS control               a disk that swallows an acknowledged commit: the audit must see it

After a crash the store must check, the next mount must come up, and the topic must be there whole or not at all: whole
if the request was acknowledged. After a failure the caller gets an errno that it can understand, the daemon lives and
ends with status 0, and after the next mount the same holds.
"""
import errno
import json
import os
import sys

import lib

PARTITIONS = {0: [1, 2], 1: [2, 1]}
TEXT = (json.dumps({'version': 1, 'partitions': PARTITIONS}) + '\n').encode()
# what a caller may be told when a disk call failed inside
DOCUMENTED = {errno.EIO, errno.EROFS, errno.ENOSPC, errno.ENOMEM, errno.EMFILE, errno.ENFILE}
# the daemon died under the call
DEAD = {errno.ENOTCONN, errno.ECONNABORTED, errno.EIO}
LIMIT = 2000


class Protocol:
    """prepare() runs unharmed, act() under fire; audit() says what is wrong afterwards, knowing whether act() returned."""
    def __init__(self, cluster):
        self.cluster, self.serial, self.topic = cluster, 0, None

    def prepare(self):
        self.serial += 1
        self.topic = f'{type(self).__name__.lower()}{self.serial}'

    def create(self):
        lib.write_once(self.cluster.path('brokers/topics', self.topic), TEXT)

    def whole_or_gone(self, must_exist, must_be_gone):
        there = os.path.lexists(self.cluster.path('brokers/topics', self.topic))
        faults = self.cluster.topic_faults(self.topic, PARTITIONS, there)
        if must_exist and not there:
            faults.append(f'{self.topic}: acknowledged, and lost')
        if must_be_gone and there:
            faults.append(f'{self.topic}: deletion acknowledged, and still there')
        return faults


class Create(Protocol):
    def act(self):
        self.create()

    def audit(self, acknowledged):
        return self.whole_or_gone(acknowledged, False)


class Delete(Protocol):
    def prepare(self):
        super().prepare()
        self.create()
        self.cluster.settle()

    def act(self):
        os.mkdir(self.cluster.path('admin/delete_topics', self.topic))

    def audit(self, acknowledged):
        return self.whole_or_gone(False, acknowledged)


class Config(Protocol):
    def prepare(self):
        super().prepare()
        self.create()
        lib.write_once(self.cluster.path('config/topics', self.topic), b'{"version":1,"config":{"retention.ms":"1"}}\n')
        self.cluster.settle()

    def act(self):
        lib.write_once(self.cluster.path('config/topics', self.topic), b'{"version":1,"config":{"retention.ms":"2"}}\n')
        note = json.dumps({'version': 2, 'entity_path': f'topics/{self.topic}'})
        lib.write_once(self.cluster.path('config/changes/config_change_'), note.encode())

    def audit(self, acknowledged):
        with open(self.cluster.path('config/topics', self.topic)) as f:
            value = json.load(f)['config']['retention.ms']
        with open(self.cluster.path('.state/brokers/1/config/topics', self.topic)) as f:
            in_force = dict(x.rstrip('\n').split('=', 1) for x in f)['retention.ms']
        if value not in ('1', '2') or (acknowledged and value != '2'):
            return [f'{self.topic}: retention.ms {value}']
        # a broker that starts reads the value whether it was notified or not
        return [] if in_force == value else [f'{self.topic}: {in_force} in force, {value} written']


class Mount(Protocol):
    """The start itself, with a topic that is there and one whose deletion was under way when the daemon died."""
    def prepare(self):
        super().prepare()
        self.create()
        self.dying = self.topic + '-dying'
        lib.write_once(self.cluster.path('brokers/topics', self.dying), TEXT)
        self.cluster.settle()
        os.mkdir(self.cluster.path('admin/delete_topics', self.dying))
        self.cluster.kill()

    def act(self):
        self.cluster.start(self.shim)
        self.cluster.settle()

    def audit(self, acknowledged):
        return self.whole_or_gone(True, False) + self.cluster.topic_faults(self.dying, {}, False)


def settle_or_dead(cluster):
    try:
        cluster.settle()
    except OSError as e:
        if e.errno not in DEAD:
            raise


def under_fire(cluster, protocol, shim, crash):
    """act() and what follows from it; returns (acknowledged, faults)."""
    try:
        protocol.act()
        settle_or_dead(cluster)
        return True, []
    except lib.NotReady as e:
        # a failing start must say why in one line, and has left no mount
        return False, [] if crash or 'ended with 1' in str(e) else [str(e)]
    except OSError as e:
        if e.errno in (DEAD if crash else DOCUMENTED):
            return False, []
        return False, [f'the caller got {errno.errorcode[e.errno]}']


def one_point(cluster, protocol, shim, n, error):
    """Returns None when there is no n-th call, else the faults found."""
    shim.disarm()
    if not cluster.daemon:
        cluster.start(shim)
        cluster.settle()
    protocol.shim = shim
    protocol.prepare()
    at = shim['calls'] + n
    if error is None:
        shim['kill_at'] = at
    else:
        shim['error'], shim['fail_to'], shim['fail_at'] = error, at, at
    acknowledged, faults = under_fire(cluster, protocol, shim, error is None)
    where = f'{type(protocol).__name__.lower()}, call {n} ({shim.last()})'
    reached = shim.last() != ''
    shim.disarm()
    if error is None and reached and cluster.daemon and cluster.wait_dead() is None:
        faults.append('the daemon did not die')
    if error is not None and cluster.daemon:
        status = cluster.stop()
        faults += [f'exit status {status}'] if status else []
    if not reached:
        return None
    if not cluster.daemon:
        faults += [x for x in [cluster.check_store()] if x]
        cluster.start(shim)
    cluster.settle()
    faults += protocol.audit(acknowledged)
    return [f'{where}: {x}' for x in faults]


def all_points(cluster, protocol, shim, error):
    faults, n = [], 0
    while n < LIMIT:
        found = one_point(cluster, protocol, shim, n + 1, error)
        if found is None:
            return faults, n
        n += 1
        faults += found
    return faults + [f'still calls to hit after {LIMIT}'], n


def control(cluster, shim):
    """The disk swallows the commits of a creation that is acknowledged, then the daemon dies."""
    protocol = Create(cluster)
    cluster.start(shim)
    cluster.settle()
    protocol.prepare()
    shim['pretend'] = 1
    protocol.act()
    cluster.kill()
    shim.disarm()
    cluster.start(shim)
    cluster.settle()
    return protocol.audit(True)


def campaign(kafkafs, name, work):
    """Runs work(cluster, shim) on a fresh cluster; what it cannot finish is a fault too."""
    cluster = lib.Cluster(kafkafs, brokers=2)
    shim = lib.Shim(f'{cluster.w}/shim')
    try:
        return work(cluster, shim)
    except (OSError, lib.NotReady, lib.Stuck) as e:
        return [f'{name}: {type(e).__name__}: {e}'], 0
    finally:
        cluster.remove()


def main():
    kafkafs, how, names = sys.argv[1], sys.argv[2], sys.argv[3:] or ['create', 'delete', 'config', 'mount']
    if how == 'control':
        found = campaign(kafkafs, how, lambda cluster, shim: (control(cluster, shim), 0))[0]
        seen = any('lost' in f for f in found)
        return lib.report('points-control', f'{len(found)} faults found', [] if seen else ['the audit found nothing'])
    error = None if how == 'crash' else getattr(errno, how)
    faults, counts = [], []
    for name in names:
        kind = globals()[name.capitalize()]
        found, n = campaign(kafkafs, name, lambda cluster, shim: all_points(cluster, kind(cluster), shim, error))
        faults += found
        counts.append(f'{name} {n}')
    return lib.report(f'points-{how}', f'{", ".join(counts)} points, {len(faults)} faults', faults)


if __name__ == '__main__':
    sys.exit(main())
