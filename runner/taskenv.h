/*
 * The environment of a workspace task (W5): make's, with Nx's task variables, the dotenv files, what
 * the target says, and node_modules/.bin on PATH from the working directory upward.
 */
#ifndef QK_RUNNER_TASKENV_H
#define QK_RUNNER_TASKENV_H

#include "base/err.h"
#include "base/vec.h"
#include "keying/request.h"
#include "keying/taskspec.h"

/*
 * key: in hexadecimal, or NULL. -ENOENT and the like for an envFile that cannot be read: the task
 * cannot run.
 */
int qk_taskenv_make(struct qk_strv *env, const struct qk_request *r, const struct qk_taskspec *s,
	const char *key, const char *self, struct qk_err *err);

#endif
