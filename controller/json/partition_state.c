/* kafka.zk.TopicPartitionStateZNode. Decoded for every partition at a failover, so the compact form is scanned without
 * building a tree. */
#include "controller/json/json.h"

#include <string.h>

enum { LEADER = 1, LEADER_EPOCH = 2, CONTROLLER_EPOCH = 4, ISR = 8, RECOVERY = 16, VERSION = 32 };
enum { REQUIRED = LEADER | LEADER_EPOCH | CONTROLLER_EPOCH | ISR };

static unsigned field_of(const char *key, size_t len)
{
    static const struct {
        const char *name;
        size_t len;
        unsigned field;
    } fields[] = {
            {"controller_epoch", 16, CONTROLLER_EPOCH},
            {"leader", 6, LEADER},
            {"version", 7, VERSION},
            {"leader_epoch", 12, LEADER_EPOCH},
            {"isr", 3, ISR},
            {"leader_recovery_state", 21, RECOVERY},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++)
        if (fields[i].len == len && memcmp(fields[i].name, key, len) == 0)
            return fields[i].field;
    return 0;
}

static bool scan_field(struct json_scan *s, struct leader_and_isr *l, unsigned *seen)
{
    const char *key;
    size_t len;
    int32_t number;
    if (!json_scan_string(s, &key, &len) || !json_scan_char(s, ':'))
        return false;
    unsigned field = field_of(key, len);
    if (field == 0 || (*seen & field) != 0)
        return false;
    *seen |= field;
    if (field == ISR)
        return json_scan_ids(s, &l->isr);
    if (!json_scan_int32(s, &number))
        return false;
    if (field == LEADER)
        l->leader = number;
    else if (field == LEADER_EPOCH)
        l->leader_epoch = number;
    else if (field == CONTROLLER_EPOCH)
        l->controller_epoch = number;
    else if (field == RECOVERY)
        l->leader_recovery_state = (int8_t)number;
    return field != RECOVERY || number == 0 || number == 1;
}

/* All of the text in the compact form, or false. */
static bool scan(const struct bytes *data, struct leader_and_isr *ret)
{
    struct json_scan s = {data->data};
    struct leader_and_isr l = {0};
    unsigned seen = 0;
    bool good = json_scan_char(&s, '{');
    while (good) {
        good = scan_field(&s, &l, &seen);
        if (good && !json_scan_char(&s, ','))
            break;
    }
    if (!good || !json_scan_char(&s, '}') || s.p != data->data + data->len || (seen & REQUIRED) != REQUIRED) {
        broker_ids_unref(l.isr);
        return false;
    }
    *ret = l;
    return true;
}

static bool decode_object(const cJSON *root, struct leader_and_isr *l, char **ret_why)
{
    const cJSON *isr = cJSON_GetObjectItemCaseSensitive(root, "isr");
    const cJSON *recovery = cJSON_GetObjectItemCaseSensitive(root, "leader_recovery_state");
    int64_t state = 0;
    if (!json_field_int32(root, "leader", &l->leader, ret_why) ||
            !json_field_int32(root, "leader_epoch", &l->leader_epoch, ret_why) ||
            !json_field_int32(root, "controller_epoch", &l->controller_epoch, ret_why))
        return false;
    if (recovery != NULL && !json_integer(recovery, 0, 1, &state))
        return json_fail(ret_why, "\"leader_recovery_state\" is neither 0 nor 1");
    l->leader_recovery_state = (int8_t)state;
    if (isr == NULL)
        return json_fail(ret_why, "\"isr\" is missing");
    return json_broker_ids(isr, "\"isr\"", &l->isr, ret_why);
}

bool leader_and_isr_decode(const struct bytes *data, struct leader_and_isr *ret, char **ret_why)
{
    if (data != NULL && scan(data, ret))
        return true;
    cJSON *root = json_document(data, ret_why);
    if (root == NULL)
        return false;
    struct leader_and_isr l = {0};
    bool good = decode_object(root, &l, ret_why);
    cJSON_Delete(root);
    if (good)
        *ret = l;
    return good;
}

struct bytes *leader_and_isr_encode(const struct leader_and_isr *l)
{
    GString *out = g_string_sized_new(128);
    g_string_append(out, "{\"controller_epoch\":");
    json_append_int(out, l->controller_epoch);
    g_string_append(out, ",\"leader\":");
    json_append_int(out, l->leader);
    g_string_append(out, ",\"version\":1,\"leader_epoch\":");
    json_append_int(out, l->leader_epoch);
    g_string_append(out, ",\"isr\":");
    json_append_ids(out, l->isr);
    if (l->leader_recovery_state != 0)
        g_string_append(out, ",\"leader_recovery_state\":1");
    g_string_append_c(out, '}');
    return json_take(out);
}

void leader_and_isr_clear(struct leader_and_isr *l)
{
    l->isr = broker_ids_unref(l->isr);
}
