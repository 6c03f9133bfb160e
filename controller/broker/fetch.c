/* A follower's side of replication, as far as it matters here: it tells the leader that it follows. */
#include "controller/broker/broker_core.h"

#define FETCH_BACKOFF_MS 1000 /* replica.fetch.backoff.ms */

struct outgoing_fetch {
    int32_t leader;
    struct fetch_request *request;
};

GArray *fetch_list_new(void)
{
    return g_array_new(FALSE, FALSE, sizeof(struct outgoing_fetch));
}

void fetch_list_free(GArray *list)
{
    for (guint i = 0; i < list->len; i++)
        fetch_request_free(g_array_index(list, struct outgoing_fetch, i).request);
    g_array_unref(list);
}

static struct fetch_request *request_to(struct broker *b, int32_t leader)
{
    for (guint i = 0; i < b->fetches->len; i++) {
        struct outgoing_fetch *o = &g_array_index(b->fetches, struct outgoing_fetch, i);
        if (o->leader == leader)
            return o->request;
    }
    struct outgoing_fetch o = {.leader = leader, .request = g_new0(struct fetch_request, 1)};
    o.request->replica_id = b->id;
    o.request->replica_epoch = b->epoch;
    o.request->partitions = g_array_new(FALSE, FALSE, sizeof(struct fetch_partition));
    g_array_append_val(b->fetches, o);
    return o.request;
}

void fetch_add(struct broker *b, struct replica *r)
{
    struct fetch_partition f = {.partition = r->partition, .leader_epoch = r->leader_epoch};

    if (b->shutdown.started) /* it is leaving the in-sync sets, not coming back */
        return;
    f.topic = topic_ref_ref(r->topic);
    g_array_append_val(request_to(b, r->leader)->partitions, f);
}

void fetch_flush(struct broker *b, gen_t gen)
{
    if (b->fetches->len == 0)
        return;
    for (guint i = 0; i < b->fetches->len; i++) {
        struct outgoing_fetch *o = &g_array_index(b->fetches, struct outgoing_fetch, i);
        b->env->fetch(b->env->ctx, o->leader, o->request, gen);
    }
    g_array_set_size(b->fetches, 0);
    b->env->timer(b->env->ctx, BROKER_TIMER_FETCH, FETCH_BACKOFF_MS);
}

void fetch_set_out_of_sync(struct broker *b, struct replica *r, bool out)
{
    if (r->out_of_sync == out)
        return;
    r->out_of_sync = out;
    if (out)
        b->n_out_of_sync++;
    else
        b->n_out_of_sync--;
}

void fetch_again(struct broker *b, int32_t leader)
{
    GHashTableIter it;
    gpointer p;

    if (b->n_out_of_sync == 0)
        return;
    g_hash_table_iter_init(&it, b->rm.replicas);
    while (g_hash_table_iter_next(&it, &p, NULL)) {
        struct replica *r = p;
        if (r->out_of_sync && (leader < 0 || r->leader == leader))
            fetch_add(b, r);
    }
}
