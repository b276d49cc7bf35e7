/*
 * Emptying scratch directories, before a task runs.
 */
#ifndef QK_RUNNER_SCRATCH_H
#define QK_RUNNER_SCRATCH_H

#include "base/err.h"

/*
 * Empties one, or makes it: name is taken from base. It lies inside the workspace root, in no walled
 * place (.git, .qk, node_modules, in any case), and no link is on the way, checked by the opening
 * itself. Errors begin with field and name.
 */
int qk_scratch_empty(const char *root, const char *base, const char *field, const char *name,
	struct qk_err *err);

#endif
