#include "keying/tokens.h"

#include "base/path.h"
#include "base/vec.h"
#include "keying/workspace.h"

#include <string.h>

static void replace_all(struct qk_buf *b, const char *s, const char *token, const char *by)
{
	for (const char *hit; (hit = strstr(s, token)); s = hit + strlen(token)) {
		qk_buf_add(b, s, (size_t)(hit - s));
		qk_buf_addstr(b, by);
	}
	qk_buf_addstr(b, s);
}

static int in_string(struct qk_arena *a, const struct qk_json *v, const char *project_root,
	const char *project_name, const struct qk_json **ret, struct qk_err *err)
{
	static const char workspace[] = "{workspaceRoot}";
	qk_autobuf struct qk_buf once = QK_BUF_INIT, twice = QK_BUF_INIT;
	const char *s = v->s;

	*ret = v;
	if (!strchr(s, '{'))
		return 0;
	if (!strncmp(s, workspace, strlen(workspace))) {
		s += strlen(workspace);
		s += *s == '/';
	}
	if (strstr(s, workspace))
		return qk_json_fail(
			v, err, "%s may only be at the beginning of an option", workspace);
	replace_all(&once, s, "{projectRoot}", project_root);
	replace_all(&twice, once.s, "{projectName}", project_name);
	if (strcmp(twice.s, v->s))
		*ret = qk_json_new_string(a, v, twice.s);
	return 0;
}

static int in_array(struct qk_arena *a, const struct qk_json *v, const char *project_root,
	const char *project_name, const struct qk_json **ret, struct qk_err *err)
{
	qk_autofree const struct qk_json **items = qk_alloc(v->n * sizeof(struct qk_json *));
	bool changed = false;

	for (uint32_t i = 0; i < v->n; i++) {
		int r = qk_tokens_in_options(
			a, v->items[i], project_root, project_name, &items[i], err);

		if (r)
			return r;
		changed |= items[i] != v->items[i];
	}
	*ret = changed ? qk_json_new_array(a, v, items, v->n) : v;
	return 0;
}

int qk_tokens_in_options(struct qk_arena *a, const struct qk_json *v, const char *project_root,
	const char *project_name, const struct qk_json **ret, struct qk_err *err)
{
	qk_autofree struct qk_json_member *members = NULL;
	bool changed = false;

	*ret = v;
	if (!v)
		return 0;
	if (v->type == QK_JSON_STRING)
		return in_string(a, v, project_root, project_name, ret, err);
	if (v->type == QK_JSON_ARRAY)
		return in_array(a, v, project_root, project_name, ret, err);
	if (v->type != QK_JSON_OBJECT)
		return 0;
	members = qk_alloc(v->n * sizeof(*members));
	for (uint32_t i = 0; i < v->n; i++) {
		int r;

		members[i] = v->members[i];
		r = qk_tokens_in_options(
			a, v->members[i].value, project_root, project_name, &members[i].value, err);
		if (r)
			return r;
		changed |= members[i].value != v->members[i].value;
	}
	*ret = changed ? qk_json_new_object(a, v, members, v->n) : v;
	return 0;
}

struct scope {
	const struct qk_project *project;
	const struct qk_json *options;
	const char *root; /* what {workspaceRoot} stands for */
	bool missing;     /* a known token had no value */
};

/* The value of one reference (n bytes); 1 = appended, 0 = known but without a value, -1 = none. */
static int reference(struct qk_buf *out, const char *s, size_t n, const struct scope *sc)
{
	static const char options[] = "options.";
	const struct qk_json *v = sc->options;
	qk_autofree char *path = NULL;
	char *next;

#define IS(name) (n == strlen(name) && !memcmp(s, name, n))
	if (IS("workspaceRoot"))
		return qk_buf_addstr(out, sc->root), 1;
	if (IS("projectRoot") || IS("project.root"))
		return qk_buf_addstr(out, strcmp(sc->project->root, ".") ? sc->project->root : ""),
		       1;
	if (IS("projectName") || IS("project.name"))
		return qk_buf_addstr(out, sc->project->name), 1;
#undef IS
	if (n <= strlen(options) || memcmp(s, options, strlen(options)))
		return -1;
	path = qk_strndup(s + strlen(options), n - strlen(options));
	for (char *step = path; step; step = next) {
		next = strchr(step, '.');
		if (next)
			*next++ = '\0';
		v = qk_json_get(v, step);
	}
	if (!v || v->type == QK_JSON_NULL || (v->type == QK_JSON_STRING && !v->n))
		return 0;
	if (v->type == QK_JSON_STRING)
		qk_buf_add(out, v->s, v->n);
	else
		qk_json_write(out, v, false);
	return 1;
}

enum { NESTING_MAX = 32 };

/* The '}' that closes the '{' at p; NULL without one, or if too many open before it. */
static const char *closing(const char *p, const char *end)
{
	int depth = 0;

	for (; p < end && depth <= NESTING_MAX; p++) {
		depth += *p == '{';
		if (*p == '}' && !--depth)
			return p;
	}
	return NULL;
}

static void expand(struct qk_buf *out, const char *s, const char *end, struct scope *sc);

/* The inside of a token; false if it is none. A known token without a value sets sc->missing. */
static bool token(struct qk_buf *out, const char *s, const char *end, struct scope *sc)
{
	bool first = true;

	while (s < end) {
		const char *part = s, *part_end;
		int depth = 0, r;

		while (s < end && (depth || s[0] != '?' || s + 1 == end || s[1] != '?')) {
			depth += *s == '{';
			depth -= *s == '}';
			s++;
		}
		part_end = s;
		while (part < part_end && *part == ' ')
			part++;
		while (part < part_end && part_end[-1] == ' ')
			part_end--;
		r = reference(out, part, (size_t)(part_end - part), sc);
		if (r < 0 && first)
			return false;
		if (r > 0)
			return true;
		if (r < 0) {
			expand(out, part, part_end, sc);
			return true;
		}
		first = false;
		s += s < end ? 2 : 0;
	}
	sc->missing = true;
	return !first;
}

static void expand(struct qk_buf *out, const char *s, const char *end, struct scope *sc)
{
	while (s < end) {
		const char *open = memchr(s, '{', (size_t)(end - s));
		const char *close = open ? closing(open, end) : NULL;

		if (!open)
			open = end;
		qk_buf_add(out, s, (size_t)(open - s));
		s = open;
		if (s == end)
			break;
		if (close) {
			bool missing = sc->missing;
			size_t len = out->len;

			if (token(out, s + 1, close, sc)) {
				if (sc->missing && !missing && out->len == len)
					qk_buf_add(
						out, s, (size_t)(close + 1 - s)); /* as written */
				s = close + 1;
				continue;
			}
		}
		qk_buf_addch(out, *s++); /* "{a,{projectRoot}}": a token can still be inside */
	}
}

void qk_tokens_text(struct qk_buf *out, const char *text, const struct qk_project *project,
	const struct qk_json *options, const char *root)
{
	struct scope sc = { .project = project, .options = options, .root = root };

	expand(out, text, text + strlen(text), &sc);
}

/* True if the clean form of the relative path climbs above where it starts. */
static bool leads_out(const char *path)
{
	long depth = 0;

	while (*path) {
		size_t n = strcspn(path, "/");

		if (n == 2 && path[0] == '.' && path[1] == '.')
			depth--;
		else if (n && !(n == 1 && path[0] == '.'))
			depth++;
		if (depth < 0)
			return true;
		path += n;
		path += *path == '/';
	}
	return false;
}

bool qk_tokens_path(struct qk_buf *out, const char *text, const struct qk_project *project,
	const struct qk_json *options, const char **ret_why)
{
	qk_autobuf struct qk_buf raw = QK_BUF_INIT, clean = QK_BUF_INIT;
	struct scope sc = { .project = project, .options = options, .root = "" };
	bool negated = *text == '!' && text[1] != '(', rooted;
	const char *why = NULL, *p;

	text += negated;
	rooted = *text == '/';
	expand(&raw, text, text + strlen(text), &sc);
	p = raw.s;
	if (sc.missing)
		why = "a token in it has no value";
	else if (rooted || (*text == '{' && !strncmp(text, "{options.", 9) && *p == '/'))
		why = "it is absolute";
	else if (leads_out(p))
		why = "it leads out of the workspace";
	if (ret_why)
		*ret_why = why;
	if (why)
		return false;
	while (*p == '/')
		p++;
	qk_path_clean(&clean, "/", p);
	if (negated)
		qk_buf_addch(out, '!');
	qk_buf_addstr(out, clean.len > 1 ? clean.s + 1 : ".");
	return true;
}
