#include "store_fixture.h"

#include <string.h>
#include <glib/gstdio.h>

static int64_t now_ms(void *ctx)
{
    return ((struct fixture *)ctx)->now;
}

static void append_stat(GString *out, const struct zstat *s)
{
    g_string_append_printf(out, "cz=%ld mz=%ld pz=%ld ct=%ld mt=%ld eo=%ld v=%d cv=%d", s->czxid, s->mzxid, s->pzxid,
            s->ctime, s->mtime, s->ephemeral_owner, s->version, s->cversion);
}

static void feed(void *ctx, struct commit *c)
{
    static const char *const names[] = {"created", "deleted", "data"};
    struct fixture *f = ctx;
    f->n_commits++;
    for (size_t i = 0; i < c->n_changes; i++) {
        struct change *ch = &c->changes[i];
        g_string_append_printf(
                f->feed, "%ld %s %s %s ", c->zxid, names[ch->type], ch->path, ch->data ? ch->data->data : "-");
        append_stat(f->feed, &ch->stat);
        if (ch->type != NODE_DATA_CHANGED)
            g_string_append_printf(f->feed, " parent pz=%ld cv=%d", ch->parent_pzxid, ch->parent_cversion);
        g_string_append_c(f->feed, '\n');
    }
    mirror_apply(f->mirror, c);
}

static void failed(void *ctx, const char *why)
{
    struct fixture *f = ctx;
    g_free(f->failure);
    f->failure = g_strdup(why);
    f->n_failures++;
}

static void visit(void *arg, const char *path, struct bytes *data, const struct zstat *stat)
{
    mirror_load(arg, path, data, stat);
}

struct store_config fixture_config(struct fixture *f)
{
    return (struct store_config){.now_ms = now_ms, .feed = feed, .failed = failed, .ctx = f};
}

static void prepare(struct fixture *f)
{
    f->now = 1000;
    f->feed = g_string_new(NULL);
    f->mirror = mirror_new(NULL, NULL);
}

static void load(struct fixture *f)
{
    char *why = NULL;
    int err = store_load(f->store, visit, f->mirror, &why);
    if (err < 0)
        fail_msg("load: %s", why);
}

void fixture_open(struct fixture *f, struct backend *b)
{
    char *why = NULL;
    *f = (struct fixture){0};
    prepare(f);
    struct store_config config = fixture_config(f);
    assert_int_equal(store_open_backend(b ? b : backend_new_memory(), false, &config, &f->store, &why), 0);
    load(f);
}

void fixture_open_lmdb(struct fixture *f, const char *dir)
{
    char *why = NULL;
    *f = (struct fixture){0};
    prepare(f);
    struct store_config config = fixture_config(f);
    if (store_open_lmdb(dir, true, false, &config, &f->store, &why) < 0)
        fail_msg("open: %s", why);
    load(f);
}

void fixture_close(struct fixture *f)
{
    store_close(f->store);
    mirror_free(f->mirror);
    g_string_free(f->feed, TRUE);
    g_free(f->failure);
}

void fixture_keep(struct txn *txn, void *arg)
{
    if (arg)
        ++*(int *)arg;
}

int fixture_run(struct fixture *f, struct txn *txn)
{
    txn->done = fixture_keep;
    store_submit(f->store, txn);
    store_step(f->store);
    int rc = txn->rc;
    txn_free(txn);
    return rc;
}

int fixture_create(struct fixture *f, const char *path, const char *data)
{
    struct txn *txn = txn_new(TXN_CLIENT);
    txn_create(txn, path, data ? bytes_from_string(data) : NULL, 0);
    return fixture_run(f, txn);
}

static void append_node(struct znode *n, GString *out, bool times)
{
    struct zstat stat = *znode_stat(n);
    if (!times)
        stat.ctime = stat.mtime = 0;
    g_autofree char *path = znode_path(n);
    struct bytes *data = znode_data(n);
    g_string_append_printf(out, "%s %s ", path, data ? data->data : "-");
    append_stat(out, &stat);
    g_string_append_printf(out, " children=%u\n", znode_num_children(n));
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(znode_name(*(struct znode *const *)a), znode_name(*(struct znode *const *)b));
}

static void append_tree(struct znode *n, GString *out, bool times)
{
    append_node(n, out, times);
    g_autoptr(GPtrArray) children = g_ptr_array_new();
    for (struct znode *c = znode_next_child(n, 0); c; c = znode_next_child(n, znode_ino(c)))
        g_ptr_array_add(children, c);
    g_ptr_array_sort(children, compare_names);
    for (guint i = 0; i < children->len; i++)
        append_tree(g_ptr_array_index(children, i), out, times);
}

char *fixture_tree(struct fixture *f, bool times)
{
    GString *out = g_string_new(NULL);
    mirror_rdlock(f->mirror);
    append_tree(mirror_root(f->mirror), out, times);
    mirror_unlock(f->mirror);
    return g_string_free(out, FALSE);
}

char *fixture_dir(void)
{
    char *dir = g_dir_make_tmp("kafkafs-XXXXXX", NULL);
    assert_non_null(dir);
    return dir;
}

void fixture_remove(char *dir)
{
    GDir *d = g_dir_open(dir, 0, NULL);
    const char *name;
    while (d && (name = g_dir_read_name(d))) {
        char *path = g_build_filename(dir, name, NULL);
        if (g_file_test(path, G_FILE_TEST_IS_DIR) && !g_file_test(path, G_FILE_TEST_IS_SYMLINK))
            fixture_remove(g_strdup(path));
        g_remove(path);
        g_free(path);
    }
    if (d)
        g_dir_close(d);
    g_rmdir(dir);
    g_free(dir);
}
