#include "keying/members.h"

#include "base/fdio.h"
#include "base/glob.h"
#include "base/path.h"
#include "base/vec.h"
#include "keying/jsonc.h"
#include "keying/yamldepth.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <yaml.h>

enum { YAML_SIZE_MAX = 10 * 1000 * 1000 };

struct patterns {
	struct qk_arena *arena;
	QK_VEC(const char *) select, leave;
};

/* "./libs/x/" becomes "libs/x/package.json". */
static void add(struct patterns *p, const char *s)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;
	bool negated = *s == '!';

	qk_path_clean(&b, "/", s + negated);
	if (strcmp(qk_path_base(b.s), "package.json"))
		qk_buf_addstr(&b, b.len > 1 ? "/package.json" : "package.json");
	if (negated)
		qk_vec_push(&p->leave, qk_arena_strdup(p->arena, b.s + 1));
	else
		qk_vec_push(&p->select, qk_arena_strdup(p->arena, b.s + 1));
}

static int add_all(
	struct patterns *p, const struct qk_json *from, const char *key, struct qk_err *err)
{
	const struct qk_json *list = NULL;
	int r = qk_json_get_strings(from, key, &list, err);

	for (uint32_t i = 0; list && i < list->n; i++)
		add(p, list->items[i]->s);
	return r;
}

/* `workspaces` is an array, or an object with `packages`. */
static int add_workspaces(struct patterns *p, const struct qk_json *package, struct qk_err *err)
{
	const struct qk_json *w = qk_json_get(package, "workspaces");

	if (w && w->type == QK_JSON_OBJECT)
		return add_all(p, w, "packages", err);
	return add_all(p, package, "workspaces", err);
}

static int yaml_fail(const yaml_mark_t *at, struct qk_err *err, const char *what)
{
	return qk_fail(err, -EINVAL, "pnpm-workspace.yaml:%zu:%zu: %s", at->line + 1,
		at->column + 1, what);
}

enum { YAML_DEPTH_MAX = 100 };

/*
 * Takes one event while reading the strings of the sequence under the top mapping's "packages".
 * Events and not a document: libyaml takes minutes for text that nests deeply, and can be stopped.
 */
struct yaml_state {
	int depth;
	bool is_value; /* in the top mapping: what comes is the value of a key */
	bool wanted;   /* ... of "packages" */
};

static int take_event(
	struct patterns *p, struct yaml_state *st, const yaml_event_t *e, struct qk_err *err)
{
	bool opens = e->type == YAML_SEQUENCE_START_EVENT || e->type == YAML_MAPPING_START_EVENT;
	bool closes = e->type == YAML_SEQUENCE_END_EVENT || e->type == YAML_MAPPING_END_EVENT;
	bool is_node = opens || e->type == YAML_SCALAR_EVENT || e->type == YAML_ALIAS_EVENT;
	const char *text = e->type == YAML_SCALAR_EVENT ? (const char *)e->data.scalar.value : NULL;

	if (is_node && !st->depth && e->type != YAML_MAPPING_START_EVENT && !(text && !*text))
		return yaml_fail(&e->start_mark, err, "expected a mapping");
	if (is_node && st->depth == 1 && st->is_value && st->wanted &&
		e->type != YAML_SEQUENCE_START_EVENT && !(text && !*text))
		return yaml_fail(&e->start_mark, err, "\"packages\" must be a sequence");
	if (is_node && st->depth == 2 && st->wanted) {
		if (!text)
			return yaml_fail(&e->start_mark, err, "\"packages\" must hold strings");
		add(p, text);
	}
	if (opens && ++st->depth > YAML_DEPTH_MAX)
		return yaml_fail(&e->start_mark, err, "nested too deep");
	st->depth -= closes;
	if (st->depth != 1 || e->type == YAML_MAPPING_START_EVENT || !(is_node || closes))
		return 0;
	/* a key or a value of the top mapping is complete */
	if (!st->is_value)
		st->wanted = text && !strcmp(text, "packages");
	else
		st->wanted = false;
	st->is_value = !st->is_value;
	return 0;
}

static int read_packages(struct patterns *p, yaml_parser_t *parser, struct qk_err *err)
{
	struct yaml_state st = { 0 };
	bool end = false;
	int r = 0;

	while (!r && !end) {
		yaml_event_t e;

		if (!yaml_parser_parse(parser, &e))
			return yaml_fail(&parser->problem_mark, err,
				parser->problem ? parser->problem : "not YAML");
		end = e.type == YAML_STREAM_END_EVENT || e.type == YAML_DOCUMENT_END_EVENT;
		r = take_event(p, &st, &e, err);
		yaml_event_delete(&e);
	}
	return r;
}

static int add_pnpm(struct patterns *p, const char *root, bool *ret_there, struct qk_err *err)
{
	qk_autofree char *path = qk_path_join(root, "pnpm-workspace.yaml");
	qk_autobuf struct qk_buf text = QK_BUF_INIT;
	struct qk_err why = QK_ERR_INIT;
	yaml_parser_t parser;
	int r = qk_read_file(AT_FDCWD, path, YAML_SIZE_MAX, &text, &why);

	*ret_there = r != -ENOENT;
	if (r == -ENOENT)
		return 0;
	if (r)
		return qk_fail(err, -r, "pnpm-workspace.yaml");
	r = qk_yaml_check_depth("pnpm-workspace.yaml", text.s, text.len, err);
	if (r)
		return r;
	if (!yaml_parser_initialize(&parser))
		return qk_fail(err, ENOMEM, "pnpm-workspace.yaml");
	yaml_parser_set_input_string(&parser, (const unsigned char *)text.s, text.len);
	r = read_packages(p, &parser, err);
	yaml_parser_delete(&parser);
	return r;
}

static int add_lerna(struct patterns *p, const char *root, struct qk_err *err)
{
	qk_autofree char *path = qk_path_join(root, "lerna.json");
	const struct qk_json *lerna = NULL, *list = NULL;
	int r = qk_json_read(p->arena, path, "lerna.json", &lerna, NULL, err);

	if (r)
		return r == -ENOENT ? 0 : r;
	r = qk_json_get_array(lerna, "packages", &list, err);
	if (r)
		return r;
	if (list && list->n)
		return add_all(p, lerna, "packages", err);
	add(p, "packages/*");
	return 0;
}

int qk_members_read(struct qk_arena *a, const char *root, const struct qk_json *package,
	struct qk_members *ret, struct qk_err *err)
{
	struct patterns p = { .arena = a };
	int r;

	*ret = (struct qk_members){ 0 };
	r = add_workspaces(&p, package, err);
	if (!r)
		r = add_pnpm(&p, root, &ret->has_pnpm_workspace, err);
	if (!r)
		r = add_lerna(&p, root, err);
	if (!r && qk_json_get(package, "nx"))
		add(&p, "package.json");
	/* Only taking away is taking away from everything. */
	if (!r && p.leave.n &&
		(!p.select.n || (p.select.n == 1 && !strcmp(p.select.v[0], "package.json"))))
		add(&p, "**");
	ret->n_select = p.select.n;
	ret->n_leave = p.leave.n;
	ret->select = qk_arena_alloc(a, p.select.n * sizeof(char *));
	ret->leave = qk_arena_alloc(a, p.leave.n * sizeof(char *));
	if (p.select.n)
		memcpy(ret->select, p.select.v, p.select.n * sizeof(char *));
	if (p.leave.n)
		memcpy(ret->leave, p.leave.v, p.leave.n * sizeof(char *));
	qk_vec_release(&p.select);
	qk_vec_release(&p.leave);
	return r;
}

/* A wildcard takes no dotfile here: only where the pattern has a "/." of its own. */
static bool matches(const char *pattern, const char *path)
{
	if (!strcmp(pattern, path))
		return true;
	if ((*path == '.' || strstr(path, "/.")) && *pattern != '.' && !strstr(pattern, "/."))
		return false;
	return qk_glob_match(pattern, path);
}

bool qk_members_has(const struct qk_members *m, const char *path)
{
	bool yes = false;

	for (size_t i = 0; i < m->n_select && !yes; i++)
		yes = matches(m->select[i], path);
	for (size_t i = 0; i < m->n_leave && yes; i++)
		yes = !matches(m->leave[i], path);
	return yes;
}
