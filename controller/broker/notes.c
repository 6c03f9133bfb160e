/*
 * Notes to the controller: sequential nodes below /log_dir_event_notification and /isr_change_notification. Nobody says
 * it a second time, so a note that the store had no room for is kept, and written again until there is some: a disk
 * that is full often is both the store's and a log dir's. Any other refusal (read-only, the session has ended) is
 * final.
 */
#include "controller/broker/broker_core.h"

void note_write(struct broker *b, const char *path, struct bytes *data, gen_t gen)
{
    struct txn *txn = txn_new(TXN_INTERNAL);

    txn_create(txn, path, data, CREATE_SEQUENTIAL);
    b->env->submit(b->env->ctx, txn, gen);
}

/* Nobody waits for it meanwhile: it may take long. Takes the transaction over. */
static void keep(struct broker *b, struct txn *txn)
{
    if (b->notes.wait_ms == 0)
        b->env->error(b->env->ctx, zerr_errno(txn->rc), txn->ops[0].path,
                "broker %d could not write it: %s; it tries again until there is room", b->id, zerr_name(txn->rc));
    if (g_queue_is_empty(&b->notes.refused)) {
        b->notes.wait_ms = broker_backoff_ms(b->notes.wait_ms);
        b->env->timer(b->env->ctx, BROKER_TIMER_NOTE, b->notes.wait_ms);
    }
    txn_reset(txn);
    g_queue_push_tail(&b->notes.refused, txn);
}

void note_written(struct broker *b, struct txn *txn)
{
    if (txn->rc == ZSTORENOSPACE) {
        keep(b, txn);
        return;
    }
    if (txn->rc == ZOK)
        b->notes.wait_ms = 0;
    else
        b->env->error(b->env->ctx, zerr_errno(txn->rc), txn->ops[0].path, "broker %d could not write it: %s", b->id,
                zerr_name(txn->rc));
    txn_free(txn);
}

void notes_retry(struct broker *b, gen_t gen)
{
    struct txn *txn;

    while (!b->halted && (txn = g_queue_pop_head(&b->notes.refused)))
        b->env->submit(b->env->ctx, txn, gen);
}

void notes_clear(struct broker *b)
{
    struct txn *txn;

    while ((txn = g_queue_pop_head(&b->notes.refused)))
        txn_free(txn);
}
