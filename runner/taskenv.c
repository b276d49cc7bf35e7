#include "runner/taskenv.h"

#include "base/fdio.h"
#include "base/path.h"
#include "keying/dotenv.h"
#include "runner/env.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum { DOTENV_MAX = 1 << 20 };

/*
 * Of the files that are there the first to name a variable has it: the last is read first. All are
 * expanded together.
 */
static void add_dotenv(struct qk_strv *env, const struct qk_request *r, const struct qk_taskspec *s)
{
	const char *wanted = qk_env_get(env, "NX_LOAD_DOT_ENV_FILES");
	struct qk_dotenv d = { 0 };

	if (wanted && !strcmp(wanted, "false"))
		return;
	for (size_t i = s->dotenv.n; i-- > 0;) {
		qk_autofree char *path = qk_path_join(r->root, s->dotenv.v[i]);
		qk_autobuf struct qk_buf b = QK_BUF_INIT;

		if (!qk_read_file(AT_FDCWD, path, DOTENV_MAX, &b, NULL))
			qk_dotenv_parse(&d, b.s, b.len);
	}
	qk_dotenv_apply(&d, env);
	qk_dotenv_release(&d);
}

static int add_env_file(struct qk_strv *env, const struct qk_request *r,
	const struct qk_taskspec *s, struct qk_err *err)
{
	qk_autofree char *path = s->env_file ? qk_path_join(r->root, s->env_file) : NULL;
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	struct qk_dotenv d = { 0 };
	int ret;

	if (!path)
		return 0;
	ret = qk_read_file(AT_FDCWD, path, DOTENV_MAX, &b, err);
	if (ret)
		return qk_wrap(err, "envFile");
	qk_dotenv_parse(&d, b.s, b.len);
	qk_dotenv_apply(&d, env);
	qk_dotenv_release(&d);
	return 0;
}

static void add_path(struct qk_strv *env, const char *cwd)
{
	const char *old = qk_env_get(env, "PATH");
	qk_autofree char *dir = qk_strdup(cwd);
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	for (;;) {
		qk_buf_addf(&b, "%s%s/node_modules/.bin", b.len ? ":" : "",
			strcmp(dir, "/") ? dir : "");
		if (!strcmp(dir, "/"))
			break;
		dir[qk_path_dirlen(dir)] = '\0';
	}
	if (old)
		qk_buf_addf(&b, ":%s", old);
	qk_env_set(env, "PATH", b.s);
}

int qk_taskenv_make(struct qk_strv *env, const struct qk_request *r, const struct qk_taskspec *s,
	const char *key, const char *self, struct qk_err *err)
{
	const struct {
		const char *name, *value;
	} nx[] = {
		{ "NX_TASK_TARGET_PROJECT", s->project },
		{ "NX_TASK_TARGET_TARGET", s->target },
		{ "NX_TASK_TARGET_CONFIGURATION", s->configuration },
		{ "NX_TASK_HASH", key },
		{ "NX_WORKSPACE_ROOT", r->root },
		{ "LERNA_PACKAGE_NAME", s->project },
		{ "PWD", s->cwd },
	};
	int ret;

	qk_env_task(env, r, self);
	add_dotenv(env, r, s);
	for (size_t i = 0; i < sizeof(nx) / sizeof(nx[0]); i++)
		if (nx[i].value)
			qk_env_set(env, nx[i].name, nx[i].value);
	add_path(env, s->cwd);
	ret = add_env_file(env, r, s, err);
	for (size_t i = 0; i < s->env.n && !ret; i++) {
		size_t n = strcspn(s->env.v[i], "=");
		qk_autofree char *name = qk_strndup(s->env.v[i], n);

		if (strcmp(name, "PATH")) /* Nx keeps node_modules in front, whatever is said */
			qk_env_set(env, name, s->env.v[i] + n + 1);
	}
	return ret;
}
