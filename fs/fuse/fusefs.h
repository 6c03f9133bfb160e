#pragma once
/*
 * What the files of fs/fuse/ share: the mount, and the ways to answer. Nobody else includes this.
 *
 * Threads: every op_*() runs on the FUSE thread, one at a time, and never waits. Changes are answered by the store
 * thread (edit.h), questions about `.state` by whoever knows (question.c). Only the notify thread and, for attributes
 * of its own client's change, the store thread tell the kernel something unasked (notify.h).
 * Locks: mirror's read lock, then the inode table's or the notifier's; each is held for moments, and no reply is sent
 * under one.
 */
#include <fuse_lowlevel.h>
#include "fs/fuse/handle.h"
#include "fs/fuse/inode.h"
#include "fs/fuse/mount.h"
#include "fs/tree/mirror.h"

struct notifier;
struct parking;

/* The kernel keeps what it knows of a znode until it is told otherwise (notify.h). */
#define LONG_TIMEOUT 3600.0
/* A value as it may be written: a whole one, and a newline that is not stored. */
#define MAX_STAGED (ZNODE_MAX_DATA + 1)
/* A private temporary file; and all that is being written, together. In bytes. */
#define MAX_TEMP (16u << 20)
#define MAX_ALL_STAGED (256u << 20)

struct mount {
    struct mount_config config; /* its strings are the mount's own */
    const struct policy *policy;
    struct mirror *mirror;
    struct settle *settle;
    struct journal *events, *errors;
    bool raw;
    uid_t uid;
    gid_t gid;
    struct timespec started;
    struct fuse_session *session;
    bool mounted;
    atomic_bool serving; /* the kernel has said hello */
    struct inode_table *inodes;
    struct handle_table *handles;
    struct staging_budget budget;
    struct notifier *notifier;
    struct parking *parking;
    pthread_mutex_t feeding; /* held by mount_feed(); protects the end of `serving` */
    pthread_t loop;          /* in mount_serve() */
    pthread_mutex_t lock;    /* protects the members below */
    pthread_cond_t changed;
    bool stopping, looping;
    unsigned edits; /* on their way through the store */
};

static inline struct mount *mount_of(fuse_req_t req)
{
    return fuse_req_userdata(req);
}

/* ---- attr.c ---- */
/* What stat(2) shows of an inode; 0 or ESTALE. Takes the mirror's read lock. `*ret_timeout`: for how long the kernel
 * may keep it. */
int attr_get(struct mount *m, struct inode *i, struct stat *ret, double *ret_timeout);
/* The same for INODE_NODE and INODE_DATA under the read lock. */
void attr_of_node(const struct mount *m, const struct inode *i, const struct znode *n, struct stat *ret);
/* The znode's data as `cat` prints it (one final newline where the format says so). Never NULL; a new reference. Under
 * the read lock. */
struct bytes *shown_value(const struct inode *i, const struct znode *n);
/* Answers with an inode (lookup, mkdir, ...), whose last lookup goes with the answer. */
void reply_inode(fuse_req_t req, struct inode *i, double entry_timeout);
/* The same for create: opens a handle, which goes with the answer. */
void reply_created(fuse_req_t req, struct inode *i, double entry_timeout, struct handle *h);
/* Answers an open: `h` goes with the answer. */
void reply_opened(fuse_req_t req, struct handle *h);
/* "No such name", which the kernel may keep if `keep`. */
void reply_no_entry(fuse_req_t req, bool keep);
void reply_attr(fuse_req_t req, struct inode *i);
/* A slice of `value`. */
void reply_slice(fuse_req_t req, const void *data, size_t len, size_t size, off_t off);
/* Fails, with a line in `.state/errors`. */
void refuse(fuse_req_t req, int err, const char *path, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* ---- name resolution (place.c) ---- */
/* What a name in a directory means. */
enum place_type {
    PLACE_NODE,    /* the znode `path`, there (`inode`) or not */
    PLACE_DATA,    /* `.data` of the znode `path` */
    PLACE_TEMP,    /* the private file `inode` */
    PLACE_VIRTUAL, /* below `.state`: `path` */
};
struct place {
    enum place_type type;
    char *path;
    bool exists, directory;
    struct znode *node; /* a reference: the znode itself, or the one `.data` belongs to */
    struct inode *temp; /* a reference */
};
/* 0 or an errno: ESTALE (the directory is gone), ENAMETOOLONG, EINVAL (no znode can have the name; the reason is then
 * in
 * `*ret_why`, static), ENOTDIR. */
int place_find(struct mount *m, fuse_ino_t parent, const char *name, struct place *ret, const char **ret_why);
void place_clear(struct place *p);
/* Answers with the error of place_find(), and says it if there is something to say. */
void refuse_name(fuse_req_t req, int err, fuse_ino_t parent, const char *name, const char *why);

/* ---- operations ---- */
void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t n);
void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets);
void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void op_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);

void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent, const char *new_name,
        unsigned flags);
void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t device);
void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name);
void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name);

void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi);
void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void op_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t len, off_t off, struct fuse_file_info *fi);
void op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);
void op_poll(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct fuse_pollhandle *ph);

void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set, struct fuse_file_info *fi);
void op_readlink(fuse_req_t req, fuse_ino_t ino);
void op_statfs(fuse_req_t req, fuse_ino_t ino);
void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size);
void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size);
void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size, int flags);
void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name);

/* ---- mount.c, for tests: a mount without a kernel; `args` are libfuse's ---- */
int mount_new(const struct mount_config *config, const char *const *options, size_t n_options, struct mount **ret,
        char **ret_why);
