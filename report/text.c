#include "report/text.h"

#include "report/fix.h"
#include "report/fixes.h"

#include <string.h>

/* Beside what a task's standing is in the sandbox. */
static const enum qk_standing UNCACHED = QK_RESTORED + 1;

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

/* How many bytes at s make a control character (C0, DEL, or C1 as UTF-8); 0 = none. */
static int control_len(const char *s)
{
	const unsigned char *u = (const unsigned char *)s;

	if (u[0] < ' ' || u[0] == 0x7f)
		return 1;
	return u[0] == 0xc2 && u[1] >= 0x80 && u[1] < 0xa0 ? 2 : 0;
}

/* True if a terminal shows all of s and obeys none of it. */
static bool is_printable(const char *s)
{
	for (; *s; s++)
		if (control_len(s))
			return false;
	return true;
}

void qk_text_name(struct qk_buf *out, const char *name)
{
	if (is_printable(name)) {
		qk_buf_addstr(out, name);
		return;
	}
	qk_buf_addch(out, '"');
	for (const char *s = name; *s; s++) {
		int n = control_len(s);

		if (*s == '\n' || *s == '\t') {
			qk_buf_addstr(out, *s == '\n' ? "\\n" : "\\t");
		} else if (n) {
			qk_buf_addf(out, "\\%03o", (unsigned char)*s);
			if (n == 2)
				qk_buf_addf(out, "\\%03o", (unsigned char)*++s);
		} else {
			if (*s == '"' || *s == '\\')
				qk_buf_addch(out, '\\');
			qk_buf_addch(out, *s);
		}
	}
	qk_buf_addch(out, '"');
}

/*
 * What mends the findings from i to end, at most QK_TEXT_PATHS lines or values of a line. What a
 * terminal cannot show is left to the JSON report.
 */
static void print_fixes(struct qk_buf *out, const struct qk_report_task *t, size_t i, size_t end)
{
	qk_autostrv struct qk_strv rules = { 0 };
	size_t lines = 0;

	for (const char *const *field = qk_fixes_fields; t->workspace && *field; field++) {
		qk_autostrv struct qk_strv values = { 0 };
		qk_autobuf struct qk_buf line = QK_BUF_INIT;

		qk_fixes_values(&values, t, i, end, *field, false, QK_TEXT_PATHS);
		if (!values.n)
			continue;
		qk_fix_field(&line, t->name, *field, (const char *const *)values.v,
			values.n < QK_TEXT_PATHS ? values.n : QK_TEXT_PATHS);
		qk_strv_push(&rules, line.s);
	}
	qk_fixes_rules(&rules, t, i, end, false);
	for (size_t k = 0; k < rules.n && lines < QK_TEXT_PATHS; k++)
		if (is_printable(rules.v[k])) {
			qk_buf_addf(out, "    fix: %s\n", rules.v[k]);
			lines++;
		}
}

/* The projects of the findings from i to end, each once with how many are in it. */
static void print_by_project(struct qk_buf *out, const struct qk_report_task *t, size_t i, size_t end)
{
	while (i < end) {
		const char *project = t->findings.v[i].others[0];
		size_t n = 0;

		for (; i < end && !strcmp(t->findings.v[i].others[0], project); i++)
			n++;
		qk_buf_addstr(out, "      ");
		qk_text_name(out, project);
		qk_buf_addf(out, " (%zu)\n", n);
	}
}

/* The findings of one kind, from position i on; returns where the next kind begins. */
static size_t print_kind(struct qk_buf *out, const struct qk_report *rep,
	const struct qk_report_task *t, size_t i)
{
	const struct qk_kind_info *info = &qk_kinds[t->findings.v[i].kind];
	bool enforce = rep->session->mode == QK_MODE_ENFORCE;
	size_t end = i, n = 0, shown = 0;
	const char *heading;

	for (; end < t->findings.n && t->findings.v[end].kind == t->findings.v[i].kind; end++)
		n += !t->findings.v[end].shared;
	if (!info->listed || !n)
		return end;
	heading = enforce ? info->enforce : info->audit;
	if (t->workspace && info->workspace[enforce])
		heading = info->workspace[enforce];
	qk_buf_addf(out, "    %zu %s\n", n, heading);
	if (t->findings.v[i].kind == QK_KIND_DEPENDENCY) {
		print_by_project(out, t, i, end);
		print_fixes(out, t, i, end);
		return end;
	}
	for (size_t k = i; k < end && shown < (n > QK_FIXES_NAMES ? QK_TEXT_FEW : QK_TEXT_PATHS); k++) {
		const struct qk_finding *f = &t->findings.v[k];

		if (f->shared)
			continue;
		shown++;
		qk_buf_addstr(out, "      ");
		qk_text_name(out, f->path);
		for (const char **o = f->others; o && *o; o++) {
			if (o == f->others)
				qk_buf_addstr(out, f->kind == QK_KIND_ORDERING ? ", made by " : ", by ");
			else
				qk_buf_addstr(out, ", ");
			qk_text_name(out, *o);
		}
		qk_buf_addch(out, '\n');
	}
	if (shown < n)
		qk_buf_addf(out, "      and %zu more\n", n - shown);
	print_fixes(out, t, i, end);
	return end;
}

static bool has_listed(const struct qk_report_task *t)
{
	for (size_t i = 0; i < t->findings.n; i++)
		if (qk_kinds[t->findings.v[i].kind].listed && !t->findings.v[i].shared)
			return true;
	return false;
}

static void print_task(struct qk_buf *out, const struct qk_report *rep, const struct qk_report_task *t)
{
	if (!has_listed(t))
		return;
	qk_buf_addstr(out, "  ");
	qk_text_name(out, t->name);
	qk_buf_addch(out, '\n');
	for (size_t i = 0; i < t->findings.n;)
		i = print_kind(out, rep, t, i);
}

static bool is_workspace(const struct qk_report *rep)
{
	for (size_t i = 0; i < rep->tasks.n; i++)
		if (rep->tasks.v[i].workspace)
			return true;
	return false;
}

/* What many tasks read or wrote undeclared, with one rule for all of them. */
static void print_top(struct qk_buf *out, const struct qk_report *rep)
{
	static const struct {
		enum qk_kind kind;
		const char *heading, *workspace;
	} kinds[] = {
		{ QK_KIND_READ, "read by many tasks, a prerequisite of none of them",
			"read by many tasks, likely by the tools their commands start through" },
		{ QK_KIND_GRANTED, "read by many tasks, a prerequisite of none of them (QK_ALLOW_READ)", NULL },
		{ QK_KIND_WRITE, "written by many tasks, an output of none of them", NULL },
		{ QK_KIND_PACKAGE, "installed packages read by many tasks, in the key of none of them",
			NULL },
		{ QK_KIND_HOISTED, "installed packages found by hoisting by many tasks", NULL },
	};

	bool workspace = is_workspace(rep);

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		size_t n = 0;

		for (size_t i = 0; i < rep->shared.n; i++) {
			const struct qk_report_shared *s = &rep->shared.v[i];

			if (s->kind != kinds[k].kind || ++n > QK_TEXT_PATHS)
				continue;
			if (n == 1)
				qk_buf_addf(out, "  %s:\n",
					workspace && kinds[k].workspace ? kinds[k].workspace
									: kinds[k].heading);
			qk_buf_addstr(out, "    ");
			qk_text_name(out, s->path);
			qk_buf_addf(out, " (%zu tasks)\n", s->tasks);
			if (s->fix && is_printable(s->fix))
				qk_buf_addf(out, "    fix: %s\n", s->fix);
		}
		if (n > QK_TEXT_PATHS)
			qk_buf_addf(out, "    and %zu more\n", n - QK_TEXT_PATHS);
	}
}

struct counted {
	const char *path;
	size_t tasks;
};

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct counted *)a)->path, ((const struct counted *)b)->path);
}

/* Each path of a kind once, with the number of tasks that have it. */
static void print_shared(struct qk_buf *out, const struct qk_report *rep, enum qk_kind kind,
	const char *heading)
{
	QK_VEC(struct counted) all = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < rep->tasks.n; i++) {
		const struct qk_report_task *t = &rep->tasks.v[i];

		for (size_t k = 0; k < t->findings.n; k++)
			if (t->findings.v[k].kind == kind)
				qk_vec_push(&all, ((struct counted){ t->findings.v[k].path, 1 }));
	}
	if (!all.n)
		return;
	qsort(all.v, all.n, sizeof(*all.v), by_path);
	for (size_t i = 0; i < all.n; i++) {
		if (n && !strcmp(all.v[n - 1].path, all.v[i].path))
			all.v[n - 1].tasks++;
		else
			all.v[n++] = all.v[i];
	}
	qk_buf_addf(out, "  %s ", heading);
	for (size_t i = 0; i < n && i < QK_TEXT_PATHS; i++) {
		if (i)
			qk_buf_addstr(out, ", ");
		qk_text_name(out, all.v[i].path);
		qk_buf_addf(out, " (%zu task%s)", all.v[i].tasks, plural(all.v[i].tasks));
	}
	if (n > QK_TEXT_PATHS)
		qk_buf_addf(out, ", and %zu more", n - QK_TEXT_PATHS);
	qk_buf_addch(out, '\n');
	qk_vec_release(&all);
}

static void print_git_writers(struct qk_buf *out, const struct qk_report *rep)
{
	size_t n = 0;

	for (size_t i = 0; i < rep->tasks.n; i++) {
		const struct qk_report_task *t = &rep->tasks.v[i];
		bool writes = false;

		for (size_t k = 0; k < t->findings.n; k++)
			writes |= t->findings.v[k].kind == QK_KIND_GIT_WRITE;
		n += writes;
	}
	if (n)
		qk_buf_addf(out, "  wrote in .git, which the sandbox allows: %zu task%s\n", n, plural(n));
}

/* Why a task has a standing; NULL if it has another. */
static const char *reason(const struct qk_report_task *t, enum qk_standing standing)
{
	if (standing == UNCACHED)
		return t->uncached;
	return t->standing == standing ? t->why : NULL;
}

/* Tasks of one standing, with the reason; tasks that share a reason in one line. */
static void print_standing(struct qk_buf *out, const struct qk_report *rep, enum qk_standing standing,
	const char *heading)
{
	qk_autofree bool *done = qk_zalloc(rep->tasks.n + 1);

	for (size_t i = 0; i < rep->tasks.n; i++) {
		const char *why = reason(&rep->tasks.v[i], standing), *also;
		size_t n = 0;

		if (!why || done[i])
			continue;
		qk_buf_addf(out, "  %s: ", heading);
		for (size_t k = i; k < rep->tasks.n; k++) {
			const struct qk_report_task *u = &rep->tasks.v[k];

			also = reason(u, standing);
			if (!also || strcmp(also, why))
				continue;
			done[k] = true;
			if (n++ >= QK_TEXT_PATHS)
				continue;
			if (n > 1)
				qk_buf_addstr(out, ", ");
			qk_text_name(out, u->name);
		}
		if (n > QK_TEXT_PATHS)
			qk_buf_addf(out, " and %zu more", n - QK_TEXT_PATHS);
		qk_buf_addstr(out, " (");
		qk_text_name(out, why);
		qk_buf_addstr(out, ")\n");
	}
}

/* What nearly every task does, once: how many of a kind, by how many tasks. */
static void print_count(struct qk_buf *out, const struct qk_report *rep, enum qk_kind kind,
	const char *what)
{
	size_t tasks = 0, n = 0;

	for (size_t i = 0; i < rep->tasks.n; i++) {
		const struct qk_report_task *t = &rep->tasks.v[i];
		size_t before = n;

		for (size_t k = 0; k < t->findings.n; k++)
			n += t->findings.v[k].kind == kind;
		tasks += n > before;
	}
	if (n)
		qk_buf_addf(out, "  %s: %zu read%s by %zu task%s\n", what, n, plural(n), tasks,
			plural(tasks));
}

static void print_cache(struct qk_buf *out, const struct qk_report *rep)
{
	const struct qk_session *s = rep->session;
	size_t restored = 0, cacheable = 0;

	for (size_t i = 0; i < rep->tasks.n; i++) {
		const struct qk_report_task *t = &rep->tasks.v[i];

		/* tasks of a workspace are told of elsewhere, where there is no sandbox */
		restored += t->standing == QK_RESTORED && (t->cacheable || s->mode != QK_MODE_OFF);
		cacheable += t->cacheable;
	}
	if (s->mode == QK_MODE_OFF && s->caching & QK_CACHING_RESTORE && cacheable)
		qk_buf_addf(out, "Cache: %zu of %zu task%s restored\n", restored, cacheable, plural(cacheable));
	else if (s->mode != QK_MODE_OFF && restored)
		qk_buf_addf(out, "  %zu task%s restored from the cache, so not %s\n", restored,
			plural(restored), s->mode == QK_MODE_AUDIT ? "audited" : "checked");
	print_standing(out, rep, UNCACHED, s->caching & QK_CACHING_STORE ? "not cached" : "not recorded");
}

static void print_head(struct qk_buf *out, const struct qk_report *rep, size_t checked, size_t beyond)
{
	const struct qk_session *s = rep->session;

	if (s->mode == QK_MODE_ENFORCE)
		qk_buf_addf(out, "Sandbox enforce (%s): ", qk_backend_name(s->backend));
	else
		qk_buf_addstr(out, "Sandbox audit: ");
	if (beyond)
		qk_buf_addf(out, "%zu of %zu task%s went beyond what they declare\n", beyond, checked,
			plural(checked));
	else
		qk_buf_addf(out, "%zu task%s kept to what they declare\n", checked, plural(checked));
}

static void print_note(struct qk_buf *out, const char *what, const char *which, const char *note)
{
	qk_buf_addf(out, "  %s%s: ", what, which);
	qk_text_name(out, note);
	qk_buf_addch(out, '\n');
}

void qk_text_summary(struct qk_buf *out, const struct qk_report *rep)
{
	const struct qk_session *s = rep->session;
	bool workspace = is_workspace(rep);
	size_t checked = 0, beyond = 0;

	for (size_t i = 0; i < rep->tasks.n; i++) {
		const struct qk_report_task *t = &rep->tasks.v[i];
		bool went = qk_report_went_beyond(t);

		checked += t->standing == QK_AUDITED || went;
		beyond += went;
	}
	if (!rep->tasks.n && !rep->trouble)
		return;
	if (s->mode == QK_MODE_OFF) {
		print_cache(out, rep);
		if (rep->trouble)
			qk_buf_addf(out, "  the run's logs are incomplete: %s\n", rep->trouble);
		return;
	}
	if (checked)
		print_head(out, rep, checked, beyond);
	else
		qk_buf_addstr(out, s->mode == QK_MODE_ENFORCE ? "Sandbox enforce: no task was checked\n"
							      : "Sandbox audit: no task was checked\n");
	print_count(out, rep, QK_KIND_MANIFEST, "package.json of workspace packages");
	print_top(out, rep);
	for (size_t i = 0; i < rep->tasks.n; i++)
		if (rep->tasks.v[i].standing == QK_AUDITED || qk_report_went_beyond(&rep->tasks.v[i]))
			print_task(out, rep, &rep->tasks.v[i]);
	print_shared(out, rep, QK_KIND_TOOLCHAIN, "toolchain configuration read:");
	print_shared(out, rep, QK_KIND_UNKEYED, workspace ? "read, which the sandbox allows, but not in their keys:"
			  : "read, which the sandbox allows, but not declared:");
	print_git_writers(out, rep);
	print_standing(out, rep, QK_UNSANDBOXED, "ran unsandboxed");
	print_standing(out, rep, QK_UNAUDITED, "not audited");
	print_standing(out, rep, QK_REFUSED_RUN, "refused");
	print_cache(out, rep);
	for (size_t i = 0; i < rep->notices.n; i++) {
		const struct qk_report_notice *n = &rep->notices.v[i];

		qk_buf_addf(out, "  %s: '", n->variable);
		qk_text_name(out, n->pattern);
		qk_buf_addstr(out, "' matches nothing (");
		qk_text_name(out, n->task);
		qk_buf_addstr(out, ")\n");
	}
	if (s->mode == QK_MODE_ENFORCE && *s->backend_note)
		print_note(out, "held by ", qk_backend_name(s->backend), s->backend_note);
	if (*s->recorder_note && s->recorder != QK_RECORDER_SECCOMP)
		print_note(out, "recorded by ", qk_recorder_name(s->recorder), s->recorder_note);
	if (rep->trouble)
		print_note(out, "this summary is incomplete", "", rep->trouble);
}
