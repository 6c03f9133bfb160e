#!/usr/bin/env python3
"""Several clients create, write, read and unlink the same few files while the daemon is killed and mounted again; is what
they saw linearizable, file by file?

    linearizable.py KAFKAFS HISTORIES [SEED]

The checker (linearizable.c) is first given histories that are known to be bad: it must catch each of them.
"""
import errno
import multiprocessing
import os
import random
import subprocess
import sys
import time

import lib

CLIENTS, FILES, OPS = 4, 8, 12  # operations of a client on a file; all clients' must stay within the checker's 64
DEAD = (errno.ENOTCONN, errno.ECONNABORTED, errno.EIO)
HERE = os.path.dirname(os.path.realpath(__file__))


def once(app, name, flags, work):
    fd = os.open(name, flags, 0o644, dir_fd=app)
    try:
        return work(fd)
    finally:
        os.close(fd)


def call(kind, app, name, value):
    """Makes one operation in the directory `app`; returns (value, result)."""
    try:
        if kind == 'create':
            once(app, name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, lambda fd: None)
        elif kind == 'write':
            # in one piece and always as long: one change
            once(app, name, os.O_WRONLY, lambda fd: os.write(fd, b'%08d' % value))
        elif kind == 'read':
            return int(once(app, name, os.O_RDONLY, lambda fd: os.read(fd, 100)) or b'0'), 'ok'
        else:
            os.unlink(name, dir_fd=app)
        return value, 'ok'
    except FileExistsError:
        return value, 'exists'
    except FileNotFoundError:
        return value, 'absent'
    except OSError as e:
        if e.errno == errno.ESTALE:  # the file that was opened is gone
            return value, 'absent'
        raise


def directory(cluster):
    """The files' directory, when it is mounted and there is a daemon. A client keeps it: by its path, a file that is not there
    could also be one that is not mounted, where a client sleeps while one daemon's mount goes and the next one's comes."""
    while True:
        fd = -1
        try:
            fd = os.open(cluster.path('app'), os.O_PATH | os.O_DIRECTORY)
            os.stat('../.state/controller/epoch', dir_fd=fd)
            return fd
        except OSError as e:
            if fd >= 0:
                os.close(fd)
            if e.errno not in (*DEAD, errno.ENOENT):
                raise
        time.sleep(0.005)


def client(cluster, n, names, seed, done, results):
    """One client's operations, in random order over the files; what the daemon's death cut off has no end. `done[n]`
    counts them."""
    lib.die_with_parent()
    rng, seen, app = random.Random(seed), [], directory(cluster)
    work = [f for f in range(len(names)) for _ in range(OPS)]
    rng.shuffle(work)
    for i, f in enumerate(work):
        done[n] = i
        kind = rng.choices(['create', 'write', 'read', 'unlink'], [2, 4, 5, 1])[0]
        value = (n + 1) * 1000 + i
        start = time.monotonic_ns()
        try:
            value, result = call(kind, app, names[f], value)
            seen.append((f, start, time.monotonic_ns(), kind, value, result))
        except OSError as e:
            if e.errno not in DEAD:
                seen.append((f, 0, 0, 'error', 0, f'{kind}: {e}'))
            elif kind != 'read':
                seen.append((f, start, -1, kind, value, 'ok'))
            os.close(app)
            app = directory(cluster)
    results.put(seen)


def history(cluster, number, rng):
    """Records one; returns the text for the checker, a history for each file, the errors that nobody may see, and how many
    operations the kill left without an answer."""
    names = [f'{number}-{f}' for f in range(FILES)]
    results, done = multiprocessing.Queue(), multiprocessing.Array('q', CLIENTS, lock=False)
    workers = [multiprocessing.Process(target=client, args=(cluster, n, names, rng.random(), done, results))
               for n in range(CLIENTS)]
    for w in workers:
        w.start()
    errors, amid, limit = [], rng.randrange(CLIENTS * FILES * OPS), time.monotonic() + 60
    while sum(done) < min(amid, CLIENTS * (FILES * OPS - 1)) and time.monotonic() < limit:
        time.sleep(0.0005)
    try:
        cluster.kill()
    except lib.Stuck as e:
        errors.append(str(e))
    cluster.start()
    seen = [x for _ in workers for x in results.get(timeout=120)]
    for w in workers:
        w.join()
    errors += [x[5] for x in seen if x[3] == 'error']
    text = ''
    for f in range(FILES):
        text += ''.join(f'{s} {e} {k} {v} {r}\n' for x, s, e, k, v, r in seen if x == f and k != 'error') + '\n'
    return text, errors, sum(1 for x in seen if x[2] == -1)


def check(text):
    """Numbers of the histories that are not linearizable."""
    r = subprocess.run([os.environ['LINEARIZABLE']], input=text, capture_output=True, text=True, check=False)
    if r.returncode > 1 or r.returncode < 0:
        raise RuntimeError(r.stderr or f'the checker ended with {r.returncode}')
    return [int(x) for x in r.stdout.split()]


def main():
    kafkafs, n = sys.argv[1], int(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else int(time.time())
    rng, faults, cut_off, done = random.Random(seed), [], 0, 0
    with open(f'{HERE}/histories.bad') as f:
        bad = f.read()
    known = len(bad.strip().split('\n\n'))
    if len(check(bad)) != known:
        faults.append(f'the checker caught {check(bad)} of {known} bad histories')
    cluster = lib.Cluster(kafkafs, brokers=1)
    try:
        cluster.start()
        os.mkdir(cluster.path('app'))
        for i in lib.rounds(n):
            done = i + 1
            text, errors, unanswered = history(cluster, i, rng)
            cut_off += unanswered
            faults += [f'history {i}: {e}' for e in errors]
            wrong = check(text)
            if wrong:
                kept = os.path.join(os.environ.get('LOGS', '/tmp'), f'history-{seed}-{i}')
                with open(kept, 'w') as f:
                    f.write(text)
                faults.append(f'history {i}: file(s) {wrong}, kept in {kept}')
        cluster.stop()
    finally:
        cluster.remove()
    return lib.report('linearizable', f'{done} histories of {CLIENTS * FILES * OPS} operations, each with a kill, {cut_off} operations '
                      f'cut off; {known} known bad ones caught; {len(faults)} faults, seed {seed}', faults)


if __name__ == '__main__':
    sys.exit(main())
