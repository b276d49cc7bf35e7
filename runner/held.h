/*
 * One command of a workspace task under the recorder and, in enforce, behind walls: a process of its
 * own, which leaves a result in the run's log (report/result.h), as a recipe's line does.
 */
#ifndef QK_RUNNER_HELD_H
#define QK_RUNNER_HELD_H

#include "base/vec.h"
#include "keying/request.h"
#include "keying/taskspec.h"
#include "report/violation.h"
#include "sandbox/policy.h"

#include <stdbool.h>

enum qk_held_beyond {
	QK_HELD_READ = 1 << 0,
	QK_HELD_WROTE = 1 << 1,
};

/* In memory that the task's process shares with those of its commands. */
struct qk_held_said {
	unsigned int beyond; /* enum qk_held_beyond: a command by itself went beyond what is declared */
	bool unrecorded; /* it is not known whether one did */
	bool refused;    /* one was not run */
};

struct qk_held {
	const struct qk_request *req;
	enum qk_mode mode; /* OFF: recorded only, for `recording` */
	const struct qk_taskspec *spec;
	struct qk_policy *policy; /* complete, resolved */
	const char *recording; /* file to append the whole traces to (runner/ultracache.h); or NULL */
	const struct qk_strv *env;
	struct qk_held_said *said;
};

/* Runs command number i in this process and ends as it ended. */
void qk_held_run(void *held, size_t i) __attribute__((noreturn));

/*
 * Whether the task went beyond, once all commands have ended: what one made and a later one removed
 * is nothing. enum qk_held_beyond.
 */
unsigned int qk_held_went_beyond(const struct qk_held *h);

/*
 * Of a task with explicit grants, all commands ended: what it is told for, and how that would be
 * mended (scope's policy and ignored lists are filled in here). An unreadable log is an error.
 */
int qk_held_violations(const struct qk_held *h, struct qk_violation_scope *scope,
	struct qk_result *ret_all, struct qk_violations *ret, struct qk_err *err);

#endif
