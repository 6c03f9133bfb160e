/* Brokers come up, change, stop and return. */
#include "tests/unit/engine_fixture.h"

static void a_cluster_comes_up(void **state)
{
    static const char *const roots[] = {"/consumers", "/brokers/ids", "/brokers/topics", "/brokers/seqid",
            "/config/changes", "/config/topics", "/config/clients", "/config/users", "/config/brokers", "/config/ips",
            "/admin/delete_topics", "/isr_change_notification", "/latest_producer_id_block",
            "/log_dir_event_notification", "/cluster/id", "/controller", "/controller_epoch"};
    struct fixture *f = cluster(3);

    for (size_t i = 0; i < G_N_ELEMENTS(roots); i++)
        if (!mirror_exists(f->mirror, roots[i]))
            fail_msg("%s is missing", roots[i]);
    struct zstat a, b;
    struct bytes *data;
    assert_int_equal(mirror_get(f->mirror, "/brokers/ids/1", &data, &a), ZOK);
    bytes_unref(data);
    assert_int_equal(mirror_get(f->mirror, "/brokers/ids/3", NULL, &b), ZOK);
    assert_int_equal(a.version, 1);
    assert_int_equal(a.czxid, b.czxid); /* all in one transaction */
    assert_true(a.ephemeral_owner != 0 && a.ephemeral_owner != b.ephemeral_owner);
    assert_int_equal(mirror_get(f->mirror, "/controller", &data, NULL), ZOK);
    int32_t id;
    assert_true(controller_znode_decode(data, &id, NULL));
    bytes_unref(data);
    assert_int_equal(id, 1);
    expect_state(f, STATE_READ, "/2/state", "running\n");
    topic(f, "t", "{\"0\":[2,1],\"1\":[3]}");
    settle(f);
    assert_true(on_disk(f, "2/t-0/partition.metadata") && on_disk(f, "1/t-0") && on_disk(f, "3/t-1"));
    assert_int_equal(leader(f, "t", 0), 2);
    delete_topic(f, "t");
    settle(f);
    assert_false(on_disk(f, "2/t-0") || on_disk(f, "1/t-0") || on_disk(f, "3/t-1"));
    assert_false(mirror_exists(f->mirror, "/brokers/topics/t"));
    assert_int_equal(engine_default_int(f->engine, "num.partitions", 7), 7);
    destroy(f);
}

static void the_end_touches_no_tree(void **state)
{
    struct fixture *f = cluster(2);
    g_autofree char *link = g_strdup_printf("%s/logs/1/t-0", f->dir);

    topic(f, "t", "{\"0\":[1,2]}");
    settle(f);
    expect_state(f, STATE_READLINK, "/1/logs/t-0", link);
    int64_t zxid = mirror_zxid(f->mirror);
    stop(f);
    assert_int_equal(mirror_zxid(f->mirror), zxid);
    assert_true(on_disk(f, "1/.kafka_cleanshutdown") && on_disk(f, "2/.kafka_cleanshutdown"));
    shell(f, "grep -qx 't 0 0' 1/recovery-point-offset-checkpoint");
    /* after the end nothing hangs */
    assert_int_equal(start_broker(f, 1), ESHUTDOWN);
    destroy(f);
}

static void nothing_without_brokers(void **state)
{
    struct fixture *f = make();

    start(f);
    settle(f);
    assert_int_equal(mirror_count(f->mirror), 0);
    assert_int_equal(start_broker(f, 2), 0);
    settle(f);
    assert_true(registered(f, 2));
    assert_true(mirror_exists(f->mirror, "/controller"));
    expect_state(f, STATE_LIST, "", "2:0");
    destroy(f);
}

static void dies_and_returns(void **state)
{
    struct fixture *f = cluster(3);

    topic(f, "t", "{\"0\":[2,1],\"1\":[1,2]}");
    settle(f);
    assert_int_equal(kill_broker(f, 2), 0);
    assert_false(registered(f, 2));
    assert_int_equal(kill_broker(f, 2), ENOENT);
    settle(f);
    expect_state(f, STATE_READ, "/2/state", "stopped\n");
    assert_int_equal(leader(f, "t", 0), 1);
    assert_int_equal(in_sync(f, "t", 1), 1);
    assert_false(on_disk(f, "2/.kafka_cleanshutdown"));
    assert_int_equal(start_broker(f, 2), 0);
    assert_int_equal(start_broker(f, 2), 0); /* running already */
    settle(f);
    assert_int_equal(in_sync(f, "t", 0), 2);
    assert_int_equal(in_sync(f, "t", 1), 2);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(kill_broker(f, 2), 0);
        assert_int_equal(start_broker(f, 2), 0);
    }
    settle(f);
    assert_int_equal(in_sync(f, "t", 0), 2);
    assert_int_equal(in_sync(f, "t", 1), 2);
    destroy(f);
}

static void stops_in_order(void **state)
{
    struct fixture *f = cluster(3);

    topic(f, "t", "{\"0\":[2,1]}");
    settle(f);
    g_autofree char *bad = ask(f, STATE_WRITE, "/2/state", "sleep\n");
    assert_string_equal(bad, "errno 22");
    g_autofree char *none = ask(f, STATE_WRITE, "/9/state", "stopped\n");
    assert_string_equal(none, "errno 2");
    g_autofree char *done = ask(f, STATE_WRITE, "/2/state", "stopped\n");
    assert_string_equal(done, "done");
    settle(f);
    expect_state(f, STATE_READ, "/2/state", "stopped\n");
    assert_false(registered(f, 2));
    assert_int_equal(leader(f, "t", 0), 1);
    assert_true(on_disk(f, "2/.kafka_cleanshutdown"));
    g_autofree char *again = ask(f, STATE_WRITE, "/2/state", "running\n");
    assert_string_equal(again, "done");
    settle(f);
    expect_state(f, STATE_READ, "/2/state", "running\n");
    assert_false(on_disk(f, "2/.kafka_cleanshutdown"));
    assert_int_equal(in_sync(f, "t", 0), 2);
    destroy(f);
}

/* Files without an id are not one broker's: each gets a number of its own, and keeps it (KafkaServer's
 * getOrGenerateBrokerId, meta.properties). */
static void ids_are_made(void **state)
{
    struct fixture *f = cluster(1);

    write_file(f, 2, "broker.id=-1\n");
    write_file(f, 3, "broker.id=-1\n");
    for (int life = 0; life < 2; life++) {
        stop(f);
        engine_free(f->engine);
        controller_thread_free(f->controller);
        open_engine(f);
        add_broker(f, 3 - life); /* the order of the files does not matter the second time */
        add_broker(f, 2 + life);
        start(f);
        settle(f);
        assert_true(registered(f, 1001));
        assert_true(registered(f, 1002));
        shell(f, "grep -qx broker.id=1001 3/meta.properties && grep -qx broker.id=1002 2/meta.properties");
    }
    g_autofree char *events = read_journal(f->events);
    assert_non_null(strstr(events, "server-2.properties starting"));
    assert_null(strstr(events, "broker -1"));
    destroy(f);
}

static char *data_of(struct fixture *f, const char *path, struct zstat *stat)
{
    struct bytes *data = NULL;

    assert_int_equal(mirror_get(f->mirror, path, &data, stat), ZOK);
    char *text = g_strdup(data ? data->data : "");
    bytes_unref(data);
    return text;
}

static void listeners_change(void **state)
{
    struct fixture *f = cluster(2);
    struct zstat before, after;

    g_free(data_of(f, "/brokers/ids/2", &before));
    create(f, "/config/brokers/2", "{\"version\":1,\"config\":{\"advertised.listeners\":\"PLAINTEXT://elsewhere:7\"}}");
    create(f, "/config/changes/config_change_0000000000", "{\"version\":2,\"entity_path\":\"brokers/2\"}");
    settle(f);
    g_autofree char *text = data_of(f, "/brokers/ids/2", &after);
    assert_true(strstr(text, "PLAINTEXT://elsewhere:7") != NULL);
    assert_int_equal(after.czxid, before.czxid); /* the same life */
    assert_int_equal(after.version, before.version + 1);
    g_autofree char *other = data_of(f, "/brokers/ids/1", &after);
    assert_int_equal(after.version, 1);
    destroy(f);
}

static const char *no_room_for; /* a node's path */
static atomic_bool slow_elections;

void __real_store_submit(struct store *s, struct txn *txn);
void __wrap_store_submit(struct store *s, struct txn *txn);
void __wrap_store_submit(struct store *s, struct txn *txn)
{
    if (no_room_for && txn->ops[0].type == OP_SET && strcmp(txn->ops[0].path, no_room_for) == 0) {
        txn->rc = ZSTORENOSPACE;
        txn->done(txn, txn->arg);
        return;
    }
    if (slow_elections && txn->ops[0].type == OP_CREATE && strcmp(txn->ops[0].path, "/controller") == 0)
        g_usleep(200000);
    __real_store_submit(s, txn);
}

/* The store has no room for it: the next change registers it. */
static void listeners_that_were_not_registered(void **state)
{
    struct fixture *f = cluster(1);

    no_room_for = "/brokers/ids/1";
    create(f, "/config/brokers/1", "{\"version\":1,\"config\":{\"advertised.listeners\":\"PLAINTEXT://elsewhere:7\"}}");
    create(f, "/config/changes/config_change_0000000000", "{\"version\":2,\"entity_path\":\"brokers/1\"}");
    settle(f);
    no_room_for = NULL;
    g_autofree char *errors = read_journal(f->errors);
    assert_non_null(strstr(errors, "/brokers/ids/1: the new listeners could not be registered: ZSTORENOSPACE"));
    create(f, "/config/brokers/<default>", "{\"version\":1,\"config\":{\"log.segment.delete.delay.ms\":\"5\"}}");
    create(f, "/config/changes/config_change_0000000001", "{\"version\":2,\"entity_path\":\"brokers/<default>\"}");
    settle(f);
    g_autofree char *text = data_of(f, "/brokers/ids/1", NULL);
    assert_non_null(strstr(text, "PLAINTEXT://elsewhere:7"));
    destroy(f);
}

/* However fast a broker is back: the next controller is elected by its death, and sees it. */
static void the_controller_bounces(void **state)
{
    struct fixture *f = cluster(3);

    topic(f, "t", "{\"0\":[1,2],\"1\":[2,1]}");
    settle(f);
    assert_int_equal(leader(f, "t", 0), 1);
    slow_elections = true;
    assert_int_equal(kill_broker(f, 1), 0);
    assert_int_equal(start_broker(f, 1), 0);
    slow_elections = false;
    settle(f);
    for (int p = 0; p < 2; p++) {
        assert_int_equal(leader(f, "t", p), 2);
        assert_int_equal(in_sync(f, "t", p), 2);
    }
    destroy(f);
}

static void the_old_protocol(void **state)
{
    struct fixture *f = make();
    struct zstat stat;

    for (int id = 1; id <= 3; id++)
        write_file(f, id, "inter.broker.protocol.version=2.6\n");
    add_brokers(f, 3);
    start(f);
    settle(f);
    g_autofree char *registration = data_of(f, "/brokers/ids/1", &stat);
    assert_true(strstr(registration, "\"version\":4") != NULL);
    g_autofree char *block = data_of(f, "/latest_producer_id_block", &stat);
    assert_true(strstr(block, "\"block_start\":\"2000\"") && strstr(block, "\"block_end\":\"2999\""));
    topic(f, "t", "{\"0\":[2,1]}");
    settle(f);
    assert_false(on_disk(f, "2/t-0/partition.metadata")); /* no topic ids */
    assert_true(on_disk(f, "2/t-0/00000000000000000000.log"));
    assert_int_equal(kill_broker(f, 1), 0);
    assert_int_equal(start_broker(f, 1), 0);
    settle(f);
    assert_int_equal(in_sync(f, "t", 0), 2); /* written by the leader itself */
    g_autoptr(GPtrArray) left = mirror_children(f->mirror, "/isr_change_notification");
    assert_int_equal(left->len, 0);
    /* ids that may be in use are not given out again */
    struct txn *txn = txn_new(TXN_CLIENT);
    txn_set(txn, "/latest_producer_id_block", bytes_from_string("damaged"), -1);
    run_txn(f, txn);
    assert_int_equal(kill_broker(f, 1), 0);
    assert_int_equal(start_broker(f, 1), 0);
    settle(f);
    g_autofree char *kept = data_of(f, "/latest_producer_id_block", &stat);
    assert_string_equal(kept, "damaged");
    g_autofree char *errors = read_journal(f->errors);
    assert_non_null(strstr(errors, "/latest_producer_id_block: broker 1 takes no producer ids: "));
    destroy(f);
}

static void views(void **state)
{
    struct fixture *f = cluster(2);

    topic(f, "t", "{\"0\":[1,2],\"2\":[2]}");
    settle(f);
    expect_state(f, STATE_LOOKUP, "", "0");
    expect_state(f, STATE_LOOKUP, "/1", "0");
    expect_state(f, STATE_LOOKUP, "/3", "errno 2");
    expect_state(f, STATE_LOOKUP, "/01", "errno 2");
    expect_state(f, STATE_LOOKUP, "/1/state", "2");
    expect_state(f, STATE_LOOKUP, "/1/logs/t-0", "3");
    expect_state(f, STATE_LOOKUP, "/1/logs/t-2", "errno 2");
    expect_state(f, STATE_LIST, "/2/logs", "t-0:3 t-2:3");
    expect_state(f, STATE_LIST, "/1/metadata", "t:0");
    expect_state(f, STATE_LIST, "/1/metadata/t", "0:1 2:1");
    expect_state(f, STATE_LOOKUP, "/1/metadata/t/1", "errno 2");
    expect_state(f, STATE_LOOKUP, "/1/metadata/x", "errno 2");
    expect_state(f, STATE_READ, "/1/logs", "errno 21");
    expect_state(f, STATE_READLINK, "/1/state", "errno 22");
    expect_state(f, STATE_LIST, "/1/state", "errno 20");
    expect_state(f, STATE_LIST, "/1/throttled", "leader:0 follower:0");
    expect_state(f, STATE_LOOKUP, "/1/nonsense", "errno 2");
    g_autofree char *json = ask(f, STATE_READ, "/1/metadata/t/0", NULL);
    assert_true(g_str_has_prefix(json, "{\"topic\":\"t\"") && g_str_has_suffix(json, "}\n"));
    g_autofree char *config = ask(f, STATE_READ, "/1/config/brokers/1", NULL);
    assert_true(strstr(config, "controlled.shutdown.retry.backoff.ms=50\n") != NULL);
    /* of one that does not run nothing is left but its state */
    assert_int_equal(kill_broker(f, 2), 0);
    expect_state(f, STATE_LIST, "/2/logs", "");
    expect_state(f, STATE_LIST, "/2/log_dirs", "");
    expect_state(f, STATE_LOOKUP, "/2/metadata/t", "errno 2");
    expect_state(f, STATE_LIST, "/2/config/topics", "");
    destroy(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_cluster_comes_up),
            cmocka_unit_test(the_end_touches_no_tree),
            cmocka_unit_test(nothing_without_brokers),
            cmocka_unit_test(dies_and_returns),
            cmocka_unit_test(stops_in_order),
            cmocka_unit_test(ids_are_made),
            cmocka_unit_test(listeners_change),
            cmocka_unit_test(listeners_that_were_not_registered),
            cmocka_unit_test(the_controller_bounces),
            cmocka_unit_test(the_old_protocol),
            cmocka_unit_test(views),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
