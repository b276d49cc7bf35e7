#include "runner/workspace-task.h"

#include "base/clock.h"
#include "base/path.h"
#include "report/violation.h"
#include "runner/commands.h"
#include "runner/continuous.h"
#include "runner/frame.h"
#include "runner/held.h"
#include "runner/scratch.h"
#include "runner/task.h"
#include "runner/taskenv.h"
#include "runner/warm.h"
#include "runner/wtask-store.h"
#include "sandbox/outside.h"
#include "sandbox/walls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

static void make_key(struct qk_wtask *t)
{
	struct qk_err err = QK_ERR_INIT;

	t->inputs = (struct qk_taskkey){ .req = t->req, .spec = &t->spec, .hash = t->hash };
	if (qk_taskkey_make(&t->inputs, &t->key, &err)) {
		qk_wtask_uncache(t, err.msg);
		return;
	}
	qk_digest_hex(&t->key, t->hex);
	t->has_key = true;
	t->status.key = t->hex;
}

static void __attribute__((noreturn)) fail(struct qk_wtask *t, const char *what)
{
	fprintf(stderr, "qk: %s: %s\n", t->spec.id, what);
	if (t->req->mode != QK_MODE_OFF)
		qk_wtask_leave_result(t, QK_FATE_REFUSED, what);
	qk_wtask_leave_status(t, QK_STATUS_RAN, QK_TASK_FAILED << 8);
	_exit(QK_TASK_FAILED);
}

static void declare(struct qk_wtask *t)
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

static void empty_scratches(struct qk_wtask *t)
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
static void take_turn(struct qk_wtask *t)
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
static void hold(struct qk_wtask *t, struct qk_held *h, struct qk_commands *c)
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

static struct qk_warm warmth(const struct qk_wtask *t)
{
	return (struct qk_warm){ t->req, t->spec.id, t->spec.warm.v, t->spec.warm.n };
}

static bool is_input(void *task, const char *path)
{
	const struct qk_wtask *t = task;
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
static void leave_violations(struct qk_wtask *t, const struct qk_violations *v,
	const struct qk_violation_scope *scope, int status)
{
	qk_autobuf struct qk_buf fix = QK_BUF_INIT;
	struct qk_err err = QK_ERR_INIT;
	struct qk_result r;

	qk_result_init(&r, t->req->make_pid, t->req->offset);
	r.status = status;
	for (size_t i = 0; i < v->v.n; i++)
		qk_strv_take(&r.violations, qk_asprintf("%c%s",
			v->v.v[i].kind == QK_VIOLATION_READ || v->v.v[i].kind == QK_VIOLATION_WITHHELD
				? 'r' : 'w', v->v.v[i].path));
	qk_violations_fix(&fix, v, scope);
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
static int judge_grants(struct qk_wtask *t, const struct qk_held *h, int status)
{
	qk_autofree char *project = qk_path_join(t->req->root, t->spec.project_root);
	const char *temporary = getenv("TMPDIR");
	struct qk_violation_scope scope = { .project = project, .home = getenv("HOME"),
		.temporary = temporary && *temporary == '/' ? temporary : "/tmp",
		.is_input = is_input, .arg = t };
	struct qk_violations v;
	struct qk_result all;
	struct qk_err err = QK_ERR_INIT;

	(void)qk_taskkey_load(&t->inputs);
	if (qk_held_violations(h, &scope, &all, &v, &err)) {
		fprintf(stderr, "qk: %s: %s\n", t->spec.id, err.msg);
		status = status ? status : QK_TASK_FAILED << 8;
	}
	if (v.failing)
		qk_wtask_uncache(t, "it went beyond its grants");
	if (v.failing && t->req->strict && t->req->mode == QK_MODE_ENFORCE && !status)
		status = 1 << 8;
	if (v.failing || (v.v.n && (status || t->req->mode == QK_MODE_AUDIT)))
		leave_violations(t, &v, &scope, status);
	if (t->relay.hold && status)
		qk_frame_print(&t->spec, &t->env, &t->relay.capture, &v, &scope, status,
			(unsigned long long)(qk_clock_ms() - t->start));
	else if (t->relay.hold)
		qk_capture_replay(t->relay.capture.data.s, t->relay.capture.data.len, STDOUT_FILENO,
			STDERR_FILENO);
	qk_violations_release(&v);
	qk_result_release(&all);
	return status;
}

/* What goes beyond the declarations is in no key: but what was read may be in a recording. */
static void judge(struct qk_wtask *t, const struct qk_held *h)
{
	unsigned int beyond = qk_held_went_beyond(h);

	t->read_beyond = beyond == QK_HELD_READ && h->recording && t->recordings.decides &&
			 h->mode == QK_MODE_AUDIT;
	if (beyond && !t->read_beyond)
		qk_wtask_uncache(t, "it went beyond what it declares");
}

static int run(struct qk_wtask *t)
{
	struct qk_warm warm = warmth(t);
	struct qk_commands c = { .spec = &t->spec, .env = &t->env, .relay = &t->relay };
	struct qk_err err = QK_ERR_INIT;
	struct qk_continuous k;
	struct qk_held h;
	bool goes_on = t->spec.continuous || t->spec.ready_when.n;
	int outside;

	take_turn(t);
	empty_scratches(t);
	qk_warm_restore(&warm);
	qk_ultracache_begin(&t->recordings);
	if (t->req->mode != QK_MODE_OFF && t->spec.unsandboxed)
		qk_wtask_leave_result(t, QK_FATE_UNSANDBOXED, t->spec.unsandboxed);
	if ((t->req->mode != QK_MODE_OFF && !t->spec.unsandboxed) || t->recordings.record)
		hold(t, &h, &c);
	if (qk_outputs_prepare(&t->policy, &t->made, &err))
		fail(t, err.msg);
	outside = qk_outside_prepare(&t->policy);
	if (goes_on) {
		qk_wtask_leave_state(t, NULL, false); /* its key, for those who start beside it */
		qk_continuous_begin(&k, &t->spec, t->req->run, (pid_t)t->req->make_pid, &c);
	}
	t->relay.hold = c.held && t->spec.explicit_grants && t->req->mode == QK_MODE_ENFORCE && !goes_on;
	t->relay.keep = !t->uncached || t->relay.hold;
	if ((t->relay.keep || t->spec.ready_when.n) && qk_relay_open(&t->relay, &err))
		qk_wtask_uncache(t, err.msg);
	if (qk_commands_run(&c, &err))
		fail(t, err.msg);
	if (goes_on && c.until && c.interrupted)
		c.status = 0; /* nobody needs it any more: that is how it ends */
	if (goes_on)
		qk_continuous_end(&k, c.status);
	qk_outputs_tidy(&t->made);
	qk_outside_tidy(&t->policy, outside);
	if (c.held && h.mode == QK_MODE_OFF)
		; /* recorded, and not judged */
	else if (c.held && t->spec.explicit_grants && !goes_on && !h.said->refused)
		c.status = judge_grants(t, &h, c.status);
	else if (t->relay.hold) /* not run: why is all there is to say */
		qk_capture_replay(t->relay.capture.data.s, t->relay.capture.data.len, STDOUT_FILENO,
			STDERR_FILENO);
	else if (c.held)
		judge(t, &h);
	if (!c.status && !c.interrupted)
		qk_warm_keep(&warm);
	if (c.held && h.mode != QK_MODE_OFF && h.said->unrecorded)
		qk_wtask_uncache(t, "what it did is not known completely");
	if (c.left)
		qk_wtask_uncache(t, "it left a process running");
	if (t->relay.too_much)
		qk_wtask_uncache(t, "it printed more than is kept");
	if (c.interrupted && !c.status)
		qk_wtask_uncache(t, "it was interrupted");
	return c.status;
}

void qk_workspace_task_run(const struct qk_request *r, const char *self)
{
	qk_autofree char *digests = qk_path_join(r->state, "digests");
	struct qk_wtask t = { .req = r, .claim = -1, .relay = { .capture = QK_CAPTURE_INIT } };
	struct qk_err err = QK_ERR_INIT;
	int status;

	t.start = qk_clock_ms();
	if (qk_taskspec_read(&t.spec, r->task, r->task_len, &err)) {
		fprintf(stderr, "qk: %s: %s\n", r->target, err.msg);
		_exit(QK_TASK_FAILED);
	}
	t.status.start_ms = qk_clock_since_1970();
	if (t.spec.problem)
		fail(&t, t.spec.problem);
	qk_filehash_new(&t.hash, r->root, digests, NULL);
	if (t.spec.uncached)
		qk_wtask_uncache(&t, t.spec.uncached);
	make_key(&t);
	qk_wtask_open_store(&t);
	qk_ultracache_open(&t.recordings, r, &t.spec, t.hash, t.store, t.has_key);
	if (t.spec.skip)
		qk_ultracache_ask(&t.recordings, &t.status);
	if (t.store && !t.spec.skip) {
		if (qk_wtask_restore(&t))
			_exit(0);
		t.claim = qk_store_claim(t.store, &t.key);
		/* somebody else may have made it while we waited for the right to */
		if (qk_wtask_restore(&t))
			_exit(0);
		if (t.spec.explain && !qk_taskkey_load(&t.inputs))
			qk_wtask_explain(&t);
	}
	if (qk_taskenv_make(&t.env, r, &t.spec, t.status.key, self, &err))
		fail(&t, err.msg);
	declare(&t);
	t.start = qk_clock_ms();
	status = run(&t);
	t.moved = t.has_key && !qk_taskkey_stayed(&t.inputs);
	if (status)
		qk_wtask_leave_state(&t, NULL, false);
	else
		qk_wtask_keep(&t);
	qk_wtask_leave_status(&t, QK_STATUS_RAN, status);
	if (t.claim >= 0)
		qk_store_yield(t.store, &t.key, t.claim);
	qk_task_end_as(status);
}
