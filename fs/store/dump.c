/* `--dump`: the tree as text (store.h has the format). */
#include "fs/store/store.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>
#include "fs/store/lmdb_dir.h"
#include "fs/store/lmdb_walk.h"
#include "fs/tree/path.h"
#include "fs/tree/text.h"

struct record {
    uint64_t parent_id;
    char *name;
    struct node node;
};

struct dump {
    FILE *out;
    GArray *records; /* as walked: sorted by parent id, then name, so that siblings are neighbours */
    size_t damaged;  /* records, or pages with some */
};

/* A node whose children are being printed. */
struct level {
    char *path;
    uint64_t id;
    guint next; /* record */
};

static void clear_record(void *p)
{
    struct record *record = p;
    g_free(record->name);
    node_clear(&record->node);
}

static int keep_record(void *arg, const struct record_view *view)
{
    struct dump *d = arg;
    if (view->err < 0)
        d->damaged++;
    if (view->err < 0 || view->meta)
        return 0;
    struct record record = {.parent_id = view->parent_id, .name = g_strdup(view->name), .node = view->node};
    bytes_ref(record.node.data);
    g_array_append_val(d->records, record);
    return 0;
}

static guint first_child(const struct dump *d, uint64_t id)
{
    guint low = 0, high = d->records->len;
    while (low < high) {
        guint middle = low + (high - low) / 2;
        if (g_array_index(d->records, struct record, middle).parent_id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void append_escaped(GString *line, const char *text, size_t len, const char *also)
{
    const char *end = text + len;
    while (text < end) {
        const char *p = text;
        while (p < end && *p != '\\' && *p != '\n' && !strchr(also, *p))
            p++;
        text_append_printable(line, text, (size_t)(p - text));
        if (p < end && *p == '\\')
            g_string_append(line, "\\\\");
        else if (p < end && *p == '\n')
            g_string_append(line, "\\n");
        else if (p < end)
            g_string_append_printf(line, "\\x%02x", (unsigned char)*p);
        text = p + (p < end);
    }
}

static void print_node(struct dump *d, const char *path, const struct node *node)
{
    const struct zstat *s = &node->stat;
    g_autoptr(GString) line = g_string_new(NULL);
    append_escaped(line, path, strlen(path), " ");
    g_string_append_printf(line,
            " czxid=%" PRId64 " mzxid=%" PRId64 " pzxid=%" PRId64 " ctime=%" PRId64 " mtime=%" PRId64
            " version=%" PRId32 " cversion=%" PRId32,
            s->czxid, s->mzxid, s->pzxid, s->ctime, s->mtime, s->version, s->cversion);
    if (s->ephemeral_owner)
        g_string_append_printf(line, " ephemeralOwner=%" PRId64, s->ephemeral_owner);
    if (node->data) {
        g_string_append(line, " data=");
        append_escaped(line, node->data->data, node->data->len, "");
    }
    g_string_append_c(line, '\n');
    fwrite(line->str, 1, line->len, d->out);
}

static void clear_level(void *p)
{
    g_free(((struct level *)p)->path);
}

static void push_level(struct dump *d, GArray *levels, char *path, const struct node *node)
{
    print_node(d, path, node);
    struct level level = {.path = path, .id = node->id, .next = first_child(d, node->id)};
    g_array_append_val(levels, level);
}

/* Depth first, without recursion, as the depth is the user's choice. Returns the number of records printed. */
static size_t print_tree(struct dump *d)
{
    g_autoptr(GArray) levels = g_array_new(FALSE, FALSE, sizeof(struct level));
    g_array_set_clear_func(levels, clear_level);
    size_t printed = 0;
    const struct record *root = &g_array_index(d->records, struct record, 0);
    if (d->records->len > 0 && root->parent_id == 0) {
        push_level(d, levels, g_strdup("/"), &root->node);
        printed++;
    }
    while (levels->len > 0) {
        struct level *top = &g_array_index(levels, struct level, levels->len - 1);
        const struct record *record = &g_array_index(d->records, struct record, top->next);
        if (top->next >= d->records->len || record->parent_id != top->id) {
            g_array_set_size(levels, levels->len - 1);
            continue;
        }
        top->next++;
        printed++;
        push_level(d, levels, path_join(top->path, record->name), &record->node);
    }
    return printed;
}

int store_dump(const char *dir, FILE *out, char **ret_why)
{
    struct lmdb_dir lock;
    int err = lmdb_dir_open(dir, false, true, &lock, ret_why);
    if (err < 0)
        return err;
    int fd = lmdb_dir_open_file(&lock, dir, ret_why);
    if (fd < 0) {
        lmdb_dir_close(&lock);
        return fd;
    }
    struct dump d = {.out = out, .records = g_array_new(FALSE, FALSE, sizeof(struct record))};
    g_array_set_clear_func(d.records, clear_record);
    err = lmdb_walk(fd, keep_record, &d);
    size_t orphans = d.records->len - print_tree(&d);
    if (err < 0) {
        *ret_why = g_strdup_printf("%s: %s", dir, g_strerror(-err));
    } else if (fflush(out) != 0 || ferror(out)) {
        err = -EIO;
        *ret_why = g_strdup("the text cannot be written");
    } else if (d.damaged > 0 || orphans > 0) {
        err = -EUCLEAN;
        *ret_why = g_strdup_printf(
                "%s: damaged: left out %zu damaged places, and %zu records below them", dir, d.damaged, orphans);
    }
    g_array_unref(d.records);
    close(fd);
    lmdb_dir_close(&lock);
    return err;
}
