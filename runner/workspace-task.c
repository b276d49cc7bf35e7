#include "runner/workspace-task.h"

#include "base/path.h"
#include "keying/grouptext.h"
#include "keying/outputs.h"
#include "keying/restore.h"
#include "keying/store.h"
#include "keying/taskspec.h"
#include "keying/taskstate.h"
#include "keying/why.h"
#include "report/keepers.h"
#include "report/result.h"
#include "report/taskstatus.h"
#include "runner/commands.h"
#include "runner/continuous.h"
#include "runner/frame.h"
#include "runner/held.h"
#include "runner/relay.h"
#include "runner/scratch.h"
#include "runner/task.h"
#include "runner/taskenv.h"
#include "runner/taskkey.h"
#include "runner/ultracache.h"
#include "runner/warm.h"
#include "sandbox/policy.h"
#include "sandbox/walls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct wtask {
	const struct qk_request *req;
	struct qk_taskspec spec;
	struct qk_taskkey inputs;
	struct qk_policy policy;
	struct qk_filehash *hash;
	struct qk_store *store; /* NULL: nothing is looked up or stored */
	struct qk_ultracache recordings;
	bool recorded; /* the result is that of a recording, under strong */
	struct qk_digest strong;
	struct qk_outputs outputs;
	struct qk_relay relay;
	struct qk_strv env, made;
	bool has_key;
	struct qk_digest key;
	char hex[QK_DIGEST_HEX];
	char *uncached; /* why not; the first reason stays */
	int claim;
	bool moved; /* an input was touched while it ran */
	struct qk_taskstatus status;
	struct timespec start;
	bool let_go; /* of what it needs */
	bool read_beyond; /* under audit, what it does not declare: only a recording can hold that */
};

static void uncache(struct wtask *t, const char *why)
{
	if (!t->uncached)
		t->uncached = qk_strdup(why);
}

static uint64_t ms_since_1970(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static uint64_t ms_since(const struct timespec *start)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)((now.tv_sec - start->tv_sec) * 1000 +
			  (now.tv_nsec - start->tv_nsec) / 1000000);
}

/* --- the key --- */

static void make_key(struct wtask *t)
{
	struct qk_err err = QK_ERR_INIT;

	t->inputs = (struct qk_taskkey){ .req = t->req, .spec = &t->spec, .hash = t->hash };
	if (qk_taskkey_make(&t->inputs, &t->key, &err)) {
		uncache(t, err.msg);
		return;
	}
	qk_digest_hex(&t->key, t->hex);
	t->has_key = true;
	t->status.key = t->hex;
}

/* --- what is left for others --- */

static void leave_state(struct wtask *t, const struct qk_tree *tree, bool good)
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
static void let_go(struct wtask *t)
{
	for (size_t i = 0; i < t->spec.needs.n && !t->let_go; i++) {
		char *rest;
		size_t n = strtoul(t->spec.needs.v[i], &rest, 10);

		qk_keeper_let_go(t->req->run, n, strtoul(rest, NULL, 10));
	}
	t->let_go = true;
}

static void leave_status(struct wtask *t, enum qk_status status, int exit)
{
	struct qk_taskstatuses l = { 0 };
	struct qk_err err = QK_ERR_INIT;

	t->status.id = t->spec.id;
	t->status.status = status;
	t->status.exit = exit;
	t->status.duration_ms = ms_since(&t->start);
	t->status.uncached = exit ? NULL : t->uncached;
	t->status.as_declared = t->spec.uncached != NULL;
	qk_taskstatuses_add(&l, &t->status);
	if (qk_taskstatuses_append(&l, t->req->run, &err))
		fprintf(stderr, "qk: %s: status not recorded: %s\n", t->spec.id, err.msg);
	qk_taskstatuses_release(&l);
	let_go(t);
}

/* One result without a trace. */
static void leave_result(struct wtask *t, enum qk_fate fate, const char *why)
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

/* --- the store --- */

static void open_store(struct wtask *t)
{
	struct qk_err err = QK_ERR_INIT;

	for (size_t i = 0; i < t->spec.outputs.n && !t->uncached; i++)
		if (qk_outputs_add(&t->outputs, t->spec.outputs.v[i], &err))
			uncache(t, err.msg);
	if (!t->uncached && t->has_key && t->spec.store &&
		qk_store_new(&t->store, t->spec.store, t->spec.store_limit, &err))
		uncache(t, err.msg);
}

/* True if the stored result is in place now. */
static bool put_back(struct wtask *t, const struct qk_digest *key, struct qk_entry *e)
{
	struct qk_err err = QK_ERR_INIT;
	enum qk_restored how;

	if (qk_restore(t->store, key, e, &t->outputs, t->hash, t->req->run, &how, &err)) {
		uncache(t, err.msg);
		return false;
	}
	if (how == QK_RESTORED_NOTHING)
		return false;
	qk_capture_replay(e->output.s, e->output.len, STDOUT_FILENO, STDERR_FILENO);
	leave_state(t, &e->tree, true);
	if (t->req->mode != QK_MODE_OFF)
		leave_result(t, QK_FATE_RESTORED, NULL);
	t->status.saved_ms = e->duration_ms;
	leave_status(t, QK_STATUS_RESTORED, 0);
	return true;
}

/* True if the result was there, by a recording or by the key, and is in place now. */
static bool restore(struct wtask *t)
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
		uncache(t, err.msg);
	return r > 0 && put_back(t, &t->key, &e);
}

/* QK_EXPLAIN: it runs; what differs first from its last result. */
static void explain(struct wtask *t)
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

static const char *how(const struct wtask *t)
{
	if (t->req->mode == QK_MODE_OFF || t->spec.unsandboxed)
		return "off";
	return t->req->mode == QK_MODE_AUDIT ? "audit" : qk_backend_name((enum qk_backend)t->req->backend);
}

/* Under the key; e has all but its text. */
static void store(struct wtask *t, struct qk_entry *e)
{
	qk_autobuf struct qk_buf text = QK_BUF_INIT;
	struct qk_err err = QK_ERR_INIT;
	struct qk_digest again;

	qk_parts_fold(&t->spec.parts, "task", &text, &again);
	e->text = text.s;
	if (qk_store_put(t->store, &t->key, e, qk_filehash_rootfd(t->hash), &err))
		uncache(t, err.msg);
	else
		qk_grouptext_keep(t->store, &t->spec.parts, t->hash);
}

/* By the recording, if there is one, and else under the key; in mode record by both. */
static void store_result(struct wtask *t, struct qk_tree *tree)
{
	struct qk_entry e = { .tree = *tree,
		.output = t->relay.capture.data,
		.task = (char *)t->spec.id,
		.how = (char *)how(t),
		.duration_ms = ms_since(&t->start),
		.made = ms_since_1970() / 1000 };
	struct qk_err err = QK_ERR_INIT;
	int kept = 0;

	if (t->recordings.record)
		kept = qk_ultracache_keep(&t->recordings, &t->outputs, &e, &t->env, &t->status, &t->strong, &err);
	t->recorded = kept == 1 && t->recordings.decides;
	if (kept < 0)
		uncache(t, err.msg);
	else if (t->read_beyond && !t->recorded)
		uncache(t, "it went beyond what it declares");
	else if (!t->recorded)
		store(t, &e);
}

/* The commands ended well: what they made is counted, and stored if nothing speaks against it. */
static void keep(struct wtask *t)
{
	qk_autotree struct qk_tree tree = { 0 };
	struct qk_err err = QK_ERR_INIT;

	if (!t->hash || qk_outputs_list(&t->outputs, qk_filehash_rootfd(t->hash), 0, &tree, &err) ||
		qk_outputs_digests(&tree, t->hash, 0, &err)) {
		uncache(t, err.msg);
		leave_state(t, NULL, false);
		return;
	}
	qk_ultracache_compare(&t->recordings, &tree, &t->status);
	if (t->moved)
		uncache(t, "an input changed while it ran");
	if (!t->uncached && t->store)
		store_result(t, &tree);
	leave_state(t, &tree, !t->uncached);
}

/* --- running --- */

static void __attribute__((noreturn)) fail(struct wtask *t, const char *what)
{
	fprintf(stderr, "qk: %s: %s\n", t->spec.id, what);
	if (t->req->mode != QK_MODE_OFF)
		leave_result(t, QK_FATE_REFUSED, what);
	leave_status(t, QK_STATUS_RAN, QK_TASK_FAILED << 8);
	_exit(QK_TASK_FAILED);
}

static void declare(struct wtask *t)
{
	const struct qk_taskspec *s = &t->spec;

	qk_policy_init(&t->policy, t->req->root, t->req->state);
	for (size_t i = 0; i < s->rules.n; i++)
		qk_policy_add(&t->policy, t->req->root, s->rules.v[i].path,
			(enum qk_scope)s->rules.v[i].scope, s->rules.v[i].rights,
			(enum qk_reason)s->rules.v[i].reason);
	t->policy.closed = s->explicit_grants;
	for (size_t i = 0; i < s->walls.n; i++)
		qk_strv_push(&t->policy.walls, s->walls.v[i]);
	for (size_t i = 0; i < s->hidden.n; i++)
		qk_strv_push(&t->policy.hidden, s->hidden.v[i]);
	qk_policy_resolve(&t->policy);
}

static void empty_scratches(struct wtask *t)
{
	struct qk_err err = QK_ERR_INIT;

	for (size_t i = 0; i < t->spec.scratch.n; i++)
		if (qk_scratch_empty(t->req->root, t->req->root, "scratch", t->spec.scratch.v[i], &err))
			fail(t, err.msg);
}

/*
 * A task that must run alone waits for all that run, and those wait for it: a lock in the run
 * directory. A continuous task would hold up such a task for ever, so it stays out of this.
 */
static void take_turn(struct wtask *t)
{
	qk_autofree char *path = qk_asprintf("%s/alone", t->req->run);
	int fd;

	if (t->spec.continuous || (!t->spec.alone && !t->spec.beside))
		return;
	fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0666);
	while (fd >= 0 && flock(fd, t->spec.alone ? LOCK_EX : LOCK_SH) && errno == EINTR)
		;
	/* it is let go of when this process ends */
}

/* Under a sandbox commands are processes of ours; what they find out is in memory shared with them. */
static void hold(struct wtask *t, struct qk_held *h, struct qk_commands *c)
{
	struct qk_held_said *said = mmap(NULL, sizeof(*said), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (said == MAP_FAILED)
		fail(t, strerror(errno));
	*h = (struct qk_held){ .req = t->req,
		.mode = t->spec.unsandboxed ? QK_MODE_OFF : t->req->mode,
		.spec = &t->spec,
		.policy = &t->policy,
		.recording = t->recordings.record ? t->recordings.recording : NULL,
		.env = &t->env,
		.said = said };
	c->held = qk_held_run;
	c->arg = h;
}

static struct qk_warm warmth(const struct wtask *t)
{
	return (struct qk_warm){ t->req, t->spec.id, t->spec.warm.v, t->spec.warm.n };
}

static bool is_input(void *task, const char *path)
{
	const struct wtask *t = task;
	const char *below = qk_path_below(path, t->req->root);

	for (size_t i = 0; below && i < t->spec.parts.list.n; i++) {
		const struct qk_filegroup *g = t->spec.parts.list.v[i].files;

		for (size_t k = 0; g && k < g->n && g->paths; k++)
			if (g->paths[k] && !strcmp(g->paths[k], below))
				return true;
	}
	return false;
}

/* What the report is to say of it: a result of its own. */
static void leave_violations(
	struct wtask *t, const struct qk_violations *v, const char *project, int status)
{
	qk_autobuf struct qk_buf fix = QK_BUF_INIT;
	struct qk_err err = QK_ERR_INIT;
	struct qk_result r;

	qk_result_init(&r, t->req->make_pid, t->req->offset);
	r.status = status;
	for (size_t i = 0; i < v->v.n; i++)
		qk_strv_take(&r.violations, qk_asprintf("%c%s",
			v->v.v[i].kind == QK_VIOLATION_WRITE || v->v.v[i].kind == QK_VIOLATION_PAST
				? 'w' : 'r', v->v.v[i].path));
	qk_violations_fix(&fix, v, project);
	if (fix.len)
		r.fix = qk_buf_detach(&fix);
	if (qk_result_append(&r, t->req->run, &err))
		fprintf(stderr, "qk: %s: %s\n", t->spec.id, err.msg);
	qk_result_release(&r);
}

/*
 * A task with explicit grants has ended: what it did beyond them fails it, even if it took no notice
 * itself, and is shown with its output. Under audit it is only told. The status it ends with.
 */
static int judge_grants(struct wtask *t, const struct qk_held *h, int status)
{
	qk_autofree char *project = qk_path_join(t->req->root, t->spec.project_root);
	struct qk_violation_scope scope = {
		.project = project, .is_input = is_input, .arg = t };
	struct qk_violations v;
	struct qk_result all;
	struct qk_err err = QK_ERR_INIT;

	(void)qk_taskkey_load(&t->inputs);
	if (qk_held_violations(h, &scope, &all, &v, &err)) {
		fprintf(stderr, "qk: %s: %s\n", t->spec.id, err.msg);
		status = status ? status : QK_TASK_FAILED << 8;
	}
	if (v.v.n)
		uncache(t, "it went beyond its grants");
	if (v.v.n && t->req->strict && t->req->mode == QK_MODE_ENFORCE && !status)
		status = 1 << 8;
	if (v.v.n)
		leave_violations(t, &v, project, status);
	if (t->relay.hold && status)
		qk_frame_print(&t->spec, &t->env, &t->relay.capture, &v, project, status,
			(unsigned long long)ms_since(&t->start));
	else if (t->relay.hold)
		qk_capture_replay(t->relay.capture.data.s, t->relay.capture.data.len, STDOUT_FILENO,
			STDERR_FILENO);
	qk_violations_release(&v);
	qk_result_release(&all);
	return status;
}

/* What goes beyond the declarations is in no key: but what was read may be in a recording. */
static void judge(struct wtask *t, const struct qk_held *h)
{
	unsigned int beyond = qk_held_went_beyond(h);

	t->read_beyond = beyond == QK_HELD_READ && h->recording && t->recordings.decides &&
			 h->mode == QK_MODE_AUDIT;
	if (beyond && !t->read_beyond)
		uncache(t, "it went beyond what it declares");
}

static int run(struct wtask *t)
{
	struct qk_warm warm = warmth(t);
	struct qk_commands c = { .spec = &t->spec, .env = &t->env, .relay = &t->relay };
	struct qk_err err = QK_ERR_INIT;
	struct qk_continuous k;
	struct qk_held h;
	bool goes_on = t->spec.continuous || t->spec.ready_when.n;

	take_turn(t);
	empty_scratches(t);
	qk_warm_restore(&warm);
	qk_ultracache_begin(&t->recordings);
	if (t->req->mode != QK_MODE_OFF && t->spec.unsandboxed)
		leave_result(t, QK_FATE_UNSANDBOXED, t->spec.unsandboxed);
	if ((t->req->mode != QK_MODE_OFF && !t->spec.unsandboxed) || t->recordings.record)
		hold(t, &h, &c);
	if (qk_outputs_prepare(&t->policy, &t->made, &err))
		fail(t, err.msg);
	if (goes_on) {
		leave_state(t, NULL, false); /* its key, for those who start beside it */
		qk_continuous_begin(&k, &t->spec, t->req->run, (pid_t)t->req->make_pid, &c);
	}
	t->relay.hold = c.held && t->spec.explicit_grants && t->req->mode == QK_MODE_ENFORCE && !goes_on;
	t->relay.keep = !t->uncached || t->relay.hold;
	if ((t->relay.keep || t->spec.ready_when.n) && qk_relay_open(&t->relay, &err))
		uncache(t, err.msg);
	if (qk_commands_run(&c, &err))
		fail(t, err.msg);
	if (goes_on && c.until && c.interrupted)
		c.status = 0; /* nobody needs it any more: that is how it ends */
	if (goes_on)
		qk_continuous_end(&k, c.status);
	qk_outputs_tidy(&t->made);
	if (c.held && h.mode == QK_MODE_OFF)
		; /* recorded, and not judged */
	else if (c.held && t->spec.explicit_grants && !goes_on && !h.said->refused)
		c.status = judge_grants(t, &h, c.status);
	else if (c.held)
		judge(t, &h);
	if (!c.status && !c.interrupted)
		qk_warm_keep(&warm);
	if (c.held && h.mode != QK_MODE_OFF && h.said->unrecorded)
		uncache(t, "what it did is not known completely");
	if (c.left)
		uncache(t, "it left a process running");
	if (t->relay.too_much)
		uncache(t, "it printed more than is kept");
	if (c.interrupted && !c.status)
		uncache(t, "it was interrupted");
	return c.status;
}

void qk_workspace_task_run(const struct qk_request *r, const char *self)
{
	qk_autofree char *digests = qk_path_join(r->state, "digests");
	struct wtask t = { .req = r, .claim = -1, .relay = { .capture = QK_CAPTURE_INIT } };
	struct qk_err err = QK_ERR_INIT;
	int status;

	clock_gettime(CLOCK_MONOTONIC, &t.start);
	if (qk_taskspec_read(&t.spec, r->task, r->task_len, &err)) {
		fprintf(stderr, "qk: %s: %s\n", r->target, err.msg);
		_exit(QK_TASK_FAILED);
	}
	t.status.start_ms = ms_since_1970();
	if (t.spec.problem)
		fail(&t, t.spec.problem);
	qk_filehash_new(&t.hash, r->root, digests, NULL);
	if (t.spec.uncached)
		uncache(&t, t.spec.uncached);
	make_key(&t);
	open_store(&t);
	qk_ultracache_open(&t.recordings, r, &t.spec, t.hash, t.store, t.has_key);
	if (t.spec.skip)
		qk_ultracache_ask(&t.recordings, &t.status);
	if (t.store && !t.spec.skip) {
		if (restore(&t))
			_exit(0);
		t.claim = qk_store_claim(t.store, &t.key);
		/* somebody else may have made it while we waited for the right to */
		if (restore(&t))
			_exit(0);
		if (t.spec.explain && !qk_taskkey_load(&t.inputs))
			explain(&t);
	}
	if (qk_taskenv_make(&t.env, r, &t.spec, t.status.key, self, &err))
		fail(&t, err.msg);
	declare(&t);
	clock_gettime(CLOCK_MONOTONIC, &t.start);
	status = run(&t);
	t.moved = t.has_key && !qk_taskkey_stayed(&t.inputs);
	if (status)
		leave_state(&t, NULL, false);
	else
		keep(&t);
	leave_status(&t, QK_STATUS_RAN, status);
	if (t.claim >= 0)
		qk_store_yield(t.store, &t.key, t.claim);
	qk_task_end_as(status);
}
