/*
 * Which task makes a path: asked for every read that nothing declares, so answered by looking the
 * path and the directories above it up among the outputs of all tasks.
 */
#ifndef QK_GMK_PLUGIN_TASKS_MAKERS_H
#define QK_GMK_PLUGIN_TASKS_MAKERS_H

#include "gmk-plugin/tasks/model.h"

/*
 * The task that path (relative to the root, clean) is an output of, or lies in one; not one of the
 * target of `reader`, whatever the configuration. NULL if there is none.
 */
const struct qk_task *qk_makers_find(const char *path, const struct qk_task *reader);

#endif
