#include "cli/scratch.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/path.h"
#include "keying/outputs.h"
#include "keying/scratch.h"
#include "keying/tokens.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* One directory of one task. */
struct scratch {
	const char *dir; /* relative to the root */
	const struct qk_task *task;
	const struct qk_json *at;
};

typedef QK_VEC(struct scratch) scratch_vec;

/* The first link on the way to dir, or dir itself if it is one; NULL if there is none. */
static char *link_on_way(const char *root, const char *dir)
{
	for (size_t n = strcspn(dir, "/");; n += 1 + strcspn(dir + n + 1, "/")) {
		qk_autofree char *part = qk_strndup(dir, n), *path = qk_path_join(root, part);
		struct stat st;

		if (!lstat(path, &st) && S_ISLNK(st.st_mode))
			return qk_steal(&part);
		if (!dir[n])
			return NULL;
	}
}

static int by_dir(const void *a, const void *b)
{
	const struct scratch *x = a, *y = b;
	qk_autofree char *p = qk_asprintf("%s/", x->dir), *q = qk_asprintf("%s/", y->dir);
	int r = strcmp(p, q);

	return r ? r : strcmp(x->task->id, y->task->id);
}

/* Sorted, a directory is followed by all that lies in it: one line for each, so that it stays short. */
static void check_shared(struct qk_arena *a, scratch_vec *all, struct qk_faults *f)
{
	size_t top = 0;

	if (all->n)
		qsort(all->v, all->n, sizeof(*all->v), by_dir);
	for (size_t i = 1; i < all->n; i++) {
		const struct scratch *one = &all->v[i], *over = &all->v[top];

		if (!qk_path_under(one->dir, over->dir))
			top = i;
		else if (one->task->target != over->task->target)
			qk_faults_add(f, "workspace", "scratch",
				"%s: scratch directory '%s' of %s %s that of %s: both empty it",
				qk_json_place(a, one->at), one->dir, one->task->id,
				strcmp(one->dir, over->dir) ? "lies in" : "is", over->task->id);
	}
}

/* True if it may be one. */
static bool check_one(struct qk_arena *a, const struct qk_site *s, const char *store,
	const struct scratch *one, struct qk_faults *f)
{
	qk_autofree char *why = qk_scratch_refuse(s->ws, store, one->dir);
	qk_autofree char *link = why ? NULL : link_on_way(s->root, one->dir);

	if (!why && link)
		why = qk_asprintf("'%s' is a symbolic link", link);
	if (!why)
		return true;
	qk_faults_add(f, "workspace", "scratch", "%s: scratch directory '%s' of %s: %s",
		qk_json_place(a, one->at), one->dir, one->task->id, why);
	return false;
}

/* Emptied before the task runs, and put back before it: one of the two is meant. */
static bool is_scratch(const struct qk_task *t, const char *path)
{
	for (size_t k = 0; k < t->target->qk.scratch.n; k++) {
		qk_autobuf struct qk_buf dir = QK_BUF_INIT;

		if (qk_tokens_path(&dir, t->target->qk.scratch.v[k], t->project, t->options, NULL) &&
			(qk_path_under(path, dir.s) || qk_path_under(dir.s, path)))
			return true;
	}
	return false;
}

static bool is_output(const struct qk_task *t, const char *path)
{
	struct qk_outputs o = { 0 };
	bool made;

	for (size_t k = 0; k < t->outputs.n; k++)
		qk_outputs_add(&o, t->outputs.v[k], NULL);
	made = qk_outputs_match(&o, path);
	qk_outputs_release(&o);
	return made;
}

static void check_warm(struct qk_arena *a, const struct qk_site *s, const char *store,
	const struct qk_task *t, struct qk_faults *f)
{
	const struct qk_declared *d = &t->target->qk;

	for (size_t k = 0; k < d->warm.n; k++) {
		qk_autobuf struct qk_buf path = QK_BUF_INIT;
		qk_autofree char *why = NULL, *link = NULL;
		const char *unresolved = NULL;

		if (!qk_tokens_path(&path, d->warm.v[k], t->project, t->options, &unresolved))
			why = qk_strdup(unresolved);
		else
			why = qk_warm_refuse(s->ws, store, path.s);
		if (!why && (link = link_on_way(s->root, path.s)))
			why = qk_asprintf("'%s' is a symbolic link", link);
		if (!why && is_scratch(t, path.s))
			why = qk_strdup("it is, holds or lies in a scratch directory of the task");
		if (!why && t->target->outputs && is_output(t, path.s))
			why = qk_strdup("it is an output of the task too, which the cache replaces");
		if (why)
			qk_faults_add(f, "workspace", "warm", "%s: warm path '%s' of %s: %s",
				qk_json_place(a, d->warm_at->items[k]), d->warm.v[k], t->id, why);
	}
}

void qk_scratch_check(const struct qk_site *s, const struct qk_taskgraph *g, struct qk_faults *f)
{
	qk_autofree char *store = qk_site_store(s);
	struct qk_arena a = { 0 };
	scratch_vec all = { 0 };

	for (size_t i = 0; i < g->n_tasks; i++) {
		const struct qk_task *t = g->tasks[i];
		const struct qk_declared *d = &t->target->qk;

		check_warm(&a, s, store, t, f);
		for (size_t k = 0; k < d->scratch.n; k++) {
			struct scratch one = { .task = t, .at = d->scratch_at->items[k] };
			qk_autobuf struct qk_buf dir = QK_BUF_INIT;
			const char *why = NULL;

			if (!qk_tokens_path(&dir, d->scratch.v[k], t->project, t->options, &why)) {
				qk_faults_add(f, "workspace", "scratch", "%s: scratch directory '%s' of %s: %s",
					qk_json_place(&a, one.at), d->scratch.v[k], t->id, why);
				continue;
			}
			one.dir = qk_arena_strndup(&a, dir.s, dir.len);
			if (check_one(&a, s, store, &one, f))
				qk_vec_push(&all, one);
		}
	}
	check_shared(&a, &all, f);
	qk_vec_release(&all);
	qk_arena_release(&a);
}
