#include "keying/jsonc.h"

#include "base/fdio.h"
#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct member {
	struct qk_json_member m;
	uint32_t hash, order;
};

struct parser {
	struct qk_arena *arena;
	const char *file;
	const char *p, *end;
	const char *line_start;
	uint32_t line;
	int depth;
	QK_VEC(const struct qk_json *) items; /* of the arrays that are open, innermost last */
	QK_VEC(struct member) members;
	struct qk_buf text; /* of a string with escapes */
	const struct qk_json_repeat **repeats;
	struct qk_err *err;
};

static int fail_at(struct parser *ps, const char *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int fail_at(struct parser *ps, const char *at, const char *fmt, ...)
{
	char msg[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	return qk_fail(ps->err, -EINVAL, "%s:%u:%u: %s", ps->file, ps->line,
		(unsigned int)(at - ps->line_start) + 1, msg);
}

static int fail_expected(struct parser *ps, const char *what)
{
	unsigned char c;

	if (ps->p == ps->end)
		return fail_at(ps, ps->p, "expected %s, but the file ends", what);
	c = (unsigned char)*ps->p;
	if (c < 0x20 || c >= 0x7f)
		return fail_at(ps, ps->p, "expected %s, not byte 0x%02x", what, c);
	return fail_at(ps, ps->p, "expected %s", what);
}

/* Passes over blanks and comments. */
static int skip(struct parser *ps)
{
	while (ps->p < ps->end) {
		if (*ps->p == '\n') {
			ps->line++;
			ps->line_start = ++ps->p;
		} else if (*ps->p == ' ' || *ps->p == '\t' || *ps->p == '\r') {
			ps->p++;
		} else if (*ps->p == '/' && ps->end - ps->p > 1 && ps->p[1] == '/') {
			const char *nl = memchr(ps->p, '\n', (size_t)(ps->end - ps->p));

			ps->p = nl ? nl : ps->end;
		} else if (*ps->p == '/' && ps->end - ps->p > 1 && ps->p[1] == '*') {
			const char *start = ps->p, *start_line = ps->line_start;
			uint32_t line = ps->line;

			for (ps->p += 2; ps->p < ps->end; ps->p++) {
				if (*ps->p == '\n') {
					ps->line++;
					ps->line_start = ps->p + 1;
				} else if (*ps->p == '*' && ps->end - ps->p > 1 &&
					   ps->p[1] == '/') {
					break;
				}
			}
			if (ps->p == ps->end) {
				ps->line = line;
				ps->line_start = start_line;
				return fail_at(ps, start, "a comment that does not end");
			}
			ps->p += 2;
		} else {
			break;
		}
	}
	return 0;
}

static struct qk_json *new_value(struct parser *ps, enum qk_json_type type, const char *at)
{
	struct qk_json *v = qk_arena_alloc(ps->arena, sizeof(*v));

	v->type = type;
	v->line = ps->line;
	v->column = (uint32_t)(at - ps->line_start) + 1;
	v->file = ps->file;
	return v;
}

/* Length of the UTF-8 sequence at p, 0 if it is none: no overlong forms, surrogates, or > U+10FFFF.
 */
static size_t utf8_len(const char *s, const char *end)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t n = *p < 0x80   ? 1
		   : *p < 0xc2 ? 0
		   : *p < 0xe0 ? 2
		   : *p < 0xf0 ? 3
		   : *p < 0xf5 ? 4
			       : 0;

	if (n > (size_t)(end - s))
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) ||
		(*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f))
		return 0;
	return n;
}

static void add_utf8(struct qk_buf *b, uint32_t c)
{
	if (c < 0x80) {
		qk_buf_addch(b, (char)c);
	} else if (c < 0x800) {
		qk_buf_addch(b, (char)(0xc0 | c >> 6));
		qk_buf_addch(b, (char)(0x80 | (c & 0x3f)));
	} else if (c < 0x10000) {
		qk_buf_addch(b, (char)(0xe0 | c >> 12));
		qk_buf_addch(b, (char)(0x80 | (c >> 6 & 0x3f)));
		qk_buf_addch(b, (char)(0x80 | (c & 0x3f)));
	} else {
		qk_buf_addch(b, (char)(0xf0 | c >> 18));
		qk_buf_addch(b, (char)(0x80 | (c >> 12 & 0x3f)));
		qk_buf_addch(b, (char)(0x80 | (c >> 6 & 0x3f)));
		qk_buf_addch(b, (char)(0x80 | (c & 0x3f)));
	}
}

/* The four hexadecimal digits behind "\u" at p; -1 if they are not there. */
static int32_t hex4(const char *p, const char *end)
{
	int32_t v = 0;

	if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
		return -1;
	for (int i = 2; i < 6; i++) {
		char c = p[i];

		if (c >= '0' && c <= '9')
			v = v * 16 + (c - '0');
		else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
			v = v * 16 + ((c | 0x20) - 'a' + 10);
		else
			return -1;
	}
	return v;
}

static int parse_escape(struct parser *ps)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *p = ps->p, *known;
	int32_t c;

	if (ps->end - p < 2)
		return fail_at(ps, p, "a string that does not end");
	known = p[1] ? strchr(from, p[1]) : NULL;
	if (known) {
		qk_buf_addch(&ps->text, to[known - from]);
		ps->p += 2;
		return 0;
	}
	c = hex4(p, ps->end);
	if (c < 0)
		return fail_at(ps, p,
			p[1] == 'u' ? "expected four hexadecimal digits behind \\u"
				    : "an unknown escape in a string");
	ps->p += 6;
	if (c >= 0xd800 && c < 0xdc00) {
		int32_t low = hex4(ps->p, ps->end);

		if (low >= 0xdc00 && low < 0xe000) {
			c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
			ps->p += 6;
		}
	}
	if (!c)
		return fail_at(ps, p, "a NUL character in a string");
	add_utf8(&ps->text, c >= 0xd800 && c < 0xe000 ? 0xfffd : (uint32_t)c);
	return 0;
}

/* A string in the arena; *ret_len is without the terminator. p is at the opening quote. */
static int parse_string(struct parser *ps, const char **ret, uint32_t *ret_len)
{
	const char *open = ps->p++, *run = ps->p;

	qk_buf_reset(&ps->text);
	for (;;) {
		unsigned char c = ps->p < ps->end ? (unsigned char)*ps->p : '\n';
		size_t n = 1;
		int r;

		if (c == '"')
			break;
		if (c == '\\') {
			qk_buf_add(&ps->text, run, (size_t)(ps->p - run));
			r = parse_escape(ps);
			if (r)
				return r;
			run = ps->p;
			continue;
		}
		if (c == '\n' || c == '\r')
			return fail_at(ps, open, "a string that does not end");
		if (c < 0x20)
			return fail_at(ps, ps->p, "a control character (0x%02x) in a string", c);
		if (c >= 0x80)
			n = utf8_len(ps->p, ps->end);
		if (!n)
			return fail_at(ps, ps->p, "byte 0x%02x is not UTF-8", c);
		ps->p += n;
	}
	if (ps->text.len) {
		qk_buf_add(&ps->text, run, (size_t)(ps->p - run));
		*ret_len = (uint32_t)ps->text.len;
		*ret = qk_arena_strndup(ps->arena, ps->text.s, ps->text.len);
	} else {
		*ret_len = (uint32_t)(ps->p - run);
		*ret = qk_arena_strndup(ps->arena, run, (size_t)(ps->p - run));
	}
	ps->p++;
	return 0;
}

static const char *digits(const char *p, const char *end)
{
	while (p < end && *p >= '0' && *p <= '9')
		p++;
	return p;
}

static int parse_number(struct parser *ps, const struct qk_json **ret)
{
	const char *p = ps->p, *from;
	struct qk_json *v;

	p += *p == '-';
	from = p;
	p = digits(p, ps->end);
	if (p == from || (*from == '0' && p - from > 1))
		return fail_at(ps, ps->p, "not a number");
	if (p < ps->end && *p == '.') {
		from = ++p;
		p = digits(p, ps->end);
		if (p == from)
			return fail_at(ps, ps->p, "not a number");
	}
	if (p < ps->end && (*p == 'e' || *p == 'E')) {
		p++;
		p += p < ps->end && (*p == '+' || *p == '-');
		from = p;
		p = digits(p, ps->end);
		if (p == from)
			return fail_at(ps, ps->p, "not a number");
	}
	v = new_value(ps, QK_JSON_NUMBER, ps->p);
	v->n = (uint32_t)(p - ps->p);
	v->s = qk_arena_strndup(ps->arena, ps->p, v->n);
	ps->p = p;
	*ret = v;
	return 0;
}

static int parse_word(struct parser *ps, const struct qk_json **ret)
{
	static const struct {
		const char *word;
		enum qk_json_type type;
		bool boolean;
	} words[] = {
		{ "null", QK_JSON_NULL, false },
		{ "true", QK_JSON_BOOL, true },
		{ "false", QK_JSON_BOOL, false },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		size_t n = strlen(words[i].word);
		struct qk_json *v;

		if ((size_t)(ps->end - ps->p) < n || memcmp(ps->p, words[i].word, n))
			continue;
		v = new_value(ps, words[i].type, ps->p);
		v->boolean = words[i].boolean;
		ps->p += n;
		*ret = v;
		return 0;
	}
	return fail_expected(ps, "a value");
}

static int parse_value(struct parser *ps, const struct qk_json **ret);

static int parse_array(struct parser *ps, const struct qk_json **ret)
{
	struct qk_json *v = new_value(ps, QK_JSON_ARRAY, ps->p);
	size_t first = ps->items.n;
	const struct qk_json **items;
	int r;

	ps->p++;
	for (bool more = true;; more = false) {
		const struct qk_json *item;

		r = skip(ps);
		if (r)
			return r;
		if (ps->p < ps->end && *ps->p == ']')
			break;
		if (!more) {
			if (ps->p == ps->end || *ps->p != ',')
				return fail_expected(ps, "',' or ']'");
			ps->p++;
			r = skip(ps);
			if (r)
				return r;
			if (ps->p < ps->end && *ps->p == ']')
				break;
		}
		r = parse_value(ps, &item);
		if (r)
			return r;
		qk_vec_push(&ps->items, item);
	}
	ps->p++;
	v->n = (uint32_t)(ps->items.n - first);
	items = qk_arena_alloc(ps->arena, v->n * sizeof(*items));
	if (v->n)
		memcpy(items, ps->items.v + first, v->n * sizeof(*items));
	v->items = items;
	ps->items.n = first;
	*ret = v;
	return 0;
}

static int by_hash(const void *a, const void *b)
{
	const struct member *x = *(const struct member *const *)a,
			    *y = *(const struct member *const *)b;
	int c;

	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	c = strcmp(x->m.key, y->m.key);
	return c ? c : x->order < y->order ? -1 : 1;
}

/* The later of two equal keys gives the first its value, is remembered, and goes. */
static void merge_repeat(struct parser *ps, struct member *first, struct member *later)
{
	if (ps->repeats) {
		struct qk_json_repeat *rep = qk_arena_alloc(ps->arena, sizeof(*rep));

		rep->key = later->m.key;
		rep->file = ps->file;
		rep->line = later->m.line;
		rep->column = later->m.column;
		rep->next = *ps->repeats;
		*ps->repeats = rep;
	}
	first->m.value = later->m.value;
	first->m.line = later->m.line;
	first->m.column = later->m.column;
	later->m.value = NULL;
}

/* Drops the repeats among n members; the number left. */
static size_t drop_repeats(struct parser *ps, struct member *m, size_t n)
{
	size_t kept = 0;

	if (n <= 12) {
		for (size_t i = 1; i < n; i++)
			for (size_t j = 0; j < i; j++)
				if (m[j].hash == m[i].hash && m[j].m.value &&
					!strcmp(m[j].m.key, m[i].m.key)) {
					merge_repeat(ps, &m[j], &m[i]);
					break;
				}
	} else {
		qk_autofree struct member **sorted = qk_alloc(n * sizeof(*sorted));

		for (size_t i = 0; i < n; i++)
			sorted[i] = &m[i];
		qsort(sorted, n, sizeof(*sorted), by_hash);
		for (size_t i = 1, first = 0; i < n; i++) {
			if (sorted[i]->hash == sorted[first]->hash &&
				!strcmp(sorted[i]->m.key, sorted[first]->m.key))
				merge_repeat(ps, sorted[first], sorted[i]);
			else
				first = i;
		}
	}
	for (size_t i = 0; i < n; i++)
		if (m[i].m.value)
			m[kept++] = m[i];
	return kept;
}

static uint32_t hash_key(const char *s)
{
	uint32_t h = 2166136261u;

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 16777619u;
	return h;
}

static int parse_member(struct parser *ps, struct member *m)
{
	uint32_t len;
	int r;

	if (ps->p == ps->end || *ps->p != '"')
		return fail_expected(ps, "a key in double quotes");
	m->m.line = ps->line;
	m->m.column = (uint32_t)(ps->p - ps->line_start) + 1;
	r = parse_string(ps, &m->m.key, &len);
	if (!r)
		r = skip(ps);
	if (r)
		return r;
	if (ps->p == ps->end || *ps->p != ':')
		return fail_expected(ps, "':'");
	ps->p++;
	r = skip(ps);
	if (r)
		return r;
	m->hash = hash_key(m->m.key);
	return parse_value(ps, &m->m.value);
}

static int parse_object(struct parser *ps, const struct qk_json **ret)
{
	struct qk_json *v = new_value(ps, QK_JSON_OBJECT, ps->p);
	size_t first = ps->members.n, n;
	struct qk_json_member *members;
	int r;

	ps->p++;
	for (bool more = true;; more = false) {
		struct member m = { 0 };

		r = skip(ps);
		if (r)
			return r;
		if (ps->p < ps->end && *ps->p == '}')
			break;
		if (!more) {
			if (ps->p == ps->end || *ps->p != ',')
				return fail_expected(ps, "',' or '}'");
			ps->p++;
			r = skip(ps);
			if (r)
				return r;
			if (ps->p < ps->end && *ps->p == '}')
				break;
		}
		r = parse_member(ps, &m);
		if (r)
			return r;
		m.order = (uint32_t)(ps->members.n - first);
		qk_vec_push(&ps->members, m);
	}
	ps->p++;
	n = drop_repeats(ps, ps->members.v + first, ps->members.n - first);
	members = qk_arena_alloc(ps->arena, n * sizeof(*members));
	for (size_t i = 0; i < n; i++)
		members[i] = ps->members.v[first + i].m;
	v->n = (uint32_t)n;
	v->members = members;
	ps->members.n = first;
	*ret = v;
	return 0;
}

static int parse_value(struct parser *ps, const struct qk_json **ret)
{
	struct qk_json *v;
	int r;

	if (ps->p == ps->end)
		return fail_expected(ps, "a value");
	switch (*ps->p) {
	case '{':
	case '[':
		if (ps->depth == QK_JSON_DEPTH_MAX)
			return fail_at(ps, ps->p, "nested more than %d deep", QK_JSON_DEPTH_MAX);
		ps->depth++;
		r = *ps->p == '{' ? parse_object(ps, ret) : parse_array(ps, ret);
		ps->depth--;
		return r;
	case '"':
		v = new_value(ps, QK_JSON_STRING, ps->p);
		*ret = v;
		return parse_string(ps, &v->s, &v->n);
	case '-':
	case '0' ... '9': return parse_number(ps, ret);
	default: return parse_word(ps, ret);
	}
}

int qk_json_parse(struct qk_arena *a, const char *file, const char *p, size_t n,
	const struct qk_json **ret, const struct qk_json_repeat **repeats, struct qk_err *err)
{
	struct parser ps = {
		.arena = a,
		.file = file,
		.p = p,
		.end = p + n,
		.line = 1,
		.text = QK_BUF_INIT,
		.repeats = repeats,
		.err = err,
	};
	const struct qk_json *v = NULL;
	int r;

	if (n > QK_JSON_SIZE_MAX)
		return qk_fail(
			err, -EFBIG, "%s: larger than %d MB", file, QK_JSON_SIZE_MAX / 1000000);
	if (n >= 3 && !memcmp(p, "\xef\xbb\xbf", 3))
		ps.p += 3;
	ps.line_start = ps.p;
	r = skip(&ps);
	if (!r)
		r = parse_value(&ps, &v);
	if (!r)
		r = skip(&ps);
	if (!r && ps.p < ps.end)
		r = fail_expected(&ps, "the end of the file");
	qk_vec_release(&ps.items);
	qk_vec_release(&ps.members);
	qk_buf_release(&ps.text);
	if (!r)
		*ret = v;
	return r;
}

int qk_json_read(struct qk_arena *a, const char *path, const char *name, const struct qk_json **ret,
	const struct qk_json_repeat **repeats, struct qk_err *err)
{
	qk_autobuf struct qk_buf text = QK_BUF_INIT;
	struct qk_err why = QK_ERR_INIT;
	int r = qk_read_file(AT_FDCWD, path, QK_JSON_SIZE_MAX, &text, &why);

	if (r == -EFBIG)
		return qk_fail(err, r, "%s: larger than %d MB", name, QK_JSON_SIZE_MAX / 1000000);
	if (r)
		return qk_fail(err, -r, "%s", name);
	return qk_json_parse(a, qk_arena_strdup(a, name), text.s, text.len, ret, repeats, err);
}
