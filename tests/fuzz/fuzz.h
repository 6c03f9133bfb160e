#pragma once
/* What the fuzz targets share: each is one file with LLVMFuzzerTestOneInput(). */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* A property that has to hold for every input. */
#define FUZZ_CHECK(condition)                                                                                          \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            abort();                                                                                                   \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);
