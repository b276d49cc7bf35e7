#include "keying/workspace.h"

#include "base/path.h"
#include "base/vec.h"
#include "keying/depends.h"
#include "keying/discover.h"
#include "keying/jsonc.h"
#include "keying/members.h"
#include "keying/nxjson.h"
#include "keying/project.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

/* A warning said already: targetDefaults would give the same one for every project. */
struct said {
	const char *text;
	UT_hash_handle hh;
};

struct qk_workspace_index {
	const struct qk_project **by_root; /* sorted */
	struct said *said;
	const struct qk_warning **last;
};

bool qk_name_ok(const char *name)
{
	static const char ok[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._@/+,:-";

	return *name && !name[strspn(name, ok)];
}

void qk_workspace_warn(struct qk_workspace *ws, const struct qk_json *at, const char *fmt, ...)
{
	qk_autobuf struct qk_buf text = QK_BUF_INIT;
	struct qk_warning *w;
	struct said *said;
	va_list ap;

	if (at && at->file)
		qk_buf_addf(&text, "%s: ", qk_json_place(&ws->arena, at));
	va_start(ap, fmt);
	qk_buf_vaddf(&text, fmt, ap);
	va_end(ap);
	HASH_FIND_STR(ws->lookup->said, text.s, said);
	if (said)
		return;
	w = qk_arena_alloc(&ws->arena, sizeof(*w));
	w->text = qk_arena_strdup(&ws->arena, text.s);
	*ws->lookup->last = w;
	ws->lookup->last = &w->next;
	said = qk_arena_alloc(&ws->arena, sizeof(*said));
	said->text = w->text;
	HASH_ADD_KEYPTR(hh, ws->lookup->said, said->text, strlen(said->text), said);
}

void qk_workspace_warn_repeats(struct qk_workspace *ws, const struct qk_json_repeat *repeats)
{
	for (; repeats; repeats = repeats->next) {
		struct qk_json at = {
			.file = repeats->file, .line = repeats->line, .column = repeats->column
		};

		qk_workspace_warn(
			ws, &at, "\"%s\" is given twice: the last one counts", repeats->key);
	}
}

/* Reads dir/name as an object; NULL in *ret if it is not there. */
static int read_file(struct qk_workspace *ws, const char *dir, const char *name,
	const struct qk_json **ret, struct qk_err *err)
{
	qk_autofree char *shown =
		strcmp(dir, ".") ? qk_asprintf("%s/%s", dir, name) : qk_strdup(name);
	qk_autofree char *path = qk_asprintf("%s/%s", ws->root, shown);
	const struct qk_json_repeat *repeats = NULL;
	const struct qk_json *v = NULL;
	int r = qk_json_read(&ws->arena, path, shown, &v, &repeats, err);

	if (r)
		return r == -ENOENT ? 0 : r;
	if (v->type != QK_JSON_OBJECT)
		return qk_json_fail(
			v, err, "expected an object, not %s", qk_json_type_name(v->type));
	qk_workspace_warn_repeats(ws, repeats);
	*ret = v;
	return 0;
}

static int read_project(struct qk_workspace *ws, const struct qk_found *f, bool is_member,
	const struct qk_json *root_package, struct qk_project *ret, struct qk_err *err)
{
	struct qk_project_files files = { .root = f->dir, .in_workspaces = is_member };
	int r = 0;

	if (f->package && !strcmp(f->dir, "."))
		files.package = root_package;
	else if (f->package)
		r = read_file(ws, f->dir, "package.json", &files.package, err);
	if (!r && f->project)
		r = read_file(ws, f->dir, "project.json", &files.project, err);
	if (!r && f->project_local)
		r = read_file(ws, f->dir, "project.local.json", &files.local, err);
	return r ? r : qk_project_build(ws, &files, ret, err);
}

static int by_name(const void *a, const void *b)
{
	const struct qk_project *x = a, *y = b;
	int c = strcmp(x->name, y->name);

	return c ? c : strcmp(x->root, y->root);
}

static int by_root(const void *a, const void *b)
{
	return strcmp((*(const struct qk_project *const *)a)->root,
		(*(const struct qk_project *const *)b)->root);
}

/* Sorts the projects, refuses two of one name, and makes what the lookups need. */
static int index_projects(struct qk_workspace *ws, struct qk_err *err)
{
	struct qk_project *p = ws->projects;

	if (ws->n_projects)
		qsort(p, ws->n_projects, sizeof(*p), by_name);
	for (size_t i = 1; i < ws->n_projects; i++)
		if (!strcmp(p[i - 1].name, p[i].name))
			return qk_json_fail(p[i].at, err, "project name \"%s\" is taken: %s",
				p[i].name, qk_json_place(&ws->arena, p[i - 1].at));
	ws->lookup->by_root =
		qk_arena_alloc(&ws->arena, ws->n_projects * sizeof(*ws->lookup->by_root));
	for (size_t i = 0; i < ws->n_projects; i++) {
		p[i].index = i;
		for (size_t j = 0; j < p[i].n_targets; j++)
			p[i].targets[j].project = &p[i];
		ws->lookup->by_root[i] = &p[i];
	}
	if (ws->n_projects)
		qsort(ws->lookup->by_root, ws->n_projects, sizeof(*ws->lookup->by_root), by_root);
	return 0;
}

static int read_projects(struct qk_workspace *ws, struct qk_err *err)
{
	const struct qk_json *package = NULL;
	struct qk_members members;
	struct qk_found *found;
	size_t n_found;
	int r = read_file(ws, ".", "package.json", &package, err);

	if (!r)
		r = qk_members_read(&ws->arena, ws->root, package, &members, err);
	if (!r)
		r = qk_discover(&ws->arena, ws->root, &found, &n_found, err);
	if (r)
		return r;
	ws->package = package;
	ws->has_pnpm_workspace = members.has_pnpm_workspace;
	ws->projects = qk_arena_alloc(&ws->arena, n_found * sizeof(*ws->projects));
	for (size_t i = 0; i < n_found; i++) {
		qk_autofree char *path = strcmp(found[i].dir, ".")
						 ? qk_asprintf("%s/package.json", found[i].dir)
						 : qk_strdup("package.json");
		bool is_member = found[i].package && qk_members_has(&members, path);

		if (!is_member && !found[i].project)
			continue;
		r = read_project(
			ws, &found[i], is_member, package, &ws->projects[ws->n_projects], err);
		if (r)
			return r;
		ws->n_projects++;
	}
	return index_projects(ws, err);
}

int qk_workspace_load(const char *root, struct qk_workspace **ret, struct qk_err *err)
{
	struct qk_workspace *ws = qk_zalloc(sizeof(*ws));
	qk_autofree char *clean = qk_path_join("/", root);
	int r;

	*ret = NULL;
	ws->root = qk_arena_strdup(&ws->arena, clean);
	ws->lookup = qk_arena_alloc(&ws->arena, sizeof(*ws->lookup));
	ws->lookup->last = &ws->warnings;
	r = qk_nxjson_read(ws, err);
	if (!r)
		r = read_projects(ws, err);
	if (r) {
		qk_workspace_free(ws);
		return r;
	}
	qk_depends_resolve(ws);
	*ret = ws;
	return 0;
}

void qk_workspace_free(struct qk_workspace *ws)
{
	if (!ws)
		return;
	HASH_CLEAR(hh, ws->lookup->said);
	qk_arena_release(&ws->arena);
	free(ws);
}

static int name_of_project(const void *key, const void *p)
{
	return strcmp(key, ((const struct qk_project *)p)->name);
}

const struct qk_project *qk_workspace_project(const struct qk_workspace *ws, const char *name)
{
	if (!ws->n_projects)
		return NULL;
	return bsearch(name, ws->projects, ws->n_projects, sizeof(*ws->projects), name_of_project);
}

static int name_of_target(const void *key, const void *t)
{
	return strcmp(key, ((const struct qk_target *)t)->name);
}

const struct qk_target *qk_project_target(const struct qk_project *p, const char *name)
{
	if (!p->n_targets)
		return NULL;
	return bsearch(name, p->targets, p->n_targets, sizeof(*p->targets), name_of_target);
}

static int root_of_project(const void *key, const void *p)
{
	return strcmp(key, (*(const struct qk_project *const *)p)->root);
}

const struct qk_project *qk_workspace_owner(const struct qk_workspace *ws, const char *path)
{
	qk_autofree char *dir = qk_strdup(path);

	for (;;) {
		const struct qk_project **hit =
			!ws->n_projects
				? NULL
				: bsearch(*dir ? dir : ".", ws->lookup->by_root, ws->n_projects,
					  sizeof(*ws->lookup->by_root), root_of_project);

		if (hit)
			return *hit;
		if (!*dir || !strcmp(dir, "."))
			return NULL;
		dir[qk_path_dirlen(dir)] = '\0';
	}
}
