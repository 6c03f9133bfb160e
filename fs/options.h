#pragma once
/* The command line. Pure: it looks at nothing but its arguments. */
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

enum command { COMMAND_MOUNT, COMMAND_HELP, COMMAND_VERSION, COMMAND_CHECK, COMMAND_DUMP, COMMAND_LOAD };

struct options {
    enum command command;
    const char *source;     /* of argv; the cluster directory for the offline commands */
    const char *mountpoint; /* of argv */
    bool foreground, read_only, raw;
    int brokers; /* --brokers=N, 0: not given */
    int64_t config_change_expiry_ms;
    GPtrArray *broker_files; /* char*, -b */
    GPtrArray *fuse_options; /* char*, -o, without ours and without what only mount(8) means */
};

extern const char options_help[];

/* 0, or -EINVAL with one line. Free with options_clear() either way. */
int options_parse(int argc, char **argv, struct options *ret, char **ret_why);
void options_clear(struct options *o);
