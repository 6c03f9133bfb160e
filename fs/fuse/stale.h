#pragma once
/* Is the mount point fit to be mounted on? */

/* Detaches dead kafkafs mounts from `mountpoint` (absolute, without links). 0, or -errno with one line: a live one is
 * in the way, it is no directory, it is not empty. No other thread may run (it forks). */
int mountpoint_prepare(const char *mountpoint, char **ret_why);
/* Is a kafkafs mount of this source (absolute) in the mount table? So the holder of a lock is no predecessor on its
 * way out. */
int mounted_source(const char *source);
/* The minor device number of the kafkafs mount on top of `mountpoint`, as text (FUSE's connection number), or NULL. To
 * be freed. */
char *mounted_minor(const char *mountpoint);
