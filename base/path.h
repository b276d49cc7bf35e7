/*
 * Paths as text. Nothing here touches the file system; names are bytes without NUL, '/' separates.
 * A *clean* path has no empty, "." or ".." component and no trailing slash (but "/" itself).
 */
#ifndef QK_BASE_PATH_H
#define QK_BASE_PATH_H

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Appends to out the clean form of path, taken from the absolute directory base unless path is
 * absolute. ".." is resolved lexically: only for paths in which no directory is a link.
 */
void qk_path_clean(struct qk_buf *out, const char *base, const char *path);

/* The same as a new string. */
char *qk_path_join(const char *base, const char *path) __attribute__((malloc));

/* True if path is dir or lies beneath it; both clean. "/" holds everything. */
bool qk_path_under(const char *path, const char *dir);

/* For a path under dir: what follows dir ("" for dir itself), pointing into path. NULL otherwise. */
const char *qk_path_below(const char *path, const char *dir);

/* Appends path as seen from directory `from` (both clean and absolute): "../b/c", "." for itself. */
void qk_path_relative(struct qk_buf *out, const char *from, const char *path);

/* The last component; all of a path without '/'. Points into path. */
const char *qk_path_base(const char *path);

/* Length of the directory part: of "/a/b" 2, of "/a" 1, of "a" 0. */
size_t qk_path_dirlen(const char *path);

#endif
