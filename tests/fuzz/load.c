/* --load: text from anywhere, into a store that is thrown away. What is accepted must check and dump. */
#include <glib/gstdio.h>
#include <stdio.h>
#include <unistd.h>
#include "fs/store/store.h"
#include "tests/fuzz/fuzz.h"

static void remove_store(const char *dir)
{
    static const char *const files[] = {"data.mdb", "lock.mdb"};

    for (size_t i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *file = g_build_filename(dir, files[i], NULL);

        (void)g_unlink(file);
    }
    (void)g_rmdir(dir);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    static char *dir;
    g_autofree char *why = NULL, *why_check = NULL;
    FILE *in, *out;

    if (!dir)
        dir = g_strdup_printf("/dev/shm/kafkafs-fuzz-load.%d", getpid());
    if (size == 0)
        return 0;
    in = fmemopen((void *)(uintptr_t)input, size, "r");
    out = fopen("/dev/null", "w");
    FUZZ_CHECK(in && out);
    if (store_load_text(dir, in, &why) == 0) {
        FUZZ_CHECK(store_check(dir, out, &why_check) == 0);
        FUZZ_CHECK(store_dump(dir, out, &why_check) == 0);
    } else {
        FUZZ_CHECK(why != NULL);
    }
    fclose(in);
    fclose(out);
    remove_store(dir);
    return 0;
}
