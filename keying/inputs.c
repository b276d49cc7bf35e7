#include "keying/inputs.h"

#include "base/fdio.h"
#include "base/glob.h"
#include "base/path.h"
#include "keying/inputforms.h"
#include "keying/lockfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOCKFILE_MAX = 256 << 20 };

/* --- the parts that do not hang on what is declared --- */

static void read_lockfile(struct qk_inputs *in)
{
	qk_autobuf struct qk_buf text = QK_BUF_INIT;
	qk_autofree char *path = NULL;
	struct qk_err err = QK_ERR_INIT;
	int r;

	for (size_t i = 0; qk_lockfile_names[i] && !in->lock_name; i++) {
		qk_autofree char *candidate = qk_path_join(in->ws->root, qk_lockfile_names[i]);

		if (!access(candidate, F_OK))
			in->lock_name = qk_lockfile_names[i];
	}
	if (!in->lock_name)
		return;
	in->lock_group = qk_filesets_group(in->sets, "lockfile", &in->lock_name, 1);
	if (in->lock_name != qk_lockfile_names[0]) {
		in->lock_whole = qk_arena_printf(
			&in->arena, "%s is not read: it counts as a whole", in->lock_name);
		return;
	}
	path = qk_path_join(in->ws->root, in->lock_name);
	r = qk_read_file(AT_FDCWD, path, LOCKFILE_MAX, &text, &err);
	if (!r)
		r = qk_lockfile_parse(in->lock_name, text.s, text.len, &in->lock, &err);
	if (r == -EOPNOTSUPP)
		in->lock_whole = qk_arena_printf(&in->arena, "%s: it counts as a whole", err.msg);
	else if (r)
		in->lock_problem = qk_arena_strdup(&in->arena, err.msg);
}

struct qk_inputs *qk_inputs_new(struct qk_workspace *ws, const struct qk_taskgraph *g,
	const struct qk_tracked *t, const char *cwd, const char *args)
{
	struct qk_inputs *in = qk_zalloc(sizeof(*in));

	in->ws = ws;
	in->graph = g;
	in->cwd = qk_arena_strdup(&in->arena, cwd);
	in->args = args ? qk_arena_strdup(&in->arena, args) : NULL;
	in->sets = qk_filesets_new(ws, t);
	in->tasks = qk_arena_alloc(&in->arena, (g->n_tasks + 1) * sizeof(*in->tasks));
	in->held = qk_arena_alloc(&in->arena, (ws->n_projects + 1) * sizeof(*in->held));
	in->reached = qk_arena_alloc(&in->arena, (ws->n_projects + 1) * sizeof(*in->reached));
	in->expansions = qk_arena_alloc(&in->arena, (ws->n_projects + 1) * sizeof(*in->expansions));
	in->installed = qk_arena_alloc(&in->arena, (ws->n_projects + 1) * sizeof(*in->installed));
	read_lockfile(in);
	return in;
}

void qk_inputs_free(struct qk_inputs *in)
{
	if (!in)
		return;
	for (size_t i = 0; i < in->graph->n_tasks; i++)
		if (in->tasks[i]) {
			qk_vec_release(&in->tasks[i]->list);
			qk_parts_release(&in->tasks[i]->parts);
		}
	for (size_t i = 0; i < in->ws->n_projects; i++)
		qk_strv_release(&in->installed[i].local);
	qk_lockfile_free(in->lock);
	qk_filesets_free(in->sets);
	qk_arena_release(&in->arena);
	free(in);
}

const char *qk_inputs_whole_lockfile(const struct qk_inputs *in, const char **ret_why)
{
	*ret_why = in->lock_whole;
	return in->lock_whole ? in->lock_name : NULL;
}

/* --- what counts without being declared --- */

static void add_task_text(struct qk_resolving *s)
{
	const struct qk_task *t = s->task;
	struct qk_parts *p = &s->ret->parts;
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	qk_parts_text(p, "task", t->id, t->target->executor);
	if (t->options)
		qk_json_write(&b, t->options, true);
	qk_parts_text(p, "options", t->configuration ? t->configuration : "", b.s);
	for (size_t i = 0; i < t->outputs.n; i++)
		qk_parts_text(p, "output", t->outputs.v[i], NULL);
	if (t->forwards_args && s->in->args)
		qk_parts_text(p, "args", "ARGS", s->in->args);
}

/* package.json and .gitignore, held whole; and for the policy what is held by its effect only. */
static void add_held(struct qk_resolving *s)
{
	static const char *const own[] = { "project.json", "project.local.json" };
	static const char *const root[] = { "nx.json", "nx.local.json", "pnpm-workspace.yaml" };
	const struct qk_project *p = s->task->project;
	struct qk_inputs *in = s->in;
	bool is_root = !strcmp(p->root, ".");

	if (!in->held[p->index]) {
		qk_autofree char *package = qk_asprintf("%s/package.json", p->root);
		const char *paths[2] = { ".gitignore", is_root ? "package.json" : package };

		in->held[p->index] = qk_filesets_group(in->sets, "held", paths, 2);
	}
	qk_parts_files(&s->ret->parts, in->held[p->index]);
	qk_inputforms_note(s->ret, QK_INPUT_FILES, "held", in->held[p->index], true, NULL);
	for (size_t i = 0; i < 3; i++)
		qk_inputforms_note(s->ret, QK_INPUT_FILE, root[i], NULL, false, NULL);
	if (in->ws->extends_path && qk_path_below(in->ws->extends_path, in->ws->root))
		qk_inputforms_note(s->ret, QK_INPUT_FILE,
			qk_path_below(in->ws->extends_path, in->ws->root), NULL, false, NULL);
	for (size_t i = 0; i < 2; i++) {
		qk_autofree char *path =
			is_root ? qk_strdup(own[i]) : qk_asprintf("%s/%s", p->root, own[i]);

		qk_inputforms_note(s->ret, QK_INPUT_FILE, path, NULL, false, NULL);
	}
	if (!is_root)
		qk_inputforms_note(s->ret, QK_INPUT_FILE, "package.json", NULL, false, NULL);
}

static void add_group(struct qk_resolving *s, struct qk_filegroup *g, const struct qk_json *at)
{
	qk_parts_files(&s->ret->parts, g);
	qk_inputforms_note(s->ret, QK_INPUT_FILES, g->name, g, true, at);
}

static void add_files(struct qk_resolving *s)
{
	QK_VEC(struct qk_filegroup *) any = { 0 };

	for (size_t i = 0; i < s->projects.n; i++) {
		const struct qk_contribution *c = &s->projects.v[i];
		struct qk_filegroup *groups[2];
		bool met;

		if (c->one)
			memcpy(groups, c->one->groups, sizeof(groups));
		else
			qk_filesets_select(s->in->sets, c->project, c->sets.v, c->sets.n,
				&groups[0], &groups[1]);
		if (groups[0])
			add_group(s, groups[0], c->at);
		/* Files that are no project's own are often asked for by many projects. */
		met = !groups[1];
		for (size_t j = 0; j < any.n && !met; j++)
			met = any.v[j] == groups[1];
		if (met)
			continue;
		add_group(s, groups[1], c->at);
		qk_vec_push(&any, groups[1]);
	}
	qk_vec_release(&any);
}

/* What the project's importers install: its own and the root's. */
static const struct qk_installed *installed_for(struct qk_inputs *in, const struct qk_project *p)
{
	struct qk_installed *i = &in->installed[p->index];
	const char *dirs[2] = { p->root, "." };
	struct qk_err err = QK_ERR_INIT;

	if (i->known)
		return i;
	i->known = true;
	i->code = qk_lockfile_importers(in->lock, dirs, 2, &i->digest, &i->local, &err);
	if (i->code)
		i->why = qk_arena_strdup(&in->arena, err.msg);
	return i;
}

/* The files that packages are made of which come from the workspace itself. */
static void add_local(struct qk_resolving *s, const struct qk_strv *local)
{
	for (size_t i = 0; i < local->n; i++) {
		qk_autobuf struct qk_buf path = QK_BUF_INIT, below = QK_BUF_INIT;
		struct qk_filegroup *own = NULL, *any = NULL;
		struct qk_fileset sets[2];

		if (*local->v[i] == '/' || !strcmp(local->v[i], "..") ||
			!strncmp(local->v[i], "../", 3)) {
			qk_inputforms_give_up(s, NULL, "%s installs '%s', which lies outside the workspace",
				s->in->lock_name, local->v[i]);
			return;
		}
		qk_glob_quote(&path, local->v[i]);
		qk_buf_addf(&below, "%s/**", path.s);
		sets[0] = (struct qk_fileset){ path.s, false, true };
		sets[1] = (struct qk_fileset){ below.s, false, true };
		qk_filesets_select(s->in->sets, s->task->project, sets, 2, &own, &any);
		if (any)
			add_group(s, any, NULL);
	}
}

static void add_installed(struct qk_resolving *s)
{
	struct qk_inputs *in = s->in;
	char hex[QK_DIGEST_HEX];

	if (!in->lock_name)
		return;
	if (in->lock_problem) {
		qk_inputforms_give_up(s, NULL, "%s", in->lock_problem);
		return;
	}
	if (in->lock_whole) {
		qk_parts_files(&s->ret->parts, in->lock_group);
		qk_inputforms_note(
			s->ret, QK_INPUT_FILES, in->lock_name, in->lock_group, true, NULL);
		return;
	}
	qk_inputforms_note(s->ret, QK_INPUT_FILE, in->lock_name, NULL, false, NULL);
	if (s->external_named) {
		struct qk_err err = QK_ERR_INIT;
		qk_autostrv struct qk_strv local = { 0 };
		struct qk_digest d;
		const char *unknown;

		if (qk_lockfile_packages(in->lock, s->external.v, s->external.n, &d, &local,
			    &unknown, &err)) {
			qk_inputforms_give_up(s, NULL, "%s", err.msg);
			return;
		}
		add_local(s, &local);
		if (unknown) {
			qk_inputforms_give_up(s, NULL,
				"externalDependencies names '%s', which %s does not install",
				unknown, in->lock_name);
			return;
		}
		qk_digest_hex(&d, hex);
		for (size_t i = 0; i < s->external.n; i++)
			qk_parts_text(&s->ret->parts, "external", s->external.v[i], NULL);
	} else {
		const struct qk_installed *i = installed_for(in, s->task->project);

		if (i->code) {
			qk_inputforms_give_up(s, NULL, "%s", i->why);
			return;
		}
		add_local(s, &i->local);
		qk_digest_hex(&i->digest, hex);
		qk_inputforms_note(
			s->ret, QK_INPUT_EXTERNAL, s->task->project->root, NULL, true, NULL);
		qk_inputforms_note(s->ret, QK_INPUT_EXTERNAL, ".", NULL, true, NULL);
	}
	qk_parts_text(&s->ret->parts, "installed", in->lock_name, hex);
}

static void add_dependency(struct qk_resolving *s, const struct qk_task *d, bool running)
{
	const struct qk_resolved *r = qk_inputs_task(s->in, d);

	if (r->uncached)
		qk_inputforms_give_up(
			s, NULL, "it depends on %s, which has no key: %s", d->id, r->uncached);
	/*
	 * One that still runs has made nothing yet, and where outputs are only presumed, their
	 * being empty says nothing about the task.
	 */
	if (qk_inputforms_has_outputs(d) && !running)
		qk_parts_outputs(&s->ret->parts, d->id, d->outputs.v, d->outputs.n, NULL);
	else
		qk_parts_task(&s->ret->parts, d->id);
	qk_inputforms_note(s->ret, QK_INPUT_TASK, d->id, NULL, true, NULL);
}

static void check_outputs(struct qk_resolving *s)
{
	const struct qk_task *t = s->task;

	if (t->outputs_problem)
		qk_inputforms_give_up(s, NULL, "%s", t->outputs_problem);
	for (size_t i = 0; i < t->outputs.n; i++) {
		const char *o = t->outputs.v[i];

		if (*o != '!' && (!strcmp(o, ".") || qk_path_under(t->project->root, o)))
			qk_inputforms_give_up(
				s, t->target->outputs, "output '%s' holds the whole project", o);
	}
}

struct qk_resolved *qk_inputs_task(struct qk_inputs *in, const struct qk_task *task)
{
	struct qk_resolving s = { .in = in, .task = task };
	const struct qk_json *declared = task->target->inputs;

	if (in->tasks[task->index])
		return in->tasks[task->index];
	s.ret = in->tasks[task->index] = qk_arena_alloc(&in->arena, sizeof(*s.ret));
	check_outputs(&s);
	add_task_text(&s);
	if (declared) {
		for (uint32_t i = 0; i < declared->n; i++)
			qk_inputforms_add(&s, task->project, declared->items[i], false);
	} else {
		qk_inputforms_default(&s);
	}
	add_held(&s);
	add_files(&s);
	s.ret->external_named = s.external_named;
	add_installed(&s);
	qk_inputforms_release(&s);
	for (size_t i = 0; i < task->n_deps; i++)
		add_dependency(&s, task->deps[i], false);
	for (size_t i = 0; i < task->n_continuous; i++)
		add_dependency(&s, task->continuous[i], true);
	return s.ret;
}

struct qk_resolved *qk_inputs_met(const struct qk_inputs *in, const struct qk_task *task)
{
	return in->tasks[task->index];
}
