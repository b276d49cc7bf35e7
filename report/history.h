/*
 * The runs of a workspace or Makefile that lie behind: .qk/runs/ID, one file each, the newest 100 of
 * them. A file is a record (base/record.h) of the run, tags in history.c, and one for each task that
 * was not up to date, as in the file `statuses` of the run directory (report/taskstatus.h). It is
 * written whole or not at all; what cannot be read is no run.
 *
 * ID is MILLISECONDS-PID, since 1970, so that names sort by time.
 */
#ifndef QK_REPORT_HISTORY_H
#define QK_REPORT_HISTORY_H

#include "base/err.h"
#include "base/vec.h"
#include "report/taskstatus.h"

#include <stdbool.h>
#include <stdint.h>

enum { QK_HISTORY_RUNS = 100, QK_HISTORY_REPORT_MAX = 1 << 20 };

struct qk_run {
	const char *id;
	const char *mode;   /* "audit", "enforce", "off" */
	const char *goals;  /* as given; "" for the default goal */
	const char *cwd;    /* where make started, absolute */
	const char *report; /* as SANDBOX_REPORT has it; NULL without a sandbox, or beyond the limit */
	int status;         /* make's exit status */
	uint64_t start_ms, duration_ms;
	uint64_t up_to_date; /* tasks that were, which are not among tasks */
	struct qk_taskstatuses tasks; /* owns all texts above when read */
};

/* Keeps the run in the state directory and forgets those past the newest. */
int qk_history_add(const char *state, const struct qk_run *run, struct qk_err *err);

/* Appends the names of the runs that are kept, the newest first. */
void qk_history_list(const char *state, struct qk_strv *ret_ids);

/* -ENOENT if there is none of that name, -EBADMSG if it is damaged. */
int qk_history_read(const char *state, const char *id, struct qk_run *ret, struct qk_err *err);
void qk_run_release(struct qk_run *run);

/* How many of its tasks ended so. */
size_t qk_run_count(const struct qk_run *run, enum qk_status status, bool failed);

#endif
