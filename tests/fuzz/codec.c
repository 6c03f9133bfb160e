/* Every decoder of a znode's JSON, chosen by the first byte; what one accepts, its encoder must write so that it reads
 * the same again. */
#include "controller/json/codec.h"
#include "tests/fuzz/fuzz.h"

static void topic(const struct bytes *data)
{
    struct topic_assignment *a, *again;
    struct bytes *text;
    g_autofree char *why = NULL;

    if (!topic_assignment_decode(data, &a, &why))
        return;
    text = topic_assignment_encode(a);
    FUZZ_CHECK(topic_assignment_decode(text, &again, NULL));
    FUZZ_CHECK(again->partitions->len == a->partitions->len);
    topic_assignment_free(again);
    topic_assignment_free(a);
    bytes_unref(text);
}

static void state(const struct bytes *data)
{
    struct leader_and_isr l = {0}, again = {0};
    struct bytes *text;
    g_autofree char *why = NULL;

    if (!leader_and_isr_decode(data, &l, &why))
        return;
    text = leader_and_isr_encode(&l);
    FUZZ_CHECK(leader_and_isr_decode(text, &again, NULL));
    FUZZ_CHECK(again.leader == l.leader && again.leader_epoch == l.leader_epoch && broker_ids_equal(again.isr, l.isr));
    leader_and_isr_clear(&again);
    leader_and_isr_clear(&l);
    bytes_unref(text);
}

static void registration(const struct bytes *data)
{
    struct broker_registration *b, *again;
    struct bytes *text;
    g_autofree char *why = NULL;

    if (!broker_registration_decode(data, &b, &why))
        return;
    text = broker_registration_encode(b);
    FUZZ_CHECK(broker_registration_decode(text, &again, NULL));
    FUZZ_CHECK(again->n_endpoints == b->n_endpoints);
    broker_registration_free(again);
    broker_registration_free(b);
    bytes_unref(text);
}

static void config(const struct bytes *data)
{
    GHashTable *table, *again;
    struct bytes *text;
    g_autofree char *why = NULL;

    if (!config_entity_decode(data, &table, &why))
        return;
    text = config_entity_encode(table);
    FUZZ_CHECK(config_entity_decode(text, &again, NULL));
    FUZZ_CHECK(g_hash_table_size(again) == g_hash_table_size(table));
    g_hash_table_unref(again);
    g_hash_table_unref(table);
    bytes_unref(text);
}

static void lists(const struct bytes *data)
{
    GArray *entries;

    if (reassignment_decode(data, &entries, NULL, NULL))
        g_array_unref(entries);
    if (partition_list_decode(data, &entries, NULL))
        g_array_unref(entries);
}

static void small(const struct bytes *data)
{
    char *text;
    int32_t number;
    int64_t start, end;
    int version, status;

    (void)controller_znode_decode(data, &number, NULL);
    (void)controller_epoch_decode(data, &number, NULL);
    (void)log_dir_event_decode(data, &number, NULL);
    (void)producer_id_block_decode(data, &start, &end, NULL);
    (void)feature_decode(data, &version, &status, NULL);
    if (cluster_id_decode(data, &text, NULL))
        g_free(text);
    if (config_change_decode(data, &text, NULL))
        g_free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    static void (*const decoders[])(const struct bytes *) = {topic, state, registration, config, lists, small};
    struct bytes *data;

    if (size == 0)
        return 0;
    data = bytes_new(input + 1, size - 1);
    decoders[input[0] % G_N_ELEMENTS(decoders)](data);
    bytes_unref(data);
    return 0;
}
