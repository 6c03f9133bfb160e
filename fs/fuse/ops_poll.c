/* poll(2): of use for the journals, where it waits for the next line; all else is always ready. */
#include <errno.h>
#include <poll.h>
#include "fs/fuse/notify.h"
#include "fs/fuse/virtual.h"

/* The journals become readable with each new line; everything else always is what it is. */
void op_poll(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi, struct fuse_pollhandle *ph)
{
    struct mount *m = mount_of(req);
    struct handle *h = handle_get(m->handles, fi->fh);
    unsigned events = POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM;
    if (h && h->inode->type == INODE_VIRTUAL && h->inode->virtual_file->kind == VIRTUAL_JOURNAL) {
        if (ph) /* first: a line that comes now wakes it, one that came before is seen below */
            notify_poll(m->notifier, h, g_steal_pointer(&ph));
        events = virtual_has_news(h) ? POLLIN | POLLRDNORM : 0;
    }
    if (ph)
        fuse_pollhandle_destroy(ph);
    if (h)
        fuse_reply_poll(req, events);
    else
        fuse_reply_err(req, EBADF);
    handle_unref(h);
}
