/* A workspace made of files in the test's tree, loaded, and what of it is as it should be. */
#ifndef QK_TESTS_WORKSPACES_H
#define QK_TESTS_WORKSPACES_H

#include "tests/unit/tree.h"

#include "base/buf.h"
#include "base/vec.h"
#include "keying/discover.h"
#include "keying/ignore.h"
#include "keying/workspace.h"

#include <check.h>
#include <errno.h>

static inline struct qk_workspace *load(void)
{
	struct qk_err err = QK_ERR_INIT;
	struct qk_workspace *ws;

	ck_assert_msg(!qk_workspace_load(tree, &ws, &err), "%s", err.msg);
	return ws;
}

static inline void check_fails(const char *message)
{
	struct qk_err err = QK_ERR_INIT;
	struct qk_workspace *ws;

	ck_assert_int_lt(qk_workspace_load(tree, &ws, &err), 0);
	ck_assert_ptr_null(ws);
	ck_assert_str_eq(err.msg, message);
}

static const struct qk_project *project(const struct qk_workspace *ws, const char *name)
{
	const struct qk_project *p = qk_workspace_project(ws, name);

	ck_assert_msg(p != NULL, "no project %s", name);
	return p;
}

static inline const struct qk_target *target(
	const struct qk_workspace *ws, const char *name, const char *t_name)
{
	const struct qk_target *t = qk_project_target(project(ws, name), t_name);

	ck_assert_msg(t != NULL, "no target %s:%s", name, t_name);
	return t;
}

static inline void check_json(const struct qk_json *v, const char *want)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	qk_json_write(&b, v, false);
	ck_assert_str_eq(b.s, want);
}

/* "name=root" of every project. */
static inline void check_projects(const struct qk_workspace *ws, const char *want)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	for (size_t i = 0; i < ws->n_projects; i++) {
		ck_assert_uint_eq(ws->projects[i].index, i);
		qk_buf_addf(
			&b, "%s%s=%s", i ? " " : "", ws->projects[i].name, ws->projects[i].root);
	}
	ck_assert_str_eq(b.s, want);
}

static inline void check_deps(const struct qk_workspace *ws, const char *name, const char *want)
{
	const struct qk_project *p = project(ws, name);
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	for (size_t i = 0; i < p->n_deps; i++)
		qk_buf_addf(&b, "%s%s", i ? " " : "", p->deps[i].project->name);
	ck_assert_str_eq(b.s, want);
}

static inline void check_warned(const struct qk_workspace *ws, const char *text)
{
	qk_autobuf struct qk_buf all = QK_BUF_INIT;

	for (const struct qk_warning *w = ws->warnings; w; w = w->next) {
		if (!strcmp(w->text, text))
			return;
		qk_buf_addf(&all, "\n%s", w->text);
	}
	ck_abort_msg("'%s' is not among:%s", text, all.s);
}

#endif
