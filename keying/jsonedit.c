#include "keying/jsonedit.h"

#include "base/mem.h"
#include "keying/jsonc.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* An object or array as it stands in the text; offsets. */
struct container {
	size_t open, close; /* of the brackets */
	size_t start, end;  /* of the last thing in it; end is 0 if it is empty */
	size_t comma;       /* behind the comma after that, or 0 */
};

static size_t skip_string(const char *s, size_t i)
{
	for (i++; s[i] != '"'; i++)
		i += s[i] == '\\';
	return i + 1;
}

/* Behind the comment that begins at i; i if none does. */
static size_t skip_comment(const char *s, size_t i)
{
	if (s[i] == '/' && s[i + 1] == '/')
		return i + strcspn(s + i, "\n");
	if (s[i] == '/' && s[i + 1] == '*')
		return (size_t)(strstr(s + i + 2, "*/") - s) + 2;
	return i;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The text parses: brackets, strings and comments are known to end. */
static void look(const char *s, size_t open, struct container *c)
{
	size_t depth = 0, i = open + 1, behind;

	*c = (struct container){ .open = open };
	for (;; i = behind) {
		behind = skip_comment(s, i);
		if (behind != i)
			continue;
		behind = s[i] == '"' ? skip_string(s, i) : i + 1;
		if (is_blank(s[i]))
			continue;
		if (!depth && (s[i] == ']' || s[i] == '}'))
			break;
		if (!depth && s[i] == ',') {
			c->comma = behind;
			continue;
		}
		depth += s[i] == '[' || s[i] == '{';
		if (!c->end || c->comma)
			c->start = i;
		c->comma = 0;
		c->end = behind;
		depth -= s[i] == ']' || s[i] == '}';
	}
	c->close = i;
}

static void insert(struct qk_buf *text, size_t at, const struct qk_buf *what)
{
	qk_autobuf struct qk_buf whole = QK_BUF_INIT;

	qk_buf_add(&whole, text->s, at);
	qk_buf_add(&whole, what->s, what->len);
	qk_buf_add(&whole, text->s + at, text->len - at);
	qk_buf_reset(text);
	qk_buf_add(text, whole.s, whole.len);
}

/* Where a new line can begin behind i: what comments follow on this one belong to what is before. */
static size_t line_end(const char *s, size_t i)
{
	for (;;) {
		size_t behind = skip_comment(s, i);

		if (behind == i && s[i] != ' ' && s[i] != '\t')
			return i;
		i = behind == i ? i + 1 : behind;
	}
}

/* How many blanks its line begins with, if nothing else stands before the last thing. */
static bool own_line(const char *s, const struct container *c, size_t *ret_indent)
{
	size_t i = c->start;

	while (i > 0 && (s[i - 1] == ' ' || s[i - 1] == '\t'))
		i--;
	*ret_indent = c->start - i;
	return i > 0 && s[i - 1] == '\n';
}

/* things: items, or members with their keys. */
static void add(struct qk_buf *text, size_t open, const char *const *things, size_t n)
{
	const char *end_of_line = strstr(text->s, "\r\n") ? "\r\n" : "\n";
	qk_autobuf struct qk_buf what = QK_BUF_INIT, comma = QK_BUF_INIT;
	struct container c;
	size_t indent, at;
	bool lines;

	look(text->s, open, &c);
	lines = c.end && own_line(text->s, &c, &indent);
	at = c.comma ? c.comma : c.end ? c.end : open + 1;
	for (size_t i = 0; i < n; i++) {
		if (lines)
			qk_buf_addf(&what, "%s%s%.*s", i ? "," : "", end_of_line, (int)indent,
				text->s + c.start - indent);
		else if (i || c.end)
			qk_buf_addstr(&what, i || !c.comma ? ", " : " ");
		else
			qk_buf_addstr(&what, text->s[open] == '{' ? " " : "");
		qk_buf_addstr(&what, things[i]);
	}
	if (c.comma)
		qk_buf_addch(&what, ',');
	if (!c.end && text->s[open] == '{' && c.close == open + 1)
		qk_buf_addch(&what, ' ');
	if (lines)
		insert(text, line_end(text->s, at), &what);
	else
		insert(text, at, &what);
	if (lines && !c.comma) {
		qk_buf_addch(&comma, ',');
		insert(text, c.end, &comma);
	}
}

/* Columns count bytes, and a byte order mark is none of them. */
static size_t offset(const struct qk_buf *text, const struct qk_json *v)
{
	size_t at = !strncmp(text->s, "\xef\xbb\xbf", 3) ? 3 : 0;

	for (uint32_t line = 1; line < v->line; line++)
		at += strcspn(text->s + at, "\n") + 1;
	return at + v->column - 1;
}

static void array_text(struct qk_buf *out, const char *const *base, size_t n_base,
	const char *const *items, size_t n)
{
	qk_buf_addch(out, '[');
	for (size_t i = 0; i < n_base + n; i++) {
		qk_buf_addstr(out, i ? ", " : "");
		qk_buf_addstr(out, i < n_base ? base[i] : items[i - n_base]);
	}
	qk_buf_addch(out, ']');
}

/* "a": { "b": [...] } */
static void nested(struct qk_buf *out, struct qk_arena *a, const char *const *keys, const char *array)
{
	qk_json_write(out, qk_json_new_string(a, NULL, keys[0]), false);
	qk_buf_addstr(out, ": ");
	if (!keys[1]) {
		qk_buf_addstr(out, array);
		return;
	}
	qk_buf_addstr(out, "{ ");
	nested(out, a, keys + 1, array);
	qk_buf_addstr(out, " }");
}

static int append(struct qk_arena *a, struct qk_buf *text, const char *name, const char *const *keys,
	const char *const *base, size_t n_base, const char *const *items, size_t n, struct qk_err *err)
{
	qk_autobuf struct qk_buf array = QK_BUF_INIT, member = QK_BUF_INIT;
	const struct qk_json *at, *next;
	int r = qk_json_parse(a, name, text->s, text->len, &at, NULL, err);

	if (r)
		return r;
	for (; at->type == QK_JSON_OBJECT && *keys && (next = qk_json_get(at, *keys)); keys++)
		at = next;
	if (!*keys) {
		if (at->type != QK_JSON_ARRAY)
			return qk_json_fail(at, err, "must be an array, not %s", qk_json_type_name(at->type));
		add(text, offset(text, at), items, n);
		return 0;
	}
	if (at->type != QK_JSON_OBJECT)
		return qk_json_fail(at, err, "must be an object, not %s", qk_json_type_name(at->type));
	array_text(&array, base, n_base, items, n);
	nested(&member, a, keys, array.s);
	add(text, offset(text, at), (const char *const[]){ member.s }, 1);
	return 0;
}

int qk_jsonedit_append(struct qk_buf *text, const char *name, const char *const *keys,
	const char *const *base, size_t n_base, const char *const *items, size_t n, struct qk_err *err)
{
	qk_autobuf struct qk_buf old = QK_BUF_INIT;
	struct qk_arena a = { 0 };
	const struct qk_json *ignored;
	int r;

	qk_buf_add(&old, text->s, text->len);
	r = append(&a, text, name, keys, base, n_base, items, n, err);
	if (!r) /* what was made is read again before anybody writes it */
		r = qk_json_parse(&a, name, text->s, text->len, &ignored, NULL, err);
	if (r) {
		qk_buf_reset(text);
		qk_buf_add(text, old.s, old.len);
	}
	qk_arena_release(&a);
	return r;
}
