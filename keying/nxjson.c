#include "keying/nxjson.h"

#include "base/path.h"
#include "keying/declared.h"
#include "keying/jsonc.h"
#include "keying/merge.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reads root/name, which must be an object; NULL in *ret if the file is not there. */
static int read_object(
	struct qk_workspace *ws, const char *name, const struct qk_json **ret, struct qk_err *err)
{
	qk_autofree char *path = qk_path_join(ws->root, name);
	const struct qk_json_repeat *repeats = NULL;
	const struct qk_json *v = NULL;
	int r = qk_json_read(&ws->arena, path, name, &v, &repeats, err);

	*ret = NULL;
	if (r)
		return r == -ENOENT ? 0 : r;
	if (v->type != QK_JSON_OBJECT)
		return qk_json_fail(
			v, err, "expected an object, not %s", qk_json_type_name(v->type));
	qk_workspace_warn_repeats(ws, repeats);
	*ret = v;
	return 0;
}

/* dir/node_modules/spec, as it stands or as node would take it to mean a .json file. */
static char *installed(const char *dir, const char *spec)
{
	/* nx's own presets lie behind the "exports" of its package.json */
	static const char *const within[] = { "", "dist/" };
	size_t package = *spec == '@' ? strcspn(spec, "/") + 1 : 0;

	package += strcspn(spec + (package < strlen(spec) ? package : 0), "/");
	for (size_t i = 0; i < 4; i++) {
		char *path = qk_asprintf("%s/node_modules/%.*s/%s%s%s", strcmp(dir, "/") ? dir : "",
			(int)package, spec, within[i / 2],
			spec[package] == '/' ? spec + package + 1 : "", i % 2 ? ".json" : "");

		if (!access(path, R_OK) && strcmp(qk_path_base(path), ""))
			return path;
		free(path);
	}
	return NULL;
}

/* The file that `extends` names: relative to the root, or of a package of it or a directory above.
 */
static char *find_extended(const char *root, const char *spec)
{
	qk_autofree char *dir = qk_asprintf("%s/.nx/installation", root);
	char *path;

	if (*spec == '.' || *spec == '/') {
		path = qk_path_join(root, spec);
		if (!access(path, R_OK))
			return path;
		free(path);
		return NULL;
	}
	path = installed(dir, spec);
	free(dir);
	dir = qk_strdup(root);
	while (!path) {
		size_t n = qk_path_dirlen(dir);

		path = installed(dir, spec);
		if (!strcmp(dir, "/"))
			break;
		dir[n] = '\0';
	}
	return path;
}

static int read_extended(struct qk_workspace *ws, const struct qk_json **ret, struct qk_err *err)
{
	const struct qk_json *at = qk_json_get(ws->nx, "extends");
	const struct qk_json_repeat *repeats = NULL;
	qk_autobuf struct qk_buf name = QK_BUF_INIT;
	qk_autofree char *path = NULL;
	const char *spec = NULL;
	int r = qk_json_get_string(ws->nx, "extends", &spec, err);

	*ret = NULL;
	if (r || !spec)
		return r;
	path = find_extended(ws->root, spec);
	if (!path &&
		(!strcmp(spec, "nx/presets/npm.json") || !strcmp(spec, "nx/presets/core.json")))
		return 0; /* nothing in them concerns qk: a workspace may do without nx installed */
	if (!path)
		return qk_json_fail(at, err, "\"extends\": '%s' is not found", spec);
	ws->extends_path = qk_arena_strdup(&ws->arena, path);
	qk_path_relative(&name, ws->root, path);
	r = qk_json_read(&ws->arena, path, name.s, ret, &repeats, err);
	if (r == -EISDIR)
		return qk_json_fail(at, err, "\"extends\": '%s' is a directory", spec);
	if (!r && (*ret)->type != QK_JSON_OBJECT)
		return qk_json_fail(
			*ret, err, "expected an object, not %s", qk_json_type_name((*ret)->type));
	return r;
}

/* Members of above replace those of below, without looking for spreads. */
static const struct qk_json *replace(
	struct qk_arena *a, const struct qk_json *below, const struct qk_json *above)
{
	qk_autofree struct qk_json_member *m = NULL;
	size_t n = 0;

	if (!below)
		return above;
	m = qk_alloc((below->n + above->n) * sizeof(*m));
	for (uint32_t i = 0; i < below->n; i++)
		if (!qk_json_member(above, below->members[i].key))
			m[n++] = below->members[i];
	for (uint32_t i = 0; i < above->n; i++)
		m[n++] = above->members[i];
	return qk_json_new_object(a, above, m, n);
}

static int add_local(struct qk_workspace *ws, struct qk_err *err)
{
	static const char *const by_name[] = { "namedInputs", "targetDefaults" };
	enum { N = sizeof(by_name) / sizeof(*by_name) };
	const struct qk_json *local, *below = ws->nx;
	struct qk_json_member m[N];
	size_t n = 0;
	int r = read_object(ws, "nx.local.json", &local, err);

	if (r || !local)
		return r;
	ws->has_nx_local = true;
	for (size_t i = 0; i < N; i++) {
		const struct qk_json_member *over = qk_json_member(local, by_name[i]);

		if (!over || over->value->type != QK_JSON_OBJECT)
			continue;
		m[n] = *over;
		m[n++].value = qk_merge_members(
			&ws->arena, qk_json_get(below, by_name[i]), over->value, false);
	}
	ws->nx = replace(&ws->arena, below, local);
	if (n)
		ws->nx = replace(&ws->arena, ws->nx, qk_json_new_object(&ws->arena, local, m, n));
	return 0;
}

static int read_parallel(struct qk_workspace *ws, const struct qk_json *options, struct qk_err *err)
{
	const struct qk_json *v = qk_json_get(ws->nx, "parallel");
	char *end;

	if (!v)
		v = qk_json_get(options, "parallel");
	if (!v || v->type == QK_JSON_NULL || (v->type == QK_JSON_BOOL && v->boolean))
		return 0;
	if (v->type == QK_JSON_BOOL) {
		ws->parallel = 1;
		return 0;
	}
	if (v->type != QK_JSON_NUMBER && v->type != QK_JSON_STRING)
		return qk_json_fail(v, err, "\"parallel\" must be a number, not %s",
			qk_json_type_name(v->type));
	errno = 0;
	ws->parallel = strtol(v->s, &end, 10);
	if (errno || *end || end == v->s || ws->parallel < 1 || ws->parallel > 100000)
		return qk_json_fail(
			v, err, "\"parallel\" must be a whole number from 1 up, not %s", v->s);
	return 0;
}

int qk_nxjson_read(struct qk_workspace *ws, struct qk_err *err)
{
	static const char *const no_qk_fields[] = { NULL };
	const struct qk_json *base = NULL, *runner, *plugins = NULL;
	int r = read_object(ws, "nx.json", &ws->nx, err);

	if (r)
		return r;
	if (!ws->nx)
		ws->nx = qk_json_new_object(&ws->arena, NULL, NULL, 0);
	r = read_extended(ws, &base, err);
	if (r)
		return r;
	ws->nx = replace(&ws->arena, base, ws->nx);
	r = add_local(ws, err);
	if (r)
		return r;
	qk_declared_warn_unknown(ws, ws->nx, no_qk_fields);
	/* where older versions of Nx have the options of their runner */
	runner = qk_json_get(
		qk_json_get(qk_json_get(ws->nx, "tasksRunnerOptions"), "default"), "options");
	r = qk_json_get_object(ws->nx, "namedInputs", &ws->named_inputs, err);
	if (!r)
		r = qk_json_get_object(ws->nx, "targetDefaults", &ws->target_defaults, err);
	if (!r)
		r = qk_json_get_string(runner, "cacheDirectory", &ws->cache_directory, err);
	if (!r)
		r = qk_json_get_string(ws->nx, "cacheDirectory", &ws->cache_directory, err);
	if (!r)
		r = read_parallel(ws, runner, err);
	if (!r)
		r = qk_json_get_array(ws->nx, "plugins", &plugins, err);
	for (uint32_t i = 0; plugins && i < plugins->n; i++) {
		const struct qk_json *name = plugins->items[i]->type == QK_JSON_OBJECT
						     ? qk_json_get(plugins->items[i], "plugin")
						     : plugins->items[i];

		if (name && name->type == QK_JSON_STRING)
			qk_workspace_warn(ws, name,
				"plugin \"%s\": qk runs no plugins of Nx, so the targets and "
				"dependencies it would add are missing",
				name->s);
	}
	return r;
}
