#include "keying/declared.h"

#include <string.h>

/* What a grant may be, beside absent. */
enum shape { STRINGS = 1, PORTS = 2, YES_NO = 4 };

struct grant {
	const char *key;
	unsigned int shapes;
};

static const struct grant allow_keys[] = {
	{ "read", STRINGS },
	{ "write", STRINGS },
	{ "network", STRINGS | YES_NO },
	{ "localBinding", PORTS | YES_NO },
	{ "unixSockets", STRINGS | YES_NO },
	{ "systemInfo", STRINGS },
	{ "machLookup", STRINGS },
	{ "pty", YES_NO },
	{ "gitConfig", YES_NO },
	{ NULL, 0 },
};
static const struct grant deny_keys[] = { { "network", STRINGS }, { NULL, 0 } };
static const struct grant ignore_keys[] = {
	{ "read", STRINGS },
	{ "write", STRINGS },
	{ "systemInfo", STRINGS },
	{ "network", STRINGS },
	{ NULL, 0 },
};

static bool holds_only(const struct qk_json *v, enum qk_json_type type)
{
	for (uint32_t i = 0; v->type == QK_JSON_ARRAY && i < v->n; i++)
		if (v->items[i]->type != type)
			return false;
	return v->type == QK_JSON_ARRAY;
}

static int check_grant(
	const struct qk_json *v, const char *where, const struct grant *g, struct qk_err *err)
{
	if (v->type == QK_JSON_NULL || ((g->shapes & YES_NO) && v->type == QK_JSON_BOOL) ||
		((g->shapes & STRINGS) && holds_only(v, QK_JSON_STRING)) ||
		((g->shapes & PORTS) && holds_only(v, QK_JSON_NUMBER)))
		return 0;
	return qk_json_fail(v, err, "\"qk:sandbox\".%s.%s must be %s%s%s%s, not %s", where, g->key,
		g->shapes & STRINGS ? "an array of strings" : "",
		g->shapes & PORTS ? "an array of numbers" : "",
		g->shapes & YES_NO && g->shapes != YES_NO ? " or " : "",
		g->shapes & YES_NO ? "true or false" : "",
		v->type == QK_JSON_ARRAY ? "an array of other things" : qk_json_type_name(v->type));
}

static int read_grants(struct qk_workspace *ws, const struct qk_json *sandbox, const char *where,
	const struct grant *known, const struct qk_json **ret, struct qk_err *err)
{
	int r = qk_json_get_object(sandbox, where, ret, err);

	for (uint32_t i = 0; *ret && i < (*ret)->n; i++) {
		const struct qk_json_member *m = &(*ret)->members[i];
		const struct grant *g = known;

		while (g->key && strcmp(g->key, m->key))
			g++;
		if (!g->key)
			qk_workspace_warn(
				ws, m->value, "unknown field \"qk:sandbox\".%s.%s", where, m->key);
		else
			r = check_grant(m->value, where, g, err);
		if (r)
			return r;
	}
	return r;
}

static int read_names(struct qk_workspace *ws, const struct qk_json *from, const char *key,
	struct qk_names *ret, const struct qk_json **ret_at, struct qk_err *err)
{
	const struct qk_json *list = NULL;
	int r = qk_json_get_strings(from, key, &list, err);
	const char **v;

	if (r || !list)
		return r;
	v = qk_arena_alloc(&ws->arena, (list->n + 1) * sizeof(*v));
	for (uint32_t i = 0; i < list->n; i++)
		v[i] = list->items[i]->s;
	ret->v = v;
	ret->n = list->n;
	if (ret_at)
		*ret_at = list;
	return 0;
}

static void warn_others(
	struct qk_workspace *ws, const struct qk_json *v, const char *of, const char *const *known)
{
	for (uint32_t i = 0; i < v->n; i++) {
		const char *const *k = known;

		while (*k && strcmp(*k, v->members[i].key))
			k++;
		if (!*k)
			qk_workspace_warn(ws, v->members[i].value, "unknown field \"%s\".%s", of,
				v->members[i].key);
	}
}

static int read_sandbox(struct qk_workspace *ws, const struct qk_json *v, struct qk_declared *ret,
	struct qk_err *err)
{
	static const char *const known[] = { "scratch", "allow", "deny", "ignore",
		"weakerWhenNested", NULL };
	int r;

	if (!v || v->type == QK_JSON_NULL)
		return 0;
	if (v->type == QK_JSON_BOOL && !v->boolean) {
		ret->sandbox_off = true;
		return 0;
	}
	if (v->type != QK_JSON_OBJECT)
		return qk_json_fail(v, err, "\"qk:sandbox\" must be false or an object, not %s",
			v->type == QK_JSON_BOOL ? "true" : qk_json_type_name(v->type));
	ret->sandbox = v;
	warn_others(ws, v, "qk:sandbox", known);
	r = read_names(ws, v, "scratch", &ret->scratch, &ret->scratch_at, err);
	if (!r)
		r = read_grants(ws, v, "allow", allow_keys, &ret->allow, err);
	if (!r)
		r = read_grants(ws, v, "deny", deny_keys, &ret->deny, err);
	if (!r)
		r = read_grants(ws, v, "ignore", ignore_keys, &ret->ignore, err);
	if (!r)
		r = qk_json_get_bool(v, "weakerWhenNested", &ret->weaker_when_nested, err);
	return r;
}

static int read_ultracache(struct qk_workspace *ws, const struct qk_json *v,
	struct qk_declared *ret, struct qk_err *err)
{
	static const char *const known[] = { "mode", "ignoreReads", "uncheckedOutputs", NULL };
	const char *mode = NULL;
	int r;

	if (!v)
		return 0;
	warn_others(ws, v, "qk:ultracache", known);
	r = qk_json_get_string(v, "mode", &mode, err);
	if (r)
		return r;
	if (!mode || !strcmp(mode, "on"))
		ret->ultracache = QK_ULTRACACHE_ON;
	else if (!strcmp(mode, "record"))
		ret->ultracache = QK_ULTRACACHE_RECORD;
	else if (!strcmp(mode, "off"))
		ret->ultracache = QK_ULTRACACHE_OFF;
	else
		return qk_json_fail(qk_json_get(v, "mode"), err,
			"\"qk:ultracache\".mode must be \"on\", \"record\" or \"off\", not \"%s\"",
			mode);
	r = read_names(ws, v, "ignoreReads", &ret->ignore_reads, &ret->ignore_reads_at, err);
	if (!r)
		r = read_names(ws, v, "uncheckedOutputs", &ret->unchecked_outputs, NULL, err);
	return r;
}

void qk_declared_warn_unknown(
	struct qk_workspace *ws, const struct qk_json *v, const char *const *known)
{
	for (uint32_t i = 0; v && v->type == QK_JSON_OBJECT && i < v->n; i++) {
		const char *const *k = known;

		if (strncmp(v->members[i].key, "qk:", 3))
			continue;
		while (*k && strcmp(*k, v->members[i].key))
			k++;
		if (!*k)
			qk_workspace_warn(
				ws, v->members[i].value, "unknown field \"%s\"", v->members[i].key);
	}
}

/* { "paths": [...] }, or the array alone. */
static int read_warm(struct qk_workspace *ws, const struct qk_json *target, struct qk_declared *ret,
	struct qk_err *err)
{
	static const char *const known[] = { "paths", NULL };
	const struct qk_json *v = qk_json_get(target, "qk:warm");

	if (!v || v->type == QK_JSON_NULL)
		return 0;
	if (v->type == QK_JSON_ARRAY)
		return read_names(ws, target, "qk:warm", &ret->warm, &ret->warm_at, err);
	if (v->type != QK_JSON_OBJECT)
		return qk_json_fail(v, err, "\"qk:warm\" must be an object or an array, not %s",
			qk_json_type_name(v->type));
	warn_others(ws, v, "qk:warm", known);
	return read_names(ws, v, "paths", &ret->warm, &ret->warm_at, err);
}

int qk_declared_read(struct qk_workspace *ws, const struct qk_json *target, struct qk_declared *ret,
	struct qk_err *err)
{
	static const char *const known[] = { "qk:sandbox", "qk:ultracache", "qk:warm", NULL };
	const struct qk_json *ultracache = NULL;
	int r;

	*ret = (struct qk_declared){ 0 };
	qk_declared_warn_unknown(ws, target, known);
	r = read_sandbox(ws, qk_json_get(target, "qk:sandbox"), ret, err);
	if (!r)
		r = qk_json_get_object(target, "qk:ultracache", &ultracache, err);
	if (!r)
		r = read_ultracache(ws, ultracache, ret, err);
	if (!r)
		r = read_warm(ws, target, ret, err);
	return r;
}
