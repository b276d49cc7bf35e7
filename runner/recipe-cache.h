/*
 * One recipe line and the cache (K8, R1 to R4), in three calls of the task: _find before anything is
 * set up (a hit ends the process), _begin before the command runs, _finish after it has ended.
 *
 * Without caching (request.caching is 0) all three do nothing. Trouble with the cache is never the
 * line's: it runs as without one, and the result says why it was not kept.
 */
#ifndef QK_RUNNER_RECIPE_CACHE_H
#define QK_RUNNER_RECIPE_CACHE_H

#include "keying/filehash.h"
#include "keying/pathset.h"
#include "keying/store.h"
#include "report/result.h"
#include "runner/chain.h"
#include "runner/recorded.h"
#include "runner/tee.h"
#include "sandbox/run.h"

struct qk_recipe_cache {
	const struct qk_request *req;
	struct qk_result *result;
	const struct qk_strv *argv, *env;
	bool on;     /* the line has a key */
	bool record; /* what it looks at is wanted */
	bool keep;   /* and its result */
	struct qk_filehash *files;
	struct qk_store *store;
	struct qk_chain chain;
	struct qk_pathview view;
	struct qk_buf text; /* the weak key's fields */
	struct qk_digest weak;
	struct qk_snapshot before;
	struct qk_tee tee;
	bool teeing;
	int64_t began; /* qk_clock_ms() */
};

/*
 * Looks the line up. Found: what it did is done again, what it printed is printed, its result is in
 * the run's log, and the process is over. argv and env are the command's and must stay.
 */
void qk_recipe_cache_find(struct qk_recipe_cache *c, const struct qk_request *r, struct qk_result *result,
	const struct qk_strv *argv, const struct qk_strv *env);

/*
 * QK_WHY: tells, for the target that was asked about, whether the line would be restored and else why
 * not, and ends the process; nothing is run or changed. never: why the line's result is never stored.
 */
void qk_recipe_cache_ask(struct qk_recipe_cache *c, const struct qk_request *r, struct qk_result *result,
	const struct qk_strv *argv, const struct qk_strv *env, const char *never) __attribute__((noreturn));

/* Has the run recorded and listened to as far as that is wanted. */
void qk_recipe_cache_begin(struct qk_recipe_cache *c, struct qk_run_spec *spec);

/* The command has ended, or could not be started: 1 and 2 are this process's own again. */
void qk_recipe_cache_ended(struct qk_recipe_cache *c, const struct qk_run_result *ran);

/*
 * Keeps the recording and the result if they are fit; says in the task's result if they are not.
 * policy: with what dependency files say. status: as the line will end. After walls are down.
 */
void qk_recipe_cache_finish(struct qk_recipe_cache *c, const struct qk_policy *policy, int status);

#endif
