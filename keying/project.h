/*
 * One project: what its package.json, project.json and project.local.json say, laid over each other
 * and over nx.json's targetDefaults.
 *
 * Its name is project.json's (or project.local.json's), else nx.name or name of package.json, else
 * the directory's in lower case. A script of package.json is a target of executor nx:run-script,
 * unless project.json gives the target of that name a command or an executor of its own.
 */
#ifndef QK_KEYING_PROJECT_H
#define QK_KEYING_PROJECT_H

#include "base/err.h"
#include "keying/workspace.h"

#include <stdbool.h>

struct qk_project_files {
	const char *root;              /* directory, "." for the workspace's */
	const struct qk_json *package; /* objects, or NULL */
	const struct qk_json *project;
	const struct qk_json *local;
	bool in_workspaces;
};

/* Fills *ret (zeroed by the caller) but for deps and index. ws has nx.json read already. */
int qk_project_build(struct qk_workspace *ws, const struct qk_project_files *files,
	struct qk_project *ret, struct qk_err *err);

#endif
