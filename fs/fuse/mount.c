#include "fs/fuse/mount.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#include "fs/fuse/edit.h"
#include "fs/fuse/notify.h"
#include "fs/fuse/parking.h"
#include "fs/fuse/stale.h"
#include "fs/log.h"

/* Interrupts the read of the FUSE device. */
#define WAKE_SIGNAL SIGUSR1
#define WAKE_AGAIN_MS 20

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
    struct mount *m = userdata;
    /* Entries always come with their attributes, so that `ls -l` asks once (a listing without them, once cached, would
     * cost a lookup for each name). */
    conn->want |= conn->capable & FUSE_CAP_READDIRPLUS;
    /* A private file is known by the mode that was asked for, not by what a umask of 077 makes of any. */
    conn->want |= conn->capable & FUSE_CAP_DONT_MASK;
    conn->want &= ~(unsigned)(FUSE_CAP_READDIRPLUS_AUTO | FUSE_CAP_EXPORT_SUPPORT);
    conn->time_gran = 1;
    atomic_store(&m->serving, true);
}

static const struct fuse_lowlevel_ops operations = {
        .init = op_init,
        .lookup = op_lookup,
        .forget = op_forget,
        .forget_multi = op_forget_multi,
        .getattr = op_getattr,
        .setattr = op_setattr,
        .readlink = op_readlink,
        .mknod = op_mknod,
        .mkdir = op_mkdir,
        .unlink = op_unlink,
        .rmdir = op_rmdir,
        .symlink = op_symlink,
        .rename = op_rename,
        .link = op_link,
        .open = op_open,
        .create = op_create,
        .read = op_read,
        .write = op_write,
        .flush = op_flush,
        .release = op_release,
        .fsync = op_fsync,
        .opendir = op_opendir,
        .readdir = op_readdir,
        .readdirplus = op_readdirplus,
        .fsyncdir = op_fsyncdir,
        .statfs = op_statfs,
        .setxattr = op_setxattr,
        .getxattr = op_getxattr,
        .listxattr = op_listxattr,
        .removexattr = op_removexattr,
        .poll = op_poll,
};

/* ---- what libfuse says ---- */

/* The last line, as the reason why something failed; libfuse hands it to nobody else, and in pieces. Before there are
 * threads. */
static char *fuse_says;

static void log_fuse(enum fuse_log_level level, const char *fmt, va_list ap)
{
    if (level > FUSE_LOG_WARNING)
        return;
    g_autofree char *text = g_strchomp(g_strdup_vprintf(fmt, ap));
    log_warning("%s", text);
}

static void keep_fuse(enum fuse_log_level level, const char *fmt, va_list ap)
{
    g_autofree char *piece = g_strdup_vprintf(fmt, ap);
    bool new_line = !fuse_says || g_str_has_suffix(fuse_says, "\n");
    char *line = g_strconcat(new_line ? "" : fuse_says, piece, NULL);
    g_free(fuse_says);
    fuse_says = line;
}

static char *take_fuse_says(const char *otherwise)
{
    char *text = fuse_says ? g_strchomp(fuse_says) : g_strdup(otherwise);
    fuse_says = NULL;
    return text;
}

/* ---- making ---- */

static void mount_free(struct mount *m)
{
    notifier_free(m->notifier);
    handle_table_free(m->handles);
    inode_table_free(m->inodes);
    parking_free(m->parking);
    pthread_mutex_destroy(&m->lock);
    pthread_mutex_destroy(&m->feeding);
    pthread_cond_destroy(&m->changed);
    g_free((char *)m->config.source);
    g_free((char *)m->config.mountpoint);
    g_free(m);
}

int mount_new(const struct mount_config *config, const char *const *options, size_t n_options, struct mount **ret,
        char **ret_why)
{
    struct mount *m = g_new0(struct mount, 1);
    m->config = *config;
    m->config.source = g_strdup(config->source);
    m->config.mountpoint = g_strdup(config->mountpoint);
    m->config.fuse_options = NULL;
    m->policy = config->policy;
    m->mirror = config->mirror;
    m->settle = config->settle;
    m->events = config->events;
    m->errors = config->errors;
    m->raw = config->raw;
    m->uid = geteuid();
    m->gid = getegid();
    clock_gettime(CLOCK_REALTIME, &m->started);
    m->budget.max = MAX_ALL_STAGED;
    pthread_mutex_init(&m->lock, NULL);
    pthread_mutex_init(&m->feeding, NULL);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC); /* for mount_stop() */
    pthread_cond_init(&m->changed, &attr);
    pthread_condattr_destroy(&attr);
    m->inodes = inode_table_new(m->mirror, m->policy, m->raw);
    m->handles = handle_table_new(m->inodes);
    m->parking = parking_new();
    m->notifier = notifier_new(m);

    struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
    fuse_opt_add_arg(&args, "kafkafs");
    for (size_t i = 0; i < n_options; i++) {
        fuse_opt_add_arg(&args, "-o");
        fuse_opt_add_arg(&args, options[i]);
    }
    fuse_set_log_func(keep_fuse);
    m->session = fuse_session_new(&args, &operations, sizeof operations, m);
    fuse_opt_free_args(&args);
    if (!m->session) {
        *ret_why = take_fuse_says("FUSE cannot be set up");
        mount_free(m);
        return -EINVAL;
    }
    *ret = m;
    return 0;
}

/* In a list of options a comma and a backslash are escaped. */
static char *fsname_option(const char *source)
{
    g_autoptr(GString) text = g_string_new("fsname=");
    for (const char *p = source; *p; p++) {
        if (*p == ',' || *p == '\\')
            g_string_append_c(text, '\\');
        g_string_append_c(text, *p);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

int mount_open(const struct mount_config *config, struct mount **ret, char **ret_why)
{
    int rc = mountpoint_prepare(config->mountpoint, ret_why);
    if (rc < 0)
        return rc;
    g_autoptr(GPtrArray) options = g_ptr_array_new();
    g_autofree char *fsname = fsname_option(config->source);
    g_ptr_array_add(options, fsname);
    g_ptr_array_add(options, (char *)"subtype=kafkafs,default_permissions");
    for (guint i = 0; config->fuse_options && i < config->fuse_options->len; i++)
        g_ptr_array_add(options, g_ptr_array_index(config->fuse_options, i));
    if (config->read_only)
        g_ptr_array_add(options, (char *)"ro");
    /* Last, since mount(8) hands `dev,suid` down. */
    g_ptr_array_add(options, (char *)"nosuid,nodev,noexec");
    struct mount *m;
    rc = mount_new(config, (const char *const *)options->pdata, options->len, &m, ret_why);
    if (rc < 0)
        return rc;
    if (fuse_session_mount(m->session, config->mountpoint) != 0) {
        *ret_why = take_fuse_says("FUSE cannot mount");
        fuse_session_destroy(m->session);
        mount_free(m);
        return -EIO;
    }
    m->mounted = true;
    *ret = m;
    return 0;
}

/* ---- serving ---- */

static void on_wake(int signal)
{
}

static void allow_wake_signal(void)
{
    struct sigaction action = {.sa_handler = on_wake}; /* no SA_RESTART: the read ends with EINTR */
    sigset_t set;
    sigaction(WAKE_SIGNAL, &action, NULL);
    sigemptyset(&set);
    sigaddset(&set, WAKE_SIGNAL);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static void set_looping(struct mount *m, bool looping)
{
    pthread_mutex_lock(&m->lock);
    m->looping = looping;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

/* What is on its way is answered; then nothing of ours may touch the session any more. */
static void finish(struct mount *m)
{
    parking_close(m->parking);
    edits_drain(m);
    pthread_mutex_lock(&m->feeding);
    atomic_store(&m->serving, false);
    pthread_mutex_unlock(&m->feeding);
    /* If the end came with mount_stop(), this has been done while requests were still answered. Else the connection is
     * gone, and no notice waits any more. */
    notifier_stop(m->notifier);
    journal_observe(m->events, NULL, NULL);
    journal_observe(m->errors, NULL, NULL);
    if (m->mounted)
        fuse_session_unmount(m->session);
    m->mounted = false;
}

int mount_serve(struct mount *m)
{
    fuse_set_log_func(log_fuse);
    g_clear_pointer(&fuse_says, g_free);
    allow_wake_signal();
    m->loop = pthread_self();
    journal_observe(m->events, notify_journals, m->notifier);
    journal_observe(m->errors, notify_journals, m->notifier);
    int rc = notifier_start(m->notifier);
    if (rc == 0) {
        set_looping(m, true);
        rc = fuse_session_loop(m->session);
        set_looping(m, false);
    }
    finish(m);
    if (rc < 0)
        log_error("FUSE: %s", strerror(-rc));
    return rc < 0 ? rc : 0;
}

void mount_stop(struct mount *m)
{
    pthread_mutex_lock(&m->lock);
    bool looping = m->looping && !m->stopping;
    m->stopping = true;
    pthread_mutex_unlock(&m->lock);
    if (looping)
        notifier_stop(m->notifier);
    fuse_session_exit(m->session);
    pthread_mutex_lock(&m->lock);
    while (m->looping) {
        struct timespec again;
        pthread_kill(m->loop, WAKE_SIGNAL); /* it may come just before the read: then once more */
        clock_gettime(CLOCK_MONOTONIC, &again);
        again.tv_nsec += WAKE_AGAIN_MS * 1000000;
        again.tv_sec += again.tv_nsec / 1000000000;
        again.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&m->changed, &m->lock, &again);
    }
    pthread_mutex_unlock(&m->lock);
}

void mount_feed(struct mount *m, const struct commit *commit)
{
    pthread_mutex_lock(&m->feeding);
    if (atomic_load(&m->serving))
        notify_commit(m->notifier, commit);
    pthread_mutex_unlock(&m->feeding);
}

void mount_close(struct mount *m)
{
    if (!m)
        return;
    if (m->mounted)
        fuse_session_unmount(m->session);
    fuse_session_destroy(m->session);
    mount_free(m);
}
