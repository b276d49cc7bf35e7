/*
 * The forms of declared inputs, for inputs.c alone: each is read into the parts and the list of the
 * task being resolved, or gives it a reason to be uncached. File patterns are gathered by project,
 * since those with ! take away from everything beside them.
 */
#ifndef QK_KEYING_INPUTFORMS_H
#define QK_KEYING_INPUTFORMS_H

#include "keying/filesets.h"
#include "keying/inputs.h"
#include "keying/lockfile.h"

/* What is installed for one importer's project, asked for by every task of it. */
struct qk_installed {
	bool known;
	int code; /* of the lockfile, for this importer */
	struct qk_digest digest;
	struct qk_strv local; /* what of it comes from the workspace itself */
	const char *why;
};

/*
 * What a text ("production", a fileset) means as an input of one project: asked for by every task
 * that depends on the project, so worked out once. Not simple: it is more than files of that
 * project, and is gone through each time.
 */
struct qk_expansion {
	struct qk_expansion *next; /* of the same project */
	const char *text;
	bool simple;
	const struct qk_fileset *sets;
	size_t n;
	struct qk_filegroup *groups[2];
};

struct qk_inputs {
	struct qk_arena arena;
	struct qk_workspace *ws;
	const struct qk_taskgraph *graph;
	const char *cwd, *args;
	struct qk_filesets *sets;
	struct qk_resolved **tasks; /* by index */
	struct qk_filegroup **held; /* by project index: package.json and .gitignore */
	const bool **reached;       /* by project index: what it depends on, by project index */
	struct qk_expansion **expansions; /* by project index */
	struct qk_installed *installed;
	struct qk_lockfile *lock;
	const char *lock_name;    /* NULL: there is none */
	const char *lock_problem; /* it does not parse */
	const char *lock_whole;   /* why it counts whole */
	struct qk_filegroup *lock_group;
};

/* The patterns one project contributes: those of one expansion, or sets. */
struct qk_contribution {
	const struct qk_project *project;
	const struct qk_expansion *one;
	QK_VEC(struct qk_fileset) sets;
	const struct qk_json *at;
};

struct qk_resolving {
	struct qk_inputs *in;
	const struct qk_task *task;
	struct qk_resolved *ret;
	QK_VEC(struct qk_contribution) projects;
	size_t *slot; /* by project index: where in projects, counted from 1 */
	bool external_named;
	QK_VEC(const char *) external;
	int depth;
};

/* One item of `inputs`; dependency: it is met in a named input of a project depended on. */
void qk_inputforms_add(struct qk_resolving *s, const struct qk_project *p,
	const struct qk_json *item, bool dependency);

void qk_inputforms_release(struct qk_resolving *s);

/* True if the task declares what it makes; Nx presumes dist and the like of one that does not. */
bool qk_inputforms_has_outputs(const struct qk_task *t);

/* What no inputs declared means. */
void qk_inputforms_default(struct qk_resolving *s);

void qk_inputforms_note(struct qk_resolved *r, enum qk_input_kind kind, const char *name,
	const struct qk_filegroup *g, bool whole, const struct qk_json *at);

/* Makes the task uncached. The first reason stays: later ones are often its consequences. */
void qk_inputforms_give_up(struct qk_resolving *s, const struct qk_json *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
