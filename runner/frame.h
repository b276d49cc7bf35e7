/*
 * What is shown of a task held to explicit grants that failed: its output, held back until then, and
 * what it was refused, in one frame.
 */
#ifndef QK_RUNNER_FRAME_H
#define QK_RUNNER_FRAME_H

#include "base/vec.h"
#include "keying/capture.h"
#include "keying/taskspec.h"
#include "report/violation.h"

/*
 * Prints it to stderr. Values that env has under names that speak of secrets are not shown. status as
 * from waitpid(2), ms how long it took, scope that of the violations.
 */
void qk_frame_print(const struct qk_taskspec *spec, const struct qk_strv *env,
	const struct qk_capture *output, const struct qk_violations *v,
	const struct qk_violation_scope *scope, int status,
	unsigned long long ms);

#endif
