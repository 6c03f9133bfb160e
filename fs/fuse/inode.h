#pragma once
/*
 * Inodes: what the kernel knows by a number. Five kinds:
 *
 *   INODE_NODE     a znode: a directory, or a file with the znode's data. Number: znode_ino().
 *   INODE_DATA     the file `.data` in a znode's directory. Number: znode_ino() + 1.
 *   INODE_STAGED   a file that has been created but is no znode yet (or is one under another number: a sequential
 *                  node, a value that made a directory). Becomes the way to its znode's data once that is made.
 *   INODE_TEMP     a private temporary file.
 *   INODE_VIRTUAL  something below `.state`.
 *
 * The numbers of the first two come from the mirror, those of the others have the highest bit set; none is ever used
 * twice in a mount. A znode's number is dead once the znode is removed, or has become a directory and so has another
 * number: its inode stays for those who have it open, everybody else is told ESTALE and looks the name up again.
 *
 * An inode is in the table while the kernel counts lookups of it or has it open. The table's lock is a leaf; it
 * protects the table and the members marked so. The mirror's read lock may be held when it is taken.
 */
#include <stdatomic.h>
#include <sys/stat.h>
#include "fs/fuse/staging.h"
#include "fs/journal.h"
#include "fs/policy.h"

struct inode_table;

enum inode_type { INODE_NODE, INODE_DATA, INODE_STAGED, INODE_TEMP, INODE_VIRTUAL };

/* INODE_STAGED. `path` is the znode that was asked for. */
struct staged {
    char *path;
    bool data;      /* the `.data` of `path` */
    bool exclusive; /* O_EXCL: it must not exist when the value is whole */
    bool action;    /* to make it empty is an action, which waits for the close: a value may come, and is refused */
    bool directory; /* mkdir succeeded, and the znode is yet to come */
    size_t size;    /* of what is staged (table lock) */
};

/* INODE_TEMP, private until it is unlinked, or its directory removed. But for the first three members it is used on the
 * FUSE thread only. */
struct temp {
    uint64_t parent; /* inode of the directory; 0: unlinked, or renamed over a node (table lock) */
    bool taken;      /* the content is the value of a rename that is under way or has succeeded (table lock) */
    char *name;
    struct staging *content;
    mode_t mode;
    uid_t uid;
    gid_t gid;
    struct timespec atime, mtime, ctime;
};

struct listings;

enum virtual_kind { VIRTUAL_DIRECTORY, VIRTUAL_FILE, VIRTUAL_WRITABLE, VIRTUAL_LINK, VIRTUAL_SETTLED, VIRTUAL_JOURNAL };

/* INODE_VIRTUAL. A journal's inode is a view: its file begins with the oldest line kept when it was looked up, and only
 * grows from there, as `tail -f` wants it. A later lookup may give another inode with the same st_ino. */
struct virtual_file {
    char *path; /* "/.state" or below */
    enum virtual_kind kind;
    struct journal *journal;
    struct journal_extent view;
    size_t header_len; /* of its first line, `lost N` */
    uint64_t shown_ino;
    struct listings *listings; /* VIRTUAL_DIRECTORY, once listed (virtual.h); set by the FUSE thread */
};

struct inode {
    uint64_t ino;
    atomic_uint refs;
    enum inode_type type : 8;
    enum node_format format : 8; /* of the znode's data */
    bool sensitive;
    uint64_t nlookup;   /* table lock */
    uint32_t opens;     /* table lock */
    uint32_t unsettled; /* raw handles whose truncation has not been taken (table lock) */
    atomic_int creator; /* pid of who has it open since creating it: his `touch` is no second one */
    struct znode *node; /* a reference. NODE, DATA: always; STAGED: once made (table lock) */
    union {
        struct staged *staged;
        struct temp *temp;
        struct virtual_file *virtual_file;
    };
};

/* The root's inode is there from the beginning. `raw`: nothing has a format. */
struct inode_table *inode_table_new(struct mirror *mirror, const struct policy *policy, bool raw);
void inode_table_free(struct inode_table *t);

/* A new reference, or NULL for a number that is not in the table. */
struct inode *inode_get(struct inode_table *t, uint64_t ino);
struct inode *inode_ref(struct inode *i);
struct inode *inode_unref(struct inode *i);

/* The inode of a znode (INODE_NODE, INODE_DATA), entered if need be, with one lookup more. Under the mirror's read
 * lock. `path` may be NULL (then it is found). A new reference. */
struct inode *inode_lookup_node(struct inode_table *t, struct znode *n, enum inode_type type, const char *path);
/* New inodes of the other kinds, with one lookup; the last argument is taken over. A new reference. */
struct inode *inode_new_staged(struct inode_table *t, struct staged *staged);
struct inode *inode_new_temp(struct inode_table *t, struct temp *temp);
void temp_free(struct temp *temp); /* that has not become an inode */
/* For the same path, kind and view the inode that is there. */
struct inode *inode_lookup_virtual(struct inode_table *t, struct virtual_file *v);

/* One lookup more of an inode that is held. */
void inode_lookup_again(struct inode_table *t, struct inode *i);
/* Takes `n` lookups back. */
void inode_forget(struct inode_table *t, uint64_t ino, uint64_t n);
void inode_opened(struct inode_table *t, struct inode *i);
void inode_closed(struct inode_table *t, struct inode *i);
/* Does the kernel count lookups of this number? */
bool inode_known(struct inode_table *t, uint64_t ino);
/* A staged inode has become the way to `n` (a reference is taken). Under the mirror's read lock or with `n` held. */
void inode_made(struct inode_table *t, struct inode *i, struct znode *n);
/* The znode behind an inode of the first three kinds: a new reference, or NULL. */
struct znode *inode_node(struct inode_table *t, struct inode *i);
bool inode_is_open(struct inode_table *t, struct inode *i);
void inode_unsettled(struct inode_table *t, struct inode *i, int more);
bool inode_is_unsettled(struct inode_table *t, struct inode *i);
void inode_staged_size(struct inode_table *t, struct inode *i, size_t size);
size_t inode_get_staged_size(struct inode_table *t, struct inode *i);

/* Is this still the number of a znode that is there (INODE_NODE, INODE_DATA)? Under the mirror's read lock. */
bool inode_alive(const struct inode *i);

/* Private temporary files by name; the caller holds the inode. */
struct inode *inode_find_temp(struct inode_table *t, uint64_t parent, const char *name); /* a new reference */
void inode_unlink_temp(struct inode_table *t, struct inode *i);
/* All of a directory that has been removed. Any thread. */
void inode_unlink_temps(struct inode_table *t, uint64_t parent);
bool inode_temp_is_linked(struct inode_table *t, struct inode *i);
/* A rename takes the content as a node's value; it is given back if that fails. */
void inode_take_temp(struct inode_table *t, struct inode *i, bool taken);
/* May no more be written, since it would reach nobody? */
bool inode_temp_is_taken(struct inode_table *t, struct inode *i);
/* Has it become a node's value? Whoever has it open can read it; its name means the node. */
bool inode_temp_is_replaced(struct inode_table *t, struct inode *i);
