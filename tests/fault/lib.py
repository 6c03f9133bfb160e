"""A cluster that can be killed, for the fault campaigns. Python 3, standard library only."""
import ctypes
import json
import mmap
import os
import pickle
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback


# what the shim can do at a call (enum kind in shim.c)
KINDS = {'crash': 1, 'EIO': 2, 'ENOSPC': 4, 'EROFS': 8, 'EMFILE': 16, 'ENOMEM': 32, 'EINTR': 64, 'short': 128}


class Shim:
    """The file through which a campaign talks to shim.c in the daemon."""
    FIELDS = ('kind', 'calls', 'at', 'pretend', 'owner')
    LAST = 8 * len(FIELDS)
    SIZE = LAST + 216

    def __init__(self, path):
        self.path = path
        with open(path, 'wb') as f:
            f.write(bytes(self.SIZE))
        with open(path, 'r+b') as f:
            self.map = mmap.mmap(f.fileno(), self.SIZE)

    def __getitem__(self, field):
        return struct.unpack_from('<Q', self.map, 8 * self.FIELDS.index(field))[0]

    def __setitem__(self, field, value):
        struct.pack_into('<Q', self.map, 8 * self.FIELDS.index(field), value)

    def last(self):
        """The call that was hit; empty if none was."""
        return self.map[self.LAST:].partition(b'\0')[0].decode(errors='replace').strip()

    def arm(self, kind, n):
        """It happens at the n-th call from now on that can suffer it."""
        self.disarm()
        self['kind'] = KINDS[kind]
        self['at'] = n

    def disarm(self):
        for field in ('at', 'kind', 'calls', 'pretend'):
            self[field] = 0
        self.map[self.LAST:] = bytes(self.SIZE - self.LAST)


class NotReady(Exception):
    pass


class Stuck(Exception):
    pass


CLONE_NEWNS, MS_REC, MS_PRIVATE, MNT_DETACH = 0x20000, 0x4000, 0x40000, 2


def mounts_of_its_own():
    """For a campaign that has to unmount: from now on it is alone with its mounts. Whoever makes a mount namespace copies all
    mounts, and keeps those disks and filesystems in use after their owner has unmounted them. For the same reason the
    copies that come with this one are dropped at once; that does not touch the others."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) or libc.mount(None, b'/', None, MS_REC | MS_PRIVATE, None):
        raise OSError(ctypes.get_errno(), 'unshare')
    with open('/proc/mounts') as f:
        mounts = [line.split()[:3] for line in f]
    for source, where, kind in reversed(mounts):
        if source.startswith('/dev/loop') or kind.startswith('fuse'):
            libc.umount2(where.encode(), MNT_DETACH)


class CommandFailed(Exception):
    pass


def command(*words):
    """Runs a program that has to succeed; CommandFailed says why it did not."""
    try:
        subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        raise CommandFailed(f'there is no {words[0]}') from None
    except subprocess.CalledProcessError as e:
        raise CommandFailed(f'{words[0]}: {(e.stderr or e.stdout).strip()}') from None


class Cluster:
    """Brokers 1 to n on real log directories below one scratch directory."""

    def __init__(self, kafkafs, brokers=3, disk=None, in_memory=False, **settings):
        """`disk`: a directory that holds what is durable, beside the scratch directory. `in_memory`: all of it on a tmpfs
        of its own."""
        self.kafkafs, self.options = kafkafs, []
        self.w = tempfile.mkdtemp(prefix='kafkafs-fault.')
        self.in_memory = in_memory
        if in_memory:
            subprocess.run(['mount', '-t', 'tmpfs', 'none', self.w], check=True)
        self.m, self.c, self.d = f'{self.w}/mnt', f'{disk or self.w}/cluster', f'{disk or self.w}/logs'
        self.daemon = None
        self.ids = range(1, brokers + 1)
        self.log_dirs = {}  # broker -> paths
        os.makedirs(self.m)
        os.makedirs(self.c)
        for b in self.ids:
            os.makedirs(f'{self.d}/{b}')
            self.configure(b, [f'{self.d}/{b}'], **settings)

    def configure(self, broker, log_dirs, **settings):
        """Writes the broker's properties file."""
        self.log_dirs[broker] = log_dirs
        keys = {'broker.id': broker, 'log.dirs': ','.join(log_dirs), 'listeners': f'PLAINTEXT://127.0.0.1:{9190 + broker}',
                'auto.leader.rebalance.enable': 'false', **settings}
        with open(f'{self.c}/server-{broker}.properties', 'w') as f:
            f.writelines(f'{k}={v}\n' for k, v in keys.items())

    def start(self, shim=None, seconds=60, options=()):
        """Mounts; raises NotReady if the daemon ends first, or does not get ready."""
        env = dict(os.environ)
        if shim:
            shim['owner'] = 0
            env.update(KAFKAFS_SHIM=shim.path, LD_PRELOAD=os.environ['SHIM_LIBRARY'])
        with open(f'{self.w}/daemon.log', 'a') as log:
            self.daemon = subprocess.Popen([self.kafkafs, '-f', *self.options, *options, self.c, self.m],
                                           stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env,
                                           start_new_session=True)
        limit = time.monotonic() + seconds
        while not os.path.exists(f'{self.m}/.state/controller/epoch'):
            if self.daemon.poll() is not None:
                status, self.daemon = self.daemon.returncode, None
                raise NotReady(f'ended with {status}: {self.log_tail()}')
            if time.monotonic() > limit:
                raise NotReady(f'not ready after {seconds} s: {self.log_tail()}')
            time.sleep(0.005)

    def log_tail(self):
        if not os.path.exists(f'{self.w}/daemon.log'):
            return ''
        with open(f'{self.w}/daemon.log') as f:
            return f.read()[-300:].strip()

    def last_words(self):
        """Of the daemon, to explain what broke a campaign off."""
        status = self.daemon.poll() if self.daemon else None
        state = 'no daemon' if not self.daemon else 'the daemon runs' if status is None else f'the daemon ended with {status}'
        return f'{state}; its log ends: {self.log_tail()}'

    def kill(self):
        """kill -9 and waits for the end; the dead mount stays for the next start to deal with. Raises Stuck if it does not
        come."""
        self.daemon.kill()
        try:
            self.daemon.wait(20)
        except subprocess.TimeoutExpired:
            self.abort()
            self.daemon.wait(20)
            raise Stuck('the daemon did not end after kill -9, and held up its clients') from None
        finally:
            self.daemon = None

    def abort(self):
        """Aborts the FUSE connection, without unmounting: the open descriptor makes the mount busy."""
        fd = os.open(self.m, os.O_PATH)
        try:
            ctypes.CDLL(None).umount2(self.m.encode(), 1)  # MNT_FORCE
        finally:
            os.close(fd)

    def wait_dead(self, seconds=30):
        """Waits for a daemon that is to die by itself; returns its status, None if it lives on."""
        try:
            status = self.daemon.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        self.daemon = None
        return status

    def stop(self):
        """Unmounts; returns the daemon's exit status."""
        subprocess.run(['umount', self.m], check=True)
        try:
            status = self.daemon.wait(60)
        except subprocess.TimeoutExpired:
            raise Stuck(f'the daemon did not end after umount: {self.where_it_hangs()}') from None
        self.daemon = None
        return status

    def where_it_hangs(self):
        """Its threads, and other mount namespaces that keep the mount."""
        said = []
        for task in os.listdir(f'/proc/{self.daemon.pid}/task'):
            where = [open(f'/proc/{self.daemon.pid}/task/{task}/{x}').read().strip() for x in ('comm', 'wchan')]
            said.append(':'.join(where))
        for pid in filter(str.isdigit, os.listdir('/proc')):
            try:
                with open(f'/proc/{pid}/mountinfo') as f:
                    if f' {self.m} ' in f.read():
                        said.append(f'process {pid} has it mounted')
            except OSError:  # that process has ended
                pass
        return ', '.join(said)

    def settle(self):
        with open(f'{self.m}/.state/settled') as f:
            return f.read()

    def remove_mount(self):
        if self.daemon:
            self.kill()
        subprocess.run(['umount', '-l', self.m], stderr=subprocess.DEVNULL, check=False)

    def remove(self):
        if sys.exc_info()[0]:
            print(self.last_words())
        self.remove_mount()
        if self.in_memory:
            subprocess.run(['umount', '-l', self.w], check=True)
        shutil.rmtree(self.w)

    def save(self, name):
        """Keeps a copy of what is durable, while nothing is mounted."""
        shutil.rmtree(f'{self.w}/{name}', ignore_errors=True)
        os.mkdir(f'{self.w}/{name}')
        subprocess.run(['cp', '-a', self.c, self.d, f'{self.w}/{name}'], check=True)

    def restore(self, name):
        subprocess.run(['rm', '-rf', self.c, self.d], check=True)
        subprocess.run(['cp', '-a', f'{self.w}/{name}/cluster', f'{self.w}/{name}/logs', self.w], check=True)

    def check_store(self):
        """kafkafs --check, while nothing is mounted; returns what it says, empty if the store is good, or not yet made."""
        if not os.path.exists(f'{self.c}/metadata/data.mdb'):
            return ''
        r = subprocess.run([self.kafkafs, '--check', self.c], capture_output=True, text=True, check=False)
        return '' if r.returncode == 0 else f'--check gave {r.returncode}: {r.stdout}{r.stderr}'

    # ---- what is there ----

    def path(self, *names):
        return os.path.join(self.m, *names)

    def topics(self):
        return set(os.listdir(self.path('brokers/topics')))

    def directories(self, topic):
        """Directories of a topic's replicas in all log dirs, those being deleted included."""
        found = []
        for path in (path for b in self.ids for path in self.log_dirs[b]):
            # a log dir that is not there holds nothing
            there = os.listdir(path) if os.path.isdir(path) else []
            found += [f'{os.path.basename(path)}/{x}' for x in there
                      if x.rpartition('-')[0] == topic or x.startswith(topic + '-')]
        return found

    def said(self):
        """What the daemon has said last, to explain a fault: a disk that is silent for 30 s is no longer waited for."""
        with open(self.path('.state/errors')) as f:
            return [f'.state/errors: {line.strip()}' for line in f.readlines()[-5:]]

    def broker_faults(self):
        """Which of the brokers do not run, and why."""
        states = {}
        for b in self.ids:
            with open(self.path('.state/brokers', str(b), 'state')) as f:
                states[b] = f.read().strip()
        return [f'broker {b} is {state}' for b, state in states.items() if state != 'running']

    def topic_faults(self, topic, partitions, exists):
        """What is wrong with a topic that should exist whole (partition -> replicas), or be gone everywhere."""
        if not exists:
            left = [x for x in ('brokers/topics', 'admin/delete_topics', 'config/topics')
                    if os.path.lexists(self.path(x, topic))]
            return [f'{topic} is left in {x}' for x in left + self.directories(topic)]
        try:
            with open(self.path('brokers/topics', topic, '.data')) as f:
                have = json.load(f)['partitions']
        except FileNotFoundError:
            return [f'{topic} is lost']
        faults = [] if have == {str(p): r for p, r in partitions.items()} else [f'{topic}: assignment {have}']
        for p, replicas in partitions.items():
            try:
                with open(self.path('brokers/topics', topic, 'partitions', str(p), 'state')) as f:
                    state = json.load(f)
                if state['leader'] not in replicas:
                    faults.append(f'{topic}-{p}: leader {state["leader"]} of {replicas}')
            except FileNotFoundError:
                faults.append(f'{topic}-{p}: no state')
            faults += [f'{topic}-{p}: no directory on {b}' for b in replicas
                       if not any(os.path.isdir(f'{d}/{topic}-{p}') for d in self.log_dirs[b])]
        return faults


def store_used(path):
    """Bytes up to the last page that LMDB has ever used (mm_last_pg in the newer of its two meta pages); the rest of the
    file is space kept ready."""
    page = 4096
    with open(path, 'rb') as f:
        metas = [struct.unpack_from('<QQ', f.read(page), 136) for _ in range(2)]
    return (max(metas, key=lambda meta: meta[1])[0] + 1) * page


def write_once(path, data, flags=os.O_CREAT | os.O_TRUNC):
    """One open, one write, one close, as `echo > path` does; any of them raises OSError."""
    fd = os.open(path, os.O_WRONLY | flags, 0o644)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)


def rounds(n):
    """Numbers from 0, n of them; SIGTERM lets the round at hand be the last, so that a long campaign can be ended early
    and still says what it found."""
    def stop(*_):
        nonlocal n
        n = 0
    before = signal.signal(signal.SIGTERM, stop)
    i = 0
    while i < n:
        yield i
        i += 1
    signal.signal(signal.SIGTERM, before)


def die_with_parent():
    """In a child process: ends with its parent, so a campaign that is stopped leaves nothing behind."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(1, 9)


def work_in_child(work, unit, fd):
    status = 1
    try:
        die_with_parent()
        # others' mounts would make the daemon look at its disks
        mounts_of_its_own()
        with os.fdopen(fd, 'wb') as f:
            pickle.dump(work(unit), f)
        status = 0
    except Exception:  # pylint: disable=broad-except; the process must not go on as its parent does
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def in_parallel(work, units):
    """work(unit) for each, in a process of its own, JOBS (2) at a time; the results in order. Raises Stuck if one dies."""
    results, running, waiting = [None] * len(units), {}, list(enumerate(units))
    while waiting or running:
        while waiting and len(running) < int(os.environ.get('JOBS', '2')):
            i, unit = waiting.pop(0)
            read_fd, write_fd = os.pipe()
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                os.close(read_fd)
                work_in_child(work, unit, write_fd)
            os.close(write_fd)
            running[read_fd] = i, pid
        for fd in select.select(list(running), [], [])[0]:
            with os.fdopen(fd, 'rb') as f:
                data = f.read()
            i, pid = running.pop(fd)
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            if status != 0:
                raise Stuck(f'{units[i]}: the campaign\'s own process ended with {status}')
            results[i] = pickle.loads(data)
    return results


def report(name, text, faults):
    """One line of the table, and below it the first of the faults; returns the exit status."""
    print(f'{"FAIL" if faults else "pass"} {name}: {text}')
    shown = int(os.environ.get('FAULTS', '20'))
    for line in '\n'.join(faults[:shown]).splitlines():
        print(f'    {line}')
    if len(faults) > shown:
        print(f'    and {len(faults) - shown} more')
    sys.stdout.flush()
    return 1 if faults else 0
