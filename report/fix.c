#include "report/fix.h"

#include "base/glob.h"
#include "base/mem.h"
#include "base/path.h"
#include "report/json.h"

#include <string.h>

/*
 * False for names that no rule can spell: the end of a line, a home directory, a member of an
 * archive, the bar before order-only prerequisites.
 */
static bool can_be_written(const char *name, bool target)
{
	size_t n = strlen(name);

	if (!n || name[0] == '~' || name[n - 1] == '\\' || (name[0] == '|' && !target))
		return false;
	if (name[strcspn(name, "\n\r\v\f")] || (target && strchr(name, '\t')))
		return false;
	if (name[n - 1] == ')' && strchr(name, '('))
		return false;
	/* where a name is a pattern to make, backslashes are its own: with both there is no telling */
	return !strpbrk(name, "*?[") || !strchr(name, '\\');
}

/*
 * Where make would read a byte as syntax, a backslash keeps it a byte (one more for each that stands
 * before it), or a reference that expands to it: make looks for those bytes before it expands, and
 * for ';' after it, too.
 */
static bool quoted(struct qk_buf *out, const char *name, bool target)
{
	size_t backslashes = 0;

	if (!can_be_written(name, target))
		return false;
	for (const char *s = name; *s; s++) {
		if (*s == '=' || (*s == '&' && target && !s[1])) {
			qk_buf_addf(out, "$(or %c)", *s);
		} else if (strchr(" \t#:;*?[", *s) || *s == (target ? '%' : '|')) {
			for (size_t i = 0; i <= backslashes; i++)
				qk_buf_addch(out, '\\');
			qk_buf_addf(out, *s == ';' ? "$(or %c)" : "%c", *s);
		} else {
			qk_buf_addstr(out, *s == '$' ? "$" : "");
			qk_buf_addch(out, *s);
		}
		backslashes = *s == '\\' ? backslashes + 1 : 0;
	}
	return true;
}

bool qk_fix_prerequisite(struct qk_buf *out, const char *target, const char *prerequisite)
{
	size_t start = out->len;

	if (quoted(out, target, true)) {
		qk_buf_addstr(out, ": ");
		if (quoted(out, prerequisite, false))
			return true;
	}
	qk_buf_truncate(out, start);
	return false;
}

void qk_fix_entry(struct qk_buf *out, const char *path)
{
	for (const char *s = path; *s; s++) {
		if (strchr(" \t\n\r\v\f\\#;", *s) || (*s == '^' && s == path)) {
			qk_buf_addch(out, '?'); /* make has no way to say it within a value */
			continue;
		}
		if (strchr("*?[{", *s) || (strchr("!@+", *s) && s[1] == '('))
			qk_buf_addch(out, '\\');
		qk_buf_addstr(out, *s == '$' ? "$$" : (char[]){ *s, '\0' });
	}
}

bool qk_fix_variable(
	struct qk_buf *out, const char *target, const char *variable, const char *path)
{
	if (!quoted(out, target, true))
		return false;
	qk_buf_addf(out, ": %s += ", variable);
	qk_fix_entry(out, path);
	return true;
}

void qk_fix_value(struct qk_buf *out, const struct qk_request *task, const char *path)
{
	qk_autofree char *project = qk_path_join(task->root, task->project ? task->project : ".");
	bool own = qk_path_under(path, project);

	qk_buf_addstr(out, own ? "{projectRoot}/" : "{workspaceRoot}/");
	if (qk_path_under(path, task->root))
		path = qk_path_below(path, own ? project : task->root);
	qk_glob_quote(out, path);
}

void qk_fix_field(struct qk_buf *out, const char *task, const char *field,
	const char *const *values, size_t n)
{
	qk_buf_addf(out, "%s: %s += ", task, field);
	for (size_t i = 0; i < n; i++) {
		qk_buf_addstr(out, i ? ", " : "");
		qk_json_string(out, values[i]);
	}
}
