#include "fs/store/crc32c.h"

#include <endian.h>
#include <pthread.h>
#include <string.h>

#define POLYNOMIAL 0x82f63b78u /* reflected */

/* tables[k][b]: the effect of byte b when k more bytes follow it; eight bytes are then eight look-ups. */
static uint32_t tables[8][256];

static void fill_tables(void)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t crc = b;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
        tables[0][b] = crc;
    }
    for (uint32_t b = 0; b < 256; b++)
        for (int k = 1; k < 8; k++)
            tables[k][b] = tables[k - 1][b] >> 8 ^ tables[0][tables[k - 1][b] & 0xff];
}

static uint64_t load64(const uint8_t *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return le64toh(word);
}

uint32_t crc32c_portable(uint32_t crc, const void *data, size_t len)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_tables);
    const uint8_t *p = data;
    crc = ~crc;
    for (; len >= 8; p += 8, len -= 8) {
        uint64_t word = load64(p) ^ crc;
        crc = 0;
        for (int k = 0; k < 8; k++)
            crc ^= tables[7 - k][word >> 8 * k & 0xff];
    }
    while (len-- > 0)
        crc = crc >> 8 ^ tables[0][(crc ^ *p++) & 0xff];
    return ~crc;
}

#if defined __x86_64__

__attribute__((target("sse4.2"))) static uint32_t crc32c_sse42(uint32_t crc, const void *data, size_t len)
{
    const uint8_t *p = data;
    uint64_t sum = ~crc;
    for (; len >= 8; p += 8, len -= 8)
        sum = __builtin_ia32_crc32di(sum, load64(p));
    while (len-- > 0)
        sum = __builtin_ia32_crc32qi((uint32_t)sum, *p++);
    return ~(uint32_t)sum;
}

uint32_t crc32c(uint32_t crc, const void *data, size_t len)
{
    return __builtin_cpu_supports("sse4.2") ? crc32c_sse42(crc, data, len) : crc32c_portable(crc, data, len);
}

#else

uint32_t crc32c(uint32_t crc, const void *data, size_t len)
{
    return crc32c_portable(crc, data, len);
}

#endif
