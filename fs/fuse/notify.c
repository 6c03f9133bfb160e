#include "fs/fuse/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "fs/fuse/name.h"
#include "fs/fuse/virtual.h"

enum notice_type { NOTICE_ENTRY, NOTICE_DELETED, NOTICE_INODE };

struct notice {
    enum notice_type type;
    uint64_t parent, ino;
    char *name;
    gen_t gen; /* held until delivered */
};

struct poll {
    struct handle *handle;
    struct fuse_pollhandle *ph;
};

struct notifier {
    struct mount *mount;
    pthread_t thread;
    bool started;
    pthread_mutex_t stopping; /* whoever ends it; protects `started` */
    pid_t tid;                /* of the thread; set before it is needed */
    pthread_mutex_t lock;     /* protects all below */
    pthread_cond_t wake;
    bool stop, news;
    GPtrArray *queue;         /* struct notice */
    GHashTable *queued_inode; /* &notice->ino -> NOTICE_INODE in the queue */
    GPtrArray *reviving;      /* the batch in work, while a name in it is being revived */
    guint reviving_from;
    GArray *polls; /* struct poll */
    atomic_uint n_polls;
};

static void notice_free(void *p)
{
    struct notice *notice = p;
    g_free(notice->name);
    g_free(notice);
}

struct notifier *notifier_new(struct mount *m)
{
    struct notifier *n = g_new0(struct notifier, 1);
    n->mount = m;
    pthread_mutex_init(&n->stopping, NULL);
    pthread_mutex_init(&n->lock, NULL);
    pthread_cond_init(&n->wake, NULL);
    n->queue = g_ptr_array_new_with_free_func(notice_free);
    n->queued_inode = g_hash_table_new(g_int64_hash, g_int64_equal);
    n->polls = g_array_new(FALSE, FALSE, sizeof(struct poll));
    return n;
}

struct mount *notifier_mount(const struct notifier *n)
{
    return n->mount;
}

static void drop_poll(struct poll *p)
{
    fuse_pollhandle_destroy(p->ph);
    handle_unref(p->handle);
}

void notifier_free(struct notifier *n)
{
    if (!n)
        return;
    for (guint i = 0; i < n->polls->len; i++)
        drop_poll(&g_array_index(n->polls, struct poll, i));
    g_array_unref(n->polls);
    g_hash_table_unref(n->queued_inode);
    g_ptr_array_unref(n->queue);
    pthread_cond_destroy(&n->wake);
    pthread_mutex_destroy(&n->lock);
    pthread_mutex_destroy(&n->stopping);
    g_free(n);
}

/* ---- queueing ---- */

/* With the lock held. */
static void queue(struct notifier *n, enum notice_type type, uint64_t parent, uint64_t ino, const char *name, gen_t gen)
{
    if (n->stop)
        return;
    struct notice *notice = g_new(struct notice, 1);
    *notice = (struct notice){.type = type, .parent = parent, .ino = ino, .name = g_strdup(name), .gen = gen};
    settle_hold(n->mount->settle, gen);
    if (type == NOTICE_INODE)
        g_hash_table_insert(n->queued_inode, &notice->ino, notice);
    if (n->queue->len == 0)
        pthread_cond_signal(&n->wake);
    g_ptr_array_add(n->queue, notice);
}

void notify_entry(struct notifier *n, uint64_t parent, const char *name, gen_t gen)
{
    pthread_mutex_lock(&n->lock);
    queue(n, NOTICE_ENTRY, parent, 0, name, gen);
    pthread_mutex_unlock(&n->lock);
}

void notify_deleted(struct notifier *n, uint64_t parent, uint64_t child, const char *name, gen_t gen)
{
    pthread_mutex_lock(&n->lock);
    queue(n, NOTICE_DELETED, parent, child, name, gen);
    pthread_mutex_unlock(&n->lock);
}

/* One that is queued already does for this change too; it must then be delivered for the sake of the older cause. */
void notify_inode(struct notifier *n, uint64_t parent, uint64_t ino, gen_t gen)
{
    pthread_mutex_lock(&n->lock);
    struct notice *queued = g_hash_table_lookup(n->queued_inode, &ino);
    if (!queued) {
        queue(n, NOTICE_INODE, parent, ino, NULL, gen);
    } else if (gen < queued->gen) {
        settle_hold(n->mount->settle, gen);
        settle_release(n->mount->settle, queued->gen);
        queued->gen = gen;
    }
    pthread_mutex_unlock(&n->lock);
}

void notify_attr_now(struct notifier *n, uint64_t ino)
{
    fuse_lowlevel_notify_inval_inode(n->mount->session, ino, -1, 0);
}

/* ---- delivering ---- */

/* The path through the mount to a znode's inode, as names are shown; NULL if there is none. */
static char *shown_path(struct mount *m, uint64_t ino)
{
    struct inode *i = inode_get(m->inodes, ino);
    if (!i || !i->node) {
        inode_unref(i);
        return NULL;
    }
    g_autofree char *path = znode_path(i->node);
    bool data = i->type == INODE_DATA;
    inode_unref(i);
    g_auto(GStrv) names = g_strsplit(path, "/", -1);
    g_autoptr(GString) shown = g_string_new(m->config.mountpoint);
    for (char **name = names; *name; name++) {
        char buf[NAME_MAX_BYTES + 1];
        const char *encoded = name_encode(*name, buf);
        if (!encoded)
            return NULL;
        if (*encoded)
            g_string_append_printf(shown, "/%s", encoded);
    }
    if (data)
        g_string_append(shown, "/" NAME_DATA);
    return g_string_free(g_steal_pointer(&shown), FALSE);
}

/* The kernel knows the inode, but not the name (memory was short): a deletion would reach no watcher. So the name is
 * looked up through the mount, like anybody would; the answer is the dying inode. */
static void revive(struct notifier *n, GPtrArray *batch, guint index)
{
    const struct notice *notice = g_ptr_array_index(batch, index);
    g_autofree char *path = shown_path(n->mount, notice->ino);
    if (!path)
        return;
    fuse_lowlevel_notify_inval_entry(n->mount->session, notice->parent, notice->name, strlen(notice->name));
    pthread_mutex_lock(&n->lock);
    n->reviving = batch;
    n->reviving_from = index;
    pthread_mutex_unlock(&n->lock);
    int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        close(fd);
    pthread_mutex_lock(&n->lock);
    n->reviving = NULL;
    pthread_mutex_unlock(&n->lock);
}

static uint64_t find_deleted(const GPtrArray *notices, guint from, uint64_t parent, const char *name)
{
    for (guint i = from; i < notices->len; i++) {
        const struct notice *notice = g_ptr_array_index(notices, i);
        if (notice->type == NOTICE_DELETED && notice->parent == parent && strcmp(notice->name, name) == 0)
            return notice->ino;
    }
    return 0;
}

struct inode *notify_find_dying(struct notifier *n, pid_t pid, uint64_t parent, const char *name)
{
    uint64_t ino = 0;
    pthread_mutex_lock(&n->lock);
    if (n->reviving && pid == n->tid) {
        ino = find_deleted(n->reviving, n->reviving_from, parent, name);
        if (ino == 0)
            ino = find_deleted(n->queue, 0, parent, name);
    }
    pthread_mutex_unlock(&n->lock);
    struct inode *i = ino != 0 ? inode_get(n->mount->inodes, ino) : NULL;
    if (i)
        inode_lookup_again(n->mount->inodes, i);
    return i;
}

/* Any answer of the kernel is fine: it may know neither name nor inode, or be about to forget them. */
static void deliver(struct notifier *n, GPtrArray *batch, guint index)
{
    struct fuse_session *session = n->mount->session;
    const struct notice *notice = g_ptr_array_index(batch, index);
    size_t len = notice->name ? strlen(notice->name) : 0;
    switch (notice->type) {
    case NOTICE_ENTRY:
        fuse_lowlevel_notify_inval_entry(session, notice->parent, notice->name, len);
        break;
    case NOTICE_DELETED:
        if (fuse_lowlevel_notify_delete(session, notice->parent, notice->ino, notice->name, len) != -ENOENT ||
                !inode_known(n->mount->inodes, notice->ino))
            break;
        revive(n, batch, index);
        fuse_lowlevel_notify_delete(session, notice->parent, notice->ino, notice->name, len);
        break;
    case NOTICE_INODE:
        if (fuse_lowlevel_notify_inval_inode(session, notice->ino, 0, 0) != -ENOENT || notice->parent == 0 ||
                !inode_known(n->mount->inodes, notice->ino))
            break;
        /* The answer to a lookup may be on its way with the old attributes. Asking for a name that is never there waits
         * for the directory's lock, and so for that lookup's end. */
        fuse_lowlevel_notify_inval_entry(session, notice->parent, "\001", 1);
        fuse_lowlevel_notify_inval_inode(session, notice->ino, 0, 0);
        break;
    }
}

static void deliver_batch(struct notifier *n, GPtrArray *batch)
{
    for (guint i = 0; i < batch->len; i++) {
        deliver(n, batch, i);
        settle_release(n->mount->settle, ((struct notice *)g_ptr_array_index(batch, i))->gen);
    }
    g_ptr_array_unref(batch);
}

static void wake_polls(struct notifier *n, GArray *polls)
{
    for (guint i = 0; i < polls->len; i++) {
        struct poll *p = &g_array_index(polls, struct poll, i);
        fuse_lowlevel_notify_poll(p->ph);
        drop_poll(p);
    }
    g_array_unref(polls);
}

/* Takes those out of the list whose journal has news. With the lock held. */
static GArray *take_woken(struct notifier *n)
{
    GArray *woken = g_array_new(FALSE, FALSE, sizeof(struct poll));
    for (guint i = 0; i < n->polls->len;) {
        struct poll *p = &g_array_index(n->polls, struct poll, i);
        if (virtual_has_news(p->handle)) {
            g_array_append_val(woken, *p);
            g_array_remove_index_fast(n->polls, i);
        } else {
            i++;
        }
    }
    atomic_store(&n->n_polls, n->polls->len);
    return woken;
}

static void *run(void *arg)
{
    struct notifier *n = arg;
    pthread_setname_np(pthread_self(), "notify");
    pthread_mutex_lock(&n->lock);
    n->tid = gettid();
    while (!n->stop) {
        if (n->queue->len > 0) {
            GPtrArray *batch = n->queue;
            n->queue = g_ptr_array_new_with_free_func(notice_free);
            g_hash_table_remove_all(n->queued_inode);
            pthread_mutex_unlock(&n->lock);
            deliver_batch(n, batch);
            pthread_mutex_lock(&n->lock);
        } else if (n->news) {
            n->news = false;
            GArray *woken = take_woken(n);
            pthread_mutex_unlock(&n->lock);
            wake_polls(n, woken);
            pthread_mutex_lock(&n->lock);
        } else {
            pthread_cond_wait(&n->wake, &n->lock);
        }
    }
    pthread_mutex_unlock(&n->lock);
    return NULL;
}

int notifier_start(struct notifier *n)
{
    int err = pthread_create(&n->thread, NULL, run, n);
    n->started = err == 0;
    return -err;
}

void notifier_stop(struct notifier *n)
{
    pthread_mutex_lock(&n->stopping);
    pthread_mutex_lock(&n->lock);
    n->stop = true;
    pthread_cond_signal(&n->wake);
    GPtrArray *dropped = n->queue;
    n->queue = g_ptr_array_new_with_free_func(notice_free);
    g_hash_table_remove_all(n->queued_inode);
    pthread_mutex_unlock(&n->lock);
    if (n->started)
        pthread_join(n->thread, NULL);
    n->started = false;
    pthread_mutex_unlock(&n->stopping);
    for (guint i = 0; i < dropped->len; i++)
        settle_release(n->mount->settle, ((struct notice *)g_ptr_array_index(dropped, i))->gen);
    g_ptr_array_unref(dropped);
}

/* ---- poll ---- */

/* With the lock held. */
static struct poll *find_poll(const struct notifier *n, const struct handle *h)
{
    for (guint i = 0; i < n->polls->len; i++)
        if (g_array_index(n->polls, struct poll, i).handle == h)
            return &g_array_index(n->polls, struct poll, i);
    return NULL;
}

void notify_poll(struct notifier *n, struct handle *h, struct fuse_pollhandle *ph)
{
    pthread_mutex_lock(&n->lock);
    struct poll *old = find_poll(n, h);
    if (old) {
        fuse_pollhandle_destroy(old->ph);
        old->ph = ph;
    } else {
        struct poll p = {.handle = handle_ref(h), .ph = ph};
        g_array_append_val(n->polls, p);
        atomic_store(&n->n_polls, n->polls->len);
    }
    pthread_mutex_unlock(&n->lock);
}

void notify_poll_end(struct notifier *n, const struct handle *h)
{
    struct poll p = {0};
    if (atomic_load(&n->n_polls) == 0)
        return;
    pthread_mutex_lock(&n->lock);
    struct poll *found = find_poll(n, h);
    if (found) {
        p = *found;
        g_array_remove_index_fast(n->polls, (guint)(found - &g_array_index(n->polls, struct poll, 0)));
        atomic_store(&n->n_polls, n->polls->len);
    }
    pthread_mutex_unlock(&n->lock);
    if (found)
        drop_poll(&p);
}

void notify_journals(void *notifier)
{
    struct notifier *n = notifier;
    if (atomic_load(&n->n_polls) == 0)
        return;
    pthread_mutex_lock(&n->lock);
    n->news = true;
    pthread_cond_signal(&n->wake);
    pthread_mutex_unlock(&n->lock);
}
