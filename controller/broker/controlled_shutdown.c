/* The broker's side of a controlled shutdown (KafkaServer.controlledShutdown). */
#include "controller/broker/broker_core.h"

#define CONTROLLER_SOCKET_TIMEOUT_MS 30000

static void finish(struct broker *b, gen_t gen)
{
    b->shutdown.done = true;
    b->env->timer(b->env->ctx, BROKER_TIMER_CONTROLLED_SHUTDOWN, -1);
    b->env->shutdown_done(b->env->ctx, gen);
}

static void failed(struct broker *b, const char *why, gen_t gen)
{
    b->env->event(b->env->ctx, "broker %d controlled shutdown not done: %s", b->id, why);
    if (b->shutdown.attempts_left > 0)
        b->env->timer(b->env->ctx, BROKER_TIMER_CONTROLLED_SHUTDOWN, b->config->controlled_shutdown_retry_backoff_ms);
    else
        finish(b, gen); /* it stops all the same */
}

void controlled_shutdown_attempt(struct broker *b, gen_t gen)
{
    if (b->shutdown.done)
        return;
    b->shutdown.in_flight = NULL; /* of an attempt without an answer */
    if (b->shutdown.attempts_left <= 0) {
        finish(b, gen);
        return;
    }
    b->shutdown.attempts_left--;
    if (b->controller_id < 0) {
        failed(b, "no controller is known", gen);
        return;
    }
    struct broker_request *r = g_new0(struct broker_request, 1);
    r->api = API_CONTROLLED_SHUTDOWN;
    r->broker_id = b->id;
    r->broker_epoch = b->epoch;
    b->shutdown.in_flight = r;
    b->env->timer(b->env->ctx, BROKER_TIMER_CONTROLLED_SHUTDOWN, CONTROLLER_SOCKET_TIMEOUT_MS);
    b->env->ask_controller(b->env->ctx, b->controller_id, r, gen);
}

void controlled_shutdown_answered(struct broker *b, struct broker_request *r, gen_t gen)
{
    b->shutdown.in_flight = NULL;
    if (b->shutdown.done)
        return;
    if (r->error != KERR_NONE) {
        failed(b, kafka_error_name(r->error), gen);
    } else if (r->remaining && r->remaining->len > 0) {
        g_autofree char *why = g_strdup_printf("%u partitions still led, %s first", r->remaining->len,
                (const char *)g_ptr_array_index(r->remaining, 0));
        failed(b, why, gen);
    } else {
        finish(b, gen);
    }
}

void broker_shutdown(struct broker *b, gen_t gen)
{
    if (b->shutdown.started || b->halted)
        return;
    b->shutdown.started = true;
    if (!b->config->controlled_shutdown_enable) {
        finish(b, gen);
        return;
    }
    b->shutdown.attempts_left = b->config->controlled_shutdown_max_retries;
    controlled_shutdown_attempt(b, gen);
}
