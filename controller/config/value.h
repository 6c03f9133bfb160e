#pragma once
/*
 * One value: parsed, validated and printed as Kafka's ConfigDef does (trimmed; booleans in any case; lists split at
 * commas; numbers as Java reads and prints them). Pure.
 */
#include <glib.h>
#include "controller/config/definition.h"

/* 0 with the value as Kafka prints it in `*ret` (newly allocated), or -EINVAL with the reason (newly allocated; never
 * the value of a secret). Both outputs may be NULL. */
int config_value_parse(const struct config_def *def, const char *text, char **ret, char **ret_why);
/* A whole number as Java's Long.parseLong reads it, after trimming. */
bool config_parse_long(const char *text, int64_t *ret);
/* As Java's Double.toString prints a finite number; newly allocated. */
char *config_format_double(double value);
/* Untrusted text for a reason or an event: at most 100 bytes, cut at a character; newly allocated. */
char *config_clip(const char *text);
