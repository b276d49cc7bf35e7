#include "keying/inputforms.h"

#include "base/glob.h"
#include "base/path.h"
#include "keying/jsoninput.h"
#include "keying/tokens.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { NAMED_DEPTH_MAX = 32 }; /* named inputs in named inputs */

void qk_inputforms_note(struct qk_resolved *r, enum qk_input_kind kind, const char *name,
	const struct qk_filegroup *g, bool whole, const struct qk_json *at)
{
	struct qk_input i = { .kind = kind, .files = g, .whole = whole, .at = at };

	/* A group's name lives as long as the group. */
	i.name = g ? g->name : name ? qk_arena_strdup(&r->parts.arena, name) : NULL;
	qk_vec_push(&r->list, i);
}

void qk_inputforms_give_up(struct qk_resolving *s, const struct qk_json *at, const char *fmt, ...)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	va_list ap;

	if (s->ret->uncached)
		return;
	if (at && at->file && at->line)
		qk_buf_addf(&b, "%s: ", qk_json_place(&s->ret->parts.arena, at));
	va_start(ap, fmt);
	qk_buf_vaddf(&b, fmt, ap);
	va_end(ap);
	s->ret->uncached = qk_arena_strdup(&s->ret->parts.arena, b.s);
}

static const bool *reached_by(struct qk_inputs *in, const struct qk_project *p)
{
	QK_VEC(const struct qk_project *) queue = { 0 };
	bool *seen;

	if (in->reached[p->index])
		return in->reached[p->index];
	seen = qk_arena_alloc(&in->arena, in->ws->n_projects + 1);
	qk_vec_push(&queue, p);
	for (size_t i = 0; i < queue.n; i++) {
		const struct qk_project *q = queue.v[i];

		for (size_t k = 0; k < q->n_deps; k++)
			if (!seen[q->deps[k].project->index]) {
				seen[q->deps[k].project->index] = true;
				qk_vec_push(&queue, q->deps[k].project);
			}
	}
	qk_vec_release(&queue);
	/* A cycle of projects leads back to where one began; it is no dependency of itself. */
	seen[p->index] = false;
	in->reached[p->index] = seen;
	return seen;
}

static struct qk_contribution *contribution_of(
	struct qk_resolving *s, const struct qk_project *p, const struct qk_json *at)
{
	struct qk_contribution fresh = { .project = p, .at = at };

	if (!s->slot)
		s->slot = qk_zalloc((s->in->ws->n_projects + 1) * sizeof(*s->slot));
	if (!s->slot[p->index]) {
		qk_vec_push(&s->projects, fresh);
		s->slot[p->index] = s->projects.n;
	}
	return &s->projects.v[s->slot[p->index] - 1];
}

/* From an expansion to sets of its own, which more can be added to. */
static void open_up(struct qk_contribution *c)
{
	for (size_t i = 0; c->one && i < c->one->n; i++)
		qk_vec_push(&c->sets, c->one->sets[i]);
	c->one = NULL;
}

static void add_pattern(struct qk_resolving *s, const struct qk_project *p,
	const struct qk_fileset *set, const struct qk_json *at)
{
	struct qk_contribution *c = contribution_of(s, p, at);

	open_up(c);
	qk_vec_push(&c->sets, *set);
}

static void add_expansion(struct qk_resolving *s, const struct qk_project *p,
	const struct qk_expansion *e, const struct qk_json *at)
{
	struct qk_contribution *c;

	if (!e->n)
		return;
	c = contribution_of(s, p, at);
	if (c->one == e)
		return;
	if (!c->one && !c->sets.n) {
		c->one = e;
		return;
	}
	open_up(c);
	for (size_t i = 0; i < e->n; i++)
		qk_vec_push(&c->sets, e->sets[i]);
}

void qk_inputforms_release(struct qk_resolving *s)
{
	for (size_t i = 0; i < s->projects.n; i++)
		qk_vec_release(&s->projects.v[i].sets);
	qk_vec_release(&s->projects);
	qk_vec_release(&s->external);
	free(s->slot);
	s->slot = NULL;
}

/* text: a fileset with its token, "!" allowed in front. */
static void add_fileset(struct qk_resolving *s, const struct qk_project *p, const char *text,
	const struct qk_json *at)
{
	qk_autobuf struct qk_buf path = QK_BUF_INIT;
	struct qk_fileset set = { 0 };
	const char *why = NULL;

	set.negated = *text == '!';
	text += set.negated;
	if (strncmp(text, "{projectRoot}", 13) && strncmp(text, "{workspaceRoot}", 15)) {
		qk_inputforms_give_up(s, at,
			"input '%s' is no named input, and begins with neither {projectRoot} nor "
			"{workspaceRoot}",
			text);
		return;
	}
	/* Another project's options are none of this task's. */
	if (!qk_tokens_path(
		    &path, text, p, p == s->task->project ? s->task->options : NULL, &why)) {
		qk_inputforms_give_up(
			s, at, "input '%s': %s", text, why ? why : "it cannot be resolved");
		return;
	}
	set.of_workspace =
		text[1] == 'w' || (strcmp(p->root, ".") && !qk_path_under(path.s, p->root));
	set.glob = qk_arena_strdup(&s->ret->parts.arena, path.s);
	add_pattern(s, p, &set, at);
}

/* The named input as the project has it, or the workspace; "default" always is there. */
static void add_named(struct qk_resolving *s, const struct qk_project *p, const char *name,
	const struct qk_json *at, bool dependency)
{
	const struct qk_json *list = qk_json_get(p->named_inputs, name);

	if (!list)
		list = qk_json_get(s->in->ws->named_inputs, name);
	if (!list && !strcmp(name, "default")) {
		add_fileset(s, p, "{projectRoot}/**/*", at);
		return;
	}
	if (!list || list->type != QK_JSON_ARRAY) {
		qk_inputforms_give_up(s, at, "there is no input named '%s'", name);
		return;
	}
	if (s->depth == NAMED_DEPTH_MAX) {
		qk_inputforms_give_up(s, list, "input '%s' leads back to itself", name);
		return;
	}
	s->depth++;
	for (uint32_t i = 0; i < list->n; i++)
		qk_inputforms_add(s, p, list->items[i], dependency);
	s->depth--;
}

static bool is_fileset(const char *text)
{
	return *text == '!' || *text == '{' || strchr(text, '/') || qk_glob_is_pattern(text);
}

static void add_text_item(struct qk_resolving *s, const struct qk_project *p, const char *text,
	const struct qk_json *at, bool dependency)
{
	if (is_fileset(text))
		add_fileset(s, p, text, at);
	else
		add_named(s, p, text, at, dependency);
}

static const struct qk_expansion *expansion_of(
	struct qk_resolving *s, const struct qk_project *p, const char *text)
{
	struct qk_inputs *in = s->in;
	struct qk_resolved found = { 0 };
	struct qk_resolving sub = { .in = in, .task = s->task, .ret = &found };
	struct qk_contribution *c;
	struct qk_fileset *sets;
	struct qk_expansion *e;

	for (e = in->expansions[p->index]; e; e = e->next)
		if (!strcmp(e->text, text))
			return e;
	e = qk_arena_alloc(&in->arena, sizeof(*e));
	e->text = qk_arena_strdup(&in->arena, text);
	e->next = in->expansions[p->index];
	in->expansions[p->index] = e;
	sub.depth = s->depth;
	add_text_item(&sub, p, text, NULL, true);
	c = sub.projects.n == 1 && sub.projects.v[0].project == p ? &sub.projects.v[0] : NULL;
	e->simple =
		!found.uncached && !found.list.n && !found.parts.list.n && (c || !sub.projects.n);
	if (c && e->simple) {
		open_up(c);
		sets = qk_arena_alloc(&in->arena, (c->sets.n + 1) * sizeof(*sets));
		for (size_t i = 0; i < c->sets.n; i++) {
			sets[i] = c->sets.v[i];
			sets[i].glob = qk_arena_strdup(&in->arena, sets[i].glob);
		}
		e->sets = sets;
		e->n = c->sets.n;
		qk_filesets_select(in->sets, p, e->sets, e->n, &e->groups[0], &e->groups[1]);
	}
	qk_inputforms_release(&sub);
	qk_vec_release(&found.list);
	qk_parts_release(&found.parts);
	return e;
}

/* The text as an input of another project. */
static void add_foreign(struct qk_resolving *s, const struct qk_project *p, const char *text,
	const struct qk_json *at)
{
	const struct qk_expansion *e = expansion_of(s, p, text);

	if (e->simple)
		add_expansion(s, p, e, at);
	else
		add_text_item(s, p, text, at, true);
}

/* The text as an input of every project that p depends on. */
static void add_of_dependencies(struct qk_resolving *s, const struct qk_project *p,
	const char *text, const struct qk_json *at)
{
	const bool *reached = reached_by(s->in, p);

	for (size_t i = 0; i < s->in->ws->n_projects; i++)
		if (reached[i])
			add_foreign(s, &s->in->ws->projects[i], text, at);
}

static void add_of_projects(struct qk_resolving *s, const struct qk_project *p, const char *text,
	const struct qk_json *projects, const struct qk_json *at)
{
	const struct qk_workspace *ws = s->in->ws;
	QK_VEC(const char *) patterns = { 0 };
	qk_autofree bool *chosen = qk_zalloc(ws->n_projects + 1);

	if (qk_json_is(projects, "self")) {
		add_text_item(s, p, text, at, false);
		return;
	}
	if (qk_json_is(projects, "dependencies")) {
		add_of_dependencies(s, p, text, at);
		return;
	}
	if (projects->type == QK_JSON_STRING)
		qk_vec_push(&patterns, projects->s);
	for (uint32_t i = 0; projects->type == QK_JSON_ARRAY && i < projects->n; i++)
		if (projects->items[i]->type == QK_JSON_STRING)
			qk_vec_push(&patterns, projects->items[i]->s);
	if (!patterns.n)
		qk_inputforms_give_up(s, projects, "projects must name projects");
	qk_workspace_select(ws, patterns.v, patterns.n, chosen);
	for (size_t i = 0; i < ws->n_projects; i++)
		if (chosen[i])
			add_foreign(s, &ws->projects[i], text, at);
	qk_vec_release(&patterns);
}

static void add_json(struct qk_resolving *s, const struct qk_project *p, const struct qk_json *item)
{
	const struct qk_json *file = qk_json_get(item, "json"), *v = NULL;
	qk_autobuf struct qk_buf path = QK_BUF_INIT, text = QK_BUF_INIT, name = QK_BUF_INIT;
	qk_autofree char *full = NULL;
	struct qk_arena a = { 0 };
	struct qk_err err = QK_ERR_INIT;
	const char *why = NULL;
	char real[PATH_MAX];
	int r;

	if (!qk_tokens_path(&path, file->s, p, s->task->options, &why)) {
		qk_inputforms_give_up(s, file, "json input '%s': %s", file->s,
			why ? why : "it cannot be resolved");
		return;
	}
	full = qk_path_join(s->in->ws->root, path.s);
	if (realpath(full, real) && !qk_path_under(real, s->in->ws->root)) {
		qk_inputforms_give_up(
			s, file, "json input '%s' leads out of the workspace", path.s);
		return;
	}
	r = qk_json_read(&a, full, path.s, &v, NULL, &err);
	if (r && r != -ENOENT) {
		qk_inputforms_give_up(s, NULL, "%s", err.msg);
	} else {
		qk_jsoninput_text(&text, r ? NULL : v, qk_json_get(item, "fields"),
			qk_json_get(item, "excludeFields"));
		qk_buf_addstr(&name, path.s);
		qk_parts_text(&s->ret->parts, "json", name.s, r ? NULL : text.s);
		qk_inputforms_note(s->ret, QK_INPUT_JSON, path.s, NULL, false, item);
	}
	qk_arena_release(&a);
}

/* A named input that many projects share is met once for each of them. */
static bool is_met(const struct qk_resolving *s, enum qk_input_kind kind, const char *name)
{
	for (size_t i = 0; i < s->ret->list.n; i++)
		if (s->ret->list.v[i].kind == kind && !strcmp(s->ret->list.v[i].name, name))
			return true;
	return false;
}

static void add_runtime(struct qk_resolving *s, const char *command, const struct qk_json *at)
{
	if (is_met(s, QK_INPUT_RUNTIME, command))
		return;
	qk_parts_runtime(&s->ret->parts, command);
	qk_inputforms_note(s->ret, QK_INPUT_RUNTIME, command, NULL, true, at);
}

static void add_env(struct qk_resolving *s, const char *name, const struct qk_json *at)
{
	if (is_met(s, QK_INPUT_ENV, name))
		return;
	qk_parts_text(&s->ret->parts, "env", name, getenv(name));
	qk_inputforms_note(s->ret, QK_INPUT_ENV, name, NULL, true, at);
}

static void add_external(struct qk_resolving *s, const struct qk_json *names)
{
	s->external_named = true;
	for (uint32_t i = 0; names->type == QK_JSON_ARRAY && i < names->n; i++) {
		const char *name =
			names->items[i]->type == QK_JSON_STRING ? names->items[i]->s : NULL;

		if (!name) {
			qk_inputforms_give_up(
				s, names->items[i], "externalDependencies holds names of packages");
			continue;
		}
		if (!strncmp(name, "npm:", 4))
			name += 4;
		qk_vec_push(&s->external, name);
		qk_inputforms_note(s->ret, QK_INPUT_EXTERNAL, name, NULL, true, names->items[i]);
	}
}

bool qk_inputforms_has_outputs(const struct qk_task *t)
{
	return t->target->outputs && t->outputs.n;
}

static void add_dependent_outputs(struct qk_resolving *s, const struct qk_json *item)
{
	const char *glob = qk_json_get(item, "dependentTasksOutputFiles")->s;
	bool transitive = qk_json_is_true(qk_json_get(item, "transitive"));
	qk_autofree bool *seen = qk_zalloc(s->in->graph->n_tasks + 1);
	QK_VEC(const struct qk_task *) queue = { 0 };

	qk_vec_push(&queue, s->task);
	for (size_t i = 0; i < queue.n; i++) {
		const struct qk_task *t = queue.v[i];

		for (size_t k = 0; k < t->n_deps; k++) {
			const struct qk_task *d = t->deps[k];

			if (seen[d->index])
				continue;
			seen[d->index] = true;
			if (qk_inputforms_has_outputs(d))
				qk_parts_outputs(
					&s->ret->parts, d->id, d->outputs.v, d->outputs.n, glob);
			if (transitive)
				qk_vec_push(&queue, d);
		}
	}
	qk_vec_release(&queue);
}

static void add_directory(struct qk_resolving *s, const struct qk_json *how)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	if (qk_json_is(how, "absolute"))
		qk_buf_addstr(&b, s->in->cwd);
	else if (qk_json_is(how, "relative"))
		qk_path_relative(&b, s->in->ws->root, s->in->cwd);
	else
		qk_inputforms_give_up(
			s, how, "workingDirectory must be \"absolute\" or \"relative\"");
	if (b.len)
		qk_parts_text(&s->ret->parts, "directory", how->s, b.s);
}

static bool has_string(const struct qk_json *item, const char *key)
{
	const struct qk_json *v = qk_json_get(item, key);

	return v && v->type == QK_JSON_STRING;
}

/*
 * An object. Of a dependency's named input what it installs, where it runs and what its own
 * dependencies make do not count: they reach this key through its tasks.
 */
static void add_object(struct qk_resolving *s, const struct qk_project *p,
	const struct qk_json *item, bool dependency)
{
	const struct qk_json *projects = qk_json_get(item, "projects");
	bool of_dependencies = qk_json_is_true(qk_json_get(item, "dependencies"));
	const char *text = NULL;

	if (has_string(item, "input"))
		text = qk_json_get(item, "input")->s;
	else if (has_string(item, "fileset"))
		text = qk_json_get(item, "fileset")->s;
	if (text) {
		if (projects)
			add_of_projects(s, p, text, projects, item);
		else if (of_dependencies)
			add_of_dependencies(s, p, text, item);
		else
			add_text_item(s, p, text, item, dependency);
		return;
	}
	if (has_string(item, "json")) {
		add_json(s, p, item);
		return;
	}
	if (has_string(item, "env")) {
		add_env(s, qk_json_get(item, "env")->s, item);
	} else if (has_string(item, "runtime")) {
		add_runtime(s, qk_json_get(item, "runtime")->s, item);
	} else if (qk_json_get(item, "externalDependencies")) {
		if (!dependency)
			add_external(s, qk_json_get(item, "externalDependencies"));
	} else if (has_string(item, "dependentTasksOutputFiles")) {
		if (!dependency)
			add_dependent_outputs(s, item);
	} else if (qk_json_get(item, "workingDirectory")) {
		if (!dependency)
			add_directory(s, qk_json_get(item, "workingDirectory"));
	} else {
		qk_inputforms_give_up(s, item, "an input of a form that is not known%s%s",
			item->n ? ": " : "", item->n ? item->members[0].key : "");
	}
}

void qk_inputforms_add(struct qk_resolving *s, const struct qk_project *p,
	const struct qk_json *item, bool dependency)
{
	if (item->type == QK_JSON_OBJECT)
		add_object(s, p, item, dependency);
	else if (item->type != QK_JSON_STRING)
		qk_inputforms_give_up(s, item, "an input must be a string or an object");
	else if (*item->s == '^')
		add_of_dependencies(s, p, item->s + 1, item);
	else
		add_text_item(s, p, item->s, item, dependency);
}

void qk_inputforms_default(struct qk_resolving *s)
{
	add_text_item(s, s->task->project, "default", NULL, false);
	add_of_dependencies(s, s->task->project, "default", NULL);
}
