#include "fs/store/lmdb_format.h"

#include <errno.h>
#include <glib.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC 0xbeefc0deu
#define DATA_VERSION 1
#define HEADER 16 /* of a page */
#define NODE 8    /* header of a node */
#define MAX_DEPTH 32
#define NO_PAGE UINT64_MAX

enum { BRANCH = 1, LEAF = 2, OVERFLOW = 4 }; /* flags of a page */
enum { BIG_DATA = 1 };                       /* flag of a node: the value lies in overflow pages */
enum { INTEGER_KEY = 8, DB_FLAGS = 0x7e };

struct database {
    uint32_t pad; /* of the free list: the page size */
    uint16_t flags, depth;
    uint64_t branch_pages, leaf_pages, overflow_pages, entries, root;
};

struct header {
    uint32_t magic, version;
    uint64_t address, map_size;
    struct database free_list, main;
    uint64_t last_page, txn_id;
};

/* ---- headers ---- */

static bool read_header(int fd, off_t at, struct header *ret)
{
    return pread(fd, ret, sizeof *ret, at + HEADER) == (ssize_t)sizeof *ret && ret->magic == MAGIC &&
           ret->version == DATA_VERSION && (ret->main.flags & DB_FLAGS) == 0 &&
           (ret->free_list.flags & DB_FLAGS) == INTEGER_KEY;
}

/* Transaction N writes header N % 2, so the two are always neighbours. */
static const char *read_headers(int fd, uint64_t size, struct header *ret)
{
    struct header h[2];
    if (!read_header(fd, 0, &h[0]))
        return "the file has no valid header";
    uint32_t page = h[0].free_list.pad;
    if (page < 512 || page > 65536 || (page & (page - 1)) != 0)
        return "the file has an impossible page size";
    if (!read_header(fd, page, &h[1]) || h[1].free_list.pad != page)
        return "the file has no valid second header";
    if (h[0].txn_id % 2 != 0 || (h[0].txn_id + 1 != h[1].txn_id && h[1].txn_id + 1 != h[0].txn_id))
        return "the file has headers that do not fit together";
    *ret = h[h[1].txn_id > h[0].txn_id];
    return ret->last_page >= size / page ? "the file is shorter than its header says: it has been truncated" : NULL;
}

const char *lmdb_header_fault(int fd, uint64_t size)
{
    struct header newest;
    return read_headers(fd, size, &newest);
}

/* ---- pages ---- */

struct key {
    const uint8_t *bytes; /* NULL: no bound on this side */
    size_t len;
};

struct walk {
    const struct lmdb_scan *scan;
    const uint8_t *map;
    uint32_t page_size;
    uint64_t last_page, txn_id;
    uint8_t *seen; /* one bit a page */
    bool is_free_list;
    struct database found; /* counts */
    bool faulty;
};

static uint16_t load16(const uint8_t *p)
{
    uint16_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

static uint32_t load32(const uint8_t *p)
{
    uint32_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

static uint64_t load64(const uint8_t *p)
{
    uint64_t value;
    memcpy(&value, p, sizeof value);
    return value;
}

static int report(struct walk *w, struct key from, uint64_t page, const char *what)
{
    g_autofree char *text = g_strdup_printf("page %" G_GUINT64_FORMAT " %s", page, what);
    w->faulty = true;
    return w->scan->fault(w->scan->arg, from.bytes, from.len, text);
}

/* Claims pages for one use; false if there are no such pages, or they have another one. */
static bool claim(struct walk *w, uint64_t page, uint64_t n)
{
    if (page < 2 || page > w->last_page || n > w->last_page - page + 1)
        return false;
    for (uint64_t i = page; i < page + n; i++)
        if (w->seen[i / 8] & 1 << i % 8)
            return false;
    for (uint64_t i = page; i < page + n; i++)
        w->seen[i / 8] |= (uint8_t)(1 << i % 8);
    return true;
}

static int compare(const struct walk *w, struct key a, struct key b)
{
    if (w->is_free_list) {
        uint64_t x = load64(a.bytes), y = load64(b.bytes);
        return (x > y) - (x < y);
    }
    int order = memcmp(a.bytes, b.bytes, MIN(a.len, b.len));
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static size_t node_count(const uint8_t *page)
{
    return (size_t)(load16(page + 12) - HEADER) / 2;
}

static const uint8_t *node_at(const uint8_t *page, size_t i)
{
    return page + load16(page + HEADER + 2 * i);
}

static struct key node_key(const uint8_t *node)
{
    return (struct key){.bytes = node + NODE, .len = load16(node + 6)};
}

static uint32_t leaf_value_len(const uint8_t *node)
{
    return (uint32_t)load16(node) | (uint32_t)load16(node + 2) << 16;
}

static uint64_t branch_child(const uint8_t *node)
{
    return (uint64_t)load16(node) | (uint64_t)load16(node + 2) << 16 | (uint64_t)load16(node + 4) << 32;
}

static size_t node_size(const uint8_t *node, bool leaf)
{
    size_t value = !leaf ? 0 : load16(node + 4) & BIG_DATA ? 8 : leaf_value_len(node);
    return (NODE + node_key(node).len + value + 1) & ~(size_t)1;
}

/* The page as a container: its header, and that its nodes fill it exactly. */
static const char *page_fault(const struct walk *w, const uint8_t *page, uint64_t number, bool leaf)
{
    uint16_t lower = load16(page + 12), upper = load16(page + 14);
    if (load64(page) != number || load16(page + 10) != (leaf ? LEAF : BRANCH))
        return "is not the page that should be there";
    if (lower < HEADER || lower % 2 != 0 || lower > upper || upper > w->page_size)
        return "has impossible bounds";
    size_t n = node_count(page), used = 0;
    if (n < (leaf ? 1 : 2))
        return "has too few records";
    for (size_t i = 0; i < n; i++) {
        size_t at = load16(page + HEADER + 2 * i);
        if (at < upper || at + NODE > w->page_size)
            return "has a record outside of it";
        const uint8_t *node = page + at;
        size_t size = node_size(node, leaf);
        if (size > w->page_size - at)
            return "has a record that is too long";
        if (leaf && (load16(node + 4) & ~BIG_DATA) != 0)
            return "has a record of an unknown kind";
        used += size;
    }
    return used == w->page_size - upper ? NULL : "has records that overlap";
}

/* Keys: in order, and within what the pages above say. The first of a branch has no meaning. */
static const char *order_fault(const struct walk *w, const uint8_t *page, bool leaf, struct key low, struct key high)
{
    size_t n = node_count(page);
    struct key previous = low;
    bool may_equal = true; /* the bound itself belongs to this page */
    for (size_t i = leaf ? 0 : 1; i < n; i++) {
        struct key key = node_key(node_at(page, i));
        if (key.len == 0 || (w->is_free_list && key.len != 8))
            return "has a key of an impossible length";
        int order = previous.bytes ? compare(w, previous, key) : -1;
        if (order > 0 || (order == 0 && !may_equal) || (high.bytes && compare(w, key, high) >= 0))
            return "has keys that are out of order";
        previous = key;
        may_equal = false;
    }
    return NULL;
}

/* A value, wherever it is; NULL with a text if there is none. */
static const uint8_t *find_value(struct walk *w, const uint8_t *node, const char **ret_fault)
{
    const uint8_t *inside = node + NODE + node_key(node).len;
    if (!(load16(node + 4) & BIG_DATA))
        return inside;
    uint64_t number = load64(inside);
    *ret_fault = "refers to an impossible overflow page";
    if (number < 2 || number > w->last_page)
        return NULL;
    const uint8_t *page = w->map + number * w->page_size;
    uint64_t n = load32(page + 12), needed = (HEADER - 1 + (uint64_t)leaf_value_len(node)) / w->page_size + 1;
    if (load64(page) != number || load16(page + 10) != OVERFLOW || n < needed || !claim(w, number, n))
        return NULL;
    w->found.overflow_pages += n;
    *ret_fault = NULL;
    return page + HEADER;
}

/* One record of the free list: a count, and that many pages. */
static const char *free_pages_fault(struct walk *w, struct key key, const uint8_t *value, uint32_t len)
{
    if (load64(key.bytes) >= w->txn_id + 1 || len < 8 || load64(value) > len / 8 - 1)
        return "has an impossible list of free pages";
    for (uint64_t i = 1; i <= load64(value); i++)
        if (!claim(w, load64(value + 8 * i), 1))
            return "lists a page as free that is in use";
    return NULL;
}

static int walk_leaf(struct walk *w, const uint8_t *page, uint64_t number)
{
    int rc = 0;
    for (size_t i = 0; i < node_count(page) && rc == 0; i++) {
        const uint8_t *node = node_at(page, i);
        struct key key = node_key(node);
        const char *fault = NULL;
        const uint8_t *value = find_value(w, node, &fault);
        if (value && w->is_free_list)
            fault = free_pages_fault(w, key, value, leaf_value_len(node));
        if (fault)
            rc = report(w, key, number, fault);
        else if (!w->is_free_list && w->scan->record)
            rc = w->scan->record(w->scan->arg, key.bytes, key.len, value, leaf_value_len(node));
        w->found.entries++;
    }
    return rc;
}

/* `depth` levels from here down; keys from `low` (included) to `high` (not). */
static int walk_page(struct walk *w, uint64_t number, int depth, struct key low, struct key high)
{
    bool leaf = depth == 1;
    if (!claim(w, number, 1))
        return report(w, low, number, "does not exist or has two uses");
    const uint8_t *page = w->map + number * w->page_size;
    const char *fault = page_fault(w, page, number, leaf);
    if (!fault)
        fault = order_fault(w, page, leaf, low, high);
    if (fault)
        return report(w, low, number, fault);
    if (leaf) {
        w->found.leaf_pages++;
        return walk_leaf(w, page, number);
    }
    w->found.branch_pages++;
    int rc = 0;
    size_t n = node_count(page);
    for (size_t i = 0; i < n && rc == 0; i++) {
        struct key from = i == 0 ? low : node_key(node_at(page, i));
        struct key to = i + 1 < n ? node_key(node_at(page, i + 1)) : high;
        rc = walk_page(w, branch_child(node_at(page, i)), depth - 1, from, to);
    }
    return rc;
}

static int walk_database(struct walk *w, const struct database *db, bool is_free_list)
{
    static const struct key none = {0};
    const struct database *found = &w->found;
    w->is_free_list = is_free_list;
    w->found = (struct database){0};
    w->faulty = false;
    int rc = 0;
    if (db->root == NO_PAGE ? db->depth != 0 : db->depth < 1 || db->depth > MAX_DEPTH)
        rc = report(w, none, 0, "(the header) has an impossible depth");
    else if (db->root != NO_PAGE)
        rc = walk_page(w, db->root, db->depth, none, none);
    if (rc == 0 && !w->faulty &&
            (found->entries != db->entries || found->leaf_pages != db->leaf_pages ||
                    found->branch_pages != db->branch_pages || found->overflow_pages != db->overflow_pages))
        rc = report(w, none, 0, "(the header) counts wrong");
    return rc;
}

int lmdb_scan(int fd, const struct lmdb_scan *scan)
{
    struct header h;
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (read_headers(fd, (uint64_t)st.st_size, &h))
        return -EUCLEAN;
    size_t size = (size_t)st.st_size;
    void *map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return -errno;
    struct walk w = {
            .scan = scan,
            .map = map,
            .page_size = h.free_list.pad,
            .last_page = h.last_page,
            .txn_id = h.txn_id,
            .seen = g_malloc0(h.last_page / 8 + 1),
    };
    int rc = walk_database(&w, &h.main, false);
    if (rc == 0)
        rc = walk_database(&w, &h.free_list, true);
    g_free(w.seen);
    munmap(map, size);
    return rc;
}
