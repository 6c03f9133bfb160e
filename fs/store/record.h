#pragma once
/*
 * What the store keeps of a znode, and its bytes on disk. Pure.
 *
 * A record is found by (id of the parent, name), so the children of a node are neighbours, and a long path costs
 * nothing. Ids come from a counter and are never used again; a parent's is always below its children's. The root is id
 * 1, with parent 0 and the name "/"; parent 0 with the empty name is the meta record.
 *
 *   key    parent id (8 bytes, big endian), name
 *   value  u32 CRC-32C of the key and of all that follows it here; u8 layout; u8 flags; u16 zero; then, all little
 *          endian, u64 id, i64 czxid mzxid pzxid ctime mtime ephemeralOwner, i32 version cversion, u32 children; data
 *   meta   u32 CRC-32C likewise; u8 layout; u8 x 3 zero; i64 zxid; u64 next id; u32 incarnation; u32 ephemerals
 *
 * LAYOUT_VERSION rises with any change; what has a higher one was written by a newer version.
 */
#include <glib.h>
#include "fs/tree/bytes.h"
#include "fs/tree/zstat.h"

#define LAYOUT_VERSION 1
#define ROOT_ID 1
#define ROOT_NAME "/"
#define RECORD_NAME_MAX 503 /* LMDB's keys have at most 511 bytes */

struct node {
    uint64_t id;
    struct zstat stat;
    uint32_t num_children;
    struct bytes *data; /* one reference; NULL is null data */
};
void node_clear(struct node *node);

struct meta {
    int64_t zxid;         /* of the last transaction */
    uint64_t next_id;     /* of the next node */
    uint32_t incarnation; /* how often the store has been opened for writing: the upper half of session ids */
    uint32_t ephemerals;  /* ephemeral nodes in the store */
};

struct record_key {
    size_t len;
    uint8_t bytes[8 + RECORD_NAME_MAX];
};
/* `name` has at most RECORD_NAME_MAX bytes. */
void record_key_make(struct record_key *ret, uint64_t parent_id, const char *name);
/* 0, or -EUCLEAN if no znode can have that key. */
int record_key_parse(const void *key, size_t key_len, uint64_t *ret_parent_id, char ret_name[RECORD_NAME_MAX + 1]);

size_t record_size(const struct node *node);
/* Writes record_size() bytes. */
void record_encode(const struct record_key *key, const struct node *node, void *out);
/* 0; -EUCLEAN: damaged; -EPROTO: a newer layout. */
int record_decode(const void *key, size_t key_len, const void *value, size_t len, struct node *ret);

#define META_SIZE 32
void meta_encode(const struct record_key *key, const struct meta *meta, void *out);
int meta_decode(const void *key, size_t key_len, const void *value, size_t len, struct meta *ret);
