/*
 * Preloaded into kafkafs by the fault campaigns: counts the calls that change a disk, in the whole process, and at one
 * of them kills the process, fails, or only pretends. What to do is read from a file that the campaign maps as well
 * ($KAFKAFS_SHIM), so a campaign can look at the count and arm the shim while the daemon runs.
 *
 * Only calls through the PLT are seen: those of kafkafs and of the libraries that it links, LMDB's among them. Calls on
 * anything but regular files and directories (the FUSE device, pipes, the terminal) do not count.
 */
/* both names of a call are wrapped, so that neither may stand for the other */
#undef _FILE_OFFSET_BITS
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* The mapped file; tests/fault/lib.py knows this layout. A number of 0 means never. */
struct shim {
    _Atomic uint64_t calls;   /* counted so far */
    _Atomic uint64_t kill_at; /* the process dies instead of making this call */
    _Atomic uint64_t fail_at; /* from this call on ... */
    _Atomic uint64_t fail_to; /* ... to this one, each fails ... */
    _Atomic uint64_t error;   /* ... with this errno */
    _Atomic uint64_t pretend; /* 1: writes of the store's meta pages do nothing and succeed; 2: syncs do */
    char last[40];            /* name of the call that was hit */
};
static struct shim *shim;

__attribute__((constructor)) static void shim_map(void)
{
    const char *path = getenv("KAFKAFS_SHIM");
    int (*open_file)(const char *, int, ...);
    int fd;

    if (!path)
        return;
    *(void **)&open_file = dlsym(RTLD_NEXT, "open");
    fd = open_file(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return;
    shim = mmap(NULL, sizeof(*shim), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (shim == MAP_FAILED)
        shim = NULL;
}

/* Is this the call at which something happens? Returns true, with errno set, when it is to fail. */
static bool hit(const char *name)
{
    uint64_t n, from;

    if (!shim)
        return false;
    n = atomic_fetch_add(&shim->calls, 1) + 1;
    if (n == atomic_load(&shim->kill_at)) {
        strncpy(shim->last, name, sizeof(shim->last) - 1);
        kill(getpid(), SIGKILL);
        for (;;)
            pause();
    }
    from = atomic_load(&shim->fail_at);
    if (from == 0 || n < from || n > atomic_load(&shim->fail_to))
        return false;
    strncpy(shim->last, name, sizeof(shim->last) - 1);
    errno = (int)atomic_load(&shim->error);
    return true;
}

static bool counts(int fd)
{
    struct stat st;

    return shim && fd > STDERR_FILENO && fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode));
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

#define REAL(name)                                                                                                     \
    __typeof__(&name) real;                                                                                            \
    *(void **)&real = dlsym(RTLD_NEXT, #name)

#define WRAP_FD(name, params, args)                                                                                    \
    int name params                                                                                                    \
    {                                                                                                                  \
        REAL(name);                                                                                                    \
        return counts(fd) && hit(#name) ? -1 : real args;                                                              \
    }
#define WRAP_PATH(name, params, args)                                                                                  \
    int name params                                                                                                    \
    {                                                                                                                  \
        REAL(name);                                                                                                    \
        return hit(#name) ? -1 : real args;                                                                            \
    }

#define WRAP_SYNC(name)                                                                                                \
    int name(int fd)                                                                                                   \
    {                                                                                                                  \
        REAL(name);                                                                                                    \
        if (counts(fd) && hit(#name))                                                                                  \
            return -1;                                                                                                 \
        return pretends_to_sync() ? 0 : real(fd);                                                                      \
    }

WRAP_SYNC(fsync)
WRAP_SYNC(fdatasync)
WRAP_FD(ftruncate, (int fd, off_t length), (fd, length))
WRAP_FD(ftruncate64, (int fd, off64_t length), (fd, length))
WRAP_PATH(mkdir, (const char *path, mode_t mode), (path, mode))
WRAP_PATH(mkdirat, (int fd, const char *path, mode_t mode), (fd, path, mode))
WRAP_PATH(unlink, (const char *path), (path))
WRAP_PATH(unlinkat, (int fd, const char *path, int flags), (fd, path, flags))
WRAP_PATH(rmdir, (const char *path), (path))
WRAP_PATH(rename, (const char *from, const char *to), (from, to))
WRAP_PATH(renameat, (int from_fd, const char *from, int to_fd, const char *to), (from_fd, from, to_fd, to))
WRAP_PATH(renameat2, (int from_fd, const char *from, int to_fd, const char *to, unsigned flags),
        (from_fd, from, to_fd, to, flags))

#define WRAP_WRITE(name, params, args, offset, length)                                                                 \
    ssize_t name params                                                                                                \
    {                                                                                                                  \
        REAL(name);                                                                                                    \
        if (counts(fd) && hit(#name))                                                                                  \
            return -1;                                                                                                 \
        return pretends(offset) ? (ssize_t)(length) : real args;                                                       \
    }
#define NEVER 8192

static size_t total(const struct iovec *iov, int n)
{
    size_t sum = 0;

    for (int i = 0; i < n; i++)
        sum += iov[i].iov_len;
    return sum;
}

WRAP_WRITE(write, (int fd, const void *buf, size_t len), (fd, buf, len), NEVER, len)
WRAP_WRITE(writev, (int fd, const struct iovec *iov, int n), (fd, iov, n), NEVER, total(iov, n))
WRAP_WRITE(pwrite, (int fd, const void *buf, size_t len, off_t offset), (fd, buf, len, offset), offset, len)
WRAP_WRITE(pwrite64, (int fd, const void *buf, size_t len, off64_t offset), (fd, buf, len, offset), offset, len)
WRAP_WRITE(pwritev, (int fd, const struct iovec *iov, int n, off_t offset), (fd, iov, n, offset), offset, total(iov, n))
WRAP_WRITE(pwritev64, (int fd, const struct iovec *iov, int n, off64_t offset), (fd, iov, n, offset), offset,
        total(iov, n))

/* Opening changes a disk only when it may create or truncate. */
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
        if ((flags & (O_CREAT | O_TRUNC)) && hit(#name))                                                               \
            return -1;                                                                                                 \
        if (pretends_to_sync())                                                                                        \
            flags &= ~(O_SYNC | O_DSYNC);                                                                              \
        return real args;                                                                                              \
    }

WRAP_OPEN(open, (const char *path, int flags, ...), (path, flags, mode), flags)
WRAP_OPEN(open64, (const char *path, int flags, ...), (path, flags, mode), flags)
WRAP_OPEN(openat, (int fd, const char *path, int flags, ...), (fd, path, flags, mode), flags)
WRAP_OPEN(openat64, (int fd, const char *path, int flags, ...), (fd, path, flags, mode), flags)
