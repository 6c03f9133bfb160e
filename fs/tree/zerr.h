#pragma once
/* Result codes of a transaction and of each operation in it: ZooKeeper's own numbers (zookeeper.h, enum ZOO_ERRORS),
 * and below -1000 what only an embedded store can say. */

enum zerr {
    ZOK = 0,
    ZRUNTIMEINCONSISTENCY = -2, /* not tried: an earlier operation of the transaction failed */
    ZCONNECTIONLOSS = -4,       /* outcome unknown */
    ZBADARGUMENTS = -8,
    ZNONODE = -101,
    ZBADVERSION = -103,
    ZNOCHILDRENFOREPHEMERALS = -108,
    ZNODEEXISTS = -110,
    ZNOTEMPTY = -111,
    ZSESSIONEXPIRED = -112,
    ZNOTREADONLY = -119, /* the store is read-only: mounted so, or after an I/O error */
    ZSTORENOSPACE = -1001,
    ZSTOREIO = -1002,
    ZTOOLARGE = -1003,    /* over ZNODE_MAX_DATA */
    ZNAMETOOLONG = -1004, /* a name or a path that the store cannot keep */
};

/* The largest data of a znode, in bytes: ZooKeeper's 1 MB packet less room for paths and headers. */
#define ZNODE_MAX_DATA 1000000

/* "ZNONODE" and so on; never NULL. */
const char *zerr_name(int rc);
/* The one place where a store error becomes an errno (positive): ZNONODE -> ENOENT, ZBADVERSION -> ESTALE,
 * ZNODEEXISTS -> EEXIST, ZNOTEMPTY -> ENOTEMPTY, ZNOCHILDRENFOREPHEMERALS -> ENOTDIR, ZSESSIONEXPIRED -> ESTALE,
 * ZNOTREADONLY -> EROFS, ZSTORENOSPACE -> ENOSPC, ZTOOLARGE -> EFBIG,
 * ZNAMETOOLONG -> ENAMETOOLONG, ZBADARGUMENTS -> EINVAL, others EIO. */
int zerr_errno(int rc);
