#include "gmk-plugin/tasks/commands.h"
#include "base/clock.h"
#include "gmk-plugin/tasks/decide.h"
#include "gmk-plugin/tasks/grants.h"
#include "gmk-plugin/tasks/makers.h"
#include "gmk-plugin/tasks/policy.h"
#include "gmk-plugin/tasks/putback.h"
#include "gmk-plugin/tasks/rules.h"
#include "gmk-plugin/tasks/spec.h"

#include "base/path.h"
#include "gmk-plugin/gmkx.h"
#include "keying/store.h"
#include "report/keepers.h"
#include "report/taskstatus.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

static void load(const struct qk_taskhost *host)
{
	struct qk_model *m = &qk_model;
	struct qk_err err = QK_ERR_INIT;
	uint64_t size;

	m->host = host;
	qk_progress_init(&m->progress, STDERR_FILENO);
	m->args = qk_gmkx_expand("$(if $(filter-out undefined,$(origin ARGS)),$(strip $(ARGS)))");
	if (!*m->args) {
		free(m->args);
		m->args = NULL;
	}
	if (getenv("QK_CACHE_SIZE") && qk_store_parse_size(getenv("QK_CACHE_SIZE"), &size, &err))
		qk_gmkx_fatal("qk: QK_CACHE_SIZE: %s", err.msg);
	if (qk_workspace_load(host->root, &m->ws, &err))
		qk_gmkx_fatal("qk: %s", err.msg);
	qk_rules_make();
}

static bool has(const char *target)
{
	return qk_model_task(target);
}

/* It will not run: the continuous tasks it needs have one less to run for. */
static void let_go(const struct qk_ruletask *t)
{
	for (size_t i = 0; i < t->task->n_continuous && qk_model.run; i++) {
		const struct qk_ruletask *c = qk_model_task(t->task->continuous[i]->id);

		qk_keeper_let_go(qk_model.host->start()->run, c->number, c->needed);
	}
}

/* On a terminal that no command writes to at the moment: what is decided and restored without one. */
static void tell_progress(void)
{
	struct qk_model *m = &qk_model;
	siginfo_t child;
	static size_t all;

	if (m->progress.fd < 0 || !waitid(P_ALL, 0, &child, WEXITED | WSTOPPED | WNOHANG | WNOWAIT))
		return;
	for (size_t i = 0; i < m->tasks.n && m->considered == 1; i++)
		all += m->tasks.v[i]->reached || !m->goals_known;
	if (m->considered < all)
		qk_progress_say(&m->progress, qk_clock_ms(), "qk: %zu of %zu tasks", m->considered, all);
	else
		qk_progress_clear(&m->progress);
}

static char *recipe(size_t n)
{
	struct qk_model *m = &qk_model;
	qk_autobuf struct qk_buf line = QK_BUF_INIT;
	struct qk_taskspec s = { 0 };
	bool done;

	if (n >= m->tasks.n || m->host->knobs->why)
		return NULL;
	m->considered++;
	tell_progress();
	qk_decide(m->tasks.v[n]);
	m->pretended = m->host->pretending();
	if (!m->pretended)
		qk_taskpolicy_claim_scratch(m->tasks.v[n]->task);
	if (m->tasks.v[n]->decision != QK_TO_RUN) {
		let_go(m->tasks.v[n]);
		return NULL;
	}
	s.id = m->tasks.v[n]->task->id;
	qk_commands_read(&s, m->tasks.v[n]->task, m->host->root, m->args);
	qk_commands_show(&line, &s, m->host->root);
	done = !m->pretended && !s.problem && !qk_taskpolicy_problem(&s, m->tasks.v[n]->task) &&
	       qk_putback(m->tasks.v[n], line.s);
	qk_taskspec_release(&s);
	if (done)
		let_go(m->tasks.v[n]);
	else
		qk_progress_clear(&m->progress);
	/* an empty command, for which make starts no process: or it would say that there was nothing to do */
	return done ? qk_strdup("@:") : qk_buf_detach(&line);
}

static char *flags(const char *target)
{
	struct qk_model *m = &qk_model;
	struct qk_ruletask *t = qk_model_task(target);
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	qk_autofree char *request = NULL;
	struct qk_taskspec s = { 0 };
	struct qk_request grants = { 0 };

	if (!t || t->decision != QK_TO_RUN || m->host->pretending())
		return NULL;
	if (!m->run)
		m->run = qk_strdup(qk_path_base(m->host->start()->run));
	qk_spec_fill(&s, t);
	qk_spec_write_groups(&s, m->host->start()->run);
	qk_taskspec_write(&s, &b);
	qk_taskspec_release(&s);
	qk_taskgrants_request(&grants, t->task);
	request = m->host->request(target, t->task->project->root, b.s, b.len, &grants);
	qk_request_release(&grants);
	/* below .qk/run of the directory that the runner starts in: nothing that make would quote */
	return qk_asprintf("-T%s/%s -c", m->run, qk_path_base(request));
}

static char *key(const char *id)
{
	char hex[QK_DIGEST_HEX];
	struct qk_err err = QK_ERR_INIT;
	struct qk_digest d;

	if (qk_decide_now(qk_model_task(id), &d, &err))
		qk_gmkx_fatal("qk: qk-key: %s has no key: %s", id, err.msg);
	qk_digest_hex(&d, hex);
	return qk_strdup(hex);
}

/* The project that owns the path, if the task's project depends on it, directly or not. */
static const char *dependency(const char *id, const char *path)
{
	struct qk_ruletask *t = qk_model_task(id);
	const char *below = qk_path_below(path, qk_model.host->root);
	const struct qk_project *owner = t && below ? qk_workspace_owner(qk_model.ws, below) : NULL;
	QK_VEC(const struct qk_project *) queue = { 0 };
	qk_autofree bool *seen = qk_zalloc(qk_model.ws->n_projects + 1);
	bool found = false;

	if (!owner || owner == t->task->project)
		return NULL;
	qk_vec_push(&queue, t->task->project);
	for (size_t i = 0; i < queue.n && !found; i++)
		for (size_t k = 0; k < queue.v[i]->n_deps; k++) {
			const struct qk_project *d = queue.v[i]->deps[k].project;

			found |= d == owner;
			if (!seen[d->index])
				qk_vec_push(&queue, d);
			seen[d->index] = true;
		}
	qk_vec_release(&queue);
	return found ? owner->name : NULL;
}

/* True for the package.json of a project. */
static bool manifest(const char *path)
{
	const char *below = qk_path_below(path, qk_model.host->root);
	const struct qk_project *owner = below ? qk_workspace_owner(qk_model.ws, below) : NULL;
	qk_autofree char *own = NULL;

	if (!below || strcmp(qk_path_base(below), "package.json"))
		return false;
	if (!strcmp(below, "package.json"))
		return true;
	own = owner ? qk_asprintf("%s/package.json", owner->root) : NULL;
	return own && !strcmp(own, below);
}

/* Another task of this make that the path is an output of. */
static const char *maker(const char *id, const char *path)
{
	const char *below = qk_path_below(path, qk_model.host->root);
	struct qk_ruletask *t = qk_model_task(id);
	const struct qk_task *by = t && below ? qk_makers_find(below, t->task) : NULL;

	return by ? by->id : NULL;
}

static const char *package(const char *id, const char *path, bool *ret_hoisted)
{
	const char *below = qk_path_below(path, qk_model.host->root);
	struct qk_ruletask *t = qk_model_task(id);
	struct qk_packages *packages = t && below ? qk_model_packages(t) : NULL;
	qk_autostrv struct qk_strv ignored = { 0 };

	if (!packages)
		return NULL;
	qk_taskpolicy_ignored_globs(&ignored, t->task);
	return qk_packages_unkeyed(packages, t->task, &ignored, below, ret_hoisted);
}

/* True if an input can select the path, as none can what Git ignores. */
static bool selectable(const char *path)
{
	const char *below = qk_path_below(path, qk_model.host->root);

	return below && (!qk_model.opened || qk_model.tracked_problem ||
				qk_tracked_has(&qk_model.tracked, below));
}

static const struct qk_report_places places = { .dependency = dependency,
	.manifest = manifest,
	.maker = maker,
	.package = package,
	.selectable = selectable };

static void finish(void (*each)(const struct qk_taskstatus *s, void *arg), void *arg)
{
	static const enum qk_status as[] = {
		[QK_UP_TO_DATE] = QK_STATUS_UP_TO_DATE,
		[QK_NOTHING] = QK_STATUS_NOTHING,
		[QK_PUT_BACK] = QK_STATUS_RESTORED,
	};

	qk_progress_clear(&qk_model.progress);
	if (qk_model.run)
		qk_decide_settle();
	qk_progress_clear(&qk_model.progress);
	for (size_t i = 0; i < qk_model.tasks.n && !qk_model.pretended; i++) {
		const struct qk_ruletask *t = qk_model.tasks.v[i];
		struct qk_taskstatus s = { .id = t->task->id };
		char hex[QK_DIGEST_HEX];

		if (t->decision == QK_UNDECIDED || t->decision == QK_TO_RUN)
			continue;
		s.status = as[t->decision];
		s.start_ms = t->start_ms;
		s.duration_ms = t->duration_ms;
		s.saved_ms = t->saved_ms;
		if (t->has_key) {
			qk_digest_hex(&t->key, hex);
			s.key = hex;
		}
		each(&s, arg);
	}
}

extern const struct qk_taskpart qk_taskpart_of_workspace;
__attribute__((visibility("default"))) const struct qk_taskpart qk_taskpart_of_workspace = {
	.load = load,
	.has = has,
	.recipe = recipe,
	.flags = flags,
	.key = key,
	.places = &places,
	.finish = finish,
};
