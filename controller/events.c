/* The event loop's body (KafkaController.process): one event after the other; what is not for an inactive controller
 * is dropped there, or answered. */
#include "controller/core.h"

#define STEP_DOWN_ATTEMPTS 3

struct controller *controller_new(
        int32_t broker_id, const struct broker_config *config, const struct controller_env *env)
{
    struct controller *c = g_new0(struct controller, 1);
    c->broker_id = broker_id;
    c->config = config;
    c->env = *env;
    c->batch = batch_new();
    c->pending_deletions = g_ptr_array_new();
    return c;
}

void controller_free(struct controller *c)
{
    if (c) {
        batch_free(c->batch);
        g_ptr_array_unref(c->pending_deletions);
        context_clear(&c->ctx);
        g_free(c);
    }
}

bool controller_is_active(const struct controller *c)
{
    return c->active;
}

int32_t controller_epoch(const struct controller *c)
{
    return c->epoch;
}

/* An answer counts if it is to this controller's request and comes from the broker's present incarnation. */
static void control_response(struct controller *c, const struct controller_event *e)
{
    const struct broker *b = context_broker(&c->ctx, e->broker_id);
    if (!b || b->epoch != e->broker_epoch || e->request->controller_epoch != c->epoch) {
        return;
    }
    if (e->response->error == KERR_STALE_CONTROLLER_EPOCH) {
        /* Somebody has a later epoch; or nobody, because /controller_epoch was removed or set back by hand, and what
         * brokers have seen is above it: then this step down, too, leads to a higher one. */
        c->moved = true;
        return;
    }
    switch (e->request->api) {
    case API_LEADER_AND_ISR:
        leader_and_isr_response(c, e->broker_id, e->request, e->response);
        break;
    case API_STOP_REPLICA:
        stop_replica_response(c, e->broker_id, e->request, e->response);
        break;
    case API_UPDATE_METADATA:
        if (e->response->error) {
            emit(c, "controller %d broker %d answered UpdateMetadata: %s", c->broker_id, e->broker_id,
                    kafka_error_name(e->response->error));
        }
        break;
    }
}

static void broker_request(struct controller *c, struct controller_event *e)
{
    struct broker_request *r = g_steal_pointer(&e->broker_request);
    if (!c->active) {
        r->error = KERR_NOT_CONTROLLER;
        c->env.respond(c->env.ctx, r);
        return;
    }
    switch (r->api) {
    case API_CONTROLLED_SHUTDOWN:
        controlled_shutdown(c, r);
        break;
    case API_ALTER_PARTITION:
        alter_partition(c, r);
        break;
    case API_ALLOCATE_PRODUCER_IDS:
        allocate_producer_ids(c, r);
        break;
    }
}

/* Events that every candidate takes, active or not. Returns whether it was one. */
static bool handle_candidate(struct controller *c, struct controller_event *e)
{
    switch (e->type) {
    case EVENT_STARTUP:
        election_elect(c);
        return true;
    case EVENT_CONTROLLER_CHANGE:
        election_check(c);
        return true;
    case EVENT_REELECT:
        election_check(c);
        if (!c->active) {
            election_elect(c);
        }
        return true;
    case EVENT_EXPIRE:
    case EVENT_SHUTDOWN:
        election_resign(c);
        return true;
    case EVENT_EPOCH_CHANGE: /* an active controller learns it from its next write, as in Kafka */
        if (!c->active) {
            election_elect(c); /* it may have been what kept everybody from being elected */
        }
        return true;
    case EVENT_BROKER_REQUEST:
        broker_request(c, e);
        return true;
    default:
        return false;
    }
}

static void handle_active(struct controller *c, struct controller_event *e)
{
    /* After an answer only once: what is tried may ask for the next one, and with a full store there would be no end.
     */
    bool retry = c->retry && !(c->retried && e->type == EVENT_CONTROL_RESPONSE);
    c->retry = c->retry && !retry;
    switch (e->type) {
    case EVENT_BROKER_CHANGE:
        broker_change(c);
        break;
    case EVENT_BROKER_MODIFICATIONS:
        broker_modifications(c, e->names);
        break;
    case EVENT_TOPIC_CHANGE:
        topic_change(c, e->names);
        break;
    case EVENT_PARTITION_MODIFICATIONS:
        partition_modifications(c, e->names);
        break;
    case EVENT_TOPIC_DELETION:
        topic_deletion(c, e->names);
        break;
    case EVENT_TOPIC_DELETION_RETRY:
        topic_deletion_retry(c, e->names);
        break;
    case EVENT_PARTITION_REASSIGNMENT:
        reassignment_file(c);
        break;
    case EVENT_REPLICA_LEADER_ELECTION:
        replica_leader_election(c);
        break;
    case EVENT_ISR_CHANGE_NOTIFICATION:
        isr_change_notification(c);
        break;
    case EVENT_LOG_DIR_EVENT_NOTIFICATION:
        log_dir_event_notification(c);
        break;
    case EVENT_PARTITION_STATE_CHANGE:
        partition_state_change(c, e->names);
        break;
    case EVENT_UNCLEAN_ELECTION_ENABLE:
        unclean_election_enable(c, e->names);
        break;
    case EVENT_TIMER:
        auto_preferred_election(c);
        break;
    case EVENT_CONTROL_RESPONSE:
        control_response(c, e);
        break;
    default:
        break;
    }
    if (retry) {
        retry_writes(c);
    }
    deletion_run(c); /* topics whose nodes could not be removed before */
    c->retried = retry ? c->retry : c->retried;
}

void controller_handle(struct controller *c, struct controller_event *e)
{
    int64_t begin = c->env.monotonic_us(c->env.ctx);
    if (!handle_candidate(c, e)) {
        if (c->active) {
            handle_active(c, e);
        } else if (c->retry) { /* there was no space to be elected */
            c->retry = false;
            election_elect(c);
        }
    }
    /* /controller is given back by a step down, so one that fails again is not lost: its removal is an event. */
    for (int i = 0; c->moved && i < STEP_DOWN_ATTEMPTS; i++) {
        election_step_down(c);
    }
    if (c->moved) {
        election_give_up(c);
    }
    int64_t end = c->env.monotonic_us(c->env.ctx);
    c->metrics.kind[e->type].events++;
    c->metrics.kind[e->type].processing_us += end - begin;
    c->metrics.kind[e->type].queue_us += e->enqueued_us ? MAX(begin - e->enqueued_us, 0) : 0;
    controller_event_free(e);
}
