/*
 * How fast the disk below is, for the benchmarks: durable commits of one small record, one after the other, by bare
 * LMDB as kafkafs opens it.
 *
 *   commits N DIR        prints the seconds
 */
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TRY(call)                                                                                                      \
    do {                                                                                                               \
        int rc = (call);                                                                                               \
        if (rc != 0) {                                                                                                 \
            fprintf(stderr, "commits: %s\n", mdb_strerror(rc));                                                        \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)

int main(int argc, char **argv)
{
    struct timespec from, to;
    char value[200];
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    long n;

    if (argc != 3) {
        fprintf(stderr, "usage: commits N DIR\n");
        return 2;
    }
    n = atol(argv[1]);
    memset(value, 'x', sizeof(value));
    TRY(mdb_env_create(&env));
    TRY(mdb_env_set_mapsize(env, (size_t)1 << 30));
    TRY(mdb_env_open(env, argv[2], 0, 0600));
    TRY(mdb_txn_begin(env, NULL, 0, &txn));
    TRY(mdb_dbi_open(txn, NULL, 0, &dbi));
    TRY(mdb_txn_commit(txn));
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (long i = 0; i < n; i++) {
        MDB_val key = {sizeof(i), &i}, data = {sizeof(value), value};

        TRY(mdb_txn_begin(env, NULL, 0, &txn));
        TRY(mdb_put(txn, dbi, &key, &data, 0));
        TRY(mdb_txn_commit(txn));
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    mdb_env_close(env);
    printf("%.6f\n", (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9);
    return 0;
}
