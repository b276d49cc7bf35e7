/*
 * What the top make leaves for those who ask later: last.json of the state directory, which `qk fix`
 * and `qk last` read, and its place in the run history (report/history.h).
 */
#ifndef QK_GMK_PLUGIN_AFTERWARDS_H
#define QK_GMK_PLUGIN_AFTERWARDS_H

#include "base/buf.h"
#include "report/findings.h"
#include "report/taskstatus.h"

/* Takes down what is known as make starts: the time, the goals, whether it only pretends. */
void qk_afterwards_begin(void);

/* Leaves what a run under a sandbox found, as SANDBOX_REPORT has it; out gets the same. */
void qk_afterwards_found(const struct qk_report *rep, struct qk_buf *out);

/*
 * Keeps the run, unless it only pretended. statuses: the tasks of the workspace; rep: NULL, or the
 * recipes of a Makefile; found: as above, empty without a sandbox; status: make's exit status.
 */
void qk_afterwards_keep(const struct qk_taskstatuses *statuses, const struct qk_report *rep,
	const struct qk_buf *found, int status);

#endif
