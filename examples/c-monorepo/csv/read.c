#include "csv.h"

#include <stdlib.h>

void csv_open(struct csv *c, FILE *in)
{
	*c = (struct csv){ .in = in };
}

static int begin_field(struct csv *c)
{
	if (c->n == c->cap) {
		size_t cap = c->cap ? 2 * c->cap : 16;
		size_t *start = realloc(c->start, cap * sizeof(*start));

		if (!start)
			return -1;
		c->start = start;
		c->cap = cap;
	}
	c->start[c->n++] = c->bytes.len;
	return 0;
}

/* What stands between two quotes, the opening one already read. */
static int quoted(struct csv *c)
{
	int ch;

	while ((ch = getc(c->in)) != EOF) {
		if (ch == '"') {
			ch = getc(c->in);
			if (ch != '"') {
				ungetc(ch, c->in);
				return 0;
			}
		}
		if (text_add(&c->bytes, (char)ch))
			return -1;
	}
	return -1;
}

int csv_next(struct csv *c)
{
	int ch = getc(c->in);

	text_clear(&c->bytes);
	c->n = 0;
	if (ch == EOF)
		return 0;
	if (begin_field(c))
		return -1;
	for (; ch != EOF && ch != '\n'; ch = getc(c->in)) {
		int bad = 0;

		if (ch == '"')
			bad = quoted(c);
		else if (ch == ',')
			bad = text_add(&c->bytes, 0) || begin_field(c);
		else if (ch != '\r')
			bad = text_add(&c->bytes, (char)ch);
		if (bad)
			return -1;
	}
	return text_add(&c->bytes, 0) ? -1 : 1;
}

const char *csv_field(const struct csv *c, size_t i)
{
	return i < c->n ? c->bytes.s + c->start[i] : "";
}

void csv_close(struct csv *c)
{
	text_free(&c->bytes);
	free(c->start);
}
