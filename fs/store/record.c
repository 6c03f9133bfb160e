#include "fs/store/record.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include "fs/store/crc32c.h"
#include "fs/tree/path.h"

#define HEADER_SIZE 76
#define FLAG_NULL_DATA 1

void node_clear(struct node *node)
{
    node->data = bytes_unref(node->data);
}

void record_key_make(struct record_key *ret, uint64_t parent_id, const char *name)
{
    size_t len = strlen(name);
    g_assert(len <= RECORD_NAME_MAX);
    uint64_t id = htobe64(parent_id);
    memcpy(ret->bytes, &id, 8);
    memcpy(ret->bytes + 8, name, len);
    ret->len = 8 + len;
}

int record_key_parse(const void *key, size_t key_len, uint64_t *ret_parent_id, char ret_name[RECORD_NAME_MAX + 1])
{
    if (key_len < 8 || key_len > 8 + RECORD_NAME_MAX)
        return -EUCLEAN;
    uint64_t id;
    memcpy(&id, key, 8);
    id = be64toh(id);
    size_t len = key_len - 8;
    char name[RECORD_NAME_MAX + 1];
    memcpy(name, (const char *)key + 8, len);
    name[len] = '\0';
    if (strlen(name) != len || !(id == 0 ? len == 0 || strcmp(name, ROOT_NAME) == 0 : path_valid_name(name)))
        return -EUCLEAN;
    *ret_parent_id = id;
    memcpy(ret_name, name, len + 1);
    return 0;
}

static uint8_t *put32(uint8_t *p, uint32_t value)
{
    value = htole32(value);
    memcpy(p, &value, 4);
    return p + 4;
}

static uint8_t *put64(uint8_t *p, uint64_t value)
{
    value = htole64(value);
    memcpy(p, &value, 8);
    return p + 8;
}

static uint32_t get32(const uint8_t **p)
{
    uint32_t value;
    memcpy(&value, *p, 4);
    *p += 4;
    return le32toh(value);
}

static uint64_t get64(const uint8_t **p)
{
    uint64_t value;
    memcpy(&value, *p, 8);
    *p += 8;
    return le64toh(value);
}

static uint32_t checksum(const void *key, size_t key_len, const uint8_t *value, size_t len)
{
    return crc32c(crc32c(0, key, key_len), value + 4, len - 4);
}

/* The checksum and layout that records and meta begin with. */
static int check_header(const void *key, size_t key_len, const uint8_t *value, size_t len)
{
    const uint8_t *p = value;
    if (get32(&p) != checksum(key, key_len, value, len))
        return -EUCLEAN;
    if (*p > LAYOUT_VERSION)
        return -EPROTO;
    return *p == LAYOUT_VERSION ? 0 : -EUCLEAN;
}

size_t record_size(const struct node *node)
{
    return HEADER_SIZE + (node->data ? node->data->len : 0);
}

void record_encode(const struct record_key *key, const struct node *node, void *out)
{
    const struct zstat *stat = &node->stat;
    uint8_t *p = (uint8_t *)out + 4;
    *p++ = LAYOUT_VERSION;
    *p++ = node->data ? 0 : FLAG_NULL_DATA;
    *p++ = 0;
    *p++ = 0;
    p = put64(p, node->id);
    p = put64(p, (uint64_t)stat->czxid);
    p = put64(p, (uint64_t)stat->mzxid);
    p = put64(p, (uint64_t)stat->pzxid);
    p = put64(p, (uint64_t)stat->ctime);
    p = put64(p, (uint64_t)stat->mtime);
    p = put64(p, (uint64_t)stat->ephemeral_owner);
    p = put32(p, (uint32_t)stat->version);
    p = put32(p, (uint32_t)stat->cversion);
    p = put32(p, node->num_children);
    if (node->data)
        memcpy(p, node->data->data, node->data->len);
    put32(out, checksum(key->bytes, key->len, out, record_size(node)));
}

int record_decode(const void *key, size_t key_len, const void *value, size_t len, struct node *ret)
{
    if (len < HEADER_SIZE)
        return -EUCLEAN;
    int err = check_header(key, key_len, value, len);
    if (err < 0)
        return err;
    const uint8_t *p = (const uint8_t *)value + 5;
    uint8_t flags = *p;
    p += 3;
    struct zstat *stat = &ret->stat;
    ret->id = get64(&p);
    stat->czxid = (int64_t)get64(&p);
    stat->mzxid = (int64_t)get64(&p);
    stat->pzxid = (int64_t)get64(&p);
    stat->ctime = (int64_t)get64(&p);
    stat->mtime = (int64_t)get64(&p);
    stat->ephemeral_owner = (int64_t)get64(&p);
    stat->version = (int32_t)get32(&p);
    stat->cversion = (int32_t)get32(&p);
    ret->num_children = get32(&p);
    ret->data = flags & FLAG_NULL_DATA ? NULL : bytes_new(p, len - HEADER_SIZE);
    return 0;
}

void meta_encode(const struct record_key *key, const struct meta *meta, void *out)
{
    uint8_t *p = (uint8_t *)out + 4;
    p = put32(p, LAYOUT_VERSION);
    p = put64(p, (uint64_t)meta->zxid);
    p = put64(p, meta->next_id);
    p = put32(p, meta->incarnation);
    put32(p, meta->ephemerals);
    put32(out, checksum(key->bytes, key->len, out, META_SIZE));
}

int meta_decode(const void *key, size_t key_len, const void *value, size_t len, struct meta *ret)
{
    if (len < 8)
        return -EUCLEAN;
    int err = check_header(key, key_len, value, len);
    if (err < 0)
        return err;
    if (len != META_SIZE)
        return -EUCLEAN;
    const uint8_t *p = (const uint8_t *)value + 8;
    ret->zxid = (int64_t)get64(&p);
    ret->next_id = get64(&p);
    ret->incarnation = get32(&p);
    ret->ephemerals = get32(&p);
    return 0;
}
