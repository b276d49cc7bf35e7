/*
 * What a task with "qk:sandbox".allow may touch: what is granted and nothing else. Its inputs and
 * outputs then only make its key and say what is cached.
 *
 * Readable without a grant are node_modules of the project and of the workspace, and projects linked
 * there, if the key folds a task of theirs that has a command; others that are linked are withheld.
 * Walls: other projects, .git. A grant of what holds a wall does not reach past it.
 */
#ifndef QK_GMK_PLUGIN_TASKS_GRANTS_H
#define QK_GMK_PLUGIN_TASKS_GRANTS_H

#include "gmk-plugin/tasks/model.h"
#include "keying/request.h"
#include "keying/taskspec.h"

/* Adds rules, walls and what is hidden, withheld and ignored. Only for explicit tasks. */
void qk_taskgrants_fill(struct qk_taskspec *s, const struct qk_task *t);

/* The lists that travel in the request; strings live on in the workspace. */
void qk_taskgrants_request(struct qk_request *r, const struct qk_task *t);

#endif
