#include "fs/fuse/virtual.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include "fs/fuse/parking.h"
#include "fs/tree/path.h"

#define MAX_STATE_VALUE 65536

static void reply_virtual(fuse_req_t req, struct virtual_file *v, double timeout)
{
    struct inode *i = inode_lookup_virtual(mount_of(req)->inodes, v);
    reply_inode(req, i, timeout);
    inode_unref(i);
}

void virtual_lookup_root(fuse_req_t req)
{
    struct virtual_file *v = g_new0(struct virtual_file, 1);
    v->path = g_strdup(STATE_ROOT);
    v->kind = VIRTUAL_DIRECTORY;
    reply_virtual(req, v, 0);
}

static void look_at_journal(struct virtual_file *v, struct journal *j)
{
    char header[64];
    v->journal = j;
    v->view = journal_extent(j);
    if (v->view.lost > 0)
        v->header_len = (size_t)g_snprintf(header, sizeof header, "lost %" G_GUINT64_FORMAT "\n", v->view.lost);
}

void virtual_lookup(fuse_req_t req, struct inode *dir, const char *name)
{
    struct mount *m = mount_of(req);
    bool top = strcmp(dir->virtual_file->path, STATE_ROOT) == 0;
    bool errors = top && strcmp(name, "errors") == 0, events = top && strcmp(name, "events") == 0;
    if (dir->virtual_file->kind != VIRTUAL_DIRECTORY) {
        fuse_reply_err(req, ENOTDIR);
    } else if (!path_valid_name(name)) {
        fuse_reply_err(req, ENOENT);
    } else if (errors || events || (top && strcmp(name, "settled") == 0)) {
        struct virtual_file *v = g_new0(struct virtual_file, 1);
        v->path = path_join(STATE_ROOT, name);
        v->kind = errors || events ? VIRTUAL_JOURNAL : VIRTUAL_SETTLED;
        if (errors || events)
            look_at_journal(v, errors ? m->errors : m->events);
        reply_virtual(req, v, 0);
    } else {
        g_autofree char *path = path_join(dir->virtual_file->path, name);
        question_ask(req, &(struct question){.query = STATE_LOOKUP, .path = path});
    }
}

void virtual_open(fuse_req_t req, struct inode *i, int flags)
{
    struct mount *m = mount_of(req);
    enum virtual_kind kind = i->virtual_file->kind;
    if ((flags & O_ACCMODE) != O_RDONLY && kind != VIRTUAL_WRITABLE) {
        fuse_reply_err(req, EACCES);
        return;
    }
    struct handle *h = handle_new(m->handles, i, flags);
    if (!h) {
        fuse_reply_err(req, ENFILE);
        return;
    }
    if (kind == VIRTUAL_SETTLED) {
        if (m->policy->settling)
            m->policy->settling(m->policy->ctx);
        h->bound = settle_begin(m->settle);
    }
    reply_opened(req, h);
    handle_unref(h);
}

/* ---- settled ---- */

struct settled_read {
    struct parked parked;
    struct mount *mount;
    struct handle *handle;
    size_t size;
    struct settle_waiter *waiter; /* this and the next: parked.lock */
    bool fired;
};

static void settled_free(struct parked *p)
{
    struct settled_read *r = (struct settled_read *)p;
    handle_unref(r->handle);
    g_free(r);
}

static struct settle_waiter *steal_waiter(struct settled_read *r)
{
    pthread_mutex_lock(&r->parked.lock);
    struct settle_waiter *w = g_steal_pointer(&r->waiter);
    pthread_mutex_unlock(&r->parked.lock);
    return w;
}

/* Nobody waits any more. If the waiter can be withdrawn, its reference ends here, else with its call. */
static void settled_interrupted(struct parked *p)
{
    struct settled_read *r = (struct settled_read *)p;
    struct settle_waiter *w = steal_waiter(r);
    if (w && settle_cancel(r->mount->settle, w))
        parked_unref(p);
}

static void reply_settled(struct settled_read *r, fuse_req_t req)
{
    g_autofree char *text = g_strdup_printf("%" G_GINT64_FORMAT "\n", mirror_zxid(r->mount->mirror));
    struct bytes *value = bytes_from_string(text);
    pthread_mutex_lock(&r->handle->lock);
    bytes_unref(r->handle->value);
    r->handle->value = bytes_ref(value);
    pthread_mutex_unlock(&r->handle->lock);
    reply_slice(req, value->data, value->len, r->size, 0);
    bytes_unref(value);
}

/* On the thread of the last release, or at once. */
static void on_settled(void *arg)
{
    struct settled_read *r = arg;
    fuse_req_t req = parked_take(&r->parked);
    if (req) {
        reply_settled(r, req);
        parked_answered(&r->parked);
    }
    pthread_mutex_lock(&r->parked.lock);
    r->fired = true;
    pthread_mutex_unlock(&r->parked.lock);
    struct settle_waiter *w = steal_waiter(r);
    if (w)
        settle_cancel(r->mount->settle, w);
    parked_unref(&r->parked);
}

static void read_settled(fuse_req_t req, struct handle *h, size_t size)
{
    struct mount *m = mount_of(req);
    struct settled_read *r = g_new0(struct settled_read, 1);
    parked_init(m->parking, &r->parked, req, settled_free, settled_interrupted);
    r->mount = m;
    r->handle = handle_ref(h);
    r->size = size;
    parked_wait(&r->parked);
    parked_ref(&r->parked); /* on_settled()'s */
    struct settle_waiter *w = settle_wait(m->settle, h->bound, on_settled, r);
    pthread_mutex_lock(&r->parked.lock);
    bool over = r->fired;
    if (!over)
        r->waiter = w;
    bool waiting = r->parked.req;
    pthread_mutex_unlock(&r->parked.lock);
    if (over)
        settle_cancel(m->settle, w);
    else if (!waiting)
        settled_interrupted(&r->parked);
    parked_unref(&r->parked);
}

/* ---- journals ---- */

/* A reader goes on where it was, and is told what it missed; any other offset is one of the view's. */
static void read_journal(fuse_req_t req, struct handle *h, size_t size, off_t off)
{
    const struct virtual_file *v = h->inode->virtual_file;
    g_autofree char *buf = g_malloc(size);
    pthread_mutex_lock(&h->lock);
    if ((uint64_t)off != h->offset && (size_t)off < MAX(v->header_len, 1))
        h->position = 0;
    else if ((uint64_t)off != h->offset)
        h->position = journal_seek(v->journal, v->view.first + (uint64_t)off - v->header_len);
    size_t n = journal_read(v->journal, &h->position, buf, size);
    h->offset = (uint64_t)off + n;
    pthread_mutex_unlock(&h->lock);
    fuse_reply_buf(req, buf, n);
}

bool virtual_has_news(struct handle *h)
{
    if (h->inode->virtual_file->kind != VIRTUAL_JOURNAL)
        return true;
    pthread_mutex_lock(&h->lock);
    bool news = h->position < journal_end(h->inode->virtual_file->journal);
    pthread_mutex_unlock(&h->lock);
    return news;
}

/* ---- the policy's files ---- */

void virtual_read(fuse_req_t req, struct handle *h, size_t size, off_t off)
{
    enum virtual_kind kind = h->inode->virtual_file->kind;
    if (kind == VIRTUAL_JOURNAL) {
        read_journal(req, h, size, off);
        return;
    }
    pthread_mutex_lock(&h->lock);
    struct bytes *value = bytes_ref(h->value);
    pthread_mutex_unlock(&h->lock);
    if (value && (off > 0 || kind == VIRTUAL_SETTLED))
        reply_slice(req, value->data, value->len, size, off);
    else if (kind == VIRTUAL_SETTLED)
        read_settled(req, h, size);
    else
        question_ask(req,
                &(struct question){
                        .query = STATE_READ, .path = h->inode->virtual_file->path, .h = h, .size = size, .off = off});
    bytes_unref(value);
}

/* Hands the value over, with the answer to a write of `count` bytes or to a flush (0). */
static void send_value(fuse_req_t req, struct handle *h, size_t count)
{
    struct bytes *value = bytes_new(staging_data(h->staging), staging_len(h->staging));
    staging_truncate(h->staging, 0);
    question_ask(req, &(struct question){.query = STATE_WRITE,
                              .path = h->inode->virtual_file->path,
                              .value = value,
                              .h = h,
                              .count = count});
    bytes_unref(value);
}

/* A value is whole with its newline, or at the close. Offsets mean nothing: each line is a value of its own. */
void virtual_write(fuse_req_t req, struct handle *h, const char *data, size_t len)
{
    struct mount *m = mount_of(req);
    if (h->inode->virtual_file->kind != VIRTUAL_WRITABLE) {
        fuse_reply_err(req, EBADF);
        return;
    }
    if (!h->staging)
        h->staging = staging_new(&m->budget, MAX_STATE_VALUE);
    int rc = staging_write(h->staging, staging_len(h->staging), data, len);
    if (rc < 0)
        fuse_reply_err(req, -rc);
    else if (len > 0 && data[len - 1] == '\n')
        send_value(req, h, len);
    else
        fuse_reply_write(req, len);
}

void virtual_flush(fuse_req_t req, struct handle *h)
{
    if (h->staging && staging_len(h->staging) > 0)
        send_value(req, h, 0);
    else
        fuse_reply_err(req, 0);
}

void virtual_readdir(fuse_req_t req, struct inode *dir, size_t size, off_t off, bool plus)
{
    struct virtual_file *v = dir->virtual_file;
    if (!v->listings)
        v->listings = listings_new();
    GPtrArray *entries = off > 0 ? listings_find(v->listings, off) : NULL;
    if (entries)
        listings_reply(req, v->listings, entries, listing_number(off), off, size, plus);
    else
        question_ask(
                req, &(struct question){
                             .query = STATE_LIST, .path = v->path, .dir = dir, .size = size, .off = off, .plus = plus});
}

void virtual_readlink(fuse_req_t req, struct inode *i)
{
    question_ask(req, &(struct question){.query = STATE_READLINK, .path = i->virtual_file->path});
}
