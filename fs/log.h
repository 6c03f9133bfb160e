#pragma once
/* The daemon's own log: stderr with -f, syslog otherwise. Only main, mount and thread code logs; the core returns. */
enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* `to_syslog`: after daemonizing. `level`: the most verbose level that is written. */
void log_init(int to_syslog, enum log_level level);
/* One line; control characters are escaped. Any thread. */
void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)
