/*
 * The make lines that mend a finding, for the Makefile that the task's rule is in. make reads back
 * from each exactly the names it was made of.
 *
 * Some names cannot be written in a Makefile (with an end of line in them, say). For these there
 * is no line: false, and nothing appended.
 */
#ifndef QK_REPORT_FIX_H
#define QK_REPORT_FIX_H

#include "base/buf.h"
#include "keying/request.h"

#include <stdbool.h>

/* "target: prerequisite", both quoted as make wants them. */
bool qk_fix_prerequisite(struct qk_buf *out, const char *target, const char *prerequisite);

/*
 * For a workspace task: how its target in project.json names an absolute path, "{projectRoot}/x";
 * what would be a glob's is escaped.
 */
void qk_fix_value(struct qk_buf *out, const struct qk_request *task, const char *path);

/* What to add there: `app:build: inputs += "{projectRoot}/x", "{projectRoot}/y"`. */
void qk_fix_field(struct qk_buf *out, const char *task, const char *field,
	const char *const *values, size_t n);

/* The path as an entry of a QK_ variable: one word, and a pattern that matches it. */
void qk_fix_entry(struct qk_buf *out, const char *path);

/* "target: VARIABLE += path", the path as a glob pattern (base/glob.h) that matches it. */
bool qk_fix_variable(
	struct qk_buf *out, const char *target, const char *variable, const char *path);

#endif
