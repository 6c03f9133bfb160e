#pragma once
/* Names of the directories inside a log dir (kafka.log.LocalLog.parseTopicPartitionName, logDeleteDirName). Pure. */
#include <stdint.h>
#include <limits.h>

enum log_name_kind {
    LOG_CURRENT, /* <topic>-<partition> */
    LOG_DELETED, /* <topic>-<partition>.<hex>-delete; the topic may be cut short */
    LOG_FUTURE,  /* <topic>-<partition>.<hex>-future */
    LOG_STRAY,   /* <topic>-<partition>.<hex>-stray; may be cut short */
    LOG_SKIPPED, /* KRaft's own */
    LOG_UNKNOWN, /* Kafka does not start with such a directory in a log dir */
};

/* `topic` has room for NAME_MAX + 1 bytes; both outputs are set for the first four kinds only. */
enum log_name_kind log_name_parse(const char *name, char *topic, int32_t *partition);

/* <topic>-<partition>, at most NAME_MAX bytes: -ENAMETOOLONG. */
int log_name_current(const char *topic, int32_t partition, char ret[NAME_MAX + 1]);
/* <topic>-<partition>.<32 hex digits>-<suffix>; the topic is cut so that the whole fits (KAFKA-4893). */
void log_name_unique(const char *topic, int32_t partition, const char *suffix, char ret[NAME_MAX + 1]);
