#include "keying/semver.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

/* A version, or one with parts left open ("1.x", "2"). */
struct version {
	long part[3];
	int given;       /* parts that are numbers, from the left */
	const char *pre; /* behind '-', not terminated */
	size_t pre_len;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_ident(char c)
{
	return is_digit(c) || c == '-' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '.';
}

/* Reads one; NULL if there is none at s, else what follows it. */
static const char *read_version(const char *s, struct version *v)
{
	bool open = false;

	*v = (struct version){ .pre = "" };
	while (*s == 'v' || *s == '=')
		s++;
	for (int i = 0; i < 3; i++) {
		if (i) {
			if (*s != '.')
				break;
			s++;
		}
		if (*s == 'x' || *s == 'X' || *s == '*') {
			open = true;
			s++;
		} else if (is_digit(*s)) {
			for (; is_digit(*s); s++) {
				if (v->part[i] > (LONG_MAX - 9) / 10)
					return NULL;
				v->part[i] = v->part[i] * 10 + (*s - '0');
			}
			if (open)
				v->part[i] = 0;
			else
				v->given = i + 1;
		} else {
			return NULL;
		}
	}
	if (*s == '-') {
		v->pre = ++s;
		while (is_ident(*s))
			s++;
		v->pre_len = (size_t)(s - v->pre);
		if (!v->pre_len)
			return NULL;
	}
	if (*s == '+') {
		s++;
		while (is_ident(*s))
			s++;
	}
	return s;
}

/* Identifiers between dots: numbers by value and below words, words by bytes, fewer below more. */
static int compare_pre(const struct version *a, const struct version *b)
{
	const char *x = a->pre, *y = b->pre, *xe = x + a->pre_len, *ye = y + b->pre_len;

	if (!a->pre_len || !b->pre_len)
		return (int)!a->pre_len - (int)!b->pre_len;
	while (x < xe && y < ye) {
		size_t xn = 0, yn = 0, xd = 0, yd = 0;
		int c;

		for (; x + xn < xe && x[xn] != '.'; xn++)
			xd += is_digit(x[xn]);
		for (; y + yn < ye && y[yn] != '.'; yn++)
			yd += is_digit(y[yn]);
		if ((xd == xn) != (yd == yn))
			return xd == xn ? -1 : 1;
		if (xd == xn && xn != yn)
			return xn < yn ? -1 : 1;
		c = memcmp(x, y, xn < yn ? xn : yn);
		if (c)
			return c;
		if (xn != yn)
			return xn < yn ? -1 : 1;
		x += xn + (x + xn < xe);
		y += yn + (y + yn < ye);
	}
	return (x < xe) - (y < ye);
}

static int compare(const struct version *a, const struct version *b)
{
	for (int i = 0; i < 3; i++)
		if (a->part[i] != b->part[i])
			return a->part[i] < b->part[i] ? -1 : 1;
	return compare_pre(a, b);
}

/* The first version, prereleases included, that is above all that begin with the first n parts. */
static struct version above(const struct version *v, int n)
{
	struct version r = { .pre = "0", .pre_len = 1 };

	for (int i = 0; i < n; i++)
		r.part[i] = v->part[i];
	if (n)
		r.part[n - 1]++;
	return r;
}

/* v with its open parts at 0, and its prereleases included. */
static struct version lowest(const struct version *v)
{
	struct version r = *v;

	r.pre = "0";
	r.pre_len = 1;
	return r;
}

/* One comparator, the operator being what is written before the version. */
static bool holds(const struct version *v, char op, bool or_equal, const struct version *c)
{
	struct version low = c->given < 3 ? lowest(c) : *c, high = above(c, c->given);

	switch (op) {
	case '>':
		if (!c->given)
			return or_equal;
		if (c->given < 3)
			return compare(v, or_equal ? &low : &high) >= 0;
		return or_equal ? compare(v, c) >= 0 : compare(v, c) > 0;
	case '<':
		if (!c->given)
			return or_equal;
		if (c->given < 3)
			return compare(v, or_equal ? &high : &low) < 0;
		return or_equal ? compare(v, c) <= 0 : compare(v, c) < 0;
	case '^': {
		int first = 0;

		if (!c->given)
			return true;
		while (first < c->given - 1 && !c->part[first])
			first++;
		high = above(c, first + 1);
		return compare(v, &low) >= 0 && compare(v, &high) < 0;
	}
	case '~':
		if (!c->given)
			return true;
		low.pre_len = c->given < 3 ? 0 : low.pre_len;
		high = above(c, c->given < 2 ? 1 : 2);
		return compare(v, &low) >= 0 && compare(v, &high) < 0;
	default:
		if (!c->given)
			return true;
		if (c->given < 3)
			return compare(v, &low) >= 0 && compare(v, &high) < 0;
		return !compare(v, c);
	}
}

static const char *blanks(const char *s)
{
	while (*s == ' ' || *s == '\t')
		s++;
	return s;
}

/* "1.2 - 1.4.5" at s; NULL if that is not what is there. */
static const char *hyphen(const char *s, const struct version *v, bool *ok)
{
	struct version from, to, low, high;

	s = read_version(s, &from);
	if (!s || (*s != ' ' && *s != '\t'))
		return NULL;
	s = blanks(s);
	if (s[0] != '-' || (s[1] != ' ' && s[1] != '\t'))
		return NULL;
	s = read_version(blanks(s + 1), &to);
	if (!s)
		return NULL;
	low = from.pre_len ? from : lowest(&from);
	high = above(&to, to.given);
	if (from.given && compare(v, &low) < 0)
		*ok = false;
	if (to.given && (to.pre_len ? compare(v, &to) > 0 : compare(v, &high) >= 0))
		*ok = false;
	return s;
}

/* One of the alternatives, up to "||" or the end; *ret_after follows it. -1 if it is no range. */
static int alternative(const struct version *v, const char *s, const char **ret_after)
{
	bool ok = true;
	const char *after;

	s = blanks(s);
	after = hyphen(s, v, &ok);
	if (after)
		s = blanks(after);
	while (*s && *s != '|') {
		struct version c;
		bool or_equal = false;
		char op = '=';

		if (strchr("<>^~", *s)) {
			op = *s++;
			s += op == '~' && *s == '>';
			or_equal = *s == '=' && op != '^' && op != '~';
			s += or_equal;
		}
		s = read_version(blanks(s), &c);
		if (!s || (*s && !strchr(" \t|", *s)))
			return -1;
		ok &= holds(v, op, or_equal, &c);
		s = blanks(s);
	}
	*ret_after = s;
	return ok;
}

bool qk_semver_satisfies(const char *version, const char *range)
{
	struct version v;
	const char *end = read_version(version, &v);
	bool any = false;

	if (!end || *end || v.given < 3)
		return false;
	for (;;) {
		int r = alternative(&v, range, &range);

		if (r < 0)
			return false;
		any |= r;
		if (!*range)
			return any;
		if (range[0] != '|' || range[1] != '|')
			return false;
		range += 2;
	}
}
