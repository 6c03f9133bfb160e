#pragma once
/* The daemon's own log: stderr with -f, syslog otherwise. Only main, mount and thread code logs; the core returns. */
enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING };

/* Before that: stderr. `to_syslog`: the process is going to the background. */
void log_init(int to_syslog);
/* One line; control characters are escaped. Any thread. */
void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
