#pragma once
/* CRC-32C (Castagnoli), as iSCSI and ext4 use it. Debian has no library for it alone. Pure; any thread. */
#include <stddef.h>
#include <stdint.h>

/* Continues `crc` (0 at first) over `len` bytes. */
uint32_t crc32c(uint32_t crc, const void *data, size_t len);
/* The same without the processor's instruction; for its test. */
uint32_t crc32c_portable(uint32_t crc, const void *data, size_t len);
