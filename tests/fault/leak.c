/*
 * Preloaded into kafkafs by the control of soak.py: a program that leaks a little memory, a descriptor or a thread with
 * its commits. KAFKAFS_LEAK says after how many syncs a descriptor and a thread are lost; memory goes with each.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOST_BYTES 8192

static void *sleep_for_ever(void *arg)
{
    for (;;)
        pause();
    return arg;
}

static void leak(unsigned every)
{
    static _Atomic unsigned syncs;
    static void *_Atomic lost;
    pthread_t thread;
    void *memory = malloc(LOST_BYTES);

    if (memory)
        memset(memory, 1, LOST_BYTES);
    atomic_store(&lost, memory);
    if ((atomic_fetch_add(&syncs, 1) + 1) % every)
        return;
    (void)!open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (pthread_create(&thread, NULL, sleep_for_ever, NULL) == 0)
        pthread_detach(thread);
}

int fdatasync(int fd)
{
    const char *every = getenv("KAFKAFS_LEAK");
    int (*real)(int);

    *(void **)&real = dlsym(RTLD_NEXT, "fdatasync");
    if (every && atoi(every) > 0)
        leak((unsigned)atoi(every));
    return real(fd);
}
