#include "cli/patches.h"
#include "cli/site.h"
#include "cli/verbs.h"

#include "base/path.h"
#include "cli/page.h"
#include "keying/jsonc.h"
#include "keying/jsonedit.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

struct fixing {
	struct qk_site site;
	struct qk_arena arena;
	const struct qk_json *last;
	const struct qk_strv *wanted; /* tasks; none: all */
	struct qk_patches patches;
	struct qk_err *err;
};

/* No field of its own: an input of that form. */
static const char external[] = "externalDependencies";

/* What of a target fixes are for. */
static const char *const fields[] = { "inputs", "outputs", "dependsOn", external };

static bool is_wanted(const struct fixing *f, const char *task)
{
	return !f->wanted->n || qk_strv_has(f->wanted, task);
}

static int load(struct fixing *f)
{
	qk_autofree char *path = NULL;
	int r = qk_site_find(&f->site, f->err);

	if (!r && f->site.is_workspace)
		r = qk_site_load(&f->site, f->err);
	if (r)
		return r;
	f->patches.root = f->site.root;
	path = qk_path_join(f->site.root, ".qk/last.json");
	r = qk_json_read(&f->arena, path, ".qk/last.json", &f->last, NULL, f->err);
	if (r == -ENOENT)
		return qk_fail(f->err, r, "no run to go by: 'make SANDBOX=audit' or 'qk run --sandbox' first");
	if (!r && (f->last->type != QK_JSON_OBJECT || !qk_json_get(f->last, "fixes")))
		r = qk_fail(f->err, -EINVAL, ".qk/last.json: no report of a run");
	return r;
}

/* --- project.json --- */

static bool holds(const struct qk_json *array, const struct qk_json *value)
{
	for (uint32_t i = 0; array && array->type == QK_JSON_ARRAY && i < array->n; i++)
		if (qk_json_equal(array->items[i], value))
			return true;
	return false;
}

/*
 * Where the project says what its target is: the file that has the field now, if it is one of the
 * project's own, else project.json, else package.json. *ret_own: that file has the field.
 */
static char *file_of(const struct fixing *f, const struct qk_target *t, const struct qk_json *now,
	bool *ret_own)
{
	static const char *const names[] = { "project.local.json", "project.json", "package.json" };
	const char *root = t->project->root;
	char *file = NULL;

	*ret_own = false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !*ret_own; i++) {
		qk_autofree char *name = strcmp(root, ".") ? qk_asprintf("%s/%s", root, names[i])
							   : qk_strdup(names[i]);
		qk_autofree char *path = qk_path_join(f->site.root, name);

		*ret_own = now && now->file && !strcmp(now->file, name);
		if (*ret_own || (i > 0 && !file && !access(path, F_OK))) {
			free(file);
			file = qk_steal(&name);
		}
	}
	return file;
}

/* What stands there without being said: a list that is begun anew has to say it. */
static size_t base_of(const char *field, const struct qk_json *now, const char *base[4])
{
	size_t n = 0;

	if (now) {
		base[n++] = "\"...\"";
	} else if (!strcmp(field, "inputs")) {
		base[n++] = "\"default\"";
		base[n++] = "\"^default\"";
	} else if (!strcmp(field, "outputs")) {
		base[n++] = "\"{workspaceRoot}/dist/{projectRoot}\"";
		base[n++] = "\"{projectRoot}/dist\"";
		base[n++] = "\"{projectRoot}/build\"";
		base[n++] = "\"{projectRoot}/public\"";
	}
	return n;
}

/* as_form: the values are names of packages, all of them one input. */
static int edit_field(struct fixing *f, const struct qk_target *t, const char *field,
	const struct qk_json *values, bool as_form)
{
	const struct qk_json *now = !strcmp(field, "inputs") ? t->inputs
				    : !strcmp(field, "outputs") ? t->outputs : t->depends_on;
	QK_VEC(const char *) items = { 0 };
	const char *base[4];
	const char *keys[] = { "nx", "targets", t->name, field, NULL };
	qk_autofree char *file = NULL;
	struct qk_patch *patch;
	bool own, package;
	int r = 0;

	if (as_form) {
		qk_autobuf struct qk_buf b = QK_BUF_INIT;

		qk_buf_addf(&b, "{ \"%s\": ", external);
		qk_json_write(&b, values, false);
		qk_buf_addstr(&b, " }");
		qk_vec_push(&items, qk_arena_strndup(&f->arena, b.s, b.len));
	}
	for (uint32_t i = 0; i < values->n && !as_form; i++) {
		qk_autobuf struct qk_buf b = QK_BUF_INIT;

		if (holds(now, values->items[i]))
			continue;
		qk_json_write(&b, values->items[i], false);
		qk_vec_push(&items, qk_arena_strndup(&f->arena, b.s, b.len));
	}
	if (!items.n)
		return 0;
	file = file_of(f, t, now, &own);
	if (!file)
		r = qk_fail(f->err, -ENOENT, "project '%s' has neither project.json nor package.json",
			t->project->name);
	if (!r)
		r = qk_patches_file(&f->patches, file, &patch, f->err);
	package = file && !strcmp(qk_path_base(file), "package.json");
	if (!r)
		r = qk_jsonedit_append(&patch->text, file, keys + !package, base,
			base_of(field, now, base), items.v, items.n, f->err);
	qk_vec_release(&items);
	return r;
}

static int fix_task(struct fixing *f, const char *id, const struct qk_json *fix)
{
	const struct qk_target *t;
	const char *configuration;
	int r = qk_site_task(&f->site, id, &t, &configuration, f->err);

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]) && !r; i++) {
		const struct qk_json *values = NULL;

		r = qk_json_get_strings(fix, fields[i], &values, f->err);
		if (!r && values)
			r = edit_field(f, t, fields[i] == external ? "inputs" : fields[i], values,
				fields[i] == external);
	}
	return r;
}

/* --- Makefiles --- */

/* The makefile whose rules are read in directory; relative to the root, the caller frees. */
static char *makefile_of(const struct fixing *f, const char *directory)
{
	static const char *const names[] = { "GNUmakefile", "makefile", "Makefile" };
	const struct qk_json *top = qk_json_get(f->last, "directory"),
			     *first = qk_json_get(f->last, "makefile");

	if (top && first && qk_json_is(top, directory) && first->type == QK_JSON_STRING)
		return qk_strdup(first->s);
	for (size_t i = 0; i < 3; i++) {
		qk_autofree char *name = strcmp(directory, ".") ? qk_asprintf("%s/%s", directory, names[i])
								: qk_strdup(names[i]);
		qk_autofree char *path = qk_path_join(f->site.root, name);

		if (!access(path, F_OK))
			return qk_steal(&name);
	}
	return NULL;
}

/* line: with its end. */
static bool has_line(const struct qk_buf *text, const char *line)
{
	for (const char *s = text->s; (s = strstr(s, line)); s += strlen(line))
		if (s == text->s || s[-1] == '\n')
			return true;
	return false;
}

static const char mark[] = "\n# What qk fix added.\n";

/* True if a rule with two colons has the target, n bytes as a makefile spells it, among its own. */
static bool has_two_colons(const struct qk_buf *text, const char *target, size_t n)
{
	for (const char *line = text->s, *end; *line; line = end + (*end == '\n')) {
		const char *colon = strstr(line, "::");

		end = line + strcspn(line, "\n");
		if (*line == '\t' || !colon || colon > line + strcspn(line, "=#\n"))
			continue;
		for (const char *s = line; s + n <= colon; s++)
			if (!strncmp(s, target, n) && (s == line || s[-1] == ' ') &&
				(s + n == colon || s[n] == ' '))
				return true;
	}
	return false;
}

/*
 * A rule as the makefile can take it: a target with two colons cannot get prerequisites by a rule
 * with one, but a variable it can.
 */
static void add_rule(struct qk_buf *out, const struct qk_buf *text, const char *rule)
{
	const char *colon = strstr(rule, ": ");

	if (strstr(rule, " += ") || !colon || !has_two_colons(text, rule, (size_t)(colon - rule))) {
		qk_buf_addf(out, "%s\n", rule);
		return;
	}
	qk_buf_addf(out, "%.*s: QK_INPUTS += ", (int)(colon - rule), rule);
	for (const char *s = colon + 2; *s; s++) {
		bool quoted = *s == '\\' && s[1];

		qk_buf_addch(out, quoted ? '?' : *s); /* one word: what matches the byte stands for it */
		s += quoted;
	}
	qk_buf_addch(out, '\n');
}

static int fix_target(struct fixing *f, const struct qk_json *fix)
{
	const struct qk_json *rules = NULL;
	const char *directory = ".";
	qk_autofree char *name = NULL;
	struct qk_patch *patch;
	qk_autobuf struct qk_buf rule = QK_BUF_INIT;
	int r = qk_json_get_strings(fix, "rules", &rules, f->err);

	if (!r)
		r = qk_json_get_string(fix, "directory", &directory, f->err);
	if (r || !rules)
		return r;
	name = makefile_of(f, directory);
	if (!name)
		return qk_fail(f->err, -ENOENT, "'%s': no makefile there", directory);
	r = qk_patches_file(&f->patches, name, &patch, f->err);
	for (uint32_t i = 0; i < rules->n && !r; i++) {
		qk_buf_reset(&rule);
		add_rule(&rule, &patch->old, rules->items[i]->s);
		if (has_line(&patch->text, rule.s))
			continue;
		if (patch->text.len && patch->text.s[patch->text.len - 1] != '\n')
			qk_buf_addch(&patch->text, '\n');
		if (!strstr(patch->text.s, mark))
			qk_buf_addstr(&patch->text, mark);
		qk_buf_addstr(&patch->text, rule.s);
	}
	return r;
}

/* --- what is left --- */

/* Findings of a list that nothing mends, in a line on stderr. */
static void say_list(const char *task, const char *kind, const struct qk_json *list)
{
	const char *first = NULL;
	size_t n = 0;

	for (uint32_t i = 0; list && i < list->n; i++) {
		const struct qk_json *path = qk_json_get(list->items[i], "path");

		if (qk_json_get(list->items[i], "fix"))
			continue;
		path = path ? path : qk_json_get(list->items[i], "process");
		path = path ? path : qk_json_get(list->items[i], "name");
		first = first ? first : path ? path->s : "?";
		n++;
	}
	if (n)
		fprintf(stderr, "qk: %s: no edit mends %s: %s%s\n", task, kind, first,
			n > 1 ? " and others" : "");
}

static void say_rest(const struct fixing *f)
{
	static const char *const told[] = { "undeclaredReads", "tsconfigReads", "strayWrites", "ordering",
		"multipleWriters", "leftRunning", "hoistedPackages" };
	static const char by_project[] = "dependencyReads";
	const struct qk_json *tasks = qk_json_get(f->last, "tasks"), *projects;

	for (uint32_t i = 0; tasks && i < tasks->n; i++) {
		const struct qk_json_member *task = &tasks->members[i];

		if (!is_wanted(f, task->key))
			continue;
		for (size_t k = 0; k < sizeof(told) / sizeof(told[0]); k++)
			say_list(task->key, told[k], qk_json_get(task->value, told[k]));
		projects = qk_json_get(task->value, by_project);
		for (uint32_t k = 0; projects && k < projects->n; k++)
			say_list(task->key, by_project, projects->members[k].value);
	}
}

static int make_all(struct fixing *f)
{
	const struct qk_json *fixes = qk_json_get(f->last, "fixes");
	int r = 0;

	for (uint32_t i = 0; i < fixes->n && !r; i++) {
		const struct qk_json_member *m = &fixes->members[i];

		if (!is_wanted(f, m->key))
			continue;
		if (qk_json_get(m->value, "rules"))
			r = fix_target(f, m->value);
		else if (f->site.is_workspace)
			r = fix_task(f, m->key, m->value);
	}
	for (size_t i = 0; i < f->wanted->n && !r; i++)
		if (!qk_json_get(fixes, f->wanted->v[i]))
			fprintf(stderr, "qk: %s: the last run found nothing to mend\n", f->wanted->v[i]);
	return r;
}

int qk_verb_fix(int argc, char **argv)
{
	const char *apply = NULL;
	const struct qk_option options[] = {
		{ .name = "apply", .help = "make the edits: all of them or none", .to = &apply },
		{ 0 },
	};
	const struct qk_usage u = { "fix", "[TASK]... [OPTION]...",
		"Mends what the last run with SANDBOX=audit or enforce found: as a patch for project.json\n"
		"files (or package.json) and for Makefiles, on stdout. Comments and layout stay. What no edit\n"
		"mends is said on stderr.\n", options };
	qk_autostrv struct qk_strv words = { 0 };
	qk_autobuf struct qk_buf out = QK_BUF_INIT;
	struct qk_err err = QK_ERR_INIT;
	struct fixing f = { .wanted = &words, .err = &err };
	int status;

	if (!qk_options_begin(&u, argc, argv, &words, SIZE_MAX, NULL, &status))
		return status;
	status = load(&f);
	if (!status)
		status = make_all(&f);
	if (!status)
		qk_patches_show(&out, &f.patches);
	if (!status && apply)
		status = qk_patches_write(&f.patches, &err);
	if (status)
		status = qk_verb_fail(&err);
	else
		status = qk_page_write(&out);
	if (!status)
		say_rest(&f);
	qk_patches_release(&f.patches);
	qk_arena_release(&f.arena);
	qk_site_release(&f.site);
	return status;
}
