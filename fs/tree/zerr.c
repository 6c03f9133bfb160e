#include "fs/tree/zerr.h"

#include <errno.h>
#include <stddef.h>

static const struct {
    int rc;
    const char *name;
    int err;
} codes[] = {
        {ZOK, "ZOK", 0},
        {ZRUNTIMEINCONSISTENCY, "ZRUNTIMEINCONSISTENCY", EIO},
        {ZCONNECTIONLOSS, "ZCONNECTIONLOSS", EIO},
        {ZBADARGUMENTS, "ZBADARGUMENTS", EINVAL},
        {ZNONODE, "ZNONODE", ENOENT},
        {ZBADVERSION, "ZBADVERSION", ESTALE},
        {ZNOCHILDRENFOREPHEMERALS, "ZNOCHILDRENFOREPHEMERALS", ENOTDIR},
        {ZNODEEXISTS, "ZNODEEXISTS", EEXIST},
        {ZNOTEMPTY, "ZNOTEMPTY", ENOTEMPTY},
        {ZSESSIONEXPIRED, "ZSESSIONEXPIRED", ESTALE},
        {ZNOTREADONLY, "ZNOTREADONLY", EROFS},
        {ZSTORENOSPACE, "ZSTORENOSPACE", ENOSPC},
        {ZSTOREIO, "ZSTOREIO", EIO},
        {ZTOOLARGE, "ZTOOLARGE", EFBIG},
        {ZNAMETOOLONG, "ZNAMETOOLONG", ENAMETOOLONG},
};

const char *zerr_name(int rc)
{
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].rc == rc)
            return codes[i].name;
    return "unknown error";
}

int zerr_errno(int rc)
{
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i].rc == rc)
            return codes[i].err;
    return EIO;
}
