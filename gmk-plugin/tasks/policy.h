/*
 * What a task may touch in the workspace, from its declarations (E1, E2, K3): the rules of its
 * policy, for its runner.
 *
 *   read         what its key holds whole: declared inputs, package.json, the root .gitignore; json
 *                inputs; the outputs of tasks it depends on; ignored reads
 *   read, write  its outputs, warm paths and scratch directories
 *
 * node_modules, .git, dotenv files and qk's state are open by name (sandbox/policy.h). What the key
 * holds by its effect only (nx.json, project.json ...) is not among them. A directory of which every
 * candidate file is an input is one rule, unless it holds such a file undeclared.
 */
#ifndef QK_GMK_PLUGIN_TASKS_POLICY_H
#define QK_GMK_PLUGIN_TASKS_POLICY_H

#include "gmk-plugin/tasks/model.h"
#include "keying/taskspec.h"

/* Adds the rules for its outputs, which are asked for in any mode, and with all the others. */
void qk_taskpolicy_fill(struct qk_taskspec *s, struct qk_ruletask *t, bool all);

/* What recordings of the task leave out: its ignoreReads, as paths and patterns, with what they entail. */
void qk_taskpolicy_ignored(struct qk_taskspec *s, const struct qk_task *t);

/* The same as the target says it: a path stands for itself and all below. */
void qk_taskpolicy_ignored_globs(struct qk_strv *ret, const struct qk_task *t);

/*
 * Every task empties its scratch directories, so no two of a run may share or nest one: ends make
 * if this one's is, holds or lies in that of a task claimed before. Claiming twice does no harm.
 */
void qk_taskpolicy_claim_scratch(const struct qk_task *t);

/* What of "qk:sandbox" and the like cannot be: "file:line:column: …", or NULL. */
const char *qk_taskpolicy_problem(struct qk_taskspec *s, const struct qk_task *t);

#endif
