#include "cli/overlaps.h"

#include "base/glob.h"
#include "base/mem.h"
#include "base/path.h"
#include "keying/outputs.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN = 20 }; /* lines; a workspace that has one mistake in a default has it everywhere */

/* One output of one task. */
struct output {
	char *dir; /* what sorts it: the glob's literal directory, or the name itself, with a /; "" = root */
	const char *glob;
	bool literal;
	size_t task; /* in the graph */
};

struct overlaps {
	const struct qk_taskgraph *g;
	struct qk_outputs *of; /* by task */
	QK_VEC(struct output) all;
	struct qk_faults *f;
	size_t found;
	size_t *last; /* by task: 1 + the task it was last complained of with */
};

static void collect(struct overlaps *o, size_t i)
{
	const struct qk_task *t = o->g->tasks[i];

	if (!t->target->outputs && !qk_json_get(t->options, "outputPath"))
		return;
	for (size_t k = 0; k < t->outputs.n; k++) {
		const char *glob = t->outputs.v[k];
		struct output one = { .glob = glob, .literal = !qk_glob_is_pattern(glob), .task = i };
		size_t n;

		if (qk_outputs_add(&o->of[i], glob, NULL) || *glob == '!')
			continue;
		n = one.literal ? strlen(glob) : qk_glob_literal_dir(glob);
		one.dir = n ? qk_asprintf("%.*s/", (int)n, glob) : qk_strdup("");
		qk_vec_push(&o->all, one);
	}
}

static int by_dir(const void *a, const void *b)
{
	const struct output *x = a, *y = b;
	int r = strcmp(x->dir, y->dir);

	if (!r)
		r = strcmp(x->glob, y->glob);
	return r ? r : (x->task > y->task) - (x->task < y->task);
}

/* b sorts behind a, in or at the directory of a. */
static bool overlap(const struct overlaps *o, const struct output *a, const struct output *b)
{
	if (b->literal && qk_outputs_match(&o->of[a->task], b->glob))
		return qk_outputs_match(&o->of[b->task], b->glob);
	if (a->literal && qk_outputs_match(&o->of[b->task], a->glob))
		return qk_outputs_match(&o->of[a->task], a->glob);
	if (!strcmp(a->glob, b->glob))
		return true;
	if (a->literal) {
		/* all that lies in a is its output, so what b matches is */
		qk_autofree char *dir = qk_strndup(b->dir, strlen(b->dir) - 1);

		return qk_outputs_match(&o->of[a->task], dir);
	}
	return false;
}

static void complain(struct overlaps *o, const struct output *a, const struct output *b)
{
	const struct qk_task *t = o->g->tasks[a->task], *u = o->g->tasks[b->task];
	struct qk_arena arena = { 0 };
	const struct qk_json *at = u->target->outputs ? u->target->outputs : u->target->at;

	if (o->last[b->task] == a->task + 1)
		return; /* one line a pair */
	o->last[b->task] = a->task + 1;
	if (++o->found <= SHOWN)
		qk_faults_add(o->f, "workspace", "overlap",
			"%s: output '%s' of %s overlaps '%s' of %s", qk_json_place(&arena, at), b->glob,
			u->id, a->glob, t->id);
	qk_arena_release(&arena);
}

void qk_overlaps_check(const struct qk_taskgraph *g, struct qk_faults *f)
{
	struct overlaps o = { .g = g, .f = f };

	o.of = qk_zalloc((g->n_tasks + 1) * sizeof(*o.of));
	o.last = qk_zalloc((g->n_tasks + 1) * sizeof(*o.last));
	for (size_t i = 0; i < g->n_tasks; i++)
		collect(&o, i);
	if (o.all.n)
		qsort(o.all.v, o.all.n, sizeof(*o.all.v), by_dir);
	for (size_t i = 0; i < o.all.n; i++) {
		const struct output *a = &o.all.v[i];
		size_t n = strlen(a->dir);

		for (size_t k = i + 1; k < o.all.n && o.found <= SHOWN &&
				       !strncmp(o.all.v[k].dir, a->dir, n); k++)
			if (o.all.v[k].task != a->task && overlap(&o, a, &o.all.v[k]))
				complain(&o, a, &o.all.v[k]);
	}
	if (o.found > SHOWN)
		qk_faults_add(f, "workspace", "overlap", "and more outputs that overlap: %d shown", SHOWN);
	for (size_t i = 0; i < o.all.n; i++)
		free(o.all.v[i].dir);
	for (size_t i = 0; i < g->n_tasks; i++)
		qk_outputs_release(&o.of[i]);
	qk_vec_release(&o.all);
	free(o.of);
	free(o.last);
}
