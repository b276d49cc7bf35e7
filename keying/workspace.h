/*
 * The workspace model: what nx.json and the project files say, merged by Nx's rules (its version 24
 * where versions differ), with the place of everything kept.
 *
 *   nx.json            with the file it `extends` under it and nx.local.json over it
 *   projects           every directory with a project.json, and every package the package
 *                      manager's workspaces (package.json, pnpm-workspace.yaml, lerna.json) select
 *   a project          package.json, project.json, project.local.json, later over earlier
 *   a target           targetDefaults under what the project says
 *
 * Nothing changes after qk_workspace_load; everything pointed to lives in the workspace's arena.
 * Paths are relative to the workspace root with '/' and clean; the root project's is ".".
 */
#ifndef QK_KEYING_WORKSPACE_H
#define QK_KEYING_WORKSPACE_H

#include "base/err.h"
#include "base/mem.h"
#include "keying/jsonc.h"

#include <stdbool.h>
#include <stddef.h>

struct qk_project;

/* A list of strings in the arena; v is NULL-terminated. */
struct qk_names {
	const char *const *v;
	size_t n;
};

enum qk_ultracache_mode {
	QK_ULTRACACHE_UNSET,
	QK_ULTRACACHE_ON,
	QK_ULTRACACHE_RECORD,
	QK_ULTRACACHE_OFF
};

/*
 * The qk: fields of a target. Strings are as written, tokens included: qk_tokens_path
 * (keying/tokens.h) resolves {projectRoot} and its like.
 */
struct qk_declared {
	bool sandbox_off; /* "qk:sandbox": false */
	bool weaker_when_nested;
	const struct qk_json *sandbox; /* the object, or NULL */
	const struct qk_json *allow;   /* object: the task is explicit; NULL: derived */
	const struct qk_json *deny;    /* object or NULL */
	const struct qk_json *ignore;  /* object or NULL */
	struct qk_names scratch;
	const struct qk_json *scratch_at; /* the array, for complaints about its items; or NULL */
	enum qk_ultracache_mode ultracache;
	struct qk_names ignore_reads;
	const struct qk_json *ignore_reads_at;
	struct qk_names unchecked_outputs;
	struct qk_names warm;
	const struct qk_json *warm_at; /* the array */
};

struct qk_target {
	const char *name;
	const struct qk_project *project;
	const struct qk_json
		*at; /* the target as merged; its place is that of the last file naming it */
	const char *executor; /* never NULL: "nx:run-commands", "nx:run-script", "nx:noop", ... */
	const struct qk_json *options; /* object or NULL; {projectRoot} … resolved as Nx does */
	const struct qk_json *configurations; /* object of objects, or NULL */
	const char *default_configuration;    /* or NULL */
	const struct qk_json *depends_on;     /* arrays as merged, or NULL when not given */
	const struct qk_json *inputs;
	const struct qk_json *outputs;
	bool cache;       /* "cache": true */
	bool cache_given; /* "cache" is there at all */
	bool parallelism; /* default true */
	bool continuous;
	struct qk_declared qk;
};

/* An edge of the project graph; at is what made it (a dependency's version, a pattern). */
struct qk_project_dep {
	const struct qk_project *project;
	const struct qk_json *at;
	bool implicit;
};

struct qk_project {
	const char *name;
	const char *root;              /* "libs/core", "." */
	const struct qk_json *at;      /* the file's top object that named or made it */
	const struct qk_json *package; /* package.json, or NULL */
	const char *package_name;      /* of package.json, or NULL */
	const char *package_version;
	bool in_workspaces; /* the package manager's workspaces select it */
	struct qk_names tags;
	const struct qk_json *named_inputs; /* object or NULL */
	const struct qk_json *implicit;     /* implicitDependencies as merged, array or NULL */
	const struct qk_json *source_root;  /* string or NULL */
	struct qk_target *targets;          /* sorted by name */
	size_t n_targets;
	struct qk_project_dep *deps; /* on workspace projects, sorted by name, no repeats */
	size_t n_deps;
	size_t index; /* in the workspace */
};

/* Something `qk doctor` tells: unknown qk: fields, repeated keys, executors qk does not run. */
struct qk_warning {
	const struct qk_warning *next;
	const char *text; /* starts with the place */
};

struct qk_workspace {
	struct qk_arena arena;
	const char *root;              /* absolute */
	const struct qk_json *nx;      /* nx.json as merged: object */
	const struct qk_json *package; /* the root package.json: object, or NULL */
	const char *extends_path;      /* the file nx.json extends, absolute, or NULL */
	bool has_nx_local, has_pnpm_workspace;
	const struct qk_json *named_inputs; /* object or NULL */
	const struct qk_json *target_defaults;
	const char *cache_directory; /* as written, or NULL */
	long parallel;               /* 0 = not given */
	struct qk_project *projects; /* sorted by name */
	size_t n_projects;
	const struct qk_warning *warnings; /* in the order found */
	struct qk_workspace_index *lookup; /* behind qk_workspace_project() */
};

/*
 * Loads the workspace of directory root (absolute), where nx.json or a package.json is. The first
 * fault found is the error, with its place: text that does not parse, a field of the wrong type,
 * two projects of one name, a name make cannot hold. *ret is NULL then.
 */
int qk_workspace_load(const char *root, struct qk_workspace **ret, struct qk_err *err);
void qk_workspace_free(struct qk_workspace *ws); /* NULL is fine */

/* Lookups; NULL if there is none. */
const struct qk_project *qk_workspace_project(const struct qk_workspace *ws, const char *name);
const struct qk_target *qk_project_target(const struct qk_project *p, const char *name);
/* The project whose directory holds the (clean, relative) path most closely, or NULL. */
const struct qk_project *qk_workspace_owner(const struct qk_workspace *ws, const char *path);

/*
 * Project patterns as Nx takes them: a name, a part of a name, a glob, a directory, tag:x,
 * directory:x, name:x, with ! to take away. Sets chosen[project->index] (n_projects of them, zeroed
 * by the caller) for each one selected.
 */
void qk_workspace_select(
	const struct qk_workspace *ws, const char *const *patterns, size_t n, bool *chosen);

/* Adds a warning; at (or NULL) gives the place. */
void qk_workspace_warn(struct qk_workspace *ws, const struct qk_json *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Adds one for every key given twice. */
void qk_workspace_warn_repeats(struct qk_workspace *ws, const struct qk_json_repeat *repeats);

/* True if make can hold the name: one or more of [A-Za-z0-9._@/+,:-]. */
bool qk_name_ok(const char *name);

#endif
