#include "keying/defaults.h"

#include "base/glob.h"
#include "base/vec.h"
#include "keying/merge.h"
#include "keying/select.h"

#include <string.h>

/* The object without one of its members. */
static const struct qk_json *without(struct qk_arena *a, const struct qk_json *v, const char *key)
{
	qk_autofree struct qk_json_member *members = NULL;
	size_t n = 0;

	if (!qk_json_member(v, key))
		return v;
	members = qk_alloc(v->n * sizeof(*members));
	for (uint32_t i = 0; i < v->n; i++)
		if (strcmp(v->members[i].key, key))
			members[n++] = v->members[i];
	return qk_json_new_object(a, v, members, n);
}

static int filter_matches(struct qk_workspace *ws, const struct qk_project *project,
	const char *executor, const struct qk_json *entry, bool *ret, struct qk_err *err)
{
	const struct qk_json *filter = NULL, *projects, *wanted;
	int r = qk_json_get_object(entry, "filter", &filter, err);

	*ret = true;
	if (r || !filter)
		return r;
	projects = qk_json_get(filter, "projects");
	if (projects && projects->type == QK_JSON_STRING) {
		*ret = qk_select_one(project, &projects->s, 1);
	} else if (projects) {
		qk_autofree const char **v = NULL;

		r = qk_json_get_strings(filter, "projects", &projects, err);
		if (r)
			return r;
		v = qk_alloc((projects->n + 1) * sizeof(*v));
		for (uint32_t i = 0; i < projects->n; i++)
			v[i] = projects->items[i]->s;
		*ret = qk_select_one(project, v, projects->n);
	}
	wanted = qk_json_get(filter, "executor");
	if (wanted && !(executor && qk_json_is(wanted, executor)))
		*ret = false;
	if (qk_json_get(filter, "plugin"))
		*ret = false; /* only targets that a plugin of Nx made: there are none here */
	(void)ws;
	return 0;
}

/* All entries of one key that apply, laid over each other; NULL if none does. */
static int merge_entries(struct qk_workspace *ws, const struct qk_project *project,
	const char *executor, const struct qk_json *value, const struct qk_json **ret,
	struct qk_err *err)
{
	const struct qk_json *const *entries = value->type == QK_JSON_ARRAY ? value->items : &value;
	uint32_t n = value->type == QK_JSON_ARRAY ? value->n : 1;

	*ret = NULL;
	for (uint32_t i = 0; i < n; i++) {
		const struct qk_json *entry = entries[i];
		bool applies = true;
		int r;

		if (entry->type != QK_JSON_OBJECT)
			return qk_json_fail(entry, err,
				"\"targetDefaults\" must hold objects, not %s",
				qk_json_type_name(entry->type));
		if (value->type == QK_JSON_ARRAY) {
			r = filter_matches(ws, project, executor, entry, &applies, err);
			if (r)
				return r;
			entry = without(&ws->arena, entry, "filter");
		}
		if (!applies)
			continue;
		r = qk_merge_shorthand(&ws->arena, entry, &entry, err);
		if (r)
			return r;
		*ret = *ret ? qk_merge_target(&ws->arena, *ret, entry, true) : entry;
	}
	return 0;
}

/* The defaults of the first key that has any to give. */
static int find(struct qk_workspace *ws, const struct qk_project *project, const char *name,
	const char *executor, const struct qk_json **ret, struct qk_err *err)
{
	const struct qk_json *all = ws->target_defaults, *v;
	size_t longest = SIZE_MAX;
	int r = 0;

	*ret = NULL;
	v = executor ? qk_json_get(all, executor) : NULL;
	if (v)
		r = merge_entries(ws, project, executor, v, ret, err);
	if (r || *ret)
		return r;
	v = executor && !strcmp(executor, name) ? NULL : qk_json_get(all, name);
	if (v)
		r = merge_entries(ws, project, executor, v, ret, err);
	while (!r && !*ret) {
		const struct qk_json_member *best = NULL;

		for (uint32_t i = 0; i < all->n; i++) {
			const struct qk_json_member *m = &all->members[i];
			size_t len = strlen(m->key);

			if (qk_select_is_glob(m->key) && len < longest &&
				(!best || len > strlen(best->key)) && qk_glob_match(m->key, name))
				best = m;
		}
		if (!best)
			return 0;
		longest = strlen(best->key);
		r = merge_entries(ws, project, executor, best->value, ret, err);
	}
	return r;
}

int qk_defaults_apply(struct qk_workspace *ws, const struct qk_project *project, const char *name,
	const struct qk_json *target, const struct qk_json **ret, struct qk_err *err)
{
	struct qk_arena *a = &ws->arena;
	const struct qk_json *defaults;
	const char *executor = NULL;
	int r = qk_json_get_string(target, "executor", &executor, err);

	*ret = qk_merge_target(a, NULL, target, false);
	if (r || !ws->target_defaults)
		return r;
	r = find(ws, project, name, executor, &defaults, err);
	if (r || !defaults)
		return r;
	/* as Nx 23: defaults that name another command are those of another target (22 asked before it
	   took "command" for an executor) */
	if (qk_merge_compatible(defaults, target))
		*ret = qk_merge_target(a, defaults, target, false);
	return 0;
}
