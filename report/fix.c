#include "report/fix.h"

#include "base/mem.h"
#include "base/path.h"
#include "report/json.h"

#include <stdbool.h>
#include <string.h>

/* Where make would read a byte as syntax, a backslash (or a second '$') keeps it a byte. */
static void quoted(struct qk_buf *out, const char *name, bool target)
{
	for (const char *s = name; *s; s++) {
		if (*s == '$')
			qk_buf_addch(out, '$');
		else if (strchr(" \t#:;|*?[", *s) || (target && strchr("%=", *s)))
			qk_buf_addch(out, '\\');
		qk_buf_addch(out, *s);
	}
}

void qk_fix_prerequisite(struct qk_buf *out, const char *target, const char *prerequisite)
{
	quoted(out, target, true);
	qk_buf_addstr(out, ": ");
	quoted(out, prerequisite, false);
}

void qk_fix_variable(
	struct qk_buf *out, const char *target, const char *variable, const char *path)
{
	quoted(out, target, true);
	qk_buf_addf(out, ": %s += ", variable);
	for (const char *s = path; *s; s++) {
		if (*s == '$' || *s == '#')
			qk_buf_addch(out, *s == '$' ? '$' : '\\');
		qk_buf_addch(out, *s);
	}
}

void qk_fix_field(struct qk_buf *out, const struct qk_request *task, const char *field, const char *path)
{
	qk_autofree char *project = qk_path_join(task->root, task->project ? task->project : ".");
	qk_autofree char *text = NULL;

	if (qk_path_under(path, project))
		text = qk_asprintf("{projectRoot}/%s", qk_path_below(path, project));
	else
		text = qk_asprintf("{workspaceRoot}/%s",
			qk_path_under(path, task->root) ? qk_path_below(path, task->root) : path);
	qk_buf_addf(out, "%s: %s += ", task->target, field);
	qk_json_string(out, text);
}

void qk_fix_depends(struct qk_buf *out, const char *task, const char *other)
{
	qk_buf_addf(out, "%s: dependsOn += ", task);
	qk_json_string(out, other);
}
