/* kafka.zk.ConfigEntityZNode and ConfigEntityChangeNotificationZNode. */
#include "controller/json/json.h"

#include <string.h>

static bool decode_entries(const cJSON *config, GHashTable *entries, char **ret_why)
{
    for (const cJSON *e = config->child; e != NULL; e = e->next) {
        if (!cJSON_IsString(e))
            return json_fail(ret_why, "\"config\": the value of \"%s\" is not a string", json_clip(e->string));
        g_hash_table_insert(entries, g_strdup(e->string), g_strdup(e->valuestring));
    }
    return true;
}

bool config_entity_decode(const struct bytes *data, GHashTable **ret, char **ret_why)
{
    cJSON *root = json_document(data, ret_why);
    if (root == NULL)
        return false;
    const cJSON *config = cJSON_GetObjectItemCaseSensitive(root, "config");
    GHashTable *entries = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    bool good = !cJSON_IsObject(config) || decode_entries(config, entries, ret_why);
    cJSON_Delete(root);
    if (good)
        *ret = entries;
    else
        g_hash_table_unref(entries);
    return good;
}

static gint compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct bytes *config_entity_encode(GHashTable *config)
{
    GString *out = g_string_new("{\"version\":1,\"config\":{");
    guint n;
    g_autofree gpointer *keys = g_hash_table_get_keys_as_array(config, &n);
    if (n > 1)
        qsort(keys, n, sizeof(*keys), compare_names);
    for (guint i = 0; i < n; i++) {
        if (i > 0)
            g_string_append_c(out, ',');
        json_append_string(out, keys[i]);
        g_string_append_c(out, ':');
        json_append_string(out, g_hash_table_lookup(config, keys[i]));
    }
    g_string_append(out, "}}");
    return json_take(out);
}

static bool decode_change(const cJSON *root, char **ret_path, char **ret_why)
{
    const char *path, *type, *name;
    int32_t version;
    if (!json_field_int32(root, "version", &version, ret_why))
        return false;
    if (version == 1) {
        if (!json_field_string(root, "entity_type", &type, ret_why) ||
                !json_field_string(root, "entity_name", &name, ret_why))
            return false;
        if (strcmp(type, "topics") != 0 && strcmp(type, "clients") != 0)
            return json_fail(ret_why, "\"entity_type\" of version 1 is topics or clients, not \"%s\"", json_clip(type));
        *ret_path = g_strdup_printf("%s/%s", type, name);
        return true;
    }
    if (version != 2)
        return json_fail(ret_why, "\"version\" %d is neither 1 nor 2", version);
    if (!json_field_string(root, "entity_path", &path, ret_why))
        return false;
    if (strchr(path, '/') == NULL)
        return json_fail(ret_why, "\"entity_path\" is not <type>/<name>");
    *ret_path = g_strdup(path);
    return true;
}

bool config_change_decode(const struct bytes *data, char **ret_path, char **ret_why)
{
    cJSON *root = json_document(data, ret_why);
    bool good = root != NULL && decode_change(root, ret_path, ret_why);
    cJSON_Delete(root);
    return good;
}
