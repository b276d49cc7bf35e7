#include "keying/json.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct qk_json_member *qk_json_member(const struct qk_json *v, const char *key)
{
	if (!v || v->type != QK_JSON_OBJECT)
		return NULL;
	for (uint32_t i = 0; i < v->n; i++)
		if (!strcmp(v->members[i].key, key))
			return &v->members[i];
	return NULL;
}

const struct qk_json *qk_json_get(const struct qk_json *v, const char *key)
{
	const struct qk_json_member *m = qk_json_member(v, key);

	return m ? m->value : NULL;
}

int qk_json_fail(const struct qk_json *at, struct qk_err *err, const char *fmt, ...)
{
	char msg[sizeof(err->msg)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	if (!at || !at->file)
		return qk_fail(err, -EINVAL, "%s", msg);
	if (!at->line)
		return qk_fail(err, -EINVAL, "%s: %s", at->file, msg);
	return qk_fail(err, -EINVAL, "%s:%u:%u: %s", at->file, at->line, at->column, msg);
}

const char *qk_json_place(struct qk_arena *a, const struct qk_json *at)
{
	if (!at || !at->file)
		return "";
	if (!at->line)
		return at->file;
	return qk_arena_printf(a, "%s:%u:%u", at->file, at->line, at->column);
}

const char *qk_json_type_name(enum qk_json_type type)
{
	static const char *const names[] = {
		[QK_JSON_NULL] = "null",
		[QK_JSON_BOOL] = "true or false",
		[QK_JSON_NUMBER] = "a number",
		[QK_JSON_STRING] = "a string",
		[QK_JSON_ARRAY] = "an array",
		[QK_JSON_OBJECT] = "an object",
	};

	return names[type];
}

/* The member's value if it is of the type; NULL in *ret if it is absent or null. */
static int get_typed(const struct qk_json *v, const char *key, enum qk_json_type type,
	const struct qk_json **ret, struct qk_err *err)
{
	const struct qk_json *m = qk_json_get(v, key);

	*ret = NULL;
	if (!m || m->type == QK_JSON_NULL)
		return 0;
	if (m->type != type)
		return qk_json_fail(m, err, "\"%s\" must be %s, not %s", key,
			qk_json_type_name(type), qk_json_type_name(m->type));
	*ret = m;
	return 0;
}

int qk_json_get_string(
	const struct qk_json *v, const char *key, const char **ret, struct qk_err *err)
{
	const struct qk_json *m;
	int r = get_typed(v, key, QK_JSON_STRING, &m, err);

	if (m)
		*ret = m->s;
	return r;
}

int qk_json_get_bool(const struct qk_json *v, const char *key, bool *ret, struct qk_err *err)
{
	const struct qk_json *m;
	int r = get_typed(v, key, QK_JSON_BOOL, &m, err);

	if (m)
		*ret = m->boolean;
	return r;
}

int qk_json_get_array(
	const struct qk_json *v, const char *key, const struct qk_json **ret, struct qk_err *err)
{
	const struct qk_json *m;
	int r = get_typed(v, key, QK_JSON_ARRAY, &m, err);

	if (m)
		*ret = m;
	return r;
}

int qk_json_get_object(
	const struct qk_json *v, const char *key, const struct qk_json **ret, struct qk_err *err)
{
	const struct qk_json *m;
	int r = get_typed(v, key, QK_JSON_OBJECT, &m, err);

	if (m)
		*ret = m;
	return r;
}

int qk_json_get_strings(
	const struct qk_json *v, const char *key, const struct qk_json **ret, struct qk_err *err)
{
	const struct qk_json *m;
	int r = get_typed(v, key, QK_JSON_ARRAY, &m, err);

	if (!m)
		return r;
	for (uint32_t i = 0; i < m->n; i++)
		if (m->items[i]->type != QK_JSON_STRING)
			return qk_json_fail(m->items[i], err, "\"%s\" must hold strings, not %s",
				key, qk_json_type_name(m->items[i]->type));
	*ret = m;
	return 0;
}

bool qk_json_is(const struct qk_json *v, const char *s)
{
	return v && v->type == QK_JSON_STRING && !strcmp(v->s, s);
}

bool qk_json_is_true(const struct qk_json *v)
{
	return v && v->type == QK_JSON_BOOL && v->boolean;
}

bool qk_json_equal(const struct qk_json *a, const struct qk_json *b)
{
	if (a == b)
		return true;
	if (!a || !b || a->type != b->type)
		return false;
	switch (a->type) {
	case QK_JSON_NULL: return true;
	case QK_JSON_BOOL: return a->boolean == b->boolean;
	case QK_JSON_NUMBER:
		return !(strtod(a->s, NULL) < strtod(b->s, NULL)) &&
		       !(strtod(a->s, NULL) > strtod(b->s, NULL));
	case QK_JSON_STRING: return !strcmp(a->s, b->s);
	case QK_JSON_ARRAY:
		for (uint32_t i = 0; a->n == b->n && i < a->n; i++)
			if (!qk_json_equal(a->items[i], b->items[i]))
				return false;
		return a->n == b->n;
	case QK_JSON_OBJECT:
		for (uint32_t i = 0; a->n == b->n && i < a->n; i++) {
			/* mostly they are in the same order: look there first */
			const struct qk_json *other = strcmp(a->members[i].key, b->members[i].key)
							      ? qk_json_get(b, a->members[i].key)
							      : b->members[i].value;

			if (!other || !qk_json_equal(a->members[i].value, other))
				return false;
		}
		return a->n == b->n;
	}
	return false;
}

static void write_string(struct qk_buf *out, const char *s)
{
	static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";

	qk_buf_addch(out, '"');
	for (; *s; s++) {
		const char *known = strchr(from, *s);

		if (known) {
			qk_buf_addch(out, '\\');
			qk_buf_addch(out, to[known - from]);
		} else if ((unsigned char)*s < 0x20) {
			qk_buf_addf(out, "\\u%04x", (unsigned int)*s);
		} else {
			qk_buf_addch(out, *s);
		}
	}
	qk_buf_addch(out, '"');
}

static int by_key(const void *a, const void *b)
{
	const struct qk_json_member *x = *(const struct qk_json_member *const *)a;
	const struct qk_json_member *y = *(const struct qk_json_member *const *)b;

	return strcmp(x->key, y->key);
}

static void write_object(struct qk_buf *out, const struct qk_json *v, bool sorted)
{
	qk_autofree const struct qk_json_member **order =
		qk_alloc(v->n * sizeof(struct qk_json_member *));

	for (uint32_t i = 0; i < v->n; i++)
		order[i] = &v->members[i];
	if (sorted && v->n)
		qsort(order, v->n, sizeof(*order), by_key);
	qk_buf_addch(out, '{');
	for (uint32_t i = 0; i < v->n; i++) {
		if (i)
			qk_buf_addch(out, ',');
		write_string(out, order[i]->key);
		qk_buf_addch(out, ':');
		qk_json_write(out, order[i]->value, sorted);
	}
	qk_buf_addch(out, '}');
}

void qk_json_write(struct qk_buf *out, const struct qk_json *v, bool sorted)
{
	if (!v) {
		qk_buf_addstr(out, "null");
		return;
	}
	switch (v->type) {
	case QK_JSON_NULL: qk_buf_addstr(out, "null"); break;
	case QK_JSON_BOOL: qk_buf_addstr(out, v->boolean ? "true" : "false"); break;
	case QK_JSON_NUMBER: qk_buf_add(out, v->s, v->n); break;
	case QK_JSON_STRING: write_string(out, v->s); break;
	case QK_JSON_ARRAY:
		qk_buf_addch(out, '[');
		for (uint32_t i = 0; i < v->n; i++) {
			if (i)
				qk_buf_addch(out, ',');
			qk_json_write(out, v->items[i], sorted);
		}
		qk_buf_addch(out, ']');
		break;
	case QK_JSON_OBJECT: write_object(out, v, sorted); break;
	}
}

static struct qk_json *new_at(struct qk_arena *a, enum qk_json_type type, const struct qk_json *at)
{
	struct qk_json *v = qk_arena_alloc(a, sizeof(*v));

	v->type = type;
	if (at) {
		v->file = at->file;
		v->line = at->line;
		v->column = at->column;
	}
	return v;
}

const struct qk_json *qk_json_new_string(
	struct qk_arena *a, const struct qk_json *at, const char *s)
{
	struct qk_json *v = new_at(a, QK_JSON_STRING, at);

	v->n = (uint32_t)strlen(s);
	v->s = qk_arena_strndup(a, s, v->n);
	return v;
}

const struct qk_json *qk_json_new_bool(struct qk_arena *a, const struct qk_json *at, bool b)
{
	struct qk_json *v = new_at(a, QK_JSON_BOOL, at);

	v->boolean = b;
	return v;
}

const struct qk_json *qk_json_new_array(
	struct qk_arena *a, const struct qk_json *at, const struct qk_json *const *items, size_t n)
{
	struct qk_json *v = new_at(a, QK_JSON_ARRAY, at);
	const struct qk_json **copy = qk_arena_alloc(a, n * sizeof(*copy));

	if (n)
		memcpy(copy, items, n * sizeof(*copy));
	v->items = copy;
	v->n = (uint32_t)n;
	return v;
}

const struct qk_json *qk_json_new_object(struct qk_arena *a, const struct qk_json *at,
	const struct qk_json_member *members, size_t n)
{
	struct qk_json *v = new_at(a, QK_JSON_OBJECT, at);
	struct qk_json_member *copy = qk_arena_alloc(a, n * sizeof(*copy));

	if (n)
		memcpy(copy, members, n * sizeof(*copy));
	v->members = copy;
	v->n = (uint32_t)n;
	return v;
}
