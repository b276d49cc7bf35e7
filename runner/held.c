#include "runner/held.h"

#include "base/fdio.h"
#include "base/path.h"
#include "keying/dotenv.h"
#include "report/kinds.h"
#include "report/result.h"
#include "runner/task.h"
#include "runner/ultracache.h"
#include "runner/wayout.h"
#include "sandbox/run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct holding {
	struct qk_held *h;
	struct qk_result result;
	struct qk_walls walls;
	struct qk_strv bound, env, argv;
	char *layer;
};

static void append_result(struct holding *o)
{
	struct qk_err err = QK_ERR_INIT;

	if (o->h->mode == QK_MODE_OFF)
		return; /* nobody judges it */
	if (qk_result_append(&o->result, o->h->req->run, &err))
		fprintf(stderr, "qk: %s: result not recorded: %s\n", o->h->spec->id, err.msg);
}

static void bind_if_there(struct holding *o, const char *path)
{
	struct stat st;

	if (!lstat(path, &st) && !S_ISLNK(st.st_mode))
		qk_strv_push(&o->bound, path);
}

/* What writes reach at once: .git, node_modules from the project and from cwd upward, scratch. */
static void bind_through(struct holding *o)
{
	const struct qk_request *r = o->h->req;
	const struct qk_taskspec *s = o->h->spec;
	qk_autofree char *git = qk_path_join(r->root, ".git");
	qk_autofree char *project = qk_path_join(r->root, s->project_root);
	const char *from[] = { project, s->cwd };

	if (s->explicit_grants) {
		for (size_t i = 0; i < s->scratch.n; i++) {
			qk_autofree char *scratch = qk_path_join(r->root, s->scratch.v[i]);

			bind_if_there(o, scratch);
		}
		return;
	}
	bind_if_there(o, git);
	for (size_t i = 0; i < 2; i++) {
		qk_autofree char *dir = qk_strdup(from[i]);

		while (qk_path_under(dir, r->root)) {
			qk_autofree char *modules = qk_path_join(dir, "node_modules");

			if (!qk_strv_has(&o->bound, modules))
				bind_if_there(o, modules);
			if (!strcmp(dir, r->root))
				break;
			dir[qk_path_dirlen(dir)] = '\0';
		}
	}
	for (size_t i = 0; i < s->scratch.n; i++) {
		qk_autofree char *scratch = qk_path_join(r->root, s->scratch.v[i]);

		bind_if_there(o, scratch);
	}
}

static int prepare_walls(struct holding *o, size_t i, struct qk_err *err)
{
	const struct qk_request *r = o->h->req;
	static const char *const temporary[] = { "TMPDIR", "TMP", "TEMP" };
	const char *tmpdir;
	int ret;

	if (r->backend == QK_BACKEND_NONE)
		return qk_fail(err, -ENOSYS, "no sandbox works on this host");
	o->walls = (struct qk_walls)QK_WALLS_INIT;
	o->walls.backend = (enum qk_backend)r->backend;
	o->walls.policy = o->h->policy;
	o->walls.bound = &o->bound;
	/* commands one after the other share a layer, those side by side have their own */
	o->result.own_layer = o->h->spec->parallel;
	o->layer = qk_asprintf("%s/layers/%llu.%llu.%zu", r->run, (unsigned long long)r->make_pid,
		(unsigned long long)r->offset, o->h->spec->parallel ? i : 0);
	o->walls.layer = o->layer;
	o->walls.spares = true;
	bind_through(o);
	tmpdir = qk_walls_tmpdir(&o->walls);
	for (size_t k = 0; tmpdir && k < (o->h->spec->explicit_grants ? 3 : 1); k++)
		qk_env_set(&o->env, temporary[k], tmpdir);
	ret = qk_wayout_prepare(&o->walls, r, &o->env, err);
	if (!ret)
		ret = qk_mkdirs(o->layer, err);
	if (ret)
		return ret;
	/* Landlock alone: it is the directory for temporary files */
	return o->h->spec->explicit_grants && chmod(o->layer, 0700)
		? qk_fail(err, errno, "chmod '%s'", o->layer) : 0;
}

/* Under enforce the command is not run; under audit it runs all the same, and that is said. */
static void __attribute__((noreturn)) give_up(struct holding *o, const struct qk_err *err)
{
	const struct qk_held *h = o->h;

	o->result.why = qk_strdup(err->msg);
	h->said->unrecorded = true;
	if (h->recording) {
		qk_trace_lost(&o->result.trace, "%s", err->msg);
		qk_ultracache_leave(h->recording, &o->result.trace);
	}
	if (h->mode == QK_MODE_ENFORCE) {
		h->said->refused = true;
		o->result.fate = QK_FATE_REFUSED;
		o->result.status = QK_TASK_FAILED << 8;
		append_result(o);
		fprintf(stderr,
			"qk: %s: not run: %s (\"qk:sandbox\": false on its target runs it unsandboxed)\n",
			h->spec->id, err->msg);
		_exit(QK_TASK_FAILED);
	}
	o->result.fate = QK_FATE_UNSANDBOXED;
	append_result(o);
	qk_task_exec(o->argv.v, o->env.v, h->req->make);
}

static void settle(struct holding *o, const struct qk_run_result *ran, int *status)
{
	struct qk_settled settled = { 0 };
	struct qk_err err = QK_ERR_INIT;

	/* stopping is how a continuous task ends: what it wrote holds */
	if (qk_walls_settle(&o->walls, ran->interrupted && !o->h->spec->continuous, &settled, &err)) {
		fprintf(stderr, "qk: %s: %s\n", o->h->spec->id, err.msg);
		if (!*status)
			*status = QK_TASK_FAILED << 8;
	}
	for (size_t i = 0; i < settled.stray.n; i++)
		qk_strv_push(&o->result.stray, settled.stray.v[i]);
	qk_settled_release(&settled);
	qk_walls_release(&o->walls);
	rmdir(o->layer); /* fails, as it should, while strays wait for the next command */
}

/*
 * Under audit some reads are told once and count for nothing, as manifests of packages; a refusal
 * counts whatever was refused.
 */
static bool read_counts(const struct qk_held *h, const struct qk_trace_entry *e,
	const struct qk_judged *j)
{
	if (h->mode == QK_MODE_ENFORCE)
		return true;
	return strcmp(qk_path_base(e->path), "package.json") &&
	       qk_kinds[qk_kind_of_read(e->path, j->read)].beyond;
}

/* settled: what was written shows in the layer. */
static unsigned int beyond_by(const struct qk_held *h, const struct qk_trace_entry *e,
	const struct qk_judged *j, bool settled)
{
	bool own_link = e->flags & QK_T_FOLLOWED && e->flags & QK_T_CREATED;
	bool read = e->flags & (QK_T_READ | QK_T_FOLLOWED) && !(e->flags & QK_T_DIR) && !own_link;
	bool left = e->flags & (QK_T_WRITTEN | QK_T_META) &&
		    !(e->flags & QK_T_CREATED && e->flags & QK_T_REMOVED);
	unsigned int by = 0;

	if (read && j->read.answer == QK_REFUSED && read_counts(h, e, j))
		by |= QK_HELD_READ;
	if (!left || settled || j->write.answer != QK_REFUSED)
		return by;
	return !(e->flags & QK_T_DIR) || e->flags & QK_T_REMOVED || (e->flags & QK_T_CREATED && !j->leads)
		? by | QK_HELD_WROTE : by;
}

static bool is_settled(const struct qk_held *h)
{
	return h->mode == QK_MODE_ENFORCE && h->req->backend != QK_BACKEND_LANDLOCK;
}

static unsigned int went_beyond(const struct qk_held *h, const struct qk_result *r)
{
	bool settled = is_settled(h);
	unsigned int by = settled && r->stray.n ? QK_HELD_WROTE : 0;

	for (size_t i = 0; i < r->trace.entries.n; i++)
		by |= beyond_by(h, &r->trace.entries.v[i], &r->judged.v[i], settled);
	return by;
}

struct joining {
	const struct qk_held *h;
	struct qk_result all;
};

static void join(struct qk_result *r, void *arg)
{
	struct joining *j = arg;

	if (r->make_pid != j->h->req->make_pid || r->offset != j->h->req->offset)
		return;
	qk_trace_append(&j->all.trace, &r->trace);
	/* each lists what then lay in the layer: where it is shared, the last one's word holds */
	if (!j->h->spec->parallel)
		qk_strv_release(&j->all.stray);
	for (size_t i = 0; i < r->stray.n; i++)
		qk_strv_push(&j->all.stray, r->stray.v[i]);
}

unsigned int qk_held_went_beyond(const struct qk_held *h)
{
	struct joining j = { .h = h };
	unsigned int beyond;

	if (!h->said->beyond || h->spec->commands.n < 2)
		return h->said->beyond;
	qk_result_init(&j.all, h->req->make_pid, h->req->offset);
	if (qk_result_each(h->req->run, join, &j, NULL))
		return h->said->beyond;
	qk_result_judge(&j.all, h->policy);
	beyond = went_beyond(h, &j.all);
	qk_result_release(&j.all);
	return beyond;
}

int qk_held_violations(const struct qk_held *h, struct qk_violation_scope *scope,
	struct qk_result *ret_all, struct qk_violations *ret, struct qk_err *err)
{
	const struct qk_taskspec *s = h->spec;
	struct joining j = { .h = h };
	int r;

	qk_result_init(&j.all, h->req->make_pid, h->req->offset);
	r = qk_result_each(h->req->run, join, &j, err);
	qk_result_judge(&j.all, h->policy);
	scope->policy = h->policy;
	scope->withheld = s->withheld.v;
	scope->n_withheld = s->withheld.n;
	scope->ignored_reads = s->ignored_reads.v;
	scope->n_ignored_reads = s->ignored_reads.n;
	scope->ignored_writes = s->ignored_writes.v;
	scope->n_ignored_writes = s->ignored_writes.n;
	qk_violations_find(ret, scope, &j.all, is_settled(h));
	*ret_all = j.all;
	return r;
}

void qk_held_run(void *held, size_t i)
{
	struct qk_held *h = held;
	struct holding o = { .h = h };
	const struct qk_request *r = h->req;
	struct qk_err err = QK_ERR_INIT;
	struct qk_run_result ran = { 0 };
	struct qk_run_spec spec = {
		.recorder = (enum qk_recorder_kind)r->recorder,
		.tmpdir = r->run,
		.fastlane = r->fastlane,
		.end_leftovers = h->mode == QK_MODE_ENFORCE,
		.policy = h->policy,
	};
	int status;

	qk_result_init(&o.result, r->make_pid, r->offset);
	for (size_t k = 0; k < h->env->n; k++)
		qk_strv_push(&o.env, h->env->v[k]);
	qk_strv_push(&o.argv, "/bin/sh");
	qk_strv_push(&o.argv, "-c");
	qk_strv_push(&o.argv, h->spec->commands.v[i]);
	if (chdir(h->spec->cwd)) {
		fprintf(stderr, "qk: %s: chdir '%s': %s\n", h->spec->id, h->spec->cwd, strerror(errno));
		_exit(QK_TASK_FAILED);
	}
	setenv("PWD", h->spec->cwd, 1);
	if (h->mode == QK_MODE_ENFORCE) {
		if (prepare_walls(&o, i, &err))
			give_up(&o, &err);
		spec.walls = &o.walls;
	}
	spec.argv = o.argv.v;
	spec.envp = o.env.v;
	if (h->recording)
		o.result.trace.lookups = true; /* and all of it: for a recording everything counts */
	else
		qk_strv_push(&o.result.trace.roots, r->root);
	o.result.trace.changes_anywhere = h->spec->explicit_grants;
	if (r->recorder == QK_RECORDER_NONE)
		qk_trace_lost(&o.result.trace, "no recorder works on this host");
	if (qk_run(&spec, &o.result.trace, &ran, &err))
		give_up(&o, &err);
	status = ran.status;
	if (spec.walls)
		settle(&o, &ran, &status);
	/* a continuous task is ended with all it started: nothing of that was left running */
	for (size_t k = 0; k < ran.left.n && !h->spec->continuous; k++)
		qk_strv_push(&o.result.left, ran.left.v[k]);
	if (h->recording) {
		if (ran.left.n)
			qk_trace_lost(&o.result.trace, "it left a process running");
		qk_ultracache_leave(h->recording, &o.result.trace);
		qk_trace_narrow(&o.result.trace, r->root);
	}
	qk_result_judge(&o.result, h->policy);
	if (h->mode != QK_MODE_OFF)
		__atomic_or_fetch(&h->said->beyond, went_beyond(h, &o.result), __ATOMIC_RELAXED);
	if (o.result.trace.incomplete || ran.left.n)
		h->said->unrecorded = true;
	o.result.status = status;
	append_result(&o);
	qk_task_end_as(status);
}
