#pragma once
/* One kernel for each test of a file. */
#include "tests/fuse/kernel.h"

static struct kernel *k;

static inline int kernel_setup(void **state)
{
    k = kernel_new(/* raw= */ false);
    return 0;
}

static inline int kernel_setup_raw(void **state)
{
    k = kernel_new(/* raw= */ true);
    return 0;
}

static inline int kernel_teardown(void **state)
{
    kernel_free(k);
    return 0;
}
