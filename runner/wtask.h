/*
 * A task of a workspace on its way through the runner, and what it leaves in the run directory and
 * under .qk/ for those who come after it: its state, its status, its result. The way it goes is
 * runner/workspace-task.h, what the store has of it wtask-store.h.
 */
#ifndef QK_RUNNER_WTASK_H
#define QK_RUNNER_WTASK_H

#include "keying/outputs.h"
#include "keying/request.h"
#include "keying/store.h"
#include "keying/taskspec.h"
#include "report/result.h"
#include "report/taskstatus.h"
#include "runner/relay.h"
#include "runner/taskkey.h"
#include "runner/ultracache.h"
#include "sandbox/policy.h"

#include <stdbool.h>
#include <stdint.h>

struct qk_wtask {
	const struct qk_request *req;
	struct qk_taskspec spec;
	struct qk_taskkey inputs;
	struct qk_policy policy;
	struct qk_filehash *hash;
	struct qk_store *store; /* NULL: nothing is looked up or stored */
	struct qk_ultracache recordings;
	bool recorded; /* the result is that of a recording, under strong */
	struct qk_digest strong;
	struct qk_outputs outputs;
	struct qk_relay relay;
	struct qk_strv env, made;
	bool has_key;
	struct qk_digest key;
	char hex[QK_DIGEST_HEX];
	char *uncached; /* why not; the first reason stays */
	int claim;
	bool moved; /* an input was touched while it ran */
	struct qk_taskstatus status;
	int64_t start; /* qk_clock_ms() */
	bool let_go; /* of what it needs */
	bool read_beyond; /* under audit, what it does not declare: only a recording can hold that */
};

/* It is not to be stored, and nothing is looked up from here on. */
void qk_wtask_uncache(struct qk_wtask *t, const char *why);

/* For whoever asks later whether it is up to date; `tree`: what its outputs are, NULL if nobody knows. */
void qk_wtask_leave_state(struct qk_wtask *t, const struct qk_tree *tree, bool good);

/* What became of it, for the summary; lets go of the continuous tasks it needed. */
void qk_wtask_leave_status(struct qk_wtask *t, enum qk_status status, int exit);

/* One result without a trace. */
void qk_wtask_leave_result(struct qk_wtask *t, enum qk_fate fate, const char *why);

#endif
