/* kafka.zk.TopicZNode, and the rule for topic names. */
#include "controller/json/json.h"

#include <string.h>

/* ---- the structure ---- */

static void partition_assignment_clear(gpointer item)
{
    struct partition_assignment *p = item;
    broker_ids_unref(p->replicas);
    broker_ids_unref(p->adding);
    broker_ids_unref(p->removing);
}

struct topic_assignment *topic_assignment_new(void)
{
    struct topic_assignment *a = g_new0(struct topic_assignment, 1);
    a->version = 3;
    a->partitions = g_array_new(FALSE, TRUE, sizeof(struct partition_assignment));
    g_array_set_clear_func(a->partitions, partition_assignment_clear);
    return a;
}

struct topic_assignment *topic_assignment_free(struct topic_assignment *a)
{
    if (a == NULL)
        return NULL;
    g_array_unref(a->partitions);
    g_free(a->unknown);
    g_free(a);
    return NULL;
}

/* Index of the first partition that is not below `partition`. */
static guint lower_bound(const GArray *partitions, int32_t partition)
{
    guint low = 0, high = partitions->len;
    while (low < high) {
        guint mid = low + (high - low) / 2;
        if (g_array_index(partitions, struct partition_assignment, mid).partition < partition)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct partition_assignment *topic_assignment_find(const struct topic_assignment *a, int32_t partition)
{
    guint i = lower_bound(a->partitions, partition);
    if (i == a->partitions->len)
        return NULL;
    struct partition_assignment *p = &g_array_index(a->partitions, struct partition_assignment, i);
    return p->partition == partition ? p : NULL;
}

void topic_assignment_add(struct topic_assignment *a, int32_t partition, struct broker_ids *replicas,
        struct broker_ids *adding, struct broker_ids *removing)
{
    struct partition_assignment p = {
            .partition = partition,
            .replicas = replicas != NULL ? replicas : broker_ids_new(NULL, 0),
            .adding = adding != NULL ? adding : broker_ids_new(NULL, 0),
            .removing = removing != NULL ? removing : broker_ids_new(NULL, 0),
    };
    g_array_insert_val(a->partitions, lower_bound(a->partitions, partition), p);
}

/* ---- the compact form, scanned; keys of a Scala map come in any order ---- */

struct replica_list {
    int32_t partition;
    struct broker_ids *ids; /* owned */
};

static void replica_list_clear(gpointer item)
{
    broker_ids_unref(((struct replica_list *)item)->ids);
}

static GArray *replica_lists_new(void)
{
    GArray *lists = g_array_new(FALSE, FALSE, sizeof(struct replica_list));
    g_array_set_clear_func(lists, replica_list_clear);
    return lists;
}

static gint compare_lists(gconstpointer a, gconstpointer b)
{
    int32_t x = ((const struct replica_list *)a)->partition, y = ((const struct replica_list *)b)->partition;
    return (x > y) - (x < y);
}

/* Sorts by partition; false if one occurs twice. */
static bool sort_lists(GArray *lists)
{
    g_array_sort(lists, compare_lists);
    for (guint i = 1; i < lists->len; i++)
        if (compare_lists(&g_array_index(lists, struct replica_list, i - 1),
                    &g_array_index(lists, struct replica_list, i)) == 0)
            return false;
    return true;
}

/* Canonical decimal, so that two keys are two partitions. */
static bool partition_number(const char *key, size_t len, int32_t *ret)
{
    int64_t value;
    if ((len > 1 && key[0] == '0') || key[0] == '-' || !json_decimal(key, len, 0, INT32_MAX, &value))
        return false;
    *ret = (int32_t)value;
    return true;
}

static bool scan_lists(struct json_scan *s, GArray *lists)
{
    const char *key;
    size_t len;
    if (lists->len > 0 || !json_scan_char(s, '{')) /* not empty: the key came twice */
        return false;
    if (json_scan_char(s, '}'))
        return true;
    do {
        struct replica_list list = {0};
        if (!json_scan_string(s, &key, &len) || !partition_number(key, len, &list.partition) ||
                !json_scan_char(s, ':') || !json_scan_ids(s, &list.ids))
            return false;
        g_array_append_val(lists, list);
    } while (json_scan_char(s, ','));
    return json_scan_char(s, '}') && sort_lists(lists);
}

static const char *const field_names[] = {
        "partitions", "adding_replicas", "removing_replicas", "topic_id", "version", NULL};

struct topic_parts {
    int32_t version; /* 0: not seen yet */
    char topic_id[23];
    char *unknown;
    GArray *partitions, *adding, *removing; /* struct replica_list, sorted */
};

static bool set_topic_id(struct topic_parts *t, const char *id, size_t len)
{
    static const char zero[] = "AAAAAAAAAAAAAAAAAAAAAA"; /* Uuid.ZERO_UUID: none */
    if (len != sizeof(zero) - 1)
        return false;
    char text[sizeof(zero)];
    memcpy(text, id, len);
    text[len] = '\0';
    if (!uuid_valid(text))
        return false;
    g_strlcpy(t->topic_id, strcmp(text, zero) == 0 ? "" : text, sizeof(t->topic_id));
    return true;
}

static bool scan_topic_field(struct json_scan *s, struct topic_parts *t, unsigned *seen)
{
    const char *key, *id;
    size_t len, id_len, i = 0;
    if (!json_scan_string(s, &key, &len) || !json_scan_char(s, ':'))
        return false;
    while (field_names[i] != NULL && (strlen(field_names[i]) != len || memcmp(field_names[i], key, len) != 0))
        i++;
    if (field_names[i] == NULL || (*seen & 1u << i) != 0)
        return false;
    *seen |= 1u << i;
    switch (i) {
    case 0:
        return scan_lists(s, t->partitions);
    case 1:
        return scan_lists(s, t->adding);
    case 2:
        return scan_lists(s, t->removing);
    case 3:
        return json_scan_string(s, &id, &id_len) && set_topic_id(t, id, id_len);
    default:
        return json_scan_int32(s, &t->version);
    }
}

static bool scan(const struct bytes *data, struct topic_parts *t)
{
    struct json_scan s = {data->data};
    unsigned seen = 0;
    if (!json_scan_char(&s, '{'))
        return false;
    do {
        if (!scan_topic_field(&s, t, &seen))
            return false;
    } while (json_scan_char(&s, ','));
    return json_scan_char(&s, '}') && s.p == data->data + data->len && t->version != 0;
}

/* ---- any form, by way of a tree ---- */

static bool decode_lists(const cJSON *root, const char *field, GArray *lists, bool *ret_present, char **ret_why)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(root, field);
    *ret_present = item != NULL;
    if (item == NULL)
        return true;
    if (!cJSON_IsObject(item))
        return json_fail(ret_why, "\"%s\" is not an object", field);
    for (const cJSON *e = item->child; e != NULL; e = e->next) {
        struct replica_list list = {0};
        if (!partition_number(e->string, strlen(e->string), &list.partition))
            return json_fail(ret_why, "\"%s\": \"%s\" is not a partition number", field, json_clip(e->string));
        g_autofree char *where = g_strdup_printf("\"%s\": \"%d\"", field, list.partition);
        if (!json_broker_ids(e, where, &list.ids, ret_why))
            return false;
        g_array_append_val(lists, list);
    }
    return sort_lists(lists); /* always true: json_parse() refuses equal keys */
}

static bool decode_object(const cJSON *root, struct topic_parts *t, char **ret_why)
{
    const cJSON *id = cJSON_GetObjectItemCaseSensitive(root, "topic_id");
    bool have_partitions, have_adding, have_removing;
    if (!decode_lists(root, "partitions", t->partitions, &have_partitions, ret_why) ||
            !decode_lists(root, "adding_replicas", t->adding, &have_adding, ret_why) ||
            !decode_lists(root, "removing_replicas", t->removing, &have_removing, ret_why))
        return false;
    if (id != NULL && !(cJSON_IsString(id) && set_topic_id(t, id->valuestring, strlen(id->valuestring))))
        return json_fail(ret_why, "\"topic_id\" is not 22 characters of URL-safe base64");
    int64_t version;
    if (json_integer(cJSON_GetObjectItemCaseSensitive(root, "version"), 1, INT32_MAX, &version))
        t->version = (int32_t)version;
    else
        t->version = id != NULL ? 3 : have_adding || have_removing ? 2 : 1;
    t->unknown = json_unknown_members(root, field_names);
    return true;
}

static struct broker_ids *take_list(GArray *lists, guint *at, int32_t partition)
{
    while (*at < lists->len && g_array_index(lists, struct replica_list, *at).partition < partition)
        (*at)++;
    if (*at == lists->len || g_array_index(lists, struct replica_list, *at).partition != partition)
        return broker_ids_new(NULL, 0);
    return broker_ids_ref(g_array_index(lists, struct replica_list, *at).ids);
}

static struct topic_assignment *join(struct topic_parts *t)
{
    struct topic_assignment *a = topic_assignment_new();
    a->version = CLAMP(t->version, 1, 3);
    g_strlcpy(a->topic_id, t->topic_id, sizeof(a->topic_id));
    a->unknown = g_steal_pointer(&t->unknown);
    guint adding = 0, removing = 0;
    for (guint i = 0; i < t->partitions->len; i++) {
        struct replica_list *list = &g_array_index(t->partitions, struct replica_list, i);
        struct partition_assignment p = {
                .partition = list->partition,
                .replicas = broker_ids_ref(list->ids),
                .adding = take_list(t->adding, &adding, list->partition),
                .removing = take_list(t->removing, &removing, list->partition),
        };
        g_array_append_val(a->partitions, p);
    }
    return a;
}

static void topic_parts_init(struct topic_parts *t)
{
    *t = (struct topic_parts){
            .partitions = replica_lists_new(),
            .adding = replica_lists_new(),
            .removing = replica_lists_new(),
    };
}

static void topic_parts_clear(struct topic_parts *t)
{
    g_array_unref(t->partitions);
    g_array_unref(t->adding);
    g_array_unref(t->removing);
    g_free(t->unknown);
}

bool topic_assignment_decode(const struct bytes *data, struct topic_assignment **ret, char **ret_why)
{
    struct topic_parts t;
    topic_parts_init(&t);
    bool good = data != NULL && scan(data, &t);
    if (!good) {
        topic_parts_clear(&t);
        topic_parts_init(&t);
        cJSON *root = json_document(data, ret_why);
        good = root != NULL && decode_object(root, &t, ret_why);
        cJSON_Delete(root);
    }
    if (good)
        *ret = join(&t);
    topic_parts_clear(&t);
    return good;
}

/* ---- writing ---- */

enum which { REPLICAS, ADDING, REMOVING };

static struct broker_ids *list_of(const struct partition_assignment *p, enum which which)
{
    return which == REPLICAS ? p->replicas : which == ADDING ? p->adding : p->removing;
}

/* Only partitions under reassignment appear among the adding and removing ones. */
static void append_lists(GString *out, const struct topic_assignment *a, enum which which)
{
    char separator = '{';
    for (guint i = 0; i < a->partitions->len; i++) {
        const struct partition_assignment *p = &g_array_index(a->partitions, struct partition_assignment, i);
        const struct broker_ids *ids = list_of(p, which);
        if (which != REPLICAS && ids->n == 0)
            continue;
        g_string_append_c(out, separator);
        g_string_append_c(out, '"');
        json_append_int(out, p->partition);
        g_string_append(out, "\":");
        json_append_ids(out, ids);
        separator = ',';
    }
    g_string_append(out, separator == '{' ? "{}" : "}");
}

struct bytes *topic_assignment_encode(const struct topic_assignment *a)
{
    GString *out = g_string_sized_new(128 + a->partitions->len * 16);
    int version = a->topic_id[0] != '\0' ? 3 : a->version;
    if (version < 3) {
        g_string_append_printf(out, "{\"version\":%d,\"partitions\":", version);
        append_lists(out, a, REPLICAS);
        if (version == 2) {
            g_string_append(out, ",\"adding_replicas\":");
            append_lists(out, a, ADDING);
            g_string_append(out, ",\"removing_replicas\":");
            append_lists(out, a, REMOVING);
        }
    } else {
        g_string_append(out, "{\"removing_replicas\":");
        append_lists(out, a, REMOVING);
        g_string_append(out, ",\"partitions\":");
        append_lists(out, a, REPLICAS);
        if (a->topic_id[0] != '\0')
            g_string_append_printf(out, ",\"topic_id\":\"%s\"", a->topic_id);
        g_string_append(out, ",\"adding_replicas\":");
        append_lists(out, a, ADDING);
        g_string_append(out, ",\"version\":3");
    }
    g_string_append_printf(out, "%s}", a->unknown != NULL ? a->unknown : "");
    return json_take(out);
}

/* ---- names ---- */

const char *topic_name_why_bad(const char *name)
{
    enum { MAX_TOPIC_NAME = 249 };
    size_t len = strlen(name);
    if (len == 0)
        return "a topic name must not be empty";
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return "a topic name must not be \".\" or \"..\"";
    if (len > MAX_TOPIC_NAME)
        return "a topic name must not be longer than 249 characters";
    for (const char *c = name; *c != '\0'; c++)
        if (!g_ascii_isalnum(*c) && *c != '.' && *c != '_' && *c != '-')
            return "a topic name holds only letters, digits, '.', '_' and '-'";
    return NULL;
}
