#include "controller/policy/schema.h"
#include <errno.h>
#include <string.h>
#include "controller/json/codec.h"
#include "controller/policy/config_text.h"
#include "controller/policy/policy.h"
#include "controller/policy/values.h"
#include "fs/tree/path.h"

enum rule_flags {
    DIRECTORY = 1, /* always shown as one */
    PROTECTED = 2,
    COMMAND = 4,   /* creating it empty is an action */
    MADE_NULL = 8, /* Kafka makes it with null data, so mkdir may */
    REQUEST = 16,  /* goes when it is done */
    ROOT = PROTECTED | MADE_NULL,
};

/* How a name below the parent is judged. */
enum name_rule { NAME_ANY, NAME_TOPIC, NAME_PARTITION, NAME_BROKER, NAME_BROKER_OR_DEFAULT, NAME_SEQUENTIAL };

struct rule {
    const char *pattern;
    unsigned flags;
    enum node_format format;
    value_check check;      /* FORMAT_JSON */
    enum name_rule name;    /* of this node */
    const char *sequential; /* prefix of its sequential children */
};

#define JSON(check_) .format = FORMAT_JSON, .check = (check_)

/* KafkaZkClient.createTopLevelPaths and ZkData's *ZNode objects. Anything that is not here is opaque. */
static const struct rule rules[] = {
        {"/admin", .flags = DIRECTORY | ROOT},
        {"/admin/delete_topics", .flags = DIRECTORY | ROOT},
        {"/admin/delete_topics/*", .flags = REQUEST, .name = NAME_TOPIC},
        {"/admin/reassign_partitions", JSON(check_reassignment)},
        {"/admin/preferred_replica_election", JSON(check_partition_list)},
        {"/brokers", .flags = DIRECTORY | ROOT},
        {"/brokers/ids", .flags = DIRECTORY | ROOT},
        {"/brokers/ids/*", .flags = COMMAND, JSON(check_registration), .name = NAME_BROKER},
        {"/brokers/seqid", .flags = ROOT},
        {"/brokers/topics", .flags = DIRECTORY | ROOT},
        {"/brokers/topics/*", .flags = DIRECTORY, JSON(check_topic), .name = NAME_TOPIC},
        {"/brokers/topics/*/partitions", .flags = DIRECTORY},
        {"/brokers/topics/*/partitions/*", .flags = DIRECTORY, .name = NAME_PARTITION},
        {"/brokers/topics/*/partitions/*/state", JSON(check_partition_state)},
        {"/cluster", .flags = DIRECTORY},
        {"/cluster/id", .flags = PROTECTED, JSON(check_cluster_id)},
        {"/config", .flags = DIRECTORY | ROOT},
        {"/config/brokers", .flags = DIRECTORY | ROOT},
        {"/config/brokers/*", .format = FORMAT_CONFIG, .name = NAME_BROKER_OR_DEFAULT},
        {"/config/changes", .flags = DIRECTORY | ROOT, .sequential = "config_change_"},
        {"/config/changes/*", JSON(check_config_change), .name = NAME_SEQUENTIAL},
        {"/config/clients", .flags = DIRECTORY | ROOT},
        {"/config/clients/*", .format = FORMAT_CONFIG},
        {"/config/ips", .flags = DIRECTORY | ROOT},
        {"/config/ips/*", .format = FORMAT_CONFIG},
        {"/config/topics", .flags = DIRECTORY | ROOT},
        {"/config/topics/*", .format = FORMAT_CONFIG, .name = NAME_TOPIC},
        {"/config/users", .flags = DIRECTORY | ROOT},
        {"/config/users/*", .flags = DIRECTORY, .format = FORMAT_CONFIG},
        {"/config/users/*/clients", .flags = DIRECTORY},
        {"/config/users/*/clients/*", .format = FORMAT_CONFIG},
        {"/consumers", .flags = DIRECTORY | ROOT},
        {"/consumers/*", .flags = DIRECTORY},
        {"/consumers/*/ids", .flags = DIRECTORY},
        {"/consumers/*/ids/*", JSON(check_consumer)},
        {"/consumers/*/offsets", .flags = DIRECTORY},
        {"/consumers/*/offsets/*", .flags = DIRECTORY},
        {"/consumers/*/offsets/*/*", .format = FORMAT_NUMBER, .name = NAME_PARTITION},
        {"/consumers/*/owners", .flags = DIRECTORY},
        {"/consumers/*/owners/*", .flags = DIRECTORY},
        {"/controller", JSON(check_controller)},
        {"/controller_epoch", .flags = PROTECTED, .format = FORMAT_NUMBER},
        {"/delegation_token", .flags = DIRECTORY},
        {"/delegation_token/token_changes", .flags = DIRECTORY, .sequential = "token_change_"},
        {"/delegation_token/token_changes/*", .name = NAME_SEQUENTIAL},
        {"/delegation_token/tokens", .flags = DIRECTORY},
        {"/delegation_token/tokens/*", JSON(check_delegation_token)},
        {"/feature", JSON(check_feature)},
        {"/isr_change_notification", .flags = DIRECTORY | ROOT, .sequential = "isr_change_"},
        {"/isr_change_notification/*", JSON(check_partition_list), .name = NAME_SEQUENTIAL},
        {"/kafka-acl", .flags = DIRECTORY},
        {"/kafka-acl/*", .flags = DIRECTORY},
        {"/kafka-acl/*/*", JSON(check_acl)},
        {"/kafka-acl-changes", .flags = DIRECTORY, .sequential = "acl_changes_"},
        {"/kafka-acl-changes/*", .name = NAME_SEQUENTIAL},
        {"/kafka-acl-extended", .flags = DIRECTORY},
        {"/kafka-acl-extended/*", .flags = DIRECTORY},
        {"/kafka-acl-extended/*/*", .flags = DIRECTORY},
        {"/kafka-acl-extended/*/*/*", JSON(check_acl)},
        {"/kafka-acl-extended-changes", .flags = DIRECTORY, .sequential = "acl_changes_"},
        {"/kafka-acl-extended-changes/*", JSON(check_extended_acl_change), .name = NAME_SEQUENTIAL},
        {"/latest_producer_id_block", .flags = ROOT, JSON(check_producer_id_block)},
        {"/log_dir_event_notification", .flags = DIRECTORY | ROOT, .sequential = "log_dir_event_"},
        {"/log_dir_event_notification/*", JSON(check_log_dir_event), .name = NAME_SEQUENTIAL},
        {"/migration", JSON(check_migration)},
};

/* Asked for each lookup and stat, so most rules are left behind by their first letters. The first component never is a
 * wildcard. */
static const struct rule *find_rule(const char *path)
{
    for (size_t i = 0; i < G_N_ELEMENTS(rules); i++)
        if (rules[i].pattern[1] == path[1] && rules[i].pattern[2] == path[2] && path_matches(path, rules[i].pattern))
            return &rules[i];
    return NULL;
}

static bool has_flag(const char *path, unsigned flag)
{
    const struct rule *rule = path[1] ? find_rule(path) : NULL;
    return rule && (rule->flags & flag);
}

bool kafka_always_directory(void *unused, const char *path)
{
    return path[1] == '\0' || has_flag(path, DIRECTORY);
}

enum node_format kafka_format(void *unused, const char *path)
{
    const struct rule *rule = path[1] ? find_rule(path) : NULL;
    return rule ? rule->format : FORMAT_OPAQUE;
}

bool kafka_created_empty(void *unused, const char *path)
{
    return has_flag(path, COMMAND);
}

bool kafka_is_request(void *unused, const char *path)
{
    return has_flag(path, REQUEST);
}

const char *kafka_sequential_prefix(void *unused, const char *parent)
{
    const struct rule *rule = parent[1] ? find_rule(parent) : NULL;
    return rule ? rule->sequential : NULL;
}

/* ZkData.SensitiveRootPaths */
bool kafka_sensitive(void *unused, const char *path)
{
    return path_is_under(path, "/config/users") || path_is_under(path, "/config/brokers") ||
           path_is_under(path, "/delegation_token/tokens");
}

bool schema_protected(const char *path)
{
    return has_flag(path, PROTECTED);
}

bool schema_is_root(const char *path)
{
    return has_flag(path, MADE_NULL);
}

/* ---- names ---- */

static bool is_sequential_name(const char *path, const char *name)
{
    g_autofree char *parent = path_parent(path);
    const char *prefix = kafka_sequential_prefix(NULL, parent);
    if (!g_str_has_prefix(name, prefix))
        return false;
    size_t digits = strlen(name + strlen(prefix));
    return digits <= 18 && strspn(name + strlen(prefix), "0123456789") == digits;
}

static const char *why_bad_name(enum name_rule rule, const char *path, const char *name)
{
    int32_t id;
    switch (rule) {
    case NAME_ANY:
        return NULL;
    case NAME_TOPIC:
        return topic_name_why_bad(name);
    case NAME_PARTITION:
        return parse_id(name, &id) ? NULL : "it is not a partition number";
    case NAME_BROKER:
        return parse_id(name, &id) ? NULL : "it is not a broker id";
    case NAME_BROKER_OR_DEFAULT:
        return parse_id(name, &id) || strcmp(name, "<default>") == 0 ? NULL : "it is neither a broker id nor <default>";
    case NAME_SEQUENTIAL:
        return is_sequential_name(path, name) ? NULL : "it is not the prefix of this directory and a number";
    }
    return NULL;
}

int schema_check_name(const char *path, char **ret_why)
{
    const struct rule *rule = find_rule(path);
    const char *name = path_name(path), *why = rule ? why_bad_name(rule->name, path, name) : NULL;
    if (!why)
        return 0;
    g_autofree char *shown = shown_text(name);
    *ret_why = g_strdup_printf("the name \"%s\" is not possible here: %s", shown, why);
    return EINVAL;
}

/* ---- values ---- */

static int check_json(const struct rule *rule, const char *text, size_t len, struct bytes **ret_stored, cJSON **ret_doc,
        char **ret_why)
{
    cJSON *doc = json_parse(text, len, ret_why);
    if (!doc)
        return EINVAL;
    if (!rule->check(doc, ret_why)) {
        cJSON_Delete(doc);
        return EINVAL;
    }
    *ret_stored = bytes_new(text, len);
    if (ret_doc)
        *ret_doc = doc;
    else
        cJSON_Delete(doc);
    return 0;
}

/* An offset may be -1; 64 bits. */
static int check_number(const char *text, size_t len, struct bytes **ret_stored, char **ret_why)
{
    g_autofree char *number = g_strndup(text, len);
    const char *digits = number + (*number == '-');
    gint64 value;
    if (strlen(number) == len && g_ascii_isdigit(*digits) &&
            g_ascii_string_to_signed(number, 10, G_MININT64, G_MAXINT64, &value, NULL)) {
        *ret_stored = bytes_new(text, len);
        return 0;
    }
    g_autofree char *shown = shown_text(number);
    *ret_why = g_strdup_printf("\"%s\" is not a number", shown);
    return EINVAL;
}

int schema_check_value(
        const char *path, const struct bytes *value, struct bytes **ret_stored, cJSON **ret_doc, char **ret_why)
{
    const struct rule *rule = path[1] ? find_rule(path) : NULL;
    enum node_format format = rule ? rule->format : FORMAT_OPAQUE;
    size_t len = value->len;
    if (format != FORMAT_OPAQUE && len > 0 && value->data[len - 1] == '\n')
        len--;
    if (len > ZNODE_MAX_DATA) {
        *ret_why = g_strdup_printf("%zu bytes are more than a znode can hold (%d)", len, ZNODE_MAX_DATA);
        return EFBIG;
    }
    switch (format) {
    case FORMAT_JSON:
        return check_json(rule, value->data, len, ret_stored, ret_doc, ret_why);
    case FORMAT_NUMBER:
        return check_number(value->data, len, ret_stored, ret_why);
    case FORMAT_CONFIG:
        return config_text_whole(path, value, ret_stored, ret_why);
    case FORMAT_OPAQUE:
        *ret_stored = bytes_new(value->data, len);
        return 0;
    }
    return EINVAL;
}
