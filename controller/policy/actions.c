#include "controller/policy/actions.h"
#include <errno.h>
#include <string.h>
#include "controller/policy/config_text.h"
#include "controller/policy/policy.h"
#include "controller/policy/schema.h"
#include "controller/policy/topic_actions.h"
#include "controller/policy/values.h"
#include "fs/tree/path.h"

#define CONTROLLER "/controller"
#define BROKER_IDS "/brokers/ids"
#define DELETE_TOPICS "/admin/delete_topics"
#define PARTITION_STATE "/brokers/topics/*/partitions/*/state"

static bool is_broker(const char *path, int32_t *ret_id)
{
    const char *name = path_child_of(path, BROKER_IDS);
    return name && parse_id(name, ret_id);
}

enum action_command actions_command(const struct request *request, int32_t *ret_broker, const char **ret_topic)
{
    if (is_broker(request->path, ret_broker))
        return request->type == REQ_CREATE || request->type == REQ_TOUCH ? COMMAND_START_BROKER : COMMAND_KILL_BROKER;
    *ret_topic = path_child_of(request->path, DELETE_TOPICS);
    return COMMAND_RETRY_DELETION;
}

static void plan_command(struct plan *ret)
{
    ret->type = PLAN_COMMAND;
}

static void plan_nothing(struct plan *ret)
{
    ret->type = PLAN_NOTHING;
}

static void refuse_with(struct plan *ret, int err, char *why)
{
    plan_refuse(ret, err, "%s", why);
    g_free(why);
}

/* ---- sequential names ---- */

static bool is_sequential_prefix(const char *path)
{
    g_autofree char *parent = path_parent(path);
    const char *prefix = kafka_sequential_prefix(NULL, parent);
    return prefix && strcmp(path_name(path), prefix) == 0;
}

static void plan_sequential(const char *path, struct bytes *data, struct plan *ret)
{
    ret->type = PLAN_TXN;
    ret->txn = txn_new(TXN_CLIENT);
    ret->result_op = txn_create(ret->txn, path, bytes_ref(data), CREATE_SEQUENTIAL);
}

/* ---- brokers/ids and controller, which are the same in every mount ---- */

/* A registration without a session was planted (in a raw mount); it has no broker behind it. */
static bool has_session(const struct actions *a, const char *path)
{
    struct zstat stat;
    return mirror_get(a->mirror, path, NULL, &stat) == ZOK && stat.ephemeral_owner != 0;
}

static bool plan_registration(const struct actions *a, const struct request *r, struct plan *ret)
{
    switch (r->type) {
    case REQ_CREATE:
        if (r->value->len == 0)
            plan_command(ret);
        else
            plan_refuse(ret, EPERM, "a broker registers itself: `touch` starts it");
        return true;
    case REQ_MKDIR:
        plan_refuse(ret, EPERM, "a broker registers itself: `touch` starts it");
        return true;
    case REQ_TOUCH: /* of a broker that runs it is nothing, of one that is dying it is a start */
        if (has_session(a, r->path))
            plan_command(ret);
        else
            plan_nothing(ret);
        return true;
    case REQ_UNLINK:
    case REQ_RMDIR:
        if (!has_session(a, r->path))
            return false;
        plan_command(ret);
        return true;
    default:
        return false;
    }
}

/* `path` (of a rename: the new one) would become a registration or a controller by another hand than its own. */
static bool refuse_planting(const struct request *r, struct plan *ret)
{
    const char *target = r->type == REQ_RENAME ? r->new_path : r->path;
    bool makes = r->type == REQ_CREATE || r->type == REQ_MKDIR || r->type == REQ_RENAME;
    int32_t id;
    if (makes && strcmp(target, CONTROLLER) == 0) {
        plan_refuse(ret, EPERM, "the controller is elected: `rm` of this entry starts an election");
        return true;
    }
    if (r->type == REQ_RENAME && (is_broker(target, &id) || (r->path && is_broker(r->path, &id)))) {
        plan_refuse(ret, EPERM, "a broker registers itself: its entry cannot be moved");
        return true;
    }
    return false;
}

/* Rules that `-o raw` keeps. False: none applies. */
static bool plan_always(const struct actions *a, const struct request *r, struct plan *ret)
{
    int32_t id;
    if (refuse_planting(r, ret))
        return true;
    if (r->path && is_broker(r->path, &id) && plan_registration(a, r, ret))
        return true;
    if (r->type == REQ_TOUCH) {
        if (path_child_of(r->path, DELETE_TOPICS))
            plan_command(ret);
        else
            plan_nothing(ret);
        return true;
    }
    return false;
}

static void plan_raw(const struct actions *a, const struct request *r, struct plan *ret)
{
    bool creates = r->type == REQ_CREATE || r->type == REQ_MKDIR;
    if (creates && is_sequential_prefix(r->path))
        plan_sequential(r->path, r->type == REQ_CREATE ? (struct bytes *)r->value : NULL, ret);
    else if (r->type == REQ_RENAME && !r->path && is_sequential_prefix(r->new_path))
        plan_sequential(r->new_path, (struct bytes *)r->value, ret);
    else
        plan_default(a->mirror, r, ret);
}

/* ---- what is refused outside raw ---- */

static bool is_removal(const struct request *r)
{
    return r->type == REQ_UNLINK || r->type == REQ_RMDIR;
}

/* Refuses what the tree's own keepers alone may do. */
static bool refuse_protected(const struct request *r, struct plan *ret)
{
    if (schema_protected(r->path) && !(r->type == REQ_MKDIR && schema_is_root(r->path))) {
        plan_refuse(ret, EPERM, "the cluster needs this entry as it is; `-o raw` allows it");
        return true;
    }
    if (strcmp(r->path, CONTROLLER) == 0 && !is_removal(r)) {
        plan_refuse(ret, EPERM, "the controller is elected: `rm` of this entry starts an election");
        return true;
    }
    if ((r->type == REQ_CREATE || r->type == REQ_MKDIR) && path_matches(r->path, PARTITION_STATE)) {
        plan_refuse(ret, EPERM, "the controller makes the state of a partition");
        return true;
    }
    if (r->type == REQ_CREATE && kafka_format(NULL, r->path) == FORMAT_OPAQUE &&
            kafka_always_directory(NULL, r->path)) {
        plan_refuse(ret, EISDIR, "this is a directory in Kafka's tree: use mkdir");
        return true;
    }
    return false;
}

/* The name of a node that is to be made. */
static bool refuse_name(const char *path, struct plan *ret)
{
    char *why;
    int err = is_sequential_prefix(path) ? 0 : schema_check_name(path, &why);
    if (err != 0)
        refuse_with(ret, err, why);
    return err != 0;
}

int actions_may_write(const char *path, bool creates, char **ret_why)
{
    const struct request r = {.type = creates ? REQ_CREATE : REQ_SET, .path = path};
    struct plan plan = {0};
    int32_t id;
    if (creates && is_broker(path, &id))
        plan_refuse(&plan, EPERM, "a broker registers itself: `touch` starts it");
    else if (!refuse_protected(&r, &plan) && creates)
        refuse_name(path, &plan);
    *ret_why = g_steal_pointer(&plan.reason);
    return plan.err;
}

/* ---- values ---- */

static bool is_topic(const char *path)
{
    return path_child_of(path, "/brokers/topics") != NULL;
}

/* A create or set whose value has been judged: `stored`. */
static void plan_value(const struct actions *a, const struct request *r, struct bytes *stored, struct plan *ret)
{
    if (r->type == REQ_CREATE && is_sequential_prefix(r->path)) {
        plan_sequential(r->path, stored, ret);
        return;
    }
    struct request judged = *r;
    judged.value = stored;
    plan_default(a->mirror, &judged, ret);
}

static void plan_write(const struct actions *a, const struct request *r, struct plan *ret)
{
    bool has_format = kafka_format(NULL, r->path) != FORMAT_OPAQUE;
    if (!r->value) {
        plan_default(a->mirror, r, ret);
        return;
    }
    if (has_format && r->value->len == 0) {
        if (r->type == REQ_SET)
            plan_nothing(ret);
        else
            plan_refuse(ret, EINVAL, "this entry needs a value");
        return;
    }

    struct bytes *stored;
    cJSON *doc = NULL;
    char *why;
    int err = schema_check_value(r->path, r->value, &stored, is_topic(r->path) ? &doc : NULL, &why);
    if (err != 0) {
        refuse_with(ret, err, why);
        return;
    }
    if (is_topic(r->path))
        plan_topic_value(a, r, doc, stored, ret);
    else
        plan_value(a, r, stored, ret);
    bytes_unref(stored);
    cJSON_Delete(doc);
}

/* `>> config/...`: one key, on the value that is there at the commit. */
static void plan_append(const struct actions *a, const struct request *r, struct plan *ret)
{
    struct bytes *old = NULL, *stored;
    struct zstat stat;
    char *why;
    bool exists = mirror_get(a->mirror, r->path, &old, &stat) == ZOK;
    if (!exists && refuse_name(r->path, ret))
        return;
    int err = config_text_apply_line(r->path, old, r->value, &stored, &why);
    bytes_unref(old);
    if (err == 0 && stored && stored->len > ZNODE_MAX_DATA) {
        bytes_unref(stored);
        why = g_strdup_printf("the value would have more than %d bytes", ZNODE_MAX_DATA);
        err = EFBIG;
    }
    if (err != 0) {
        refuse_with(ret, err, why);
        return;
    }
    if (!stored) {
        plan_nothing(ret);
        return;
    }
    ret->type = PLAN_TXN;
    ret->judge_again = true;
    ret->txn = txn_new(TXN_CLIENT);
    ret->result_op = exists ? txn_set(ret->txn, r->path, stored, -1) : txn_create(ret->txn, r->path, stored, 0);
    if (exists)
        txn_expect(ret->txn, ret->result_op, &stat);
}

/* ---- renames ---- */

/* What may be moved away: a plain file. Returns its data. */
static bool take_source(
        const struct actions *a, const char *path, struct bytes **ret_data, struct zstat *ret_stat, struct plan *ret)
{
    mirror_rdlock(a->mirror);
    struct znode *n = mirror_find(a->mirror, path);
    bool directory = n && znode_is_directory(n);
    if (n && !directory) {
        *ret_data = bytes_ref(znode_data(n));
        *ret_stat = *znode_stat(n);
    }
    mirror_unlock(a->mirror);

    if (!n)
        plan_refuse(ret, ENOENT, "there is no such entry");
    else if (directory)
        plan_refuse(ret, EPERM, "a directory cannot be moved");
    else if (schema_protected(path))
        plan_refuse(ret, EPERM, "the cluster needs this entry as it is; `-o raw` allows it");
    else if (ret_stat->ephemeral_owner != 0)
        plan_refuse(ret, EPERM, "an ephemeral entry cannot be moved");
    else
        return true;
    ret->of_source = true;
    if (n && !directory)
        bytes_unref(*ret_data);
    return false;
}

static void plan_judged(const struct actions *a, const struct request *r, struct plan *ret);

/* The target is judged as if its new value were written, and the source goes in the same transaction. */
static void plan_rename(const struct actions *a, const struct request *r, struct plan *ret)
{
    struct bytes *data = NULL;
    struct zstat source = {0};
    if (r->path && !take_source(a, r->path, &data, &source, ret))
        return;

    bool exists = !is_sequential_prefix(r->new_path) && mirror_exists(a->mirror, r->new_path);
    struct request write = *r;
    write.type = exists ? REQ_SET : REQ_CREATE;
    write.path = r->new_path;
    write.new_path = NULL;
    write.value = r->path ? data : r->value;
    if (exists && !r->replace)
        plan_refuse(ret, EEXIST, "%s is there already", r->new_path);
    else
        plan_judged(a, &write, ret);
    bytes_unref(data);

    if (r->path && ret->type == PLAN_TXN) {
        txn_expect(ret->txn, txn_delete(ret->txn, r->path, -1), &source);
        ret->judge_again = true;
    } else if (ret->type == PLAN_NOTHING) {
        plan_clear(ret);
        plan_refuse(ret, EINVAL, "an empty value is no value for %s", r->new_path);
    }
}

/* ---- the whole ---- */

static void plan_create(const struct actions *a, const struct request *r, struct plan *ret)
{
    if (refuse_name(r->path, ret))
        return;
    if (r->type == REQ_CREATE)
        plan_write(a, r, ret);
    else if (is_sequential_prefix(r->path))
        plan_sequential(r->path, NULL, ret);
    else if (is_topic(r->path))
        plan_new_topic(a, r, ret);
    else if (path_matches(r->path, "/brokers/topics/*/partitions/*"))
        plan_new_partition(a, r, ret);
    else
        plan_default(a->mirror, r, ret);
}

static void plan_judged(const struct actions *a, const struct request *r, struct plan *ret)
{
    if (r->type == REQ_RENAME) {
        plan_rename(a, r, ret);
        return;
    }
    if (refuse_protected(r, ret))
        return;
    switch (r->type) {
    case REQ_MKDIR:
    case REQ_CREATE:
        plan_create(a, r, ret);
        break;
    case REQ_SET:
        plan_write(a, r, ret);
        break;
    case REQ_APPEND:
        plan_append(a, r, ret);
        break;
    default:
        plan_default(a->mirror, r, ret);
        break;
    }
}

void actions_plan(const struct actions *a, const struct request *request, struct plan *ret)
{
    *ret = (struct plan){0};
    if (plan_always(a, request, ret))
        return;
    if (request->raw)
        plan_raw(a, request, ret);
    else
        plan_judged(a, request, ret);
}
