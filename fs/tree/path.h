#pragma once
/* Znode paths: absolute, `/`-separated, no trailing slash except for the root. Pure. */
#include <stdbool.h>
#include <stddef.h>

/* ZooKeeper's rules (PathUtils.validatePath): starts with `/`, no empty, `.` or `..` component, valid UTF-8 without
 * U+0000-U+001F, U+007F-U+009F, the private use area, U+FFF0-U+FFFF, and whatever UTF-16 needs two units for. */
bool path_valid(const char *path);
/* The same for one component. */
bool path_valid_name(const char *name);
/* Last component, inside `path`; "" for the root. */
const char *path_name(const char *path);
/* Newly allocated. path_parent("/a/b") = "/a", path_parent("/a") = "/"; path_join("/", "a") = "/a". */
char *path_parent(const char *path);
char *path_join(const char *parent, const char *name);
/* If `path` is `prefix` + "/" + one component, that component (inside `path`); else NULL. `prefix` "/" works too. */
const char *path_child_of(const char *path, const char *prefix);
/* Is `path` equal to `top` or below it? By component, not by characters. */
bool path_is_under(const char *path, const char *top);
/* Number of components; 0 for the root. */
size_t path_depth(const char *path);
/* Component `i` (from 0) as a newly allocated string, or NULL if there are fewer. */
char *path_component(const char *path, size_t i);
/* Does `path` have the shape of `pattern`, where a component `*` stands for any one component?
 * path_matches("/brokers/topics/t", "/brokers/topics/" "*") is true. */
bool path_matches(const char *path, const char *pattern);
