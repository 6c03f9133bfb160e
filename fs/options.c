#include "fs/options.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

#define DEFAULT_EXPIRY_S 900
#define MAX_EXPIRY_S (100 * 365 * 86400LL)
#define MAX_BROKERS 1000

const char options_help[] =
        "usage: kafkafs [options] SOURCE MOUNTPOINT\n"
        "\n"
        "Mounts Kafka's ZooKeeper-era cluster metadata. SOURCE is a cluster directory: the tree is kept in\n"
        "SOURCE/metadata, and a broker is hosted for each SOURCE/*.properties.\n"
        "\n"
        "  -b FILE, --broker=FILE   host the broker of this server.properties too; may be given again\n"
        "  --brokers=N              where SOURCE has no *.properties: write those of N brokers, and use them\n"
        "  -f                       stay in the foreground, log to stderr\n"
        "  -o OPT[,OPT...]          options of mount(8) and FUSE, and\n"
        "                             ro    no changes\n"
        "                             raw   bytes and nodes exactly as ZooKeeper has them\n"
        "                             config_change_expiry=SECONDS   for notifications in config/changes (900)\n"
        "  -h, --help               this text\n"
        "  -V, --version            the version\n"
        "\n"
        "With a cluster directory C that is not mounted:\n"
        "  --check C                verify the store; a line for each fault, status 1 if there is one\n"
        "  --dump C                 the tree as text, a line for each znode\n"
        "  --load C                 a new store from such text on stdin\n";

enum { OPT_BROKERS = 256, OPT_CHECK, OPT_DUMP, OPT_LOAD };

static const struct option long_options[] = {
        {"broker", required_argument, NULL, 'b'},
        {"brokers", required_argument, NULL, OPT_BROKERS},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {"check", no_argument, NULL, OPT_CHECK},
        {"dump", no_argument, NULL, OPT_DUMP},
        {"load", no_argument, NULL, OPT_LOAD},
        {0},
};

static bool parse_number(const char *text, int64_t min, int64_t max, int64_t *ret)
{
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (!g_ascii_isdigit(*text) || *end || errno != 0 || n < min || n > max)
        return false;
    *ret = n;
    return true;
}

/* ---- -o ---- */

static bool in_list(const char *const *list, const char *name)
{
    for (; *list; list++)
        if (strcmp(*list, name) == 0)
            return true;
    return false;
}

/* What mount(8) and fstab(5) know and nobody below them has to. `dev`, `suid` and `exec` are asked for by `mount -t
 * fuse.kafkafs`, and never granted. */
static const char *const ignored[] = {"rw", "dev", "suid", "exec", "nodev", "nosuid", "noexec", "auto", "noauto",
        "user", "nouser", "users", "owner", "group", "defaults", "_netdev", "nofail", "default_permissions",
        /* znodes have no time of access */
        "atime", "noatime", "diratime", "nodiratime", "relatime", "norelatime", "strictatime", "nostrictatime",
        "lazytime", "nolazytime", NULL};

static const char *const passed[] = {"allow_other", "allow_root", "auto_unmount", "sync", "async", "dirsync", NULL};

static const char *const passed_with_value[] = {"context=", "fscontext=", "defcontext=", "rootcontext=", NULL};

static bool has_prefix_of(const char *const *list, const char *option)
{
    for (; *list; list++)
        if (g_str_has_prefix(option, *list))
            return true;
    return false;
}

static int parse_fuse_option(struct options *o, const char *option, char **ret_why)
{
    const char *expiry = "config_change_expiry=";
    int64_t seconds;
    if (strcmp(option, "ro") == 0) {
        o->read_only = true;
    } else if (strcmp(option, "raw") == 0) {
        o->raw = true;
    } else if (g_str_has_prefix(option, expiry)) {
        if (!parse_number(option + strlen(expiry), 0, MAX_EXPIRY_S, &seconds)) {
            *ret_why = g_strdup_printf("-o %s: a number of seconds is wanted", option);
            return -EINVAL;
        }
        o->config_change_expiry_ms = seconds * 1000;
    } else if (in_list(passed, option) || has_prefix_of(passed_with_value, option)) {
        g_ptr_array_add(o->fuse_options, g_strdup(option));
    } else if (*option && !in_list(ignored, option) && !g_str_has_prefix(option, "x-") &&
               !g_str_has_prefix(option, "X-") && !g_str_has_prefix(option, "comment=")) {
        *ret_why = g_strdup_printf("unknown option -o %s", option);
        return -EINVAL;
    }
    return 0;
}

static int parse_fuse_options(struct options *o, const char *list, char **ret_why)
{
    g_auto(GStrv) options = g_strsplit(list, ",", -1);
    int rc = 0;
    for (char **option = options; rc == 0 && *option; option++)
        rc = parse_fuse_option(o, *option, ret_why);
    return rc;
}

/* ---- the rest ---- */

static int parse_option(struct options *o, int c, const char *argument, const char *word, char **ret_why)
{
    int64_t n;
    switch (c) {
    case 'b':
        g_ptr_array_add(o->broker_files, g_strdup(argument));
        return 0;
    case 'f':
        o->foreground = true;
        return 0;
    case 'o':
        return parse_fuse_options(o, argument, ret_why);
    case 'h':
        o->command = COMMAND_HELP;
        return 0;
    case 'V':
        o->command = COMMAND_VERSION;
        return 0;
    case OPT_BROKERS:
        if (parse_number(argument, 1, MAX_BROKERS, &n)) {
            o->brokers = (int)n;
            return 0;
        }
        *ret_why = g_strdup_printf("--brokers=%s: a number from 1 to %d is wanted", argument, MAX_BROKERS);
        return -EINVAL;
    case OPT_CHECK:
    case OPT_DUMP:
    case OPT_LOAD:
        if (o->command != COMMAND_MOUNT && o->command != COMMAND_CHECK + (enum command)(c - OPT_CHECK)) {
            *ret_why = g_strdup_printf("%s: one command at a time", word);
            return -EINVAL;
        }
        o->command = COMMAND_CHECK + (enum command)(c - OPT_CHECK);
        return 0;
    case ':':
        *ret_why = g_strdup_printf("option %s needs an argument", word);
        return -EINVAL;
    default:
        *ret_why = g_strdup_printf("unknown or ambiguous option %s (kafkafs -h shows them)", word);
        return -EINVAL;
    }
}

static int take_arguments(struct options *o, int n, char **arguments, char **ret_why)
{
    int wanted = o->command == COMMAND_MOUNT ? 2 : 1;
    if (o->command == COMMAND_HELP || o->command == COMMAND_VERSION)
        return 0;
    if (n < wanted) {
        *ret_why = g_strdup(wanted == 2 ? "usage: kafkafs [options] SOURCE MOUNTPOINT (kafkafs -h shows more)"
                                        : "usage: kafkafs --check|--dump|--load DIRECTORY");
        return -EINVAL;
    }
    if (n > wanted) {
        *ret_why = g_strdup_printf("one argument too many: %s", arguments[wanted]);
        return -EINVAL;
    }
    o->source = arguments[0];
    o->mountpoint = wanted == 2 ? arguments[1] : NULL;
    return 0;
}

int options_parse(int argc, char **argv, struct options *ret, char **ret_why)
{
    *ret = (struct options){.config_change_expiry_ms = DEFAULT_EXPIRY_S * 1000};
    ret->broker_files = g_ptr_array_new_with_free_func(g_free);
    ret->fuse_options = g_ptr_array_new_with_free_func(g_free);
    int rc = 0;
    opterr = 0;
    optind = 0; /* begins anew, for tests */
    while (rc == 0) {
        int before = MAX(optind, 1), c = getopt_long(argc, argv, ":b:fo:hV", long_options, NULL);
        if (c == -1)
            break;
        char letter[] = {'-', (char)optopt, '\0'};
        const char *word = argv[MAX(before, optind - 1)];
        bool is_long = g_str_has_prefix(word, "--") || optopt <= 0 || optopt > 255;
        rc = parse_option(ret, c, optarg, is_long ? word : letter, ret_why);
    }
    return rc == 0 ? take_arguments(ret, argc - optind, argv + optind, ret_why) : rc;
}

void options_clear(struct options *o)
{
    if (o->broker_files)
        g_ptr_array_unref(o->broker_files);
    if (o->fuse_options)
        g_ptr_array_unref(o->fuse_options);
    *o = (struct options){0};
}
