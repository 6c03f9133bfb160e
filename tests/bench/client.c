/*
 * The clients of the benchmarks: some processes do one kind of call over and over, and the time of all is printed.
 *
 *   client OP CLIENTS CALLS DIR [NAMES]
 *
 * stat, read       of DIR/000000 to DIR/<NAMES - 1>, round and round
 * mkdir, rmdir     DIR/c<client>/<n>
 * create           DIR/c<client>/<n>: open, write of 100 bytes, close
 * rewrite          DIR/c<client>/f: the same file again and again
 * unlink           what create made
 *
 * Each client makes CALLS calls. Prints the seconds from the first start to the last end.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *dir;
static long names = 1;

static int write_file(const char *path)
{
    char text[100];
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644), rc;

    if (fd < 0)
        return -1;
    memset(text, 'x', sizeof(text));
    rc = write(fd, text, sizeof(text)) == (ssize_t)sizeof(text) ? 0 : -1;
    return close(fd) == 0 ? rc : -1;
}

static int read_file(const char *path)
{
    char text[4096];
    int fd = open(path, O_RDONLY), rc;

    if (fd < 0)
        return -1;
    rc = read(fd, text, sizeof(text)) >= 0 ? 0 : -1;
    return close(fd) == 0 ? rc : -1;
}

static int call(const char *op, int client, long n)
{
    char path[4096];
    struct stat st;

    if (strcmp(op, "stat") == 0 || strcmp(op, "read") == 0)
        snprintf(path, sizeof(path), "%s/%06ld", dir, (n * 7919 + client * 131) % names);
    else if (strcmp(op, "rewrite") == 0)
        snprintf(path, sizeof(path), "%s/c%d/f", dir, client);
    else
        snprintf(path, sizeof(path), "%s/c%d/%ld", dir, client, n);
    if (strcmp(op, "stat") == 0)
        return stat(path, &st);
    if (strcmp(op, "read") == 0)
        return read_file(path);
    if (strcmp(op, "mkdir") == 0)
        return mkdir(path, 0755);
    if (strcmp(op, "rmdir") == 0)
        return rmdir(path);
    if (strcmp(op, "create") == 0 || strcmp(op, "rewrite") == 0)
        return write_file(path);
    if (strcmp(op, "unlink") == 0)
        return unlink(path);
    errno = EINVAL;
    return -1;
}

static int run_client(const char *op, int client, long calls)
{
    char home[4096];

    snprintf(home, sizeof(home), "%s/c%d", dir, client);
    if (strcmp(op, "mkdir") == 0 || strcmp(op, "create") == 0 || strcmp(op, "rewrite") == 0)
        (void)mkdir(home, 0755);
    for (long n = 0; n < calls; n++)
        if (call(op, client, n) != 0) {
            fprintf(stderr, "client: %s %ld: %s\n", op, n, strerror(errno));
            return 1;
        }
    return 0;
}

int main(int argc, char **argv)
{
    struct timespec from, to;
    int clients, failed = 0, status;

    if (argc < 5) {
        fprintf(stderr, "usage: client OP CLIENTS CALLS DIR [NAMES]\n");
        return 2;
    }
    clients = atoi(argv[2]);
    dir = argv[4];
    names = argc > 5 ? atol(argv[5]) : 1;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < clients; i++)
        if (fork() == 0)
            _exit(run_client(argv[1], i, atol(argv[3])));
    while (wait(&status) > 0)
        failed |= status != 0;
    clock_gettime(CLOCK_MONOTONIC, &to);
    printf("%.6f\n", (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9);
    return failed;
}
