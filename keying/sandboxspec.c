#include "keying/sandboxspec.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* What a grant may be, beside absent. */
enum shape { STRINGS = 1, PORTS = 2, YES_NO = 4, HOSTS = 8 };

/* Where it goes: a list, the array it came from, and a flag for true; -1 = none. */
struct grant {
	const char *key;
	unsigned int shapes;
	int list, at, flag;
};

#define LIST(f) (int)offsetof(struct qk_sandboxspec, f)

static const struct grant allow_keys[] = {
	{ "read", STRINGS, LIST(read), LIST(read_at), -1 },
	{ "write", STRINGS, LIST(write), LIST(write_at), -1 },
	{ "network", STRINGS | HOSTS | YES_NO, LIST(network), -1, LIST(network_open) },
	{ "localBinding", PORTS | YES_NO, LIST(local_ports), -1, LIST(local_binding) },
	{ "unixSockets", STRINGS | YES_NO, LIST(unix_sockets), -1, LIST(unix_open) },
	{ "systemInfo", STRINGS, LIST(system_info), -1, -1 },
	{ "machLookup", STRINGS, LIST(mach_lookup), -1, -1 },
	{ "pty", YES_NO, -1, -1, LIST(pty) },
	{ "gitConfig", YES_NO, -1, -1, LIST(git_config) },
	{ NULL, 0, -1, -1, -1 },
};
static const struct grant deny_keys[] = {
	{ "network", STRINGS | HOSTS, LIST(deny_network), -1, -1 },
	{ NULL, 0, -1, -1, -1 },
};
static const struct grant ignore_keys[] = {
	{ "read", STRINGS, LIST(ignore_read), -1, -1 },
	{ "write", STRINGS, LIST(ignore_write), -1, -1 },
	{ "systemInfo", STRINGS, LIST(ignore_system_info), -1, -1 },
	{ "network", STRINGS, LIST(ignore_network), -1, -1 },
	{ NULL, 0, -1, -1, -1 },
};

static bool holds_only(const struct qk_json *v, enum qk_json_type type)
{
	for (uint32_t i = 0; v->type == QK_JSON_ARRAY && i < v->n; i++)
		if (v->items[i]->type != type)
			return false;
	return v->type == QK_JSON_ARRAY;
}

static int check_type(
	const struct qk_json *v, const char *where, const struct grant *g, struct qk_err *err)
{
	if (((g->shapes & YES_NO) && v->type == QK_JSON_BOOL) ||
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

static bool is_port(const char *s)
{
	size_t n = strspn(s, "0123456789");

	return n && n <= 5 && !s[n] && strtol(s, NULL, 10) >= 1 && strtol(s, NULL, 10) <= 65535;
}

static int check_item(
	const struct qk_json *v, const char *where, const struct grant *g, struct qk_err *err)
{
	const char *why = g->shapes & HOSTS ? qk_sandboxspec_host_problem(v->s) : NULL;

	if (g->shapes & PORTS && !is_port(v->s))
		why = "a port is a number from 1 to 65535";
	if (g->shapes == STRINGS && !*v->s)
		why = "it is empty";
	return why ? qk_json_fail(v, err, "\"qk:sandbox\".%s.%s: '%s': %s", where, g->key, v->s, why) : 0;
}

static bool has(const char *const *v, size_t n, const char *s)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(v[i], s))
			return true;
	return false;
}

static int take(struct qk_workspace *ws, const struct qk_json *v, const char *where,
	const struct grant *g, struct qk_sandboxspec *ret, struct qk_err *err)
{
	char *to = (char *)ret;
	struct qk_names *names;
	const char **list;
	int r = check_type(v, where, g, err);

	if (r)
		return r;
	if (v->type == QK_JSON_BOOL) {
		memcpy(to + g->flag, &v->boolean, sizeof(bool));
		return 0;
	}
	names = (struct qk_names *)(void *)(to + g->list);
	list = qk_arena_alloc(&ws->arena, (v->n + 1) * sizeof(*list));
	for (uint32_t i = 0; i < v->n && !r; i++) {
		r = check_item(v->items[i], where, g, err);
		if (!r && !has(list, names->n, v->items[i]->s))
			list[names->n++] = v->items[i]->s;
	}
	names->v = list;
	if (g->at >= 0)
		memcpy(to + g->at, &v, sizeof(const struct qk_json *));
	return r;
}

static int read_keys(struct qk_workspace *ws, const struct qk_json *sandbox, const char *where,
	const struct grant *known, struct qk_sandboxspec *ret, struct qk_err *err)
{
	const struct qk_json *of = NULL;
	int r = qk_json_get_object(sandbox, where, &of, err);

	for (uint32_t i = 0; !r && of && i < of->n; i++) {
		const struct qk_json_member *m = &of->members[i];
		const struct grant *g = known;

		while (g->key && strcmp(g->key, m->key))
			g++;
		if (!g->key)
			r = qk_json_fail(m->value, err, "unknown field \"qk:sandbox\".%s.%s", where, m->key);
		else if (m->value->type != QK_JSON_NULL)
			r = take(ws, m->value, where, g, ret, err);
	}
	return r;
}

int qk_sandboxspec_read(struct qk_workspace *ws, const struct qk_json *sandbox,
	struct qk_sandboxspec *ret, struct qk_err *err)
{
	const struct qk_json *allow = NULL;
	int r;

	*ret = (struct qk_sandboxspec){ 0 };
	r = qk_json_get_object(sandbox, "allow", &allow, err);
	if (r)
		return r;
	ret->is_explicit = allow != NULL;
	r = read_keys(ws, sandbox, "allow", allow_keys, ret, err);
	if (!r)
		r = read_keys(ws, sandbox, "deny", deny_keys, ret, err);
	if (!r)
		r = read_keys(ws, sandbox, "ignore", ignore_keys, ret, err);
	if (!r)
		r = qk_json_get_bool(sandbox, "weakerWhenNested", &ret->weaker_when_nested, err);
	return r;
}
