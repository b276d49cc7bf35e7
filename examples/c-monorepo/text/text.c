#include "text.h"

#include <stdlib.h>

int text_add(struct text *t, char c)
{
	if (t->len + 2 > t->cap) {
		size_t cap = t->cap ? 2 * t->cap : 32;
		char *s = realloc(t->s, cap);

		if (!s)
			return -1;
		t->s = s;
		t->cap = cap;
	}
	t->s[t->len++] = c;
	t->s[t->len] = 0;
	return 0;
}

void text_clear(struct text *t)
{
	t->len = 0;
	if (t->s)
		t->s[0] = 0;
}

void text_free(struct text *t)
{
	free(t->s);
	*t = (struct text){ 0 };
}
