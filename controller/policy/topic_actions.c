#include "controller/policy/topic_actions.h"
#include <errno.h>
#include <inttypes.h>
#include "controller/policy/values.h"
#include "fs/tree/path.h"

static void refuse_with(struct plan *ret, int err, char *why)
{
    plan_refuse(ret, err, "%s", why);
    g_free(why);
}

static bool is_being_deleted(const struct actions *a, const char *topic)
{
    g_autofree char *marker = path_join("/admin/delete_topics", topic);
    return mirror_exists(a->mirror, marker);
}

/* AdminZkClient.validateTopicCreate; the name's form has been judged. */
static bool refuse_topic(const struct actions *a, const char *topic, struct plan *ret)
{
    if (is_being_deleted(a, topic)) {
        plan_refuse(ret, EEXIST, "a topic of this name is being deleted (admin/delete_topics/%s)", topic);
        return true;
    }
    g_autofree char *other = topic_index_colliding(a->topics.topics, topic);
    if (other)
        plan_refuse(ret, EEXIST, "the name collides with topic %s (`.` and `_` are the same in metric names)", other);
    return other != NULL;
}

void plan_new_topic(const struct actions *a, const struct request *r, struct plan *ret)
{
    if (!refuse_topic(a, path_name(r->path), ret))
        plan_default(a->mirror, r, ret);
}

/* ---- assignments ---- */

/* The assignment that a node has: false if it has none that can be read (null, empty, broken), so none to keep. */
static bool read_assignment(
        const struct actions *a, const char *path, struct topic_assignment **ret, struct zstat *ret_stat)
{
    struct bytes *data = NULL;
    bool exists = mirror_get(a->mirror, path, &data, ret_stat) == ZOK;
    bool read = exists && topic_assignment_decode(data, ret, NULL);
    bytes_unref(data);
    return read;
}

static void plan_first_value(
        const struct actions *a, const struct request *r, cJSON *doc, struct bytes *stored, struct plan *ret)
{
    struct bytes *value;
    char *why;
    if (refuse_topic(a, path_name(r->path), ret))
        return;
    int err = topic_value_first(&a->topics, path_name(r->path), doc, stored, &value, &why);
    if (err != 0) {
        refuse_with(ret, err, why);
        return;
    }
    ret->type = PLAN_TXN;
    ret->txn = txn_new(TXN_CLIENT);
    ret->result_op = txn_create(ret->txn, r->path, value, 0);
}

static void plan_next_value(
        const struct actions *a, const struct request *r, cJSON *doc, struct bytes *stored, struct plan *ret)
{
    struct topic_assignment *old;
    struct zstat stat;
    struct bytes *value;
    char *why;
    int err;
    const char *topic = path_name(r->path);
    if (read_assignment(a, r->path, &old, &stat)) {
        err = topic_value_next(&a->topics, topic, old, doc, stored, &value, &why);
        topic_assignment_free(old);
    } else if (mirror_get(a->mirror, r->path, NULL, &stat) == ZOK) {
        err = topic_value_first(&a->topics, topic, doc, stored, &value, &why);
    } else {
        plan_refuse(ret, ENOENT, "there is no topic %s", topic);
        return;
    }
    if (err != 0) {
        refuse_with(ret, err, why);
        return;
    }
    ret->type = PLAN_TXN;
    ret->judge_again = true;
    ret->txn = txn_new(TXN_CLIENT);
    txn_expect(ret->txn, txn_set(ret->txn, r->path, value, -1), &stat);
}

void plan_topic_value(
        const struct actions *a, const struct request *r, cJSON *doc, struct bytes *stored, struct plan *ret)
{
    if (r->type == REQ_CREATE)
        plan_first_value(a, r, doc, stored, ret);
    else
        plan_next_value(a, r, doc, stored, ret);
}

/* ---- partitions ---- */

static void free_registration(void *p)
{
    broker_registration_free(p);
}

/* Live brokers as placement wants them; `registrations` keeps their racks. */
static GArray *live_brokers(const struct actions *a, GPtrArray *registrations)
{
    GArray *brokers = g_array_new(FALSE, FALSE, sizeof(struct placement_broker));
    g_autoptr(GPtrArray) names = mirror_children(a->mirror, "/brokers/ids");
    for (guint i = 0; names && i < names->len; i++) {
        struct placement_broker b;
        g_autofree char *path = path_join("/brokers/ids", names->pdata[i]);
        struct bytes *data = NULL;
        struct broker_registration *registration;
        if (!parse_id(names->pdata[i], &b.id) || mirror_get(a->mirror, path, &data, NULL) != ZOK)
            continue;
        if (broker_registration_decode(data, &registration, NULL)) {
            b.rack = registration->rack;
            g_ptr_array_add(registrations, registration);
            g_array_append_val(brokers, b);
        }
        bytes_unref(data);
    }
    return brokers;
}

static int place_partition(
        const struct actions *a, const struct topic_assignment *old, struct broker_ids **ret, char **ret_why)
{
    g_autoptr(GPtrArray) registrations = g_ptr_array_new_with_free_func(free_registration);
    g_autoptr(GArray) brokers = live_brokers(a, registrations);
    int64_t factor = a->default_int(a->ctx, "default.replication.factor", 1);
    return topic_value_place(
            &a->topics, old, factor, (struct placement_broker *)brokers->data, brokers->len, ret, ret_why);
}

/* Is it the next one? */
static bool refuse_number(const struct topic_assignment *old, const char *topic, int32_t number, struct plan *ret)
{
    if (topic_assignment_find(old, number)) {
        plan_refuse(ret, EEXIST, "topic %s has partition %" PRId32 " already", topic, number);
        return true;
    }
    guint next = old->partitions->len;
    if ((guint)number != next) {
        plan_refuse(ret, EINVAL, "partition %" PRId32 " is out of turn: the next one of topic %s is %u", number, topic,
                next);
        return true;
    }
    return false;
}

static void plan_grown(const struct actions *a, const struct request *r, const char *topic_path,
        const struct bytes *stored, const struct zstat *seen, struct topic_assignment *old, struct plan *ret)
{
    struct broker_ids *replicas;
    char *why;
    int err = place_partition(a, old, &replicas, &why);
    if (err != 0) {
        refuse_with(ret, err, why);
        return;
    }
    struct bytes *grown = topic_value_grown(stored, old, replicas);
    broker_ids_unref(replicas);
    if (grown->len > ZNODE_MAX_DATA) {
        bytes_unref(grown);
        plan_refuse(ret, EFBIG, "the assignment would have more than %d bytes", ZNODE_MAX_DATA);
        return;
    }
    ret->type = PLAN_TXN;
    ret->judge_again = true;
    ret->txn = txn_new(TXN_CLIENT);
    txn_expect(ret->txn, txn_set(ret->txn, topic_path, grown, -1), seen);
    ret->result_op = txn_create(ret->txn, r->path, NULL, 0);
}

void plan_new_partition(const struct actions *a, const struct request *r, struct plan *ret)
{
    g_autofree char *topic = path_component(r->path, 2), *topic_path = path_join("/brokers/topics", topic);
    struct bytes *stored = NULL;
    struct zstat stat;
    struct topic_assignment *old = NULL;
    int32_t number;
    g_autofree char *why = NULL;
    if (mirror_get(a->mirror, topic_path, &stored, &stat) != ZOK)
        plan_refuse(ret, ENOENT, "there is no topic %s", topic);
    else if (!stored || stored->len == 0)
        old = topic_assignment_new();
    else if (!topic_assignment_decode(stored, &old, &why))
        plan_refuse(ret, EINVAL, "the assignment of topic %s cannot be read: %s", topic, why);

    if (old && is_being_deleted(a, topic))
        plan_refuse(ret, EBUSY, "topic %s is being deleted", topic);
    else if (old && parse_id(path_name(r->path), &number) && !refuse_number(old, topic, number, ret))
        plan_grown(a, r, topic_path, stored, &stat, old, ret);
    bytes_unref(stored);
    topic_assignment_free(old);
}
