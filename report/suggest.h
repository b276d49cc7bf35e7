/*
 * Many paths said in few globs: what to declare for a task that read a thousand files.
 *
 * Paths are as inputs of project.json name them ("{projectRoot}/src/a.c", glob characters escaped).
 * Directories are opened up from the top as long as the list stays short, so that a glob reaches no
 * further than it must; the workspace as a whole is never suggested.
 */
#ifndef QK_REPORT_SUGGEST_H
#define QK_REPORT_SUGGEST_H

#include "base/vec.h"

#include <stddef.h>

/*
 * Pushes globs that match all n paths, those that match most of them first, equals in byte order. Up
 * to `most` paths stand for themselves; more than `most` globs come out only where the paths lie in
 * more directories at the top of the workspace. The paths get sorted, and repeats are dropped.
 */
void qk_suggest(struct qk_strv *out, const char **paths, size_t n, size_t most);

#endif
