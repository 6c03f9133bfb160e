#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/fuse/kernel.h"

#include <errno.h>
#include <string.h>
#include "fs/tree/path.h"

static bool ends(const char *path, const char *suffix)
{
    return g_str_has_suffix(path, suffix);
}

static bool always_directory(void *ctx, const char *path)
{
    return path[1] == '\0' || ends(path, ".dir");
}

static enum node_format format(void *ctx, const char *path)
{
    return ends(path, ".json") || ends(path, ".dir") || g_str_has_prefix(path, "/seq/") ? FORMAT_JSON
           : ends(path, ".num")                                                         ? FORMAT_NUMBER
           : ends(path, ".cfg")                                                         ? FORMAT_CONFIG
                                                                                        : FORMAT_OPAQUE;
}

static bool created_empty(void *ctx, const char *path)
{
    return ends(path, ".cmd");
}

static const char *sequential_prefix(void *ctx, const char *parent)
{
    return strcmp(parent, "/seq") == 0 ? "n-" : NULL;
}

static bool sensitive(void *ctx, const char *path)
{
    return path_is_under(path, "/secret");
}

static int may_write(void *ctx, const char *path, bool creates, char **ret_reason)
{
    if (strcmp(path, "/fixed") != 0)
        return 0;
    *ret_reason = g_strdup("it is fixed");
    return EPERM;
}

static int check_line(void *ctx, const char *path, const char *before, size_t before_len, const char *line, size_t len,
        char **ret_reason)
{
    if (len == 0 || memchr(line, '=', len))
        return 0;
    *ret_reason = g_strdup("no key=value");
    return EINVAL;
}

/* As the real one: the final newline of a format goes, bad JSON of a special kind is refused, lines become text. */
static void plan(void *ctx, const struct request *request, struct plan *ret)
{
    struct kernel *k = ctx;
    struct request r = *request;
    struct bytes *stripped = NULL;
    const char *path = r.path ? r.path : r.new_path;
    *ret = (struct plan){0};
    if (strcmp(path, "/fixed") == 0 && r.type != REQ_TOUCH) {
        plan_refuse(ret, EPERM, "it is fixed");
        return;
    }
    if (ends(path, ".cmd") && r.type == REQ_CREATE && r.value->len > 0) {
        plan_refuse(ret, EPERM, "a command has no value");
        return;
    }
    if (ends(path, ".cmd") && (r.type == REQ_CREATE || r.type == REQ_UNLINK)) {
        ret->type = PLAN_COMMAND;
        return;
    }
    if (r.type == REQ_APPEND && r.value->len == 1) /* an empty line; the type is PLAN_NOTHING */
        return;
    if (r.value && strstr(r.value->data, "\"wrong\"")) {
        plan_refuse(ret, EINVAL, "a wrong field");
        return;
    }
    if (r.value && !r.raw && format(NULL, path) != FORMAT_OPAQUE && r.type != REQ_APPEND && r.value->len > 0 &&
            r.value->data[r.value->len - 1] == '\n')
        r.value = stripped = bytes_new(r.value->data, r.value->len - 1);
    if (strcmp(path, "/seq/n-") == 0 && r.type == REQ_CREATE) {
        ret->type = PLAN_TXN;
        ret->txn = txn_new(TXN_CLIENT);
        txn_create(ret->txn, path, bytes_ref((struct bytes *)r.value), CREATE_SEQUENTIAL);
    } else {
        plan_default(k->mirror, &r, ret);
    }
    bytes_unref(stripped);
}

static void command(void *ctx, const struct request *request, gen_t gen, void (*answer)(void *arg, int err), void *arg)
{
    struct kernel *k = ctx;
    pthread_mutex_lock(&k->lock);
    k->commands++;
    bool hold = k->hold_commands;
    int err = k->command_err;
    if (hold) {
        k->command_answer = answer;
        k->command_arg = arg;
    }
    pthread_mutex_unlock(&k->lock);
    if (!hold)
        answer(arg, err);
}

/* `/.state/dir` holds `file` (its content is its path), `set` (writable) and `link`; all else below `parked` waits. */
static void ask(void *ctx, enum state_query query, const char *path, const struct bytes *value, gen_t gen,
        struct state_question *q)
{
    struct kernel *k = ctx;
    const char *name = path_name(path);
    static const struct state_entry entries[] = {
            {"file", STATE_FILE}, {"set", STATE_WRITABLE_FILE}, {"link", STATE_LINK}};
    bool parked = strstr(path, "parked") && query != STATE_LOOKUP;
    if (parked || query == STATE_WRITE) {
        struct asked_question *a = g_new0(struct asked_question, 1);
        *a = (struct asked_question){.query = query, .path = g_strdup(path), .q = q};
        a->value = value ? g_strndup(value->data, value->len) : NULL;
        pthread_mutex_lock(&k->lock);
        g_queue_push_tail(&k->questions, a);
        pthread_mutex_unlock(&k->lock);
    } else if (query == STATE_READ) {
        g_autofree char *text = g_strconcat(path, "\n", NULL);
        state_answer_bytes(q, text, strlen(text));
    } else if (query == STATE_READLINK) {
        state_answer_bytes(q, "/target", 7);
    } else if (query == STATE_LIST) {
        state_answer_list(q, entries, G_N_ELEMENTS(entries));
    } else if (strcmp(name, "dir") == 0 || strcmp(path, "/.state") == 0) {
        state_answer_kind(q, STATE_DIRECTORY);
    } else if (strcmp(name, "set") == 0) {
        state_answer_kind(q, STATE_WRITABLE_FILE);
    } else if (strcmp(name, "link") == 0) {
        state_answer_kind(q, STATE_LINK);
    } else if (strcmp(name, "file") == 0 || strcmp(name, "parked") == 0) {
        state_answer_kind(q, STATE_FILE);
    } else {
        state_answer_error(q, ENOENT);
    }
}

struct policy kernel_policy(struct kernel *k)
{
    return (struct policy){.ctx = k,
            .always_directory = always_directory,
            .format = format,
            .created_empty = created_empty,
            .sequential_prefix = sequential_prefix,
            .sensitive = sensitive,
            .may_write = may_write,
            .check_line = check_line,
            .plan = plan,
            .command = command,
            .ask = ask};
}
