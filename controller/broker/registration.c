/* What a broker writes to the tree when it starts (KafkaZkClient.createTopLevelPaths, registerBroker). */
#include "controller/broker/engine_internal.h"
#include "controller/broker/listeners.h"
#include "controller/json/codec.h"
#include <errno.h>
#include <string.h>
#include <sys/random.h>

/* ZkData.PersistentZkPaths; parents first. */
static const char *const persistent_paths[] = {
        "/consumers",
        "/brokers",
        "/brokers/ids",
        "/brokers/topics",
        "/config",
        "/config/changes",
        "/admin",
        "/admin/delete_topics",
        "/brokers/seqid",
        "/isr_change_notification",
        "/latest_producer_id_block",
        "/log_dir_event_notification",
        "/config/topics",
        "/config/clients",
        "/config/users",
        "/config/brokers",
        "/config/ips",
};

static uint32_t random_bits(void *arg)
{
    uint32_t v;

    return getrandom(&v, sizeof v, 0) == sizeof v ? v : g_random_int();
}

struct txn *registration_roots(struct engine *e)
{
    struct txn *txn = txn_new(TXN_INTERNAL);
    char id[23];

    for (size_t i = 0; i < G_N_ELEMENTS(persistent_paths); i++)
        if (!mirror_exists(e->config.mirror, persistent_paths[i]))
            txn_create(txn, persistent_paths[i], NULL, 0);
    if (!mirror_exists(e->config.mirror, "/cluster"))
        txn_create(txn, "/cluster", NULL, 0);
    if (!mirror_exists(e->config.mirror, "/cluster/id")) {
        uuid_generate(random_bits, NULL, id);
        txn_create(txn, "/cluster/id", cluster_id_encode(id), 0);
    }
    if (txn->n_ops > 0)
        return txn;
    txn_free(txn);
    return NULL;
}

char *registration_cluster_id(struct engine *e)
{
    struct bytes *data = NULL;
    char *id = NULL;

    if (mirror_get(e->config.mirror, "/cluster/id", &data, NULL) == ZOK && data && !cluster_id_decode(data, &id, NULL))
        id = NULL;
    bytes_unref(data);
    return id;
}

struct bytes *registration_encode(
        const struct broker_config *config, struct broker_endpoint *endpoints, size_t n_endpoints)
{
    struct broker_registration r = {.endpoints = endpoints,
            .n_endpoints = n_endpoints,
            .rack = config->rack,
            .jmx_port = -1,
            .timestamp_ms = g_get_real_time() / 1000};

    r.version = broker_config_ibp_at_least(config, 2, 7, 0)      ? 5
                : broker_config_ibp_at_least(config, 0, 1000, 1) ? 4
                                                                 : 2;
    return broker_registration_encode(&r);
}

static bool endpoints_clash(const struct broker_endpoint *a, size_t n_a, const struct broker_endpoint *b, size_t n_b)
{
    for (size_t i = 0; i < n_a; i++)
        for (size_t k = 0; k < n_b; k++)
            if (a[i].port == b[k].port && a[i].port != 0 && g_strcmp0(a[i].host, b[k].host) == 0)
                return true;
    return false;
}

int32_t registration_find_clash(struct engine *e, int32_t id, const struct broker_config *config)
{
    g_autoptr(GPtrArray) ids = mirror_children(e->config.mirror, "/brokers/ids");
    int32_t clash = -1;

    for (guint i = 0; ids && i < ids->len && clash < 0; i++) {
        const char *name = g_ptr_array_index(ids, i);
        g_autofree char *path = g_strdup_printf("/brokers/ids/%s", name);
        struct broker_registration *r = NULL;
        struct bytes *data = NULL;
        gint64 other;
        if (!g_ascii_string_to_signed(name, 10, 0, INT32_MAX, &other, NULL) || other == id)
            continue;
        if (mirror_get(e->config.mirror, path, &data, NULL) == ZOK && data &&
                broker_registration_decode(data, &r, NULL)) {
            if (endpoints_clash(config->endpoints, config->n_endpoints, r->endpoints, r->n_endpoints))
                clash = (int32_t)other;
            broker_registration_free(r);
        }
        bytes_unref(data);
    }
    return clash;
}

bool registration_clash(const struct broker_config *a, const struct broker_config *b)
{
    return endpoints_clash(a->endpoints, a->n_endpoints, b->endpoints, b->n_endpoints);
}

/* ---- producer ids ---- */

#define PRODUCER_ID_BLOCK 1000

static void producer_ids_done(struct engine *e, struct engine_msg *m)
{
    e->txns--;
    if (m->txn->rc == ZBADVERSION && !m->inc->dead)
        registration_take_producer_ids(m->inc, m->item.gen); /* another broker was faster */
}

/* ProducerIdManager.zk: before inter.broker.protocol.version 3.0-IV0 a broker takes a block of ids when it starts. */
void registration_take_producer_ids(struct incarnation *inc, gen_t gen)
{
    static const char path[] = "/latest_producer_id_block";
    struct bytes *data = NULL;
    struct zstat stat;
    g_autofree char *why = NULL;
    int64_t start;

    if (mirror_get(inc->engine->config.mirror, path, &data, &stat) != ZOK)
        return;
    bool good = producer_id_block_next(data, PRODUCER_ID_BLOCK, &start, &why);
    bytes_unref(data);
    if (!good) {
        journal_error(
                inc->engine->config.errors, EINVAL, path, "broker %d takes no producer ids: %s", inc->host->id, why);
        return;
    }
    struct txn *txn = txn_new(TXN_INTERNAL);
    struct engine_msg *m = engine_msg_new(producer_ids_done);
    txn_set(txn, path, producer_id_block_encode(inc->host->id, start, start + PRODUCER_ID_BLOCK - 1), stat.version);
    m->inc = inc;
    engine_submit(inc->engine, txn, inc->session, gen, m);
}

/* ---- listeners that change while the broker runs ---- */

static bool same_endpoints(const struct broker_endpoint *a, size_t n_a, const struct broker_endpoint *b, size_t n_b)
{
    for (size_t i = 0; i < n_a && n_a == n_b; i++)
        if (strcmp(a[i].listener, b[i].listener) != 0 || strcmp(a[i].host, b[i].host) != 0 || a[i].port != b[i].port ||
                strcmp(a[i].security_protocol, b[i].security_protocol) != 0)
            return false;
    return n_a == n_b;
}

static void update_done(struct engine *e, struct engine_msg *m)
{
    struct incarnation *inc = m->inc;

    e->txns--;
    if (m->txn->rc == ZOK)
        return;
    journal_error(e->config.errors, zerr_errno(m->txn->rc), m->txn->ops[0].path,
            "the new listeners could not be registered: %s; the broker's next change of configuration tries again",
            zerr_name(m->txn->rc));
    broker_endpoints_free(inc->endpoints, inc->n_endpoints);
    inc->endpoints = NULL; /* unlike any */
    inc->n_endpoints = 0;
}

/* DynamicListenerConfig, KafkaZkClient.updateBrokerInfo: the same node, and so the same epoch. */
void registration_update_listeners(struct incarnation *inc, gen_t gen)
{
    g_autofree char *map = config_manager_broker_value(inc->configs, "listener.security.protocol.map");
    g_autofree char *advertised = config_manager_broker_value(inc->configs, "advertised.listeners");
    g_autofree char *list = config_manager_broker_value(inc->configs, "listeners");
    g_autofree char *path = g_strdup_printf("/brokers/ids/%d", inc->host->id);
    g_autofree char *why = NULL;
    struct broker_endpoint *endpoints;
    size_t n;

    if (listeners_advertised(advertised, list, map, &endpoints, &n, &why) < 0) {
        journal_error(inc->engine->config.errors, EINVAL, path, "listeners not changed: %s", why);
        return;
    }
    if (same_endpoints(endpoints, n, inc->endpoints, inc->n_endpoints)) {
        broker_endpoints_free(endpoints, n);
        return;
    }
    broker_endpoints_free(inc->endpoints, inc->n_endpoints);
    inc->endpoints = endpoints;
    inc->n_endpoints = n;
    struct txn *txn = txn_new(TXN_INTERNAL);
    struct engine_msg *m = engine_msg_new(update_done);
    txn_set(txn, path, registration_encode(inc->config, endpoints, n), -1);
    m->inc = inc;
    engine_submit(inc->engine, txn, inc->session, gen, m);
}
