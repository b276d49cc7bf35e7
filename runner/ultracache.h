/*
 * Recordings of workspace tasks that opted in ("qk:ultracache"; R1, R2). Under the weak key (all that a
 * task's key holds but files) lie the newest path sets of its recorded runs; with the states of these
 * paths each gives a strong key, under which the store has what that run made.
 *
 *   mode on       what a recording leads to is restored; a task of which none leads to anything is
 *                 looked up by its declared key, as one without recordings
 *   mode record   the declared key decides; the run says what the recordings would have
 *
 * Only a run with RECORD=1 keeps anything new, of a task that ended well and whose recording is
 * complete. With mode on its result then lies under the strong key alone: what it read undeclared
 * counts from there on.
 */
#ifndef QK_RUNNER_ULTRACACHE_H
#define QK_RUNNER_ULTRACACHE_H

#include "keying/outputs.h"
#include "keying/pathset.h"
#include "keying/request.h"
#include "keying/store.h"
#include "keying/taskspec.h"
#include "report/taskstatus.h"
#include "sandbox/trace.h"

#include <time.h>

struct qk_ultracache {
	const struct qk_request *req;
	const struct qk_taskspec *spec;
	struct qk_store *store;
	bool decides;  /* mode on */
	bool tells;    /* mode record */
	bool record;   /* what the task does is to be recorded: into the file `recording` */
	char *recording;
	struct qk_digest weak;
	struct qk_buf text; /* the weak key's fields */
	struct qk_pathview view;
	struct timespec began;
	struct qk_entry would; /* tells: what the recordings lead to; its task is NULL: nothing */
	QK_VEC(const char *) differing; /* ends in NULL once it is known */
};

/* Does nothing for a task that did not opt in, that has no key (has_key) or no store (NULL). */
void qk_ultracache_open(struct qk_ultracache *u, const struct qk_request *r, const struct qk_taskspec *spec,
	struct qk_filehash *files, struct qk_store *store, bool has_key);

/* True: a recording leads to the result *ret, stored under *strong. */
bool qk_ultracache_find(struct qk_ultracache *u, struct qk_entry *ret, struct qk_digest *strong);

/* mode record: asks the recordings, and notes their answer in the status. */
void qk_ultracache_ask(struct qk_ultracache *u, struct qk_taskstatus *status);

/* The commands are about to run. */
void qk_ultracache_begin(struct qk_ultracache *u);

/* A command's process leaves its whole trace in the file. */
void qk_ultracache_leave(const char *recording, const struct qk_trace *trace);

/*
 * The task ended well, and e is its result, with its tree: keeps the recording, and the result under
 * the strong key. 1: both are kept. 0: not, and the status says why. -EBUSY: what was read has changed
 * meanwhile, so that the result is good for nothing; *err names it.
 */
int qk_ultracache_keep(struct qk_ultracache *u, const struct qk_outputs *outputs, const struct qk_entry *e,
	const struct qk_strv *env, struct qk_taskstatus *status, struct qk_digest *strong, struct qk_err *err);

/* mode record: which outputs the recordings would have had otherwise, but for uncheckedOutputs. */
void qk_ultracache_compare(struct qk_ultracache *u, const struct qk_tree *made, struct qk_taskstatus *status);

#endif
