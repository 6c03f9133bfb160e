/* Values of dynamic configuration: one value of each type and rule, lists of throttled replicas, quoted names, and the
 * lines or the JSON that are written to an entity's node. The first byte chooses, the next ones say which key or
 * entity.
 */
#include <math.h>
#include <string.h>
#include "controller/config/entity.h"
#include "controller/config/sanitizer.h"
#include "controller/config/throttle.h"
#include "controller/config/value.h"
#include "controller/json/codec.h"
#include "controller/policy/config_text.h"
#include "tests/fuzz/fuzz.h"

static const struct config_table *const tables[] = {&config_table_topic, &config_table_broker,
        &config_table_quota_client, &config_table_quota_user, &config_table_quota_ip, &config_table_quota_broker};

/* What a value is printed as must read as the same value. */
static void check_value(const struct config_def *def, const char *text)
{
    g_autofree char *printed = NULL, *again = NULL, *why = NULL;

    if (config_value_parse(def, text, &printed, &why) < 0) {
        FUZZ_CHECK(why != NULL && printed == NULL);
        FUZZ_CHECK(!config_def_is_secret(def) || strlen(text) < 12 || !strstr(why, text));
        return;
    }
    FUZZ_CHECK(why == NULL && printed != NULL);
    FUZZ_CHECK(config_value_parse(def, printed, &again, NULL) == 0);
    FUZZ_CHECK(strcmp(printed, again) == 0);
}

static void value(uint8_t which, const uint8_t *input, size_t size)
{
    const struct config_table *table = tables[which % G_N_ELEMENTS(tables)];
    g_autofree char *text = NULL;

    if (size < 2)
        return;
    text = g_strndup((const char *)input + 2, size - 2);
    check_value(&table->defs[((size_t)input[0] | (size_t)input[1] << 8) % table->n], text);
}

static void numbers(uint8_t which, const uint8_t *input, size_t size)
{
    g_autofree char *text = g_strndup((const char *)input, size), *printed = NULL;
    int64_t number;
    double real;

    if (config_parse_long(text, &number)) {
        int64_t again;
        g_autofree char *plain = g_strdup_printf("%" G_GINT64_FORMAT, number);
        FUZZ_CHECK(config_parse_long(plain, &again) && again == number);
    }
    if (size < sizeof real)
        return;
    memcpy(&real, input, sizeof real);
    if (!isfinite(real))
        return;
    printed = config_format_double(real);
    FUZZ_CHECK(g_ascii_strtod(printed, NULL) == real);
}

static void throttle(uint8_t which, const uint8_t *input, size_t size)
{
    g_autofree char *text = g_strndup((const char *)input, size), *own = NULL;

    if (!throttle_list_valid(text))
        return;
    own = throttle_list_own(text, which);
    FUZZ_CHECK(!own || strcmp(own, "*") == 0 || strspn(own, "0123456789,") == strlen(own));
}

static void names(uint8_t which, const uint8_t *input, size_t size)
{
    g_autofree char *text = g_strndup((const char *)input, size), *quoted = NULL, *meant = NULL, *one = NULL,
                    *two = NULL;
    struct config_entity entity = {0};
    g_autofree char *why = NULL;
    size_t len;

    quoted = sanitizer_sanitize((const char *)input, size);
    FUZZ_CHECK(sanitizer_desanitize(quoted, &meant, &len));
    FUZZ_CHECK(len == size && (size == 0 || memcmp(meant, input, size) == 0));
    one = sanitizer_canonical(text);
    if (one) {
        two = sanitizer_canonical(one);
        FUZZ_CHECK(two && strcmp(one, two) == 0);
    }
    if (config_entity_parse(text, &entity, &why) == 0) {
        FUZZ_CHECK(entity.path && entity.name);
        config_entity_clear(&entity);
    } else {
        FUZZ_CHECK(why != NULL);
    }
}

/* What is stored for a value that was taken is a configuration, and is taken again. */
static void written(uint8_t which, const uint8_t *input, size_t size)
{
    static const char *const paths[] = {"/config/topics/t", "/config/brokers/1", "/config/brokers/<default>",
            "/config/users/u", "/config/users/u/clients/c", "/config/clients/<default>", "/config/ips/127.0.0.1"};
    const char *path = paths[which % G_N_ELEMENTS(paths)];
    struct bytes *value = bytes_new(input, size), *stored = NULL, *again = NULL, *with_line = NULL;
    g_autofree char *why = NULL, *why_line = NULL;
    GHashTable *config;

    if (config_text_whole(path, value, &stored, &why) == 0) {
        FUZZ_CHECK(config_text_whole(path, stored, &again, NULL) == 0);
        if (stored->len > 0) {
            FUZZ_CHECK(config_entity_decode(stored, &config, NULL));
            g_hash_table_unref(config);
        }
    } else {
        FUZZ_CHECK(why != NULL);
    }
    if (!memchr(input, '\n', size) &&
            config_text_check_line(path, NULL, 0, (const char *)input, size, &why_line) == 0) {
        g_autofree char *why_apply = NULL;
        FUZZ_CHECK(config_text_apply_line(path, stored, value, &with_line, &why_apply) == 0 || why_apply);
    }
    bytes_unref(with_line);
    bytes_unref(again);
    bytes_unref(stored);
    bytes_unref(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    static void (*const parts[])(uint8_t which, const uint8_t *input, size_t size) = {
            value, numbers, throttle, names, written};

    if (size >= 2)
        parts[input[0] % G_N_ELEMENTS(parts)](input[1], input + 2, size - 2);
    return 0;
}
