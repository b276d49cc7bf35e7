#include "gmk-plugin/tasks/makers.h"

#include "base/glob.h"
#include "base/path.h"
#include "keying/outputs.h"

#include <string.h>

/* An output that is a plain name, and the task it is of; several tasks may have it. */
struct plain {
	const char *path;
	QK_VEC(const struct qk_task *) tasks;
	UT_hash_handle hh;
};

/* A task with a glob among its outputs. */
struct globbed {
	const struct qk_task *task;
	struct qk_outputs outputs;
};

static struct makers {
	bool known;
	struct plain *plain;
	QK_VEC(struct globbed) globbed;
} makers;

static void add_plain(const char *path, const struct qk_task *t)
{
	struct plain *p;

	HASH_FIND_STR(makers.plain, path, p);
	if (!p) {
		p = qk_arena_alloc(&qk_model.arena, sizeof(*p));
		*p = (struct plain){ .path = path };
		HASH_ADD_KEYPTR(hh, makers.plain, p->path, strlen(p->path), p);
	}
	qk_vec_push(&p->tasks, t);
}

static void add_task(const struct qk_task *t)
{
	struct globbed g = { .task = t };
	bool globs = false;

	for (size_t i = 0; i < t->outputs.n; i++)
		globs |= qk_glob_is_pattern(t->outputs.v[i]) || *t->outputs.v[i] == '!';
	for (size_t i = 0; i < t->outputs.n; i++) {
		if (globs)
			qk_outputs_add(&g.outputs, t->outputs.v[i], NULL);
		else
			add_plain(t->outputs.v[i], t);
	}
	if (globs)
		qk_vec_push(&makers.globbed, g);
}

static void know(void)
{
	for (size_t i = 0; i < qk_model.tasks.n && !makers.known; i++) {
		const struct qk_task *t = qk_model.tasks.v[i]->task;

		/* a configuration mostly has the outputs of its target: the target is named */
		if (t->target->outputs && (!t->configuration || t->asked))
			add_task(t);
	}
	makers.known = true;
}

const struct qk_task *qk_makers_find(const char *path, const struct qk_task *reader)
{
	qk_autofree char *dir = qk_strdup(path);

	know();
	for (size_t n = strlen(dir); n; n = qk_path_dirlen(dir)) {
		struct plain *p;

		dir[n] = '\0';
		HASH_FIND_STR(makers.plain, dir, p);
		for (size_t i = 0; p && i < p->tasks.n; i++)
			if (p->tasks.v[i]->target != reader->target)
				return p->tasks.v[i];
		if (!strchr(dir, '/'))
			break;
	}
	for (size_t i = 0; i < makers.globbed.n; i++) {
		const struct globbed *g = &makers.globbed.v[i];

		if (g->task->target != reader->target && qk_outputs_match(&g->outputs, path))
			return g->task;
	}
	return NULL;
}
