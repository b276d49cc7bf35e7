#include "keying/dependson.h"

#include "base/glob.h"
#include "base/vec.h"
#include "keying/select.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

/* The projects that one array of patterns selects, whoever it is asked for. */
struct answer {
	const struct qk_json *patterns;
	const struct qk_project **projects;
	size_t n;
	UT_hash_handle hh;
};

struct qk_dependson {
	struct qk_workspace *ws;
	struct qk_arena *arena;
	const char **names; /* of all targets, sorted, no repeats */
	size_t n_names;
	struct answer *answers;
	bool *chosen;
	QK_VEC(struct qk_wanted) wanted; /* of the target being read */
};

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

struct qk_dependson *qk_dependson_new(struct qk_workspace *ws, struct qk_arena *arena)
{
	struct qk_dependson *d = qk_zalloc(sizeof(*d));
	size_t n = 0, kept = 0;

	d->ws = ws;
	d->arena = arena;
	d->chosen = qk_zalloc(ws->n_projects * sizeof(*d->chosen));
	for (size_t i = 0; i < ws->n_projects; i++)
		n += ws->projects[i].n_targets;
	d->names = qk_alloc(n * sizeof(*d->names));
	for (size_t i = 0; i < ws->n_projects; i++)
		for (size_t j = 0; j < ws->projects[i].n_targets; j++)
			d->names[d->n_names++] = ws->projects[i].targets[j].name;
	if (n)
		qsort(d->names, n, sizeof(*d->names), by_text);
	for (size_t i = 0; i < n; i++)
		if (!kept || strcmp(d->names[kept - 1], d->names[i]))
			d->names[kept++] = d->names[i];
	d->n_names = kept;
	return d;
}

void qk_dependson_free(struct qk_dependson *d)
{
	struct answer *a, *next;

	if (!d)
		return;
	HASH_ITER (hh, d->answers, a, next) {
		HASH_DEL(d->answers, a);
		free(a);
	}
	qk_vec_release(&d->wanted);
	free(d->names);
	free(d->chosen);
	free(d);
}

static bool is_target(const struct qk_dependson *d, const char *name)
{
	return d->n_names && bsearch(&name, d->names, d->n_names, sizeof(*d->names), by_text);
}

static void one_project(struct qk_dependson *d, const struct qk_project *p, struct qk_wanted *w)
{
	const struct qk_project **v = qk_arena_alloc(d->arena, sizeof(*v));

	v[0] = p;
	w->projects = v;
	w->n_projects = 1;
}

/* Adds w, once for every target its name matches if that is a pattern. */
static void add(struct qk_dependson *d, const struct qk_wanted *w)
{
	bool any = false;

	if (!qk_select_is_glob(w->target)) {
		any = is_target(d, w->target);
		qk_vec_push(&d->wanted, *w);
	}
	for (size_t i = 0; qk_select_is_glob(w->target) && i < d->n_names; i++) {
		struct qk_wanted one = *w;

		if (!qk_glob_match(w->target, d->names[i]))
			continue;
		one.target = d->names[i];
		qk_vec_push(&d->wanted, one);
		any = true;
	}
	if (!any)
		qk_workspace_warn(
			d->ws, w->at, "\"dependsOn\": no project has a target \"%s\"", w->target);
}

/*
 * "app:build", where names may hold colons themselves: the project's own target of the whole name
 * first, then the longest project name that leaves a target it has, then the longest at all.
 */
static void add_text(struct qk_dependson *d, const struct qk_target *t, const struct qk_json *item)
{
	struct qk_wanted w = { .at = item, .target = item->s };
	const struct qk_project *named = NULL;
	const char *rest = NULL;

	if (*item->s == '^') {
		w.target++;
		w.dependencies = true;
		add(d, &w);
		return;
	}
	one_project(d, t->project, &w);
	for (const char *colon = strrchr(item->s, ':');
		colon && !qk_project_target(t->project, item->s);) {
		qk_autofree char *name = qk_strndup(item->s, (size_t)(colon - item->s));
		const struct qk_project *p = qk_workspace_project(d->ws, name);

		if (p && (!named || (!qk_project_target(named, rest) &&
					    qk_project_target(p, colon + 1)))) {
			named = p;
			rest = colon + 1;
		}
		do
			colon--;
		while (colon > item->s && *colon != ':');
		if (colon <= item->s)
			break;
	}
	if (named) {
		one_project(d, named, &w);
		w.target = rest;
		if (!qk_select_is_glob(rest) && !qk_project_target(named, rest)) {
			qk_workspace_warn(d->ws, item,
				"\"dependsOn\": project \"%s\" has no target \"%s\"", named->name,
				rest);
			return;
		}
	}
	add(d, &w);
}

/* The projects an array of patterns selects; asked once for every array. */
static const struct answer *select_projects(
	struct qk_dependson *d, const struct qk_json *patterns, const char *const *v, size_t n)
{
	const struct qk_workspace *ws = d->ws;
	struct answer *a;

	HASH_FIND_PTR(d->answers, &patterns, a);
	if (a)
		return a;
	a = qk_zalloc(sizeof(*a));
	a->patterns = patterns;
	memset(d->chosen, 0, ws->n_projects * sizeof(*d->chosen));
	qk_workspace_select(ws, v, n, d->chosen);
	for (size_t i = 0; i < ws->n_projects; i++)
		a->n += d->chosen[i];
	a->projects = qk_arena_alloc(d->arena, a->n * sizeof(*a->projects));
	a->n = 0;
	for (size_t i = 0; i < ws->n_projects; i++)
		if (d->chosen[i])
			a->projects[a->n++] = &ws->projects[i];
	if (!a->n && n)
		qk_workspace_warn(d->ws, patterns, "\"dependsOn\": its \"projects\" select none");
	HASH_ADD_PTR(d->answers, patterns, a);
	return a;
}

static int read_projects(struct qk_dependson *d, const struct qk_target *t,
	const struct qk_json *item, struct qk_wanted *w, struct qk_err *err)
{
	const struct qk_json *projects = qk_json_get(item, "projects");
	qk_autofree const char **v = NULL;
	const struct answer *a;
	int r;

	if (!projects || projects->type == QK_JSON_NULL) {
		one_project(d, t->project, w);
		return 0;
	}
	if (projects->type == QK_JSON_STRING) {
		/* as older versions of Nx have it, unless a project is called so */
		if (!qk_workspace_project(d->ws, projects->s)) {
			w->dependencies = !strcmp(projects->s, "dependencies");
			if (w->dependencies)
				return 0;
			if (!strcmp(projects->s, "self")) {
				one_project(d, t->project, w);
				return 0;
			}
		}
		a = select_projects(d, projects, &projects->s, 1);
	} else {
		r = qk_json_get_strings(item, "projects", &projects, err);
		if (r)
			return r;
		v = qk_alloc(projects->n * sizeof(*v));
		for (uint32_t i = 0; i < projects->n; i++)
			v[i] = projects->items[i]->s;
		a = select_projects(d, projects, v, projects->n);
	}
	w->projects = a->projects;
	w->n_projects = a->n;
	return 0;
}

static int read_forward(const struct qk_json *item, const char *key, bool *ret, struct qk_err *err)
{
	const char *s = NULL;
	int r = qk_json_get_string(item, key, &s, err);

	if (r || !s)
		return r;
	if (strcmp(s, "forward") && strcmp(s, "ignore"))
		return qk_json_fail(qk_json_get(item, key), err,
			"\"%s\" must be \"forward\" or \"ignore\", not \"%s\"", key, s);
	*ret = !strcmp(s, "forward");
	return 0;
}

static int add_object(struct qk_dependson *d, const struct qk_target *t, const struct qk_json *item,
	struct qk_err *err)
{
	struct qk_wanted w = { .at = item };
	int r = qk_json_get_string(item, "target", &w.target, err);

	if (!r && !w.target)
		return qk_json_fail(item, err, "an item of \"dependsOn\" needs a \"target\"");
	if (!r)
		r = qk_json_get_bool(item, "dependencies", &w.dependencies, err);
	if (!r)
		r = read_forward(item, "params", &w.forward_params, err);
	if (!r)
		r = read_forward(item, "options", &w.forward_options, err);
	if (!r && (!w.dependencies || qk_json_get(item, "projects"))) {
		w.dependencies = false; /* "projects" counts where both are given */
		r = read_projects(d, t, item, &w, err);
	}
	if (!r)
		add(d, &w);
	return r;
}

int qk_dependson_read(struct qk_dependson *d, const struct qk_target *t, struct qk_wanted **ret,
	size_t *ret_n, struct qk_err *err)
{
	const struct qk_json *list = t->depends_on;
	int r = 0;

	d->wanted.n = 0;
	for (uint32_t i = 0; list && i < list->n && !r; i++) {
		const struct qk_json *item = list->items[i];

		if (item->type == QK_JSON_STRING)
			add_text(d, t, item);
		else if (item->type == QK_JSON_OBJECT)
			r = add_object(d, t, item, err);
		else
			r = qk_json_fail(item, err,
				"\"dependsOn\" must hold strings and objects, not %s",
				qk_json_type_name(item->type));
	}
	if (r)
		return r;
	*ret = qk_arena_alloc(d->arena, d->wanted.n * sizeof(**ret));
	if (d->wanted.n)
		memcpy(*ret, d->wanted.v, d->wanted.n * sizeof(**ret));
	*ret_n = d->wanted.n;
	return 0;
}
