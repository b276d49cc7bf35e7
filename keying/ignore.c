#include "keying/ignore.h"

#include "base/buf.h"
#include "base/glob.h"
#include "base/path.h"
#include "base/vec.h"

#include <string.h>

struct rule {
	const char *pattern; /* for qk_glob_match */
	const char *literal; /* the same without its escapes if it has no wildcard, else NULL */
	bool negated, dirs_only;
	bool anchored; /* matched against the path below dir, not against the last component */
};

struct qk_ignore {
	const struct qk_ignore *above;
	const char *dir;
	const struct rule *rules;
	size_t n;
};

/* What is no wildcard in a .gitignore but one in base/glob.h is escaped. */
static void add_pattern(struct qk_buf *b, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (s[i] == '\\' && i + 1 < n)
			qk_buf_addch(b, s[i++]);
		else if (s[i] == '{' || s[i] == '(')
			qk_buf_addch(b, '\\');
		qk_buf_addch(b, s[i]);
	}
}

/* One line; false if it has no rule. */
static bool parse_rule(struct qk_arena *a, const char *s, size_t n, struct rule *r)
{
	qk_autobuf struct qk_buf b = QK_BUF_INIT;

	*r = (struct rule){ 0 };
	if (n && s[n - 1] == '\r')
		n--;
	while (n && s[n - 1] == ' ' && !(n > 1 && s[n - 2] == '\\'))
		n--;
	if (!n || *s == '#')
		return false;
	if (*s == '!') {
		r->negated = true;
		s++;
		n--;
	}
	if (n && s[n - 1] == '/') {
		r->dirs_only = true;
		n--;
	}
	if (!n)
		return false;
	r->anchored = memchr(s, '/', n) != NULL;
	if (*s == '/') {
		s++;
		n--;
	}
	add_pattern(&b, s, n);
	if (n > 2 && !memcmp(s + n - 3, "/**", 3))
		qk_buf_addstr(&b, "/*"); /* everything inside, but not the directory itself */
	r->pattern = qk_arena_strndup(a, b.s, b.len);
	if (!qk_glob_is_pattern(r->pattern))
		r->literal = r->pattern;
	return b.len > 0;
}

const struct qk_ignore *qk_ignore_add(struct qk_arena *a, const struct qk_ignore *above,
	const char *dir, const char *text, size_t n)
{
	const char *end = text + n;
	QK_VEC(struct rule) rules = { 0 };
	struct qk_ignore *node;
	struct rule *copy;

	while (text < end) {
		const char *nl = memchr(text, '\n', (size_t)(end - text));
		size_t len = (size_t)((nl ? nl : end) - text);
		struct rule r;

		if (parse_rule(a, text, len, &r))
			qk_vec_push(&rules, r);
		text += len + 1;
	}
	if (!rules.n)
		return above;
	copy = qk_arena_alloc(a, rules.n * sizeof(*copy));
	memcpy(copy, rules.v, rules.n * sizeof(*copy));
	node = qk_arena_alloc(a, sizeof(*node));
	node->above = above;
	node->dir = qk_arena_strdup(a, dir);
	node->rules = copy;
	node->n = rules.n;
	qk_vec_release(&rules);
	return node;
}

static bool rule_matches(const struct rule *r, const char *below, const char *base, bool is_dir)
{
	const char *s = r->anchored ? below : base;

	if (r->dirs_only && !is_dir)
		return false;
	return r->literal ? !strcmp(r->literal, s) : qk_glob_match(r->pattern, s);
}

bool qk_ignore_has(const struct qk_ignore *rules, const char *path, bool is_dir)
{
	const char *base = qk_path_base(path);

	for (; rules; rules = rules->above) {
		const char *below = *rules->dir ? qk_path_below(path, rules->dir) : path;

		for (size_t i = rules->n; below && i-- > 0;)
			if (rule_matches(&rules->rules[i], below, base, is_dir))
				return !rules->rules[i].negated;
	}
	return false;
}
