#include "fs/fuse/name.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool reserved(const char *name)
{
    return strcmp(name, NAME_DATA) == 0 || strcmp(name, NAME_STATE) == 0;
}

/* `%2Edata`, `%252Edata`, `%25252Edata`, ...: an encoding, or the encoding of what looks like one. */
static bool looks_encoded(const char *name)
{
    if (*name++ != '%')
        return false;
    while (strncmp(name, "25", 2) == 0)
        name += 2;
    return strcmp(name, "2Edata") == 0 || strcmp(name, "2Estate") == 0;
}

const char *name_encode(const char *name, char buf[NAME_MAX_BYTES + 1])
{
    size_t len = strlen(name);
    if (reserved(name)) {
        snprintf(buf, NAME_MAX_BYTES + 1, "%%2E%s", name + 1);
        return buf;
    }
    if (looks_encoded(name)) {
        if (len + 2 > NAME_MAX_BYTES)
            return NULL;
        snprintf(buf, NAME_MAX_BYTES + 1, "%%25%s", name + 1);
        return buf;
    }
    return len <= NAME_MAX_BYTES ? name : NULL;
}

const char *name_decode(const char *name, char buf[NAME_MAX_BYTES + 1])
{
    if (reserved(name))
        return NULL;
    if (!looks_encoded(name))
        return name;
    if (strncmp(name, "%25", 3) == 0)
        snprintf(buf, NAME_MAX_BYTES + 1, "%%%s", name + 3);
    else
        snprintf(buf, NAME_MAX_BYTES + 1, ".%s", name + 3);
    return buf;
}
