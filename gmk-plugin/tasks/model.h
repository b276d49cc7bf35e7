/*
 * The workspace as this make knows it: the model, the task graphs that rules were made from, and
 * per task what was found out about it. For the files of this folder alone.
 *
 * What is dear is put off: until a first task is considered, no file is listed and nothing hashed.
 */
#ifndef QK_GMK_PLUGIN_TASKS_MODEL_H
#define QK_GMK_PLUGIN_TASKS_MODEL_H

#include "base/progress.h"
#include "gmk-plugin/taskpart.h"
#include "keying/filehash.h"
#include "keying/inputs.h"
#include "keying/packages.h"
#include "keying/taskgraph.h"
#include "keying/taskstate.h"
#include "keying/tracked.h"
#include "keying/workspace.h"

#include <stdbool.h>
#include <uthash.h>

/* A graph and what is known of the inputs of its tasks. */
struct qk_planned {
	struct qk_taskgraph *graph;
	struct qk_inputs *inputs; /* NULL until asked for */
	struct qk_packages *packages; /* NULL until asked for, or where there is nothing to tell of */
	bool packages_known;
};

enum qk_decision {
	QK_UNDECIDED,
	QK_UP_TO_DATE,
	QK_NOTHING, /* there is nothing to run: nx:noop */
	QK_TO_RUN,  /* its runner decides the rest */
	QK_PUT_BACK, /* restored by this make itself */
};

struct qk_ruletask {
	const struct qk_task *task;
	struct qk_planned *of;
	size_t number;
	bool asked;   /* a goal of this make */
	bool reached; /* asked, or needed for what is; only if the goals are known */
	size_t needed; /* by how many reached tasks, of a continuous one */
	enum qk_decision decision;
	bool has_key, counted;
	bool learned;            /* after its runner ended: what it left was read */
	struct qk_digest key;
	struct qk_digest count;  /* what its outputs count as */
	const char *unkeyed;     /* why it has no key, or NULL */
	const char *uncached;    /* why its result is not looked up nor stored, or NULL */
	uint64_t start_ms, duration_ms, saved_ms; /* PUT_BACK: as struct qk_taskstatus has them */
	UT_hash_handle hh;       /* by id */
};

struct qk_model {
	const struct qk_taskhost *host;
	struct qk_arena arena;
	struct qk_workspace *ws;
	QK_VEC(struct qk_planned *) planned;
	size_t of_run; /* which of them has every target, in the configuration of this run */
	QK_VEC(struct qk_ruletask *) tasks;
	struct qk_ruletask *by_id;
	bool pretended;   /* -n, -q or -t: nothing became of any task */
	bool goals_known; /* every goal of this make is of the workspace */
	char *args; /* ARGS, or NULL */
	struct qk_progress progress;
	size_t considered; /* recipes asked for */

	/* from the first task considered on */
	bool opened;
	struct qk_tracked tracked;
	const char *tracked_problem;
	struct qk_filehash *hash;     /* NULL: nothing is remembered yet */
	struct qk_taskstates *states; /* NULL until opened */
	char *run;                    /* name of the run directory, once there is one */
};

extern struct qk_model qk_model;

struct qk_ruletask *qk_model_task(const char *id);

/* Does what was put off; the hash alone, if by now there is a state directory. */
void qk_model_open(void);
void qk_model_open_hash(void);

/* The inputs of the task, resolved. NULL: they cannot be told (qk_model.tracked_problem). */
struct qk_resolved *qk_model_inputs(struct qk_ruletask *t);

/* What is installed, if that can be told; else NULL. */
struct qk_packages *qk_model_packages(struct qk_ruletask *t);

#endif
