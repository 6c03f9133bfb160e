#include "fs/store/lmdb_walk.h"

#include <errno.h>
#include "fs/store/lmdb_format.h"

struct walk {
    int (*visit)(void *arg, const struct record_view *view);
    void *arg;
};

static int visit_fault(void *arg, const void *key, size_t key_len, const char *what)
{
    struct walk *w = arg;
    struct record_view view = {.err = -EIO, .what = what, .key = key, .key_len = key_len};
    char name[RECORD_NAME_MAX + 1];
    if (key && record_key_parse(key, key_len, &view.parent_id, name) == 0)
        view.name = name;
    return w->visit(w->arg, &view);
}

static int visit_record(void *arg, const void *key, size_t key_len, const void *value, size_t len)
{
    struct walk *w = arg;
    struct record_view view = {.key = key, .key_len = key_len};
    struct meta meta;
    char name[RECORD_NAME_MAX + 1];
    view.err = record_key_parse(key, key_len, &view.parent_id, name);
    view.name = view.err == 0 ? name : NULL;
    bool is_meta = view.err == 0 && *name == '\0';
    if (is_meta) {
        view.err = meta_decode(key, key_len, value, len, &meta);
        view.meta = &meta;
    } else if (view.err == 0) {
        view.err = record_decode(key, key_len, value, len, &view.node);
    }
    view.what = view.err == -EPROTO ? "written by a newer version" : "record damaged (checksum)";
    int result = w->visit(w->arg, &view);
    if (view.err == 0)
        node_clear(&view.node);
    return result;
}

int lmdb_walk(int fd, int (*visit)(void *arg, const struct record_view *view), void *arg)
{
    struct walk w = {.visit = visit, .arg = arg};
    struct lmdb_scan scan = {.record = visit_record, .fault = visit_fault, .arg = &w};
    return lmdb_scan(fd, &scan);
}
