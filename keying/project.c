#include "keying/project.h"

#include "base/glob.h"
#include "base/path.h"
#include "base/vec.h"
#include "keying/declared.h"
#include "keying/defaults.h"
#include "keying/merge.h"
#include "keying/select.h"
#include "keying/tokens.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* A target while layers are laid on. */
struct draft {
	const char *name;
	const struct qk_json *at; /* where it is named, for complaints about the name */
	const struct qk_json *value;
};

struct build {
	struct qk_workspace *ws;
	const struct qk_project_files *files;
	struct qk_project *p;
	QK_VEC(struct draft) targets;
	QK_VEC(const char *) tags;
	QK_VEC(const struct qk_json *) implicit;
	struct qk_err *err;
};

static struct draft *find_draft(struct build *b, const char *name)
{
	for (size_t i = 0; i < b->targets.n; i++)
		if (!strcmp(b->targets.v[i].name, name))
			return &b->targets.v[i];
	return NULL;
}

/* A value that stands where the member's key does, for complaints about the key. */
static const struct qk_json *key_place(
	struct build *b, const struct qk_json *object, const struct qk_json_member *m)
{
	struct qk_json at = { .file = object->file, .line = m->line, .column = m->column };

	return qk_json_new_string(&b->ws->arena, &at, m->key);
}

static void add_layer(
	struct build *b, const char *name, const struct qk_json *at, const struct qk_json *target)
{
	struct draft *d = find_draft(b, name);
	struct draft fresh = { .name = name, .at = at };

	if (d) {
		d->value = qk_merge_target(&b->ws->arena, d->value, target, true);
		d->at = at;
		return;
	}
	fresh.value = qk_merge_target(&b->ws->arena, NULL, target, true);
	qk_vec_push(&b->targets, fresh);
}

/* One "targets" object. A name with wildcards means the targets there are that it matches. */
static int add_targets(struct build *b, const struct qk_json *from)
{
	const struct qk_json *targets = NULL;
	int r = qk_json_get_object(from, "targets", &targets, b->err);

	for (uint32_t i = 0; targets && i < targets->n; i++) {
		const struct qk_json_member *m = &targets->members[i];
		size_t n = b->targets.n, matched = 0;
		const struct qk_json *target = m->value;

		if (target->type == QK_JSON_NULL)
			continue;
		if (target->type != QK_JSON_OBJECT)
			return qk_json_fail(target, b->err,
				"target \"%s\" must be an object, not %s", m->key,
				qk_json_type_name(target->type));
		r = qk_merge_shorthand(&b->ws->arena, target, &target, b->err);
		if (r)
			return r;
		for (size_t j = 0; qk_select_is_glob(m->key) && j < n; j++) {
			if (!qk_glob_match(m->key, b->targets.v[j].name))
				continue;
			add_layer(b, b->targets.v[j].name, b->targets.v[j].at, target);
			matched++;
		}
		if (!matched)
			add_layer(b, m->key, key_place(b, targets, m), target);
	}
	return r;
}

/* project.json (or its local one) makes this target something else than the script of its name. */
static bool overrides_script(const struct qk_json *project, const char *script)
{
	const struct qk_json *t = qk_json_get(qk_json_get(project, "targets"), script);
	const struct qk_json *executor = qk_json_get(t, "executor");

	if (qk_json_get(t, "command"))
		return true;
	return executor &&
	       !(qk_json_is(executor, "nx:run-script") &&
		       qk_json_is(qk_json_get(qk_json_get(t, "options"), "script"), script));
}

static const struct qk_json *script_target(
	struct build *b, const struct qk_json *at, const char *script)
{
	struct qk_arena *a = &b->ws->arena;
	struct qk_json_member option = { .key = "script", .line = at->line, .column = at->column };
	struct qk_json_member m[2] = {
		{ .key = "executor", .line = at->line, .column = at->column },
		{ .key = "options", .line = at->line, .column = at->column },
	};

	option.value = qk_json_new_string(a, at, script);
	m[0].value = qk_json_new_string(a, at, "nx:run-script");
	m[1].value = qk_json_new_object(a, at, &option, 1);
	return qk_json_new_object(a, at, m, 2);
}

/* A script of a name make cannot hold is no fault of the workspace: it is left out, and said. */
static void add_script(struct build *b, const char *name, const struct qk_json *at)
{
	if (qk_name_ok(name))
		add_layer(b, name, at, script_target(b, at, name));
	else
		qk_workspace_warn(
			b->ws, at, "script \"%s\" is no target: make cannot hold its name", name);
}

static int add_scripts(struct build *b)
{
	const struct qk_json *package = b->files->package, *scripts = NULL, *included = NULL;
	const struct qk_json *nx = NULL;
	int r = qk_json_get_object(package, "scripts", &scripts, b->err);

	if (!r)
		r = qk_json_get_object(package, "nx", &nx, b->err);
	if (!r)
		r = qk_json_get_strings(nx, "includedScripts", &included, b->err);
	if (r)
		return r;
	for (uint32_t i = 0; included && i < included->n; i++)
		add_script(b, included->items[i]->s, included->items[i]);
	for (uint32_t i = 0; !included && scripts && i < scripts->n; i++) {
		const struct qk_json_member *m = &scripts->members[i];

		if (!overrides_script(b->files->project, m->key) &&
			!overrides_script(b->files->local, m->key))
			add_script(b, m->key, key_place(b, scripts, m));
	}
	return 0;
}

/* In package.json a target that says how it runs replaces the script of its name. */
static void drop_replaced_scripts(struct build *b, const struct qk_json *nx)
{
	const struct qk_json *targets = qk_json_get(nx, "targets");

	for (uint32_t i = 0; targets && targets->type == QK_JSON_OBJECT && i < targets->n; i++) {
		struct draft *d = find_draft(b, targets->members[i].key);
		const struct qk_json *t = targets->members[i].value;

		if (d && (qk_json_get(t, "executor") || qk_json_get(t, "command")))
			*d = b->targets.v[--b->targets.n];
	}
}

static int add_strings(struct build *b, const struct qk_json *from)
{
	const struct qk_json *tags = NULL, *implicit = NULL, *inputs = NULL;
	int r = qk_json_get_strings(from, "tags", &tags, b->err);

	if (!r)
		r = qk_json_get_strings(from, "implicitDependencies", &implicit, b->err);
	if (!r)
		r = qk_json_get_object(from, "namedInputs", &inputs, b->err);
	if (r)
		return r;
	for (uint32_t i = 0; tags && i < tags->n; i++)
		qk_vec_push(&b->tags, tags->items[i]->s);
	for (uint32_t i = 0; implicit && i < implicit->n; i++)
		qk_vec_push(&b->implicit, implicit->items[i]);
	b->p->named_inputs = qk_merge_members(&b->ws->arena, b->p->named_inputs, inputs, false);
	if (qk_json_get(from, "sourceRoot"))
		b->p->source_root = qk_json_get(from, "sourceRoot");
	return 0;
}

static int add_package(struct build *b)
{
	const struct qk_json *package = b->files->package, *keywords, *nx;
	int r = qk_json_get_string(package, "name", &b->p->package_name, b->err);

	if (!r)
		r = qk_json_get_string(package, "version", &b->p->package_version, b->err);
	if (!r)
		r = add_scripts(b);
	if (r)
		return r;
	nx = qk_json_get(package, "nx");
	qk_vec_push(&b->tags,
		qk_json_is_true(qk_json_get(package, "private")) ? "npm:private" : "npm:public");
	keywords = qk_json_get(package, "keywords");
	for (uint32_t i = 0; keywords && keywords->type == QK_JSON_ARRAY && i < keywords->n; i++)
		if (keywords->items[i]->type == QK_JSON_STRING)
			qk_vec_push(&b->tags,
				qk_arena_printf(&b->ws->arena, "npm:%s", keywords->items[i]->s));
	drop_replaced_scripts(b, nx);
	r = add_strings(b, nx);
	return r ? r : add_targets(b, nx);
}

static int set_name(struct build *b)
{
	const struct qk_project_files *f = b->files;
	const struct qk_json *top[] = { f->local, f->project, qk_json_get(f->package, "nx"),
		f->package };
	const struct qk_json *at = NULL;
	char *lower;

	for (size_t i = 0; i < sizeof(top) / sizeof(*top) && !b->p->name; i++) {
		int r = qk_json_get_string(top[i], "name", &b->p->name, b->err);

		if (r)
			return r;
		at = qk_json_get(top[i], "name");
		if (b->p->name && !*b->p->name)
			b->p->name = NULL;
	}
	if (!b->p->name) {
		at = f->project ? f->project : f->package;
		if (!strcmp(f->root, ".") && !f->project)
			return qk_json_fail(at, b->err, "the root project needs a \"name\"");
		lower = qk_arena_strdup(&b->ws->arena, qk_path_base(f->root));
		for (char *c = lower; *c; c++)
			*c = (char)tolower((unsigned char)*c);
		b->p->name = lower;
	}
	b->p->at = at;
	if (!qk_name_ok(b->p->name))
		return qk_json_fail(
			at, b->err, "make cannot hold the project name \"%s\"", b->p->name);
	return 0;
}

/* Nx's defaults and checks on one target that is fully merged; false in *ret_keep if it does
 * nothing. */
static int finish_target(
	struct build *b, const struct draft *d, struct qk_target *t, bool *ret_keep)
{
	struct qk_arena *a = &b->ws->arena;
	const struct qk_json *v, *cache;
	struct qk_err *err = b->err;
	int r = qk_defaults_apply(b->ws, b->p, d->name, d->value, &v, err);

	*t = (struct qk_target){ .name = d->name, .project = b->p, .at = v };
	if (!r)
		r = qk_json_get_string(v, "executor", &t->executor, err);
	if (!r)
		r = qk_json_get_object(v, "options", &t->options, err);
	if (!r)
		r = qk_json_get_object(v, "configurations", &t->configurations, err);
	if (!r)
		r = qk_json_get_string(v, "defaultConfiguration", &t->default_configuration, err);
	if (!r)
		r = qk_json_get_array(v, "dependsOn", &t->depends_on, err);
	if (!r)
		r = qk_json_get_array(v, "inputs", &t->inputs, err);
	if (!r)
		r = qk_json_get_strings(v, "outputs", &t->outputs, err);
	if (!r)
		r = qk_json_get_bool(v, "cache", &t->cache, err);
	if (!r)
		r = qk_json_get_bool(v, "continuous", &t->continuous, err);
	t->parallelism = true;
	if (!r)
		r = qk_json_get_bool(v, "parallelism", &t->parallelism, err);
	if (!r)
		r = qk_tokens_in_options(a, t->options, b->p->root, b->p->name, &t->options, err);
	if (!r)
		r = qk_tokens_in_options(
			a, t->configurations, b->p->root, b->p->name, &t->configurations, err);
	if (!r)
		r = qk_declared_read(b->ws, v, &t->qk, err);
	if (r)
		return r;
	cache = qk_json_get(v, "cache");
	t->cache_given = cache && cache->type == QK_JSON_BOOL;
	*ret_keep = true;
	if (!t->executor || !*t->executor) {
		*ret_keep = t->depends_on && t->depends_on->n;
		t->executor = "nx:noop";
	}
	if (*ret_keep && !qk_name_ok(t->name))
		return qk_json_fail(d->at, err, "make cannot hold the target name \"%s\"", t->name);
	if (t->cache && t->continuous)
		return qk_json_fail(qk_json_get(v, "cache"), err,
			"target \"%s\" is continuous: it cannot be cached", t->name);
	for (uint32_t i = 0; t->configurations && i < t->configurations->n; i++) {
		const struct qk_json_member *m = &t->configurations->members[i];

		if (m->value->type != QK_JSON_OBJECT && m->value->type != QK_JSON_NULL)
			return qk_json_fail(m->value, err,
				"configuration \"%s\" must be an object, not %s", m->key,
				qk_json_type_name(m->value->type));
		if (!qk_name_ok(m->key))
			return qk_json_fail(key_place(b, t->configurations, m), err,
				"make cannot hold the configuration name \"%s\"", m->key);
	}
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct qk_target *)a)->name, ((const struct qk_target *)b)->name);
}

static int finish_targets(struct build *b)
{
	struct qk_project *p = b->p;

	p->targets = qk_arena_alloc(&b->ws->arena, b->targets.n * sizeof(*p->targets));
	for (size_t i = 0; i < b->targets.n; i++) {
		bool keep = false;
		int r = finish_target(b, &b->targets.v[i], &p->targets[p->n_targets], &keep);

		if (r)
			return r;
		p->n_targets += keep;
	}
	if (p->n_targets)
		qsort(p->targets, p->n_targets, sizeof(*p->targets), by_name);
	return 0;
}

static void set_lists(struct build *b)
{
	const char **tags = qk_arena_alloc(&b->ws->arena, (b->tags.n + 1) * sizeof(*tags));

	for (size_t i = 0; i < b->tags.n; i++) {
		size_t j = 0;

		while (j < b->p->tags.n && strcmp(tags[j], b->tags.v[i]))
			j++;
		if (j == b->p->tags.n)
			tags[b->p->tags.n++] = b->tags.v[i];
	}
	b->p->tags.v = tags;
	if (b->implicit.n)
		b->p->implicit = qk_json_new_array(
			&b->ws->arena, b->implicit.v[0], b->implicit.v, b->implicit.n);
}

int qk_project_build(struct qk_workspace *ws, const struct qk_project_files *files,
	struct qk_project *ret, struct qk_err *err)
{
	static const char *const no_qk_fields[] = { NULL };
	struct build b = { .ws = ws, .files = files, .p = ret, .err = err };
	const struct qk_json *over[] = { files->project, files->local };
	int r;

	ret->root = files->root;
	ret->package = files->package;
	ret->in_workspaces = files->in_workspaces;
	r = set_name(&b);
	if (!r && files->package)
		r = add_package(&b);
	for (size_t i = 0; !r && i < sizeof(over) / sizeof(*over); i++) {
		if (!over[i])
			continue;
		qk_declared_warn_unknown(ws, over[i], no_qk_fields);
		r = add_strings(&b, over[i]);
		if (!r)
			r = add_targets(&b, over[i]);
	}
	if (!r) {
		set_lists(&b);
		r = finish_targets(&b);
	}
	qk_vec_release(&b.targets);
	qk_vec_release(&b.tags);
	qk_vec_release(&b.implicit);
	return r;
}
