/* org.apache.kafka.common.Uuid as text: 16 bytes in URL-safe base64 without padding. */
#include "controller/json/json.h"

#include <string.h>

enum { UUID_BYTES = 16, UUID_TEXT = 22 };

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static void to_text(const uint8_t bytes[UUID_BYTES], char ret[UUID_TEXT + 1])
{
    uint32_t pending = 0;
    unsigned bits = 0;
    char *out = ret;
    for (size_t i = 0; i < UUID_BYTES; i++) {
        pending = pending << 8 | bytes[i];
        for (bits += 8; bits >= 6; bits -= 6)
            *out++ = alphabet[pending >> (bits - 6) & 63];
    }
    *out++ = alphabet[pending << (6 - bits) & 63];
    *out = '\0';
}

/* Uuid.RESERVED: 0 (none) and 1 (the metadata topic); a text that starts with '-' looks like an option to a tool. */
static bool reserved(const uint8_t bytes[UUID_BYTES], const char *text)
{
    static const uint8_t zero[UUID_BYTES];
    return text[0] == '-' || (memcmp(bytes, zero, UUID_BYTES - 1) == 0 && bytes[UUID_BYTES - 1] <= 1);
}

void uuid_generate(uint32_t (*random)(void *arg), void *arg, char ret[23])
{
    uint8_t bytes[UUID_BYTES];
    do {
        for (size_t i = 0; i < UUID_BYTES; i += sizeof(uint32_t)) {
            uint32_t word = random(arg);
            memcpy(bytes + i, &word, sizeof(word));
        }
        bytes[6] = (uint8_t)((bytes[6] & 0x0F) | 0x40); /* version 4 */
        bytes[8] = (uint8_t)((bytes[8] & 0x3F) | 0x80); /* RFC 4122 variant */
        to_text(bytes, ret);
    } while (reserved(bytes, ret));
}

bool uuid_valid(const char *text)
{
    return strlen(text) == UUID_TEXT && strspn(text, alphabet) == UUID_TEXT;
}
