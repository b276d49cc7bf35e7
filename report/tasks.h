/*
 * The tasks of a run as they come out of its logs, before anything is judged: one per request,
 * with the traces of its lines joined.
 */
#ifndef QK_REPORT_TASKS_H
#define QK_REPORT_TASKS_H

#include "keying/request.h"
#include "report/graph.h"
#include "report/result.h"
#include "report/session.h"

#include <uthash.h>

/* The policy's word on one path of a task; the kindest of its lines' verdicts. */
struct qk_task_verdict {
	const char *path;
	struct qk_judged judged;
	UT_hash_handle hh;
};

struct qk_task {
	struct qk_request req;
	const char *name; /* target, relative to where the top make started */
	struct qk_task *parent; /* the recipe that started this one's make; NULL at the top */
	struct qk_trace trace;
	struct qk_task_verdict *verdicts;
	struct qk_strv left, stray;
	struct qk_strv violations; /* as results have them */
	char *fix;
	char *why;              /* for the standing that is not AUDITED */
	unsigned int lines;     /* results that count as a task's */
	unsigned int submakes, unsandboxed, refused, restored;
	char *uncached; /* why a line was not stored; NULL = all were, or were not to be */
	bool failed;
};

struct qk_tasks {
	struct qk_arena arena;
	QK_VEC(struct qk_task *) v; /* as each make started them, a sub-make's after the recipe that started it */
	struct qk_graph *graph;
	char *trouble;
};

/* Reads requests, results and graphs of the session's run. What cannot be read is in trouble. */
void qk_tasks_read(struct qk_tasks *ts, const struct qk_session *session);
void qk_tasks_release(struct qk_tasks *ts);

/* The verdict on a path of the task's trace. */
const struct qk_judged *qk_task_judged(const struct qk_task *t, const char *path);

/*
 * True if one of the two waits for the other, by prerequisites or by a common recipe's lines.
 * False sets *ret_a and *ret_b to the recipes of one make that lead to a and b and do not wait.
 */
bool qk_tasks_ordered(const struct qk_tasks *ts, const struct qk_task *a, const struct qk_task *b,
	const struct qk_task **ret_a, const struct qk_task **ret_b);

#endif
