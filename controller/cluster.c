#include "controller/cluster.h"
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "controller/broker/engine.h"
#include "controller/broker/cluster_files.h"
#include "controller/policy/policy.h"
#include "controller/thread.h"

struct cluster {
    struct store *store;
    struct mirror *mirror;
    struct settle *settle;
    struct journal *errors;
    struct controller_thread *controller;
    struct engine *engine;
    struct policy *policy;
    bool has_dir, has_broker; /* a cluster directory; a broker that will start */
    pthread_mutex_t lock;     /* protects the two flags below; held while threads are started */
    pthread_cond_t changed;
    bool settled, stopping;
};

/* ---- the link from the controller to the brokers ---- */

static void link_request(void *ctx, int32_t controller_id, int32_t broker_id, int64_t broker_epoch,
        struct control_request *request, gen_t gen)
{
    struct cluster *c = ctx;
    engine_request(c->engine, controller_id, broker_id, broker_epoch, request, gen);
}

static void link_respond(void *ctx, struct broker_request *request, gen_t gen)
{
    struct cluster *c = ctx;
    engine_respond(c->engine, request, gen);
}

/* ---- broker files ---- */

/* What the files read so far have taken. */
struct taken {
    GHashTable *files; /* real path: a set */
    GHashTable *dirs;  /* real path of a log dir -> its broker's file; both owned */
};

static char *real_path(const char *path)
{
    char *real = realpath(path, NULL);
    char *copy = g_strdup(real ? real : path);
    free(real);
    return copy;
}

/* The daemon leaves the working directory, and reads a file anew when its broker is started again. */
static char *absolute_path(const char *path)
{
    g_autofree char *here = g_get_current_dir();
    return g_path_is_absolute(path) ? g_strdup(path) : g_build_filename(here, path, NULL);
}

/* A log dir that an earlier broker has; NULL if none. */
static const char *dir_taken(const struct taken *t, const struct broker_config *config, const char **ret_owner)
{
    for (guint i = 0; i < config->log_dirs->len; i++) {
        g_autofree char *dir = real_path(config->log_dirs->pdata[i]);
        const char *owner = g_hash_table_lookup(t->dirs, dir);
        if (owner) {
            *ret_owner = owner;
            return config->log_dirs->pdata[i];
        }
    }
    return NULL;
}

static void take_dirs(struct taken *t, const struct broker_config *config)
{
    for (guint i = 0; i < config->log_dirs->len; i++)
        g_hash_table_replace(t->dirs, real_path(config->log_dirs->pdata[i]), g_strdup(config->file));
}

/* The reason alone, where the line names the file already. */
static const char *without_file(const char *why, const char *file)
{
    size_t len = strlen(file);
    return strncmp(why, file, len) == 0 && g_str_has_prefix(why + len, ": ") ? why + len + 2 : why;
}

static void add_failed(struct cluster *c, int32_t id, const char *file, const char *why)
{
    if (id >= 0)
        engine_add_failed_broker(c->engine, id, file, why);
    else
        journal_error(c->errors, EINVAL, file, "%s", without_file(why, file));
}

static void add_broker(struct cluster *c, struct taken *t, struct broker_config *config)
{
    const char *owner, *dir = dir_taken(t, config, &owner);
    if (dir) {
        g_autofree char *why = g_strdup_printf("log dir %s is already that of %s", dir, owner);
        add_failed(c, config->broker_id, config->file, why);
        broker_config_free(config);
        return;
    }
    g_autofree char *file = g_strdup(config->file), *why = NULL;
    take_dirs(t, config);
    int rc = engine_add_broker(c->engine, config, &why);
    c->has_broker |= rc == 0;
    if (rc != 0)
        journal_error(c->errors, -rc, file, "%s", without_file(why, file));
}

/* `required`: named on the command line, so a fault ends the start. */
static int add_file(struct cluster *c, struct taken *t, const char *file, bool required, char **ret_why)
{
    if (!g_hash_table_add(t->files, real_path(file)))
        return 0;
    struct broker_config *config;
    char *why = NULL;
    int rc = broker_config_load(file, &config, &why);
    if (rc == 0) {
        add_broker(c, t, config);
        return 0;
    }
    if (required) {
        *ret_why = why;
        return rc;
    }
    add_failed(c, cluster_files_guess_id(file), file, why);
    g_free(why);
    return 0;
}

static int add_files(struct cluster *c, const struct cluster_config *config, GPtrArray *found, char **ret_why)
{
    struct taken t = {
            .files = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
            .dirs = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
    };
    int rc = 0;
    for (guint i = 0; rc == 0 && config->broker_files && i < config->broker_files->len; i++) {
        g_autofree char *file = absolute_path(config->broker_files->pdata[i]);
        rc = add_file(c, &t, file, /* required= */ true, ret_why);
    }
    for (guint i = 0; rc == 0 && found && i < found->len; i++)
        rc = add_file(c, &t, found->pdata[i], /* required= */ false, ret_why);
    g_hash_table_unref(t.files);
    g_hash_table_unref(t.dirs);
    return rc;
}

/* The files of the cluster directory; written first where `--brokers` asks for it and there are none but what it has
 * left half done. */
static int find_files(const struct cluster_config *config, GPtrArray **ret, char **ret_why)
{
    if (!config->cluster_dir) {
        *ret = NULL;
        return 0;
    }
    int rc = cluster_files_list(config->cluster_dir, ret, ret_why);
    if (rc != 0 || config->brokers == 0 || !cluster_files_cut_short(config->cluster_dir, config->brokers, *ret))
        return rc;
    g_ptr_array_unref(*ret);
    rc = cluster_files_write(config->cluster_dir, config->brokers, ret_why);
    return rc != 0 ? rc : cluster_files_list(config->cluster_dir, ret, ret_why);
}

/* ---- life ---- */

bool cluster_always_directory(void *unused, const char *path)
{
    return kafka_always_directory(unused, path);
}

static struct cluster *new_cluster(const struct cluster_config *config)
{
    struct cluster *c = g_new0(struct cluster, 1);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    c->store = config->store;
    c->mirror = config->mirror;
    c->settle = config->settle;
    c->errors = config->errors;
    c->has_dir = config->cluster_dir != NULL;
    c->controller = controller_thread_new(&(struct controller_thread_config){
            .store = config->store,
            .mirror = config->mirror,
            .settle = config->settle,
            .events = config->events,
            .errors = config->errors,
            .link = {.ctx = c, .request = link_request, .respond = link_respond},
    });
    c->engine = engine_new(&(struct engine_config){
            .store = config->store,
            .mirror = config->mirror,
            .settle = config->settle,
            .events = config->events,
            .errors = config->errors,
            .controller = c->controller,
            .cluster_dir = config->cluster_dir,
            .config_change_expiry_ms = config->config_change_expiry_ms,
    });
    c->policy = kafka_policy_new(&(struct kafka_policy_config){
            .mirror = config->mirror,
            .errors = config->errors,
            .controller = c->controller,
            .engine = c->engine,
            .raw = config->raw,
    });
    return c;
}

int cluster_open(const struct cluster_config *config, struct cluster **ret, char **ret_why)
{
    GPtrArray *found;
    int rc = find_files(config, &found, ret_why);
    if (rc != 0)
        return rc;
    struct cluster *c = new_cluster(config);
    rc = add_files(c, config, found, ret_why);
    if (found)
        g_ptr_array_unref(found);
    if (rc != 0) {
        cluster_free(c);
        return rc;
    }
    *ret = c;
    return 0;
}

const struct policy *cluster_policy(struct cluster *c)
{
    return c->policy;
}

void cluster_feed(struct cluster *c, const struct commit *commit)
{
    kafka_policy_feed(c->policy, commit);
    controller_thread_feed(c->controller, commit);
    engine_feed(c->engine, commit);
}

static void on_settled(void *arg)
{
    struct cluster *c = arg;
    pthread_mutex_lock(&c->lock);
    c->settled = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

/* True: the start is done; false: cluster_stop() was called meanwhile. */
static bool wait_settled(struct cluster *c, struct settle_waiter *waiter)
{
    pthread_mutex_lock(&c->lock);
    while (!c->settled && !c->stopping)
        pthread_cond_wait(&c->changed, &c->lock);
    bool settled = c->settled;
    pthread_mutex_unlock(&c->lock);
    if (settle_cancel(c->settle, waiter))
        return settled;
    /* It is being called: stay until it has been. */
    pthread_mutex_lock(&c->lock);
    while (!c->settled)
        pthread_cond_wait(&c->changed, &c->lock);
    pthread_mutex_unlock(&c->lock);
    return true;
}

static void ids_made(struct txn *txn, void *arg)
{
    struct cluster *c = arg;
    settle_release(c->settle, txn->gen);
    txn_free(txn);
}

/* A new cluster without a broker file is started by `touch brokers/ids/B`, so that directory is there. */
static void make_ids(struct cluster *c, gen_t gen)
{
    if (!c->has_dir || c->has_broker || mirror_exists(c->mirror, "/brokers/ids"))
        return;
    struct txn *txn = txn_new(TXN_INTERNAL);
    if (!mirror_exists(c->mirror, "/brokers"))
        txn_create(txn, "/brokers", NULL, 0);
    txn_create(txn, "/brokers/ids", NULL, 0);
    txn->gen = gen;
    txn->done = ids_made;
    txn->arg = c;
    settle_hold(c->settle, gen);
    store_submit(c->store, txn);
}

static int start_threads(struct cluster *c)
{
    int rc = controller_thread_start(c->controller);
    if (rc < 0)
        return rc;
    gen_t gen = settle_hold_now(c->settle);
    rc = engine_start(c->engine, gen);
    if (rc == 0)
        make_ids(c, gen);
    settle_release(c->settle, gen);
    return rc;
}

int cluster_start(struct cluster *c)
{
    pthread_mutex_lock(&c->lock);
    bool stopping = c->stopping;
    int rc = stopping ? 0 : start_threads(c);
    pthread_mutex_unlock(&c->lock);
    if (rc < 0 || stopping)
        return rc;
    struct settle_waiter *waiter = settle_wait(c->settle, settle_begin(c->settle), on_settled, c);
    if (wait_settled(c, waiter))
        kafka_policy_ready(c->policy);
    return 0;
}

void cluster_stop(struct cluster *c)
{
    pthread_mutex_lock(&c->lock);
    c->stopping = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    /* The controller first: it must not take the brokers' end for their death. */
    controller_thread_stop(c->controller);
    engine_stop(c->engine);
}

void cluster_free(struct cluster *c)
{
    if (!c)
        return;
    kafka_policy_free(c->policy);
    engine_free(c->engine);
    controller_thread_free(c->controller);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    g_free(c);
}
