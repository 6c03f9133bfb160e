#include "controller/policy/state_view.h"
#include <errno.h>
#include <glib.h>
#include <string.h>
#include "controller/broker/engine.h"
#include "controller/thread.h"
#include "fs/tree/path.h"

static void answer_top(enum state_query query, struct state_question *q)
{
    static const struct state_entry entries[] = {
            {"brokers", STATE_DIRECTORY},
            {"controller", STATE_DIRECTORY},
            {"metrics", STATE_FILE},
            {"topics", STATE_DIRECTORY},
    };
    if (query == STATE_LOOKUP)
        state_answer_kind(q, STATE_DIRECTORY);
    else if (query == STATE_LIST)
        state_answer_list(q, entries, G_N_ELEMENTS(entries));
    else
        state_answer_error(q, query == STATE_READLINK ? EINVAL : EISDIR);
}

void state_view_ask(struct state_view *v, enum state_query query, const char *path, const struct bytes *value,
        gen_t gen, struct state_question *q)
{
    if (strcmp(path, "/.state") == 0)
        answer_top(query, q);
    else if (path_is_under(path, "/.state/brokers"))
        engine_state_ask(v->engine, (int)query, path, value, gen, q);
    else if (query == STATE_WRITE)
        state_answer_error(q, EACCES);
    else if (strcmp(path, "/.state/controller/epoch") == 0 && !atomic_load(&v->ready))
        state_answer_error(q, ENOENT);
    else if (path_is_under(path, "/.state/controller") || path_is_under(path, "/.state/topics") ||
             strcmp(path, "/.state/metrics") == 0)
        controller_thread_ask(v->controller, (int)query, path, q);
    else
        state_answer_error(q, ENOENT);
}
