/*
 * Continuous tasks (W6): a process of ours, the keeper, stays behind and keeps the commands running,
 * while the one that make waits for ends as soon as they are ready: when they have printed all of
 * readyWhen, or, without that, when they run. The keeper ends them when nobody needs them any more
 * (report/keepers.h), at the end of make, or when make is gone.
 */
#ifndef QK_RUNNER_CONTINUOUS_H
#define QK_RUNNER_CONTINUOUS_H

#include "base/err.h"
#include "keying/taskspec.h"
#include "runner/commands.h"

#include <stdbool.h>

struct qk_continuous {
	const struct qk_taskspec *spec;
	int ready;    /* where to say so; -1: it was said, or nobody asks */
	bool *met;    /* of readyWhen */
	size_t n_met;
	char *tail; /* the end of what was printed: one may begin there */
};

/*
 * Splits off the keeper and returns in it, with c set up to report and to go on until make ends. The
 * process make waits for does not return. foreground: there is no such split.
 */
void qk_continuous_begin(struct qk_continuous *k, const struct qk_taskspec *spec, const char *run,
	pid_t make, struct qk_commands *c);

/* The commands have ended, as status says. */
void qk_continuous_end(struct qk_continuous *k, int status);

#endif
