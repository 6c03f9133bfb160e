#pragma once
/*
 * The listener of /config/changes (ZkNodeChangeNotificationListener): each notification is processed once, in the order
 * of its number, whatever becomes of it; old ones are purged. Single-threaded, over config_manager_env.
 */
#include "controller/config/manager.h"

struct notification_listener;

/* `entity(arg, path, just_read)`: the configuration of `<type>/<name...>` is to be read again, unless everything has
 * just been read; 0, or -EINVAL with the reason if there can be no such entity. `broker_id` is named in what is written
 * to `.state/errors`. */
struct notification_listener *notification_listener_new(const struct config_manager_env *env, int32_t broker_id,
        int64_t expiry_ms, int (*entity)(void *arg, const char *path, bool just_read, char **ret_why), void *arg);
void notification_listener_free(struct notification_listener *l);
/* One pass. `replay`: all entities have just been read, so notifications need no reading, and expired ones are purged
 * without a word. */
void notification_listener_pass(struct notification_listener *l, bool replay);
/* One child was created: processed without listing the others. */
void notification_listener_created(struct notification_listener *l, const char *name);
