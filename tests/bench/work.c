/*
 * The clients of the benchmarks: N processes that do one thing each until the time is up, or once each.
 *
 * - work stat|read CLIENTS SECONDS DIR PREFIX COUNT: over DIR/PREFIX0000000 ... in a ring, each client from its own
 *   start
 * - work mkdir|create|rm|rmdir CLIENTS COUNT DIR...: COUNT names in each client's directory, DIR c (the c-th argument)
 * - work write CLIENTS COUNT FILE...: COUNT times open, write, close of each client's file: one durable change each
 * - work once stat|read DIR PREFIX COUNT: each name once, one client (after the caches were dropped)
 * - work commit SECONDS DIR: bare durable commits of one small record with LMDB, in a row
 *
 * Prints operations per second of all clients together. A failing call ends the run with its errno and exit 1.
 */
#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die(const char *what)
{
    fprintf(stderr, "work: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void do_one(const char *op, const char *path)
{
    char buf[4096];
    struct stat st;
    if (strcmp(op, "stat") == 0) {
        if (stat(path, &st) != 0)
            die(path);
    } else if (strcmp(op, "mkdir") == 0) {
        if (mkdir(path, 0755) != 0)
            die(path);
    } else if (strcmp(op, "rmdir") == 0) {
        if (rmdir(path) != 0)
            die(path);
    } else if (strcmp(op, "rm") == 0) {
        if (unlink(path) != 0)
            die(path);
    } else {
        int writing = strcmp(op, "read") != 0, create = strcmp(op, "create") == 0;
        int fd = open(path, writing ? O_WRONLY | (create ? O_CREAT | O_EXCL : 0) : O_RDONLY, 0644);
        if (fd < 0)
            die(path);
        if (!create && (writing ? write(fd, "value\n", 6) != 6 : read(fd, buf, sizeof buf) < 0))
            die(path);
        if (close(fd) != 0)
            die(path);
    }
}

/* Shared with the children: when all may begin, and what each did. */
struct board {
    volatile int ready, go;
    double done[64], seconds[64];
};

static void client(struct board *b, int c, int argc, char **argv)
{
    const char *op = argv[1];
    char path[4096];
    __sync_fetch_and_add(&b->ready, 1);
    while (!b->go)
        usleep(200);
    double start = now();
    unsigned long n = 0;
    if (strcmp(op, "stat") == 0 || strcmp(op, "read") == 0) {
        double limit = strtod(argv[3], NULL);
        unsigned long count = strtoul(argv[6], NULL, 10);
        for (unsigned long i = (unsigned long)c * 7919 % count; (n & 63) != 0 || now() - start < limit; n++, i++) {
            snprintf(path, sizeof path, "%s/%s%07lu", argv[4], argv[5], i % count);
            do_one(op, path);
        }
    } else {
        unsigned long count = strtoul(argv[3], NULL, 10);
        for (; n < count; n++) {
            if (strcmp(op, "write") == 0)
                snprintf(path, sizeof path, "%s", argv[4 + c]);
            else
                snprintf(path, sizeof path, "%s/n%07lu", argv[4 + c], n);
            do_one(op, path);
        }
    }
    b->done[c] = (double)n;
    b->seconds[c] = now() - start;
}

static int clients(int argc, char **argv)
{
    int n = atoi(argv[2]), status, bad = 0;
    struct board *b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (b == MAP_FAILED || n < 1 || n > 64)
        die("clients");
    for (int c = 0; c < n; c++)
        if (fork() == 0) {
            client(b, c, argc, argv);
            _exit(0);
        }
    while (b->ready < n)
        usleep(200);
    b->go = 1;
    double rate = 0;
    for (int c = 0; c < n; c++)
        if (wait(&status) < 0 || status != 0)
            bad = 1;
    for (int c = 0; c < n; c++)
        rate += b->done[c] / b->seconds[c];
    if (!bad)
        printf("%.1f\n", rate);
    return bad;
}

static int once(char **argv)
{
    char path[4096];
    unsigned long count = strtoul(argv[5], NULL, 10);
    double start = now();
    for (unsigned long i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s%07lu", argv[3], argv[4], i);
        do_one(argv[2], path);
    }
    printf("%.1f\n", (double)count / (now() - start));
    return 0;
}

static int commits(char **argv)
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    double limit = strtod(argv[2], NULL), start = 0;
    if (mkdir(argv[3], 0700) != 0 || mdb_env_create(&env) != 0 || mdb_env_set_mapsize(env, 1 << 30) != 0 ||
            mdb_env_open(env, argv[3], 0, 0600) != 0)
        die(argv[3]);
    unsigned long n = 0;
    for (start = now(); now() - start < limit; n++) {
        char value[120] = "";
        MDB_val k = {.mv_size = sizeof n, .mv_data = &n}, v = {.mv_size = sizeof value, .mv_data = value};
        if (mdb_txn_begin(env, NULL, 0, &txn) != 0 || mdb_dbi_open(txn, NULL, 0, &dbi) != 0 ||
                mdb_put(txn, dbi, &k, &v, 0) != 0 || mdb_txn_commit(txn) != 0)
            die("commit");
    }
    printf("%.1f\n", (double)n / (now() - start));
    mdb_env_close(env);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc >= 6 && strcmp(argv[1], "once") == 0)
        return once(argv);
    if (argc == 4 && strcmp(argv[1], "commit") == 0)
        return commits(argv);
    if (argc >= 5)
        return clients(argc, argv);
    fprintf(stderr, "usage: see the head of work.c\n");
    return 2;
}
