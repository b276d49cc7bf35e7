#include "cli/makeline.h"

#include "base/path.h"
#include "cli/nearest.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

static const char *const sandboxes[] = { "audit", "enforce", "off" };

static int check_sandbox(const char *value, struct qk_err *err)
{
	const char *near;

	for (size_t i = 0; i < sizeof(sandboxes) / sizeof(sandboxes[0]); i++)
		if (!strcmp(value, sandboxes[i]))
			return 0;
	near = qk_nearest(value, sandboxes, sizeof(sandboxes) / sizeof(sandboxes[0]));
	return qk_fail(err, -EINVAL, "--sandbox=%s: not audit, enforce or off%s%s%s", value,
		near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* NAME=value as make reads it on its command line, where $ begins a reference. */
static void push_variable(struct qk_strv *argv, const char *name, const char *value)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	qk_buf_addf(&b, "%s=", name);
	for (; *value; value++)
		qk_buf_addf(&b, *value == '$' ? "$%c" : "%c", *value);
	qk_strv_push(argv, b.s);
}

static int push_file(const struct qk_makeline *m, struct qk_strv *argv, const char *name,
	const char *option, const char *file, struct qk_err *err)
{
	qk_autofree char *path = NULL;

	if (!*file)
		return qk_fail(err, -EINVAL, "%s: the file has no name", option);
	path = qk_path_join(m->cwd, file);
	push_variable(argv, name, path);
	return 0;
}

static int push_jobs(struct qk_strv *argv, const char *jobs, struct qk_err *err)
{
	const char *s = jobs;

	while (isdigit((unsigned char)*s))
		s++;
	if (*s || s == jobs || jobs[strspn(jobs, "0")] == '\0' || s - jobs > 6)
		return qk_fail(err, -EINVAL, "-j %s: not a number of jobs", jobs);
	qk_strv_take(argv, qk_asprintf("-j%s", jobs));
	return 0;
}

int qk_makeline_compose(const struct qk_makeline *m, struct qk_strv *argv, char **ret_makefiles,
	struct qk_err *err)
{
	int r = 0;

	*ret_makefiles = NULL;
	qk_strv_push(argv, "make");
	if (!m->has_makefile) {
		qk_strv_push(argv, "-f");
		qk_strv_push(argv, m->mk);
	} else if (strpbrk(m->mk, " \t\n$")) {
		return qk_fail(err, -EINVAL, "'%s': make takes no such name in MAKEFILES; put 'include "
					     "qk.mk' into the Makefile", m->mk);
	} else {
		*ret_makefiles = qk_asprintf("%s%s%s", m->mk, m->makefiles && *m->makefiles ? " " : "",
			m->makefiles ? m->makefiles : "");
	}
	if (m->jobs)
		r = push_jobs(argv, m->jobs, err);
	if (!r && m->keep_going)
		qk_strv_push(argv, "-k");
	if (!r && m->dry_run)
		qk_strv_push(argv, "-n");
	if (!r && m->sandbox) {
		const char *mode = *m->sandbox ? m->sandbox : "audit";

		r = check_sandbox(mode, err);
		push_variable(argv, "SANDBOX", mode);
	}
	if (!r && m->sandbox_report)
		r = push_file(m, argv, "SANDBOX_REPORT", "--sandbox-report", m->sandbox_report, err);
	if (!r && m->skip_cache)
		push_variable(argv, "SKIP_CACHE", "1");
	if (!r && m->record)
		push_variable(argv, "RECORD", "1");
	if (!r && m->report)
		r = push_file(m, argv, "QK_REPORT", "--report", m->report, err);
	for (char *const *s = m->rest; !r && s && *s; s++)
		qk_strv_push(argv, *s);
	for (size_t i = 0; !r && i < m->goals.n; i++)
		qk_strv_push(argv, m->goals.v[i]);
	if (r) {
		free(*ret_makefiles);
		*ret_makefiles = NULL;
	}
	return r;
}

bool qk_makeline_names_makefile(char *const *rest)
{
	static const char *const names[] = { "--file", "--makefile" };

	for (; rest && *rest; rest++) {
		if (!strncmp(*rest, "-f", 2))
			return true;
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			size_t n = strlen(names[i]);

			if (!strncmp(*rest, names[i], n) && (!(*rest)[n] || (*rest)[n] == '='))
				return true;
		}
	}
	return false;
}

void qk_makeline_quote(struct qk_buf *out, const char *word)
{
	const char *s = word;

	while (isalnum((unsigned char)*s) || (*s && strchr("@%+=:,./_-", *s)))
		s++;
	if (*word && !*s) {
		qk_buf_addstr(out, word);
		return;
	}
	qk_buf_addch(out, '\'');
	for (; *word; word++)
		if (*word == '\'')
			qk_buf_addstr(out, "'\\''");
		else
			qk_buf_addch(out, *word);
	qk_buf_addch(out, '\'');
}
