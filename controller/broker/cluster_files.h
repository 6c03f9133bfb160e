#pragma once
/* The broker files (*.properties) of a cluster directory. Any thread. */
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* Paths of the *.properties files in `dir` (char*, owned), in name order. 0, or -errno with one line. */
int cluster_files_list(const char *dir, GPtrArray **ret, char **ret_why);
/* Writes server-ID.properties with defaults: one log dir in `dir`, a port of its own. Its path is newly allocated.
 * -EINVAL: there is such a file, which is for another broker then. */
int cluster_files_make(const char *dir, int32_t id, char **ret_file, char **ret_why);
/* `--brokers=N`: makes those files of the brokers 1 to N that are not there. 0, or -errno with one line. */
int cluster_files_write(const char *dir, int n, char **ret_why);
/* Is nothing there, or what a cluster_files_write() has left that died or failed half-way? */
bool cluster_files_cut_short(const char *dir, int n, const GPtrArray *files);
/* The broker.id that a file, good or not, says; -1: none can be told. */
int32_t cluster_files_guess_id(const char *file);
/* The first file of the directory that says this id, newly allocated; NULL: none does. */
char *cluster_files_find(const char *dir, int32_t id);
