#pragma once
/* A whole cluster in this process: controller thread, engine and namespace policy, made from a cluster directory or a
 * list of broker files. main.c wires it between store and mount. */
#include "fs/journal.h"
#include "fs/policy.h"
#include "fs/settle.h"
#include "fs/store/store.h"

struct cluster;

struct cluster_config {
    struct store *store;
    struct mirror *mirror;
    struct settle *settle;
    struct journal *events, *errors;
    const char *cluster_dir; /* brokers from its *.properties; NULL: none but broker_files */
    GPtrArray *broker_files; /* char*, -b */
    int brokers;             /* --brokers=N, 0: not given; writes server-N.properties where there is none */
    int64_t config_change_expiry_ms;
    bool raw;
};

/* The policy's pure half, needed for the mirror before there is a cluster. */
bool cluster_always_directory(void *unused, const char *path);
/* Reads the broker files. 0 or -errno with one line. */
int cluster_open(const struct cluster_config *config, struct cluster **ret, char **ret_why);
const struct policy *cluster_policy(struct cluster *c);
/* Store thread, for each commit, after mirror_apply(). */
void cluster_feed(struct cluster *c, const struct commit *commit);
/* Starts threads and brokers; returns when every broker has started or failed, and a controller, if there can be one,
 * has done all of its start-up. 0 or -errno: no thread; cluster_stop() is needed all the same. */
int cluster_start(struct cluster *c);
/* Stops brokers and controller; blocks. The store must still run. Another thread may be in cluster_start(), which then
 * returns soon, or has still to begin it: then nothing is started any more. */
void cluster_stop(struct cluster *c);
void cluster_free(struct cluster *c);
