/* The same random transactions against memory, LMDB and a naive model: same results, same feed, same tree; also after
 * the file was closed and opened again, with sessions alive and without, and after it went through its text. And the
 * model makes mistakes on purpose, each of which must show.
 *
 * OPERATIONS (100,000) in all, SEED. */
#include "store_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "fs/tree/path.h"

/* ---- the model: an array of nodes, copied whole before every transaction ---- */

struct model_node {
    char path[160];
    bool null;
    char data[24];
    int64_t czxid, mzxid, pzxid, ctime, mtime;
    int owner; /* index of a session, -1 for none */
    int32_t version;
    int32_t created, deleted; /* children, ever */
};

#define MAX_NODES 400
struct model {
    struct model_node nodes[MAX_NODES];
    int n;
    int64_t zxid;
};

/* What the model gets wrong, for the control. */
enum mistake {
    NONE,
    DELETION_NOT_COUNTED,   /* cversion stays */
    SEQUENCE_OF_CHILDREN,   /* numbered by the children there are: a number comes twice */
    NULL_IS_EMPTY,          /* null data becomes empty */
    VERSION_IGNORED,        /* set, delete and check with any version */
    HALF_DONE,              /* what a failed transaction did before it failed stays */
    EPHEMERAL_HAS_CHILDREN, /* may have some */
    DEAD_SESSION_CREATES,   /* an ephemeral node of a session that has ended */
    EPHEMERALS_STAY,        /* when their session ends */
    N_MISTAKES,
};
static enum mistake mistake;

#define MAX_SESSIONS 4096
static bool session_alive[MAX_SESSIONS];

static struct model_node *model_find(struct model *m, const char *path)
{
    for (int i = 0; i < m->n; i++)
        if (strcmp(m->nodes[i].path, path) == 0)
            return &m->nodes[i];
    return NULL;
}

static int model_children(struct model *m, const char *path)
{
    int n = 0;
    for (int i = 0; i < m->n; i++)
        n += path_child_of(m->nodes[i].path, path) != NULL;
    return n;
}

static int32_t model_cversion(const struct model_node *n)
{
    return n->created + n->deleted;
}

struct model_op {
    enum op_type type;
    char path[160];
    bool null;
    char data[24];
    int32_t version;
    unsigned flags;
    int owner; /* session index, -1: the transaction's */
};

struct model_txn {
    struct model_op ops[8];
    int n;
    int session; /* -1: none */
};

static int model_create(
        struct model *m, const struct model_txn *t, const struct model_op *op, int64_t now, GString *feed)
{
    char *parent_path = path_parent(op->path);
    struct model_node *parent = model_find(m, parent_path);
    g_free(parent_path);
    int owner = op->owner >= 0 ? op->owner : t->session;
    if (op->flags & CREATE_EPHEMERAL && (owner < 0 || (!session_alive[owner] && mistake != DEAD_SESSION_CREATES)))
        return ZSESSIONEXPIRED;
    if (!parent)
        return ZNONODE;
    struct model_node node = {.null = op->null, .owner = op->flags & CREATE_EPHEMERAL ? owner : -1};
    snprintf(node.path, sizeof node.path, "%s", op->path);
    snprintf(node.data, sizeof node.data, "%s", op->data);
    if (op->flags & CREATE_SEQUENTIAL)
        snprintf(node.path, sizeof node.path, "%.140s%010d", op->path,
                mistake == SEQUENCE_OF_CHILDREN ? model_children(m, parent->path) : parent->created);
    if (model_find(m, node.path))
        return ZNODEEXISTS;
    if (parent->owner >= 0 && mistake != EPHEMERAL_HAS_CHILDREN)
        return ZNOCHILDRENFOREPHEMERALS;
    parent->created++;
    parent->pzxid = m->zxid + 1;
    node.czxid = node.mzxid = node.pzxid = m->zxid + 1;
    node.ctime = node.mtime = now;
    g_string_append_printf(feed, "created %s cv=%d\n", node.path, model_cversion(parent));
    m->nodes[m->n++] = node;
    return ZOK;
}

static int model_op(struct model *m, const struct model_txn *t, const struct model_op *op, int64_t now, GString *feed)
{
    if (op->type == OP_CREATE)
        return model_create(m, t, op, now, feed);
    struct model_node *n = model_find(m, op->path);
    if (!n)
        return ZNONODE;
    if (op->version != -1 && op->version != n->version && mistake != VERSION_IGNORED)
        return ZBADVERSION;
    if (op->type == OP_SET) {
        n->version++;
        n->null = op->null && mistake != NULL_IS_EMPTY;
        snprintf(n->data, sizeof n->data, "%s", op->data);
        n->mzxid = m->zxid + 1;
        n->mtime = now;
        g_string_append_printf(feed, "data %s\n", op->path);
    }
    if (op->type != OP_DELETE)
        return ZOK;
    if (model_children(m, op->path) > 0)
        return ZNOTEMPTY;
    char *parent_path = path_parent(op->path);
    struct model_node *parent = model_find(m, parent_path);
    g_free(parent_path);
    parent->deleted += mistake != DELETION_NOT_COUNTED;
    parent->pzxid = m->zxid + 1;
    g_string_append_printf(feed, "deleted %s cv=%d\n", op->path, model_cversion(parent));
    *n = m->nodes[--m->n];
    return ZOK;
}

/* Results as one line: the transaction's, then each operation's. */
static void model_run(struct model *m, const struct model_txn *t, int64_t now, GString *results, GString *feed)
{
    static struct model before;
    before = *m;
    gsize feed_before = feed->len;
    int rc = t->session >= 0 && !session_alive[t->session] ? ZSESSIONEXPIRED : ZOK;
    GString *ops = g_string_new(NULL);
    bool expired = rc != ZOK;
    for (int i = 0; i < t->n; i++) {
        int one = expired ? ZSESSIONEXPIRED : rc == ZOK ? model_op(m, t, &t->ops[i], now, feed) : ZRUNTIMEINCONSISTENCY;
        if (rc == ZOK)
            rc = one;
        g_string_append_printf(ops, " %s", zerr_name(one));
    }
    if (rc != ZOK && mistake == HALF_DONE) {
        m->zxid += feed->len > feed_before;
    } else if (rc != ZOK) {
        *m = before;
        g_string_truncate(feed, feed_before);
    } else if (feed->len > feed_before) {
        m->zxid++;
    }
    g_string_append_printf(results, "%s:%s\n", zerr_name(rc), ops->str);
    g_string_free(ops, TRUE);
}

static int compare_nodes(const void *a, const void *b)
{
    return strcmp(((const struct model_node *)a)->path, ((const struct model_node *)b)->path);
}

static char *model_tree(struct model *m)
{
    GString *out = g_string_new(NULL);
    qsort(m->nodes, (size_t)m->n, sizeof *m->nodes, compare_nodes);
    for (int i = 0; i < m->n; i++) {
        struct model_node *n = &m->nodes[i];
        g_string_append_printf(out, "%s %s %ld %ld %ld %ld %ld %d v=%d cv=%d n=%d\n", n->path, n->null ? "-" : n->data,
                n->czxid, n->mzxid, n->pzxid, n->ctime, n->mtime, n->owner + 1, n->version, model_cversion(n),
                model_children(m, n->path));
    }
    return g_string_free(out, FALSE);
}

/* ---- the same of a store's mirror ---- */

/* A session is shown as its number, the same in all stores. `sessions`: id in this store -> index + 1. */
static int64_t session_number(GHashTable *sessions, int64_t id)
{
    return id == 0 ? 0 : (int64_t)(intptr_t)g_hash_table_lookup(sessions, &id);
}

static void collect(struct znode *n, GHashTable *sessions, GPtrArray *lines)
{
    const struct zstat *s = znode_stat(n);
    char *path = znode_path(n);
    struct bytes *data = znode_data(n);
    g_ptr_array_add(lines,
            g_strdup_printf("%s %s %ld %ld %ld %ld %ld %ld v=%d cv=%d n=%u\n", path, data ? data->data : "-", s->czxid,
                    s->mzxid, s->pzxid, s->ctime, s->mtime, session_number(sessions, s->ephemeral_owner), s->version,
                    s->cversion, znode_num_children(n)));
    g_free(path);
    for (struct znode *c = znode_next_child(n, 0); c; c = znode_next_child(n, znode_ino(c))) {
        assert_ptr_equal(znode_parent(c), n);
        collect(c, sessions, lines);
    }
}

static int compare_lines(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    g_autofree char *p = g_strndup(x, strcspn(x, " ")), *q = g_strndup(y, strcspn(y, " "));
    return strcmp(p, q);
}

static char *store_tree(struct fixture *f, GHashTable *sessions)
{
    g_autoptr(GPtrArray) lines = g_ptr_array_new_with_free_func(g_free);
    mirror_rdlock(f->mirror);
    collect(mirror_root(f->mirror), sessions, lines);
    mirror_unlock(f->mirror);
    g_ptr_array_sort(lines, compare_lines);
    GString *out = g_string_new(NULL);
    for (guint i = 0; i < lines->len; i++)
        g_string_append(out, g_ptr_array_index(lines, i));
    return g_string_free(out, FALSE);
}

/* ---- a store under test ---- */

struct subject {
    const char *name;
    char *dir; /* LMDB */
    struct fixture f;
    int64_t sessions[MAX_SESSIONS];
    GHashTable *numbers; /* of the sessions, by id */
    GString *results;
};

static void subject_open(struct subject *s)
{
    if (s->dir)
        fixture_open_lmdb(&s->f, s->dir);
    else
        fixture_open(&s->f, NULL);
    s->results = g_string_new(NULL);
}

static void on_done(struct txn *txn, void *arg)
{
    struct subject *s = arg;
    g_string_append_printf(s->results, "%s:", zerr_name(txn->rc));
    for (size_t i = 0; i < txn->n_ops; i++)
        g_string_append_printf(s->results, " %s", zerr_name(txn->ops[i].rc));
    g_string_append_c(s->results, '\n');
    for (size_t i = 0; txn->rc == ZOK && i < txn->n_ops; i++)
        if (txn->ops[i].type == OP_SET)
            assert_int_equal(txn->ops[i].stat.mzxid, txn->zxid);
    txn_free(txn);
}

static void subject_submit(struct subject *s, const struct model_txn *t)
{
    struct txn *txn = txn_new(t->n % 2 ? TXN_CLIENT : TXN_INTERNAL);
    txn->session = t->session >= 0 ? s->sessions[t->session] : 0;
    for (int i = 0; i < t->n; i++) {
        const struct model_op *op = &t->ops[i];
        struct bytes *data = op->null ? NULL : bytes_from_string(op->data);
        if (op->type == OP_CREATE) {
            size_t at = txn_create(txn, op->path, data, op->flags);
            txn->ops[at].owner = op->owner >= 0 ? s->sessions[op->owner] : 0;
        } else if (op->type == OP_SET) {
            txn_set(txn, op->path, data, op->version);
        } else {
            bytes_unref(data);
            op->type == OP_DELETE ? txn_delete(txn, op->path, op->version) : txn_check(txn, op->path, op->version);
        }
    }
    txn->done = on_done;
    txn->arg = s;
    store_submit(s->f.store, txn);
}

/* "created /a cv=1" and so on, of the feed that the fixture keeps. */
static char *short_feed(struct subject *s)
{
    GString *out = g_string_new(NULL);
    g_auto(GStrv) lines = g_strsplit(s->f.feed->str, "\n", -1);
    for (char **l = lines; *l && **l; l++) {
        g_auto(GStrv) w = g_strsplit(*l, " ", -1);
        const char *cv = strcmp(w[1], "data") == 0 ? NULL : strrchr(*l, ' ');
        g_string_append_printf(out, "%s %s%s\n", w[1], w[2], cv ? cv : "");
    }
    g_string_truncate(s->f.feed, 0);
    return g_string_free(out, FALSE);
}

/* ---- chance ---- */

static GRand *chance;

static int below(int n)
{
    return g_rand_int_range(chance, 0, n);
}

static void random_path(char *out, size_t size)
{
    static const char *const names[] = {"a", "b", "c", "long-name"};
    int depth = 1 + below(3);
    *out = '\0';
    for (int i = 0; i < depth; i++) {
        size_t len = strlen(out);
        snprintf(out + len, size - len, "/%s", names[below(4)]);
    }
}

static void random_txn(struct model *m, struct model_txn *t, int n_sessions)
{
    *t = (struct model_txn){.session = n_sessions > 0 && below(4) == 0 ? below(n_sessions) : -1};
    t->n = below(3) == 0 ? 1 + below(6) : 1;
    for (int i = 0; i < t->n; i++) {
        struct model_op *op = &t->ops[i];
        int kind = below(10);
        op->type = kind < 4 ? OP_CREATE : kind < 6 ? OP_SET : kind < 9 ? OP_DELETE : OP_CHECK;
        random_path(op->path, sizeof op->path);
        struct model_node *some = &m->nodes[below(m->n)];
        if (op->type != OP_CREATE && below(3) > 0 && strcmp(some->path, "/") != 0)
            snprintf(op->path, sizeof op->path, "%s", some->path);
        op->null = below(4) == 0;
        if (!op->null && below(4) > 0)
            snprintf(op->data, sizeof op->data, "value-%d", below(100000));
        struct model_node *node = model_find(m, op->path);
        op->version = below(3) == 0 ? (node ? node->version : below(3)) : -1;
        op->flags = (below(4) == 0 ? CREATE_EPHEMERAL : 0) | (below(5) == 0 ? CREATE_SEQUENTIAL : 0);
        op->owner = n_sessions > 0 && below(2) == 0 ? below(n_sessions) : -1;
    }
}

/* ---- the test ---- */

static struct model model;
static struct subject subjects[2] = {{.name = "memory"}, {.name = "lmdb"}};
static int n_sessions;

static void open_session(void)
{
    for (int i = 0; i < 2; i++) {
        int64_t id = subjects[i].sessions[n_sessions] = store_session_open(subjects[i].f.store);
        g_hash_table_insert(subjects[i].numbers, g_memdup2(&id, sizeof id), (void *)(intptr_t)(n_sessions + 1));
    }
    session_alive[n_sessions++] = true;
}

/* Takes the nodes of a session (-1: of all) out of the model. */
static void remove_ephemerals(int session, GString *feed)
{
    struct model_txn t = {.session = -1};
    gsize before = feed->len;
    for (int k = 0; k < model.n;) {
        struct model_op op = {.type = OP_DELETE, .version = -1};
        qsort(model.nodes, (size_t)model.n, sizeof *model.nodes, compare_nodes);
        snprintf(op.path, sizeof op.path, "%s", model.nodes[k].path);
        if (model.nodes[k].owner < 0 || (session >= 0 && model.nodes[k].owner != session)) {
            k++;
            continue;
        }
        int rc = model_op(&model, &t, &op, 0, feed);
        assert_true(rc == ZOK || mistake == EPHEMERAL_HAS_CHILDREN); /* by that mistake it may have to stay */
        k = rc == ZOK ? 0 : k + 1;
    }
    model.zxid += feed->len > before;
}

static void close_session(int i, GString *feed)
{
    for (int k = 0; k < 2; k++)
        store_session_close(subjects[k].f.store, subjects[k].sessions[i], 0, NULL, NULL);
    if (session_alive[i] && mistake != EPHEMERALS_STAY)
        remove_ephemerals(i, feed);
    session_alive[i] = false;
}

/* What was found, NULL if there is no difference. */
static char *difference(unsigned seed, const char *name, const char *what, const char *got, const char *want)
{
    if (strcmp(got, want) == 0)
        return NULL;
    return g_strdup_printf("%s, seed %u: %s\n%s\nmodel\n%s", name, seed, what, got, want);
}

static char *compare_subject(struct subject *s, GString *results, GString *feed, const char *tree, unsigned seed)
{
    store_step(s->f.store);
    g_autofree char *got_feed = short_feed(s), *got_tree = store_tree(&s->f, s->numbers);
    char *found = difference(seed, s->name, "results", s->results->str, results->str);
    if (!found)
        found = difference(seed, s->name, "feed", got_feed, feed->str);
    if (!found)
        found = difference(seed, s->name, "tree", got_tree, tree);
    if (!found && (mirror_zxid(s->f.mirror) != model.zxid || mirror_count(s->f.mirror) != (size_t)model.n - 1))
        found = g_strdup_printf("%s, seed %u: zxid or count", s->name, seed);
    g_string_truncate(s->results, 0);
    return found;
}

static char *compare_batch(GString *results, GString *feed, unsigned seed)
{
    g_autofree char *tree = model_tree(&model);
    char *found = NULL;
    for (int i = 0; i < 2 && !found; i++)
        found = compare_subject(&subjects[i], results, feed, tree, seed);
    g_string_truncate(results, 0);
    g_string_truncate(feed, 0);
    return found;
}

/* As after a crash: the file is opened while it holds nodes of sessions that are no more; they go in one change. */
static void end_all_sessions(void)
{
    g_autoptr(GString) ignored = g_string_new(NULL);
    struct txn *txn = txn_new(TXN_INTERNAL);
    for (int i = 0; i < model.n; i++)
        if (model.nodes[i].owner >= 0)
            txn_delete(txn, model.nodes[i].path, -1);
    if (txn->n_ops > 0)
        assert_int_equal(fixture_run(&subjects[0].f, txn), ZOK);
    else
        txn_free(txn);
    remove_ephemerals(-1, ignored);
    for (int i = 0; i < n_sessions; i++)
        store_session_close(subjects[0].f.store, subjects[0].sessions[i], 0, NULL, NULL);
    store_step(subjects[0].f.store);
    /* nobody is left who could use an id that comes again */
    for (int i = 0; i < 2; i++)
        g_hash_table_remove_all(subjects[i].numbers);
    n_sessions = 0;
    g_string_truncate(subjects[0].f.feed, 0);
}

static void through_text(const char *from, const char *to)
{
    g_autofree char *why = NULL;
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (store_dump(from, out, &why) < 0)
        fail_msg("dump: %s", why);
    fclose(out);
    FILE *in = fmemopen(text, len, "r");
    if (store_load_text(to, in, &why) < 0)
        fail_msg("load: %s", why);
    fclose(in);
    free(text);
}

/* The file, or (`as_text`) a new one made from its text. */
static char *reopen_lmdb(unsigned seed, bool as_text)
{
    struct subject *s = &subjects[1];
    end_all_sessions();
    g_string_free(s->results, TRUE);
    fixture_close(&s->f);
    if (as_text) {
        char *old = s->dir;
        /* the text leaves out whom a crash has left */
        subject_open(s);
        g_string_free(s->results, TRUE);
        fixture_close(&s->f);
        s->dir = g_strconcat(old, ".loaded", NULL);
        through_text(old, s->dir);
        fixture_remove(old);
    }
    subject_open(s);
    g_autofree char *got = store_tree(&s->f, s->numbers), *want = model_tree(&model);
    return difference(seed, s->name, as_text ? "from text" : "reopened", got, want);
}

/* Up to ten transactions, then what they gave is compared. Returns the number of operations. */
static int run_batch(int batch, GString *results, GString *feed)
{
    int n_ops = 0;
    subjects[0].f.now = subjects[1].f.now = 1000 + batch;
    for (int k = below(10); k >= 0; k--) {
        if (below(20) == 0 && n_sessions < MAX_SESSIONS)
            open_session();
        if (n_sessions > 0 && below(15) == 0)
            close_session(below(n_sessions), feed);
        struct model_txn t;
        random_txn(&model, &t, MIN(n_sessions, MAX_SESSIONS));
        n_ops += t.n;
        for (int i = 0; i < 2; i++)
            subject_submit(&subjects[i], &t);
        model_run(&model, &t, 1000 + batch, results, feed);
    }
    return n_ops;
}

static void begin(unsigned seed)
{
    chance = g_rand_new_with_seed(seed);
    model = (struct model){.n = 1};
    model.nodes[0] = (struct model_node){.path = "/", .null = true, .owner = -1};
    n_sessions = 0;
    subjects[1].dir = fixture_dir();
    for (int i = 0; i < 2; i++) {
        subjects[i].numbers = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
        subject_open(&subjects[i]);
    }
}

static void end(void)
{
    for (int i = 0; i < 2; i++) {
        fixture_close(&subjects[i].f); /* may still have something to say */
        g_string_free(subjects[i].results, TRUE);
        g_hash_table_unref(subjects[i].numbers);
    }
    fixture_remove(subjects[1].dir);
    g_rand_free(chance);
}

/* Returns the first difference, NULL if there is none. */
static char *run_seed(unsigned seed, int n_ops)
{
    g_autoptr(GString) results = g_string_new(NULL), feed = g_string_new(NULL);
    char *found = NULL;
    begin(seed);
    for (int batch = 0; n_ops > 0 && !found; batch++) {
        n_ops -= run_batch(batch, results, feed);
        found = compare_batch(results, feed, seed);
        if (!found && batch % 200 == 199)
            found = reopen_lmdb(seed, batch % 400 == 399);
    }
    end();
    return found;
}

#define SEED_OPS 25000

static void test_same_answers(void **state)
{
    const char *given = getenv("SEED"), *wanted = getenv("OPERATIONS");
    unsigned seed = given ? (unsigned)strtoul(given, NULL, 10) : g_random_int();
    int operations = wanted ? atoi(wanted) : 100000;
    print_message("%d operations, seeds from %u\n", operations, seed);
    for (int done = 0; done < operations; done += SEED_OPS, seed++) {
        g_autofree char *found = run_seed(seed, MIN(SEED_OPS, operations - done));
        if (found)
            fprintf(stderr, "%s", found); /* too long for fail_msg() */
        assert_null(found);
    }
}

/* A model that is wrong about one thing is caught each time. */
static void test_mistakes_show(void **state)
{
    unsigned seed = g_random_int();
    for (mistake = NONE + 1; mistake < N_MISTAKES; mistake++) {
        g_autofree char *found = run_seed(seed, SEED_OPS);
        if (!found)
            fail_msg("mistake %d goes unseen, seed %u", mistake, seed);
    }
    mistake = NONE;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_answers), cmocka_unit_test(test_mistakes_show)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
