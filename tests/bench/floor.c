/*
 * A filesystem that does nothing: the least that any FUSE filesystem costs, with the cache settings that kafkafs uses.
 *
 *   floor MOUNTPOINT N      f/f0000000 ... and d/d0000000 ..., N of each; every file holds the same 32 bytes
 *
 * Stays in the foreground; ends when it is unmounted.
 */
#include <errno.h>
#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* node numbers: the root, its two directories, then the files, then the directories below `dirs` */
enum { ROOT = FUSE_ROOT_ID, FILES, DIRS, FIRST };
#define LONG 3600.0
#define SIZE 32

static fuse_ino_t count;
static char content[SIZE];

static bool is_dir(fuse_ino_t ino)
{
    return ino < FIRST || ino >= FIRST + count;
}

static struct stat attributes(fuse_ino_t ino)
{
    struct stat st = {.st_ino = ino, .st_uid = getuid(), .st_gid = getgid(), .st_nlink = 1};

    st.st_mode = is_dir(ino) ? S_IFDIR | 0755 : S_IFREG | 0644;
    st.st_size = is_dir(ino) ? 0 : SIZE;
    return st;
}

static struct fuse_entry_param entry(fuse_ino_t ino)
{
    return (struct fuse_entry_param){.ino = ino, .attr = attributes(ino), .attr_timeout = LONG, .entry_timeout = LONG};
}

/* The child of `parent` with this name, or 0. */
static fuse_ino_t child(fuse_ino_t parent, const char *name)
{
    char *end;
    unsigned long n;

    if (parent == ROOT)
        return strcmp(name, "f") == 0 ? FILES : strcmp(name, "d") == 0 ? DIRS : 0;
    if ((parent != FILES || name[0] != 'f') && (parent != DIRS || name[0] != 'd'))
        return 0;
    n = strtoul(name + 1, &end, 10);
    if (*end || end == name + 1 || n >= count)
        return 0;
    return FIRST + n + (parent == DIRS ? count : 0);
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    fuse_ino_t ino = child(parent, name);
    struct fuse_entry_param e = ino ? entry(ino) : (struct fuse_entry_param){.entry_timeout = LONG};

    fuse_reply_entry(req, &e);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct stat st = attributes(ino);

    fuse_reply_attr(req, &st, LONG);
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    fi->direct_io = 1;
    fuse_reply_open(req, fi);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
    size_t left = off < SIZE ? SIZE - (size_t)off : 0;

    fuse_reply_buf(req, content + (off < SIZE ? off : 0), size < left ? size : left);
}

/* Not needed: the kernel opens directories by itself. */
static void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    fuse_reply_err(req, ENOSYS);
}

/* The name of the i-th entry, after `.` and `..`. */
static void name_of(fuse_ino_t dir, fuse_ino_t i, char *ret, size_t size)
{
    if (i < 2)
        snprintf(ret, size, "%s", i ? ".." : ".");
    else if (dir == ROOT)
        snprintf(ret, size, "%c", i == 2 ? 'f' : 'd');
    else
        snprintf(ret, size, "%c%07lu", dir == FILES ? 'f' : 'd', (unsigned long)(i - 2));
}

static void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
    fuse_ino_t n = 2 + (ino == ROOT ? 2 : ino < FIRST ? count : 0);
    char *buf = malloc(size);
    size_t used = 0;

    for (fuse_ino_t i = (fuse_ino_t)off; i < n; i++) {
        char name[32];
        struct fuse_entry_param e = {.attr.st_ino = ino, .attr.st_mode = S_IFDIR};
        size_t len;

        name_of(ino, i, name, sizeof name);
        if (i >= 2)
            e = entry(child(ino, name));
        len = fuse_add_direntry_plus(req, buf + used, size - used, name, &e, (off_t)i + 1);
        if (len > size - used)
            break;
        used += len;
    }
    fuse_reply_buf(req, buf, used);
    free(buf);
}

static void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
    fuse_reply_err(req, EOPNOTSUPP);
}

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
    conn->want &= ~(unsigned)FUSE_CAP_READDIRPLUS_AUTO;
}

static const struct fuse_lowlevel_ops ops = {
        .init = op_init,
        .lookup = op_lookup,
        .getattr = op_getattr,
        .open = op_open,
        .read = op_read,
        .opendir = op_opendir,
        .readdirplus = op_readdirplus,
        .getxattr = op_getxattr,
};

int main(int argc, char **argv)
{
    struct fuse_args args = FUSE_ARGS_INIT(1, argv);
    struct fuse_session *session;
    int status;

    if (argc != 3) {
        fprintf(stderr, "usage: floor MOUNTPOINT N\n");
        return 2;
    }
    count = strtoul(argv[2], NULL, 10);
    memset(content, 'x', SIZE - 1);
    content[SIZE - 1] = '\n';
    session = fuse_session_new(&args, &ops, sizeof(ops), NULL);
    if (!session || fuse_set_signal_handlers(session) != 0 || fuse_session_mount(session, argv[1]) != 0)
        return 1;
    status = fuse_session_loop(session);
    fuse_session_unmount(session);
    fuse_remove_signal_handlers(session);
    fuse_session_destroy(session);
    return status < 0;
}
