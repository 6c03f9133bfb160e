/* The engine's clock; a file of its own, so that a test can put another in its place. */
#include "controller/broker/engine_internal.h"

int64_t engine_now_ms(void)
{
    return g_get_monotonic_time() / 1000;
}
