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
 * For a workspace task, what to add to its target in project.json: `app:build: inputs +=
 * "{projectRoot}/x"`; path is absolute.
 */
void qk_fix_field(struct qk_buf *out, const struct qk_request *task, const char *field, const char *path);

/* `app:build: dependsOn += "lib:gen"` */
void qk_fix_depends(struct qk_buf *out, const char *task, const char *other);

/* "target: VARIABLE += path", the path as a glob pattern (base/glob.h) that matches it. */
bool qk_fix_variable(
	struct qk_buf *out, const char *target, const char *variable, const char *path);

#endif
