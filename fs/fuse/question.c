/* Questions to the policy about `.state`: parked until they are answered, by whatever thread. */
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
    struct inode *dir;
    size_t size, count;
    off_t off;
    bool plus;
    gen_t gen;
};

static void question_free(struct parked *p)
{
    struct state_question *q = (struct state_question *)p;
    handle_unref(q->handle);
    inode_unref(q->dir);
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
    q->dir = question->dir ? inode_ref(question->dir) : NULL;
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

void state_answer_list(struct state_question *q, const struct state_entry *entries, size_t n)
{
    fuse_req_t req = answer(q);
    if (req) {
        GPtrArray *list = listing_entries_new();
        listing_entries_add(list, ".", VIRTUAL_DIRECTORY);
        listing_entries_add(list, "..", VIRTUAL_DIRECTORY);
        if (strcmp(q->path, STATE_ROOT) == 0) {
            listing_entries_add(list, "settled", VIRTUAL_FILE);
            listing_entries_add(list, "errors", VIRTUAL_FILE);
            listing_entries_add(list, "events", VIRTUAL_FILE);
        }
        for (size_t i = 0; i < n; i++)
            listing_entries_add(list, entries[i].name, virtual_kind(entries[i].kind));
        struct listings *all = q->dir->virtual_file->listings;
        listings_reply(req, all, list, listings_add(all, list), q->off, q->size, q->plus);
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
