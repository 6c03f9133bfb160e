/*
 * Requests from a seed: the stream of tests/fuzz/stream.c on random input, which needs no fuzzer for it, and bodies of
 * noise. Argument: rounds, and a seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/fuse/kernel.h"
#include "tests/fuzz/fuzz.h"

#define INPUT_MAX 2000 /* more than the requests of one input take */

static unsigned rounds = 200;
static uint64_t seed = 1;

static GRand *chance;

static unsigned below(unsigned n)
{
    return (unsigned)g_rand_int_range(chance, 0, (gint32)n);
}

static void test_stream(void **state)
{
    uint8_t input[INPUT_MAX];
    for (unsigned round = 0; round < rounds; round++) {
        chance = g_rand_new_with_seed((guint32)(seed + round));
        for (size_t i = 0; i < sizeof input; i++)
            input[i] = (uint8_t)below(256);
        g_rand_free(chance);
        print_message("seed %lu\n", (unsigned long)(seed + round));
        LLVMFuzzerTestOneInput(input, sizeof input);
    }
}

/* Bytes that are no right requests: short, long, with a wrong length. libfuse and we must stand it. */
static void test_bodies_of_noise(void **state)
{
    for (unsigned round = 0; round < rounds / 20 + 1; round++) {
        chance = g_rand_new_with_seed((guint32)(seed + 1000000 + round));
        struct kernel *k = kernel_new(false);
        static const uint32_t opcodes[] = {FUSE_LOOKUP, FUSE_GETATTR, FUSE_SETATTR, FUSE_MKDIR, FUSE_UNLINK,
                FUSE_RENAME2, FUSE_OPEN, FUSE_READ, FUSE_WRITE, FUSE_FLUSH, FUSE_RELEASE, FUSE_OPENDIR, FUSE_READDIR,
                FUSE_READDIRPLUS, FUSE_CREATE, FUSE_POLL, FUSE_GETXATTR, FUSE_SETXATTR, FUSE_LISTXATTR, FUSE_FALLOCATE,
                FUSE_LSEEK, FUSE_IOCTL, FUSE_ACCESS, FUSE_STATFS, FUSE_FSYNC, FUSE_FSYNCDIR};
        for (int i = 0; i < 200; i++) {
            char body[256]; /* large enough for every fixed part: what libfuse reads unchecked */
            for (size_t j = 0; j < sizeof body; j++)
                body[j] = (char)(below(3) ? below(256) : 0);
            body[sizeof body - 1] = body[sizeof body - 2] = '\0';
            uint32_t opcode = opcodes[below(G_N_ELEMENTS(opcodes))];
            if (opcode == FUSE_WRITE) /* as long as it says it is */
                ((struct fuse_write_in *)body)->size = below((unsigned)(sizeof body - sizeof(struct fuse_write_in)));
            if (opcode == FUSE_READ || opcode == FUSE_READDIR || opcode == FUSE_READDIRPLUS)
                ((struct fuse_read_in *)body)->size %= 65536;
            if (opcode == FUSE_GETXATTR || opcode == FUSE_LISTXATTR)
                ((struct fuse_getxattr_in *)body)->size %= 65536;
            uint64_t unique = kernel_send(k, opcode, below(4), body, sizeof body, NULL, 0);
            g_free(kernel_wait(k, unique));
        }
        kernel_free(k);
        g_rand_free(chance);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1)
        rounds = (unsigned)strtoul(argv[1], NULL, 10);
    if (argc > 2)
        seed = strtoull(argv[2], NULL, 10);
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(test_stream),
            cmocka_unit_test(test_bodies_of_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
