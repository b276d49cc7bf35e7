#include "cli/makeline.h"
#include "cli/page.h"
#include "cli/prefix.h"
#include "cli/site.h"
#include "cli/verbs.h"

#include "base/mem.h"
#include "base/path.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_MAKE = 2, EXIT_NO_MAKE = 127 }; /* as make ends for a fault in a makefile; as a shell */

/* What both verbs are asked for. */
struct asked {
	struct qk_site site;
	struct qk_prefix prefix;
	struct qk_makeline line;
	const char *print;
	struct qk_strv projects, targets; /* of run-many */
	char *dir;                        /* where make runs */
};

static int fail_as_make(const struct qk_err *err)
{
	qk_verb_fail(err);
	return EXIT_MAKE;
}

static void asked_release(struct asked *a)
{
	qk_site_release(&a->site);
	qk_prefix_release(&a->prefix);
	qk_strv_release(&a->line.goals);
	qk_strv_release(&a->projects);
	qk_strv_release(&a->targets);
	free(a->dir);
}

#define COMMON_OPTIONS(a)                                                                         \
	{ .name = "sandbox", .optional = true, .value = "MODE",                                   \
		.help = "audit (without a value), enforce or off", .to = &(a)->line.sandbox },    \
	{ .name = "sandbox-report", .value = "FILE", .help = "write what was found as JSON",      \
		.to = &(a)->line.sandbox_report },                                                \
	{ .name = "skip-cache", .help = "run what could be restored as well",                     \
		.to = &(a)->line.skip_cache },                                                    \
	{ .name = "record", .help = "keep recordings of what tasks read", .to = &(a)->line.record }, \
	{ .name = "report", .value = "FILE", .help = "write what became of every task as JSON",   \
		.to = &(a)->line.report },                                                        \
	{ .name = "jobs", .letter = 'j', .value = "N", .help = "run up to N recipes at once",     \
		.to = &(a)->line.jobs },                                                          \
	{ .name = "keep-going", .letter = 'k', .help = "go on with the rest after a failure",     \
		.to = &(a)->line.keep_going },                                                    \
	{ .name = "dry-run", .letter = 'n', .help = "make -n: show what would run",               \
		.to = &(a)->line.dry_run },                                                       \
	{ .name = "print", .help = "print the make command, and do not start it",                 \
		.to = &(a)->print }

static int print_line(const struct asked *a, const struct qk_strv *argv, const char *makefiles)
{
	qk_autobuf struct qk_buf out = QK_BUF_INIT;

	if (strcmp(a->dir, a->site.cwd)) {
		qk_buf_addstr(&out, "cd ");
		qk_makeline_quote(&out, a->dir);
		qk_buf_addstr(&out, " && ");
	}
	if (makefiles) {
		qk_buf_addstr(&out, "MAKEFILES=");
		qk_makeline_quote(&out, makefiles);
		qk_buf_addch(&out, ' ');
	}
	for (size_t i = 0; i < argv->n; i++) {
		if (i)
			qk_buf_addch(&out, ' ');
		qk_makeline_quote(&out, argv->v[i]);
	}
	qk_buf_addch(&out, '\n');
	return qk_page_write(&out);
}

/* Becomes make; comes back only with an exit status for why not, or after --print. */
static int start_make(struct asked *a, const struct qk_usage *u)
{
	qk_autostrv struct qk_strv argv = { 0 };
	qk_autofree char *makefiles = NULL;
	struct qk_err err = QK_ERR_INIT;

	if (qk_prefix_find(&a->prefix, &err))
		return fail_as_make(&err);
	a->line.mk = a->prefix.mk;
	a->line.cwd = a->site.cwd;
	a->line.makefiles = getenv("MAKEFILES");
	a->line.has_makefile = qk_site_has_makefile(a->dir) || qk_makeline_names_makefile(a->line.rest);
	if (qk_makeline_compose(&a->line, &argv, &makefiles, &err))
		return qk_options_complain(u, "%s", err.msg);
	if (a->print)
		return print_line(a, &argv, makefiles);
	if (chdir(a->dir)) {
		qk_fail(&err, errno, "go to '%s'", a->dir);
		return fail_as_make(&err);
	}
	if (strcmp(a->dir, a->site.cwd))
		setenv("PWD", a->dir, 1);
	if (makefiles)
		setenv("MAKEFILES", makefiles, 1);
	execvp(argv.v[0], argv.v);
	qk_fail(&err, errno, "start make");
	qk_verb_fail(&err);
	return EXIT_NO_MAKE;
}

/*
 * Tells tasks from goals of a Makefile here: in a workspace a word that names a task is one, any
 * other is a goal if there is a Makefile to have it. All of one kind, where that would mean two
 * directories.
 */
static int sort_goals(struct asked *a, const struct qk_strv *words, struct qk_err *err)
{
	const char *task = NULL, *goal = NULL;
	bool here;

	if (qk_site_find(&a->site, err))
		return -err->code;
	here = qk_site_has_makefile(a->site.cwd) || qk_makeline_names_makefile(a->line.rest);
	if (a->site.is_workspace && qk_site_load(&a->site, err))
		return -err->code;
	for (size_t i = 0; i < words->n; i++) {
		const struct qk_target *target;
		const char *configuration;

		if (a->site.ws && !qk_task_parse(a->site.ws, words->v[i], &target, &configuration, NULL))
			task = words->v[i];
		else if (a->site.ws && !here)
			return qk_site_task(&a->site, words->v[i], &target, &configuration, err);
		else
			goal = words->v[i];
		qk_strv_push(&a->line.goals, words->v[i]);
	}
	if (!a->site.ws && !here)
		return qk_fail(err, -ENOENT, "there is neither a Makefile nor a workspace (nx.json) here");
	if (task && goal && strcmp(a->site.cwd, a->site.root))
		return qk_fail(err, -EINVAL, "'%s' is a task of the workspace, '%s' a goal of the Makefile "
					     "here: run them apart", task, goal);
	a->dir = qk_strdup(task ? a->site.root : a->site.cwd);
	return 0;
}

int qk_verb_run(int argc, char **argv)
{
	struct asked a = { .site = QK_SITE_INIT };
	const struct qk_option options[] = { COMMON_OPTIONS(&a), { 0 } };
	const struct qk_usage u = { "run", "GOAL... [OPTION]... [-- MAKE-ARGUMENT...]",
		"Runs tasks of a workspace (project:target[:configuration]), or goals of the Makefile in this\n"
		"directory, which needs no include for it. make does the work; what follows -- goes to it.\n",
		options };
	qk_autostrv struct qk_strv words = { 0 };
	struct qk_err err = QK_ERR_INIT;
	char **rest = NULL;
	int status;

	if (qk_options_begin(&u, argc, argv, &words, SIZE_MAX, &rest, &status)) {
		a.line.rest = rest;
		if (!words.n)
			status = qk_options_complain(&u, "which task or goal?");
		else if (sort_goals(&a, &words, &err))
			status = fail_as_make(&err);
		else
			status = start_make(&a, &u);
	}
	asked_release(&a);
	return status;
}

static int unknown_target(const struct asked *a, const char *name, struct qk_err *err)
{
	const struct qk_workspace *ws = a->site.ws;
	qk_autostrv struct qk_strv names = { 0 };
	qk_autofree char *hint = NULL;

	for (size_t i = 0; i < ws->n_projects; i++)
		for (size_t k = 0; k < ws->projects[i].n_targets; k++)
			qk_strv_push(&names, ws->projects[i].targets[k].name);
	hint = qk_options_hint(name, (const char *const *)names.v, names.n);
	return qk_fail(err, -ENOENT, "no project has a target '%s'%s", name, hint);
}

/* Without --projects the goals are the targets' own names; else one for every chosen task. */
static int many_goals(struct asked *a, struct qk_err *err)
{
	const struct qk_workspace *ws = a->site.ws;
	qk_autofree bool *chosen = qk_zalloc((ws->n_projects + 1) * sizeof(*chosen));
	size_t n_chosen = 0;

	qk_workspace_select(ws, (const char *const *)a->projects.v, a->projects.n, chosen);
	for (size_t i = 0; i < ws->n_projects; i++)
		n_chosen += chosen[i];
	if (a->projects.n && !n_chosen)
		return qk_fail(err, -ENOENT, "--projects selects none; qk show projects lists them");
	for (size_t t = 0; t < a->targets.n; t++) {
		const char *name = a->targets.v[t];
		bool known = false;

		for (size_t i = 0; i < ws->n_projects; i++) {
			bool has = qk_project_target(&ws->projects[i], name) != NULL;

			known |= has;
			if (has && chosen[i])
				qk_strv_take(&a->line.goals, qk_asprintf("%s:%s", ws->projects[i].name, name));
		}
		if (!known)
			return unknown_target(a, name, err);
		if (!a->projects.n)
			qk_strv_push(&a->line.goals, name);
	}
	return 0;
}

int qk_verb_run_many(int argc, char **argv)
{
	struct asked a = { .site = QK_SITE_INIT };
	const struct qk_option options[] = {
		{ .name = "target", .letter = 't', .value = "NAME,...", .help = "the targets to run",
			.list = &a.targets },
		{ .name = "projects", .letter = 'p', .value = "PATTERN,...",
			.help = "of these alone: names, globs, tag:x, directory:x; ! takes away",
			.list = &a.projects },
		COMMON_OPTIONS(&a),
		{ 0 },
	};
	const struct qk_usage u = { "run-many", "-t NAME,... [OPTION]... [-- MAKE-ARGUMENT...]",
		"Runs targets of all projects of the workspace that have them, in the order that their\n"
		"dependsOn asks for. make does the work; what follows -- goes to it.\n", options };
	qk_autostrv struct qk_strv words = { 0 };
	struct qk_err err = QK_ERR_INIT;
	char **rest = NULL;
	int status;

	if (qk_options_begin(&u, argc, argv, &words, 0, &rest, &status)) {
		a.line.rest = rest;
		if (!a.targets.n) {
			status = qk_options_complain(&u, "which targets? -t NAME,...");
		} else if (qk_site_load(&a.site, &err) || many_goals(&a, &err)) {
			status = fail_as_make(&err);
		} else if (!a.line.goals.n) {
			printf("no project that --projects selects has such a target: nothing to run\n");
		} else {
			a.dir = qk_strdup(a.site.root);
			status = start_make(&a, &u);
		}
	}
	asked_release(&a);
	return status;
}
