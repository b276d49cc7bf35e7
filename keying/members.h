/*
 * Which packages the package manager's workspaces select: `workspaces` of the root package.json,
 * `packages` of pnpm-workspace.yaml and of lerna.json, together, less those with a ! in front.
 */
#ifndef QK_KEYING_MEMBERS_H
#define QK_KEYING_MEMBERS_H

#include "base/err.h"
#include "keying/json.h"

#include <stdbool.h>
#include <stddef.h>

struct qk_members {
	const char **select, **leave; /* patterns of package.json files */
	size_t n_select, n_leave;
	bool has_pnpm_workspace;
};

/* root is absolute; package is its package.json or NULL. A file that does not parse is an error. */
int qk_members_read(struct qk_arena *a, const char *root, const struct qk_json *package,
	struct qk_members *ret, struct qk_err *err);

/* path is that of a package.json, relative to the root. */
bool qk_members_has(const struct qk_members *m, const char *path);

#endif
