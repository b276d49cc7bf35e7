/*
 * Finds the directories that may be projects: those with a project.json, project.local.json or
 * package.json. Never entered: .git, .qk, .nx, .yarn, node_modules, what .gitignore and .nxignore
 * files rule out, and links.
 */
#ifndef QK_KEYING_DISCOVER_H
#define QK_KEYING_DISCOVER_H

#include "base/err.h"
#include "base/mem.h"

#include <stdbool.h>
#include <stddef.h>

struct qk_found {
	const char *dir; /* relative to the root, "." for it */
	bool project, project_local, package;
};

/* Everything below root, in byte order of dir, in the arena. Only an unreadable root is an error.
 */
int qk_discover(struct qk_arena *a, const char *root, struct qk_found **ret, size_t *ret_n,
	struct qk_err *err);

#endif
