#include "cli/jsonout.h"
#include "cli/page.h"
#include "cli/site.h"
#include "cli/verbs.h"

#include "base/mem.h"

#include <string.h>

/* What -p and -t leave of a workspace's projects. */
struct chosen {
	struct qk_strv patterns, targets;
	bool *projects; /* by index */
};

static void choose(struct chosen *c, const struct qk_workspace *ws)
{
	c->projects = qk_zalloc((ws->n_projects + 1) * sizeof(*c->projects));
	if (c->patterns.n)
		qk_workspace_select(ws, (const char *const *)c->patterns.v, c->patterns.n, c->projects);
	else
		memset(c->projects, true, ws->n_projects * sizeof(*c->projects));
	for (size_t i = 0; i < ws->n_projects && c->targets.n; i++) {
		bool has = false;

		for (size_t k = 0; k < c->targets.n; k++)
			has |= qk_project_target(&ws->projects[i], c->targets.v[k]) != NULL;
		c->projects[i] &= has;
	}
}

static void chosen_release(struct chosen *c)
{
	qk_strv_release(&c->patterns);
	qk_strv_release(&c->targets);
	free(c->projects);
}

static int print_projects(const struct qk_workspace *ws, const struct chosen *c, bool json)
{
	qk_autobuf struct qk_buf out = QK_BUF_INIT;
	struct qk_jsonout j = QK_JSONOUT_INIT;

	if (json)
		qk_jsonout_open(&j, NULL, '[');
	for (size_t i = 0; i < ws->n_projects; i++) {
		const struct qk_project *p = &ws->projects[i];

		if (!c->projects[i])
			continue;
		if (!json) {
			qk_buf_addf(&out, "%s\n", p->name);
			continue;
		}
		qk_jsonout_open(&j, NULL, '{');
		qk_jsonout_string(&j, "name", p->name);
		qk_jsonout_string(&j, "root", p->root);
		qk_jsonout_open(&j, "targets", '[');
		for (size_t k = 0; k < p->n_targets; k++)
			qk_jsonout_string(&j, NULL, p->targets[k].name);
		qk_jsonout_close(&j, ']');
		qk_jsonout_close(&j, '}');
	}
	if (!json)
		return qk_page_write(&out);
	qk_jsonout_close(&j, ']');
	return qk_jsonout_print(&j);
}

static int print_tasks(const struct qk_workspace *ws, const struct chosen *c, bool json)
{
	qk_autobuf struct qk_buf out = QK_BUF_INIT;
	struct qk_jsonout j = QK_JSONOUT_INIT;

	if (json)
		qk_jsonout_open(&j, NULL, '[');
	for (size_t i = 0; i < ws->n_projects; i++) {
		const struct qk_project *p = &ws->projects[i];

		for (size_t k = 0; k < p->n_targets && c->projects[i]; k++) {
			qk_autofree char *id = qk_asprintf("%s:%s", p->name, p->targets[k].name);

			if (c->targets.n && !qk_strv_has(&c->targets, p->targets[k].name))
				continue;
			if (json)
				qk_jsonout_string(&j, NULL, id);
			else
				qk_buf_addf(&out, "%s\n", id);
		}
	}
	if (!json)
		return qk_page_write(&out);
	qk_jsonout_close(&j, ']');
	return qk_jsonout_print(&j);
}

static int list(const char *verb, const char *about, int argc, char **argv,
	int (*print)(const struct qk_workspace *, const struct chosen *, bool))
{
	const char *json = NULL;
	struct chosen c = { 0 };
	const struct qk_option options[] = {
		{ .name = "projects", .letter = 'p', .value = "PATTERN,...",
			.help = "those alone: names, globs, tag:x, directory:x; ! takes away", .list = &c.patterns },
		{ .name = "target", .letter = 't', .value = "NAME,...", .help = "those with such a target alone",
			.list = &c.targets },
		{ .name = "json", .help = "a JSON array in place of lines", .to = &json },
		{ 0 },
	};
	const struct qk_usage u = { verb, "[OPTION]...", about, options };
	qk_autostrv struct qk_strv words = { 0 };
	qk_autosite struct qk_site s = QK_SITE_INIT;
	struct qk_err err = QK_ERR_INIT;
	int status;

	if (qk_options_begin(&u, argc, argv, &words, 0, NULL, &status)) {
		if (qk_site_load(&s, &err)) {
			status = qk_verb_fail(&err);
		} else {
			choose(&c, s.ws);
			status = print(s.ws, &c, json != NULL);
		}
	}
	chosen_release(&c);
	return status;
}

static int show_projects(int argc, char **argv)
{
	return list("show projects", "The names of the workspace's projects, one a line.\n", argc, argv,
		print_projects);
}

static int show_tasks(int argc, char **argv)
{
	return list("show tasks", "The tasks of the workspace, project:target, one a line.\n", argc, argv,
		print_tasks);
}

static int project_text(const struct qk_project *p)
{
	struct qk_page page;
	int status;

	qk_page_init(&page);
	qk_page_heading(&page, "%s", p->name);
	qk_page_row(&page, "root", "%s", p->root);
	if (p->at && p->at->file)
		qk_page_row(&page, "declared in", "%s", p->at->file);
	if (p->package_name)
		qk_page_row(&page, "package", "%s%s%s", p->package_name, p->package_version ? "@" : "",
			p->package_version ? p->package_version : "");
	for (size_t i = 0; i < p->tags.n; i++)
		qk_page_row(&page, i ? "" : "tags", "%s", p->tags.v[i]);
	for (size_t i = 0; i < p->n_deps; i++)
		qk_page_row(&page, i ? "" : "depends on", "%s%s", p->deps[i].project->name,
			p->deps[i].implicit ? " (implicitDependencies)" : "");
	for (size_t i = 0; i < p->n_targets; i++)
		qk_page_row(&page, i ? "" : "targets", "%s (%s)", p->targets[i].name, p->targets[i].executor);
	status = qk_page_print(&page);
	qk_page_release(&page);
	return status;
}

static int project_json(const struct qk_project *p)
{
	struct qk_jsonout j = QK_JSONOUT_INIT;

	qk_jsonout_open(&j, NULL, '{');
	qk_jsonout_string(&j, "name", p->name);
	qk_jsonout_string(&j, "root", p->root);
	qk_jsonout_string(&j, "package", p->package_name);
	qk_jsonout_string(&j, "packageVersion", p->package_version);
	qk_jsonout_strings(&j, "tags", p->tags.v, p->tags.n);
	qk_jsonout_open(&j, "dependencies", '[');
	for (size_t i = 0; i < p->n_deps; i++) {
		qk_jsonout_open(&j, NULL, '{');
		qk_jsonout_string(&j, "project", p->deps[i].project->name);
		qk_jsonout_bool(&j, "implicit", p->deps[i].implicit);
		qk_jsonout_close(&j, '}');
	}
	qk_jsonout_close(&j, ']');
	qk_jsonout_value(&j, "namedInputs", p->named_inputs);
	qk_jsonout_open(&j, "targets", '{');
	for (size_t i = 0; i < p->n_targets; i++)
		qk_jsonout_value(&j, p->targets[i].name, p->targets[i].at);
	qk_jsonout_close(&j, '}');
	qk_jsonout_close(&j, '}');
	return qk_jsonout_print(&j);
}

static int show_project(int argc, char **argv)
{
	const char *json = NULL;
	const struct qk_option options[] = {
		{ .name = "json", .help = "one JSON object in place of text", .to = &json },
		{ 0 },
	};
	const struct qk_usage u = { "show project", "NAME [OPTION]...",
		"A project: where it is, what it depends on, its targets as merged from all files.\n",
		options };
	qk_autostrv struct qk_strv words = { 0 };
	qk_autosite struct qk_site s = QK_SITE_INIT;
	const struct qk_project *p;
	struct qk_err err = QK_ERR_INIT;
	int status;

	if (!qk_options_begin(&u, argc, argv, &words, 1, NULL, &status))
		return status;
	if (!words.n)
		return qk_options_complain(&u, "which project? qk show projects lists them");
	if (qk_site_load(&s, &err) || qk_site_project(&s, words.v[0], &p, &err))
		return qk_verb_fail(&err);
	return json ? project_json(p) : project_text(p);
}

int qk_verb_show(int argc, char **argv)
{
	static const struct qk_part_of_verb parts[] = {
		{ "projects", show_projects, "the names of all projects" },
		{ "tasks", show_tasks, "all tasks, project:target" },
		{ "project", show_project, "one project" },
		{ "target", qk_show_target, "what a task declares, resolved, with its files" },
		{ "hash", qk_show_hash, "the key of a task and every part of it" },
		{ "runs", qk_show_runs, "the runs that lie behind" },
		{ "run", qk_show_run, "one of them, with its tasks" },
	};
	const struct qk_option options[] = { { 0 } };
	const struct qk_usage u = { "show", "WHAT [NAME] [OPTION]...",
		"Shows what qk makes of the workspace. Nothing is run, but for runtime inputs by show hash.\n",
		options };

	return qk_verb_part(&u, parts, sizeof(parts) / sizeof(parts[0]), argc, argv);
}
