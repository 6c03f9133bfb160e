/* `--load`: a new store from such text, all or nothing. */
#include "fs/store/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "fs/store/apply.h"
#include "fs/store/lmdb.h"
#include "fs/tree/path.h"

#define WRITES_PER_COMMIT 10000
#define ZXID_MAX (INT64_MAX / 2) /* so that there are many more */

struct loaded {
    uint64_t parent_id;
    char *path;
    struct node node;
};

struct load_text {
    GHashTable *by_path; /* -> struct loaded, owned by `all` */
    GPtrArray *all;      /* the root first, then in order of the lines */
    struct meta meta;
    const char *wrong; /* what a bad line is accused of */
};

static void free_loaded(void *p)
{
    struct loaded *l = p;
    g_free(l->path);
    node_clear(&l->node);
    g_free(l);
}

static bool fault(struct load_text *t, const char *wrong)
{
    t->wrong = wrong;
    return false;
}

/* ---- one line ---- */

/* Undoes the escapes in place; false if one is not ours. */
static bool unescape(char *text, size_t *len)
{
    char *out = text, *end = text + *len;
    for (char *p = text; p < end;) {
        if (*p != '\\') {
            *out++ = *p++;
        } else if (end - p >= 2 && (p[1] == '\\' || p[1] == 'n')) {
            *out++ = p[1] == 'n' ? '\n' : '\\';
            p += 2;
        } else if (end - p >= 4 && p[1] == 'x' && g_ascii_isxdigit(p[2]) && g_ascii_isxdigit(p[3])) {
            *out++ = (char)(g_ascii_xdigit_value(p[2]) << 4 | g_ascii_xdigit_value(p[3]));
            p += 4;
        } else {
            return false;
        }
    }
    *len = (size_t)(out - text);
    return true;
}

static bool parse_number(const char *text, int64_t min, int64_t max, int64_t *ret)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || g_ascii_isspace(*text) || value < min || value > max)
        return false;
    *ret = value;
    return true;
}

/* "czxid=1" */
static bool parse_field(struct load_text *t, char *field, struct zstat *stat)
{
    const struct {
        const char *name;
        int64_t min, max;
        int64_t *number;
        int32_t *counter;
    } fields[] = {
            {"czxid", 0, ZXID_MAX, &stat->czxid, NULL},
            {"mzxid", 0, ZXID_MAX, &stat->mzxid, NULL},
            {"pzxid", 0, ZXID_MAX, &stat->pzxid, NULL},
            {"ctime", INT64_MIN, INT64_MAX, &stat->ctime, NULL},
            {"mtime", INT64_MIN, INT64_MAX, &stat->mtime, NULL},
            {"ephemeralOwner", INT64_MIN, INT64_MAX, &stat->ephemeral_owner, NULL},
            {"version", INT32_MIN, INT32_MAX, NULL, &stat->version},
            {"cversion", INT32_MIN, INT32_MAX, NULL, &stat->cversion},
    };
    char *value = strchr(field, '=');
    if (!value)
        return fault(t, "a field without `=`");
    *value++ = '\0';
    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++) {
        if (strcmp(field, fields[i].name) != 0)
            continue;
        int64_t number;
        if (!parse_number(value, fields[i].min, fields[i].max, &number))
            return fault(t, "not a number");
        if (fields[i].counter)
            *fields[i].counter = (int32_t)number;
        else
            *fields[i].number = number;
        return true;
    }
    return fault(t, "an unknown field");
}

static bool parse_data(struct load_text *t, char *text, size_t len, struct node *node)
{
    if (!unescape(text, &len))
        return fault(t, "a backslash that begins no escape");
    if (len > ZNODE_MAX_DATA)
        return fault(t, "data over ZooKeeper's limit");
    node->data = bytes_new(text, len);
    return true;
}

static bool parse_path(struct load_text *t, char *text, char **ret_path)
{
    size_t len = strlen(text);
    if (!unescape(text, &len))
        return fault(t, "a backslash that begins no escape");
    text[len] = '\0';
    if (strlen(text) != len || !path_valid(text) || len > STORE_PATH_MAX || strlen(path_name(text)) > RECORD_NAME_MAX)
        return fault(t, "not a valid path");
    *ret_path = g_strdup(text);
    return true;
}

/* Fills in path and node; both are to be freed also after an error. */
static bool parse_line(struct load_text *t, char *line, size_t len, char **ret_path, struct node *node)
{
    if (strlen(line) != len)
        return fault(t, "a zero byte");
    char *rest = strchr(line, ' ');
    if (rest)
        *rest++ = '\0';
    if (!parse_path(t, line, ret_path))
        return false;
    while (rest && *rest) {
        if (g_str_has_prefix(rest, "data="))
            return parse_data(t, rest + 5, len - (size_t)(rest + 5 - line), node);
        char *field = rest;
        rest = strchr(rest, ' ');
        if (rest)
            *rest++ = '\0';
        if (!parse_field(t, field, &node->stat))
            return false;
    }
    return true;
}

/* ---- the tree ---- */

static void add_root(struct load_text *t)
{
    struct loaded *root = g_new0(struct loaded, 1);
    root->path = g_strdup("/");
    node_init_root(&root->node);
    g_ptr_array_add(t->all, root);
    g_hash_table_insert(t->by_path, root->path, root);
}

static bool add_node(struct load_text *t, const char *path, struct node *node)
{
    struct loaded *root = g_ptr_array_index(t->all, 0);
    if (strcmp(path, "/") == 0) {
        if (t->all->len > 1)
            return fault(t, "the root after other nodes");
        if (node->stat.ephemeral_owner)
            return fault(t, "the root cannot be ephemeral");
        node_clear(&root->node);
        node->id = ROOT_ID;
        root->node = *node;
        node->data = NULL;
        return true;
    }
    if (g_hash_table_contains(t->by_path, path))
        return fault(t, "a path that was there before");
    g_autofree char *parent_path = path_parent(path);
    struct loaded *parent = g_hash_table_lookup(t->by_path, parent_path);
    if (!parent)
        return fault(t, "its parent is not before it");
    if (node->stat.ephemeral_owner) { /* its session has ended: one child deleted */
        parent->node.stat.cversion = (int32_t)((uint32_t)parent->node.stat.cversion + 1);
        return true;
    }
    struct loaded *l = g_new0(struct loaded, 1);
    l->path = g_strdup(path);
    l->parent_id = parent->node.id;
    l->node = *node;
    l->node.id = t->meta.next_id++;
    node->data = NULL;
    parent->node.num_children++;
    g_ptr_array_add(t->all, l);
    g_hash_table_insert(t->by_path, l->path, l);
    return true;
}

static int read_lines(struct load_text *t, FILE *in, char **ret_why)
{
    char *line = NULL;
    size_t capacity = 0, number = 0;
    ssize_t len;
    bool good = true;
    while (good && (len = getline(&line, &capacity, in)) >= 0) {
        char *path = NULL;
        struct node node = {0};
        number++;
        if (line[len - 1] == '\n') {
            line[--len] = '\0';
            good = parse_line(t, line, (size_t)len, &path, &node) && add_node(t, path, &node);
        } else {
            good = fault(t, "it does not end with a newline: the text has been cut");
        }
        node_clear(&node);
        g_free(path);
    }
    free(line);
    if (!good) {
        *ret_why = g_strdup_printf("line %zu: %s", number, t->wrong);
        return -EINVAL;
    }
    if (ferror(in)) {
        *ret_why = g_strdup_printf("cannot read: %s", g_strerror(errno));
        return -EIO;
    }
    if (number == 0) { /* a dump has a line for the root at least: what wrote this has failed */
        *ret_why = g_strdup("there is no text");
        return -EINVAL;
    }
    return 0;
}

/* cversion counts children created and deleted, so it is what the present ones account for plus twice the deleted; text
 * that was edited by hand may have forgotten that. */
static void repair_counts(struct node *node)
{
    int64_t cversion = MAX((int64_t)node->stat.cversion, (int64_t)node->num_children);
    if ((cversion - node->num_children) % 2 != 0)
        cversion++;
    node->stat.cversion = (int32_t)cversion;
}

static int write_tree(struct load_text *t, struct backend *b)
{
    g_autoptr(GArray) writes = g_array_new(FALSE, FALSE, sizeof(struct record_write));
    int err = 0;
    for (guint i = 0; i < t->all->len && err == 0; i++) {
        struct loaded *l = g_ptr_array_index(t->all, i);
        const char *name = i == 0 ? ROOT_NAME : path_name(l->path);
        struct record_write write = {.parent_id = l->parent_id, .name = name, .node = &l->node};
        repair_counts(&l->node);
        t->meta.zxid = MAX(t->meta.zxid, MAX(l->node.stat.pzxid, MAX(l->node.stat.czxid, l->node.stat.mzxid)));
        g_array_append_val(writes, write);
        if (writes->len < WRITES_PER_COMMIT && i + 1 < t->all->len)
            continue;
        err = b->ops->commit(b, (const struct record_write *)(void *)writes->data, writes->len, &t->meta);
        g_array_set_size(writes, 0);
    }
    return err;
}

int store_load_text(const char *dir, FILE *in, char **ret_why)
{
    struct backend *b;
    int err = backend_build_lmdb(dir, &b, ret_why);
    if (err < 0)
        return err;
    struct load_text t = {.meta = META_OF_NEW_TREE};
    t.by_path = g_hash_table_new(g_str_hash, g_str_equal);
    t.all = g_ptr_array_new_with_free_func(free_loaded);
    add_root(&t);
    err = read_lines(&t, in, ret_why);
    if (err < 0) {
        b->ops->close(b);
    } else if ((err = write_tree(&t, b)) < 0) {
        *ret_why = g_strdup_printf("%s: %s", dir, g_strerror(-err));
        b->ops->close(b);
    } else {
        err = backend_finish_lmdb(b, ret_why);
    }
    g_hash_table_unref(t.by_path);
    g_ptr_array_unref(t.all);
    return err;
}
