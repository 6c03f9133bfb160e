#include "fs/log.h"

#include <glib.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>
#include "fs/tree/text.h"

static atomic_int use_syslog;

static const struct {
    int priority;
    const char *name;
} levels[] = {
        [LOG_LEVEL_ERROR] = {LOG_ERR, "error"},
        [LOG_LEVEL_WARNING] = {LOG_WARNING, "warning"},
};

void log_init(int to_syslog)
{
    if (to_syslog)
        openlog("kafkafs", LOG_PID, LOG_DAEMON);
    atomic_store(&use_syslog, to_syslog);
}

/* One write(2), so that lines of several threads do not mix. */
static void write_stderr(const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = write(STDERR_FILENO, text, len);
        if (n <= 0)
            return; /* nobody is there to be told */
        text += n;
        len -= (size_t)n;
    }
}

void log_line(enum log_level level, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    g_autofree char *text = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    g_autoptr(GString) line = g_string_new(NULL);
    text_append_printable(line, text, strlen(text));
    if (atomic_load(&use_syslog)) {
        syslog(levels[level].priority, "%s", line->str);
        return;
    }
    g_string_prepend(line, ": ");
    g_string_prepend(line, levels[level].name);
    g_string_prepend(line, "kafkafs: ");
    g_string_append_c(line, '\n');
    write_stderr(line->str, line->len);
}
