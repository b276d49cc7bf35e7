/*
 * The tokens of Nx: {projectRoot}, {projectName}, {workspaceRoot}, {options.x}.
 *
 * A token may hold alternatives: {options.outputPath ?? dist/{projectRoot}} is the first that has a
 * value, the last one standing for itself. What is not a token ("{a,b}") stays as it is.
 */
#ifndef QK_KEYING_TOKENS_H
#define QK_KEYING_TOKENS_H

#include "base/buf.h"
#include "base/err.h"
#include "keying/json.h"

#include <stdbool.h>

struct qk_project;

/*
 * Tokens in the options of a target, in all strings of v at any depth, as Nx resolves them when it
 * reads a project: a leading {workspaceRoot}/ goes (-EINVAL elsewhere in a string), {projectRoot}
 * and {projectName} are replaced. Returns v itself where nothing changed.
 */
int qk_tokens_in_options(struct qk_arena *a, const struct qk_json *v, const char *project_root,
	const char *project_name, const struct qk_json **ret, struct qk_err *err);

/*
 * Appends text as a clean path relative to the workspace root. options may be NULL. A leading '!'
 * stays in front. False, and nothing appended, if a token in it has no value, or if the path is
 * absolute or leads out of the workspace (*ret_why then says which, unless it is NULL).
 * An empty path (the workspace itself) is ".".
 */
bool qk_tokens_path(struct qk_buf *out, const char *text, const struct qk_project *project,
	const struct qk_json *options, const char **ret_why);

/* Appends text with its tokens replaced, {workspaceRoot} by root; unknown ones stay. */
void qk_tokens_text(struct qk_buf *out, const char *text, const struct qk_project *project,
	const struct qk_json *options, const char *root);

#endif
