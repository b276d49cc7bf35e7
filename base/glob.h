/*
 * Glob patterns, as in Nx, pnpm and .gitignore-like lists:
 *
 *   *      any run of bytes within one component     ?      one byte of a component
 *   [a-z] [!a]  a class, within a component          {a,b}  either (nesting allowed)
 *   **     as a whole component: any number of components, none included
 *   !(a|b) @(a|b) *(..) +(..) ?(..)  extended groups, within a component
 *   \x     x itself
 *
 * A leading '.' needs no special mention: * and ** match dotfiles.
 */
#ifndef QK_BASE_GLOB_H
#define QK_BASE_GLOB_H

#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"

#include <stdbool.h>

/* True if pattern matches the whole of path. Pure. */
bool qk_glob_match(const char *pattern, const char *path);

/* True if the text has any pattern character, so that it is not a literal path. */
bool qk_glob_is_pattern(const char *text);

/* Appends to out the pattern that matches this very path. */
void qk_glob_quote(struct qk_buf *out, const char *path);

/* Length of the leading part of a pattern that is literal directories: of "a/b/c*" 3 ("a/b"). */
size_t qk_glob_literal_dir(const char *pattern);

/*
 * Appends to out the existing paths that the absolute pattern matches, walked from its literal
 * directory, in byte order. Never enters .git, .qk or node_modules unless the pattern names one
 * literally; links are listed, not followed. Missing directories match nothing. The only errors
 * are of directories that cannot be listed.
 */
int qk_glob_walk(const char *pattern, struct qk_strv *out, struct qk_err *err);

#endif
