#pragma once
/* A tree in memory and what a broker writes and asks for, for the tests of controller/config. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <glib.h>
#include "controller/config/manager.h"

struct fake_tree {
    GHashTable *nodes;    /* path -> struct fake_node */
    GHashTable *children; /* path -> GPtrArray of names, in creation order */
    int64_t zxid, now_ms;
    int sequence;       /* the next config_change_ */
    GPtrArray *events;  /* char* */
    GPtrArray *errors;  /* "<errno> <path> <text>" */
    GPtrArray *unclean; /* topics; "" is the default */
    GPtrArray *batches; /* sizes of what was to be removed, as text */
    unsigned broker_changed, gets;
    bool removes_nothing; /* a store without room */
};

struct fake_tree *fake_tree_new(void);
void fake_tree_free(struct fake_tree *t);
/* Creates or sets; `text` NULL is null data. Parents are not needed. */
void fake_put(struct fake_tree *t, const char *path, const char *text);
/* `{"version":1,"config":{...}}` below /config from "key=value" pairs, NULL at the end. */
void fake_config(struct fake_tree *t, const char *path, ...) __attribute__((sentinel));
void fake_delete(struct fake_tree *t, const char *path);
/* The next sequential notification with that text; its name, borrowed until the next call. */
const char *fake_note(struct fake_tree *t, const char *text);
/* A version 2 notification of the entity. */
const char *fake_notify(struct fake_tree *t, const char *entity);
/* Forgets events, errors and so on. */
void fake_clear(struct fake_tree *t);
/* Does one of the lines contain the text? */
bool fake_said(GPtrArray *lines, const char *text);
struct config_manager_env fake_env(struct fake_tree *t);

/* A broker's properties: "key=value" pairs, NULL at the end. */
struct broker_config *fake_broker(int32_t id, ...) __attribute__((sentinel));
void fake_broker_free(struct broker_config *c);

/* `key`'s value or source in the lines of an entity; newly allocated, NULL: no such line. */
char *config_line(char *lines, const char *key);
/* Asserts value and source of a key. */
void assert_config(struct config_manager *m, const char *kind, const char *entity, const char *key, const char *value,
        const char *source);
