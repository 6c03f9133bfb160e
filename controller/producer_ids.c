/* AllocateProducerIds: the next block of 1000 ids (ZkProducerIdManager.getNewProducerIdBlock). */
#include "controller/core.h"

#define BLOCK_PATH "/latest_producer_id_block"
#define BLOCK_SIZE 1000
#define ATTEMPTS 16

static bool next_start(struct controller *c, const struct bytes *data, int64_t *ret_start)
{
    g_autofree char *why = NULL;
    if (!producer_id_block_next(data, BLOCK_SIZE, ret_start, &why)) {
        complain(c, EINVAL, BLOCK_PATH, "%s", why);
        return false;
    }
    return true;
}

static enum kafka_error allocate(struct controller *c, struct broker_request *r)
{
    int rc = ZBADVERSION;
    int64_t start = 0;
    for (int i = 0; rc == ZBADVERSION && i < ATTEMPTS && !c->moved; i++) {
        struct bytes *data = NULL;
        struct zstat stat;
        rc = c->env.get(c->env.ctx, BLOCK_PATH, &data, &stat);
        bool good = rc == ZOK && next_start(c, data, &start);
        bytes_unref(data);
        if (!good) {
            break;
        }
        struct txn *txn = fenced_txn(c);
        txn_set(txn, BLOCK_PATH, producer_id_block_encode(r->broker_id, start, start + BLOCK_SIZE - 1), stat.version);
        rc = fenced_run_one(c, txn);
        if (rc == ZOK) {
            r->producer_id_start = start;
            r->producer_id_len = BLOCK_SIZE;
            return KERR_NONE;
        }
    }
    return c->moved ? KERR_NOT_CONTROLLER : KERR_UNKNOWN_SERVER_ERROR;
}

void allocate_producer_ids(struct controller *c, struct broker_request *r)
{
    const struct broker *b = context_broker(&c->ctx, r->broker_id);
    if (!b) {
        r->error = KERR_BROKER_ID_NOT_REGISTERED;
    } else if (b->epoch != r->broker_epoch) {
        r->error = KERR_STALE_BROKER_EPOCH;
    } else {
        r->error = allocate(c, r);
    }
    c->env.respond(c->env.ctx, r);
}
