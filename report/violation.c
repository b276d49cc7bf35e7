#include "report/violation.h"

#include "base/glob.h"
#include "base/path.h"
#include "report/json.h"
#include "report/text.h"

#include <stdlib.h>
#include <string.h>

enum { FIX_PATHS = 8 };

static bool ignored(const char *const *globs, size_t n, const char *path)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(globs[i], path) || qk_glob_match(globs[i], path))
			return true;
	return false;
}

/* In the project, and in no other that lies in it. */
static bool is_own(const struct qk_violation_scope *s, const char *path)
{
	const char *wall = qk_policy_wall_of(s->policy, path);

	return qk_path_under(path, s->project) && (!wall || !qk_path_under(wall, s->project));
}

/* The package of the withheld directory that path lies in, or NULL. */
static const char *withheld(const struct qk_violation_scope *s, const char *path)
{
	for (size_t i = 0; i < s->n_withheld; i++) {
		const char *tab = strrchr(s->withheld[i], '\t');
		qk_autofree char *dir = tab ? qk_strndup(s->withheld[i], (size_t)(tab - s->withheld[i]))
					    : NULL;

		if (dir && qk_path_under(path, dir))
			return tab + 1;
	}
	return NULL;
}

static void add(struct qk_violations *ret, struct qk_violation v)
{
	qk_vec_push(&ret->v, v);
}

static void find_read(struct qk_violations *ret, const struct qk_violation_scope *s,
	const struct qk_trace_entry *e, const struct qk_judged *j)
{
	const char *package = withheld(s, e->path);
	bool own = is_own(s, e->path);

	if (!(e->flags & (QK_T_READ | QK_T_FOLLOWED)) || e->flags & QK_T_DIR ||
		(e->flags & QK_T_FOLLOWED && e->flags & QK_T_CREATED) ||
		j->read.answer != QK_REFUSED || (!own && !package) ||
		ignored(s->ignored_reads, s->n_ignored_reads, e->path))
		return;
	add(ret, (struct qk_violation){ own ? QK_VIOLATION_READ : QK_VIOLATION_WITHHELD, false,
			own && !(s->is_input && s->is_input(s->arg, e->path)), e->path, package });
}

static void find_write(
	struct qk_violations *ret, const struct qk_violation_scope *s, const char *path, bool is_dir)
{
	enum qk_violation_kind kind = is_own(s, path) ? QK_VIOLATION_WRITE
		: qk_path_under(path, s->policy->root) ? QK_VIOLATION_PAST
						       : QK_VIOLATION_OUTSIDE;

	if (ignored(s->ignored_writes, s->n_ignored_writes, path))
		return;
	add(ret, (struct qk_violation){ .kind = kind, .is_dir = is_dir, .path = path });
}

/* The topmost directory on the way to path, or path itself, that the task made without leave; or NULL. */
static const char *topmost_made(const struct qk_violation_scope *s, const struct qk_result *result,
	const char *path)
{
	const char *top = NULL;

	for (size_t n = strlen(path); n > strlen(s->policy->root);) {
		qk_autofree char *dir = qk_strndup(path, n);
		const struct qk_trace_entry *e = qk_trace_find(&result->trace, dir);

		if (e && (e->flags & (QK_T_DIR | QK_T_CREATED | QK_T_REMOVED)) == (QK_T_DIR | QK_T_CREATED) &&
			qk_policy_judge(s->policy, dir, QK_WRITE).answer == QK_REFUSED)
			top = e->path;
		n = qk_path_dirlen(dir);
	}
	return top;
}

static int in_order(const void *a, const void *b)
{
	const struct qk_violation *x = a, *y = b;

	return x->kind != y->kind ? (int)x->kind - (int)y->kind : strcmp(x->path, y->path);
}

/* What lies in a directory that is told itself goes, and repeats. */
static void collapse(struct qk_violations *ret)
{
	size_t n = 0;

	if (ret->v.n)
		qsort(ret->v.v, ret->v.n, sizeof(*ret->v.v), in_order);
	for (size_t i = 0; i < ret->v.n; i++) {
		const struct qk_violation *v = &ret->v.v[i];
		bool told = false;

		for (size_t k = n; k-- > 0 && !told;)
			told = ret->v.v[k].kind == v->kind &&
			       (ret->v.v[k].is_dir ? qk_path_under(v->path, ret->v.v[k].path)
						   : !strcmp(v->path, ret->v.v[k].path));
		if (told)
			continue;
		ret->counted += v->kind < QK_VIOLATION_PAST;
		ret->failing += v->kind != QK_VIOLATION_OUTSIDE;
		ret->v.v[n++] = *v;
	}
	ret->v.n = n;
}

void qk_violations_find(struct qk_violations *ret, const struct qk_violation_scope *s,
	const struct qk_result *result, bool settled)
{
	*ret = (struct qk_violations){ 0 };
	for (size_t i = 0; i < result->trace.entries.n; i++) {
		const struct qk_trace_entry *e = &result->trace.entries.v[i];
		const struct qk_judged *j = &result->judged.v[i];
		bool gone = e->flags & QK_T_CREATED && e->flags & QK_T_REMOVED;

		find_read(ret, s, e, j);
		/* outside no layer takes what is written */
		if ((!settled || !qk_path_under(e->path, s->policy->root)) && !gone &&
			e->flags & (QK_T_WRITTEN | QK_T_META) &&
			j->write.answer == QK_REFUSED && !(e->flags & QK_T_DIR && j->leads))
			find_write(ret, s, e->path, e->flags & QK_T_DIR);
	}
	for (size_t i = 0; settled && i < result->stray.n; i++) {
		const char *path = result->stray.v[i], *made = topmost_made(s, result, path);
		const struct qk_trace_entry *e = qk_trace_find(&result->trace, path);

		find_write(ret, s, made ? made : path, made || (e && e->flags & QK_T_DIR));
	}
	collapse(ret);
}

void qk_violations_release(struct qk_violations *v)
{
	qk_vec_release(&v->v);
	v->counted = v->failing = 0;
}

/* The directory of a path, or it if it is one: relative to the project, from home, or absolute. */
static void put_directory(struct qk_buf *path, const struct qk_violation *v,
	const struct qk_violation_scope *s)
{
	qk_autofree char *dir = qk_strndup(v->path, v->is_dir ? strlen(v->path) : qk_path_dirlen(v->path));
	const char *home = s->home && v->kind == QK_VIOLATION_OUTSIDE ? qk_path_below(dir, s->home) : NULL;

	if (home)
		qk_buf_addf(path, "~%s%s", *home ? "/" : "", home);
	else if (v->kind == QK_VIOLATION_OUTSIDE)
		qk_buf_addstr(path, dir);
	else
		qk_path_relative(path, s->project, dir);
	if (path->s[path->len - 1] != '/')
		qk_buf_addch(path, '/');
}

/* The path as a grant names it: relative to the project, a directory with its slash. */
static void put_grant(struct qk_buf *out, const struct qk_violation *v, const struct qk_violation_scope *s)
{
	qk_autobuf struct qk_buf path = QK_BUF_INIT;
	const char *below = qk_path_below(v->path, s->project);

	if (v->kind >= QK_VIOLATION_PAST)
		put_directory(&path, v, s);
	else
		qk_buf_addf(&path, "%s%s", below && *below ? below : below ? "." : v->path,
			v->is_dir ? "/" : "");
	qk_json_string(out, path.s);
}

/* A directory of its own for such files is there already. */
static bool is_temporary(const struct qk_violation *v, const struct qk_violation_scope *s)
{
	return v->kind == QK_VIOLATION_OUTSIDE && s->temporary && qk_path_under(v->path, s->temporary);
}

/* Appends `"key": ["a", "b"]` of those kinds; false if there is none. */
static bool put_list(struct qk_buf *out, const struct qk_violations *v,
	const struct qk_violation_scope *s, const char *key, unsigned int kinds)
{
	qk_autobuf struct qk_buf seen = QK_BUF_INIT;
	size_t n = 0;

	for (size_t i = 0; i < v->v.n && n < FIX_PATHS; i++) {
		qk_autobuf struct qk_buf one = QK_BUF_INIT;

		if (!(kinds & 1u << v->v.v[i].kind) || is_temporary(&v->v.v[i], s))
			continue;
		put_grant(&one, &v->v.v[i], s);
		if (n && strstr(seen.s, one.s))
			continue;
		qk_buf_addf(&seen, "%s%s", n++ ? ", " : "", one.s);
	}
	if (n)
		qk_buf_addf(out, "\"%s\": [%s]", key, seen.s);
	return n;
}

void qk_violations_fix(
	struct qk_buf *out, const struct qk_violations *v, const struct qk_violation_scope *s)
{
	qk_autobuf struct qk_buf read = QK_BUF_INIT, write = QK_BUF_INIT;
	const char *sep = "";
	size_t n = 0;

	put_list(&read, v, s, "read", 1u << QK_VIOLATION_READ);
	put_list(&write, v, s, "write",
		1u << QK_VIOLATION_WRITE | 1u << QK_VIOLATION_PAST | 1u << QK_VIOLATION_OUTSIDE);
	if (read.len || write.len)
		qk_buf_addf(out, "qk:sandbox.allow: { %s%s%s }", read.s,
			read.len && write.len ? ", " : "", write.s);
	for (size_t i = 0; i < v->v.n && n < FIX_PATHS; i++) {
		if (!v->v.v[i].unkeyed)
			continue;
		qk_buf_addstr(out, n++ ? ", " : "\nand, if the output depends on them, inputs: [");
		{
			qk_autofree char *input = qk_asprintf(
				"{projectRoot}/%s", qk_path_below(v->v.v[i].path, s->project));

			qk_json_string(out, input);
		}
	}
	if (n)
		qk_buf_addch(out, ']');
	for (size_t i = 0; i < v->v.n; i++) {
		const char *package = v->v.v[i].package;

		if (!package || (i && v->v.v[i - 1].package && !strcmp(v->v.v[i - 1].package, package)))
			continue;
		sep = out->len ? "\n" : "";
		qk_buf_addf(out, "%sdepend on a task of %s that runs a command (dependsOn: [\"^build\"]), or "
				 "grant its files and make them inputs",
			sep, package);
	}
}

void qk_violations_text(
	struct qk_buf *out, const struct qk_violations *v, const struct qk_violation_scope *s)
{
	static const char *const what[] = {
		[QK_VIOLATION_READ] = "a read no grant covers",
		[QK_VIOLATION_WRITE] = "a write no grant covers",
		[QK_VIOLATION_WITHHELD] = "read through node_modules, and the key folds no task of",
		[QK_VIOLATION_PAST] = "a write past the project, not kept",
		[QK_VIOLATION_OUTSIDE] = "a write outside the workspace",
	};
	qk_autobuf struct qk_buf fix = QK_BUF_INIT;

	for (size_t i = 0; i < v->v.n; i++) {
		qk_autobuf struct qk_buf path = QK_BUF_INIT;

		if (v->v.v[i].kind == QK_VIOLATION_OUTSIDE)
			qk_buf_addstr(&path, v->v.v[i].path);
		else
			qk_path_relative(&path, s->project, v->v.v[i].path);
		qk_text_name(out, path.s);
		qk_buf_addf(out, "%s = %s%s%s%s  [", v->v.v[i].is_dir ? "/" : "", what[v->v.v[i].kind],
			v->v.v[i].package ? " " : "", v->v.v[i].package ? v->v.v[i].package : "",
			is_temporary(&v->v.v[i], s) ? ": $TMPDIR is the task's own directory for such files"
						    : "");
		qk_text_name(out, v->v.v[i].path);
		qk_buf_addstr(out, "]\n");
	}
	qk_violations_fix(&fix, v, s);
	if (fix.len)
		qk_buf_addf(out, "\nfix: %s\n", fix.s);
}
