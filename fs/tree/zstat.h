#pragma once
/* ZooKeeper's Stat of a znode. `dataLength` and `numChildren` are not kept: they follow from the node. */
#include <stdint.h>

struct zstat {
    int64_t czxid;           /* transaction that created the node */
    int64_t mzxid;           /* transaction that last changed its data */
    int64_t pzxid;           /* transaction that last added or removed a child */
    int64_t ctime;           /* ms since the epoch */
    int64_t mtime;           /* ms since the epoch */
    int64_t ephemeral_owner; /* session, 0 for a persistent node */
    int32_t version;         /* data changes */
    int32_t cversion;        /* children created and deleted, ever: (cversion + numChildren) / 2 were created */
};
