#include "keying/jsoninput.h"

#include <stdlib.h>
#include <string.h>

/* The value at a dotted path. A member whose name has dots in it is found too: longest name first.
 */
static const struct qk_json *value_at(const struct qk_json *v, const char *path)
{
	for (size_t n = strlen(path); v && n; n--) {
		qk_autofree char *key = NULL;
		const struct qk_json *below;

		if (path[n] && path[n] != '.')
			continue;
		key = qk_strndup(path, n);
		below = qk_json_get(v, key);
		if (!below && v->type == QK_JSON_ARRAY && *key && !key[strspn(key, "0123456789")] &&
			strtoul(key, NULL, 10) < v->n)
			below = v->items[strtoul(key, NULL, 10)];
		if (below && path[n])
			below = value_at(below, path + n + 1);
		if (below)
			return below;
	}
	return NULL;
}

/* A copy of v without what the paths name; prefix is where v is. */
static const struct qk_json *without(struct qk_arena *a, const struct qk_json *v,
	const struct qk_json *excluded, const char *prefix)
{
	struct qk_json_member *members;
	size_t n = 0;

	if (v->type != QK_JSON_OBJECT)
		return v;
	members = qk_arena_alloc(a, (v->n + 1) * sizeof(*members));
	for (uint32_t i = 0; i < v->n; i++) {
		const struct qk_json_member *m = &v->members[i];
		const char *path = qk_arena_printf(a, "%s%s", prefix, m->key);
		bool out = false;

		for (uint32_t k = 0; k < excluded->n; k++)
			out = out || qk_json_is(excluded->items[k], path);
		if (out)
			continue;
		members[n] = *m;
		members[n++].value =
			without(a, m->value, excluded, qk_arena_printf(a, "%s.", path));
	}
	return qk_json_new_object(a, v, members, n);
}

void qk_jsoninput_text(struct qk_buf *out, const struct qk_json *v, const struct qk_json *fields,
	const struct qk_json *excluded)
{
	struct qk_arena a = { 0 };

	if (!fields) {
		if (v)
			qk_json_write(out, excluded ? without(&a, v, excluded, "") : v, true);
		qk_arena_release(&a);
		return;
	}
	for (uint32_t i = 0; i < fields->n; i++) {
		const struct qk_json *item = fields->items[i], *value;

		if (item->type != QK_JSON_STRING)
			continue;
		value = value_at(v, item->s);
		qk_buf_addstr(out, item->s);
		if (value) {
			qk_buf_addch(out, '=');
			qk_json_write(out, value, true);
		}
		qk_buf_addch(out, '\n');
	}
}
