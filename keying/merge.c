#include "keying/merge.h"

#include "base/buf.h"
#include "base/vec.h"

#include <string.h>

static const char spread[] = "...";

struct members {
	struct qk_json_member *v;
	size_t n, cap;
};

static struct qk_json_member *find(struct members *list, const char *key)
{
	for (size_t i = 0; i < list->n; i++)
		if (!strcmp(list->v[i].key, key))
			return &list->v[i];
	return NULL;
}

static void set(struct members *list, const struct qk_json_member *m)
{
	struct qk_json_member *old = find(list, m->key);

	if (old)
		*old = *m;
	else
		qk_vec_push(list, *m);
}

static const struct qk_json *finish(
	struct qk_arena *a, const struct qk_json *at, struct members *list)
{
	const struct qk_json *v = qk_json_new_object(a, at, list->v, list->n);

	qk_vec_release(list);
	return v;
}

static bool is_object(const struct qk_json *v)
{
	return v && v->type == QK_JSON_OBJECT;
}

static bool has_spread(const struct qk_json *v)
{
	return is_object(v) && qk_json_is_true(qk_json_get(v, spread));
}

static const struct qk_json *merge_array(
	struct qk_arena *a, const struct qk_json *below, const struct qk_json *above, bool defer)
{
	QK_VEC(const struct qk_json *) items = { 0 };
	const struct qk_json *v;
	bool any = false;

	for (uint32_t i = 0; i < above->n && !any; i++)
		any = qk_json_is(above->items[i], spread);
	if (!any)
		return above;
	for (uint32_t i = 0; i < above->n; i++) {
		if (!qk_json_is(above->items[i], spread) || (defer && !below)) {
			qk_vec_push(&items, above->items[i]);
			continue;
		}
		for (uint32_t j = 0; below && below->type == QK_JSON_ARRAY && j < below->n; j++)
			qk_vec_push(&items, below->items[j]);
	}
	v = qk_json_new_array(a, above, items.v, items.n);
	qk_vec_release(&items);
	return v;
}

/* Only the members of above, and those of below where above spreads them. */
static const struct qk_json *merge_spread(
	struct qk_arena *a, const struct qk_json *below, const struct qk_json *above, bool defer)
{
	struct members list = { 0 };

	for (uint32_t i = 0; i < above->n; i++) {
		struct qk_json_member m = above->members[i];

		if (!strcmp(m.key, spread) && !(defer && !below)) {
			for (uint32_t j = 0; is_object(below) && j < below->n; j++)
				set(&list, &below->members[j]);
			continue;
		}
		if (m.value->type == QK_JSON_ARRAY)
			m.value = merge_array(a, qk_json_get(below, m.key), m.value, defer);
		set(&list, &m);
	}
	return finish(a, above, &list);
}

const struct qk_json *qk_merge_value(
	struct qk_arena *a, const struct qk_json *below, const struct qk_json *above, bool defer)
{
	if (!above)
		return below;
	if (above->type == QK_JSON_ARRAY)
		return merge_array(a, below, above, defer);
	if (has_spread(above))
		return merge_spread(a, below, above, defer);
	return above;
}

const struct qk_json *qk_merge_members(
	struct qk_arena *a, const struct qk_json *below, const struct qk_json *above, bool defer)
{
	struct members list = { 0 };

	if (!is_object(above))
		return below;
	if (has_spread(above))
		return merge_spread(a, below, above, defer);
	for (uint32_t i = 0; is_object(below) && i < below->n; i++)
		qk_vec_push(&list, below->members[i]);
	for (uint32_t i = 0; i < above->n; i++) {
		struct qk_json_member m = above->members[i];

		m.value = qk_merge_value(a, qk_json_get(below, m.key), m.value, defer);
		set(&list, &m);
	}
	return finish(a, above, &list);
}

/* What run-commands runs, as one text; false if it names nothing. */
static bool command_of(const struct qk_json *target, struct qk_buf *out)
{
	const struct qk_json *options = qk_json_get(target, "options");
	const struct qk_json *command = qk_json_get(options, "command");
	const struct qk_json *commands = qk_json_get(options, "commands");

	if (command && command->type != QK_JSON_NULL) {
		qk_json_write(out, command, false);
		return !(command->type == QK_JSON_STRING && !command->n);
	}
	for (uint32_t i = 0; commands && commands->type == QK_JSON_ARRAY && i < commands->n; i++)
		qk_json_write(out, commands->items[i], false);
	return out->len > 0;
}

bool qk_merge_compatible(const struct qk_json *below, const struct qk_json *above)
{
	const struct qk_json *b = qk_json_get(below, "executor"),
			     *a = qk_json_get(above, "executor");

	if (!a || !b || qk_json_is(a, "") || qk_json_is(b, ""))
		return true;
	if (!qk_json_equal(a, b))
		return false;
	if (qk_json_is(a, "nx:run-commands")) {
		qk_autobuf struct qk_buf x = QK_BUF_INIT, y = QK_BUF_INIT;
		bool both = command_of(below, &x) && command_of(above, &y);

		return !both || !strcmp(x.s, y.s);
	}
	if (qk_json_is(a, "nx:run-script")) {
		const struct qk_json *x = qk_json_get(qk_json_get(below, "options"), "script");
		const struct qk_json *y = qk_json_get(qk_json_get(above, "options"), "script");

		return !x || !y || qk_json_equal(x, y);
	}
	return true;
}

/* The position of the spread among v's members, v->n without one. */
static uint32_t spread_position(const struct qk_json *v)
{
	uint32_t i = 0;

	while (has_spread(v) && i < v->n && strcmp(v->members[i].key, spread))
		i++;
	return has_spread(v) ? i : v->n;
}

/*
 * Objects whose members are objects themselves, merged two deep: configurations. Names before a
 * spread give way to those below.
 */
static const struct qk_json *merge_configurations(
	struct qk_arena *a, const struct qk_json *below, const struct qk_json *above, bool defer)
{
	uint32_t at = is_object(above) ? spread_position(above) : 0;
	struct members list = { 0 };

	if (!is_object(above))
		return below;
	for (uint32_t i = 0; is_object(below) && i < below->n; i++)
		qk_vec_push(&list, below->members[i]);
	for (uint32_t i = 0; i < above->n; i++) {
		struct qk_json_member m = above->members[i];

		if (i == at) {
			if (defer && !below)
				set(&list, &m);
			continue;
		}
		if (i < at && at < above->n && qk_json_member(below, m.key))
			continue;
		if (is_object(m.value))
			m.value = qk_merge_members(a, qk_json_get(below, m.key), m.value, defer);
		set(&list, &m);
	}
	return finish(a, above, &list);
}

const struct qk_json *qk_merge_target(
	struct qk_arena *a, const struct qk_json *below, const struct qk_json *above, bool defer)
{
	uint32_t at = spread_position(above);
	const struct qk_json *base = qk_merge_compatible(below, above) ? below : NULL;
	struct members list = { 0 };

	for (uint32_t i = 0; is_object(base) && i < base->n; i++)
		qk_vec_push(&list, base->members[i]);
	for (uint32_t i = 0; i < above->n; i++) {
		struct qk_json_member m = above->members[i];
		const struct qk_json *under = qk_json_get(base, m.key);

		if (i == at) {
			if (defer && !below)
				set(&list, &m);
			continue;
		}
		if (!strcmp(m.key, "options"))
			m.value = is_object(m.value) ? qk_merge_members(a, under, m.value, defer)
						     : under;
		else if (!strcmp(m.key, "configurations"))
			m.value = merge_configurations(a, under, m.value, defer);
		else if (!strncmp(m.key, "qk:", 3) && is_object(m.value))
			m.value = merge_spread(a, under, m.value, defer);
		else if (i < at && at < above->n && under)
			continue;
		else
			m.value = qk_merge_value(a, under, m.value, defer);
		if (m.value)
			set(&list, &m);
	}
	return finish(a, above, &list);
}

int qk_merge_shorthand(struct qk_arena *a, const struct qk_json *target, const struct qk_json **ret,
	struct qk_err *err)
{
	const struct qk_json_member *command = qk_json_member(target, "command");
	const struct qk_json_member *executor = qk_json_member(target, "executor");
	const struct qk_json_member *options = qk_json_member(target, "options");
	struct members list = { 0 }, opts = { 0 };
	struct qk_json_member m;

	*ret = target;
	if (!command || command->value->type == QK_JSON_NULL || qk_json_is(command->value, ""))
		return 0;
	if (command->value->type != QK_JSON_STRING)
		return qk_json_fail(command->value, err, "\"command\" must be a string, not %s",
			qk_json_type_name(command->value->type));
	if (executor && executor->value->type != QK_JSON_NULL)
		return qk_json_fail(command->value, err,
			"a target has either \"command\" or \"executor\", not both");
	for (uint32_t i = 0; i < target->n; i++) {
		if (&target->members[i] == command || &target->members[i] == options ||
			&target->members[i] == executor)
			continue;
		qk_vec_push(&list, target->members[i]);
	}
	m = *command;
	m.key = "executor";
	m.value = qk_json_new_string(a, command->value, "nx:run-commands");
	qk_vec_push(&list, m);
	for (uint32_t i = 0; options && is_object(options->value) && i < options->value->n; i++)
		qk_vec_push(&opts, options->value->members[i]);
	set(&opts, command);
	m = options ? *options : *command;
	m.key = "options";
	m.value = finish(a, options ? options->value : command->value, &opts);
	qk_vec_push(&list, m);
	*ret = finish(a, target, &list);
	return 0;
}
