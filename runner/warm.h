/*
 * Warm paths: what a tool keeps between runs in the workspace. Where one is missing as a task is to
 * run, it is put back as the last good run of that task left it. Never part of a key, and a result
 * taken from the cache leaves them alone.
 *
 * They are kept in a store of their own (keying/store.h), warm/ in the state directory, under the name
 * of the task and the pattern. What goes wrong costs the warmth alone: one line, and the task runs.
 */
#ifndef QK_RUNNER_WARM_H
#define QK_RUNNER_WARM_H

#include "base/vec.h"
#include "keying/request.h"

/* patterns: relative to the root. id names the task. */
struct qk_warm {
	const struct qk_request *req;
	const char *id;
	const char *const *patterns;
	size_t n;
};

/* Puts back those that match nothing. */
void qk_warm_restore(const struct qk_warm *w);

/* Keeps what is there now, where it differs from what is kept. */
void qk_warm_keep(const struct qk_warm *w);

#endif
