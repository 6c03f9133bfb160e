#include <errno.h>
#include <string.h>
#include "fs/fuse/parking.h"
#include "fs/fuse/virtual.h"

/* fs/policy.h: parked until answered. The asker's reference goes with the answer, which may come long after the request
 * has been interrupted. */
struct state_question {
    struct parked parked;
    struct mount *mount;
    enum state_query query;
    char *path;
    struct handle *handle;
    size_t size, count;
    off_t off;
    bool plus;
    gen_t gen;
};

static void question_free(struct parked *p)
{
    struct state_question *q = (struct state_question *)p;
    handle_unref(q->handle);
    g_free(q->path);
    g_free(q);
}

void question_ask(fuse_req_t req, const struct question *question)
{
    struct mount *m = mount_of(req);
    struct state_question *q = g_new0(struct state_question, 1);
    parked_init(m->parking, &q->parked, req, question_free, NULL);
    q->mount = m;
    q->query = question->query;
    q->path = g_strdup(question->path);
    q->handle = question->h ? handle_ref(question->h) : NULL;
    q->size = question->size;
    q->count = question->count;
    q->off = question->off;
    q->plus = question->plus;
    q->gen = settle_hold_now(m->settle);
    parked_wait(&q->parked);
    m->policy->ask(m->policy->ctx, q->query, q->path, question->value, q->gen, q);
}

/* The request, or NULL if nobody waits any more. */
static fuse_req_t answer(struct state_question *q)
{
    return parked_take(&q->parked);
}

static void end(struct state_question *q, fuse_req_t req)
{
    if (req)
        parked_answered(&q->parked);
    settle_release(q->mount->settle, q->gen);
    parked_unref(&q->parked);
}

void state_answer_error(struct state_question *q, int err)
{
    fuse_req_t req = answer(q);
    if (req)
        fuse_reply_err(req, err);
    end(q, req);
}

static enum virtual_kind virtual_kind(enum state_kind kind)
{
    switch (kind) {
    case STATE_DIRECTORY:
        return VIRTUAL_DIRECTORY;
    case STATE_WRITABLE_FILE:
        return VIRTUAL_WRITABLE;
    case STATE_LINK:
        return VIRTUAL_LINK;
    default:
        return VIRTUAL_FILE;
    }
}

void state_answer_kind(struct state_question *q, enum state_kind kind)
{
    fuse_req_t req = answer(q);
    if (req) {
        struct virtual_file *v = g_new0(struct virtual_file, 1);
        v->path = g_strdup(q->path);
        v->kind = virtual_kind(kind);
        struct inode *i = inode_lookup_virtual(q->mount->inodes, v);
        reply_inode(req, i, 0);
        inode_unref(i);
    }
    end(q, req);
}

void state_answer_bytes(struct state_question *q, const void *data, size_t len)
{
    fuse_req_t req = answer(q);
    if (req && q->query == STATE_READLINK) {
        g_autofree char *target = g_strndup(data, len);
        fuse_reply_readlink(req, target);
    } else if (req) {
        struct bytes *value = bytes_new(data, len);
        pthread_mutex_lock(&q->handle->lock);
        bytes_unref(q->handle->value);
        q->handle->value = bytes_ref(value);
        pthread_mutex_unlock(&q->handle->lock);
        reply_slice(req, value->data, value->len, q->size, q->off);
        bytes_unref(value);
    }
    end(q, req);
}

static void free_entry(void *p)
{
    struct virtual_entry *e = p;
    g_free(e->name);
    g_free(e);
}

static void add_entry(GPtrArray *entries, const char *name, enum virtual_kind kind)
{
    struct virtual_entry *e = g_new(struct virtual_entry, 1);
    *e = (struct virtual_entry){.name = g_strdup(name), .kind = kind};
    g_ptr_array_add(entries, e);
}

void state_answer_list(struct state_question *q, const struct state_entry *entries, size_t n)
{
    fuse_req_t req = answer(q);
    if (req) {
        GPtrArray *list = g_ptr_array_new_with_free_func(free_entry);
        add_entry(list, ".", VIRTUAL_DIRECTORY);
        add_entry(list, "..", VIRTUAL_DIRECTORY);
        if (strcmp(q->path, STATE_ROOT) == 0) {
            add_entry(list, "settled", VIRTUAL_FILE);
            add_entry(list, "errors", VIRTUAL_FILE);
            add_entry(list, "events", VIRTUAL_FILE);
        }
        for (size_t i = 0; i < n; i++)
            add_entry(list, entries[i].name, virtual_kind(entries[i].kind));
        pthread_mutex_lock(&q->handle->lock);
        if (q->handle->entries)
            g_ptr_array_unref(q->handle->entries);
        q->handle->entries = g_ptr_array_ref(list);
        pthread_mutex_unlock(&q->handle->lock);
        reply_entries(req, list, q->size, q->off, q->plus);
        g_ptr_array_unref(list);
    }
    end(q, req);
}

void state_answer_done(struct state_question *q)
{
    fuse_req_t req = answer(q);
    if (req && q->count > 0)
        fuse_reply_write(req, q->count);
    else if (req)
        fuse_reply_err(req, 0);
    end(q, req);
}

static mode_t type_of(enum virtual_kind kind)
{
    return kind == VIRTUAL_DIRECTORY ? S_IFDIR : kind == VIRTUAL_LINK ? S_IFLNK : S_IFREG;
}

/* The listing is the handle's own snapshot, so its index is a good cookie. No entry brings an inode with it: what is
 * below `.state` is asked for when it is looked up. */
void reply_entries(fuse_req_t req, const GPtrArray *entries, size_t size, off_t off, bool plus)
{
    g_autofree char *buf = g_malloc(size);
    size_t used = 0;
    for (off_t i = MAX(off, 0); i < (off_t)entries->len; i++) {
        const struct virtual_entry *v = g_ptr_array_index(entries, i);
        struct fuse_entry_param e = {.attr.st_ino = 1, .attr.st_mode = type_of(v->kind)};
        size_t n = plus ? fuse_add_direntry_plus(req, buf + used, size - used, v->name, &e, i + 1)
                        : fuse_add_direntry(req, buf + used, size - used, v->name, &e.attr, i + 1);
        if (n > size - used)
            break;
        used += n;
    }
    fuse_reply_buf(req, buf, used);
}
