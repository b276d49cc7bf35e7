/*
 * The make lines that mend a finding, for the Makefile that the task's rule is in.
 */
#ifndef QK_REPORT_FIX_H
#define QK_REPORT_FIX_H

#include "base/buf.h"
#include "keying/request.h"

/* "target: prerequisite", both quoted as make wants them. */
void qk_fix_prerequisite(struct qk_buf *out, const char *target, const char *prerequisite);

/*
 * For a workspace task, what to add to its target in project.json: `app:build: inputs +=
 * "{projectRoot}/x"`; path is absolute.
 */
void qk_fix_field(struct qk_buf *out, const struct qk_request *task, const char *field, const char *path);

/* `app:build: dependsOn += "lib:gen"` */
void qk_fix_depends(struct qk_buf *out, const char *task, const char *other);

/* "target: VARIABLE += path" */
void qk_fix_variable(
	struct qk_buf *out, const char *target, const char *variable, const char *path);

#endif
