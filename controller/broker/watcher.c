#include "controller/broker/watcher.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

/* What is created inside is nobody's business here. */
#define WATCH_MASK (IN_DELETE | IN_MOVED_FROM | IN_DELETE_SELF | IN_MOVE_SELF | IN_ATTRIB | IN_ONLYDIR | IN_EXCL_UNLINK)

struct watched {
    uint64_t key;
    int dir;
};

struct watcher {
    struct watcher_config config;
    int inotify, mounts, stop;
    pthread_t thread;
    pthread_mutex_t reading; /* held while events are read and told */
    pthread_mutex_t lock;
    GHashTable *watched; /* watch descriptor -> struct watched; protected by lock */
};

static bool find(struct watcher *w, int wd, struct watched *ret)
{
    pthread_mutex_lock(&w->lock);
    const struct watched *v = g_hash_table_lookup(w->watched, GINT_TO_POINTER(wd));
    if (v)
        *ret = *v;
    pthread_mutex_unlock(&w->lock);
    return v != NULL;
}

/* ---- the thread ---- */

/* Names that one read of inotify brought, of one log dir after the other. */
struct pending {
    int wd;
    GPtrArray *names; /* NULL: none */
};

static void flush(struct watcher *w, struct pending *p)
{
    struct watched where;

    if (!p->names)
        return;
    if (find(w, p->wd, &where))
        w->config.removed(w->config.ctx, where.key, where.dir, p->names);
    else
        g_ptr_array_unref(p->names);
    p->names = NULL;
}

static void handle(struct watcher *w, const struct inotify_event *e, struct pending *p)
{
    struct watched where;

    if (e->mask & IN_Q_OVERFLOW) {
        w->config.look_everywhere(w->config.ctx, true);
        return;
    }
    if (e->len > 0) {
        if (!(e->mask & (IN_DELETE | IN_MOVED_FROM)) || !(e->mask & IN_ISDIR))
            return;
        if (p->wd != e->wd)
            flush(w, p);
        if (!p->names)
            p->names = g_ptr_array_new_with_free_func(g_free);
        p->wd = e->wd;
        g_ptr_array_add(p->names, g_strdup(e->name));
        return;
    }
    flush(w, p);
    if (!(e->mask & IN_IGNORED) && find(w, e->wd, &where))
        w->config.changed(w->config.ctx, where.key, where.dir);
}

static void read_events(struct watcher *w)
{
    char buf[64 << 10] __attribute__((aligned(__alignof__(struct inotify_event))));
    struct pending p = {0};
    ssize_t n;

    pthread_mutex_lock(&w->reading);
    while ((n = read(w->inotify, buf, sizeof buf)) > 0) {
        for (char *at = buf; at < buf + n;) {
            const struct inotify_event *e = (const struct inotify_event *)(void *)at;
            handle(w, e, &p);
            at += sizeof *e + e->len;
        }
    }
    flush(w, &p);
    pthread_mutex_unlock(&w->reading);
}

static void *run(void *arg)
{
    struct watcher *w = arg;
    struct pollfd fds[] = {{.fd = w->stop, .events = POLLIN}, {.fd = w->inotify, .events = POLLIN},
            {.fd = w->mounts, .events = POLLPRI}};

    pthread_setname_np(pthread_self(), "watcher");
    for (;;) {
        if (poll(fds, G_N_ELEMENTS(fds), -1) < 0) {
            if (errno == EINTR || errno == EAGAIN)
                continue;
            return NULL;
        }
        if (fds[0].revents)
            return NULL;
        if (fds[1].revents)
            read_events(w);
        if (fds[2].revents & (POLLPRI | POLLERR))
            w->config.look_everywhere(w->config.ctx, false);
    }
}

/* ---- from outside ---- */

static void close_fds(struct watcher *w)
{
    int fds[] = {w->inotify, w->mounts, w->stop};

    for (size_t i = 0; i < G_N_ELEMENTS(fds); i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

int watcher_new(const struct watcher_config *config, struct watcher **ret)
{
    struct watcher *w = g_new0(struct watcher, 1);
    int r = 0;

    w->config = *config;
    w->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (w->inotify < 0)
        r = -errno;
    w->mounts = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC); /* without it poll() ignores the -1 */
    w->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->stop < 0)
        r = -errno;
    w->watched = g_hash_table_new_full(g_direct_hash, g_direct_equal, NULL, g_free);
    pthread_mutex_init(&w->reading, NULL);
    pthread_mutex_init(&w->lock, NULL);
    if (r == 0)
        r = -pthread_create(&w->thread, NULL, run, w);
    if (r < 0) {
        close_fds(w);
        g_hash_table_unref(w->watched);
        pthread_mutex_destroy(&w->lock);
        pthread_mutex_destroy(&w->reading);
        g_free(w);
        return r;
    }
    *ret = w;
    return 0;
}

void watcher_free(struct watcher *w)
{
    uint64_t one = 1;

    if (!w)
        return;
    ssize_t n = write(w->stop, &one, sizeof one);
    g_assert(n == sizeof one);
    pthread_join(w->thread, NULL);
    close_fds(w);
    g_hash_table_unref(w->watched);
    pthread_mutex_destroy(&w->lock);
    pthread_mutex_destroy(&w->reading);
    g_free(w);
}

void watcher_read_now(struct watcher *w)
{
    read_events(w);
}

int watcher_add(struct watcher *w, int dir_fd, uint64_t key, int dir)
{
    g_autofree char *path = g_strdup_printf("/proc/self/fd/%d", dir_fd);
    struct watched *v = g_new(struct watched, 1);

    *v = (struct watched){.key = key, .dir = dir};
    pthread_mutex_lock(&w->lock); /* no event of it is looked up before it is known */
    int wd = inotify_add_watch(w->inotify, path, WATCH_MASK);
    if (wd >= 0)
        g_hash_table_replace(w->watched, GINT_TO_POINTER(wd), v);
    else
        g_free(v);
    int err = wd < 0 ? -errno : 0;
    pthread_mutex_unlock(&w->lock);
    return err < 0 ? err : wd;
}

void watcher_remove(struct watcher *w, int watch)
{
    pthread_mutex_lock(&w->lock);
    g_hash_table_remove(w->watched, GINT_TO_POINTER(watch));
    (void)inotify_rm_watch(w->inotify, watch);
    pthread_mutex_unlock(&w->lock);
}
