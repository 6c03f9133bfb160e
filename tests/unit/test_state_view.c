/* Who answers which question about `.state`; the threads behind it and the answers are recorded here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <glib.h>
#include <string.h>
#include "controller/broker/engine.h"
#include "controller/policy/state_view.h"
#include "controller/thread.h"

static char answered[200];

#define RECORD(...) g_snprintf(answered, sizeof(answered), __VA_ARGS__)

void engine_state_ask(
        struct engine *e, int query, const char *path, const struct bytes *value, gen_t gen, struct state_question *q)
{
    RECORD("engine %d %s%s%s", query, path, value ? " " : "", value ? value->data : "");
}

void controller_thread_ask(struct controller_thread *t, int query, const char *path, struct state_question *q)
{
    RECORD("controller %d %s", query, path);
}

void state_answer_error(struct state_question *q, int err)
{
    RECORD("%s", strerrorname_np(err));
}

void state_answer_kind(struct state_question *q, enum state_kind kind)
{
    RECORD("kind %d", kind);
}

void state_answer_list(struct state_question *q, const struct state_entry *entries, size_t n)
{
    g_autoptr(GString) names = g_string_new("list");
    for (size_t i = 0; i < n; i++)
        g_string_append_printf(names, " %s:%d", entries[i].name, entries[i].kind);
    RECORD("%s", names->str);
}

static struct state_view view;

static void ask(enum state_query query, const char *path, const char *value, const char *want)
{
    struct bytes *b = value ? bytes_from_string(value) : NULL;
    answered[0] = '\0';
    state_view_ask(&view, query, path, b, 0, NULL);
    bytes_unref(b);
    assert_string_equal(answered, want);
}

static void test_routes(void **state)
{
    ask(STATE_LOOKUP, "/.state", NULL, "kind 0");
    ask(STATE_LIST, "/.state", NULL, "list brokers:0 controller:0 metrics:1 topics:0");
    ask(STATE_READ, "/.state", NULL, "EISDIR");
    ask(STATE_READLINK, "/.state", NULL, "EINVAL");
    ask(STATE_LOOKUP, "/.state/brokers", NULL, "engine 0 /.state/brokers");
    ask(STATE_WRITE, "/.state/brokers/1/state", "stopped\n", "engine 4 /.state/brokers/1/state stopped\n");
    ask(STATE_READ, "/.state/controller/broker", NULL, "controller 2 /.state/controller/broker");
    ask(STATE_LIST, "/.state/topics/t", NULL, "controller 1 /.state/topics/t");
    ask(STATE_READ, "/.state/metrics", NULL, "controller 2 /.state/metrics");
    ask(STATE_WRITE, "/.state/topics/t/0/state", "x", "EACCES");
    ask(STATE_LOOKUP, "/.state/brokersx", NULL, "ENOENT");
    ask(STATE_LOOKUP, "/.state/nothing", NULL, "ENOENT");
}

static void test_epoch_appears(void **state)
{
    ask(STATE_LOOKUP, "/.state/controller/epoch", NULL, "ENOENT");
    ask(STATE_READ, "/.state/controller/epoch", NULL, "ENOENT");
    atomic_store(&view.ready, true);
    ask(STATE_READ, "/.state/controller/epoch", NULL, "controller 2 /.state/controller/epoch");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_routes),
            cmocka_unit_test(test_epoch_appears),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
