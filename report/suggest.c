#include "report/suggest.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The paths [from, to), all below the directory that is the first len bytes of each; or one path. */
struct piece {
	size_t from, to, len;
	size_t parts; /* what it falls apart into */
};

struct cutting {
	const char **paths;
	QK_VEC(struct piece) pieces;
};

static const char workspace[] = "{workspaceRoot}";

static int in_order(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_path(const struct piece *p)
{
	return p->to - p->from == 1;
}

/* Where the part of p that begins at `at` ends; *ret_len: bytes of its directory. */
static size_t part_end(const struct cutting *c, const struct piece *p, size_t at, size_t *ret_len)
{
	const char *first = c->paths[at];
	size_t start = p->len + (p->len > 0), len = start + strcspn(first + start, "/"), end = at + 1;

	while (first[len] && end < p->to && !strncmp(c->paths[end], first, len + 1))
		end++;
	*ret_len = len;
	return end;
}

static void add_piece(struct cutting *c, size_t from, size_t to, size_t len)
{
	struct piece p = { .from = from, .to = to, .len = len };
	size_t ignored;

	for (size_t at = from; at < to; at = part_end(c, &p, at, &ignored))
		p.parts++;
	qk_vec_push(&c->pieces, p);
}

static void cut(struct cutting *c, size_t i)
{
	struct piece p = c->pieces.v[i];
	size_t len, end;

	c->pieces.v[i] = c->pieces.v[--c->pieces.n];
	for (size_t at = p.from; at < p.to; at = end) {
		end = part_end(c, &p, at, &len);
		add_piece(c, at, end, len);
	}
}

static bool must_be_cut(const struct cutting *c, const struct piece *p)
{
	return !p->len || (p->len == sizeof(workspace) - 1 &&
				  !strncmp(c->paths[p->from], workspace, p->len));
}

/* The piece to cut next: what must be, else the largest that fits; the number of pieces if none. */
static size_t next(const struct cutting *c, size_t most)
{
	size_t best = c->pieces.n;

	for (size_t i = 0; i < c->pieces.n; i++) {
		const struct piece *p = &c->pieces.v[i];

		if (is_path(p))
			continue;
		if (must_be_cut(c, p))
			return i;
		if (c->pieces.n - 1 + p->parts > most)
			continue;
		if (best == c->pieces.n ||
			p->to - p->from > c->pieces.v[best].to - c->pieces.v[best].from)
			best = i;
	}
	return best;
}

/* ".c" if that is how all of them end, and no character of it is a glob's; else "". */
static const char *common_end(const struct cutting *c, const struct piece *p)
{
	const char *end = NULL;

	for (size_t i = p->from; i < p->to; i++) {
		const char *base = strrchr(c->paths[i], '/'), *dot = base ? strrchr(base, '.') : NULL;

		if (!dot || dot == base + 1 || (end && strcmp(end, dot)))
			return "";
		end = dot;
	}
	return strpbrk(end, "*?[]{}()!@+\\,|") ? "" : end;
}

static void push_glob(struct qk_strv *out, const struct cutting *c, const struct piece *p)
{
	bool flat = true;

	if (is_path(p)) {
		qk_strv_push(out, c->paths[p->from]);
		return;
	}
	for (size_t i = p->from; i < p->to && flat; i++)
		flat = !strchr(c->paths[i] + p->len + 1, '/');
	qk_strv_take(out, qk_asprintf("%.*s/%s*%s", (int)p->len, c->paths[p->from], flat ? "" : "**/",
				  common_end(c, p)));
}

static int most_first(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;
	size_t n = x->to - x->from, m = y->to - y->from;

	if (n != m)
		return n < m ? 1 : -1;
	return x->from < y->from ? -1 : x->from > y->from;
}

void qk_suggest(struct qk_strv *out, const char **paths, size_t n, size_t most)
{
	struct cutting c = { .paths = paths };
	size_t kept = 0, i;

	if (!n)
		return;
	qsort(paths, n, sizeof(*paths), in_order);
	for (i = 0; i < n; i++)
		if (!kept || strcmp(paths[kept - 1], paths[i]))
			paths[kept++] = paths[i];
	for (i = 0; i < kept && kept <= most; i++)
		qk_strv_push(out, paths[i]);
	if (kept <= most)
		return;
	add_piece(&c, 0, kept, 0);
	while ((i = next(&c, most)) < c.pieces.n)
		cut(&c, i);
	qsort(c.pieces.v, c.pieces.n, sizeof(*c.pieces.v), most_first);
	for (i = 0; i < c.pieces.n; i++)
		push_glob(out, &c, &c.pieces.v[i]);
	qk_vec_release(&c.pieces);
}
