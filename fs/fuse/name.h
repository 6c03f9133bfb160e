#pragma once
/*
 * File names of znodes. Names are shown as they are; only `.data` and `.state`, which have a meaning of their own here,
 * are shown as `%2Edata` and `%2Estate`, and a name that looks like such an encoding has its `%` encoded (`%252Edata`).
 * One to one in both directions. Pure.
 */
#include <stddef.h>

#define NAME_DATA ".data"
#define NAME_STATE ".state"
#define NAME_MAX_BYTES 255

/* The file name of a znode: `name` itself, or written into `buf`; NULL if it cannot be a file name (over 255 bytes). */
const char *name_encode(const char *name, char buf[NAME_MAX_BYTES + 1]);
/* The znode that a file name means: `name` itself, or written into `buf`; NULL for `.data` and `.state`, which mean
 * none. `name` has at most NAME_MAX_BYTES. Says nothing about ZooKeeper's rules (path_valid_name). */
const char *name_decode(const char *name, char buf[NAME_MAX_BYTES + 1]);
