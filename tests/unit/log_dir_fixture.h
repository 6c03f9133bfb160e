#pragma once
/* One log dir, on a real directory. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <glib/gstdio.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "controller/broker/log_dir.h"
#include "controller/broker/log_names.h"

#pragma GCC diagnostic ignored "-Wunused-function" /* each test uses what it needs */

#define ID_A "AAAAAAAAAAAAAAAAAAAAAQ"
#define ID_B "BBBBBBBBBBBBBBBBBBBBBQ"

struct fixture {
    char *top;  /* holds the log dir and what must not be touched */
    char *path; /* the log dir */
    struct log_dir *d;
    GString *warnings;
};

static void warn(void *arg, const char *entry, const char *why)
{
    struct fixture *f = arg;

    g_string_append_printf(f->warnings, "%s: %s\n", entry, why);
}

static void run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void run(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    g_autofree char *command = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    if (system(command) != 0)
        fail_msg("%s", command);
}

static int set_up(void **state)
{
    struct fixture *f = g_new0(struct fixture, 1);
    char *why = NULL;

    f->top = g_dir_make_tmp("log_dir.XXXXXX", NULL);
    f->path = g_build_filename(f->top, "logs", NULL);
    f->warnings = g_string_new(NULL);
    if (log_dir_open(f->path, true, &f->d, &why) < 0)
        fail_msg("%s", why);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    log_dir_close(f->d);
    run("chmod -R u+rwx '%s'; rm -rf '%s'", f->top, f->top);
    g_free(f->top);
    g_free(f->path);
    g_string_free(f->warnings, TRUE);
    g_free(f);
    return 0;
}

static bool exists(const struct fixture *f, const char *name)
{
    g_autofree char *path = g_build_filename(f->path, name, NULL);
    struct stat st;

    return lstat(path, &st) == 0;
}

static char *content(const struct fixture *f, const char *name)
{
    g_autofree char *path = g_build_filename(f->path, name, NULL);
    char *text = NULL;

    if (!g_file_get_contents(path, &text, NULL, NULL))
        fail_msg("%s is not there", path);
    return text;
}

/* How many entries have this suffix, and the last of them. */
static int count(const struct fixture *f, const char *suffix, char **ret)
{
    g_autoptr(GDir) d = g_dir_open(f->path, 0, NULL);
    const char *name;
    int n = 0;

    while ((name = g_dir_read_name(d))) {
        if (!g_str_has_suffix(name, suffix))
            continue;
        n++;
        if (ret) {
            g_free(*ret);
            *ret = g_strdup(name);
        }
    }
    return n;
}

static int create(struct fixture *f, const char *topic, int32_t partition, const char *id)
{
    struct log_task t = {.topic = topic_ref_new(topic, id), .partition = partition};
    int r = log_create(f->d, &t);

    topic_ref_unref(t.topic);
    return r;
}

static int delete_task(struct fixture *f, const char *topic, int32_t partition, const char *id, int64_t delay,
        bool future, bool *fatal)
{
    struct log_task t = {.topic = topic_ref_new(topic, id), .partition = partition, .future = future};
    int r = log_delete(f->d, &t, 1000, delay, fatal);

    topic_ref_unref(t.topic);
    return r;
}

static int delete (struct fixture *f, const char *topic, int32_t partition, const char *id)
{
    bool fatal;
    int r = delete_task(f, topic, partition, id, 0, false, &fatal);

    assert_false(fatal);
    return r;
}

static bool can_mount(void)
{
    return geteuid() == 0;
}
