#include "runner/wtask.h"

#include "base/clock.h"
#include "base/path.h"
#include "keying/taskstate.h"
#include "report/keepers.h"

#include <stdio.h>
#include <stdlib.h>

void qk_wtask_uncache(struct qk_wtask *t, const char *why)
{
	if (!t->uncached)
		t->uncached = qk_strdup(why);
}

void qk_wtask_leave_state(struct qk_wtask *t, const struct qk_tree *tree, bool good)
{
	qk_autofree char *path = qk_path_join(t->req->state, "tasks");
	struct qk_taskstate s = { .id = t->spec.id,
		.run = qk_path_base(t->req->run),
		.has_key = t->has_key,
		.key = t->key,
		.recorded = t->recorded && good,
		.strong = t->strong,
		.moved = t->moved,
		.good = good };

	if (tree) {
		s.has_outputs = true;
		qk_tree_digest(tree, &s.count);
		qk_taskstate_exact(tree, &s.exact);
	}
	qk_taskstate_append(path, &s);
}

/* Continuous tasks that it needs have one less to run for. */
static void let_go(struct qk_wtask *t)
{
	for (size_t i = 0; i < t->spec.needs.n && !t->let_go; i++) {
		char *rest;
		size_t n = strtoul(t->spec.needs.v[i], &rest, 10);

		qk_keeper_let_go(t->req->run, n, strtoul(rest, NULL, 10));
	}
	t->let_go = true;
}

void qk_wtask_leave_status(struct qk_wtask *t, enum qk_status status, int exit)
{
	struct qk_taskstatuses l = { 0 };
	struct qk_err err = QK_ERR_INIT;

	t->status.id = t->spec.id;
	t->status.status = status;
	t->status.exit = exit;
	t->status.duration_ms = (uint64_t)(qk_clock_ms() - t->start);
	t->status.uncached = exit ? NULL : t->uncached;
	t->status.as_declared = t->spec.uncached != NULL;
	qk_taskstatuses_add(&l, &t->status);
	if (qk_taskstatuses_append(&l, t->req->run, &err))
		fprintf(stderr, "qk: %s: status not recorded: %s\n", t->spec.id, err.msg);
	qk_taskstatuses_release(&l);
	let_go(t);
}

void qk_wtask_leave_result(struct qk_wtask *t, enum qk_fate fate, const char *why)
{
	struct qk_result r;
	struct qk_err err = QK_ERR_INIT;

	qk_result_init(&r, t->req->make_pid, t->req->offset);
	r.fate = fate;
	r.why = why ? qk_strdup(why) : NULL;
	if (qk_result_append(&r, t->req->run, &err))
		fprintf(stderr, "qk: %s: %s\n", t->spec.id, err.msg);
	qk_result_release(&r);
}
