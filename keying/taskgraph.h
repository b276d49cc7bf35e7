/*
 * The task graph: which task must come before which, from `dependsOn`, by Nx's rules.
 *
 *   "build"            the same project's          "^build"     every project it depends on; a
 *   "app:build"        one project's                            project without that target stands
 *   "build-*"          every target so named                    for the projects it depends on
 *   { "target", "projects" | "dependencies", "params", "options" }
 *
 * A dependsOn that leads to nothing is no fault (Nx ignores it); where it can only be a slip, it is
 * warned about. A cycle is an error that names every task on it.
 *
 * Configurations: a run asks for one (or none), and each task gets it if its target has it, else
 * its defaultConfiguration. So a task's dependencies hang on what the whole run asked for, and a
 * graph is built for one request.
 */
#ifndef QK_KEYING_TASKGRAPH_H
#define QK_KEYING_TASKGRAPH_H

#include "base/err.h"
#include "keying/workspace.h"

#include <stdbool.h>
#include <stddef.h>

struct qk_task {
	const char *id; /* "app:build", "app:build:production" */
	const struct qk_project *project;
	const struct qk_target *target;
	const char *configuration;     /* or NULL */
	const struct qk_json *options; /* object or NULL: options, then configuration, then what a
					* dependsOn forwards */
	struct qk_names outputs;     /* tokens resolved; relative to the workspace root, '!' kept */
	const char *outputs_problem; /* an output that cannot be taken, with its place: such a
				      * task must not be cached; or NULL */
	bool forwards_args;          /* takes the run's ARGS: asked for, or "params": "forward" */
	bool asked;                  /* one of those the graph was built for */
	struct qk_task **deps; /* to be finished before; no repeats, in order of declaration */
	size_t n_deps;
	struct qk_task **continuous; /* to be running before (continuous targets) */
	size_t n_continuous;
	size_t index; /* in the graph: after all deps and continuous */
};

struct qk_taskgraph {
	struct qk_arena arena;
	const struct qk_workspace *ws;
	const char *configuration; /* asked for, or NULL */
	struct qk_task **tasks;    /* dependencies first */
	size_t n_tasks;
	struct qk_taskgraph_index *lookup;
};

/*
 * Builds the graph of these targets (with all they need). configuration may be NULL. With targets
 * NULL: of every target of the workspace. *ret is NULL on error. The workspace must outlive it.
 */
int qk_taskgraph_build(struct qk_workspace *ws, const struct qk_target *const *targets, size_t n,
	const char *configuration, struct qk_taskgraph **ret, struct qk_err *err);
void qk_taskgraph_free(struct qk_taskgraph *g);

/* By id, or NULL. */
const struct qk_task *qk_taskgraph_task(const struct qk_taskgraph *g, const char *id);

/*
 * Takes "app:build" or "app:build:production" apart (names may hold colons as far as Nx allows).
 * -ENOENT with a message that says which part is not known.
 */
int qk_task_parse(const struct qk_workspace *ws, const char *id, const struct qk_target **ret,
	const char **ret_configuration, struct qk_err *err);

#endif
