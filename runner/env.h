/*
 * The environment a command gets: as make would have given it, less what qk put there for itself.
 */
#ifndef QK_RUNNER_ENV_H
#define QK_RUNNER_ENV_H

#include "base/vec.h"
#include "keying/request.h"

/*
 * For a task: no QK_REQ, QK_RUN, QK_SHELL; MAKEFILES and SHELL as the user had them; QK_TASK says
 * to a make that the command starts by itself that it is inside a task.
 */
void qk_env_task(struct qk_strv *env, const struct qk_request *r, const char *self);

/* For a $(MAKE) line: its make joins the run, with this recipe as its parent. */
void qk_env_submake(struct qk_strv *env, const struct qk_request *r);

#endif
