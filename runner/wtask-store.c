#include "runner/wtask-store.h"

#include "base/clock.h"
#include "base/path.h"
#include "keying/grouptext.h"
#include "keying/restore.h"
#include "keying/taskstate.h"
#include "keying/why.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void qk_wtask_open_store(struct qk_wtask *t)
{
	struct qk_err err = QK_ERR_INIT;

	for (size_t i = 0; i < t->spec.outputs.n && !t->uncached; i++)
		if (qk_outputs_add(&t->outputs, t->spec.outputs.v[i], &err))
			qk_wtask_uncache(t, err.msg);
	if (!t->uncached && t->has_key && t->spec.store &&
		qk_store_new(&t->store, t->spec.store, t->spec.store_limit, &err))
		qk_wtask_uncache(t, err.msg);
}

/* True if the stored result is in place now. */
static bool put_back(struct qk_wtask *t, const struct qk_digest *key, struct qk_entry *e)
{
	struct qk_err err = QK_ERR_INIT;
	enum qk_restored how;

	if (qk_restore(t->store, key, e, &t->outputs, t->hash, t->req->run, &how, &err)) {
		qk_wtask_uncache(t, err.msg);
		return false;
	}
	if (how == QK_RESTORED_NOTHING)
		return false;
	qk_capture_replay(e->output.s, e->output.len, STDOUT_FILENO, STDERR_FILENO);
	qk_wtask_leave_state(t, &e->tree, true);
	if (t->req->mode != QK_MODE_OFF)
		qk_wtask_leave_result(t, QK_FATE_RESTORED, NULL);
	t->status.saved_ms = e->duration_ms;
	qk_wtask_leave_status(t, QK_STATUS_RESTORED, 0);
	return true;
}

bool qk_wtask_restore(struct qk_wtask *t)
{
	qk_autoentry struct qk_entry e = QK_ENTRY_INIT, recorded = QK_ENTRY_INIT;
	struct qk_err err = QK_ERR_INIT;
	int r;

	qk_ultracache_ask(&t->recordings, &t->status);
	if (qk_ultracache_find(&t->recordings, &recorded, &t->strong)) {
		t->recorded = true;
		if (put_back(t, &t->strong, &recorded))
			return true;
		t->recorded = false;
	}
	r = qk_store_get(t->store, &t->key, &e, &err);
	if (r < 0)
		qk_wtask_uncache(t, err.msg);
	return r > 0 && put_back(t, &t->key, &e);
}

void qk_wtask_explain(struct qk_wtask *t)
{
	qk_autofree char *file = qk_path_join(t->req->state, "tasks"), *why = NULL;
	struct qk_taskstates *states = qk_taskstates_new(file);
	const struct qk_taskstate *last = qk_taskstates_find(states, t->spec.id);

	if (!last || !last->has_key)
		why = qk_strdup("it has no result yet");
	else if (last->recorded)
		why = qk_why_recorded(t->store, &last->strong, &t->spec.parts, &t->recordings.view);
	else if (qk_digest_eq(&last->key, &t->key))
		why = qk_strdup("its last run left no result");
	else
		why = qk_why_task(t->store, &last->key, &t->spec.parts, t->hash);
	fprintf(stderr, "qk: %s: runs: %s\n", t->spec.id, why ? why : "its last result is gone");
	qk_taskstates_free(states);
}

static const char *how(const struct qk_wtask *t)
{
	if (t->req->mode == QK_MODE_OFF || t->spec.unsandboxed)
		return "off";
	return t->req->mode == QK_MODE_AUDIT ? "audit" : qk_backend_name((enum qk_backend)t->req->backend);
}

/* Under the key; e has all but its text. */
static void store(struct qk_wtask *t, struct qk_entry *e)
{
	qk_autobuf struct qk_buf text = QK_BUF_INIT;
	struct qk_err err = QK_ERR_INIT;
	struct qk_digest again;

	qk_parts_fold(&t->spec.parts, "task", &text, &again);
	e->text = text.s;
	if (qk_store_put(t->store, &t->key, e, qk_filehash_rootfd(t->hash), &err))
		qk_wtask_uncache(t, err.msg);
	else
		qk_grouptext_keep(t->store, &t->spec.parts, t->hash);
}

/* By the recording, if there is one, and else under the key; in mode record by both. */
static void store_result(struct qk_wtask *t, struct qk_tree *tree)
{
	struct qk_entry e = { .tree = *tree,
		.output = t->relay.capture.data,
		.task = (char *)t->spec.id,
		.how = (char *)how(t),
		.duration_ms = (uint64_t)(qk_clock_ms() - t->start),
		.made = qk_clock_since_1970() / 1000 };
	struct qk_err err = QK_ERR_INIT;
	int kept = 0;

	if (t->recordings.record)
		kept = qk_ultracache_keep(&t->recordings, &t->outputs, &e, &t->env, &t->status, &t->strong, &err);
	t->recorded = kept == 1 && t->recordings.decides;
	if (kept < 0)
		qk_wtask_uncache(t, err.msg);
	else if (t->read_beyond && !t->recorded)
		qk_wtask_uncache(t, "it went beyond what it declares");
	else if (!t->recorded)
		store(t, &e);
}

void qk_wtask_keep(struct qk_wtask *t)
{
	qk_autotree struct qk_tree tree = { 0 };
	struct qk_err err = QK_ERR_INIT;

	if (!t->hash || qk_outputs_list(&t->outputs, qk_filehash_rootfd(t->hash), 0, &tree, &err) ||
		qk_outputs_digests(&tree, t->hash, 0, &err)) {
		qk_wtask_uncache(t, err.msg);
		qk_wtask_leave_state(t, NULL, false);
		return;
	}
	qk_ultracache_compare(&t->recordings, &tree, &t->status);
	if (t->moved)
		qk_wtask_uncache(t, "an input changed while it ran");
	if (!t->uncached && t->store)
		store_result(t, &tree);
	qk_wtask_leave_state(t, &tree, !t->uncached);
}
