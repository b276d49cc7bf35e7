/*
 * The make lines that mend a finding, for the Makefile that the task's rule is in.
 */
#ifndef QK_REPORT_FIX_H
#define QK_REPORT_FIX_H

#include "base/buf.h"

/* "target: prerequisite", both quoted as make wants them. */
void qk_fix_prerequisite(struct qk_buf *out, const char *target, const char *prerequisite);

/* "target: VARIABLE += path" */
void qk_fix_variable(
	struct qk_buf *out, const char *target, const char *variable, const char *path);

#endif
