#include "cli/checks.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/path.h"
#include "cli/overlaps.h"
#include "cli/scratch.h"
#include "keying/inputs.h"
#include "keying/tracked.h"

#include <string.h>

enum { NAMES_SHOWN = 3 };

static const char area[] = "workspace";

/* Tasks that share one complaint. */
struct shared {
	const char *what;          /* what tells them apart from others */
	const struct qk_json *at;  /* of the first */
	struct qk_buf names;       /* of the first few */
	size_t n;
};

typedef QK_VEC(struct shared) shared_vec;

static void share(shared_vec *all, const char *what, const struct qk_json *at, const char *task)
{
	struct shared *s = NULL;

	for (size_t i = 0; i < all->n && !s; i++)
		if (!strcmp(all->v[i].what, what))
			s = &all->v[i];
	if (!s) {
		qk_vec_push(all, ((struct shared){ what, at, QK_BUF_INIT, 0 }));
		s = &all->v[all->n - 1];
	}
	if (s->n++ < NAMES_SHOWN)
		qk_buf_addf(&s->names, "%s%s", s->names.len ? ", " : "", task);
}

static void end_names(struct shared *s)
{
	if (s->n > NAMES_SHOWN)
		qk_buf_addf(&s->names, " and %zu more", s->n - NAMES_SHOWN);
}

static void release(shared_vec *all)
{
	for (size_t i = 0; i < all->n; i++)
		qk_buf_release(&all->v[i].names);
	qk_vec_release(all);
}

static void executors(const struct qk_taskgraph *g, struct qk_faults *f)
{
	static const char *const run[] = { "nx:run-commands", "nx:run-script", "nx:noop" };
	struct qk_arena a = { 0 };
	shared_vec all = { 0 };

	for (size_t i = 0; i < g->n_tasks; i++) {
		const struct qk_target *t = g->tasks[i]->target;
		bool known = false;

		for (size_t k = 0; k < sizeof(run) / sizeof(run[0]); k++)
			known |= !strcmp(t->executor, run[k]);
		if (!known)
			share(&all, t->executor, t->at, g->tasks[i]->id);
	}
	for (size_t i = 0; i < all.n; i++) {
		end_names(&all.v[i]);
		qk_faults_add(f, area, "executor", "%s: qk does not run executor '%s': %s",
			qk_json_place(&a, all.v[i].at), all.v[i].what, all.v[i].names.s);
	}
	release(&all);
	qk_arena_release(&a);
}

/* True if something the task depends on has no key either: that is where to look. */
static bool is_consequence(struct qk_inputs *in, const struct qk_task *t)
{
	for (size_t i = 0; i < t->n_deps; i++)
		if (qk_inputs_task(in, t->deps[i])->uncached)
			return true;
	for (size_t i = 0; i < t->n_continuous; i++)
		if (qk_inputs_task(in, t->continuous[i])->uncached)
			return true;
	return false;
}

/* Inputs and outputs that cannot be resolved, a lockfile that does not parse: tasks without a key. */
static void keys(struct qk_site *s, const struct qk_taskgraph *g, struct qk_faults *f)
{
	struct qk_err err = QK_ERR_INIT;
	struct qk_tracked tracked = { 0 };
	shared_vec all = { 0 };
	const char *why, *whole;

	if (qk_tracked_load(&tracked, s->root, &err)) {
		qk_faults_add(f, area, "git", "%s", err.msg);
	} else {
		struct qk_inputs *in = qk_inputs_new(s->ws, g, &tracked, s->cwd, NULL);

		for (size_t i = 0; i < g->n_tasks; i++) {
			const char *uncached = qk_inputs_task(in, g->tasks[i])->uncached;

			if (uncached && !is_consequence(in, g->tasks[i]))
				share(&all, uncached, NULL, g->tasks[i]->id);
		}
		for (size_t i = 0; i < all.n; i++) {
			end_names(&all.v[i]);
			qk_faults_add(f, area, "uncached", "%s: never cached for that: %s",
				all.v[i].what, all.v[i].names.s);
		}
		whole = qk_inputs_whole_lockfile(in, &why);
		if (whole)
			qk_faults_add(f, area, "lockfile", "%s", why);
		release(&all);
		qk_inputs_free(in);
	}
	qk_tracked_release(&tracked);
}

static void warnings(const struct qk_workspace *ws, struct qk_faults *f)
{
	for (const struct qk_warning *w = ws->warnings; w; w = w->next)
		qk_faults_add(f, area, strstr(w->text, "\"dependsOn\":") ? "dependsOn" : "warning", "%s",
			w->text);
}

void qk_checks_workspace(struct qk_site *s, struct qk_faults *f, struct qk_checked *ret)
{
	struct qk_taskgraph *g = NULL;
	struct qk_err err = QK_ERR_INIT;

	*ret = (struct qk_checked){ 0 };
	if (qk_site_load(s, &err)) {
		qk_faults_add(f, area, "load", "%s", err.msg);
		return;
	}
	ret->projects = s->ws->n_projects;
	for (size_t i = 0; i < s->ws->n_projects; i++)
		ret->targets += s->ws->projects[i].n_targets;
	if (qk_taskgraph_build(s->ws, NULL, 0, NULL, &g, &err)) {
		warnings(s->ws, f);
		qk_faults_add(f, area, "graph", "%s", err.msg);
		return;
	}
	warnings(s->ws, f);
	executors(g, f);
	qk_scratch_check(s, g, f);
	keys(s, g, f);
	qk_overlaps_check(g, f);
	qk_taskgraph_free(g);
}
