/*
 * Preloaded into kafkafs by the fault campaigns: counts, in the whole process, the calls that a failure can hit, and at
 * one of them kills the process, fails, or does half. What to do is read from a file that the campaign maps as well
 * ($KAFKAFS_SHIM), so a campaign can look at the count and arm the shim while the daemon runs.
 *
 * Each failure has its own calls (enum kind): a crash those that change a disk, EMFILE those that make a descriptor.
 * Only calls through the PLT are seen: those of kafkafs and of the libraries that it links, LMDB's among them. The FUSE
 * device is left alone, but for EINTR of a read: the kernel fails nothing else there.
 */
/* both names of a call are wrapped, so that neither may stand for the other */
#undef _FILE_OFFSET_BITS
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

/* What happens at the call; tests/fault/lib.py has the same list. A call belongs to those that it can suffer. */
enum kind {
    CRASH = 1 << 0, /* the process dies instead of making the call */
    FAIL_EIO = 1 << 1,
    FAIL_ENOSPC = 1 << 2,
    FAIL_EROFS = 1 << 3,
    FAIL_EMFILE = 1 << 4,
    FAIL_ENOMEM = 1 << 5,
    FAIL_EINTR = 1 << 6,
    SHORT = 1 << 7, /* half of it is written */
};
static const struct {
    enum kind kind;
    int error;
} errors[] = {{FAIL_EIO, EIO}, {FAIL_ENOSPC, ENOSPC}, {FAIL_EROFS, EROFS}, {FAIL_EMFILE, EMFILE}, {FAIL_ENOMEM, ENOMEM},
        {FAIL_EINTR, EINTR}};

/* whole groups of calls */
#define READS (FAIL_EIO | FAIL_ENOMEM | FAIL_EINTR)
#define LOOKS (FAIL_EIO | FAIL_ENOMEM)
#define OPENS (FAIL_EIO | FAIL_EMFILE | FAIL_ENOMEM | FAIL_EINTR)
#define NAMES (CRASH | FAIL_EIO | FAIL_ENOSPC | FAIL_EROFS | FAIL_ENOMEM)
#define SYNCS (CRASH | FAIL_EIO | FAIL_ENOSPC | FAIL_EROFS | FAIL_EINTR)
#define WRITES (SYNCS | FAIL_ENOMEM | SHORT)
#define SIZES (CRASH | FAIL_EIO | FAIL_ENOSPC | FAIL_EROFS | FAIL_EINTR)
#define DESCRIPTORS (FAIL_EMFILE | FAIL_ENOMEM)

/* The mapped file; tests/fault/lib.py knows this layout. */
struct shim {
    _Atomic uint64_t kind;  /* one of enum kind; only calls that can suffer it are counted */
    _Atomic uint64_t calls; /* counted so far */
    _Atomic uint64_t at;    /* the call at which it happens; 0: never */
    /* 1: writes of the store's meta pages do nothing and succeed; 2: syncs do; 3: so do renames and removals */
    _Atomic uint64_t pretend;
    _Atomic uint64_t owner; /* the process that is meant: not the helpers that it starts */
    char last[216];         /* the call that was hit: its name and what it was about */
};
static struct shim *shim;

__attribute__((constructor)) static void shim_map(void)
{
    const char *path = getenv("KAFKAFS_SHIM");
    int (*open_file)(const char *, int, ...);
    uint64_t nobody = 0;
    int fd;

    if (!path)
        return;
    *(void **)&open_file = dlsym(RTLD_NEXT, "open");
    fd = open_file(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    void *map = (void *)syscall(SYS_mmap, NULL, sizeof(*shim), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0L);
    (void)syscall(SYS_close, fd);
    if (map == MAP_FAILED)
        return;
    struct shim *s = map;
    if (atomic_compare_exchange_strong(&s->owner, &nobody, (uint64_t)getpid()))
        shim = s;
}

/* `fd` without a path: the file behind it. */
static void remember(const char *name, int fd, const char *path)
{
    char self[32], target[160] = "";

    if (!path && fd >= 0) {
        snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
        if (syscall(SYS_readlinkat, AT_FDCWD, self, target, sizeof target - 1) < 0)
            target[0] = '\0';
    }
    snprintf(shim->last, sizeof shim->last, "%s %s", name, path ? path : target);
}

/* Is this the call at which something happens? The error, -1 for a short write, or 0. Keeps errno. */
static int hit(int kinds, const char *name, int fd, const char *path)
{
    int before = errno;

    if (!shim || !(atomic_load(&shim->kind) & (uint64_t)kinds) || atomic_load(&shim->owner) != (uint64_t)getpid())
        return 0;
    enum kind kind = atomic_load(&shim->kind);
    if (atomic_fetch_add(&shim->calls, 1) + 1 != atomic_load(&shim->at))
        return 0;
    remember(name, fd, path);
    if (kind == CRASH) {
        kill(getpid(), SIGKILL);
        for (;;)
            pause();
    }
    errno = before;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (kind == errors[i].kind)
            return errors[i].error;
    return -1;
}

static bool fails(int kinds, const char *name, int fd, const char *path)
{
    int error = hit(kinds, name, fd, path);

    if (error)
        errno = error;
    return error != 0;
}

/* What the file behind a descriptor can suffer of `kinds`. */
static int of_file(int fd, int kinds)
{
    struct stat st;

    if (!shim || fd <= STDERR_FILENO || syscall(SYS_fstat, fd, &st) != 0)
        return 0;
    if (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
        return kinds;
    return S_ISFIFO(st.st_mode) || (S_ISCHR(st.st_mode) && kinds == READS) ? kinds & FAIL_EINTR : 0;
}

/* The two meta pages are the first 8 KiB of LMDB's file; only they make a transaction count. */
static bool pretends(off_t offset)
{
    return shim && atomic_load(&shim->pretend) == 1 && offset < 8192;
}

static bool pretends_to_sync(void)
{
    return shim && atomic_load(&shim->pretend) == 2;
}

static bool pretends_to_rename(void)
{
    return shim && atomic_load(&shim->pretend) == 3;
}

#define REAL(name)                                                                                                     \
    static __typeof__(&name) real;                                                                                     \
    if (!real)                                                                                                         \
    *(void **)&real = dlsym(RTLD_NEXT, #name)

/* WRAP: a call that answers `error` when it fails; FD, PATH: what it is about. */
#define WRAP(kinds, type, name, params, args, error, fd, path)                                                         \
    type name params                                                                                                   \
    {                                                                                                                  \
        REAL(name);                                                                                                    \
        return fails(kinds, #name, fd, path) ? (error) : real args;                                                    \
    }
#define WRAP_PATH(kinds, name, params, args) WRAP(kinds, int, name, params, args, -1, -1, path)

/* ---- names and files ---- */

#define WRAP_NAME(name, params, args)                                                                                  \
    int name params                                                                                                    \
    {                                                                                                                  \
        REAL(name);                                                                                                    \
        if (fails(NAMES, #name, -1, path))                                                                             \
            return -1;                                                                                                 \
        return pretends_to_rename() ? 0 : real args;                                                                   \
    }

WRAP_PATH(NAMES, mkdir, (const char *path, mode_t mode), (path, mode))
WRAP_PATH(NAMES, mkdirat, (int fd, const char *path, mode_t mode), (fd, path, mode))
WRAP_NAME(unlink, (const char *path), (path))
WRAP_NAME(unlinkat, (int fd, const char *path, int flags), (fd, path, flags))
WRAP_NAME(rmdir, (const char *path), (path))
WRAP_NAME(rename, (const char *path, const char *to), (path, to))
WRAP_NAME(renameat, (int from_fd, const char *path, int to_fd, const char *to), (from_fd, path, to_fd, to))
WRAP_NAME(renameat2, (int from_fd, const char *path, int to_fd, const char *to, unsigned flags),
        (from_fd, path, to_fd, to, flags))
WRAP_PATH(LOOKS, stat, (const char *path, struct stat *st), (path, st))
WRAP_PATH(LOOKS, stat64, (const char *path, struct stat64 *st), (path, st))
WRAP_PATH(LOOKS, lstat64, (const char *path, struct stat64 *st), (path, st))
WRAP_PATH(LOOKS, fstatat64, (int fd, const char *path, struct stat64 *st, int flags), (fd, path, st, flags))
WRAP_PATH(LOOKS, access, (const char *path, int mode), (path, mode))
WRAP_PATH(LOOKS, faccessat, (int fd, const char *path, int mode, int flags), (fd, path, mode, flags))
WRAP_PATH(LOOKS, statfs64, (const char *path, struct statfs64 *st), (path, st))
WRAP_PATH(FAIL_ENOMEM, umount2, (const char *path, int flags), (path, flags))
WRAP(LOOKS, char *, realpath, (const char *path, char *resolved), (path, resolved), NULL, -1, path)
WRAP(of_file(fd, LOOKS), int, fstat64, (int fd, struct stat64 *st), (fd, st), -1, fd, NULL)
WRAP(of_file(fd, SIZES), int, ftruncate, (int fd, off_t length), (fd, length), -1, fd, NULL)
WRAP(of_file(fd, SIZES), int, ftruncate64, (int fd, off64_t length), (fd, length), -1, fd, NULL)
WRAP(of_file(fd, SIZES), int, fallocate, (int fd, int mode, off_t from, off_t length), (fd, mode, from, length), -1, fd,
        NULL)
WRAP(of_file(fd, SIZES), int, fallocate64, (int fd, int mode, off64_t from, off64_t length), (fd, mode, from, length),
        -1, fd, NULL)
WRAP(of_file(fd, FAIL_EINTR), int, flock, (int fd, int how), (fd, how), -1, fd, NULL)

/* fsync() says what became of earlier writes */
#define WRAP_SYNC(name)                                                                                                \
    int name(int fd)                                                                                                   \
    {                                                                                                                  \
        REAL(name);                                                                                                    \
        if (fails(of_file(fd, SYNCS), #name, fd, NULL))                                                                \
            return -1;                                                                                                 \
        return pretends_to_sync() ? 0 : real(fd);                                                                      \
    }
WRAP_SYNC(fsync)
WRAP_SYNC(fdatasync)

/* The descriptor is gone whatever close() says. */
int close(int fd)
{
    REAL(close);
    bool failed = fails(of_file(fd, FAIL_EIO | FAIL_EINTR), "close", fd, NULL);
    int error = errno;

    if (real(fd) < 0)
        return -1;
    errno = error;
    return failed ? -1 : 0;
}

/* ---- opening ---- */

/* Only an opening that may create or truncate changes a disk. */
static int kinds_of_open(int flags)
{
    int kinds = OPENS;

    if (flags & O_CREAT)
        kinds |= FAIL_ENOSPC;
    if (flags & (O_CREAT | O_TRUNC))
        kinds |= CRASH;
    if ((flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)))
        kinds |= FAIL_EROFS;
    return kinds;
}

#define WRAP_OPEN(name, params, args, last)                                                                            \
    int name params                                                                                                    \
    {                                                                                                                  \
        mode_t mode = 0;                                                                                               \
        va_list list;                                                                                                  \
                                                                                                                       \
        REAL(name);                                                                                                    \
        va_start(list, last);                                                                                          \
        if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE)                                                     \
            mode = va_arg(list, mode_t);                                                                               \
        va_end(list);                                                                                                  \
        if (fails(kinds_of_open(flags), #name, -1, path))                                                              \
            return -1;                                                                                                 \
        if (pretends_to_sync())                                                                                        \
            flags &= ~(O_SYNC | O_DSYNC);                                                                              \
        return real args;                                                                                              \
    }

WRAP_OPEN(open, (const char *path, int flags, ...), (path, flags, mode), flags)
WRAP_OPEN(open64, (const char *path, int flags, ...), (path, flags, mode), flags)
WRAP_OPEN(openat, (int fd, const char *path, int flags, ...), (fd, path, flags, mode), flags)
WRAP_OPEN(openat64, (int fd, const char *path, int flags, ...), (fd, path, flags, mode), flags)

/* Of those that have no name in the library, only openat2() matters. */
long syscall(long number, ...)
{
    long a[6];
    va_list list;

    REAL(syscall);
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_openat2 && fails(OPENS, "openat2", -1, (const char *)a[1]))
        return -1;
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

WRAP(OPENS & ~FAIL_EINTR, DIR *, opendir, (const char *path), (path), NULL, -1, path)
WRAP(FAIL_ENOMEM, DIR *, fdopendir, (int fd), (fd), NULL, fd, NULL)
WRAP(FAIL_EIO, struct dirent *, readdir, (DIR * dir), (dir), NULL, dirfd(dir), NULL)
WRAP(FAIL_EIO, struct dirent64 *, readdir64, (DIR * dir), (dir), NULL, dirfd(dir), NULL)

/* ---- reading and writing ---- */

WRAP(of_file(fd, READS), ssize_t, read, (int fd, void *buf, size_t len), (fd, buf, len), -1, fd, NULL)
WRAP(of_file(fd, READS), ssize_t, pread, (int fd, void *buf, size_t len, off_t at), (fd, buf, len, at), -1, fd, NULL)
WRAP(of_file(fd, READS), ssize_t, pread64, (int fd, void *buf, size_t len, off64_t at), (fd, buf, len, at), -1, fd,
        NULL)

#define WRAP_WRITE(name, params, args, short_args, offset, length)                                                     \
    ssize_t name params                                                                                                \
    {                                                                                                                  \
        REAL(name);                                                                                                    \
        int error = hit(length > 1 ? of_file(fd, WRITES) : of_file(fd, WRITES & ~SHORT), #name, fd, NULL);             \
        if (error > 0) {                                                                                               \
            errno = error;                                                                                             \
            return -1;                                                                                                 \
        }                                                                                                              \
        if (pretends(offset))                                                                                          \
            return (ssize_t)(length);                                                                                  \
        return error < 0 ? real short_args : real args;                                                                \
    }
#define NEVER 8192

static size_t total(const struct iovec *iov, int n)
{
    size_t sum = 0;

    for (int i = 0; i < n; i++)
        sum += iov[i].iov_len;
    return sum;
}

WRAP_WRITE(write, (int fd, const void *buf, size_t len), (fd, buf, len), (fd, buf, len / 2), NEVER, len)
WRAP_WRITE(pwrite, (int fd, const void *buf, size_t len, off_t offset), (fd, buf, len, offset),
        (fd, buf, len / 2, offset), offset, len)
WRAP_WRITE(pwrite64, (int fd, const void *buf, size_t len, off64_t offset), (fd, buf, len, offset),
        (fd, buf, len / 2, offset), offset, len)
/* at least one vector, half of it if it is the only one */
#define HALF &(struct iovec){iov->iov_base, n > 1 ? iov->iov_len : iov->iov_len / 2}, 1
WRAP_WRITE(writev, (int fd, const struct iovec *iov, int n), (fd, iov, n), (fd, HALF), NEVER, total(iov, n))

/* ---- descriptors, memory, threads ---- */

WRAP(DESCRIPTORS, int, pipe2, (int fds[2], int flags), (fds, flags), -1, -1, "")
WRAP(DESCRIPTORS, int, eventfd, (unsigned count, int flags), (count, flags), -1, -1, "")
WRAP(DESCRIPTORS, int, inotify_init1, (int flags), (flags), -1, -1, "")
WRAP(FAIL_ENOSPC | FAIL_ENOMEM, int, inotify_add_watch, (int fd, const char *path, uint32_t mask), (fd, path, mask), -1,
        -1, path)
WRAP(fd >= 0 ? FAIL_ENOMEM : 0, void *, mmap, (void *at, size_t len, int prot, int flags, int fd, off_t offset),
        (at, len, prot, flags, fd, offset), MAP_FAILED, fd, NULL)
WRAP(FAIL_ENOMEM, void *, mmap64, (void *at, size_t len, int prot, int flags, int fd, off64_t offset),
        (at, len, prot, flags, fd, offset), MAP_FAILED, fd, NULL)
WRAP(FAIL_ENOMEM, int, mount,
        (const char *source, const char *path, const char *type, unsigned long flags, const void *data),
        (source, path, type, flags, data), -1, -1, path)
WRAP(FAIL_ENOMEM, pid_t, fork, (void), (), -1, -1, "")
WRAP(FAIL_EINTR, pid_t, waitpid, (pid_t pid, int *status, int options), (pid, status, options), -1, -1, "")
WRAP(FAIL_EINTR, int, poll, (struct pollfd * fds, nfds_t n, int timeout), (fds, n, timeout), -1, -1, "")

/* pthread_create() says EAGAIN where clone() says ENOMEM. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
    REAL(pthread_create);
    int before = errno;

    if (!fails(FAIL_ENOMEM, "pthread_create", -1, ""))
        return real(thread, attr, run, arg);
    errno = before;
    return EAGAIN;
}
