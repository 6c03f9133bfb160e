#pragma once
/*
 * The directory of an embedded store: the file `data.mdb`, and `lock`, whose lock (flock) is held by whoever has the
 * store open, exclusively to write; its text is the holder's pid. The directory and the file belong to the user and to
 * nobody else (0700, 0600); links are not followed.
 */
#include <stdbool.h>
#include <stdint.h>

#define STORE_FILE "data.mdb"
#define STORE_FILE_NEW "data.mdb.new" /* being made; has no meaning */

struct lmdb_dir {
    int fd, lock_fd; /* lock_fd is -1 on a read-only filesystem without the file */
};

/* Opens and locks; makes it if absent and `create`. 0, or -errno with one clear line: -EBUSY (another process has it),
 * -ENOENT, -EACCES (mode, owner), ... */
int lmdb_dir_open(const char *dir, bool create, bool read_only, struct lmdb_dir *ret, char **ret_why);
void lmdb_dir_close(struct lmdb_dir *d);

/* Opens `data.mdb` to read, without mapping it, as a read beyond the end of a mapped file is a SIGBUS. Returns the
 * descriptor, or -errno: -ENOENT; -EACCES; -EUCLEAN if it is not LMDB's or shorter than its own header says. `dir` is
 * for messages. */
int lmdb_dir_open_file(const struct lmdb_dir *d, const char *dir, char **ret_why);
/* Proves that file sound, page by page: 0, or -EUCLEAN. */
int lmdb_dir_check_pages(int fd, const char *dir, char **ret_why);
/* `data.mdb.new` becomes `data.mdb`, durably. */
int lmdb_dir_publish(const struct lmdb_dir *d);

/* Makes sure that the file `fd` has blocks for all bytes from `*end` up to `need`, and is that long, so that a commit
 * cannot run out of space half-way. They are written with zeros, and whatever was there is lost: the first write to a
 * block that was merely allocated costs a commit of the filesystem's journal, which whoever waits for the next fsync
 * would pay for each page again. Advances `*end`. -ENOSPC, or another -errno. */
int lmdb_dir_reserve(int fd, uint64_t *end, uint64_t need);
