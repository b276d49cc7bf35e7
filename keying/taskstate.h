/*
 * What is remembered of each workspace task from its last good run: under which key its outputs
 * were made and what they are. With it make's process can tell from stat calls that a task is up to
 * date, and a task that depends on another learns its key.
 *
 * One file, .qk/tasks, to which every process appends one record with one write; the last record of
 * a task counts. It is only ever a short cut: what is lost, damaged or not written costs a process
 * that finds the same in the store.
 *
 *   file    "qktasks1", records (base/record.h)
 *   record  ID, RUN (name of the run directory), KEY, COUNT, EXACT and STRONG as they are known, MOVED, GOOD
 */
#ifndef QK_KEYING_TASKSTATE_H
#define QK_KEYING_TASKSTATE_H

#include "base/err.h"
#include "keying/digest.h"
#include "keying/tree.h"

#include <stdbool.h>
#include <stddef.h>

struct qk_taskstate {
	const char *id;
	const char *run; /* in which it was written */
	bool has_key, has_outputs;
	bool moved; /* files that its key holds were touched while it ran */
	bool good; /* it ended well, so that key and outputs belong together */
	bool recorded; /* its result is that of a recording: stored under strong, not under key */
	struct qk_digest key, strong;
	struct qk_digest count; /* what the outputs count as (qk_tree_digest) */
	struct qk_digest exact; /* the outputs with all modes (qk_taskstate_exact) */
};

/* Appends to the file, which is made if need be. Failure is no harm: 0 or -errno. */
int qk_taskstate_append(const char *path, const struct qk_taskstate *s);

/* Everything in which a stored tree can differ from another, as one digest. */
void qk_taskstate_exact(const struct qk_tree *t, struct qk_digest *ret);

struct qk_taskstates;

/* Reads the file; a missing or damaged one holds nothing. A file mostly outdated is written anew. */
struct qk_taskstates *qk_taskstates_new(const char *path);
void qk_taskstates_free(struct qk_taskstates *s);

/* Takes in what was appended since. */
void qk_taskstates_refresh(struct qk_taskstates *s);

/* How many records said that files were touched: what was counted before has to be again. */
size_t qk_taskstates_moved(const struct qk_taskstates *s);

/* The last record of the task, or NULL. Good until the next refresh. */
const struct qk_taskstate *qk_taskstates_find(const struct qk_taskstates *s, const char *id);

#endif
