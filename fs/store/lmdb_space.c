#include "fs/store/lmdb_space.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "fs/store/lmdb_dir.h"

#define MARGIN_PAGES 64 /* kept for removals */
#define FREE_DBI 0      /* LMDB's own list of free pages */

static int error_of(int rc)
{
    return rc == 0 ? 0 : rc > 0 ? -rc : -EIO;
}

/* How many pages a commit may take, at worst: a copy of every page that it touches, new ones for what it adds, and
 * LMDB's list of free pages anew. */
static int pages_needed(const struct lmdb_space *s, MDB_txn *txn, MDB_dbi dbi, const struct record_write *writes,
        size_t n, uint64_t *ret)
{
    MDB_stat tree, list;
    int rc = mdb_stat(txn, dbi, &tree);
    if (rc == 0)
        rc = mdb_stat(txn, FREE_DBI, &list);
    if (rc != 0)
        return error_of(rc);
    uint64_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        bytes += writes[i].node ? 8 + strlen(writes[i].name) + record_size(writes[i].node) + 16 : 0;
    uint64_t touched = MIN(n + 1, tree.ms_leaf_pages) + MIN((n + 1) * tree.ms_depth, tree.ms_branch_pages);
    uint64_t added = 3 * bytes / s->page_size + n / 8 + tree.ms_depth + 4;
    *ret = touched + added + list.ms_leaf_pages + list.ms_branch_pages + list.ms_overflow_pages + 8;
    return 0;
}

/* Pages that the commit may use again: those that were freed before the last transaction. */
static int free_pages(MDB_env *env, uint64_t last_txn_id, uint64_t *ret)
{
    MDB_txn *reader; /* LMDB hides the list from writers */
    MDB_cursor *cursor;
    MDB_val key, value;
    uint64_t n = 0, txn_id, count;
    int rc = mdb_txn_begin(env, NULL, MDB_RDONLY, &reader);
    if (rc != 0)
        return error_of(rc);
    rc = mdb_cursor_open(reader, FREE_DBI, &cursor);
    if (rc != 0) {
        mdb_txn_abort(reader);
        return error_of(rc);
    }
    while ((rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
        memcpy(&txn_id, key.mv_data, sizeof txn_id);
        memcpy(&count, value.mv_data, sizeof count);
        if (txn_id < last_txn_id)
            n += count;
    }
    mdb_cursor_close(cursor);
    mdb_txn_abort(reader);
    *ret = n;
    return rc == MDB_NOTFOUND ? 0 : error_of(rc);
}

int lmdb_space_ensure(
        struct lmdb_space *s, MDB_txn *txn, MDB_dbi dbi, const struct record_write *writes, size_t n, bool *ret_short)
{
    MDB_envinfo info;
    uint64_t need = 0, available = 0;
    bool removes = n == 0 || !writes[0].node;
    int err = error_of(mdb_env_info(s->env, &info));
    if (err == 0)
        err = pages_needed(s, txn, dbi, writes, n, &need);
    if (err < 0)
        return err;
    if (!removes)
        need += MARGIN_PAGES;
    uint64_t in_use = (info.me_last_pgno + 1) * s->page_size; /* more than was reserved if that was too little */
    s->reserved_end = MAX(s->reserved_end, in_use);
    err = lmdb_dir_reserve(s->fd, &s->reserved_end, in_use + need * s->page_size);
    *ret_short = err == -ENOSPC;
    if (err != -ENOSPC)
        return err;
    if (removes)
        return 0;
    err = free_pages(s->env, info.me_last_txnid, &available);
    return err < 0 ? err : available >= need ? 0 : -ENOSPC;
}

int lmdb_space_cover(struct lmdb_space *s)
{
    MDB_envinfo info;
    struct stat st;
    if (mdb_env_info(s->env, &info) != 0 || fstat(s->fd, &st) < 0)
        return -EIO;
    off_t end = (off_t)((info.me_last_pgno + 1) * s->page_size);
    return st.st_size >= end || ftruncate(s->fd, end) == 0 ? 0 : -errno;
}
