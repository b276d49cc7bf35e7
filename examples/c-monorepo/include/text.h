/* Text that grows, and numbers with units in it. */
#ifndef TEXT_H
#define TEXT_H

#include <stddef.h>

struct text {
	char *s; /* terminated; NULL while empty */
	size_t len, cap;
};

/* Appends one byte. 0, or -1 without memory, the text then being as it was. */
int text_add(struct text *t, char c);
void text_clear(struct text *t); /* empties, keeps the memory */
void text_free(struct text *t);

/*
 * Reads "12.5k" and the like: a number, then nothing or one of the known suffixes.
 * 1 and the value in *ret, or 0 if it is something else.
 */
int text_number(const char *s, double *ret);

#endif
