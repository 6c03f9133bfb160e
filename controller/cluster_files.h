#pragma once
/* The broker files of a cluster directory. */
#include <glib.h>
#include <stdint.h>

/* Paths of the *.properties files in `dir`, in name order. 0, or -errno with one line. */
int cluster_files_list(const char *dir, GPtrArray **ret, char **ret_why);
/* `--brokers=N`: writes server-1.properties ... server-N.properties with defaults. 0, or -errno with one line. */
int cluster_files_write(const char *dir, int n, char **ret_why);
/* The broker.id of a file that could not be loaded, if it can be told; else -1. */
int32_t cluster_files_guess_id(const char *file);
