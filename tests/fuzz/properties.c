/* server.properties, and the java.util.Properties syntax by itself. */
#include "controller/broker/properties.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    g_autoptr(GHashTable) table = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_autofree char *why = NULL, *why_config = NULL;
    struct broker_config *config;

    (void)properties_parse((const char *)input, size, table, &why);
    if (broker_config_parse("/fuzz/server.properties", (const char *)input, size, &config, &why_config) == 0) {
        FUZZ_CHECK(config->log_dirs->len > 0);
        broker_config_free(config);
    } else {
        FUZZ_CHECK(why_config != NULL);
    }
    return 0;
}
