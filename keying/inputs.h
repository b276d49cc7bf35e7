/*
 * A task's inputs (K1): `inputs` of its target in all the forms Nx has, resolved over named inputs
 * and the project graph, and what counts without being declared, as the parts of its key.
 *
 *   "default", "^default"                      named inputs; ^ of every project depended on,
 *   "{projectRoot}/…", "{workspaceRoot}/…"     directly or not
 *   "!…", "^{projectRoot}/…"
 *   { fileset, dependencies }                  { input, projects | dependencies }
 *   { env }  { runtime }  { externalDependencies }
 *   { dependentTasksOutputFiles, transitive }
 *   { json, fields | excludeFields }           { workingDirectory: "absolute" | "relative" }
 *
 * No inputs declared means default and ^default; default, unless named, all of the project's files.
 * Nx documents these forms under "inputs and named inputs".
 *
 * Counted without being declared (K3): the project's package.json and the root .gitignore whole;
 * nx.json, project.json and their like by what they make of the task, as text; what the lockfile
 * installs (K4); each task depended on (K5).
 *
 * An input that cannot be resolved makes the task, and those that depend on it, uncached (K6): that
 * is a result with a reason, no error.
 */
#ifndef QK_KEYING_INPUTS_H
#define QK_KEYING_INPUTS_H

#include "base/err.h"
#include "keying/parts.h"
#include "keying/taskgraph.h"
#include "keying/tracked.h"
#include "keying/workspace.h"

#include <stdbool.h>
#include <stddef.h>

enum qk_input_kind {
	QK_INPUT_FILES, /* group */
	QK_INPUT_FILE,  /* name: a file held by effect, or the lockfile */
	QK_INPUT_JSON,  /* name: the file */
	QK_INPUT_ENV,
	QK_INPUT_RUNTIME,
	QK_INPUT_EXTERNAL, /* name: an importer's directory or a package's name */
	QK_INPUT_TASK,     /* name: the task */
};

struct qk_input {
	enum qk_input_kind kind;
	const char *name;
	const struct qk_filegroup *files;
	bool whole; /* the key holds all of it; else only its effect, or some fields */
	const struct qk_json *at; /* what declared it; NULL: nobody did */
};

struct qk_resolved {
	struct qk_parts parts;
	QK_VEC(struct qk_input) list;
	bool external_named; /* externalDependencies: in place of what the importers install */
	const char *uncached; /* why it cannot have a key, or NULL; in parts.arena */
};

struct qk_inputs;

/*
 * Everything given must outlive it. cwd: where the run was started (absolute), for
 * workingDirectory. args: what ARGS holds, or NULL.
 */
struct qk_inputs *qk_inputs_new(struct qk_workspace *ws, const struct qk_taskgraph *g,
	const struct qk_tracked *t, const char *cwd, const char *args);
void qk_inputs_free(struct qk_inputs *in);

/* The task's inputs; resolved once, and before it those it depends on. Lives as long as in. */
struct qk_resolved *qk_inputs_task(struct qk_inputs *in, const struct qk_task *task);

/* The same if it was asked for before, else NULL. */
struct qk_resolved *qk_inputs_met(const struct qk_inputs *in, const struct qk_task *task);

/*
 * The lockfile that counts as a whole file because it is none of pnpm's version 9, or NULL; why
 * ("package-lock.json is not read: it counts as a whole") is for saying once.
 */
const char *qk_inputs_whole_lockfile(const struct qk_inputs *in, const char **ret_why);

#endif
