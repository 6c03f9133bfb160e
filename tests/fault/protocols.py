"""The protocols that points.py breaks at every point: each one asks for something that takes many steps on the disk and in
the store, and knows what must be there afterwards.

prepare() runs unharmed and returns the subject (anything that names what this round is about); act() runs under fire;
repair() undoes what act() did to the surroundings; audit() says what is wrong when all has settled, `done` being what the
caller was told: DONE, REFUSED (an errno) or UNKNOWN (the daemon died). cleanup() leaves the cluster as it was before.
"""
import json
import os
import shutil
import subprocess
import time

import lib

DONE, REFUSED, UNKNOWN = 'done', 'refused', 'unknown'
PARTITIONS = {0: [1, 2], 1: [2, 1]}


def text_of(value):
    return (json.dumps(value) + '\n').encode()


def topic_text(partitions):
    return text_of({'version': 1, 'partitions': partitions})


class Protocol:
    brokers = 2
    starts = False  # act() starts the daemon itself
    alone = False  # nothing of it can stay until a later audit

    def __init__(self, cluster, shim, kind):
        self.cluster, self.shim, self.kind, self.serial = cluster, shim, kind, 0

    def setup(self):
        """Once, before the first start."""

    def prepare(self):
        topic = self.next_name()
        self.create(topic)
        self.cluster.settle()
        return topic

    def repair(self, topic):
        pass

    def cleanup(self, topic):
        self.delete(topic)
        self.cluster.settle()

    # ---- parts ----

    def next_name(self):
        self.serial += 1
        return f'{type(self).__name__.lower()}{self.serial}'

    def create(self, topic):
        lib.write_once(self.cluster.path('brokers/topics', topic), topic_text(PARTITIONS))

    def delete(self, topic):
        if os.path.lexists(self.cluster.path('brokers/topics', topic)):
            os.mkdir(self.cluster.path('admin/delete_topics', topic))

    def restart_broker(self, broker):
        """rm and touch of its id."""
        ids = self.cluster.path('brokers/ids', str(broker))
        try:
            os.unlink(ids)
        except FileNotFoundError:
            pass
        lib.write_once(ids, b'', os.O_CREAT)

    def try_to_restart_broker(self, broker):
        """If nothing but the next mount helps, that will be seen."""
        try:
            if self.cluster.daemon:
                self.restart_broker(broker)
        except OSError:
            pass

    def whole(self, topic, partitions, old=()):
        """It is there with all its directories, and no others, but for those of `old` replicas: (broker, partition)."""
        found = [x.rpartition('/')[2] for x in self.cluster.directories(topic)]
        extra = set(found) - {f'{topic}-{p}' for p in partitions}
        left = [f'{b}/{topic}-{p}' for b, p in old if f'{b}/{topic}-{p}' in self.cluster.directories(topic)]
        n = sum(len(r) for r in partitions.values())
        faults = self.cluster.topic_faults(topic, partitions, True)
        if extra or len(found) - len(left) != n:
            faults.append(f'{topic}: directories {self.cluster.directories(topic)}')
        return faults

    def whole_or_gone(self, topic, must_exist, must_be_gone):
        there = os.path.lexists(self.cluster.path('brokers/topics', topic))
        faults = self.whole(topic, PARTITIONS) if there else self.cluster.topic_faults(topic, {}, False)
        if must_exist and not there:
            faults.append(f'{topic}: acknowledged, and lost')
        if must_be_gone and there:
            faults.append(f'{topic}: is there, and should not be')
        return faults


class Create(Protocol):
    def prepare(self):
        return self.next_name()

    def act(self, topic):
        self.create(topic)

    def audit(self, topic, done):
        return self.whole_or_gone(topic, done == DONE, done == REFUSED)


class Delete(Protocol):
    def act(self, topic):
        os.mkdir(self.cluster.path('admin/delete_topics', topic))

    def audit(self, topic, done):
        return self.whole_or_gone(topic, done == REFUSED, done == DONE)


class Config(Protocol):
    """An override is changed, and the brokers are told."""

    def prepare(self):
        topic = super().prepare()
        self.write(topic, '1')
        self.cluster.settle()
        return topic

    def write(self, topic, value):
        config = {'version': 1, 'config': {'retention.ms': value}}
        lib.write_once(self.cluster.path('config/topics', topic), text_of(config))

    def act(self, topic):
        self.write(topic, '2')
        note = {'version': 2, 'entity_path': f'topics/{topic}'}
        lib.write_once(self.cluster.path('config/changes/config_change_'), text_of(note))

    def audit(self, topic, done):
        with open(self.cluster.path('config/topics', topic)) as f:
            value = json.load(f)['config']['retention.ms']
        with open(self.cluster.path('.state/brokers/1/config/topics', topic)) as f:
            in_force = dict(x.rstrip('\n').split('=', 1) for x in f)['retention.ms']
        if value not in ('1', '2') or (done == DONE and value != '2'):
            return [f'{topic}: retention.ms {value}']
        # refused: the value, or only the notification; a broker that starts reads the value whether it was told or not
        if in_force == value or (done == REFUSED and value == '2'):
            return []
        return [f'{topic}: {in_force} in force, {value} written']


class Reassign(Protocol):
    """Replicas move: new directories, catching up, new leaders, old directories removed. One that is not
    removed when the daemon dies, or could not be for a failure, stays under its own name, as in Kafka, whose controller
    does not ask twice."""
    brokers = 3
    TARGET = {0: [2, 3], 1: [3, 1]}
    OLD = ((1, 0), (2, 1))

    def act(self, topic):
        request = [{'topic': topic, 'partition': p, 'replicas': r} for p, r in self.TARGET.items()]
        lib.write_once(self.cluster.path('admin/reassign_partitions'), text_of({'version': 1, 'partitions': request}))

    def audit(self, topic, done):
        with open(self.cluster.path('brokers/topics', topic, '.data')) as f:
            moved = json.load(f)['partitions'] != {str(p): r for p, r in PARTITIONS.items()}
        faults = self.whole(topic, self.TARGET, self.OLD) if moved else self.whole(topic, PARTITIONS)
        if os.path.exists(self.cluster.path('admin/reassign_partitions')):
            faults.append('the request is still there')
        if moved != (done == DONE) and done != UNKNOWN:
            faults.append(f'{topic}: {done}, and {"" if moved else "not "}moved')
        return faults


class LogDir(Protocol):
    """Broker 2 has a second log dir, with a partition in each."""

    def setup(self):
        self.second = f'{self.cluster.d}/2b'
        os.makedirs(self.second)
        self.use([f'{self.cluster.d}/2', self.second])

    def use(self, log_dirs):
        self.cluster.configure(2, log_dirs)

    def audit(self, topic, done):
        faults = self.whole(topic, PARTITIONS)
        left = os.listdir(self.cluster.path('log_dir_event_notification'))
        return faults + [f'{x} is left' for x in left]


class Retire(LogDir):
    """It is taken from log.dirs: what was there is made again in the other one, and stays where it is."""
    alone = True

    def prepare(self):
        topic = super().prepare()
        self.kept = sorted(x for x in os.listdir(self.second) if x.startswith(topic))
        return topic

    def act(self, topic):
        self.use([f'{self.cluster.d}/2'])
        self.restart_broker(2)

    def repair(self, topic):
        # act() may have been kept from it
        self.use([f'{self.cluster.d}/2'])
        self.try_to_restart_broker(2)

    def audit(self, topic, done):
        now = sorted(x for x in os.listdir(self.second) if x.startswith(topic))
        return super().audit(topic, done) + ([f'of {self.kept} there is {now}'] if now != self.kept else [])

    def cleanup(self, topic):
        super().cleanup(topic)
        for name in self.kept:
            shutil.rmtree(f'{self.second}/{name}')
        self.use([f'{self.cluster.d}/2', self.second])
        self.restart_broker(2)


class Lost(LogDir):
    """It fails while it is in use, and comes back at the broker's next start."""

    def act(self, topic):
        os.rename(self.second, self.cluster.w + '/away')
        # a mount that comes makes the daemon look at all of its log dirs
        os.makedirs(self.cluster.w + '/other', exist_ok=True)
        subprocess.run(['mount', '-t', 'tmpfs', 'none', self.cluster.w + '/other'], check=True)
        subprocess.run(['umount', self.cluster.w + '/other'], check=True)
        # the kernel tells the daemon, not us; what settles has looked
        limit = time.monotonic() + 30
        while not self.noticed():
            if time.monotonic() > limit:
                raise lib.Stuck('the daemon has not noticed that its log dir is gone')
            self.cluster.settle()

    def noticed(self):
        """The failure that is played may be the other log dir's, and with both the broker ends; one that says nothing about a
        disk may not do that."""
        where = self.cluster.path('.state/brokers/2/offline_log_dirs')
        failed = self.cluster.broker_faults() + [os.readlink(os.path.join(where, x)) for x in os.listdir(where)]
        others = [x for x in failed if x != self.second]
        if others and self.kind in ('EMFILE', 'ENOMEM', 'EINTR'):
            raise lib.Stuck(f'failed, but not lost: {others}')
        return failed

    def repair(self, topic):
        if os.path.exists(self.cluster.w + '/away'):
            # a broker that was started meanwhile has made a new one, as Kafka does
            shutil.rmtree(self.second, ignore_errors=True)
            os.rename(self.cluster.w + '/away', self.second)
        self.try_to_restart_broker(2)


class Mount(Protocol):
    """A start, with a topic that is there and one whose deletion was under way when the daemon died."""
    starts = alone = True

    def setup(self):
        self.cluster.start(self.shim)
        self.create('there')
        self.create('dying')
        self.cluster.settle()
        self.shim.arm('crash', 12)
        try:
            os.mkdir(self.cluster.path('admin/delete_topics/dying'))
        except OSError:
            pass
        if self.cluster.wait_dead() is None:
            raise lib.Stuck('the deletion has no 12th call')
        self.shim.disarm()
        self.cluster.save('before')

    def prepare(self):
        if self.cluster.daemon:
            self.cluster.kill()
        self.cluster.restore('before')

    def act(self, subject):
        self.cluster.start(self.shim)
        self.cluster.settle()

    def audit(self, subject, done):
        return self.whole_or_gone('there', True, False) + self.cluster.topic_faults('dying', {}, False)

    def cleanup(self, subject):
        pass


class First(Mount):
    """The first start of a cluster: broker files, store, cluster id, log dirs."""

    def setup(self):
        shutil.rmtree(self.cluster.c)
        os.mkdir(self.cluster.c)
        for b in self.cluster.ids:
            self.cluster.log_dirs[b] = [f'{self.cluster.c}/broker-{b}']
        self.cluster.options = [f'--brokers={self.brokers}']
        self.cluster.save('before')

    def audit(self, subject, done):
        ids = sorted(os.listdir(self.cluster.path('brokers/ids')))
        if ids != [str(b) for b in self.cluster.ids]:
            return [f'brokers {ids}']
        topic = self.next_name()
        self.create(topic)
        self.cluster.settle()
        return self.whole_or_gone(topic, True, False)


PROTOCOLS = {x.__name__.lower(): x for x in (Mount, First, Create, Config, Reassign, Delete, Retire, Lost)}
