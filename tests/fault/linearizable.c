/*
 * Is a history of one file linearizable? For each operation there must be a moment between its call and its return at
 * which it happened, such that one file that does one thing after the other gives the same answers.
 *
 * Reads histories from stdin, an operation a line, a blank line between two histories:
 *
 *   START END KIND VALUE RESULT
 *
 * START and END are times (END -1: it never returned, so it may happen at any time after START, or never). KIND is
 * create (exclusively, empty), write, read or unlink; VALUE a number: what was written, or read (0: empty; -: none).
 * RESULT is ok, exists or absent. Prints the number of each history that is not linearizable; exit 1 if there is one.
 *
 * The search is Wing and Gong's, with Lowe's memory of the configurations that have been tried.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OPS 64
#define ABSENT (-1)

enum kind { CREATE, WRITE, READ, UNLINK };
enum result { OK, EXISTS, MISSING };

struct op {
    int64_t start, end; /* end INT64_MAX: never returned */
    enum kind kind;
    int64_t value;
    enum result result;
};

struct history {
    struct op ops[MAX_OPS];
    size_t n;
    uint64_t returned; /* the operations that have to be explained */
};

/* ---- configurations that lead nowhere: which operations have happened, and what the file holds ---- */
struct tried {
    uint64_t done;
    int64_t value;
};
static struct tried *table;
static size_t table_size, table_used;

static size_t slot(uint64_t done, int64_t value)
{
    uint64_t h = (done * 0x9e3779b97f4a7c15u) ^ ((uint64_t)value * 0xc2b2ae3d27d4eb4fu);
    size_t i = (size_t)(h ^ h >> 29) & (table_size - 1);

    while (table[i].done != UINT64_MAX && (table[i].done != done || table[i].value != value))
        i = (i + 1) & (table_size - 1);
    return i;
}

static void table_reset(size_t size)
{
    free(table);
    table = malloc(size * sizeof(*table));
    if (!table)
        abort();
    memset(table, 0xff, size * sizeof(*table));
    table_size = size;
    table_used = 0;
}

static bool already_tried(uint64_t done, int64_t value)
{
    struct tried *old = table;
    size_t old_size = table_size, i = slot(done, value);

    if (table[i].done == done)
        return true;
    table[i] = (struct tried){done, value};
    if (++table_used * 2 < table_size)
        return false;
    table = NULL;
    table_reset(old_size * 2);
    for (i = 0; i < old_size; i++)
        if (old[i].done != UINT64_MAX) {
            table[slot(old[i].done, old[i].value)] = old[i];
            table_used++;
        }
    free(old);
    return false;
}

/* What the file holds after `op`, given what it held; false if its result could not be. An operation that never
 * returned has no result to contradict. */
static bool step(const struct op *op, int64_t value, int64_t *ret)
{
    bool open_end = op->end == INT64_MAX, exists = value != ABSENT;

    *ret = value;
    switch (op->kind) {
    case CREATE:
        if (!exists)
            *ret = 0;
        return open_end || op->result == (exists ? EXISTS : OK);
    case WRITE:
        if (exists)
            *ret = op->value;
        return open_end || op->result == (exists ? OK : MISSING);
    case READ:
        return open_end || (exists ? op->result == OK && op->value == value : op->result == MISSING);
    case UNLINK:
        *ret = ABSENT;
        return open_end || op->result == (exists ? OK : MISSING);
    }
    return false;
}

static bool search(const struct history *h, uint64_t done, int64_t value)
{
    int64_t first_end = INT64_MAX, next;

    if ((done & h->returned) == h->returned)
        return true;
    if (already_tried(done, value))
        return false;
    for (size_t i = 0; i < h->n; i++)
        if (!(done >> i & 1) && h->ops[i].end < first_end)
            first_end = h->ops[i].end;
    /* only what was called before anything returned can come next */
    for (size_t i = 0; i < h->n; i++)
        if (!(done >> i & 1) && h->ops[i].start <= first_end && step(&h->ops[i], value, &next) &&
                search(h, done | (uint64_t)1 << i, next))
            return true;
    return false;
}

static bool parse(const char *line, struct op *op)
{
    char kind[16], value[32], result[16];
    static const char *const kinds[] = {"create", "write", "read", "unlink"};
    static const char *const results[] = {"ok", "exists", "absent"};

    if (sscanf(line, "%" SCNd64 " %" SCNd64 " %15s %31s %15s", &op->start, &op->end, kind, value, result) != 5)
        return false;
    if (op->end == -1)
        op->end = INT64_MAX;
    op->value = strtoll(value, NULL, 10);
    for (int i = 0; i < 4; i++)
        if (strcmp(kind, kinds[i]) == 0) {
            op->kind = (enum kind)i;
            for (int r = 0; r < 3; r++)
                if (strcmp(result, results[r]) == 0) {
                    op->result = (enum result)r;
                    return true;
                }
        }
    return false;
}

int main(void)
{
    static struct history h;
    char line[256];
    int number = 0, bad = 0;
    bool more = true;

    while (more) {
        more = fgets(line, sizeof(line), stdin) != NULL;
        if (more && line[0] != '\n') {
            if (h.n == MAX_OPS || !parse(line, &h.ops[h.n])) {
                fprintf(stderr, "linearizable: bad line or more than %d operations: %s", MAX_OPS, line);
                return 2;
            }
            if (h.ops[h.n].end != INT64_MAX)
                h.returned |= (uint64_t)1 << h.n;
            h.n++;
        } else if (h.n) {
            number++;
            table_reset(1 << 12);
            if (!search(&h, 0, ABSENT)) {
                printf("%d\n", number);
                bad++;
            }
            memset(&h, 0, sizeof(h));
        }
    }
    free(table);
    return bad != 0;
}
