#include "cli/site.h"

#include "base/mem.h"
#include "base/path.h"
#include "cli/options.h"
#include "keying/store.h"
#include "report/rundir.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int qk_site_find(struct qk_site *s, struct qk_err *err)
{
	qk_autofree char *nx = NULL;
	int r;

	s->cwd = getcwd(NULL, 0);
	if (!s->cwd)
		return qk_fail(err, errno, "current directory");
	r = qk_rundir_root(getenv("QK_ROOT"), s->cwd, &s->root, err);
	if (r)
		return r;
	nx = qk_path_join(s->root, "nx.json");
	s->is_workspace = !access(nx, F_OK);
	return 0;
}

int qk_site_load(struct qk_site *s, struct qk_err *err)
{
	int r = s->root ? 0 : qk_site_find(s, err);

	if (r)
		return r;
	if (!s->is_workspace)
		return qk_fail(err, -ENOENT, "no workspace: there is no nx.json in '%s'%s", s->cwd,
			getenv("QK_ROOT") ? "" : " or above it");
	return qk_workspace_load(s->root, &s->ws, err);
}

void qk_site_release(struct qk_site *s)
{
	qk_workspace_free(s->ws);
	free(s->cwd);
	free(s->root);
	*s = (struct qk_site)QK_SITE_INIT;
}

/* Puts "; did you mean" behind the message of err. */
static int with_hint(struct qk_err *err, const char *word, const struct qk_strv *words)
{
	qk_autofree char *hint = qk_options_hint(word, (const char *const *)words->v, words->n);
	qk_autofree char *text = qk_strdup(err->msg);

	return qk_fail(err, -err->code, "%s%s", text, hint);
}

int qk_site_project(
	const struct qk_site *s, const char *name, const struct qk_project **ret, struct qk_err *err)
{
	qk_autostrv struct qk_strv names = { 0 };

	*ret = qk_workspace_project(s->ws, name);
	if (*ret)
		return 0;
	for (size_t i = 0; i < s->ws->n_projects; i++)
		qk_strv_push(&names, s->ws->projects[i].name);
	qk_fail(err, -ENOENT, "'%s': no such project", name);
	return with_hint(err, name, &names);
}

void qk_site_ids(const struct qk_workspace *ws, struct qk_strv *ids)
{
	for (size_t i = 0; i < ws->n_projects; i++)
		for (size_t k = 0; k < ws->projects[i].n_targets; k++)
			qk_strv_take(ids, qk_asprintf("%s:%s", ws->projects[i].name,
				ws->projects[i].targets[k].name));
}

int qk_site_task(const struct qk_site *s, const char *id, const struct qk_target **ret,
	const char **ret_configuration, struct qk_err *err)
{
	qk_autostrv struct qk_strv ids = { 0 };
	int r = qk_task_parse(s->ws, id, ret, ret_configuration, err);

	if (!r || r != -ENOENT)
		return r;
	qk_site_ids(s->ws, &ids);
	return with_hint(err, id, &ids);
}

char *qk_site_store(const struct qk_site *s)
{
	return qk_store_dir(
		s->root, getenv("QK_CACHE_DIR"), s->ws ? s->ws->cache_directory : NULL);
}

int qk_site_store_limit(uint64_t *ret, struct qk_err *err)
{
	const char *size = getenv("QK_CACHE_SIZE");
	int r;

	*ret = QK_STORE_LIMIT;
	if (!size || !*size)
		return 0;
	r = qk_store_parse_size(size, ret, err);
	return r ? qk_wrap(err, "QK_CACHE_SIZE") : 0;
}

bool qk_site_has_makefile(const char *dir)
{
	static const char *const names[] = { "GNUmakefile", "makefile", "Makefile" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		qk_autofree char *path = qk_path_join(dir, names[i]);

		if (!access(path, F_OK))
			return true;
	}
	return false;
}
