#include "runner/task.h"

#include "base/fdio.h"
#include "base/path.h"
#include "keying/depfile.h"
#include "report/declare.h"
#include "report/result.h"
#include "runner/env.h"
#include "runner/lanes.h"
#include "runner/recipe-cache.h"
#include "runner/scratch.h"
#include "runner/shell.h"
#include "runner/strict.h"
#include "runner/warm.h"
#include "runner/wayout.h"
#include "sandbox/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct task {
	const struct qk_request *req;
	struct qk_policy policy;
	struct qk_result result;
	struct qk_walls walls;
	struct qk_strv bound;
	struct qk_strv argv, env;
	char *layer;
};

/* What make says and does where it cannot start a program itself. */
static void say_not_started(const char *make, const char *program, int error)
{
	const char *level = getenv("MAKELEVEL");
	int n = level ? atoi(level) - 1 : 0;

	if (n > 0)
		fprintf(stderr, "%s[%d]: %s: %s\n", qk_path_base(make), n, program, strerror(error));
	else
		fprintf(stderr, "%s: %s: %s\n", qk_path_base(make), program, strerror(error));
}

void qk_task_exec(char *const *argv, char *const *envp, const char *make)
{
	execvpe(argv[0], argv, envp);
	if (errno == ENOEXEC) { /* a script without its #! line */
		qk_autostrv struct qk_strv sh = { 0 };

		qk_strv_push(&sh, "/bin/sh");
		for (size_t i = 0; argv[i]; i++)
			qk_strv_push(&sh, argv[i]);
		execve(sh.v[0], sh.v, envp);
	}
	say_not_started(make, argv[0], errno);
	_exit(127);
}

void qk_task_end_as(int status)
{
	struct rlimit none = { 0, 0 };
	sigset_t set;
	int sig;

	if (!WIFSIGNALED(status))
		_exit(WEXITSTATUS(status));
	sig = WTERMSIG(status);
	setrlimit(RLIMIT_CORE, &none); /* the command's own core file must stay */
	signal(sig, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, sig);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(sig);
	_exit(128 + sig);
}

static void append_result(struct task *t)
{
	struct qk_err err = QK_ERR_INIT;

	if (qk_result_append(&t->result, t->req->run, &err))
		fprintf(stderr, "qk: %s: result not recorded: %s\n", t->req->target, err.msg);
}

/* The dependency files of an earlier run, wherever tools keep them, declare reads already. */
static void declare_old_depfiles(struct task *t)
{
	const struct qk_request *r = t->req;
	qk_autostrv struct qk_strv paths = { 0 };

	for (size_t i = 0; i < r->lists[QK_LIST_DEPFILE].n; i++)
		qk_strv_push(&paths, r->lists[QK_LIST_DEPFILE].v[i]);
	qk_depfile_guess(r->target, &paths);
	for (size_t i = 0; i < paths.n; i++) {
		qk_autobuf struct qk_buf text = QK_BUF_INIT;
		qk_autostrv struct qk_strv prereqs = { 0 };
		qk_autofree char *path = qk_path_join(r->cwd, paths.v[i]);

		if (qk_read_file(AT_FDCWD, path, QK_DEPFILE_MAX, &text, NULL) ||
			!qk_depfile_parse(text.s, text.len, r->target, &prereqs))
			continue;
		qk_policy_add(&t->policy, "/", path, QK_EXACT, QK_READ | QK_WRITE, QK_BY_DEPFILE);
		for (size_t k = 0; k < prereqs.n; k++)
			qk_policy_add(&t->policy, r->cwd, prereqs.v[k], QK_EXACT, QK_READ,
				QK_BY_DEPFILE);
	}
}

static void declare_all(struct task *t)
{
	qk_policy_init(&t->policy, t->req->root, t->req->state);
	qk_declare(&t->policy, t->req);
	declare_old_depfiles(t);
	qk_policy_resolve(&t->policy);
}

/* Finds the dependency files that this line wrote; what they list counts as declared. */
static void take_new_depfiles(struct task *t)
{
	const struct qk_request *r = t->req;
	struct qk_trace *trace = &t->result.trace;
	qk_autofree char *target = qk_path_join(r->cwd, r->target);
	size_t rules = t->policy.rules.n;

	for (size_t i = 0; i < trace->entries.n; i++) {
		const struct qk_trace_entry *e = &trace->entries.v[i];
		qk_autobuf struct qk_buf text = QK_BUF_INIT;
		qk_autostrv struct qk_strv prereqs = { 0 };
		struct qk_verdict named = qk_policy_judge(&t->policy, e->path, QK_WRITE);

		if (!(e->flags & QK_T_WRITTEN) || e->flags & (QK_T_REMOVED | QK_T_DIR))
			continue;
		if (named.reason != QK_BY_DEPFILE && !qk_depfile_plausible(e->path, target))
			continue;
		if (qk_read_file(AT_FDCWD, e->path, QK_DEPFILE_MAX, &text, NULL) ||
			!qk_depfile_parse(text.s, text.len, r->target, &prereqs))
			continue;
		qk_policy_add(&t->policy, "/", e->path, QK_EXACT, QK_READ | QK_WRITE, QK_BY_DEPFILE);
		for (size_t k = 0; k < prereqs.n; k++)
			qk_policy_add(&t->policy, r->cwd, prereqs.v[k], QK_EXACT, QK_READ,
				QK_BY_DEPFILE);
	}
	if (t->policy.rules.n == rules)
		return;
	qk_policy_resolve(&t->policy);
	for (size_t i = rules; i < t->policy.rules.n; i++)
		if (t->policy.rules.v[i].reason == QK_BY_DEPFILE)
			qk_strv_push(&t->result.declared, t->policy.rules.v[i].path);
}

static void bind_if_there(struct task *t, const char *path)
{
	struct stat st;

	if (!lstat(path, &st) && !S_ISLNK(st.st_mode))
		qk_strv_push(&t->bound, path);
}

/* What writes reach at once: .git of the root, node_modules from cwd upward, scratch directories. */
static void bind_through(struct task *t)
{
	const struct qk_request *r = t->req;
	qk_autofree char *git = qk_path_join(r->root, ".git"), *dir = qk_strdup(r->cwd);

	bind_if_there(t, git);
	while (qk_path_under(dir, r->root)) {
		qk_autofree char *modules = qk_path_join(dir, "node_modules");

		bind_if_there(t, modules);
		if (!strcmp(dir, r->root))
			break;
		dir[qk_path_dirlen(dir)] = '\0';
	}
	for (size_t i = 0; i < r->lists[QK_LIST_SCRATCH].n; i++) {
		qk_autofree char *scratch = qk_path_join(r->cwd, r->lists[QK_LIST_SCRATCH].v[i]);

		bind_if_there(t, scratch);
	}
}

/* True the first time for this request: its later lines find what the first left. */
static bool is_first_line(const struct task *t)
{
	qk_autofree char *mark = qk_asprintf("%s/started.%llu.%llu", t->req->run,
		(unsigned long long)t->req->make_pid, (unsigned long long)t->req->offset);
	int fd = open(mark, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static void with_warm(const struct task *t, void (*act)(const struct qk_warm *w))
{
	const struct qk_request *r = t->req;
	qk_autofree char *below = r->lists[QK_LIST_WARM].n ? qk_path_join(r->cwd, r->target) : NULL;
	struct qk_warm w = { r, below && qk_path_under(below, r->root) ? qk_path_below(below, r->root)
								      : r->target, NULL, 0 };
	qk_autostrv struct qk_strv patterns = { 0 };

	for (size_t i = 0; i < r->lists[QK_LIST_WARM].n; i++) {
		qk_autofree char *name = NULL, *full = NULL;

		qk_declare_scope(r->lists[QK_LIST_WARM].v[i], &name);
		full = qk_path_join(r->cwd, name);
		if (qk_path_under(full, r->root) && *qk_path_below(full, r->root))
			qk_strv_push(&patterns, qk_path_below(full, r->root));
	}
	w.patterns = (const char *const *)patterns.v;
	w.n = patterns.n;
	if (w.n)
		act(&w);
}

/* Scratch directories are emptied, and warm paths put back, before the first line. */
static int begin_task(const struct task *t, struct qk_err *err)
{
	const struct qk_request *r = t->req;
	int ret = 0;

	if ((!r->lists[QK_LIST_SCRATCH].n && !r->lists[QK_LIST_WARM].n) || !is_first_line(t))
		return 0;
	with_warm(t, qk_warm_restore);
	for (size_t i = 0; !ret && i < r->lists[QK_LIST_SCRATCH].n; i++)
		ret = qk_scratch_empty(
			r->root, r->cwd, "QK_SCRATCH", r->lists[QK_LIST_SCRATCH].v[i], err);
	return ret;
}

static void set_tmpdir(struct task *t, const char *dir)
{
	for (size_t i = 0; i < t->env.n; i++) {
		if (strncmp(t->env.v[i], "TMPDIR=", 7))
			continue;
		free(t->env.v[i]);
		t->env.v[i] = qk_asprintf("TMPDIR=%s", dir);
		return;
	}
	qk_strv_take(&t->env, qk_asprintf("TMPDIR=%s", dir));
}

static int prepare_walls(struct task *t, struct qk_err *err)
{
	qk_autofree char *layers = qk_asprintf("%s/layers", t->req->run);
	const struct qk_request *r = t->req;
	const char *tmpdir;

	t->walls = (struct qk_walls)QK_WALLS_INIT;
	t->walls.backend = (enum qk_backend)r->backend;
	t->walls.policy = &t->policy;
	t->walls.bound = &t->bound;
	t->layer = qk_asprintf("%s/%llu.%llu", layers, (unsigned long long)r->make_pid,
		(unsigned long long)r->offset);
	t->walls.layer = t->layer;
	t->walls.spares = true;
	bind_through(t);
	tmpdir = qk_walls_tmpdir(&t->walls);
	if (tmpdir)
		set_tmpdir(t, tmpdir);
	if (qk_wayout_prepare(&t->walls, r, &t->env, err))
		return -err->code;
	if (r->backend == QK_BACKEND_LANDLOCK)
		return qk_mkdirs(t->layer, err);
	return qk_mkdirs(layers, err);
}

/* The line is not run: a result that says so, and one line. */
static void __attribute__((noreturn)) refuse(struct task *t, const struct qk_err *err, const char *advice)
{
	t->result.why = t->result.why ? t->result.why : qk_strdup(err->msg);
	t->result.fate = QK_FATE_REFUSED;
	t->result.status = QK_TASK_FAILED << 8;
	append_result(t);
	fprintf(stderr, "qk: %s: not run: %s%s\n", t->req->target, err->msg, advice);
	_exit(QK_TASK_FAILED);
}

/* The line could not be held or recorded: under enforce it fails, under audit it runs all the same. */
static void __attribute__((noreturn)) give_up(struct task *t, const struct qk_err *err)
{
	if (t->req->mode == QK_MODE_ENFORCE)
		refuse(t, err, " (QK_SANDBOX = off for this target runs it unsandboxed)");
	t->result.why = qk_strdup(err->msg);
	t->result.fate = QK_FATE_UNSANDBOXED;
	if (t->req->caching && !t->result.uncached)
		t->result.uncached = qk_strdup(err->msg);
	append_result(t);
	qk_task_exec(t->argv.v, t->env.v, t->req->make);
}

static void settle(struct task *t, const struct qk_run_result *ran, int *status)
{
	struct qk_settled settled = { 0 };
	struct qk_err err = QK_ERR_INIT;

	if (qk_walls_settle(&t->walls, ran->interrupted, &settled, &err)) {
		fprintf(stderr, "qk: %s: %s\n", t->req->target, err.msg);
		if (!*status)
			*status = QK_TASK_FAILED << 8;
	}
	for (size_t i = 0; i < settled.stray.n; i++)
		qk_strv_push(&t->result.stray, settled.stray.v[i]);
	qk_settled_release(&settled);
	qk_walls_release(&t->walls);
	rmdir(t->layer); /* fails, as it should, while strays wait for the recipe's next line */
}

/* Unsandboxed by declaration, or a $(MAKE) line: one result, then the command takes our place. */
static void __attribute__((noreturn)) exec_plainly(struct task *t, enum qk_fate fate, const char *why)
{
	t->result.fate = fate;
	t->result.why = why ? qk_strdup(why) : NULL;
	append_result(t);
	qk_task_exec(t->argv.v, t->env.v, t->req->make);
}

void qk_task_run(const struct qk_request *r, char *const *argv_in, const char *self)
{
	struct task t = { .req = r };
	struct qk_err err = QK_ERR_INIT;
	struct qk_run_result ran = { 0 };
	struct qk_recipe_cache cache;
	struct qk_run_spec spec = {
		.recorder = (enum qk_recorder_kind)r->recorder,
		.tmpdir = r->run,
		.end_leftovers = r->mode == QK_MODE_ENFORCE,
		.policy = &t.policy,
	};
	const char *line = qk_shell_line(argv_in);
	bool submake;
	int status, failed;

	qk_result_init(&t.result, r->make_pid, r->offset);
	qk_shell_argv(&t.argv, r->shell, argv_in);
	submake = r->uses_make && line && qk_shell_mentions(line, r->make);
	if (r->caching & QK_CACHING_ASK) {
		qk_env_task(&t.env, r, self);
		qk_recipe_cache_ask(&cache, r, &t.result, &t.argv, &t.env,
			submake ? "it runs make, whose recipes are asked about where they are"
				: r->off ? "QK_SANDBOX = off: its result is never stored" : NULL);
	}
	if (submake) {
		qk_env_submake(&t.env, r);
		exec_plainly(&t, QK_FATE_SUBMAKE, NULL);
	}
	qk_env_task(&t.env, r, self);
	if (r->off)
		exec_plainly(&t, QK_FATE_UNSANDBOXED, "QK_SANDBOX = off");
	if (r->mode == QK_MODE_OFF && !r->caching)
		exec_plainly(&t, QK_FATE_UNSANDBOXED, NULL);
	qk_recipe_cache_find(&cache, r, &t.result, &t.argv, &t.env);
	if (begin_task(&t, &err))
		refuse(&t, &err, ""); /* audit has no say: it is the declaration that is wrong */
	declare_all(&t);
	if (r->mode == QK_MODE_ENFORCE) {
		if (r->backend == QK_BACKEND_NONE) {
			qk_fail(&err, -ENOSYS, "no sandbox works on this host");
			give_up(&t, &err);
		}
		if (prepare_walls(&t, &err))
			give_up(&t, &err);
		spec.walls = &t.walls;
	}
	spec.argv = t.argv.v;
	spec.envp = t.env.v;
	if (r->fastlane && qk_lanes_worth(r->run, line))
		spec.fastlane = r->fastlane;
	qk_recipe_cache_begin(&cache, &spec);
	if (!cache.record) /* for the cache all counts */
		qk_strv_push(&t.result.trace.roots, r->root);
	if (r->recorder == QK_RECORDER_NONE)
		qk_trace_lost(&t.result.trace, "no recorder works on this host");
	failed = qk_run(&spec, &t.result.trace, &ran, &err);
	qk_recipe_cache_ended(&cache, &ran);
	if (failed)
		give_up(&t, &err);
	status = ran.status;
	if (ran.exec_errno) {
		say_not_started(r->make, t.argv.v[0], ran.exec_errno);
		status = 127 << 8; /* as make has it, whatever the reason */
	}
	take_new_depfiles(&t);
	if (spec.walls)
		settle(&t, &ran, &status);
	if (r->fastlane)
		qk_lanes_learn(r->run, line, spec.fastlane, &ran);
	qk_recipe_cache_finish(&cache, &t.policy, status); /* keeps nothing that went beyond */
	qk_result_judge(&t.result, &t.policy);
	status = qk_strict_status(r, &t.result, status);
	if (!status && !ran.interrupted)
		with_warm(&t, qk_warm_keep);
	t.result.status = status;
	for (size_t i = 0; i < ran.left.n; i++)
		qk_strv_push(&t.result.left, ran.left.v[i]);
	append_result(&t);
	qk_task_end_as(status);
}
