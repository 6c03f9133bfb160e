#pragma once
/*
 * `.state` but for what fs/ serves itself: controller, topics and metrics are answered by the controller thread,
 * brokers by the engine, each between two events.
 */
#include <stdatomic.h>
#include "fs/policy.h"

struct controller_thread;
struct engine;

struct state_view {
    struct controller_thread *controller;
    struct engine *engine;
    atomic_bool ready; /* the start is done: `.state/controller/epoch` may appear */
};

void state_view_ask(struct state_view *v, enum state_query query, const char *path, const struct bytes *value,
        gen_t gen, struct state_question *q);
