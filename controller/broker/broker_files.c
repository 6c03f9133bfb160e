/* Finding the properties file of one broker, when it is started by its id. */
#include "controller/broker/engine_internal.h"
#include "controller/broker/cluster_files.h"
#include <errno.h>

static int load_if_it_is(const char *file, int32_t id, struct broker_config **ret, char **ret_why)
{
    struct broker_config *config;
    int r = broker_config_load(file, &config, ret_why);

    if (r < 0)
        return r;
    if (config->broker_id != id && config->broker_id >= 0) {
        *ret_why = g_strdup_printf("%s: is for broker %d, not %d", file, config->broker_id, id);
        broker_config_free(config);
        return -EINVAL;
    }
    *ret = config;
    return 0;
}

int broker_file_find(struct engine *e, int32_t id, const char *known_file, struct broker_config **ret, char **ret_why)
{
    g_autofree char *file = NULL;

    if (known_file && g_file_test(known_file, G_FILE_TEST_EXISTS)) {
        int32_t said = cluster_files_guess_id(known_file);
        if (!e->cluster_dir || said == id || said < 0)
            return load_if_it_is(known_file, id, ret, ret_why);
    }
    if (!e->cluster_dir) {
        *ret_why = known_file ? g_strdup_printf("%s: is gone", known_file)
                              : g_strdup_printf("broker %d is none of this daemon's (option -b)", id);
        return -ENOENT;
    }
    file = cluster_files_find(e->cluster_dir, id);
    int r = file ? 0 : cluster_files_make(e->cluster_dir, id, &file, ret_why);
    if (r < 0)
        return r;
    return load_if_it_is(file, id, ret, ret_why);
}
