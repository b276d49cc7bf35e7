/*
 * From the recording of one recipe line to what the cache needs: the path set, and what the line
 * changed. Here it is decided what counts.
 *
 * Left out of the set: /proc, /sys, /dev, the temporary directory (but for a workspace in it), qk's
 * state, QK_SCRATCH, QK_WARM, what QK_IGNORE_READS names; outside the workspace everything with
 * QK_SYSTEM_READS = off. Directories that lead to what counts anyway, and what is missing in a
 * missing directory, are told by one path.
 *
 * A line is not fit for the store, with a reason, if a path that counts changed while it ran, or if
 * it did what cannot be done again: wrote outside the workspace, left something in the temporary
 * directory, removed what is not the recipe's, or changed a file by contents that were not looked at
 * before (only targets, files named in QK_OUTPUTS, and what earlier lines left are). What it leaves
 * in the workspace beside its outputs, directories apart, are strays: stored with the rest, so that a
 * hit does all the line did, and known to the recipe's later lines, which may take them over. Audit
 * reports them; under walls they are not kept, nor is then the result.
 */
#ifndef QK_RUNNER_RECORDED_H
#define QK_RUNNER_RECORDED_H

#include "base/err.h"
#include "base/vec.h"
#include "keying/outputs.h"
#include "keying/pathset.h"
#include "keying/request.h"
#include "keying/tree.h"
#include "runner/snapshot.h"
#include "sandbox/policy.h"
#include "sandbox/trace.h"

struct qk_recorded {
	struct qk_pathset set;
	struct qk_strv left;   /* what it made or changed and is still there; relative, as all here */
	struct qk_strv gone;   /* was there before, sorted */
	struct qk_strv strays; /* of left: no outputs */
	struct qk_strv outputs; /* of the recipe, those looked at before the line ran */
	char *unfit;           /* why it cannot be stored; NULL = it can */
	bool moved;            /* that is because of something else that changed while it ran */
	bool tainted;          /* it left what lines after it may read without that counting */
};

/*
 * policy: with what the line's dependency files say. argv: the command, whose program was looked for
 * on the PATH in env before anything was recorded. The view is told the states of paths that the
 * line changed.
 */
void qk_recorded_read(struct qk_recorded *ret, const struct qk_request *r, const struct qk_trace *trace,
	const struct qk_policy *policy, const struct qk_snapshot *before, const struct qk_chain *chain,
	struct qk_pathview *view, char *const *argv, char *const *env);
/*
 * The same of a task of a workspace, all its commands ended: only what it read counts, and outputs are
 * what it declares. Left out are its own outputs, whatever stands there, and what it changed without
 * having looked at it, or in node_modules or .git. Not fit: one that changes what it read elsewhere in
 * the workspace. r: with the task's lists (SCRATCH, WARM, IGNORE_READS), taken from the root; ignored
 * reads are left out even where they are declared.
 */
void qk_recorded_task(struct qk_recorded *ret, const struct qk_request *r, const struct qk_trace *trace,
	const struct qk_outputs *outputs, struct timespec began, char *const *env);

void qk_recorded_release(struct qk_recorded *rec);

/* The tree of what is left, with digests. */
int qk_recorded_tree(const struct qk_recorded *rec, struct qk_filehash *files, struct qk_tree *ret,
	struct qk_err *err);

#endif
