/*
 * Selecting projects by patterns, as Nx takes them wherever it asks for projects: a name; part of
 * one, between other characters than letters, digits, '-' and '@'; a glob of names or, if none
 * matches, of directories; tag:x, directory:x, name:x. A ! in front takes away again, and a first
 * pattern with ! starts from all projects.
 */
#ifndef QK_KEYING_SELECT_H
#define QK_KEYING_SELECT_H

#include "keying/workspace.h"

#include <stdbool.h>
#include <stddef.h>

/* True if the patterns select the project, as if it were alone in the workspace. */
bool qk_select_one(const struct qk_project *project, const char *const *patterns, size_t n);

/* True if Nx takes the text for a glob pattern. */
bool qk_select_is_glob(const char *text);

#endif
